#include "frontends/common/SizeEvaluator.h"
#include "graph/ir/Dialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using graph::SizeProgram;
using graph::SizeStep;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Operation;
using mlir::Value;
using StepOp = SizeStep::Op;

/// Tensors that hold sizes are short.
constexpr int64_t maxElements = 64;
/// Steps of a program; a shape takes few.
constexpr size_t maxSteps = 256;

/// Of float and double alone it is known how operators round.
static bool isPlainFloat(mlir::Type type) {
  return type.isF32() || type.isF64();
}

static SizeElement ofSize(AffineExpr size) {
  SizeElement element;
  element.size = size;
  return element;
}

static SizeElement ofNumber(double value) {
  SizeElement element;
  element.program.push_back({StepOp::Number, {}, value});
  return element;
}

const SizeElements *SizeEvaluator::evaluate(Value value) {
  // Post order over an explicit stack: a model may chain any number of nodes.
  SmallVector<Value> stack{value};
  while (!stack.empty()) {
    Value v = stack.back();
    if (memo.contains(v)) {
      stack.pop_back();
      continue;
    }
    auto type = llvm::dyn_cast<mlir::RankedTensorType>(v.getType());
    if (!type || !type.hasStaticShape() ||
        type.getNumElements() > maxElements) {
      memo[v] = {};
      continue;
    }
    SizeElements elements = leaf(v);
    Operation *op = v.getDefiningOp();
    if (elements.empty() &&
        llvm::isa_and_present<graph::GraphOpInterface>(op)) {
      bool ready = true;
      for (Value operand : op->getOperands())
        if (!memo.contains(operand)) {
          stack.push_back(operand);
          ready = false;
        }
      if (!ready)
        continue;
      elements = compute(v);
      if (static_cast<int64_t>(elements.size()) != type.getNumElements())
        elements.clear();
    }
    memo[v] = std::move(elements);
  }
  SizeElements &found = memo[value];
  for (SizeElement &element : found)
    element.size = symbols.resolve(element.size);
  return found.empty() ? nullptr : &found;
}

/// What is known without this; empty where anything is open.
SizeElements SizeEvaluator::leaf(Value value) {
  SizeElements elements;
  mlir::Type type = mlir::getElementTypeOrSelf(value.getType());
  if (type.isIntOrIndex()) {
    graph::SymbolicTensor contents = known(value);
    if (contents.isComplete())
      for (AffineExpr size : *contents.elements)
        elements.push_back(ofSize(size));
    return elements;
  }
  auto constant = constantOf(value);
  if (constant && isPlainFloat(type))
    for (mlir::FloatAttr number : constant.getValues<mlir::FloatAttr>())
      elements.push_back(ofNumber(number.getValueAsDouble()));
  return elements;
}

/// By result element, the element of an operand that broadcasts to it.
static int64_t broadcastIndex(int64_t linear, llvm::ArrayRef<int64_t> result,
                              llvm::ArrayRef<int64_t> operand) {
  int64_t index = 0, stride = 1;
  for (size_t i = 0; i < operand.size(); ++i) {
    int64_t extent = result[result.size() - 1 - i];
    int64_t own = operand[operand.size() - 1 - i];
    index += (own == 1 ? 0 : linear % extent) * stride;
    linear /= extent;
    stride *= own;
  }
  return index;
}

SizeElements SizeEvaluator::compute(Value value) {
  Operation *op = value.getDefiningOp();
  auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
  if (llvm::cast<graph::GraphOpInterface>(op).getRole() !=
      graph::OpRole::Pointwise)
    return moved(op);
  SizeElements elements;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    SmallVector<SizeElement> x;
    for (Value operand : op->getOperands()) {
      const SizeElements &all = memo[operand];
      auto shape = llvm::cast<mlir::RankedTensorType>(operand.getType());
      x.push_back(
          all.empty()
              ? SizeElement()
              : all[broadcastIndex(i, type.getShape(), shape.getShape())]);
    }
    elements.push_back(arithmetic(op, x));
  }
  return elements;
}

