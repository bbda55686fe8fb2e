// The inputs of an ONNX graph.
#ifndef CHARONIA_FRONTENDS_ONNX_SIGNATURE_H
#define CHARONIA_FRONTENDS_ONNX_SIGNATURE_H

#include "frontends/common/Inputs.h"
#include "onnx/onnx_pb.h"

namespace charonia::frontend::onnx {

/// The inputs of `graph` that are no initializers.
std::vector<ModelInput> inputsOf(const ::onnx::GraphProto &graph,
                                 mlir::MLIRContext *context);

} // namespace charonia::frontend::onnx

#endif
