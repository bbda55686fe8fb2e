// charonia-opt: runs passes on a textual module, for tests and for the curious.
#include "codegen/cpu/CpuCodegen.h"
#include "codegen/emit/EmitTiles.h"
#include "codegen/gpu/Passes.h"
#include "codegen/gpu/ir/SimtDialect.h"
#include "codegen/tile/ir/TileDialect.h"
#include "graph/ir/Dialect.h"
#include "graph/passes/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<charonia::graph::GraphDialect, charonia::tile::TileDialect,
                  charonia::simt::SimtDialect, mlir::func::FuncDialect,
                  mlir::arith::ArithDialect, mlir::math::MathDialect,
                  mlir::scf::SCFDialect>();
  mlir::registerTransformsPasses();
  charonia::graph::registerGraphPasses();
  charonia::emit::registerEmitTilesPass();
  charonia::cpu::registerCpuPasses();
  charonia::gpu::registerGpuPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Runs passes on Charonia's intermediate representations\n",
      registry));
}