/// What moves elements, or combines integers, goes by the operator's own rule:
/// stand-ins take the elements' places.
SizeElements SizeEvaluator::moved(Operation *op) {
  constexpr unsigned firstStandIn = 1u << 24;
  mlir::MLIRContext *context = op->getContext();
  SmallVector<SizeElement> all;
  SmallVector<graph::SymbolicTensor> operands;
  for (Value operand : op->getOperands()) {
    graph::SymbolicTensor tensor;
    bool isInteger =
        mlir::getElementTypeOrSelf(operand.getType()).isIntOrIndex();
    if (isInteger)
      tensor = known(operand);
    if (!tensor.isComplete()) {
      tensor.elements.reset();
      for (const SizeElement &element : memo[operand]) {
        if (!tensor.elements)
          tensor.elements.emplace();
        tensor.elements->push_back(
            element.isKnown()
                ? mlir::getAffineSymbolExpr(firstStandIn + all.size(), context)
                : AffineExpr());
        all.push_back(element);
      }
    }
    operands.push_back(std::move(tensor));
  }
  SizeElements elements;
  graph::SymbolicTensor result =
      llvm::cast<graph::GraphOpInterface>(op).evaluateSymbolic(operands);
  for (AffineExpr expr :
       result ? *result.elements : SmallVector<AffineExpr>()) {
    auto standIn = llvm::dyn_cast_if_present<mlir::AffineSymbolExpr>(expr);
    if (standIn && standIn.getPosition() >= firstStandIn) {
      elements.push_back(all[standIn.getPosition() - firstStandIn]);
      continue;
    }
    llvm::DenseMap<AffineExpr, AffineExpr> sizes;
    bool isSize = static_cast<bool>(expr);
    if (expr)
      expr.walk([&](AffineExpr e) {
        auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(e);
        if (!symbol || symbol.getPosition() < firstStandIn)
          return;
        AffineExpr size = all[symbol.getPosition() - firstStandIn].size;
        isSize &= static_cast<bool>(size);
        sizes[e] = size;
      });
    elements.push_back(isSize ? ofSize(graph::simplify(expr.replace(sizes)))
                              : SizeElement());
  }
  return elements;
}

SizeElement SizeEvaluator::arithmetic(Operation *op,
                                      llvm::ArrayRef<SizeElement> x) {
  mlir::Type type = mlir::getElementTypeOrSelf(op->getResult(0).getType());
  mlir::Type from = mlir::getElementTypeOrSelf(op->getOperand(0).getType());
  if (auto select = llvm::dyn_cast<graph::SelectOp>(op)) {
    auto condition = x[0].size ? graph::constantOf(x[0].size) : std::nullopt;
    return condition ? x[*condition ? 1 : 2] : SizeElement();
  }
  for (const SizeElement &element : x)
    if (!element.isKnown())
      return {};
  if (llvm::isa<graph::CastOp>(op))
    return castTo(from, type, x[0]);
  if (type.isIntOrIndex() && from.isIntOrIndex())
    return integers(op, x);
  return isPlainFloat(type) && from == type ? floats(op, x) : SizeElement();
}

// Integers.

AffineExpr SizeEvaluator::define(AffineExpr a, AffineExpr b, StepOp op) {
  return symbols.define(
      {{StepOp::Size, a, 0}, {StepOp::Size, b, 0}, {op, {}, 0}});
}

AffineExpr SizeEvaluator::larger(AffineExpr a, AffineExpr b, bool largest) {
  if (symbols.isAtLeast(a, b))
    return largest ? a : b;
  if (symbols.isAtLeast(b, a))
    return largest ? b : a;
  AffineExpr result = define(a, b, largest ? StepOp::Max : StepOp::Min);
  for (AffineExpr other : {a, b})
    symbols.learnAtLeast(largest ? result : other, largest ? other : result);
  return result;
}

