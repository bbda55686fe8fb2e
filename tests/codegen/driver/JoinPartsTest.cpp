// Which concatenations are stored by the kernels that give their operands, and
// where.
#include "codegen/driver/JoinParts.h"
#include "LaidOut.h"
#include "graph/analysis/StoredParts.h"
#include <gmock/gmock.h>

using namespace charonia;
using namespace charonia::driver;
using namespace mlir;
using testing::ElementsAre;

namespace {

class JoinParts : public LaidOut {
protected:
  static std::string tensor(StringRef shape) {
    return "tensor<" + shape.str() + "xf32>";
  }
  /// `%name = ` a kernel that negates a value.
  static std::string negate(StringRef name, StringRef operand,
                            StringRef shape) {
    std::string type = tensor(shape);
    return ("%" + name + " = graph.kernel \"neg\" (" + operand + ") : (" +
            type + ") -> " + type + " {\n^bb0(%i: " + type +
            "):\n%r = graph.neg %i : (" + type + ") -> " + type +
            "\ngraph.yield %r : " + type + "\n} loc(\"" + name + "\")\n")
        .str();
  }
  /// `%name = ` a kernel of operands 64 x `columns` that computes `body` of
  /// %i0, %i1 .. and gives %r of 64 x `width`.
  static std::string join(StringRef name, ArrayRef<StringRef> operands,
                          ArrayRef<int> columns, StringRef body, int width) {
    std::string values, types, arguments;
    for (size_t i = 0; i < operands.size(); ++i) {
      std::string type = tensor("64x" + std::to_string(columns[i])),
                  comma = i ? ", " : "";
      values += comma + operands[i].str();
      types += comma + type;
      arguments += comma + "%i" + std::to_string(i) + ": " + type;
    }
    std::string result = tensor("64x" + std::to_string(width));
    return ("%" + name + " = graph.kernel \"join\" (" + values + ") : (" +
            types + ") -> " + result + " {\n^bb0(" + arguments + "):\n" + body +
            "\ngraph.yield %r : " + result + "\n} loc(\"" + name + "\")\n")
        .str();
  }
  static constexpr StringLiteral two =
      "%r = graph.concat %i0, %i1 {axis = 1 : i64} : (tensor<64x16xf32>, "
      "tensor<64x24xf32>) -> tensor<64x40xf32>";

  /// A function of %x, 64 x 16, and %y, 64 x 24, that returns `results`, 64 x
  /// 40 all of them but the last, of `last` columns.
  void parse(const std::string &body, ArrayRef<StringRef> results,
             int last = 40) {
    std::string types;
    for (size_t i = 0; i < results.size(); ++i)
      types += i + 1 < results.size() ? tensor("64x40") + ", "
                                      : tensor("64x" + std::to_string(last));
    std::string text = "func.func @main(%x: tensor<64x16xf32>, %y: "
                       "tensor<64x24xf32>) -> (" +
                       types + ") {\n" + body + "return " +
                       llvm::join(results, ", ") + " : " + types + "\n}";
    parseFunction(text);
  }

