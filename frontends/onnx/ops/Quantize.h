// Linear quantization: pieces that ONNX's operators and ONNX Runtime's share.
#ifndef CHARONIA_FRONTENDS_ONNX_OPS_QUANTIZE_H
#define CHARONIA_FRONTENDS_ONNX_OPS_QUANTIZE_H

#include "frontends/onnx/Node.h"

namespace charonia::frontend::onnx {

/// `x`, a float, rounded to the nearest integer (even where two are), with the
/// zero point added, cut to the range of `element`, or of `bits` of it.
mlir::Value saturate(Emitter &e, mlir::Value x, mlir::Value zero,
                     mlir::Type element, unsigned bits = 0);

/// A parameter with an element for each block of `block` elements of `x` along
/// `axis`, repeated for each of them.
mlir::Value inBlocks(Emitter &e, mlir::Value parameter, mlir::Value x,
                     int64_t axis, int64_t block);

/// A parameter of one operand: a scalar, or an element along dimension `axis`
/// of `rank`.
mlir::Value alongAxis(Emitter &e, mlir::Value parameter, int64_t rank,
                      int64_t axis);

/// Integers that stand for their distances from a zero point: none where it is
/// null, one for all, or one along dimension `axis`.
struct Shifted {
  mlir::Value value, zero;
  int64_t axis = 0;
};

/// The distances: of bytes in 16 bits, whose products sum to 32; else in 32.
mlir::Value distances(Emitter &e, const Shifted &x);

/// Operands of a convolution of distances, whose padding has the distance 0:
/// bytes as they are where that gives the same sums, in 32 bits.
std::pair<mlir::Value, mlir::Value>
convOperands(Emitter &e, const Shifted &input, const Shifted &filter);

/// NumPy's matmul of distances, in 32 bits.
mlir::Value shiftedProduct(Emitter &e, const Shifted &a, const Shifted &b);

/// A tensor of floats as bytes by its own range, which 0 belongs to.
struct DynamicBytes {
  mlir::Value integers, scale, point;
};
/// DynamicQuantizeLinear. Of zeros alone the scale is 1, as ONNX Runtime has
/// it, so that what divides by it stays a number.
DynamicBytes quantizeDynamically(Emitter &e, mlir::Value x);

} // namespace charonia::frontend::onnx

#endif
