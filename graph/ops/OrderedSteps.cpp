// Ordered operators in steps that many program instances of a GPU share: each
// in its own way.
#include "graph/ops/Common.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace charonia::graph;

namespace {

/// Writes the steps of one operator.
class Steps {
public:
  Steps(Operation *op, OpBuilder &b, const Staging &staging)
      : b(b), location(op->getLoc()), staging(staging) {}

  template <typename Op, typename... Args> Value make(Args &&...args) {
    return Op::create(b, location, std::forward<Args>(args)...)->getResult(0);
  }
  AffineExpr number(int64_t value) { return b.getAffineConstantExpr(value); }
  int64_t sizeOf(AffineExpr extent) const {
    return evaluate(extent, staging.sizes).value_or(1);
  }

  Value cast(Value value, Type element) {
    if (getElementTypeOrSelf(value) == element)
      return value;
    return copy(value, element);
  }
  /// ... of its own memory, whatever the type is.
  Value copy(Value value, Type element) {
    return make<CastOp>(withElement(value.getType(), element), value,
                        TypeAttr::get(element));
  }
  Value reshape(Value value, ArrayRef<AffineExpr> shape) {
    return make<ReshapeOp>(makeType(shape, getElementTypeOrSelf(value)), value);
  }
  /// `shape` elements from `start` of dimension `d` on.
  Value slice(Value value, int64_t d, AffineExpr start,
              ArrayRef<AffineExpr> shape) {
    Exprs starts(shape.size(), number(0));
    starts[d] = start;
    return make<SliceOp>(makeType(shape, getElementTypeOrSelf(value)), value,
                         mapOf(0, starts, b.getContext()),
                         SmallVector<int64_t>(shape.size(), 1));
  }
  /// The value moved by `low` along `d`, and cut or filled up to `shape`.
  Value fit(Value value, int64_t d, int64_t low, TypedAttr fill,
            ArrayRef<AffineExpr> shape) {
    Exprs lows(shape.size(), number(0));
    lows[d] = number(low);
    Type element = getElementTypeOrSelf(value);
    Value scalar = make<ConstantOp>(
        DenseElementsAttr::get(RankedTensorType::get({}, element), fill));
    return make<PadOp>(makeType(shape, element), PadMode::constant, value,
                       scalar, mapOf(0, lows, b.getContext()));
  }

  /// Dimension `d` of `value` as parts of `length`, filled up with `fill`.
  Value inParts(Value value, int64_t d, int64_t length, TypedAttr fill) {
    Exprs shape = getShape(value), parted = shape;
    AffineExpr parts = (shape[d] + (length - 1)).floorDiv(length);
    shape[d] = parts * length;
    parted[d] = parts;
    parted.insert(parted.begin() + d + 1, number(length));
    for (Exprs *extents : {&shape, &parted})
      for (AffineExpr &e : *extents)
        e = simplify(e);
    return reshape(fit(value, d, 0, fill, shape), parted);
  }

  Value combine(ReduceKind kind, Value x, Value y) {
    switch (kind) {
    case ReduceKind::sum:
      return make<AddOp>(x, y);
    case ReduceKind::prod:
      return make<MulOp>(x, y);
    case ReduceKind::max:
      return make<MaxOp>(x, y);
    case ReduceKind::min:
      return make<MinOp>(x, y);
    }
    llvm_unreachable("a reduction combines by one of these");
  }

private:
  OpBuilder &b;
  Location location;
  const Staging &staging;
};

} // namespace

static TypedAttr numberOf(Type element, int64_t value) {
  if (isa<FloatType>(element))
    return FloatAttr::get(element, double(value));
  return IntegerAttr::get(element, value);
}

/// The number of a type that none is above; below, if not `greatest`.
static TypedAttr extremeOf(Type element, bool greatest) {
  if (auto real = dyn_cast<FloatType>(element))
    return FloatAttr::get(real, APFloat::getInf(real.getFloatSemantics(),
                                                /*Negative=*/!greatest));
  unsigned bits = element.getIntOrFloatBitWidth();
  if (element.isUnsignedInteger())
    return IntegerAttr::get(element, greatest ? APInt::getMaxValue(bits)
                                              : APInt::getMinValue(bits));
  return IntegerAttr::get(element, greatest ? APInt::getSignedMaxValue(bits)
                                            : APInt::getSignedMinValue(bits));
}

//===----------------------------------------------------------------------===//
// scan
//===----------------------------------------------------------------------===//

/// What changes nothing in front of a row; null where parts of a row do not
/// give what the row does.
static TypedAttr neutralOf(ReduceKind kind, Type element) {
  if (element.isInteger(1))
    return {};
  switch (kind) {
  case ReduceKind::sum:
    return numberOf(element, 0);
  case ReduceKind::prod:
    // Those of floats are taken in order (codegen/emit/rules/Ordered.cpp).
    return isa<FloatType>(element) ? TypedAttr() : numberOf(element, 1);
  case ReduceKind::max:
  case ReduceKind::min:
    return extremeOf(element, kind == ReduceKind::min);
  }
  llvm_unreachable("a reduction combines by one of these");
}

