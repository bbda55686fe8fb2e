// Linear quantization: pieces that ONNX's operators and ONNX Runtime's share.
#ifndef CHARONIA_FRONTENDS_ONNX_OPS_QUANTIZE_H
#define CHARONIA_FRONTENDS_ONNX_OPS_QUANTIZE_H

#include "frontends/onnx/Node.h"

namespace charonia::frontend::onnx {

/// `x`, a float, rounded to the nearest integer (even where two are), with the
/// zero point added, cut to the range of `element`.
mlir::Value saturate(Emitter &e, mlir::Value x, mlir::Value zero,
                     mlir::Type element);

/// A parameter of one operand: a scalar, or an element along dimension `axis`
/// of `rank`.
mlir::Value alongAxis(Emitter &e, mlir::Value parameter, int64_t rank,
                      int64_t axis);

/// Integers that hold the differences of two numbers of the type of `x`: 16
/// bits for bytes, whose products sum to 32; else 32.
mlir::Type differenceType(Emitter &e, mlir::Value x);

/// `x` less its zero point, which may be null, in its differenceType.
mlir::Value shifted(Emitter &e, mlir::Value x, mlir::Value zero, int64_t axis);

} // namespace charonia::frontend::onnx

#endif
