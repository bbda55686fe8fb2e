// Kernels written as text, run by the interpreter.
#ifndef CHARONIA_TESTS_CODEGEN_GPU_INTERPRETER_SIMT_H
#define CHARONIA_TESTS_CODEGEN_GPU_INTERPRETER_SIMT_H

#include "codegen/gpu/interpreter/Interpreter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include <gmock/gmock.h>

namespace charonia::interpreter {

/// Memory of the two buffers that these kernels have, and how they are run.
struct SimtRun {
  std::vector<float> in, out;
  uint64_t inPhase = 0;
  bool inIsConstant = false, inIsWeight = false;
  Launch launch;
  Report report;
  std::string error; ///< Of decoding.

  std::vector<FindingKind> kinds() const {
    std::vector<FindingKind> result;
    for (const Finding &finding : report.findings)
      result.push_back(finding.kind);
    return result;
  }
  std::string text() const {
    std::string result;
    for (const Finding &f : report.findings)
      result += findingName(f.kind).str() + ": " + f.operation + " [" +
                f.other + "] " + f.details + "\n";
    return result;
  }
  const BankStatistic *banks(llvm::StringRef operation) const {
    for (const BankStatistic &b : report.banks)
      if (llvm::StringRef(b.operation).starts_with(operation))
        return &b;
    return nullptr;
  }
};

/// A kernel of two buffers, %in and %out, with what most kernels need: %tid,
/// %block, %shared, %own (4 bytes of shared memory for each thread), %zero
/// (0.0), %c0 ... %c3, %c16, %c31 and %c32 (i32). Tensor maps, if it takes any,
/// are %map0, %map1 ...
inline std::string simtKernel(unsigned threads, llvm::StringRef body,
                              size_t maps = 0) {
  std::string constants, mapArguments;
  for (size_t i = 0; i < maps; ++i)
    mapArguments += ", %map" + std::to_string(i) +
                    ": !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, "
                    "llvm.align = 64 : i64, nvvm.grid_constant}";
  for (int value : {0, 1, 2, 3, 4, 16, 31, 32, 64, 128})
    constants += "%c" + std::to_string(value) + " = llvm.mlir.constant(" +
                 std::to_string(value) + " : i32) : i32\n";
  return R"(
module {
llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
llvm.func @kernel(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>)" +
         mapArguments + R"() attributes {
    nvvm.kernel, nvvm.reqntid = array<i32: )" +
         std::to_string(threads) + ">} {\n" + constants + R"(
%all = llvm.mlir.constant(-1 : i32) : i32
%zero = llvm.mlir.constant(0.0 : f32) : f32
%tid = nvvm.read.ptx.sreg.tid.x : i32
%block = nvvm.read.ptx.sreg.ctaid.x : i32
%shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
%own = llvm.getelementptr %shared[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
%from = llvm.getelementptr %in[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
%to = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
)" + body.str() +
         "\nllvm.return\n}\n}\n";
}

inline void runSimt(llvm::StringRef source, SimtRun &run) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::arith::ArithDialect, mlir::math::MathDialect,
                      mlir::scf::SCFDialect, mlir::LLVM::LLVMDialect,
                      mlir::NVVM::NVVMDialect>();
  mlir::ScopedDiagnosticHandler errors(&context, [&](mlir::Diagnostic &d) {
    run.error += d.str() + "\n";
    return mlir::success();
  });
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(source, &context, "kernel.mlir");
  if (!module)
    return;
  auto function = *module->getOps<mlir::LLVM::LLVMFuncOp>().begin();
  mlir::FailureOr<Kernel> kernel = Kernel::decode(function);
  if (failed(kernel))
    return;
  run.launch.buffers = {{run.in.data(), run.in.size() * 4, run.inPhase,
                         run.inIsConstant, run.inIsWeight},
                        {run.out.data(), run.out.size() * 4}};
  kernel->launch(run.launch, run.report);
}

/// Numbers 0, 1, ... in, as many out.
inline SimtRun simt(unsigned threads, llvm::StringRef body, Launch launch = {},
                    size_t size = 0) {
  SimtRun run;
  size = size ? size : threads;
  for (size_t i = 0; i < size; ++i)
    run.in.push_back(float(i));
  run.out.resize(size, -1);
  run.launch = launch;
  if (!run.launch.sharedBytes)
    run.launch.sharedBytes = 16384;
  runSimt(simtKernel(threads, body, launch.maps.size()), run);
  EXPECT_EQ(run.error, "");
  return run;
}

/// Every order and every timing of copies that a test should hold in.
inline std::vector<Launch> manyLaunches() {
  std::vector<Launch> launches;
  for (CopyTiming copies :
       {CopyTiming::Late, CopyTiming::Early, CopyTiming::Seeded})
    for (uint64_t seed : {0, 1, 2, 3}) {
      Launch launch;
      launch.seed = seed;
      launch.copies = copies;
      launches.push_back(launch);
    }
  return launches;
}

/// Of 64 threads each gives what the one across has in shared memory.
inline constexpr llvm::StringLiteral readAcross = R"(
%c63 = llvm.mlir.constant(63 : i32) : i32
%other = llvm.sub %c63, %tid : i32
%place = llvm.getelementptr %shared[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
%y = llvm.load %place {alignment = 4 : i64} : !llvm.ptr<3> -> f32
llvm.store %y, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
)";

/// The kinds that every order of the kernel is found to have.
inline void expectAlways(unsigned threads, llvm::StringRef body,
                         FindingKind kind, Launch like = {}, size_t size = 0) {
  for (Launch launch : manyLaunches()) {
    launch.grid = like.grid;
    launch.sharedBytes = like.sharedBytes;
    launch.maps = like.maps;
    SimtRun run = simt(threads, body, launch, size);
    EXPECT_THAT(run.kinds(), testing::Contains(kind)) << run.text();
    EXPECT_THAT(run.kinds(), testing::Each(kind)) << run.text();
  }
}

inline void expectClean(unsigned threads, llvm::StringRef body,
                        Launch like = {}, size_t size = 0) {
  for (Launch launch : manyLaunches()) {
    launch.grid = like.grid;
    launch.sharedBytes = like.sharedBytes;
    launch.maps = like.maps;
    SimtRun run = simt(threads, body, launch, size);
    EXPECT_EQ(run.text(), "");
  }
}

} // namespace charonia::interpreter

#endif
