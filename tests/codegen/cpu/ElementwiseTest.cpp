// Every elementwise operator on every type it takes, on tiles with ragged ends.
#include "CpuRunner.h"

using namespace charonia::cpu;

namespace {

class CpuElementwise : public CpuKernels {
protected:
  /// y = op(inputs...) on tiles of `extent` elements with a checked end.
  std::string program(llvm::StringRef line,
                      llvm::ArrayRef<llvm::StringRef> inputs,
                      llvm::StringRef output, int64_t extent) {
    std::string arguments, loads,
        map = llvm::formatv("map = affine_map<(d0)[s0, s1] -> (s0 * {0} + "
                            "d0)>, shape = affine_map<()[s0, s1] -> (s1)>, "
                            "rank = 1 : i64, checks = array<i64: 0>",
                            extent);
    for (auto [i, type] : llvm::enumerate(inputs)) {
      arguments += llvm::formatv("%b{0}: !tile.buffer<{1}>, ", i, type);
      loads += llvm::formatv(
          "  %x{0} = tile.load %b{0}[%pid, %n] {{{3}} : (!tile.buffer<{1}>, "
          "index, index) -> tensor<{2}x{1}>\n",
          i, type, extent, map);
    }
    return llvm::formatv(R"(
func.func @kernel({0}%out: !tile.buffer<{1}>, %n: index) attributes {{tile.kernel} {{
  %pid = tile.program_id : index
{2}  {3}
  tile.store %y, %out[%pid, %n] {{{5}} : tensor<{4}x{1}>, !tile.buffer<{1}>, index, index
  return
})",
                         arguments, output, loads, line, extent, map)
        .str();
  }

  void check(llvm::StringRef op, llvm::ArrayRef<llvm::StringRef> inputs,
             llvm::StringRef output, std::string suffix, double low = -2,
             double high = 2, double tolerance = 2e-6) {
    int64_t extent = integer(1, 40), n = integer(1, 200);
    std::string operands;
    for (size_t i = 0; i < inputs.size(); ++i)
      operands += (i ? ", %x" : "%x") + std::to_string(i);
    std::string line = ("%y = " + op + " " + operands + " : ").str();
    auto replace = [&](std::string text) {
      for (size_t at; (at = text.find("$")) != std::string::npos;)
        text.replace(at, 1, std::to_string(extent));
      return text;
    };
    llvm::SmallVector<Contents> contents;
    for (size_t i = 0; i < inputs.size(); ++i)
      contents.push_back({size_t(n), low, high});
    contents.push_back({size_t(n)});
    expectSame(program(line + replace(suffix), inputs, output, extent),
               contents, {n}, (n + extent - 1) / extent, tolerance);
  }
};

TEST_P(CpuElementwise, FloatArithmetic) {
  for (llvm::StringRef type : {"f32", "f64"}) {
    std::string tile = ("tensor<$x" + type + ">").str();
    for (llvm::StringRef op :
         {"arith.addf", "arith.subf", "arith.mulf", "arith.divf",
          "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf",
          "math.copysign"})
      check(op, {type, type}, type, tile, -2, 2, 0);
    check("arith.remf", {type, type}, type, tile, -2, 2, 0);
    for (llvm::StringRef op :
         {"arith.negf", "math.absf", "math.floor", "math.ceil", "math.trunc",
          "math.roundeven", "math.round"})
      check(op, {type}, type, tile, -5, 5, 0);
    for (llvm::StringRef op :
         {"math.exp", "math.tanh", "math.erf", "math.sin", "math.cos"})
      check(op, {type}, type, tile, -4, 4);
    for (llvm::StringRef op : {"math.sqrt", "math.rsqrt", "math.log"})
      check(op, {type}, type, tile, 0.01, 50);
    check("math.fma", {type, type, type}, type, tile, -2, 2, 0);
    check("math.powf", {type, type}, type, tile, 0.1, 4);
  }
}

TEST_P(CpuElementwise, NotANumber) {
  // Zero divided by zero and the square root of negative numbers.
  for (llvm::StringRef op :
       {"arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"}) {
    for (bool swapped : {false, true}) {
      std::string line =
          ("%r = math.sqrt %x0 : tensor<19xf32>\n  %y = " + op +
           (swapped ? " %x1, %r" : " %r, %x1") + " : tensor<19xf32>")
              .str();
      expectSame(program(line, {"f32", "f32"}, "f32", 19), {{50}, {50}, {50}},
                 {50}, 3, 0);
      std::string constant =
          ("%r = math.sqrt %x0 : tensor<19xf32>\n  %c = arith.constant "
           "dense<0.5> : tensor<19xf32>\n  %y = " +
           op + (swapped ? " %c, %r" : " %r, %c") + " : tensor<19xf32>")
              .str();
      expectSame(program(constant, {"f32"}, "f32", 19), {{50}, {50}}, {50}, 3,
                 0);
    }
  }
}

TEST_P(CpuElementwise, IntegerArithmetic) {
  for (llvm::StringRef type : {"i8", "i16", "i32", "i64", "index"}) {
    std::string tile = ("tensor<$x" + type + ">").str();
    for (llvm::StringRef op :
         {"arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori",
          "arith.xori", "arith.maxsi", "arith.minsi", "arith.maxui",
          "arith.minui"})
      check(op, {type, type}, type, tile, -100, 100);
    for (llvm::StringRef op :
         {"arith.divsi", "arith.divui", "arith.remsi", "arith.remui",
          "arith.ceildivsi", "arith.ceildivui", "arith.floordivsi"}) {
      check(op, {type, type}, type, tile, 1, 100);
      if (type == "i8" || type == "index")
        continue;
      // A negative numerator over a positive constant.
      int64_t extent = integer(1, 30);
      std::string line =
          llvm::formatv("%c = arith.constant dense<7> : tensor<{0}x{1}>\n  %y "
                        "= {2} %x0, %c : tensor<{0}x{1}>",
                        extent, type, op);
      expectSame(program(line, {type}, type, extent), {{77, -100, 100}, {77}},
                 {77}, 77 / extent + 1);
    }
    for (llvm::StringRef op : {"arith.shli", "arith.shrsi", "arith.shrui"})
      check(op, {type, type}, type, tile, 0, 7);
    if (type != "index")
      check("math.absi", {type}, type, tile, -100, 100);
  }
  for (llvm::StringRef op : {"arith.andi", "arith.ori", "arith.xori"})
    check(op, {"i1", "i1"}, "i1", "tensor<$xi1>");
}

TEST_P(CpuElementwise, Comparisons) {
  for (llvm::StringRef predicate :
       {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"})
    for (llvm::StringRef type : {"i8", "i32", "i64", "index"})
      check(("arith.cmpi " + predicate + ",").str(), {type, type}, "i1",
            ("tensor<$x" + type + ">").str(), -3, 3);
  for (llvm::StringRef predicate :
       {"oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge",
        "ult", "ule", "une", "uno"})
    for (llvm::StringRef type : {"f32", "f64"})
      check(("arith.cmpf " + predicate + ",").str(), {type, type}, "i1",
            ("tensor<$x" + type + ">").str());
  check("arith.select", {"i1", "f32", "f32"}, "f32",
        "tensor<$xi1>, tensor<$xf32>");
  check("arith.select", {"i1", "i8", "i8"}, "i8", "tensor<$xi1>, tensor<$xi8>");
}

TEST_P(CpuElementwise, Conversions) {
  auto convert = [&](llvm::StringRef op, llvm::StringRef from,
                     llvm::StringRef to, double low, double high) {
    check(op, {from}, to,
          ("tensor<$x" + from + "> to tensor<$x" + to + ">").str(), low, high,
          0);
  };
  const llvm::StringRef floats[] = {"f16", "bf16", "f32", "f64"};
  for (auto [i, from] : llvm::enumerate(floats))
    for (auto [j, to] : llvm::enumerate(floats)) {
      if (j > i && j >= 2)
        convert("arith.extf", from, to, -1000, 1000);
      if (j < i && i >= 2) {
        convert("arith.truncf", from, to, -1000, 1000);
        convert("arith.truncf", from, to, -1e-6, 1e-6); // subnormal f16
        convert("arith.truncf", from, to, -1e5, 1e5);   // overflow of f16
      }
    }
  for (llvm::StringRef integer : {"i8", "i16", "i32", "i64"})
    for (llvm::StringRef number : floats) {
      convert("arith.sitofp", integer, number, -100, 100);
      convert("arith.uitofp", integer, number, -100, 100);
      convert("arith.fptosi", number, integer, -100, 100);
      convert("arith.fptoui", number, integer, 0, 200);
    }
  convert("arith.uitofp", "i1", "f32", 0, 1);
  convert("arith.sitofp", "i32", "f32", -2e9, 2e9);
  convert("arith.uitofp", "i64", "f32", -9e18, 9e18);
  const llvm::StringRef integers[] = {"i1", "i8", "i16", "i32", "i64"};
  for (auto [i, from] : llvm::enumerate(integers))
    for (auto [j, to] : llvm::enumerate(integers))
      if (j > i) {
        convert("arith.extsi", from, to, -100, 100);
        convert("arith.extui", from, to, -100, 100);
        convert("arith.trunci", to, from, -1000, 1000);
      }
  convert("arith.index_cast", "index", "i32", -1000, 1000);
  convert("arith.index_cast", "i32", "index", -1000, 1000);
  convert("arith.index_castui", "i32", "index", -1000, 1000);
  convert("arith.bitcast", "f32", "i32", -1000, 1000);
  convert("arith.bitcast", "i16", "bf16", 0, 1000);
}

TEST_P(CpuElementwise, ChainsOfManyTiles) {
  // Gelu on tiles of two axes with broadcast vectors, constants and scalars.
  expectSame(R"(
func.func @kernel(%x: !tile.buffer<f32>, %bias: !tile.buffer<f32>, %y: !tile.buffer<f32>, %m: index) attributes {tile.kernel} {
  %pid = tile.program_id : index
  %half = arith.constant dense<0.5> : tensor<5x37xf32>
  %one = arith.constant dense<1.0> : tensor<5x37xf32>
  %s = arith.constant 0.70710678 : f32
  %scale = tile.splat %s : f32 -> tensor<5x37xf32>
  %a = tile.load %x[%pid, %m] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 5 + d0, d1)>, shape = affine_map<()[s0, s1] -> (s1, 37)>, rank = 2 : i64, checks = array<i64: 0>} : (!tile.buffer<f32>, index, index) -> tensor<5x37xf32>
  %b = tile.load %bias[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (37)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<37xf32>
  %c = tile.broadcast %b {axes = array<i64: 1>} : tensor<37xf32> -> tensor<5x37xf32>
  %d = arith.addf %a, %c : tensor<5x37xf32>
  %e = arith.mulf %d, %scale : tensor<5x37xf32>
  %f = math.erf %e : tensor<5x37xf32>
  %g = arith.addf %f, %one : tensor<5x37xf32>
  %h = arith.mulf %d, %half : tensor<5x37xf32>
  %i = arith.mulf %g, %h : tensor<5x37xf32>
  tile.store %i, %y[%pid, %m] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 5 + d0, d1)>, shape = affine_map<()[s0, s1] -> (s1, 37)>, rank = 2 : i64, checks = array<i64: 0>} : tensor<5x37xf32>, !tile.buffer<f32>, index, index
  return
})",
             {{23 * 37}, {37}, {23 * 37}}, {23}, 5);
}

TEST_P(CpuElementwise, UnknownOperatorIsNamed) {
  std::string message;
  context.getDiagEngine().registerHandler(
      [&](mlir::Diagnostic &d) { message += d.str(); });
  auto module = parseKernels(context, R"(
func.func @strange(%x: !tile.buffer<f32>) attributes {tile.kernel} {
  %a = tile.load %x[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (8)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<8xf32>
  %b = math.cbrt %a : tensor<8xf32>
  tile.store %b, %x[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (8)>, rank = 1 : i64, checks = array<i64>} : tensor<8xf32>, !tile.buffer<f32>
  return
})");
  ASSERT_TRUE(module);
  llvm::SmallVector<mlir::func::FuncOp> kernels(
      module->getOps<mlir::func::FuncOp>());
  EXPECT_TRUE(failed(compileCpuKernels(kernels, GetParam())));
  EXPECT_THAT(message, testing::HasSubstr("no machine code for this operator"));
  EXPECT_THAT(message, testing::HasSubstr("strange"));
}

CHARONIA_CPU_SUITE(CpuElementwise);
} // namespace
