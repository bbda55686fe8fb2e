// Element types and tensors of ONNX as MLIR types, constants and weights.
#ifndef CHARONIA_FRONTENDS_ONNX_TENSORS_H
#define CHARONIA_FRONTENDS_ONNX_TENSORS_H

#include "frontends/common/Tensors.h"
#include "frontends/onnx/ModelFile.h"

namespace charonia::frontend::onnx {

/// Null for types that are not supported: strings, complex numbers, 8-bit and
/// smaller floats, integers under 8 bits.
mlir::Type elementType(int dataType, mlir::MLIRContext *context);
/// `dataType`, if elements have less than 8 bits and are held in 8: 4-bit and
/// 2-bit integers of constants; else 0.
int narrowType(int dataType);
/// Bits of the elements of a narrowType.
int narrowBits(int dataType);
/// elementType, or that of 8 bits which holds elements of a narrowType.
mlir::Type heldType(int dataType, mlir::MLIRContext *context);
/// The remedy for an element type that is not supported.
extern const char *const elementTypeRemedy;
/// TensorProto data type of an element type.
int dataTypeOf(mlir::Type element);
/// A tensor type as ONNX has it; dimensions that are more than a symbol are
/// open.
::onnx::TypeProto typeProto(mlir::Type type,
                            llvm::ArrayRef<graph::Symbol> symbols);

/// The type of a tensor that is stored so; null where that is not supported.
mlir::RankedTensorType storedType(int dataType, llvm::ArrayRef<int64_t> dims,
                                  mlir::MLIRContext *context);
/// The contents of `tensor`; elements of a narrowType are unpacked. Where
/// `mayTake`, they are moved out of it rather than copied. Everything about the
/// tensor is checked.
std::optional<TensorData> readTensor(::onnx::TensorProto &tensor, bool mayTake,
                                     ExternalFiles &files,
                                     mlir::MLIRContext *context,
                                     Problem &problem);
/// The dense form of a sparse tensor.
std::optional<TensorData> readSparse(::onnx::SparseTensorProto &tensor,
                                     ExternalFiles &files,
                                     mlir::MLIRContext *context,
                                     Problem &problem);

} // namespace charonia::frontend::onnx

#endif