  std::vector<std::string> steps() const {
    std::vector<std::string> names;
    for (const engine::Step &step : layout.program.steps)
      names.push_back(step.nodes.front());
    return names;
  }
  graph::KernelOp kernel(unsigned step) const {
    return kernels->get(layout.program.steps[step].kernel);
  }
  /// The buffer of a result, counted from the last.
  uint32_t bufferOf(unsigned step, unsigned fromLast = 0) const {
    const auto &args = layout.program.steps[step].args;
    return args[args.size() - 1 - fromLast].buffer;
  }
  /// Axis, first element, count, place, extent; empty: it is none.
  std::vector<int64_t> part(unsigned step, unsigned result = 0) const {
    auto found = graph::getStoredPart(kernel(step), result);
    if (!found)
      return {};
    std::vector<int64_t> numbers{found->axis};
    for (AffineExpr e :
         {found->first, found->count, found->offset, found->extent})
      numbers.push_back(*graph::constantOf(e));
    return numbers;
  }
};

TEST_F(JoinParts, AreStoredWhereTheyBelong) {
  parse(negate("a", "%x", "64x16") + negate("b", "%y", "64x24") +
            join("c", {"%a", "%b"}, {16, 24}, two, 40) +
            negate("d", "%c", "64x40"),
        {"%d"});
  layOut();
  EXPECT_THAT(steps(), ElementsAre("a", "b", "d"));
  EXPECT_THAT(part(0), ElementsAre(1, 0, 16, 0, 40));
  EXPECT_THAT(part(1), ElementsAre(1, 0, 24, 16, 40));
  EXPECT_EQ(bufferOf(0), bufferOf(1));
  EXPECT_EQ(bufferOf(2, 1), bufferOf(0));
  const engine::Buffer &whole = layout.program.buffers[bufferOf(0)];
  EXPECT_EQ(whole.size.evaluate({}).value(), 64 * 40 * 4);
  EXPECT_EQ(whole.firstStep, 0u);
  EXPECT_EQ(whole.lastStep, 2u);
  EXPECT_EQ(graph::getStoredType(kernel(0), 0),
            graph::makeType({getAffineConstantExpr(64, &context),
                             getAffineConstantExpr(40, &context)},
                            Float32Type::get(&context)));
}

TEST_F(JoinParts, OfAnOutputGoToTheCaller) {
  parse(negate("a", "%x", "64x16") + negate("b", "%y", "64x24") +
            join("c", {"%a", "%b"}, {16, 24}, two, 40),
        {"%c"});
  layOut();
  EXPECT_THAT(steps(), ElementsAre("a", "b"));
  EXPECT_EQ(layout.program.buffers[bufferOf(0)].kind,
            engine::Buffer::Kind::Output);
}

TEST_F(JoinParts, WhatOthersReadIsStoredTwice) {
  parse(negate("a", "%x", "64x16") + negate("b", "%y", "64x24") +
            join("c", {"%a", "%b"}, {16, 24}, two, 40) +
            negate("d", "%a", "64x16"),
        {"%c", "%d"}, 16);
  layOut();
  EXPECT_THAT(steps(), ElementsAre("a", "b", "d"));
  EXPECT_EQ(kernel(0).getNumResults(), 2u);
  EXPECT_THAT(part(0, 0), ElementsAre());
  EXPECT_THAT(part(0, 1), ElementsAre(1, 0, 16, 0, 40));
  EXPECT_EQ(bufferOf(0), bufferOf(1));
  EXPECT_EQ(bufferOf(0, 1), bufferOf(2, 1));
}

TEST_F(JoinParts, SlicesAndShapesOnTheWay) {
  // Rows as images; of b two neighbouring slices, which are one.
  std::string slice = "(tensor<64x24xf32>) -> tensor<64x8xf32>\n";
  auto sliced = [&](StringRef name, int start) {
    return ("%" + name + " = graph.slice %i1 {starts = affine_map<() -> (0, " +
            Twine(start) + ")>, steps = array<i64: 1, 1>} : " + slice)
        .str();
  };
  parse("%xs = graph.reshape %x : (tensor<64x16xf32>) -> tensor<8x8x16xf32>\n" +
            negate("a", "%xs", "8x8x16") + negate("b", "%y", "64x24") +
            "%as = graph.reshape %a : (tensor<8x8x16xf32>) -> "
            "tensor<64x16xf32>\n" +
            join("c", {"%as", "%b"}, {16, 24},
                 sliced("s", 8) + sliced("t", 16) +
                     "%r = graph.concat %s, %t, %i0 {axis = 1 : i64} : "
                     "(tensor<64x8xf32>, tensor<64x8xf32>, tensor<64x16xf32>) "
                     "-> tensor<64x32xf32>",
                 32),
        {"%c"}, 32);
  layOut();
  EXPECT_THAT(steps(), ElementsAre("a", "b"));
  EXPECT_THAT(part(0), ElementsAre(2, 0, 16, 16, 32));
  EXPECT_THAT(part(1), ElementsAre(1, 8, 16, 0, 32));
}

TEST_F(JoinParts, OneOperandMayBeComputed) {
  std::string body =
      "%n = graph.neg %i1 : (tensor<64x24xf32>) -> tensor<64x24xf32>\n"
      "%r = graph.concat %i0, %n {axis = 1 : i64} : (tensor<64x16xf32>, "
      "tensor<64x24xf32>) -> tensor<64x40xf32>";
  parse(negate("a", "%x", "64x16") +
            join("c", {"%a", "%y"}, {16, 24}, body, 40),
        {"%c"});
  layOut();
  EXPECT_THAT(steps(), ElementsAre("a", "c"));
  EXPECT_THAT(part(1), ElementsAre(1, 0, 24, 16, 40));
  EXPECT_EQ(bufferOf(0), bufferOf(1));
  // Two would be one launch more.
  parse(join("c", {"%x", "%y"}, {16, 24}, two, 40), {"%c"});
  layOut();
  EXPECT_THAT(steps(), ElementsAre("c"));
  EXPECT_THAT(part(0), ElementsAre());
}

TEST_F(JoinParts, WhatIsComputedMayReadAnother) {
  // In either order: the kernel of the negation reads %a in %a's own memory.
  for (StringRef order : {"%i0, %n", "%n, %i0"}) {
    std::string body =
        ("%n = graph.neg %i0 : (tensor<64x16xf32>) -> tensor<64x16xf32>\n"
         "%r = graph.concat " +
         order +
         " {axis = 1 : i64} : (tensor<64x16xf32>, tensor<64x16xf32>) -> "
         "tensor<64x32xf32>")
            .str();
    parse(negate("a", "%x", "64x16") + join("c", {"%a"}, {16}, body, 32),
          {"%c"}, 32);
    layOut();
    EXPECT_THAT(steps(), ElementsAre("a", "c"));
    ASSERT_EQ(kernel(0).getNumResults(), 2u);
    EXPECT_NE(bufferOf(0), bufferOf(0, 1));
    EXPECT_EQ(bufferOf(1, 1), bufferOf(0, 1));
    EXPECT_EQ(bufferOf(1), bufferOf(0));
  }
}

TEST_F(JoinParts, OfOneKernelNoMoreThanItHasResultsFor) {
  auto slices = [&](int count) {
    std::string body, values, types;
    for (int i = 0; i < count; ++i) {
      std::string name = "%s" + std::to_string(i);
      body += name + " = graph.slice %i0 {starts = affine_map<() -> (0, " +
              std::to_string(count - 1 - i) +
              ")>, steps = array<i64: 1, 1>} : (tensor<64x16xf32>) -> "
              "tensor<64x1xf32>\n";
      values += name + ", ";
      types += "tensor<64x1xf32>, ";
    }
    return body + "%r = graph.concat " + values + "%i1 {axis = 1 : i64} : (" +
           types + "tensor<64x24xf32>) -> tensor<64x" +
           std::to_string(24 + count) + "xf32>";
  };
  for (auto [count, launches] : {std::pair(7, 2u), std::pair(9, 3u)}) {
    parse(negate("a", "%x", "64x16") + negate("b", "%y", "64x24") +
              join("c", {"%a", "%b"}, {16, 24}, slices(count), 24 + count),
          {"%c"}, 24 + count);
    layOut();
    EXPECT_EQ(steps().size(), launches) << count;
  }
  // What nothing else reads is stored once.
  parse(negate("a", "%x", "64x16") + negate("b", "%y", "64x24") +
            join("c", {"%a", "%b"}, {16, 24}, slices(7), 31),
        {"%c"}, 31);
  layOut();
  EXPECT_EQ(kernel(0).getNumResults(), 7u);
}

TEST_F(JoinParts, WhatIsDoubledAgainAndAgainStaysOneKernel) {
  std::string body, name = "%i0", type = tensor("64x16");
  int64_t width = 16;
  for (int i = 0; i < 28; ++i) {
    std::string next = i == 27 ? "%r" : "%d" + std::to_string(i),
                wider = tensor("64x" + std::to_string(width *= 2));
    body += next + " = graph.concat " + name + ", " + name +
            " {axis = 1 : i64} : (" + type + ", " + type + ") -> " + wider +
            "\n";
    name = next;
    type = wider;
  }
  parse(negate("a", "%x", "64x16") + "%c = graph.kernel \"join\" (%a) : (" +
            tensor("64x16") + ") -> " + type +
            " {\n^bb0(%i0: " + tensor("64x16") + "):\n" + body +
            "graph.yield %r : " + type + "\n}\n" + negate("b", "%y", "64x24"),
        {"%b"}, 24);
  joinParts(function, /*isWhole=*/true);
  EXPECT_TRUE(function.getOps<graph::JoinedOp>().empty());
}

TEST_F(JoinParts, WhatAStepGivesIsLeftAlone) {
  parse(negate("a", "%x", "64x16") + negate("b", "%y", "64x24") +
            join("c", {"%a", "%b"}, {16, 24}, two, 40),
        {"%c"});
  joinParts(function, /*isWhole=*/false);
  EXPECT_TRUE(function.getOps<graph::JoinedOp>().empty());
  joinParts(function, /*isWhole=*/true);
  EXPECT_FALSE(function.getOps<graph::JoinedOp>().empty());
}

TEST_F(JoinParts, RunSideBySide) {
  parse(negate("a", "%x", "64x16") + negate("b", "%y", "64x24") +
            join("c", {"%a", "%b"}, {16, 24}, two, 40) +
            negate("d", "%c", "64x40"),
        {"%d"});
  layOut(/*waves=*/true);
  EXPECT_TRUE(layout.program.steps[1].besidePrevious);
  EXPECT_FALSE(layout.program.steps[2].besidePrevious);
  EXPECT_EQ(layout.program.buffers[bufferOf(0)].lastStep, 2u);
  // One part twice is a mistake, and so is reading what a neighbour stores.
  layout.program.steps[2].besidePrevious = true;
  EXPECT_NE(conflict(), "");
  layout.program.steps[2].besidePrevious = false;
  layout.program.steps[1].kernel = layout.program.steps[0].kernel;
  EXPECT_NE(conflict(), "");
}

} // namespace
