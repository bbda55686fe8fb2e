#include "frontends/onnx/Signature.h"
#include "frontends/onnx/Schema.h"
#include <set>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using Dimension = ::onnx::TensorShapeProto::Dimension;

/// More dimensions than any model has.
constexpr int maxInputRank = 16;

namespace {
class SignatureReader {
public:
  SignatureReader(const ImportOptions &options, Symbols &symbols,
                  mlir::MLIRContext *context, std::vector<Problem> &problems)
      : options(options), symbols(symbols), context(context),
        problems(problems) {}

  std::vector<Input> read(const ::onnx::GraphProto &graph);

private:
  /// A dimension of an input: what the model and what the user has.
  struct Dim {
    const Dimension *model;
    const DimOption *option;
    size_t index;
  };
  std::vector<Dim> dimsOf(const ::onnx::ValueInfoProto &input);
  std::string nameOf(const std::string &input, const Dim &dim);
  void declareRanges(const ::onnx::ValueInfoProto &input);
  mlir::RankedTensorType typeOf(const ::onnx::ValueInfoProto &input);
  mlir::AffineExpr sizeOf(const std::string &input, const Dim &dim);
  void fail(const std::string &input, std::string what,
            std::string remedy = "") {
    problems.push_back(
        {"input '" + printable(input) + "': " + what, std::move(remedy)});
  }

  const ImportOptions &options;
  Symbols &symbols;
  mlir::MLIRContext *context;
  std::vector<Problem> &problems;
  /// Names that the user gives to names of the model.
  std::map<std::string, std::string> renamed;
};
} // namespace

static bool isFixed(const Dimension *dim) {
  // Old exporters write -1 where they mean any size.
  return dim && dim->has_dim_value() && dim->dim_value() != -1;
}

std::vector<SignatureReader::Dim>
SignatureReader::dimsOf(const ::onnx::ValueInfoProto &input) {
  std::vector<Dim> dims;
  auto option = options.shapes.find(input.name());
  bool isGiven = option != options.shapes.end();
  const auto &tensor = input.type().tensor_type();
  size_t rank = tensor.has_shape() ? tensor.shape().dim_size()
                : isGiven          ? option->second.size()
                                   : 0;
  for (size_t i = 0; i < rank; ++i)
    dims.push_back(
        {tensor.has_shape() ? &tensor.shape().dim(static_cast<int>(i))
                            : nullptr,
         isGiven && i < option->second.size() ? &option->second[i] : nullptr,
         i});
  return dims;
}

std::string SignatureReader::nameOf(const std::string &input, const Dim &dim) {
  if (dim.option && !dim.option->name.empty())
    return dim.option->name;
  if (dim.model && dim.model->has_dim_param() &&
      !dim.model->dim_param().empty()) {
    auto it = renamed.find(dim.model->dim_param());
    return it == renamed.end() ? dim.model->dim_param() : it->second;
  }
  return input + "_dim" + std::to_string(dim.index);
}

void SignatureReader::declareRanges(const ::onnx::ValueInfoProto &input) {
  for (const Dim &dim : dimsOf(input)) {
    if (!dim.option || isFixed(dim.model) || !dim.option->range)
      continue;
    std::string error =
        symbols.declare(nameOf(input.name(), dim), *dim.option->range);
    if (!error.empty())
      fail(input.name(), error, "give equal ranges to equal sizes");
  }
}

mlir::AffineExpr SignatureReader::sizeOf(const std::string &input,
                                         const Dim &dim) {
  auto dimension = "dimension " + std::to_string(dim.index);
  if (isFixed(dim.model)) {
    int64_t size = dim.model->dim_value();
    const DimOption *option = dim.option;
    if (size < 0 || size > maxDimension)
      fail(input, dimension + " is declared as " + std::to_string(size),
           "export the model again");
    else if (option && option->range &&
             (option->range->min != size || option->range->max != size))
      fail(input,
           "the model fixes " + dimension + " to " + std::to_string(size),
           "give --shape that size there, or export the model with a dynamic "
           "dimension");
    else
      return mlir::getAffineConstantExpr(size, context);
    return {};
  }
  std::string error;
  mlir::AffineExpr expr = symbols.get(nameOf(input, dim), std::nullopt,
                                      defaultRange(dim.index == 0), error);
  if (!expr)
    fail(input, error);
  return expr;
}

