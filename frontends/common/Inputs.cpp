#include "frontends/common/Inputs.h"
#include <set>

using namespace charonia;
using namespace charonia::frontend;

/// More dimensions than any model has.
constexpr int maxInputRank = 16;

namespace {
class InputReader {
public:
  InputReader(const ImportOptions &options, Symbols &symbols,
              mlir::MLIRContext *context, std::vector<Problem> &problems)
      : options(options), symbols(symbols), context(context),
        problems(problems) {}

  std::vector<Input> read(llvm::ArrayRef<ModelInput> inputs);

private:
  /// A dimension of an input: what the model and what the user has.
  struct Dim {
    ModelDim model;
    const DimOption *option;
    size_t index;
  };
  std::vector<Dim> dimsOf(const ModelInput &input);
  std::string nameOf(const std::string &input, const Dim &dim);
  std::vector<const ModelInput *> checkNames(llvm::ArrayRef<ModelInput> inputs);
  void rename(const ModelInput &input);
  void declareRanges(const ModelInput &input, bool ofUser);
  mlir::RankedTensorType typeOf(const ModelInput &input);
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
  /// Names that the user declares ranges of.
  std::set<std::string> declared;
};
} // namespace

std::vector<InputReader::Dim> InputReader::dimsOf(const ModelInput &input) {
  std::vector<Dim> dims;
  auto option = options.shapes.find(input.name);
  bool isGiven = option != options.shapes.end();
  size_t rank = input.dims ? input.dims->size()
                : isGiven  ? option->second.size()
                           : 0;
  for (size_t i = 0; i < rank; ++i)
    dims.push_back(
        {input.dims ? (*input.dims)[i] : ModelDim(),
         isGiven && i < option->second.size() ? &option->second[i] : nullptr,
         i});
  return dims;
}

std::string InputReader::nameOf(const std::string &input, const Dim &dim) {
  if (dim.option && !dim.option->name.empty())
    return dim.option->name;
  if (!dim.model.name.empty()) {
    auto it = renamed.find(dim.model.name);
    return it == renamed.end() ? dim.model.name : it->second;
  }
  return input + "_dim" + std::to_string(dim.index);
}

static std::string rangeText(const DimRange &range) {
  return std::to_string(range.min) + ".." + std::to_string(range.max);
}

/// Ranges of the user, or those of the file where the user gives none.
void InputReader::declareRanges(const ModelInput &input, bool ofUser) {
  for (const Dim &dim : dimsOf(input)) {
    if (dim.model.size)
      continue;
    std::string name = nameOf(input.name, dim);
    const std::optional<DimRange> &model = dim.model.range;
    std::optional<DimRange> range = model;
    if (ofUser) {
      range = dim.option ? dim.option->range : std::nullopt;
      int64_t least = model && !dim.model.allowsOne ? model->min : 1;
      if (range && model && (range->min < least || range->max > model->max))
        fail(input.name,
             "--shape gives dimension " + std::to_string(dim.index) + " " +
                 rangeText(*range) + ", but the model was exported for " +
                 rangeText(*model),
             "stay inside of that range, or export the model for more");
      if (range)
        declared.insert(name);
    } else if (declared.count(name)) {
      continue;
    }
    if (!range)
      continue;
    std::string error = symbols.declare(name, *range);
    if (!error.empty())
      fail(input.name, error, "give equal ranges to equal sizes");
  }
}

mlir::AffineExpr InputReader::sizeOf(const std::string &input, const Dim &dim) {
  auto dimension = "dimension " + std::to_string(dim.index);
  if (dim.model.size) {
    int64_t size = *dim.model.size;
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
  mlir::AffineExpr expr = symbols.get(
      nameOf(input, dim), std::nullopt,
      dim.model.assumed.value_or(defaultRange(dim.index == 0)), error);
  if (!expr)
    fail(input, error);
  return expr;
}

/// "1..8x3": a size for each dimension.
static std::string exampleOf(llvm::ArrayRef<ModelDim> dims) {
  std::string text;
  for (const ModelDim &dim : dims)
    text += (text.empty() ? "" : "x") +
            (dim.size ? std::to_string(*dim.size) : std::string("1..8"));
  return text;
}

mlir::RankedTensorType InputReader::typeOf(const ModelInput &input) {
  if (input.problem) {
    fail(input.name, input.problem->what, input.problem->remedy);
    return {};
  }
  auto option = options.shapes.find(input.name);
  bool isGiven = option != options.shapes.end();
  if (!input.dims && !isGiven) {
    fail(input.name, "the model does not say how many dimensions it has",
         "say it with --shape, for example --shape " + printable(input.name) +
             "=1..8..64x3x224x224");
    return {};
  }
  auto dims = dimsOf(input);
  if (isGiven && option->second.size() != dims.size()) {
    fail(input.name,
         "--shape gives " + std::to_string(option->second.size()) +
             " dimensions, the model " + std::to_string(dims.size()),
         "give one size or range for each, as in --shape " +
             printable(input.name) + "=" + printable(exampleOf(*input.dims)));
    return {};
  }
  if (dims.size() > maxInputRank) {
    fail(input.name, "has " + std::to_string(dims.size()) + " dimensions; " +
                         std::to_string(maxInputRank) + " are supported");
    return {};
  }
  Exprs shape;
  for (const Dim &dim : dims)
    if (auto size = sizeOf(input.name, dim))
      shape.push_back(size);
  return shape.size() == dims.size() ? graph::makeType(shape, input.element)
                                     : mlir::RankedTensorType();
}

std::vector<const ModelInput *>
InputReader::checkNames(llvm::ArrayRef<ModelInput> inputs) {
  std::set<std::string> seen;
  std::vector<const ModelInput *> result;
  std::string names;
  for (const ModelInput &input : inputs) {
    if (input.name.empty() || !seen.insert(input.name).second) {
      problems.push_back(
          {input.name.empty()
               ? "an input has no name"
               : "input '" + printable(input.name) + "' is defined twice",
           "export the model again"});
      continue;
    }
    result.push_back(&input);
    names += (names.empty() ? "" : ", ") + printable(input.name);
  }
  for (auto &[name, shape] : options.shapes)
    if (!seen.count(name))
      problems.push_back(
          {"--shape names '" + printable(name) + "', which is no input",
           "the inputs are: " + names});
  return result;
}

void InputReader::rename(const ModelInput &input) {
  for (const Dim &dim : dimsOf(input))
    if (dim.option && !dim.option->name.empty() && !dim.model.name.empty()) {
      auto [it, isNew] = renamed.try_emplace(dim.model.name, dim.option->name);
      if (!isNew && it->second != dim.option->name)
        fail(input.name, "--shape names size '" + printable(dim.model.name) +
                             "' both " + it->second + " and " +
                             dim.option->name);
    }
}

std::vector<Input> InputReader::read(llvm::ArrayRef<ModelInput> inputs) {
  auto named = checkNames(inputs);
  // First all names and ranges, so that it does not matter which input has
  // them.
  for (const ModelInput *input : named)
    rename(*input);
  for (bool ofUser : {true, false})
    for (const ModelInput *input : named)
      declareRanges(*input, ofUser);
  std::vector<Input> result;
  for (const ModelInput *input : named)
    if (auto type = typeOf(*input))
      result.push_back({input->name, type});
  return result;
}

std::vector<Input>
charonia::frontend::readInputs(llvm::ArrayRef<ModelInput> inputs,
                               const ImportOptions &options, Symbols &symbols,
                               mlir::MLIRContext *context,
                               std::vector<Problem> &problems) {
  return InputReader(options, symbols, context, problems).read(inputs);
}
