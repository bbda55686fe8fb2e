// What tests of emission begin with: a module with one kernel.
#ifndef CHARONIA_TESTS_CODEGEN_EMIT_EMITCONTEXT_H
#define CHARONIA_TESTS_CODEGEN_EMIT_EMITCONTEXT_H

#include "codegen/emit/Emit.h"
#include "codegen/tile/ir/TileDialect.h"
#include "graph/ir/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

namespace charonia {

struct EmitContext {
  EmitContext() {
    mlir::DialectRegistry registry;
    registry.insert<graph::GraphDialect, mlir::func::FuncDialect>();
    emit::registerEmitRules(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The only kernel of `text`, which becomes the module.
  graph::KernelOp parseKernel(llvm::StringRef text) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text.str();
    graph::KernelOp kernel;
    module->walk([&](graph::KernelOp op) { kernel = op; });
    return kernel;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace charonia

#endif
