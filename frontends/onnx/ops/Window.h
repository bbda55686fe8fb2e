// Windows of convolution and pooling: kernel, strides, dilations, padding.
#ifndef CHARONIA_FRONTENDS_ONNX_OPS_WINDOW_H
#define CHARONIA_FRONTENDS_ONNX_OPS_WINDOW_H

#include "frontends/common/builders/Window.h"
#include "frontends/onnx/Node.h"

namespace charonia::frontend::onnx {

/// Reads the window of `n` over `input`, which has the shape of its first
/// operand, or over that, [N, C, S...]. `kernel` is
/// the kernel's shape where the attribute may be absent. `fill` is what
/// explicit padding of symbolic sizes holds.
llvm::FailureOr<Window>
readWindow(Node &n, Emitter &e,
           std::optional<llvm::SmallVector<int64_t>> kernel, double fill,
           mlir::Value input = {});

/// Attribute `name` with `count` entries, each at least `low`.
llvm::FailureOr<llvm::SmallVector<int64_t>>
readWindowList(Node &n, Emitter &e, llvm::StringRef name, size_t count,
               int64_t low, int64_t otherwise);

} // namespace charonia::frontend::onnx

#endif
