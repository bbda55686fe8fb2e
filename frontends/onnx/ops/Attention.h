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

} // namespace charonia::frontend::onnx

#endif
