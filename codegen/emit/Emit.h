// From a fused region to a tile program.
#ifndef CHARONIA_CODEGEN_EMIT_EMIT_H
#define CHARONIA_CODEGEN_EMIT_EMIT_H

#include "codegen/target/GpuTarget.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace charonia::graph {
class KernelOp;
}

namespace charonia::emit {

struct Schedule;

/// What emission and the choice of tile sizes need to know of a target.
struct EmitTarget {
  enum class Kind { Cpu, Gpu };
  Kind kind = Kind::Cpu;
  /// CPU: f32 elements of a vector register (8: AVX2, 16: AVX-512).
  int64_t vectorElements = 16;
  /// CPU: vector registers.
  int64_t vectorRegisters = 32;
  /// CPU: columns of a packed panel of weights (graph pass pack-weights).
  int64_t panelColumns = 32;
  /// CPU: what may be expected to stay in a core's own cache.
  int64_t cacheBytes = 1 << 20;
  /// CPU: what a kernel may touch and still find in the caches of the chip when
  /// it, or the next one, comes back to it.
  int64_t sharedCacheBytes = 24 << 20;
  /// GPU: the chip.
  const GpuTarget *chip = nullptr;
  /// Products of f32 may run in tf32.
  bool tf32 = false;

  static EmitTarget x86v3();
  static EmitTarget x86v4();
  /// `chip`: one that GpuTarget knows.
  static EmitTarget gpu(llvm::StringRef chip = "sm_90");
};

/// Attaches the emission rules to the operators of the graph dialect. Once a
/// context, after the graph dialect is loaded.
void registerEmitRules(mlir::DialectRegistry &registry);

/// Writes the tile program of `kernel` as a function at `builder`'s insertion
/// point. Arguments: a buffer for each operand of the kernel and then for each
/// result, an index for each shape symbol of the module. Sets tile.kernel,
/// tile.grid and the other attributes of TileDialect.h. The schedule is the
/// kernel's own if it has one, else the cost model's. Fails with a diagnostic
/// at the operator's location.
mlir::FailureOr<mlir::func::FuncOp> emitKernel(graph::KernelOp kernel,
                                               const EmitTarget &target,
                                               mlir::OpBuilder &builder);
/// The same with a schedule.
mlir::FailureOr<mlir::func::FuncOp> emitKernel(graph::KernelOp kernel,
                                               Schedule schedule,
                                               const EmitTarget &target,
                                               mlir::OpBuilder &builder);

} // namespace charonia::emit

#endif