SizeElement SizeEvaluator::integers(Operation *op,
                                    llvm::ArrayRef<SizeElement> x) {
  auto size = [&](unsigned i) { return symbols.resolve(x[i].size); };
  AffineExpr a = size(0), b = x.size() > 1 ? size(1) : AffineExpr();
  mlir::MLIRContext *context = op->getContext();
  AffineExpr zero = mlir::getAffineConstantExpr(0, context),
             one = mlir::getAffineConstantExpr(1, context);
  if (llvm::isa<graph::MaxOp, graph::MinOp>(op))
    return ofSize(larger(a, b, llvm::isa<graph::MaxOp>(op)));
  if (llvm::isa<graph::AbsOp>(op))
    return ofSize(larger(a, graph::simplify(-a), true));
  if (llvm::isa<graph::DivOp>(op))
    return ofSize(symbols.isAtLeast(b, one) && symbols.isAtLeast(a, zero) &&
                          graph::constantOf(b)
                      ? graph::simplify(a.floorDiv(b))
                      : define(a, b, StepOp::TruncDiv));
  if (llvm::isa<graph::ModOp>(op) && symbols.isAtLeast(b, one))
    return ofSize(graph::constantOf(b) ? graph::simplify(a % b)
                                       : define(a, b, StepOp::Mod));
  if (auto compare = llvm::dyn_cast<graph::CompareOp>(op)) {
    using graph::Predicate;
    auto decide = [&](bool yes, bool no) {
      return yes ? ofSize(one) : no ? ofSize(zero) : SizeElement();
    };
    bool aLargest = symbols.isAtLeast(a, b), bLargest = symbols.isAtLeast(b, a);
    bool aLarger = symbols.isAtLeast(a, graph::simplify(b + 1)),
         bLarger = symbols.isAtLeast(b, graph::simplify(a + 1));
    switch (compare.getPredicate()) {
    case Predicate::eq:
      return decide(aLargest && bLargest, aLarger || bLarger);
    case Predicate::ne:
      return decide(aLarger || bLarger, aLargest && bLargest);
    case Predicate::lt:
      return decide(bLarger, aLargest);
    case Predicate::le:
      return decide(bLargest, aLarger);
    case Predicate::gt:
      return decide(aLarger, bLargest);
    case Predicate::ge:
      return decide(aLargest, bLarger);
    }
  }
  // Sums and products, by the operator's own rule.
  SmallVector<graph::SymbolicTensor> operands;
  for (unsigned i = 0; i < x.size(); ++i) {
    operands.emplace_back();
    operands.back().elements.emplace(1, size(i));
  }
  SmallVector<AffineExpr> sizes;
  for (unsigned i = 0; i < x.size(); ++i)
    sizes.push_back(size(i));
  AffineExpr result = llvm::cast<graph::GraphOpInterface>(op).evaluateElement(
      sizes, graph::Exprs());
  return ofSize(result ? graph::simplify(result) : result);
}

// Floats.

/// Bits of the significand.
static int64_t precisionOf(mlir::Type type) { return type.isF32() ? 24 : 53; }

void SizeEvaluator::setExact(SizeElement &x, AffineExpr numerator,
                             int64_t shift, mlir::Type type) {
  constexpr int64_t maxShift = 20;
  if (!numerator || shift < 0 || shift > maxShift)
    return;
  int64_t most = int64_t(1) << std::min<int64_t>(precisionOf(type), 50);
  graph::Interval range = symbols.bounds(numerator);
  if (!range.isBounded() || range.low < -most || range.high > most)
    return;
  x.numerator = graph::simplify(numerator);
  x.shift = shift;
}

/// `value` as an integer times 2^-shift, if it is one of few bits.
static std::optional<std::pair<int64_t, int64_t>> dyadic(double value) {
  constexpr double most = 0x1p20;
  for (int64_t shift = 0; shift <= 20; ++shift) {
    double scaled = std::ldexp(value, static_cast<int>(shift));
    if (std::abs(scaled) > most)
      return std::nullopt;
    if (scaled == std::floor(scaled))
      return std::pair(static_cast<int64_t>(scaled), shift);
  }
  return std::nullopt;
}

static std::optional<double> constantNumber(const SizeElement &x) {
  return x.program.size() == 1 && x.program[0].op == StepOp::Number
             ? std::optional(x.program[0].number)
             : std::nullopt;
}

SizeElement SizeEvaluator::castTo(mlir::Type from, mlir::Type to,
                                  const SizeElement &x) {
  SizeElement result;
  if (from.isIntOrIndex() && to.isIntOrIndex())
    return to.isInteger(1) || (!to.isIndex() && to.getIntOrFloatBitWidth() < 32)
               ? SizeElement()
               : x;
  if (from.isIntOrIndex() && isPlainFloat(to)) {
    result.program = {{StepOp::Size, x.size, 0}, {StepOp::ToFloat, {}, 0}};
    if (to.isF32())
      result.program.push_back({StepOp::ToSingle, {}, 0});
    setExact(result, x.size, 0, to);
    return result;
  }
  if (isPlainFloat(from) && isPlainFloat(to)) {
    result.program = x.program;
    if (to.isF32() && from.isF64())
      result.program.push_back({StepOp::ToSingle, {}, 0});
    setExact(result, x.numerator, x.shift, to);
    return result;
  }
  if (!isPlainFloat(from) ||
      !(to.isIndex() || to.isInteger(64) || to.isInteger(32)))
    return {};
  AffineExpr numerator = symbols.resolve(x.numerator);
  if (numerator && (x.shift == 0 || symbols.isNonNegative(numerator)))
    return ofSize(graph::simplify(numerator.floorDiv(int64_t(1) << x.shift)));
  result.program = x.program;
  result.program.push_back({StepOp::Truncate, {}, 0});
  return ofSize(symbols.define(result.program));
}

