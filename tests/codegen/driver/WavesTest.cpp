// Which kernels of a program may run side by side, and what lives meanwhile.
#include "LaidOut.h"
#include "runtime/plan/ProgramArena.h"
#include "llvm/ADT/STLExtras.h"
#include <gmock/gmock.h>

using namespace charonia;
using namespace charonia::driver;
using namespace mlir;
using testing::ElementsAre;

namespace {

class Waves : public LaidOut {
protected:
  /// A kernel that negates an operand, or adds two up.
  std::string kernel(StringRef name, ArrayRef<StringRef> operands) const {
    auto list = [&](auto each) {
      std::string text;
      for (size_t i = 0; i < operands.size(); ++i)
        text += (i ? ", " : "") + each(i);
      return text;
    };
    auto own = [](size_t i) { return "%i" + std::to_string(i); };
    std::string types = " : (" + list([&](size_t) { return type; }) + ") -> " +
                        type,
                header = list([&](size_t i) { return own(i) + ": " + type; });
    StringRef op = operands.size() == 1 ? "neg" : "add";
    return ("%" + name + " = graph.kernel \"" + op + "\" (" +
            list([&](size_t i) { return operands[i].str(); }) + ")" + types +
            " {\n^bb0(" + header + "):\n%r = graph." + op + " " + list(own) +
            types + "\ngraph.yield %r : " + type + "\n} loc(\"" + name +
            "\")\n")
        .str();
  }

  /// A function of %x and %y that returns `results`.
  void layOut(const std::string &body, ArrayRef<StringRef> results,
              bool waves = true) {
    std::string types;
    for (size_t i = 0; i < results.size(); ++i)
      types += (i ? ", " : "") + type;
    std::string text = "func.func @main(%x: " + type + ", %y: " + type +
                       ") -> (" + types + ") {\n" + body + "return " +
                       llvm::join(results, ", ") + " : " + types + "\n}";
    ASSERT_NO_FATAL_FAILURE(parseFunction(text, symbols));
    LaidOut::layOut(waves);
  }

  /// The kernels of each wave, in order.
  std::vector<std::string> waves() const {
    std::vector<std::string> names;
    for (const engine::Step &step : layout.program.steps) {
      std::string name = step.nodes.front();
      if (step.besidePrevious)
        names.back() += " " + name;
      else
        names.push_back(name);
    }
    return names;
  }
  const engine::Buffer &resultOf(StringRef name) const {
    for (const engine::Step &step : layout.program.steps)
      if (step.nodes.front() == name)
        return layout.program.buffers[step.args.back().buffer];
    ADD_FAILURE() << "no kernel " << name.str();
    return layout.program.buffers.front();
  }

  std::string type = "tensor<64x16xf32>";
  SmallVector<graph::Symbol> symbols;
};

TEST_F(Waves, BranchesRunSideBySide) {
  std::string body = kernel("a1", {"%x"}) + kernel("a2", {"%a1"}) +
                     kernel("b1", {"%y"}) + kernel("b2", {"%b1"}) +
                     kernel("s", {"%a2", "%b2"});
  layOut(body, {"%s"});
  EXPECT_THAT(waves(), ElementsAre("a1 b1", "a2 b2", "s"));
  // Nothing takes the place of what a neighbour may still read.
  for (StringRef name : {"a1", "b1", "a2", "b2"})
    EXPECT_EQ(resultOf(name).alias, engine::noIndex) << name.str();
  EXPECT_EQ(resultOf("a1").lastStep, 3u);
  EXPECT_EQ(resultOf("b1").lastStep, 3u);
  EXPECT_EQ(resultOf("a2").firstStep, 2u);
  // Those that lead, follow and stand alone are kernels of their own.
  EXPECT_EQ(kernels->size(), 3u);
  EXPECT_EQ(kernels->contentAlone(0), kernels->contentAlone(1));
  EXPECT_NE(kernels->content(0), kernels->content(1));

  layOut(body, {"%s"}, /*waves=*/false);
  EXPECT_THAT(waves(), ElementsAre("a1", "a2", "b1", "b2", "s"));
  EXPECT_NE(resultOf("a2").alias, engine::noIndex);
  EXPECT_EQ(kernels->size(), 2u);
}

TEST_F(Waves, AChainStaysAsItIs) {
  layOut(kernel("a", {"%x"}) + kernel("b", {"%a"}) + kernel("c", {"%b"}) +
             kernel("d", {"%c", "%y"}),
         {"%d"});
  EXPECT_THAT(waves(), ElementsAre("a", "b", "c", "d"));
  EXPECT_NE(resultOf("b").alias, engine::noIndex);
}

TEST_F(Waves, OfEveryReaderAndNone) {
  // One value that three read, one of them with what another gives.
  layOut(kernel("a", {"%x"}) + kernel("b", {"%a"}) + kernel("c", {"%a", "%b"}) +
             kernel("d", {"%a"}) + kernel("e", {"%y"}),
         {"%c", "%d", "%e"});
  EXPECT_THAT(waves(), ElementsAre("a e", "b d", "c"));
  EXPECT_EQ(resultOf("a").lastStep, 4u);
}

TEST_F(Waves, ViewsMoveWithTheirReaders) {
  std::string view = "%v = graph.reshape %b {shape = affine_map<() -> (64, "
                     "16)>} : (" +
                     type + ") -> " + type + "\n";
  layOut(kernel("a", {"%x"}) + kernel("a2", {"%a"}) + kernel("b", {"%y"}) +
             view + kernel("c", {"%v"}) + kernel("s", {"%a2", "%c"}),
         {"%s"});
  EXPECT_THAT(waves(), ElementsAre("a b", "a2 c", "s"));
}

TEST_F(Waves, LargeValuesStayAlone) {
  type = "tensor<2048x1024xf32>"; // 8 MB, which the arena would hold longer
  layOut(kernel("a1", {"%x"}) + kernel("a2", {"%a1"}) + kernel("b1", {"%y"}) +
             kernel("b2", {"%b1"}) + kernel("s", {"%a2", "%b2"}),
         {"%s"});
  EXPECT_THAT(waves(), ElementsAre("a1", "a2", "b1", "b2", "s"));
  // What callers hold is there anyway.
  layOut(kernel("a", {"%x"}) + kernel("b", {"%y"}) + kernel("c", {"%x", "%y"}),
         {"%a", "%b", "%c"});
  EXPECT_THAT(waves(), ElementsAre("c a b"));
}

TEST_F(Waves, ManyAreSeveralWaves) {
  std::string body;
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) {
    names.push_back("%k" + std::to_string(i));
    body += kernel(StringRef(names.back()).drop_front(), {"%x"});
  }
  layOut(body, llvm::to_vector_of<StringRef>(names));
  ASSERT_EQ(waves().size(), 2u);
  EXPECT_EQ(StringRef(waves()[0]).count(' '), 15u);
}

