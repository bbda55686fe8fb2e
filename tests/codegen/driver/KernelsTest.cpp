// Which kernels are one, and which of a module's symbols they carry.
#include "codegen/driver/Kernels.h"
#include "codegen/driver/Program.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <gmock/gmock.h>

using namespace charonia;
using namespace charonia::driver;
using namespace mlir;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

class Kernels : public testing::Test {
protected:
  Kernels() {
    DialectRegistry registry;
    registry.insert<func::FuncDialect, graph::GraphDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// A function of one kernel that applies `op` to an operand of each type.
  static std::string kernel(StringRef op, ArrayRef<std::string> operands,
                            StringRef result, StringRef attributes = "") {
    auto list = [&](auto each) {
      std::string text;
      for (size_t i = 0; i < operands.size(); ++i)
        text += (i ? ", " : "") + each(std::to_string(i), operands[i]);
      return text;
    };
    auto named = [](std::string name) {
      return [name](std::string i, std::string type) {
        return "%" + name + i + ": " + type;
      };
    };
    auto name = [](std::string of) {
      return [of](std::string i, std::string) { return "%" + of + i; };
    };
    std::string types =
        " : (" + llvm::join(operands, ", ") + ") -> " + result.str();
    return "func.func @f(" + list(named("a")) + ") {\n%0 = graph.kernel \"" +
           op.str() + "\" (" + list(name("a")) + ")" + types + " {\n^bb0(" +
           list(named("b")) + "):\n%r = graph." + op.str() + " " +
           list(name("b")) + " " + attributes.str() + types +
           "\ngraph.yield %r : " + result.str() + "\n}\nreturn\n}";
  }

  /// The launches of the kernels of these functions.
  std::vector<KernelSet::Launch> add(ArrayRef<std::string> functions) {
    std::vector<KernelSet::Launch> launches;
    for (const std::string &text : functions) {
      auto module = parseSourceString<ModuleOp>(text, &context);
      EXPECT_TRUE(module) << text;
      if (!module)
        continue;
      graph::setSymbols(*module, symbols);
      module->walk([&](graph::KernelOp op) {
        launches.push_back(set.add(op, [](Value) { return false; }));
      });
    }
    return launches;
  }

  /// A tensor with these sizes.
  static std::string type(StringRef sizes) {
    std::string unknown;
    for (size_t i = 0, n = sizes.count(',') + 1; i < n; ++i)
      unknown += "?x";
    return ("tensor<" + unknown +
            "f32, affine_map<()[s0, s1, s2, s3, s4] -> (" + sizes + ")>>")
        .str();
  }
  static std::string relu(StringRef sizes) {
    return kernel("neg", {type(sizes)}, type(sizes));
  }
  std::vector<std::string> symbolsOf(unsigned number) {
    std::vector<std::string> names;
    for (const graph::Symbol &s :
         graph::getSymbols(set.get(number)->getParentOfType<ModuleOp>()))
      names.push_back(s.name);
    return names;
  }

  MLIRContext context;
  SmallVector<graph::Symbol> symbols = {{"a", 1, 8, 64, 1},
                                        {"b", 1, 8, 64, 1},
                                        {"c", 1, 8, 64, 1},
                                        {"d", 1, 8, 64, 1},
                                        {"e", 1, 16, 64, 1}};
  KernelSet set;
};

TEST_F(Kernels, NamesOfSizesMakeNoOtherKernel) {
  auto launches = add({relu("s3, s0"), relu("s1, s2"), relu("s0, s3"),
                       relu("s2, s2"), relu("s4, s0"), relu("s0, s0")});
  ASSERT_EQ(launches.size(), 6u);
  // Two sizes, whichever; one size twice; a size that is tuned for another.
  std::vector<unsigned> numbers;
  for (const KernelSet::Launch &launch : launches)
    numbers.push_back(launch.kernel);
  EXPECT_THAT(numbers, ElementsAre(0, 0, 0, 1, 2, 1));
  EXPECT_EQ(set.size(), 3u);
  EXPECT_THAT(launches[0].symbols, ElementsAre(3, 0));
  EXPECT_THAT(launches[1].symbols, ElementsAre(1, 2));
  EXPECT_THAT(launches[2].symbols, ElementsAre(0, 3));
  EXPECT_THAT(launches[3].symbols, ElementsAre(2));
  EXPECT_THAT(launches[4].symbols, ElementsAre(4, 0));
  EXPECT_THAT(launches[5].symbols, ElementsAre(0));
  // The names of the first launch, for whoever reads it.
  EXPECT_THAT(symbolsOf(0), ElementsAre("d", "a"));
  EXPECT_THAT(symbolsOf(1), ElementsAre("c"));
  EXPECT_THAT(symbolsOf(2), ElementsAre("e", "a"));
}

TEST_F(Kernels, WithoutSizesNoneIsCarried) {
  auto launches = add({kernel("neg", {"tensor<4x4xf32>"}, "tensor<4x4xf32>")});
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_THAT(launches[0].symbols, IsEmpty());
  EXPECT_THAT(symbolsOf(0), IsEmpty());
}

TEST_F(Kernels, SumsOfSizesStayInTheirForm) {
  auto concat = [&](StringRef x, StringRef y, StringRef sum) {
    return kernel("concat", {type(x), type(y)}, type(sum), "{axis = 0}");
  };
  // As operators infer them, sums are in the order of symbols.
  auto launches =
      add({concat("s3", "s1", "s1 + s3"), concat("s0", "s2", "s0 + s2")});
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_THAT(launches[0].symbols, ElementsAre(3, 1));
  EXPECT_THAT(launches[1].symbols, ElementsAre(0, 2));
  EXPECT_EQ(set.size(), 1u);
  EXPECT_TRUE(succeeded(verify(set.get(0)->getParentOfType<ModuleOp>())));
  EXPECT_EQ(graph::getShape(set.get(0)->getResult(0))[0],
            getAffineSymbolExpr(0, &context) +
                getAffineSymbolExpr(1, &context));
}

TEST_F(Kernels, SizesInAttributesCount) {
  auto dims = [](StringRef value) {
    return ("func.func @f() {\n%0 = graph.kernel \"dims\" () : () -> "
            "tensor<1xi64> {\n%r = graph.dims affine_map<()[s0, s1, s2, s3] -> "
            "(" +
            value +
            ")> : tensor<1xi64>\ngraph.yield %r : tensor<1xi64>\n}\nreturn\n}")
        .str();
  };
  auto launches = add({dims("s3 floordiv 2"), dims("s1 floordiv 2")});
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(set.size(), 1u);
  EXPECT_THAT(launches[0].symbols, ElementsAre(3));
  EXPECT_THAT(launches[1].symbols, ElementsAre(1));
}

} // namespace
