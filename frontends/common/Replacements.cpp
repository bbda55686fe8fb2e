#include "frontends/common/Replacements.h"

using namespace charonia;
using namespace charonia::frontend;
using llvm::StringRef;

/// Names in a list for people.
constexpr size_t maxShown = 32;

/// Whether a tensor is of the kind that is trained: no axis, size or position.
static bool isParameter(mlir::RankedTensorType type) {
  constexpr unsigned maxQuantizedBits = 16;
  mlir::Type element = type.getElementType();
  bool isNumber = llvm::isa<mlir::FloatType>(element) ||
                  (element.isInteger() && !element.isInteger(1) &&
                   element.getIntOrFloatBitWidth() <= maxQuantizedBits);
  return isNumber && type.getRank();
}

std::optional<TensorData> Replacements::find(StringRef name,
                                             mlir::RankedTensorType type) {
  const SafeTensors::Tensor *tensor = tensors.find(name);
  if (!tensor) {
    if (isParameter(type))
      kept.insert(name.str());
    return std::nullopt;
  }
  mlir::Type element = elementType(*tensor, type.getContext());
  if (element == type.getElementType() &&
      type.getShape() == llvm::ArrayRef<int64_t>(tensor->shape))
    return normalizeBools({type, tensor->data.bytes, tensor->data.owner});
  std::string text = tensor->dtype + " [";
  for (auto [i, size] : llvm::enumerate(tensor->shape))
    text += (i ? ", " : "") + std::to_string(size);
  mismatches[name.str()] = "'" + printable(name.str()) + "' is " + text +
                           "], in the model " + graph::typeToString(type, {});
  return std::nullopt;
}

/// One a line, the first of many.
static std::string listOf(const std::vector<std::string> &lines) {
  std::string text;
  for (size_t i = 0; i < lines.size() && i < maxShown; ++i)
    text += "\n  " + lines[i];
  if (lines.size() > maxShown)
    text += "\n  and " + std::to_string(lines.size() - maxShown) + " more";
  return text;
}

void Replacements::finish(ImportResult &result) const {
  bool hasErrors = !result.module;
  std::vector<std::string> lines;
  for (const auto &mismatch : mismatches)
    lines.push_back(mismatch.second);
  // Where the model itself is refused, not all of it was looked at.
  for (const std::string &name : tensors.names())
    if (!hasErrors && !known.contains(name))
      lines.push_back("'" + printable(name) + "' is no weight of the model");
  Diagnostic diagnostic;
  diagnostic.file = file;
  if (!lines.empty()) {
    result.module = {};
    diagnostic.what = std::to_string(lines.size()) +
                      " of its tensors do not fit the model:" + listOf(lines);
    diagnostic.remedy = "give the weights of the same model in the same "
                        "types, under the model file's names";
    result.diagnostics.push_back(std::move(diagnostic));
    return;
  }
  if (hasErrors || kept.empty())
    return;
  for (const std::string &name : kept)
    lines.push_back("'" + printable(name) + "'");
  diagnostic.severity = Diagnostic::Severity::Note;
  diagnostic.what = "has no tensors for " + std::to_string(kept.size()) +
                    " weights, which keep the model's values:" + listOf(lines);
  result.diagnostics.push_back(std::move(diagnostic));
}