TEST_F(Waves, WithoutOperandsTheyMoveAsWell) {
  // One that nothing is read for belongs to a wave behind others.
  std::string body;
  SmallVector<std::string> names;
  for (int i = 0; i < 16; ++i) {
    names.push_back("%k" + std::to_string(i));
    body += kernel(StringRef(names.back()).drop_front(), {"%x"});
  }
  body += "%c = graph.kernel \"fill\" () : () -> " + type +
          " {\n%r = graph.constant dense<1.0> : " + type +
          "\ngraph.yield %r : " + type + "\n} loc(\"c\")\n";
  body += kernel("e", {"%k15"});
  names.append({"%c", "%e"});
  layOut(body, llvm::to_vector_of<StringRef>(names));
  ASSERT_EQ(waves().size(), 2u);
  EXPECT_EQ(waves()[1], "e c"); // which takes longer begins
}

TEST_F(Waves, MemoryGrowsByAQuarter) {
  // A chain that reads one more value at each step: to have all of them first
  // would take 64 times the memory.
  type = "tensor<512x512xf32>";
  std::string body;
  std::string chain = "%x";
  for (int i = 0; i < 64; ++i) {
    std::string value = "v" + std::to_string(i), next = "c" + std::to_string(i);
    body += kernel(value, {"%y"}) + kernel(next, {chain, "%" + value});
    chain = "%" + next;
  }
  layOut(body, {chain});
  auto peak = [&] {
    auto arena = plan::planProgram(layout.program, {});
    EXPECT_TRUE(arena) << arena.status().message();
    return arena ? arena->packed.peak : 0;
  };
  uint64_t together = peak();
  EXPECT_LT(waves().size(), 128u);
  layOut(body, {chain}, /*waves=*/false);
  EXPECT_LE(together, peak() * 5 / 4 + (2 << 20));
}

TEST_F(Waves, OfOpenSizesMemoryGrowsByNoMore) {
  // Branches of a few bytes at the size to optimize for may be any number.
  type = "tensor<?x16xf32, affine_map<()[s0] -> (s0, 16)>>";
  symbols = {{"n", 1, 1, 65536, 1}};
  std::string body;
  std::vector<std::string> results;
  for (int i = 0; i < 16; ++i) {
    std::string first = "a" + std::to_string(i), last = "b" + std::to_string(i);
    body += kernel(first, {"%x"}) + kernel(last, {"%" + first});
    results.push_back("%" + last);
  }
  auto peak = [&](bool waves) -> uint64_t {
    layOut(body, llvm::to_vector_of<StringRef>(results), waves);
    auto arena = plan::planProgram(layout.program, std::vector<int64_t>{65536});
    EXPECT_TRUE(arena) << arena.status().message();
    return arena ? arena->packed.peak : 0;
  };
  uint64_t alone = peak(false);
  EXPECT_LE(peak(true), alone * 5 / 4);
}

TEST_F(Waves, WhatSharesMemoryIsToldApart) {
  std::string body = kernel("a", {"%x"}) + kernel("b", {"%a"}) +
                     kernel("c", {"%y"}) + kernel("d", {"%c"});
  layOut(body, {"%b", "%d"}, /*waves=*/false);
  layout.program.steps[1].besidePrevious = true;
  EXPECT_EQ(conflict(),
            "kernel 'neg' (step 1) would run beside that of step 0, which "
            "shares memory with it: this is a mistake of the compiler, please "
            "report it; remedy: compile with --no-waves");
  layout.program.steps[1].besidePrevious = false;
  layout.program.steps[2].besidePrevious = true;
  EXPECT_EQ(conflict(), "");
  // In the place of what the other one reads.
  engine::Argument &result = layout.program.steps[2].args.back();
  result = layout.program.steps[1].args.front();
  EXPECT_NE(conflict(), "");
}

TEST_F(Waves, ScratchLivesAsLongAsTheWave) {
  engine::Program program;
  program.kernels.resize(1);
  program.steps.resize(3);
  program.steps[1].besidePrevious = program.steps[2].besidePrevious = true;
  std::vector<CompiledKernel> compiled(1);
  compiled[0].counters = getAffineConstantExpr(4, &context);
  compiled[0].scratch = compiled[0].counters * 4096;
  addScratch(program, compiled);
  for (const engine::Buffer &buffer : program.buffers)
    EXPECT_EQ(buffer.lastStep, 3u) << buffer.name;
}

} // namespace
