// How wide a GPU kernel's indices are, and what the engine says of them.
#include "codegen/driver/IndexWidth.h"
#include "codegen/tile/ir/IndexAttributes.h"
#include "mlir/Parser/Parser.h"
#include <gmock/gmock.h>

using namespace charonia;
using namespace charonia::driver;
using namespace mlir;

namespace {

/// Symbols s0 and s1 of the two ranges, and a kernel of `body`, whose results
/// have the type `type`.
class IndexWidth : public testing::Test {
protected:
  IndexWidth() {
    DialectRegistry registry;
    registry.insert<func::FuncDialect, graph::GraphDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  void choose(StringRef body, StringRef type, int64_t opt0, int64_t max0,
              int64_t opt1 = 1, int64_t max1 = 1) {
    std::string text =
        ("func.func @f(%x: " + type + ") {\n%0 = graph.kernel \"k\" (%x) : (" +
         type + ") -> " + type + " {\n^bb0(%a: " + type + "):\n" + body +
         "\ngraph.yield %r : " + type + "\n}\nreturn\n}")
            .str();
    auto module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    graph::setSymbols(*module,
                      {{"a", 1, opt0, max0, 1}, {"b", 1, opt1, max1, 1}});
    auto function = *module->getOps<func::FuncOp>().begin();
    function.walk(
        [&](graph::KernelOp kernel) { chooseIndexBits(kernel, function); });
    auto integer = function->getAttrOfType<IntegerAttr>(tile::kIndexBitsAttr);
    bits = integer ? integer.getInt() : 32;
    indexed.clear();
    if (auto map = function->getAttrOfType<AffineMapAttr>(tile::kIndexedAttr))
      llvm::raw_string_ostream(indexed) << map.getValue();
  }
  void expect(int64_t bits, StringRef indexed) {
    EXPECT_EQ(this->bits, bits);
    EXPECT_EQ(this->indexed, indexed.str());
  }

  static std::string tensor(StringRef sizes, StringRef element = "f32") {
    std::string unknown;
    for (size_t i = 0, n = sizes.count(',') + 1; i < n; ++i)
      unknown += "?x";
    return ("tensor<" + unknown + element + ", affine_map<()[s0, s1] -> (" +
            sizes + ")>>")
        .str();
  }
  void chooseNeg(std::string type, int64_t opt0 = 1, int64_t max0 = 1,
                 int64_t opt1 = 1, int64_t max1 = 1) {
    choose("%r = graph.neg %a : (" + type + ") -> " + type, type, opt0, max0,
           opt1, max1);
  }

  MLIRContext context;
  int64_t bits = 0;
  std::string indexed;
};

TEST_F(IndexWidth, OfElementsThatAreKnown) {
  chooseNeg("tensor<2200000x1000xf16>");
  expect(64, "");
  chooseNeg("tensor<20000x1000xf16>");
  expect(32, "");
  chooseNeg("tensor<2146435073xi8>");
  expect(64, "");
  chooseNeg("tensor<2146435072xi8>");
  expect(32, "");
}

TEST_F(IndexWidth, OfOpenSizes) {
  constexpr int64_t open = 1 << 20;
  std::string type = tensor("s0, s1");
  chooseNeg(type, 8, open, 128, open);
  expect(32, "()[s0, s1] -> (s0 * s1)");
  chooseNeg(type, 8, 64, 128, 4096);
  expect(32, "");
  // What is tuned for half of what is possible may grow.
  chooseNeg(type, 1 << 15, open, (1 << 15) - 16, open);
  expect(32, "()[s0, s1] -> (s0 * s1)");
  chooseNeg(type, 1 << 15, open, (1 << 15) - 15, open);
  expect(64, "");
}

TEST_F(IndexWidth, OfNumbersThatSizesGive) {
  auto chooseDims = [&](StringRef number, int64_t max) {
    choose(("%r = graph.dims affine_map<()[s0] -> (" + number +
            ")> : tensor<1xi64>")
               .str(),
           "tensor<1xi64>", 5000, max);
  };
  chooseDims("s0 * 1000000", 10000);
  expect(64, "");
  chooseDims("s0 * 1000000", 2000);
  expect(32, "");
  // What is divided counts as well.
  chooseDims("(s0 * 1000000) floordiv 7000000", 10000);
  expect(64, "");
  chooseDims("s0 * -1000000", 10000);
  expect(64, "");
}

TEST_F(IndexWidth, OfWhatIsNotInMemory) {
  // Rows of a tensor that is never stored, numbered through.
  std::string small = "tensor<1x40000xf32>", large = "tensor<60000x40000xf32>",
              flat = "tensor<2400000000xf32>";
  auto body = [&](StringRef last) {
    return "%b = graph.broadcast %a : (" + small + ") -> " + large + "\n" +
           last.str();
  };
  std::string reduce = "graph.reduce sum %b {axes = array<i64: 0>, keepdims} "
                       ": (" +
                       large + ") -> " + small;
  choose(body("%r = " + reduce), small, 1, 1);
  expect(32, "");
  choose(body("%f = graph.reshape %b : (" + large + ") -> " + flat +
              "\n%r = " + reduce),
         small, 1, 1);
  expect(64, "");
}

} // namespace
