#include "codegen/gpu/Passes.h"
#include "codegen/gpu/AssignLayouts.h"
#include "codegen/gpu/Pipeline.h"
#include "codegen/gpu/SharedMemory.h"
#include "codegen/gpu/ir/SimtDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

namespace {

int64_t attribute(func::FuncOp kernel, StringRef name, int64_t otherwise) {
  auto value = kernel->getAttrOfType<IntegerAttr>(name);
  return value ? value.getInt() : otherwise;
}

template <typename Pass>
struct KernelPass : PassWrapper<Pass, OperationPass<func::FuncOp>> {
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<simt::SimtDialect, arith::ArithDialect, scf::SCFDialect>();
  }
  void runOnOperation() override {
    func::FuncOp kernel = this->getOperation();
    if (kernel->hasAttr(tile::kKernelAttr) &&
        failed(static_cast<Pass *>(this)->runOn(kernel)))
      this->signalPassFailure();
  }
};

struct AssignLayoutsPass : KernelPass<AssignLayoutsPass> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AssignLayoutsPass)
  StringRef getArgument() const final { return "gpu-assign-layouts"; }
  StringRef getDescription() const final {
    return "Tiles get layouts over threads";
  }
  AssignLayoutsPass() = default;
  AssignLayoutsPass(const AssignLayoutsPass &other) : KernelPass(other) {}
  LogicalResult runOn(func::FuncOp kernel) {
    const GpuTarget *target = GpuTarget::get(chip);
    if (!target)
      return kernel.emitError() << "unknown chip '" << chip << "'";
    return assignLayouts(kernel, attribute(kernel, tile::kWarpsAttr, 4),
                         *target);
  }
  Option<std::string> chip{*this, "chip", llvm::cl::desc("Chip, as sm_80"),
                           llvm::cl::init("sm_80")};
};

struct PipelinePass : KernelPass<PipelinePass> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PipelinePass)
  PipelinePass() = default;
  PipelinePass(const PipelinePass &other) : KernelPass(other) {}
  StringRef getArgument() const final { return "gpu-pipeline"; }
  StringRef getDescription() const final {
    return "Operands of dots come to shared memory ahead of time";
  }
  LogicalResult runOn(func::FuncOp kernel) {
    PipelineOptions options;
    options.stages = attribute(kernel, tile::kStagesAttr, 3);
    options.sharedBytes = sharedBytes;
    options.warps = attribute(kernel, tile::kWarpsAttr, 4);
    pipelineSharedOperands(kernel, options);
    return success();
  }
  Option<int64_t> sharedBytes{
      *this, "shared-bytes",
      llvm::cl::desc("Shared memory of a program instance"),
      llvm::cl::init(100 * 1024)};
};

struct SharedMemoryPass : KernelPass<SharedMemoryPass> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SharedMemoryPass)
  StringRef getArgument() const final { return "gpu-shared-memory"; }
  StringRef getDescription() const final {
    return "Offsets in shared memory, and barriers";
  }
  LogicalResult runOn(func::FuncOp kernel) {
    int64_t bytes = allocateShared(kernel);
    insertBarriers(kernel);
    kernel->setAttr("gpu.shared_bytes",
                    Builder(kernel.getContext()).getI64IntegerAttr(bytes));
    return success();
  }
};

} // namespace

void charonia::gpu::registerGpuPasses() {
  PassRegistration<AssignLayoutsPass>();
  PassRegistration<PipelinePass>();
  PassRegistration<SharedMemoryPass>();
}
