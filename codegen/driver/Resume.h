// Stages of a module that was dumped: what it has gone through, and how it goes
// on.
//
// A dumped module carries `graph.stage`, the stage it has passed, and in a
// program's stages `graph.device` and `graph.precision`. From "prepare" on, the
// function @prepare lies in a nested module, out of the reach of the stages
// that follow.
#ifndef CHARONIA_CODEGEN_DRIVER_RESUME_H
#define CHARONIA_CODEGEN_DRIVER_RESUME_H

#include "codegen/driver/Pipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace charonia::driver {

/// Notes in the module that it has passed `stage`; `program` is null in stages
/// that all programs share.
void markStage(mlir::ModuleOp module, llvm::StringRef stage,
               const PipelineOptions *program);

/// The stage that the module has passed; empty for one that comes from an
/// importer.
llvm::StringRef passedStage(mlir::ModuleOp module);

/// Whether a program for this device and precision can go on from the module;
/// an error that says what it was dumped for otherwise.
mlir::LogicalResult checkProgram(mlir::ModuleOp module,
                                 const PipelineOptions &program);

/// Moves @prepare, if the module has it, to a nested module.
void setPrepareAside(mlir::ModuleOp module);
/// The @prepare that was set aside; null if there is none.
mlir::func::FuncOp findPrepare(mlir::ModuleOp module);

} // namespace charonia::driver

#endif
