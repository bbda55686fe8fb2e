// What loops and scans share.
#ifndef CHARONIA_FRONTENDS_ONNX_LOOPS_H
#define CHARONIA_FRONTENDS_ONNX_LOOPS_H

#include "frontends/onnx/GraphImporter.h"

namespace charonia::frontend::onnx {

/// The graph of a node's attribute `body`; null where there is none.
::onnx::GraphProto *bodyOf(::onnx::NodeProto &node);
/// Elements of steps as one tensor with a new dimension.
mlir::Value stackSteps(llvm::ArrayRef<mlir::Value> steps, int64_t axis,
                       bool reverse, Emitter &e);

} // namespace charonia::frontend::onnx

#endif
