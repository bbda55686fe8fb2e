// Inputs and outputs of an exported program.
#include "frontends/pytorch/ProgramImporter.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using Kind = Argument::Kind;
using llvm::StringRef;

bool ProgramImporter::checkSignature() {
  if (program.inputs.size() != graph.inputs.size()) {
    builder.fail("the signature has " + std::to_string(program.inputs.size()) +
                     " inputs, the graph " +
                     std::to_string(graph.inputs.size()),
                 "the file is damaged: export the program again");
    return false;
  }
  for (auto [spec, argument] : llvm::zip_equal(program.inputs, graph.inputs)) {
    if (spec.kind == InputSpec::Kind::Fixed)
      continue;
    std::string name = argument.text;
    if (spec.kind == InputSpec::Kind::Object)
      builder.fail("input '" + printable(spec.target) +
                       "' is an object of a class of its own, which is not "
                       "supported",
                   "export the model with plain tensors");
    else if (argument.kind != Kind::Tensor)
      builder.fail("input '" + printable(name) +
                       "' is a number that may change, only tensors are "
                       "supported",
                   "fix it when exporting, or give it as a tensor");
    else if (find(name))
      builder.fail("tensor '" + printable(name) + "' is defined twice",
                   "export the program again");
    else {
      addEntry(name);
      if (spec.kind != InputSpec::Kind::User)
        stored[name] = &spec;
    }
  }
  return !builder.hasErrors();
}

/// An engine keeps nothing between runs. What a program changes of itself may
/// not be what its results follow from; of inputs the results see the change.
void ProgramImporter::checkMutations() {
  llvm::StringMap<StringRef> read;
  for (auto [spec, argument] : llvm::zip_equal(program.inputs, graph.inputs))
    if (wanted.contains(argument.text))
      read[spec.kind == InputSpec::Kind::User ? argument.text : spec.target] =
          argument.text;
  for (const OutputSpec &spec : program.outputs) {
    auto it = read.find(spec.target);
    if (spec.kind != OutputSpec::Kind::Mutation || it == read.end() ||
        it->second == spec.value.text)
      continue;
    if (stored.count(it->second))
      builder.fail("the program changes '" + printable(spec.target) +
                       "' of the model, which its results follow from and an "
                       "engine keeps as it is",
                   "make it an input of the exported function, and its new "
                   "value an output");
    else
      noteWritten(spec.target);
  }
}
void ProgramImporter::noteWritten(const std::string &input) {
  if (written.insert(input).second)
    builder.add(Diagnostic::Severity::Note,
                "the program changes its input '" + printable(input) +
                    "': its results see that, the caller's tensor stays as it "
                    "is");
}

ModelDim ProgramImporter::dimOf(const ExpressionPtr &size,
                                const std::string &name) {
  ModelDim dim;
  if (auto fixed = integerOf(size)) {
    dim.size = fixed;
    return dim;
  }
  dim.name = name;
  if (size->head != "Symbol")
    return dim;
  auto [named, isFirst] = dimNames.try_emplace(size->name, name);
  dim.name = named->second;
  auto it = program.ranges.find(size->name);
  if (it == program.ranges.end())
    return dim;
  // Sizes of 0 are not optimized for. A least size of 2 with no largest one, or
  // one that a guard says, is how sizes look that nobody gave a range: 0 and 1
  // are not traced.
  const SymbolRange &bounds = it->second;
  int64_t low = std::max<int64_t>(bounds.min.value_or(1), 1);
  bool isDeclared =
      bounds.max && !(low == 2 && isLimited(size->name, *bounds.max));
  dim.allowsOne = low == 2;
  if (low == 2 && !isDeclared) {
    low = 1;
    if (bounds.max && isFirst)
      builder.add(Diagnostic::Severity::Note,
                  "size 1 of '" + printable(dim.name) +
                      "' was not traced, as the file says 2.." +
                      std::to_string(*bounds.max) +
                      "; the engine takes 1 and more");
  }
  if (low > maxDimension || (bounds.max && *bounds.max < low)) {
    builder.fail(
        "size " + printable(size->name) + " of '" + printable(name) +
            "' is said to be at least " + std::to_string(low) +
            (bounds.max ? " and at most " + std::to_string(*bounds.max) : "") +
            ": there is none from 1 to " + std::to_string(maxDimension),
        "export the program again with another range");
    return dim;
  }
  // By the name that all have who are this size: equal sizes have equal ranges.
  if (bounds.min == 0)
    builder.add(Diagnostic::Severity::Note, "size '" + printable(dim.name) +
                                                "' may be 0 in the file; the "
                                                "engine takes 1 and more");
  DimRange range = defaultRange(StringRef(dim.name).ends_with("_dim0"));
  range.max =
      std::min(bounds.max.value_or(std::max(range.max, low)), maxDimension);
  range.min = low;
  range.opt = std::clamp(range.opt, range.min, range.max);
  (isDeclared ? dim.range : dim.assumed) = range;
  return dim;
}

