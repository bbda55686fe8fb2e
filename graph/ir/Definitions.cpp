#include "graph/ir/Definitions.h"
#include "mlir/IR/Builders.h"
#include <cmath>

using namespace mlir;
using namespace charonia::graph;

using StepOp = SizeStep::Op;

// The attribute: [{symbol, program = [affine_map<()[s..] -> (n)>, 0.5 : f64,
// "float_mul", ...]}].

static constexpr StringLiteral attributeName = "graph.definitions";

namespace {
struct Form {
  StringLiteral name;
  unsigned operands;
  bool takesFloats, givesFloat;
};
} // namespace

static constexpr Form forms[] = {
    {"size", 0, false, false},    {"number", 0, false, true},
    {"sub", 2, false, false},     {"trunc_div", 2, false, false},
    {"mod", 2, false, false},     {"max", 2, false, false},
    {"min", 2, false, false},     {"to_float", 1, false, true},
    {"to_single", 1, true, true}, {"truncate", 1, true, false},
    {"float_add", 2, true, true}, {"float_sub", 2, true, true},
    {"float_mul", 2, true, true}, {"float_div", 2, true, true},
    {"float_max", 2, true, true}, {"float_min", 2, true, true},
    {"floor", 1, true, true},     {"ceil", 1, true, true},
    {"round", 1, true, true},     {"sqrt", 1, true, true},
};
static const Form &formOf(StepOp op) { return forms[static_cast<int>(op)]; }

/// The operator that a step of the attribute is; none where it is no step.
static std::optional<SizeStep> toStep(Attribute attribute) {
  if (auto size = dyn_cast<AffineMapAttr>(attribute)) {
    AffineMap map = size.getValue();
    if (map.getNumDims() == 0 && map.getNumResults() == 1)
      return SizeStep{StepOp::Size, map.getResult(0), 0};
  }
  if (auto number = dyn_cast<FloatAttr>(attribute);
      number && number.getType().isF64())
    return SizeStep{StepOp::Number, {}, number.getValueAsDouble()};
  if (auto name = dyn_cast<StringAttr>(attribute))
    for (auto [i, form] : llvm::enumerate(forms))
      if (form.operands && form.name == name.getValue())
        return SizeStep{static_cast<StepOp>(i), {}, 0};
  return std::nullopt;
}

SmallVector<Definition> charonia::graph::getDefinitions(ModuleOp module) {
  SmallVector<Definition> list;
  auto array = module->getAttrOfType<ArrayAttr>(attributeName);
  if (!array)
    return list;
  for (auto fields : array.getAsRange<DictionaryAttr>()) {
    Definition d;
    d.symbol = fields.getAs<IntegerAttr>("symbol").getInt();
    for (Attribute step : fields.getAs<ArrayAttr>("program"))
      d.program.push_back(*toStep(step));
    list.push_back(std::move(d));
  }
  return list;
}

void charonia::graph::setDefinitions(ModuleOp module,
                                     ArrayRef<Definition> list) {
  if (list.empty()) {
    module->removeAttr(attributeName);
    return;
  }
  Builder b(module.getContext());
  SmallVector<Attribute> entries;
  for (const Definition &d : list) {
    SmallVector<Attribute> steps;
    for (const SizeStep &step : d.program)
      steps.push_back(step.op == StepOp::Size
                          ? Attribute(AffineMapAttr::get(
                                AffineMap::get(0, d.symbol, step.size)))
                      : step.op == StepOp::Number
                          ? Attribute(b.getF64FloatAttr(step.number))
                          : b.getStringAttr(formOf(step.op).name));
    entries.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("program", b.getArrayAttr(steps)),
         b.getNamedAttr("symbol", b.getI64IntegerAttr(d.symbol))}));
  }
  module->setAttr(attributeName, b.getArrayAttr(entries));
}

/// Whether the steps take what others leave, and leave one integer.
static bool isWellFormed(ArrayRef<SizeStep> program) {
  SmallVector<bool> isFloat;
  for (const SizeStep &step : program) {
    const Form &form = formOf(step.op);
    for (unsigned i = 0; i < form.operands; ++i)
      if (isFloat.empty() || isFloat.pop_back_val() != form.takesFloats)
        return false;
    isFloat.push_back(form.givesFloat);
  }
  return isFloat.size() == 1 && !isFloat.front();
}

