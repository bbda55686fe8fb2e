// A function that is written as text, laid out as a program.
#ifndef CHARONIA_TESTS_CODEGEN_DRIVER_LAIDOUT_H
#define CHARONIA_TESTS_CODEGEN_DRIVER_LAIDOUT_H

#include "codegen/driver/Program.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

namespace charonia::driver {

class LaidOut : public testing::Test {
protected:
  LaidOut() {
    mlir::DialectRegistry registry;
    registry.insert<mlir::func::FuncDialect, graph::GraphDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  void parseFunction(const std::string &text,
                     llvm::ArrayRef<graph::Symbol> symbols = {}) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    graph::setSymbols(*module, symbols);
    function = *module->getOps<mlir::func::FuncOp>().begin();
  }
  void layOut(bool waves = false) {
    kernels.emplace();
    layout = layOutProgram(function, DeviceKind::Cuda, *kernels, waves);
    ASSERT_TRUE(succeeded(mlir::verify(*module)));
    EXPECT_EQ(conflict(), "");
  }
  /// What checkWaves says.
  std::string conflict() {
    std::string text;
    mlir::ScopedDiagnosticHandler handler(
        &context,
        [&](mlir::Diagnostic &diagnostic) { text = diagnostic.str(); });
    EXPECT_EQ(failed(checkWaves(layout.program, *kernels,
                                mlir::UnknownLoc::get(&context))),
              !text.empty());
    return text;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  std::optional<KernelSet> kernels;
  ProgramLayout layout;
};

} // namespace charonia::driver

#endif
