// What ONNX's attention and ONNX Runtime's have in common.
#ifndef CHARONIA_FRONTENDS_ONNX_OPS_ATTENTION_H
#define CHARONIA_FRONTENDS_ONNX_OPS_ATTENTION_H

#include "frontends/onnx/Node.h"

namespace charonia::frontend::onnx {

/// [B, S, H * D] as [B, H, S, D].
mlir::Value splitHeads(mlir::Value value, int64_t heads, Emitter &e);
/// [B, H, S, D] as [B, S, H * D].
mlir::Value mergeHeads(mlir::Value value, Emitter &e);

/// Operands of ONNX Runtime's attention beside queries, keys and values; each
/// may be null.
struct AttentionExtras {
  /// Which keys count, i32: [B, T], [B, S, T], lengths [B], or ends and starts
  /// [2 B].
  mlir::Value mask;
  /// Added to scores, [B or 1, H or 1, S, T].
  mlir::Value bias;
};

/// ONNX Runtime's attention over the projected queries, keys and values side by
/// side in the last dimension of `projected`, [B, S, widths...], as the
/// attributes of com.microsoft.Attention say. `past` is [2, B, H, P, D] or
/// null. Yields the result and the new past.
llvm::LogicalResult yieldAttention(Node &n, Emitter &e, mlir::Value projected,
                                   llvm::ArrayRef<int64_t> widths,
                                   const AttentionExtras &extras,
                                   mlir::Value past);

/// What to do about a fused operator that is refused.
inline constexpr const char *fusionRemedy =
    "save the model without this fusion of onnxruntime.transformers, or at "
    "ONNX Runtime's optimization level basic";
/// Fails unless attribute `name` is absent or has this value.
llvm::LogicalResult needs(Node &n, Emitter &e, llvm::StringRef name,
                          int64_t value);

/// `x`, [B, H, S, D], with pairs of its first elements turned: `cosines` and
/// `sines`, [B or 1, 1, S, R / 2], are of the angles. Pairs lie side by side,
/// or half of R apart.
mlir::Value rotate(mlir::Value x, mlir::Value cosines, mlir::Value sines,
                   bool interleaved, Emitter &e);
/// Rows of `cache`, [positions, R / 2], as [B or 1, 1, S, R / 2]: those of
/// `positions`, [B, S], or `positions`, [1], and the ones behind, or without
/// them the first.
mlir::Value anglesOf(mlir::Value cache, mlir::Value positions,
                     mlir::AffineExpr length, Emitter &e);

} // namespace charonia::frontend::onnx

#endif