LogicalResult charonia::graph::verifyDefinitions(Operation *op,
                                                 Attribute attribute) {
  auto array = dyn_cast<ArrayAttr>(attribute);
  auto module = dyn_cast<ModuleOp>(op);
  if (!array || !module)
    return op->emitError(attributeName)
           << " must be an array attribute of a module";
  int64_t symbols = getSymbols(module).size();
  for (auto [i, entry] : llvm::enumerate(array)) {
    auto error = [&, i = i] {
      return op->emitError(attributeName) << "[" << i << "] ";
    };
    auto fields = dyn_cast<DictionaryAttr>(entry);
    auto symbol = fields ? fields.getAs<IntegerAttr>("symbol") : IntegerAttr();
    auto steps = fields ? fields.getAs<ArrayAttr>("program") : ArrayAttr();
    if (!symbol || !steps)
      return error() << "must be a dictionary with a symbol and a program";
    if (symbol.getInt() < 0 || symbol.getInt() >= symbols)
      return error() << "defines a symbol that the module does not have";
    SizeProgram program;
    for (Attribute attribute : steps) {
      auto step = toStep(attribute);
      if (!step)
        return error() << "has a step that is none: " << attribute;
      if (step->op == StepOp::Size &&
          cast<AffineMapAttr>(attribute).getValue().getNumSymbols() >
              symbol.getInt())
        return error() << "names a symbol that is not in front of its own";
      program.push_back(*step);
    }
    if (!isWellFormed(program))
      return error() << "has a program that does not give one integer";
  }
  return success();
}

/// Integers beyond are not held exactly.
constexpr double limit = 0x1p52;

/// The result of an operator, also on integers; none where there is none.
static std::optional<double> apply(StepOp op, double a, double b) {
  switch (op) {
  case StepOp::Sub:
  case StepOp::FloatSub:
    return a - b;
  case StepOp::TruncDiv:
    return b == 0 ? std::nullopt : std::optional(std::trunc(a / b));
  case StepOp::Mod:
    return b < 1 ? std::nullopt : std::optional(a - b * std::floor(a / b));
  case StepOp::Max:
  case StepOp::FloatMax:
    return std::max(a, b);
  case StepOp::Min:
  case StepOp::FloatMin:
    return std::min(a, b);
  case StepOp::ToFloat:
    return a;
  case StepOp::ToSingle:
    return static_cast<double>(static_cast<float>(a));
  case StepOp::Truncate:
    return std::trunc(a);
  case StepOp::FloatAdd:
    return a + b;
  case StepOp::FloatMul:
    return a * b;
  case StepOp::FloatDiv:
    return a / b;
  case StepOp::Floor:
    return std::floor(a);
  case StepOp::Ceil:
    return std::ceil(a);
  case StepOp::Round:
    return std::nearbyint(a);
  case StepOp::Sqrt:
    return std::sqrt(a);
  case StepOp::Size:
  case StepOp::Number:
    break;
  }
  return std::nullopt;
}

/// Each operator rises or falls in each operand, also when rounding, so the
/// ends of ranges give the ends of the result; a remainder does not, and no
/// divisor's range may hold 0.
static std::optional<NumberRange> applyRange(StepOp op, NumberRange a,
                                             NumberRange b) {
  bool divides = op == StepOp::TruncDiv || op == StepOp::FloatDiv;
  if (divides && b.low <= 0 && b.high >= 0)
    return std::nullopt;
  if (op == StepOp::Mod) {
    if (b.low < 1)
      return std::nullopt;
    // No more than the dividend, where that is not negative.
    return NumberRange{0,
                       a.low < 0 ? b.high - 1 : std::min(a.high, b.high - 1)};
  }
  std::optional<NumberRange> result;
  for (double x : {a.low, a.high})
    for (double y : {b.low, b.high}) {
      auto value = apply(op, x, y);
      if (!value || !(std::abs(*value) <= limit))
        return std::nullopt;
      result = result ? NumberRange{std::min(result->low, *value),
                                    std::max(result->high, *value)}
                      : NumberRange{*value, *value};
    }
  return result;
}

std::optional<NumberRange>
charonia::graph::rangeOf(ArrayRef<SizeStep> program,
                         llvm::function_ref<Interval(AffineExpr)> bounds) {
  SmallVector<NumberRange> stack;
  for (const SizeStep &step : program) {
    NumberRange result{step.number, step.number};
    if (step.op == StepOp::Size) {
      Interval range = bounds(step.size);
      result = {static_cast<double>(range.low),
                static_cast<double>(range.high)};
    } else if (step.op != StepOp::Number) {
      NumberRange b = stack.back();
      if (formOf(step.op).operands == 2)
        stack.pop_back();
      auto applied = applyRange(step.op, stack.pop_back_val(), b);
      if (!applied)
        return std::nullopt;
      result = *applied;
    }
    if (!(std::abs(result.low) <= limit && std::abs(result.high) <= limit))
      return std::nullopt;
    stack.push_back(result);
  }
  return stack.back();
}

std::optional<int64_t> charonia::graph::evaluate(ArrayRef<SizeStep> program,
                                                 ArrayRef<int64_t> symbols) {
  bool known = true;
  SmallVector<double> stack;
  for (const SizeStep &step : program) {
    std::optional<double> result = step.number;
    if (step.op == StepOp::Size) {
      auto value = evaluate(step.size, symbols);
      result = value ? std::optional<double>(*value) : std::nullopt;
    } else if (step.op != StepOp::Number) {
      double b = stack.back();
      if (formOf(step.op).operands == 2)
        stack.pop_back();
      result = apply(step.op, stack.pop_back_val(), b);
    }
    known &= result && std::abs(*result) <= limit;
    stack.push_back(result.value_or(0));
  }
  return known ? std::optional(static_cast<int64_t>(stack.back()))
               : std::nullopt;
}
