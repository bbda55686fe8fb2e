// Kernels whose boxes the copy engine brings, in pieces.
#ifndef CHARONIA_TESTS_CODEGEN_GPU_INTERPRETER_TENSORCOPIES_H
#define CHARONIA_TESTS_CODEGEN_GPU_INTERPRETER_TENSORCOPIES_H

#include "Simt.h"

namespace charonia::interpreter {

/// An mbarrier of one arrival at byte 8192.
inline constexpr llvm::StringLiteral kNames = R"(
%full = llvm.getelementptr %shared[8192] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
%empty = llvm.getelementptr %shared[8200] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
%first = llvm.icmp "eq" %tid, %c0 : i32
%true = llvm.icmp "eq" %c0, %c0 : i32
%ticks = llvm.mlir.constant(10000000 : i32) : i32
%box = llvm.addrspacecast %shared : !llvm.ptr<3> to !llvm.ptr<7>
)",
                                     kInit = R"(
scf.if %first {
  nvvm.mbarrier.init %full, %c1 : !llvm.ptr<3>, i32
  nvvm.mbarrier.init %empty, %c64 : !llvm.ptr<3>, i32
}
)",
                                     kFence = "nvvm.fence.mbarrier.init\n",
                                     kBarrier = "nvvm.barrier0\n";

inline const std::string kReady = (kNames + kInit + kFence + kBarrier).str();

inline std::string expect(int bytes) {
  return "%bytes = llvm.mlir.constant(" + std::to_string(bytes) +
         " : i32) : i32\n"
         "nvvm.mbarrier.arrive.expect_tx %full, %bytes : !llvm.ptr<3>, i32\n";
}

inline std::string copyBox(llvm::ArrayRef<int> coordinates,
                           llvm::ArrayRef<int> offsets = {}) {
  std::string constants;
  auto list = [&](llvm::ArrayRef<int> values, const std::string &name,
                  const std::string &type) {
    std::vector<std::string> names;
    for (auto [i, value] : llvm::enumerate(values)) {
      names.push_back("%" + name + std::to_string(i));
      constants += names.back() + " = llvm.mlir.constant(" +
                   std::to_string(value) + " : " + type + ") : " + type + "\n";
    }
    return "[" + llvm::join(names, ", ") + "]";
  };
  std::string box = "box" + list(coordinates, "at", "i32");
  if (!offsets.empty())
    box += " im2col" + list(offsets, "offset", "i16") +
           " {mode = #nvvm.tma_load_mode<im2col>}";
  return constants +
         "nvvm.cp.async.bulk.tensor.shared.cluster.global %box, %map0, "
         "%full, " +
         box + " : !llvm.ptr<7>, !llvm.ptr\n";
}

inline std::string byFirst(const std::string &body) {
  return "scf.if %first {\n" + body + "}\n";
}

inline std::string waitFor(const std::string &barrier, int parity = 0) {
  return "nvvm.mbarrier.try_wait.parity %" + barrier + ", %c" +
         std::to_string(parity) + ", %ticks : !llvm.ptr<3>, i32, i32\n";
}

inline std::string arriveAt(const std::string &barrier,
                            const std::string &predicate) {
  return "llvm.inline_asm has_side_effects \"@$0 "
         "mbarrier.arrive.shared::cta.b64 _, [$1];\", \"b,r,~{memory}\" %" +
         predicate + ", %" + barrier + " : (i1, !llvm.ptr<3>) -> ()\n";
}

/// 64 threads write what lies in shared memory.
inline std::string writeShared(int words) {
  return "%words = llvm.mlir.constant(" + std::to_string(words) +
         R"( : i32) : i32
scf.for %i = %tid to %words step %c64 : i32 {
  %p = llvm.getelementptr %shared[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  %y = llvm.load %p {alignment = 4 : i64} : !llvm.ptr<3> -> f32
  %q = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  llvm.store %y, %q {alignment = 4 : i64} : f32, !llvm.ptr<1>
}
)";
}

/// Reads one word of the box a thread.
inline constexpr llvm::StringLiteral kRead =
    "%word = llvm.load %own {alignment = 4 : i64} : !llvm.ptr<3> -> f32\n";

/// 10 rows of 40 floats; boxes of 8 by 32.
inline TensorMap matrixMap() {
  TensorMap map;
  map.elementBytes = 4;
  map.extents = {40, 10};
  map.strides = {160};
  map.box = {32, 8};
  map.steps = {1, 1};
  return map;
}
inline constexpr int kBoxBytes = 1024;

/// Of a tensor of 1, 2, 3, ...
inline SimtRun runMap(const TensorMap &map, const std::string &body,
                      size_t inputs, size_t outputs, Launch launch) {
  SimtRun run;
  for (size_t i = 0; i < inputs; ++i)
    run.in.push_back(float(i + 1));
  run.out.resize(outputs, -1);
  run.launch = launch;
  run.launch.maps = {map};
  run.launch.sharedBytes = 16384;
  runSimt(simtKernel(64, body, 1), run);
  EXPECT_EQ(run.error, "");
  return run;
}

inline void expectFound(const std::string &body, FindingKind kind,
                        const std::string &text,
                        const TensorMap &map = matrixMap()) {
  for (const Launch &launch : manyLaunches()) {
    SimtRun run = runMap(map, body, 400, 400, launch);
    EXPECT_THAT(run.kinds(), testing::Contains(kind)) << run.text();
    EXPECT_THAT(run.kinds(), testing::Each(kind)) << run.text();
    EXPECT_THAT(run.text(), testing::HasSubstr(text));
    EXPECT_THAT(run.text(), testing::HasSubstr("at kernel.mlir:"));
  }
}

inline void expectRight(const std::string &body,
                        const TensorMap &map = matrixMap()) {
  for (const Launch &launch : manyLaunches())
    EXPECT_EQ(runMap(map, body, 400, 400, launch).text(), "");
}

} // namespace charonia::interpreter

#endif
