// The inputs of a model: what the file says and what the user says.
#ifndef CHARONIA_FRONTENDS_ONNX_SIGNATURE_H
#define CHARONIA_FRONTENDS_ONNX_SIGNATURE_H

#include "frontends/Importer.h"
#include "frontends/common/Symbols.h"
#include "frontends/onnx/Tensors.h"

namespace charonia::frontend::onnx {

struct Input {
  std::string name;
  mlir::RankedTensorType type;
};

/// The inputs of `graph` that are no initializers, with their symbolic shapes.
/// Everything wrong with them, or with the options, is added to `problems`.
std::vector<Input> readInputs(const ::onnx::GraphProto &graph,
                              const ImportOptions &options, Symbols &symbols,
                              mlir::MLIRContext *context,
                              std::vector<Problem> &problems);

} // namespace charonia::frontend::onnx

#endif