mlir::RankedTensorType
SignatureReader::typeOf(const ::onnx::ValueInfoProto &input) {
  if (!input.type().has_tensor_type()) {
    fail(input.name(),
         "sequences, maps and optional values are not supported, only "
         "tensors");
    return {};
  }
  const auto &tensor = input.type().tensor_type();
  mlir::Type element = elementType(tensor.elem_type(), context);
  if (!element) {
    fail(input.name(),
         "element type " + dataTypeName(tensor.elem_type()) +
             " is not supported",
         elementTypeRemedy);
    return {};
  }
  auto option = options.shapes.find(input.name());
  bool isGiven = option != options.shapes.end();
  if (!tensor.has_shape() && !isGiven) {
    fail(input.name(), "the model does not say how many dimensions it has",
         "say it with --shape, for example --shape " + printable(input.name()) +
             "=1..8..64x3x224x224");
    return {};
  }
  auto dims = dimsOf(input);
  if (isGiven && option->second.size() != dims.size()) {
    fail(input.name(),
         "--shape gives " + std::to_string(option->second.size()) +
             " dimensions, the model " + std::to_string(dims.size()));
    return {};
  }
  if (dims.size() > maxInputRank) {
    fail(input.name(), "has " + std::to_string(dims.size()) + " dimensions; " +
                           std::to_string(maxInputRank) + " are supported");
    return {};
  }
  Exprs shape;
  for (const Dim &dim : dims)
    if (auto size = sizeOf(input.name(), dim))
      shape.push_back(size);
  return shape.size() == dims.size() ? graph::makeType(shape, element)
                                     : mlir::RankedTensorType();
}

std::vector<Input> SignatureReader::read(const ::onnx::GraphProto &graph) {
  std::set<std::string> constants, seen;
  for (const auto &tensor : graph.initializer())
    constants.insert(tensor.name());
  for (const auto &tensor : graph.sparse_initializer())
    constants.insert(tensor.values().name());
  std::vector<const ::onnx::ValueInfoProto *> inputs;
  std::string names;
  for (const auto &input : graph.input()) {
    if (constants.count(input.name()))
      continue;
    if (input.name().empty() || !seen.insert(input.name()).second) {
      problems.push_back(
          {input.name().empty()
               ? "an input has no name"
               : "input '" + printable(input.name()) + "' is defined twice",
           "export the model again"});
      continue;
    }
    inputs.push_back(&input);
    names += (names.empty() ? "" : ", ") + printable(input.name());
  }
  for (auto &[name, shape] : options.shapes)
    if (!seen.count(name))
      problems.push_back(
          {"--shape names '" + printable(name) + "', which is no input",
           "the inputs are: " + names});
  // First all names and ranges, so that it does not matter which input has
  // them.
  for (const auto *input : inputs)
    for (const Dim &dim : dimsOf(*input))
      if (dim.option && !dim.option->name.empty() && dim.model &&
          dim.model->has_dim_param() && !dim.model->dim_param().empty()) {
        auto [it, isNew] =
            renamed.try_emplace(dim.model->dim_param(), dim.option->name);
        if (!isNew && it->second != dim.option->name)
          fail(input->name(),
               "--shape names size '" + printable(dim.model->dim_param()) +
                   "' both " + it->second + " and " + dim.option->name);
      }
  for (const auto *input : inputs)
    declareRanges(*input);
  std::vector<Input> result;
  for (const auto *input : inputs)
    if (auto type = typeOf(*input))
      result.push_back({input->name(), type});
  return result;
}

std::vector<Input> charonia::frontend::onnx::readInputs(
    const ::onnx::GraphProto &graph, const ImportOptions &options,
    Symbols &symbols, mlir::MLIRContext *context,
    std::vector<Problem> &problems) {
  return SignatureReader(options, symbols, context, problems).read(graph);
}