/// Program instances that walk a scan's rows from end to end.
static int64_t instancesOf(ScanOp op, const Steps &steps) {
  Exprs shape = getShape(op.getInput());
  int64_t instances = 1;
  bool isInnermost = true;
  for (int64_t d = shape.size(); d-- > 0;) {
    int64_t size = steps.sizeOf(shape[d]);
    if (size == 1)
      continue;
    if (d != int64_t(op.getAxis()))
      instances *=
          isInnermost ? llvm::divideCeil(size, Staging::columns) : size;
    isInnermost = false;
  }
  return instances;
}

/// Few, long rows: each part is scanned by itself, then what all parts before
/// it come to is combined with it.
Value ScanOp::writeInSteps(OpBuilder &b, const Staging &staging) {
  // What one instance takes at once.
  constexpr int64_t length = 1024;
  Exprs shape = getShape(getInput());
  int64_t axis = getAxis();
  Steps steps(*this, b, staging);
  if (steps.sizeOf(shape[axis]) < 8 * length ||
      instancesOf(*this, steps) >= staging.instances)
    return {};
  Type element = getElementTypeOrSelf(getType()), wide = element;
  if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32)
    wide = b.getF32Type();
  TypedAttr neutral = neutralOf(getKind(), wide);
  if (!neutral)
    return {};
  auto scanned = [&](Value value, int64_t along) {
    return steps.make<ScanOp>(value.getType(), getKind(), value, along,
                              getReverse());
  };
  Value parts =
            steps.inParts(steps.cast(getInput(), wide), axis, length, neutral),
        each = scanned(parts, axis + 1);
  Exprs ends = getShape(parts);
  ends[axis + 1] = steps.number(1);
  Value totals =
      scanned(steps.slice(each, axis + 1,
                          steps.number(getReverse() ? 0 : length - 1), ends),
              axis);
  Value before = steps.fit(totals, axis, getReverse() ? -1 : 1, neutral, ends);
  Value result = steps.combine(getKind(), before, each);
  Exprs joined = shape;
  joined[axis] = simplify(getShape(parts)[axis] * length);
  result =
      steps.slice(steps.reshape(result, joined), axis, steps.number(0), shape);
  return steps.cast(result, element);
}

//===----------------------------------------------------------------------===//
// sort
//===----------------------------------------------------------------------===//

/// The least few of a long row: those of each part of it, of which the least
/// are taken in the same way. What is behind them may be anything.
Value SortOp::writeInSteps(OpBuilder &b, const Staging &staging) {
  constexpr int64_t most = Staging::sortedAtOnce;
  Exprs shape = getShape(getInput());
  int64_t last = shape.size() - 1;
  auto kept = constantOf(getCount().getResult(0));
  Steps steps(*this, b, staging);
  // A part leaves half of itself at most, so that rows become shorter.
  if (!kept || *kept < 1 || *kept > most / 2)
    return {};
  int64_t length = *kept <= most / 8 ? most / 2 : most;
  TypedAttr fill = extremeOf(getElementTypeOrSelf(getType()), true);
  Value row = getInput();
  auto isLong = [&] { return steps.sizeOf(getShape(row)[last]) > most; };
  if (!isLong())
    return {};
  while (isLong()) {
    Value parts = steps.inParts(row, last, length, fill),
          sorted = steps.make<SortOp>(parts.getType(), parts, getCount());
    Exprs best = getShape(parts), joined = getShape(row);
    best.back() = steps.number(*kept);
    joined[last] = simplify(best[last] * *kept);
    row = steps.reshape(steps.slice(sorted, last + 1, steps.number(0), best),
                        joined);
  }
  Value sorted = steps.make<SortOp>(row.getType(), row, getCount());
  return steps.fit(sorted, last, 0, fill, shape);
}

//===----------------------------------------------------------------------===//
// Scatters
//===----------------------------------------------------------------------===//

/// What updates of a small type meet in: devices update whole words.
static Type wordOf(Type element, OpBuilder &b) {
  if (element.getIntOrFloatBitWidth() >= 32)
    return element;
  return isa<FloatType>(element) ? Type(b.getF32Type()) : Type(b.getI32Type());
}

/// Updates a copy of the input, as many at a time as there are.
template <typename Op>
static Value updateInPlace(Op op, OpBuilder &b, const Staging &staging) {
  if (op.getInPlace())
    return {};
  Steps steps(op, b, staging);
  Type element = getElementTypeOrSelf(op.getType()), word = element;
  if (op.getReduction() != ScatterReduction::none)
    word = wordOf(element, b);
  // A scatter's result that nothing else reads is such memory already.
  Value input = op.getInput();
  auto before = input.getDefiningOp<GraphOpInterface>();
  bool isFree = before && before.getUpdatedOperand() && input.hasOneUse() &&
                word == element;
  Value copy = isFree ? input : steps.copy(input, word),
        updates = steps.cast(op.getUpdates(), word);
  auto staged = llvm::cast<Op>(b.clone(*op));
  staged.getInputMutable().assign(copy);
  staged.getUpdatesMutable().assign(updates);
  staged.setInPlace(true);
  staged.getResult().setType(withElement(op.getType(), word));
  return steps.cast(staged.getResult(), element);
}

Value ScatterNDOp::writeInSteps(OpBuilder &b, const Staging &staging) {
  return updateInPlace(*this, b, staging);
}
Value ScatterElementsOp::writeInSteps(OpBuilder &b, const Staging &staging) {
  return updateInPlace(*this, b, staging);
}