std::vector<ModelInput>
ProgramImporter::userInputs(std::vector<unsigned> &positions) {
  std::vector<ModelInput> inputs;
  for (auto [i, argument] : llvm::enumerate(graph.inputs)) {
    if (program.inputs[i].kind != InputSpec::Kind::User)
      continue;
    ModelInput input;
    input.name = argument.text;
    positions.push_back(i);
    const TensorMeta *meta = metaOf(argument.text);
    if (!meta) {
      input.problem = {"the file does not say what it is",
                       "export the program again"};
    } else {
      input.element = elementType(meta->dtype, builder.getContext());
      if (!input.element)
        input.problem = {"element type " + dtypeName(meta->dtype) +
                             " is not supported",
                         "float32, float64, float16, bfloat16, float8 (e4m3fn, "
                         "e5m2 and fnuz kinds), bool and integers of 8 to 64 "
                         "bits are"};
      input.dims.emplace();
      for (auto [d, size] : llvm::enumerate(meta->sizes))
        input.dims->push_back(
            dimOf(size, input.name + "_dim" + std::to_string(d)));
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

namespace {
/// slope * symbol + offset, with a slope of at least 1.
struct Linear {
  std::string symbol;
  int64_t slope, offset;
};
} // namespace

/// `size` as a line over its only symbol.
static std::optional<Linear> linearOf(const ExpressionPtr &size,
                                      Symbols &symbols,
                                      mlir::MLIRContext *context) {
  llvm::StringSet<> names;
  collectSymbols(size, names);
  if (names.size() != 1)
    return std::nullopt;
  StringRef only = names.begin()->first();
  int64_t values[3];
  for (int64_t at : {0, 1, 2}) {
    Sizes trial(symbols, context);
    trial.bind(only, mlir::getAffineConstantExpr(at, context));
    mlir::AffineExpr value = trial.convert(size);
    auto known = value ? graph::constantOf(value) : std::nullopt;
    if (!known || *known < -maxDimension || *known > maxDimension)
      return std::nullopt;
    values[at] = *known;
  }
  int64_t slope = values[1] - values[0];
  if (slope <= 0 || values[2] - values[1] != slope)
    return std::nullopt;
  return Linear{only.str(), slope, values[0]};
}

void ProgramImporter::failSize(const std::string &input,
                               const std::string &given,
                               const std::string &exported,
                               const std::string &why) {
  builder.fail("input '" + printable(input) + "': size " + given + " is not " +
                   exported + ", as which the program was exported" +
                   (why.empty() ? "" : ": " + why),
               "give sizes that fit each other, or leave this one out: it "
               "follows from the others");
}

/// A size that --shape fixes and that the file has as an expression of another,
/// as h + 1, fixes the other too: its declared range would refuse the equation.
void ProgramImporter::fixSymbols(llvm::MutableArrayRef<ModelInput> inputs,
                                 llvm::ArrayRef<unsigned> positions) {
  auto sizesOf = [&](size_t i) -> llvm::ArrayRef<ExpressionPtr> {
    const TensorMeta *meta = metaOf(graph.inputs[positions[i]].text);
    return meta ? llvm::ArrayRef<ExpressionPtr>(meta->sizes)
                : llvm::ArrayRef<ExpressionPtr>();
  };
  llvm::StringMap<int64_t> fixed;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    auto given = options.shapes.find(input.name);
    if (given == options.shapes.end() ||
        given->second.size() != sizesOf(i).size())
      continue;
    for (auto [size, option] : llvm::zip_equal(sizesOf(i), given->second)) {
      if (size->head == "Symbol" || !option.range ||
          option.range->min != option.range->max)
        continue;
      auto linear = linearOf(size, builder.getSymbols(), builder.getContext());
      if (!linear)
        continue;
      auto &[only, slope, offset] = *linear;
      int64_t given = option.range->min - offset;
      if (given % slope == 0)
        fixed.try_emplace(only, given / slope);
      else
        failSize(input.name, std::to_string(option.range->min),
                 dimNames.lookup(only) + "*" + std::to_string(slope) +
                     (offset < 0   ? " - " + std::to_string(-offset)
                      : offset > 0 ? " + " + std::to_string(offset)
                                   : ""),
                 "");
    }
  }
  for (auto [i, input] : llvm::enumerate(inputs))
    for (auto [d, size] : llvm::enumerate(sizesOf(i))) {
      auto it = size->head == "Symbol" ? fixed.find(size->name) : fixed.end();
      if (it == fixed.end())
        continue;
      ModelDim &dim = (*input.dims)[d];
      const auto &range = dim.range ? dim.range : dim.assumed;
      auto given = options.shapes.find(input.name);
      bool isGiven = given != options.shapes.end() &&
                     d < given->second.size() && given->second[d].range;
      if (!isGiven && it->second >= 1 &&
          (!range || (it->second >= range->min && it->second <= range->max)))
        dim = {it->second, "", std::nullopt, std::nullopt, false};
    }
}

/// Binds the symbols of the file to sizes of inputs. A dimension that is an
/// expression of others has to have its value; where it is all that is known of
/// a symbol, it gives the symbol.
void ProgramImporter::bindSymbols(llvm::ArrayRef<Input> inputs,
                                  llvm::ArrayRef<unsigned> positions) {
  auto forEachDim = [&](auto visit) {
    for (auto [input, position] : llvm::zip_equal(inputs, positions)) {
      const TensorMeta &meta = *metaOf(graph.inputs[position].text);
      auto &b = emitter.getBuilder();
      emitter.begin(
          mlir::NameLoc::get(b.getStringAttr(input.name),
                             mlir::NameLoc::get(b.getStringAttr("input"))));
      for (auto [size, expr] :
           llvm::zip_equal(meta.sizes, graph::getShape(input.type)))
        visit(input, size, builder.getSymbols().resolve(expr));
    }
  };
  forEachDim(
      [&](const Input &, const ExpressionPtr &size, mlir::AffineExpr expr) {
        if (size->head == "Symbol" && !sizes.isBound(size->name))
          sizes.bind(size->name, expr);
      });
  forEachDim([&](const Input &input, const ExpressionPtr &size,
                 mlir::AffineExpr expr) {
    if (size->head == "Symbol" || integerOf(size))
      return;
    auto linear = linearOf(size, builder.getSymbols(), builder.getContext());
    if (linear && !sizes.isBound(linear->symbol))
      sizes.bind(
          linear->symbol,
          graph::simplify((expr - linear->offset).floorDiv(linear->slope)));
    mlir::AffineExpr value = sizes.convert(size);
    if (!value)
      builder.fail("input '" + printable(input.name) + "': size " +
                       size->toString() + " is not supported",
                   "export the model with sizes of inputs that are fixed or "
                   "dynamic on their own");
    else if (!emitter.agree(expr, value, "is exported"))
      failSize(input.name, builder.getSymbols().toString(expr),
               builder.getSymbols().toString(value),
               builder.getSymbols().refusal());
  });
}

void ProgramImporter::importInputs() {
  std::vector<unsigned> positions;
  std::vector<Problem> problems;
  readGuards();
  std::vector<ModelInput> declared = userInputs(positions);
  fixSymbols(declared, positions);
  auto inputs = readInputs(declared, options, builder.getSymbols(),
                           builder.getContext(), problems);
  for (Problem &problem : problems)
    builder.fail(std::move(problem.what), std::move(problem.remedy));
  builder.checkCounts(inputs.size(), program.outputs.size());
  if (builder.hasErrors())
    return;
  mlir::ValueRange arguments = builder.begin(inputs);
  bindSymbols(inputs, positions);
  assumeGuards();
  if (!builder.hasErrors())
    assumeAssertions();
  for (auto [position, value] : llvm::zip_equal(positions, arguments))
    find(graph.inputs[position].text)->value = value;
}

std::vector<Output> ProgramImporter::readOutputs() {
  std::vector<Output> outputs;
  size_t count = llvm::count_if(program.outputs, [](const OutputSpec &spec) {
    return spec.kind == OutputSpec::Kind::User;
  });
  bool isNamed = program.outputNames.size() == count;
  // Where several leaves have one name, the first has it.
  llvm::StringSet<> names;
  std::vector<std::string> given(count);
  for (size_t i = 0; isNamed && i < count; ++i)
    if (const std::string &name = program.outputNames[i];
        !name.empty() && names.insert(name).second)
      given[i] = name;
    else if (!name.empty())
      builder.add(Diagnostic::Severity::Note,
                  "several outputs are named '" + printable(name) +
                      "': the others are named by their positions");
  size_t position = 0;
  for (const OutputSpec &spec : program.outputs) {
    if (spec.kind != OutputSpec::Kind::User)
      continue;
    std::string name = given[position];
    // Keys may look like the names of what has none.
    for (size_t i = position; name.empty(); ++i)
      if (std::string free = "output_" + std::to_string(i);
          names.insert(free).second)
        name = free;
    ++position;
    auto &b = emitter.getBuilder();
    emitter.begin(mlir::NameLoc::get(
        b.getStringAttr(name), mlir::NameLoc::get(b.getStringAttr("output"))));
    mlir::Value value;
    if (spec.value.kind == Kind::Tensor) {
      Entry *entry = find(spec.value.text);
      if (entry && entry->isTainted)
        continue;
      value = valueOf(spec.value.text, false);
      if (entry && entry->imaginary)
        value = emitter.fail("is complex, which is not supported",
                             "return view_as_real() of it");
    } else if (spec.value.kind == Kind::SymInt) {
      value = emitter.size(sizeOf(spec.value.text), b.getI64Type());
      if (!value)
        emitter.fail("is the size '" + printable(spec.value.text) +
                     "', which depends on data");
    } else {
      continue; // known when it was exported
    }
    if (value)
      outputs.push_back({name, value});
    else if (auto &problem = emitter.getProblem())
      builder.fail("output '" + printable(name) + "': " + problem->what,
                   problem->remedy);
  }
  if (outputs.empty() && !builder.hasErrors())
    builder.fail("the program has no outputs that are tensors",
                 "export a function that gives tensors");
  return outputs;
}
