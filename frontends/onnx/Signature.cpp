#include "frontends/onnx/Signature.h"
#include "frontends/onnx/Schema.h"
#include "frontends/onnx/Tensors.h"
#include <set>

using namespace charonia::frontend;
using namespace charonia::frontend::onnx;

static ModelDim dimOf(const ::onnx::TensorShapeProto::Dimension &dim) {
  ModelDim result;
  // Old exporters write -1 where they mean any size.
  if (dim.has_dim_value() && dim.dim_value() != -1)
    result.size = dim.dim_value();
  if (dim.has_dim_param())
    result.name = dim.dim_param();
  return result;
}

static ModelInput inputOf(const ::onnx::ValueInfoProto &info,
                          mlir::MLIRContext *context) {
  ModelInput input;
  input.name = info.name();
  if (!info.type().has_tensor_type()) {
    input.problem = {"sequences, maps and optional values are not supported, "
                     "only tensors",
                     ""};
    return input;
  }
  const auto &tensor = info.type().tensor_type();
  input.element = elementType(tensor.elem_type(), context);
  if (!input.element)
    input.problem = {"element type " + dataTypeName(tensor.elem_type()) +
                         " is not supported",
                     elementTypeRemedy};
  if (tensor.has_shape()) {
    input.dims.emplace();
    for (const auto &dim : tensor.shape().dim())
      input.dims->push_back(dimOf(dim));
  }
  return input;
}

std::vector<ModelInput>
charonia::frontend::onnx::inputsOf(const ::onnx::GraphProto &graph,
                                   mlir::MLIRContext *context) {
  std::set<std::string> constants;
  for (const auto &tensor : graph.initializer())
    constants.insert(tensor.name());
  for (const auto &tensor : graph.sparse_initializer())
    constants.insert(tensor.values().name());
  std::vector<ModelInput> inputs;
  for (const auto &info : graph.input())
    if (!constants.count(info.name()))
      inputs.push_back(inputOf(info, context));
  return inputs;
}