/// The step of a float operator; none for those that have no step.
static std::optional<StepOp> stepOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<StepOp>>(op)
      .Case([](graph::AddOp) { return StepOp::FloatAdd; })
      .Case([](graph::SubOp) { return StepOp::FloatSub; })
      .Case([](graph::MulOp) { return StepOp::FloatMul; })
      .Case([](graph::DivOp) { return StepOp::FloatDiv; })
      .Case([](graph::MaxOp) { return StepOp::FloatMax; })
      .Case([](graph::MinOp) { return StepOp::FloatMin; })
      .Case([](graph::FloorOp) { return StepOp::Floor; })
      .Case([](graph::CeilOp) { return StepOp::Ceil; })
      .Case([](graph::RoundOp) { return StepOp::Round; })
      .Case([](graph::SqrtOp) { return StepOp::Sqrt; })
      .Default([](Operation *) { return std::nullopt; });
}

SizeElement SizeEvaluator::floats(Operation *op,
                                  llvm::ArrayRef<SizeElement> x) {
  mlir::Type type = mlir::getElementTypeOrSelf(op->getResult(0).getType());
  SizeElement result;
  auto append = [&](const SizeProgram &steps) {
    result.program.append(steps.begin(), steps.end());
  };
  auto step = stepOf(op);
  StepOp chosen = step.value_or(StepOp::FloatMul);
  if (llvm::isa<graph::NegOp>(op)) {
    append(x[0].program);
    append({{StepOp::Number, {}, -1}});
  } else if (llvm::isa<graph::ReciprocalOp>(op)) {
    append({{StepOp::Number, {}, 1}});
    append(x[0].program);
    chosen = StepOp::FloatDiv;
  } else if (!step) {
    return {};
  } else {
    for (const SizeElement &operand : x)
      append(operand.program);
  }
  result.program.push_back({chosen, {}, 0});
  if (type.isF32())
    result.program.push_back({StepOp::ToSingle, {}, 0});
  if (result.program.size() > maxSteps)
    return {};
  // What stays exact.
  auto factor = [&](unsigned i) {
    auto number = constantNumber(x[i]);
    return number ? dyadic(*number) : std::nullopt;
  };
  auto exact = [&](unsigned i) {
    SizeElement e = x[i];
    e.numerator = symbols.resolve(e.numerator);
    if (auto number = factor(i); number && !e.numerator) {
      e.numerator =
          mlir::getAffineConstantExpr(number->first, op->getContext());
      e.shift = number->second;
    }
    return e;
  };
  SizeElement a = exact(0), b = x.size() > 1 ? exact(1) : SizeElement();
  int64_t one = 1;
  switch (chosen) {
  case StepOp::FloatAdd:
  case StepOp::FloatSub: {
    if (!a.numerator || !b.numerator)
      break;
    unsigned shift = std::max(a.shift, b.shift);
    AffineExpr left = a.numerator * (one << (shift - a.shift)),
               right = b.numerator * (one << (shift - b.shift));
    setExact(result, chosen == StepOp::FloatAdd ? left + right : left - right,
             shift, type);
    break;
  }
  case StepOp::FloatMul:
    if (llvm::isa<graph::NegOp>(op))
      setExact(result, a.numerator ? -a.numerator : a.numerator, a.shift, type);
    else if (a.numerator && factor(1))
      setExact(result, a.numerator * factor(1)->first,
               a.shift + factor(1)->second, type);
    else if (b.numerator && factor(0))
      setExact(result, b.numerator * factor(0)->first,
               b.shift + factor(0)->second, type);
    break;
  case StepOp::FloatDiv:
    // By a power of two.
    if (auto by = x.size() > 1 ? factor(1) : std::nullopt;
        by && a.numerator && by->first > 0 && !(by->first & (by->first - 1))) {
      int64_t shift = a.shift - by->second + llvm::Log2_64(by->first);
      setExact(result,
               shift < 0 ? a.numerator * (one << std::min<int64_t>(-shift, 40))
                         : a.numerator,
               std::max<int64_t>(shift, 0), type);
    }
    break;
  case StepOp::Floor:
  case StepOp::Ceil:
    if (a.numerator)
      setExact(result,
               chosen == StepOp::Floor ? a.numerator.floorDiv(one << a.shift)
                                       : a.numerator.ceilDiv(one << a.shift),
               0, type);
    break;
  case StepOp::Round:
    if (a.numerator && a.shift == 0)
      setExact(result, a.numerator, 0, type);
    break;
  default:
    break;
  }
  return result;
}
