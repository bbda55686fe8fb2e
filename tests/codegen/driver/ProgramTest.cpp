#include "codegen/driver/Program.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include <gmock/gmock.h>

using namespace charonia;
using namespace charonia::driver;

namespace {

/// What checkIndependent says of a copy and one launch of a kernel that reads
/// its argument `independent` ahead of its turn. It gets an input, a weight, a
/// kernel's result and its own.
std::string check(unsigned independent) {
  engine::Program program;
  for (auto [name, kind] : {std::pair("x", engine::Buffer::Kind::Input),
                            std::pair("w", engine::Buffer::Kind::Weight),
                            std::pair("state", engine::Buffer::Kind::Arena),
                            std::pair("y", engine::Buffer::Kind::Output)}) {
    engine::Buffer buffer;
    buffer.name = name;
    buffer.kind = kind;
    program.buffers.push_back(buffer);
  }
  program.kernels.resize(2);
  program.kernels[1].name = "gru";
  engine::Step copy, launch;
  copy.kind = engine::Step::Kind::Copy;
  copy.args = {{2, 0}, {0, 0}};
  launch.kernel = 1;
  launch.args = {{0, 0}, {1, 0}, {2, 0}, {3, 0}};
  program.steps = {copy, launch};
  std::vector<CompiledKernel> kernels(2);
  kernels[1].independent = {independent};

  mlir::MLIRContext context;
  std::string text;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) { text = diagnostic.str(); });
  auto result =
      checkIndependent(program, kernels, mlir::UnknownLoc::get(&context));
  EXPECT_EQ(failed(result), !text.empty());
  return text;
}

TEST(Program, OnlyWeightsAreReadAheadOfTurn) {
  EXPECT_EQ(check(1), "");
  for (auto [argument, name] : {std::pair(0, "x"), {2, "state"}, {3, "y"}})
    EXPECT_EQ(check(argument),
              "kernel 'gru' reads its argument " + std::to_string(argument) +
                  " without waiting for the kernels before it, but '" + name +
                  "', which a launch passes there, is no weight: this is a "
                  "mistake of the compiler, please report it");
}

/// `count` launches of two kernels by turns, each with counters of its own.
engine::Program withCounters(unsigned count, mlir::MLIRContext &context) {
  engine::Program program;
  program.kernels.resize(2);
  for (unsigned i = 0; i < count; ++i) {
    engine::Step launch;
    launch.kernel = i % 2;
    launch.symbols = {1};
    program.steps.push_back(launch);
  }
  mlir::AffineExpr size = getAffineSymbolExpr(0, &context);
  std::vector<CompiledKernel> kernels(2);
  for (auto [i, rows] : {std::pair(0, 16), std::pair(1, 64)}) {
    kernels[i].counters = (size + (rows - 1)).floorDiv(rows);
    kernels[i].scratch = kernels[i].counters * 4096;
  }
  addScratch(program, kernels);
  return program;
}

TEST(Program, CountersOfManyLaunchesAreFewTerms) {
  mlir::MLIRContext context;
  engine::Program program = withCounters(2000, context);
  ASSERT_EQ(program.steps.size(), 2001u);
  std::vector<int64_t> sizes = {7, 100};
  int64_t bytes = 0;
  for (unsigned i = 1; i < program.steps.size(); ++i) {
    const engine::Argument &counters = program.steps[i].args.back();
    ASSERT_LE(counters.offset.terms().size(), 32u);
    ASSERT_EQ(counters.offset.evaluate(sizes).value(), bytes);
    bytes += 4 * (i % 2 ? 7 : 2);
  }
  EXPECT_EQ(program.steps[0].bytes.evaluate(sizes).value(), bytes);
  EXPECT_EQ(program.buffers[program.steps[0].args[0].buffer]
                .size.evaluate(sizes)
                .value(),
            bytes);
}

} // namespace
