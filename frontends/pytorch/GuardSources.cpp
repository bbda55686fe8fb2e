#include "frontends/pytorch/GuardSources.h"
#include "frontends/common/Diagnostic.h"
#include "llvm/ADT/StringExtras.h"

using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::ArrayRef;
using llvm::StringRef;

SourceReader::SourceReader(const Program &program) : program(program) {
  for (auto [i, spec] : llvm::enumerate(program.inputs))
    if (spec.kind == InputSpec::Kind::User ||
        spec.kind == InputSpec::Kind::Fixed)
      inputs.push_back(i);
}

std::string SourceReader::nameOf(size_t input) const {
  const InputSpec &spec = program.inputs[input];
  return spec.kind == InputSpec::Kind::Fixed ? spec.name
                                             : program.graph.inputs[input].text;
}

/// Whether torch may have named an input after these keys: it joins them in
/// lower case, and numbers names that are taken.
bool SourceReader::mayBeNamed(size_t input, ArrayRef<std::string> path) const {
  std::string joined, name = nameOf(input);
  for (const std::string &key : path) {
    joined += joined.empty() ? "" : "_";
    for (char c : key)
      joined += llvm::isAlnum(c) ? llvm::toLower(c) : '_';
  }
  StringRef rest = name;
  // Python's names of arguments have upper case letters.
  return !joined.empty() && rest.consume_front_insensitive(joined) &&
         (rest.empty() || (rest.consume_front("_") && !rest.empty() &&
                           llvm::all_of(rest, llvm::isDigit)));
}

/// An empty key is one that the file does not say.
static bool matches(const InputPath &known, ArrayRef<std::string> path) {
  return known.size() == path.size() &&
         llvm::all_of(llvm::zip(known, path), [](const auto &keys) {
           const auto &[a, b] = keys;
           return a.empty() || a == b;
         });
}

/// The inputs that lie behind these keys. More than one where the file leaves
/// keys open.
std::vector<size_t> SourceReader::candidates(ArrayRef<std::string> path) const {
  // No other argument has the name of one that is passed by position.
  bool isPositional =
      llvm::any_of(program.inputPaths, [&](const InputPaths &paths) {
        return paths.isPositional && !path.empty() &&
               paths.direct.front() == path.front();
      });
  std::vector<size_t> direct, gathered;
  for (auto [input, paths] : llvm::zip_equal(inputs, program.inputPaths)) {
    bool isDirect = matches(paths.direct, path),
         isGathered = paths.gathered && matches(*paths.gathered, path);
    if (isPositional ? paths.isPositional && isDirect : isDirect)
      direct.push_back(input);
    else if (!isPositional && isGathered)
      gathered.push_back(input);
  }
  // What is in a container of an argument's name is not gathered by another.
  if (path.size() < 2 || direct.empty())
    llvm::append_range(direct, gathered);
  return direct;
}

/// The input that a source is about.
std::optional<size_t> SourceReader::find(ArrayRef<std::string> path) {
  bool isKnown = program.inputPaths.size() == inputs.size();
  std::vector<size_t> found = isKnown ? candidates(path) : inputs;
  size_t position;
  if (path.size() == 2 && path[0] == "flat_args" &&
      !StringRef(path[1]).getAsInteger(10, position) &&
      (!isKnown || found.empty()))
    return position < inputs.size() ? std::optional(inputs[position])
                                    : std::nullopt;
  if (found.size() == 1 && isKnown)
    return found.front();
  // What goes by "**kwargs" lacks its name.
  llvm::erase_if(found, [&](size_t input) {
    return !mayBeNamed(input, path) &&
           (path.empty() || !mayBeNamed(input, path.drop_front()));
  });
  if (found.size() == 1)
    return found.front();
  if (found.size() > 1)
    ambiguous = "'" + printable(nameOf(found[0])) + "' or '" +
                printable(nameOf(found[1])) + "'";
  return std::nullopt;
}

ExpressionPtr SourceReader::read(const GuardSource &source) {
  // Inputs of engines are no views, and lie in row-major order.
  bool isOfBase =
      !source.path.empty() &&
      llvm::is_contained(ArrayRef(source.path).drop_front(), "_base");
  namesMemory |= isOfBase || source.property == "stride" ||
                 source.property == "storage_offset";
  if (namesMemory)
    return {};
  auto position = find(source.path);
  if (!position)
    return {};
  const Argument &input = program.graph.inputs[*position];
  if (source.property.empty())
    return input.kind == Argument::Kind::Integer ||
                   input.kind == Argument::Kind::Bool
               ? makeInteger(input.integer)
               : ExpressionPtr();
  auto meta = input.kind == Argument::Kind::Tensor
                  ? program.graph.tensors.find(input.text)
                  : program.graph.tensors.end();
  if (meta == program.graph.tensors.end())
    return {};
  const auto &sizes = meta->second.sizes;
  bool exists = source.index && *source.index >= 0 &&
                *source.index < int64_t(sizes.size());
  return exists ? sizes[*source.index] : ExpressionPtr();
}
