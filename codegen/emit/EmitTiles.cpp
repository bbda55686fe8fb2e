#include "codegen/emit/EmitTiles.h"
#include "codegen/emit/Emit.h"
#include "codegen/tile/ir/TileDialect.h"
#include "graph/ir/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace charonia;

namespace {
struct EmitTiles : PassWrapper<EmitTiles, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmitTiles)

  EmitTiles() = default;
  EmitTiles(const EmitTiles &other) : PassWrapper(other) {
    target = other.target;
  }

  StringRef getArgument() const override { return "emit-tiles"; }
  StringRef getDescription() const override {
    return "Writes the tile program of every graph.kernel";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<graph::GraphDialect, tile::TileDialect, arith::ArithDialect,
                    math::MathDialect, scf::SCFDialect, func::FuncDialect>();
    emit::registerEmitRules(registry);
  }

  void runOnOperation() override {
    emit::EmitTarget to;
    if (target == "x86-64-v3")
      to = emit::EmitTarget::x86v3();
    else if (target == "x86-64-v4")
      to = emit::EmitTarget::x86v4();
    else if (target == "gpu")
      to = emit::EmitTarget::gpu();
    else if (GpuTarget::get(target))
      to = emit::EmitTarget::gpu(target);
    else {
      getOperation().emitError("unknown target '" + target +
                               "'; there are x86-64-v3, x86-64-v4, gpu and "
                               "the chips as sm_90");
      return signalPassFailure();
    }
    OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
    SmallVector<graph::KernelOp> kernels;
    getOperation().walk(
        [&](graph::KernelOp kernel) { kernels.push_back(kernel); });
    for (graph::KernelOp kernel : kernels)
      if (failed(emit::emitKernel(kernel, to, builder)))
        signalPassFailure();
  }

  Option<std::string> target{
      *this, "target", llvm::cl::desc("x86-64-v3, x86-64-v4, gpu or sm_80 ..."),
      llvm::cl::init("x86-64-v4")};
};
} // namespace

void emit::registerEmitTilesPass() { PassRegistration<EmitTiles>(); }
