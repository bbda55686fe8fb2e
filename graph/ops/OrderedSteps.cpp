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
    return make<PadOp>(makeType(shape, getElementTypeOrSelf(value)),
                       PadMode::constant, value, constant(fill),
                       mapOf(0, lows, b.getContext()));
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
    if (shape[d] != getShape(value)[d])
      value = fit(value, d, 0, fill, shape);
    return reshape(value, parted);
  }

  Value scalar(int64_t value) { return constant(b.getI64IntegerAttr(value)); }
  Value constant(TypedAttr value) {
    return make<ConstantOp>(DenseElementsAttr::get(
        RankedTensorType::get({}, value.getType()), value));
  }
  /// The places along `d` of `rank` dimensions, `extent` elements.
  Value places(size_t rank, int64_t d, AffineExpr extent) {
    Exprs along(rank, number(1));
    along[d] = extent;
    return make<IotaOp>(makeType(along, b.getI64Type()), uint64_t(d));
  }
  /// For each element along `d`, of which `value` has one along `d` + 1, those
  /// in front of it along `d` + 1, and `neutral` for the others.
  Value inFront(Value value, int64_t d, bool reverse, TypedAttr neutral) {
    Exprs turned = getShape(value);
    AffineExpr extent = turned[d];
    std::swap(turned[d], turned[d + 1]);
    Value others = places(turned.size(), d + 1, extent),
          own = places(turned.size(), d, extent),
          isInFront = make<CompareOp>(reverse ? Predicate::gt : Predicate::lt,
                                      others, own),
          turnedValue = reshape(value, turned), nothing = constant(neutral);
    return make<SelectOp>(isInFront, turnedValue, nothing);
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

/// What changes nothing in front of a row; null for i1, whose rows are short.
static TypedAttr neutralOf(ReduceKind kind, Type element) {
  if (element.isInteger(1))
    return {};
  switch (kind) {
  case ReduceKind::sum:
    return numberOf(element, 0);
  case ReduceKind::prod:
    return numberOf(element, 1);
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

/// Elements of a part: as many as one instance takes at once, or somewhat fewer
/// where that cuts a row into equal parts.
static int64_t partLength(AffineExpr extent) {
  constexpr int64_t most = 1024, least = 256;
  std::optional<int64_t> known = constantOf(extent);
  for (int64_t length = most; known && length >= least; --length)
    if (*known % length == 0)
      return length;
  return most;
}

/// Few, long rows: each part begins with what the parts in front of it come to.
Value ScanOp::writeInSteps(OpBuilder &b, const Staging &staging) {
  Exprs shape = getShape(getInput());
  int64_t axis = getAxis(), length = partLength(shape[axis]);
  constexpr int64_t longRow = 8 * 1024;
  Steps steps(*this, b, staging);
  if (steps.sizeOf(shape[axis]) < longRow ||
      instancesOf(*this, steps) >= staging.instances)
    return {};
  Type element = getElementTypeOrSelf(getType()), wide = element;
  if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32)
    wide = b.getF32Type();
  TypedAttr neutral = neutralOf(getKind(), wide);
  if (!neutral || getInitial() || combinesOneByOne())
    return {};
  Value parts =
      steps.inParts(steps.cast(getInput(), wide), axis, length, neutral);
  Exprs ends = getShape(parts);
  ends[axis + 1] = steps.number(1);
  Value totals = steps.make<ReduceOp>(getKind(), parts, ArrayRef{axis + 1},
                                      /*keepdims=*/true),
        before;
  // Every part combines a few of them; many are combined once.
  if (steps.sizeOf(ends[axis]) <= length) {
    before = steps.inFront(totals, axis, getReverse(), neutral);
  } else {
    Value moved = steps.fit(totals, axis, getReverse() ? -1 : 1, neutral, ends);
    before = steps.make<ScanOp>(moved.getType(), getKind(), moved, Value(),
                                axis, getReverse());
  }
  Value result = steps.make<ScanOp>(parts.getType(), getKind(), parts, before,
                                    axis + 1, getReverse());
  Exprs joined = shape;
  joined[axis] = simplify(getShape(parts)[axis] * length);
  result = steps.reshape(result, joined);
  if (joined[axis] != shape[axis])
    result = steps.slice(result, axis, steps.number(0), shape);
  return steps.cast(result, element);
}

//===----------------------------------------------------------------------===//
// sort
//===----------------------------------------------------------------------===//

namespace {

/// Takes the least few of long rows.
class Selection {
public:
  Selection(SortOp op, int64_t kept, OpBuilder &b, const Staging &staging)
      : op(op), kept(kept), b(b), steps(op, b, staging),
        last(getShape(op.getInput()).size() - 1) {}

  static constexpr int64_t most = Staging::sortedAtOnce;

  /// The least of `row`, of which each element is the least of `unit` places of
  /// the operator's input.
  Value leastOf(Value row, int64_t unit) {
    if (int64_t length = groupOf(row))
      return byGroups(row, unit, length);
    return bySorting(row);
  }

  /// Whether there is a better way than to sort a row as a whole.
  bool pays() { return groupOf(op.getInput()) != 0; }

private:
  /// The least of each part are sorted with those of the others.
  Value bySorting(Value row) {
    int64_t length = kept <= most / 8 ? most / 2 : most;
    TypedAttr fill = extremeOf(b.getI64Type(), true);
    while (steps.sizeOf(getShape(row)[last]) > most) {
      Value parts = steps.inParts(row, last, length, fill),
            sorted = sortedBy(parts);
      Exprs best = getShape(parts), joined = getShape(row);
      best.back() = steps.number(kept);
      joined[last] = simplify(best[last] * kept);
      row = steps.reshape(steps.slice(sorted, last + 1, steps.number(0), best),
                          joined);
    }
    Exprs best = getShape(row);
    best.back() = steps.number(kept);
    return steps.slice(sortedBy(row), last, steps.number(0), best);
  }

  /// Whether the low half of an element is its place in the row.
  bool knowsPlaces() {
    auto sum = op.getInput().getDefiningOp<AddOp>();
    for (unsigned i = 0; sum && i < 2; ++i) {
      auto place = sum->getOperand(i).getDefiningOp<IotaOp>();
      auto product = sum->getOperand(1 - i).getDefiningOp<MulOp>();
      if (!place || !product || int64_t(place.getAxis()) != last)
        continue;
      for (Value factor : product->getOperands())
        if (auto constant = splatOf(factor); constant && *constant == words)
          return getShape(place.getResult()).size() == size_t(last) + 1;
    }
    return false;
  }

  static constexpr int64_t words = int64_t(1) << 32;

  static std::optional<int64_t> splatOf(Value value) {
    auto constant = value.getDefiningOp<ConstantOp>();
    auto elements = constant ? dyn_cast<SplatElementsAttr>(constant.getValue())
                             : SplatElementsAttr();
    if (!elements || !elements.getElementType().isSignlessInteger(64))
      return std::nullopt;
    return elements.getSplatValue<APInt>().getSExtValue();
  }

  Value sortedBy(Value row) {
    return steps.make<SortOp>(row.getType(), row, op.getCount());
  }

  /// Elements of a group; 0 where groups do not pay. As many groups are sorted
  /// then as elements of those that are kept.
  int64_t groupOf(Value row) {
    constexpr int64_t shortRow = 2048, leastLength = 4;
    auto extent = constantOf(getShape(row)[last]);
    if (!extent || *extent <= shortRow || *extent >= words / 2 ||
        !knowsPlaces())
      return 0;
    int64_t length = leastLength;
    while (2 * length * length <= *extent / kept)
      length *= 2;
    // More groups than are kept, and fewer elements in these than in the row.
    bool pays = 2 * kept * length <= *extent && kept * length <= most;
    return pays ? length : 0;
  }

  /// No more groups than elements are kept have one of them, and these are the
  /// groups with the least minima. What is in them is no row whose elements
  /// could be found by their places again.
  Value byGroups(Value row, int64_t unit, int64_t length) {
    TypedAttr fill = extremeOf(b.getI64Type(), true);
    AffineExpr extent = getShape(row)[last];
    Value groups = steps.inParts(row, last, length, fill),
          minima = steps.make<ReduceOp>(ReduceKind::min, groups,
                                        ArrayRef{last + 1}, /*keepdims=*/false),
          best = leastOf(minima, unit * length);
    // Elements of the groups whose minima these are.
    Value place = steps.make<AndOp>(best, steps.scalar(words - 1)),
          group = steps.make<DivOp>(place, steps.scalar(unit * length));
    Exprs one = getShape(best), each = one, joined = one;
    one.push_back(steps.number(1));
    each.assign(one.size(), steps.number(1));
    each.back() = steps.number(length);
    joined[last] = steps.number(kept * length);
    Value first = steps.make<MulOp>(steps.reshape(group, one),
                                    steps.scalar(length)),
          inside = steps.make<IotaOp>(makeType(each, b.getI64Type()),
                                      uint64_t(last + 1)),
          index = steps.reshape(steps.make<AddOp>(first, inside), joined);
    if (*constantOf(extent) % length == 0)
      return bySorting(gathered(row, index));
    // The last group is not whole.
    Value end = steps.scalar(*constantOf(extent)),
          isThere = steps.make<CompareOp>(Predicate::lt, index, end),
          within =
              steps.make<MinOp>(index, steps.scalar(*constantOf(extent) - 1)),
          nothing = steps.scalar(cast<IntegerAttr>(fill).getInt());
    return bySorting(
        steps.make<SelectOp>(isThere, gathered(row, within), nothing));
  }

  /// Elements of `value`, which has the shape of a row or one that broadcasts
  /// to it, at `index` along the last dimension. What is computed element by
  /// element is so of these alone.
  Value gathered(Value value, Value index) {
    Exprs row = getShape(value);
    if (row.empty() || constantOf(row.back()) == 1)
      return value;
    if (Value done = known.lookup({value, index}))
      return done;
    Exprs shape = getShape(index);
    auto source = value.getDefiningOp<GraphOpInterface>();
    Value result;
    if (auto place = value.getDefiningOp<IotaOp>();
        place && int64_t(place.getAxis()) == last) {
      result = steps.cast(index, getElementTypeOrSelf(value));
    } else if (source && source.getRole() == OpRole::Pointwise &&
               llvm::all_of(source->getOperands(), [&](Value operand) {
                 return isAlong(operand, row);
               })) {
      SmallVector<Value> operands;
      for (Value operand : source->getOperands())
        operands.push_back(gathered(operand, index));
      Operation *copy = b.clone(*source);
      copy->setOperands(operands);
      copy->getResult(0).setType(makeType(shape, getElementTypeOrSelf(value)));
      result = copy->getResult(0);
    } else {
      result = steps.make<GatherElementsOp>(value, index, uint64_t(last));
    }
    return known[{value, index}] = result;
  }

  /// Whether gathering commutes with broadcasting the operand to `row`.
  static bool isAlong(Value operand, ArrayRef<AffineExpr> row) {
    Exprs shape = getShape(operand);
    if (shape.empty() || shape == row)
      return true;
    bool isPlace =
        operand.getDefiningOp<IotaOp>() && shape.back() == row.back();
    return shape.size() == row.size() &&
           (constantOf(shape.back()) == 1 || isPlace);
  }

  SortOp op;
  int64_t kept;
  OpBuilder &b;
  Steps steps;
  int64_t last;
  llvm::DenseMap<std::pair<Value, Value>, Value> known;
};

} // namespace

/// The least few of a long row. Where elements know their places: those of the
/// groups whose minima are the least; else those of each part of it, of which
/// the least are taken in the same way. What is behind them may be anything.
Value SortOp::writeInSteps(OpBuilder &b, const Staging &staging) {
  Exprs shape = getShape(getInput());
  auto kept = constantOf(getCount().getResult(0));
  Steps steps(*this, b, staging);
  // A part leaves half of itself at most, so that rows become shorter.
  if (!kept || *kept < 1 || *kept > Selection::most / 2)
    return {};
  Selection selection(*this, *kept, b, staging);
  if (steps.sizeOf(shape.back()) <= Selection::most && !selection.pays())
    return {};
  return steps.fit(selection.leastOf(getInput(), 1), shape.size() - 1, 0,
                   extremeOf(getElementTypeOrSelf(getType()), true), shape);
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
