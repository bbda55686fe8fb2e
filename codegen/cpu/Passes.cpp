// Passes for charonia-opt.
#include "codegen/cpu/CpuCodegen.h"
#include "codegen/math/ExpandMath.h"
#include "codegen/math/Float8.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace charonia::cpu;

namespace {

struct PrintCpuCode : PassWrapper<PrintCpuCode, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintCpuCode)
  PrintCpuCode() = default;
  PrintCpuCode(const PrintCpuCode &other) : PassWrapper(other) {
    isa = other.isa;
    stage = other.stage;
  }
  StringRef getArgument() const override { return "print-cpu-code"; }
  StringRef getDescription() const override {
    return "Prints the CPU code of tile kernels";
  }

  void runOnOperation() override {
    std::optional<CpuIsa> of = isaOf(isa);
    if (!of) {
      getOperation().emitError("there is no instruction set '") << isa << "'";
      return signalPassFailure();
    }
    CpuStage at = stage == "ir"         ? CpuStage::Ir
                  : stage == "assembly" ? CpuStage::Assembly
                                        : CpuStage::OptimizedIr;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr(charonia::tile::kKernelAttr))
        continue;
      auto text = printCpuKernel(function, *of, at);
      if (failed(text))
        return signalPassFailure();
      llvm::outs() << *text;
    }
  }

  Option<std::string> isa{*this, "isa",
                          llvm::cl::desc("x86-64-v3, x86-64-v4 or "
                                         "x86-64-v4-vnni"),
                          llvm::cl::init("x86-64-v4")};
  Option<std::string> stage{*this, "stage",
                            llvm::cl::desc("ir, optimized-ir or assembly"),
                            llvm::cl::init("optimized-ir")};
};

struct ExpandMath : PassWrapper<ExpandMath, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandMath)
  StringRef getArgument() const override { return "expand-math"; }
  StringRef getDescription() const override {
    return "Rewrites elementary functions and conversions of 8-bit floats to "
           "arithmetic";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, math::MathDialect>();
  }
  void runOnOperation() override {
    charonia::expandMath(getOperation());
    charonia::expandFloat8(getOperation());
  }
};

} // namespace

void charonia::cpu::registerCpuPasses() {
  PassRegistration<PrintCpuCode>();
  PassRegistration<ExpandMath>();
}
