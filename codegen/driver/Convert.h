// From the terms of the IR to those of the engine file.
#ifndef CHARONIA_CODEGEN_DRIVER_CONVERT_H
#define CHARONIA_CODEGEN_DRIVER_CONVERT_H

#include "charonia/signature.h"
#include "graph/ir/Shape.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace charonia::driver {

/// An expression over shape symbols.
ShapeExpr toShapeExpr(mlir::AffineExpr expr);

/// Nothing for types that no engine holds.
std::optional<DType> toDType(mlir::Type element);

/// Bytes of a tensor as an engine stores it.
ShapeExpr sizeInBytes(mlir::Type tensor);

/// The symbols of the module, the arguments and results of `function` by name.
mlir::FailureOr<Signature> makeSignature(mlir::func::FuncOp function);

/// Names of the model's nodes that an operator comes from, in order, each once.
std::vector<std::string> nodeNames(mlir::Location location);

} // namespace charonia::driver

#endif
