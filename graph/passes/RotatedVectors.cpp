#include "graph/passes/RotatedVectors.h"
#include "graph/analysis/Cells.h"
#include "graph/passes/Columns.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::graph;

/// x in `value` = x or -x, read by nothing else.
static Value behindNegation(Value value, bool &negates) {
  auto neg = value.hasOneUse() ? value.getDefiningOp<NegOp>() : NegOp();
  negates = bool(neg);
  return neg ? neg->getOperand(0) : value;
}

/// From coordinates of `value` to those of `source`, of which it is a view;
/// null: it is none.
static AffineMap mapThroughViews(Value value, Value source) {
  Exprs shape = getShape(value);
  auto map =
      AffineMap::getMultiDimIdentityMap(shape.size(), value.getContext());
  for (; value != source; value = value.getDefiningOp()->getOperand(0)) {
    auto view = value.getDefiningOp<GraphOpInterface>();
    if (!view || view.getRole() != OpRole::View)
      return {};
    map = composeMaps(view.getOperandMap(0), map, shape);
  }
  return simplify(map, shape);
}

/// Whether coordinates of `value` are those of `source` up to its last one, but
/// for `more` dimensions at the end of `value`.
static bool keepsRows(AffineMap map, Value value, Value source, unsigned more) {
  Exprs from = getShape(source), to = getShape(value);
  if (!map || to.size() != from.size() + more || from.empty())
    return false;
  for (unsigned i = 0; i + 1 < from.size(); ++i)
    if (from[i] != to[i] ||
        (constantOf(from[i]) != 1 &&
         map.getResult(i) != getAffineDimExpr(i, value.getContext())))
      return false;
  return true;
}

/// The vectors of columns that a view [.., count, width] of them is.
static std::optional<Vectors> vectorsOf(Value value, Value columns) {
  AffineMap map = mapThroughViews(value, columns);
  if (!keepsRows(map, value, columns, 1))
    return std::nullopt;
  Exprs shape = getShape(value);
  unsigned last = shape.size() - 1;
  std::optional<int64_t> count = constantOf(shape[last - 1]),
                         width = constantOf(shape[last]);
  if (!count || !width || *count < 1 || *width < 1)
    return std::nullopt;
  // Of a single vector the number is none.
  SmallVector<AffineExpr> dims;
  for (unsigned d = 0; d < map.getNumDims(); ++d)
    dims.push_back(constantOf(shape[d]) == 1
                       ? getAffineConstantExpr(0, map.getContext())
                       : getAffineDimExpr(d, map.getContext()));
  AffineExpr place = simplify(map.getResults().back().replaceDims(dims));
  SmallVector<AffineExpr> zeros(map.getNumDims(),
                                getAffineConstantExpr(0, map.getContext()));
  std::optional<int64_t> first = constantOf(simplify(place.replaceDims(zeros)));
  Vectors found{first.value_or(-1), *width, *count, *width};
  AffineExpr expected = dims[last];
  if (*count > 1) {
    found.stride = Sum(place).coefficientOf(last - 1).value_or(0);
    expected = expected + dims[last - 1] * found.stride;
  }
  AffineMap apart = simplify(
      mapOf(shape.size(), {place - expected}, map.getContext()), shape);
  bool isSo = first && found.stride >= *width &&
              constantOf(apart.getResult(0)) == *first;
  return isSo ? std::optional(found) : std::nullopt;
}

/// Where a slice of the last dimension of `source` begins; nothing: it is none.
static std::optional<int64_t> startInLast(Value slice, Value source) {
  AffineMap map = mapThroughViews(slice, source);
  if (!keepsRows(map, slice, source, 0))
    return std::nullopt;
  unsigned last = map.getNumDims() - 1;
  return constantOf(
      simplify(map.getResult(last) - getAffineDimExpr(last, map.getContext())));
}

namespace {

class Finder {
public:
  explicit Finder(Value columns)
      : columns(columns), block(columns.getParentBlock()) {
    collectViews();
  }

  SmallVector<Rotated> run() {
    SmallVector<Rotated> found;
    // Who reads what is not known of more.
    if (views.size() > mostViews)
      return found;
    auto add = [&](std::optional<Vectors> vectors) {
      bool isKnown = !vectors || !isCut(*vectors) ||
                     llvm::any_of(found, [&](const Rotated &other) {
                       return isSame(other.vectors, *vectors);
                     });
      if (isKnown)
        return;
      if (std::optional<Rotated> more = follow(*vectors))
        found.push_back(std::move(*more));
    };
    for (auto &[value, vectors] : views) {
      add(vectors);
      for (Operation *user : value.getUsers())
        if (ConcatOp concat = concatBehind(user))
          add(rotatedColumns(concat));
    }
    if (!found.empty())
      llvm::erase_if(found,
                     [width = found.front().vectors.width](const Rotated &r) {
                       return r.vectors.width != width;
                     });
    bool areAlone = llvm::all_of(views, [&](const auto &view) {
      return isReadAlone(view.first, found);
    });
    return areAlone ? std::move(found) : SmallVector<Rotated>();
  }

private:
  static constexpr size_t mostViews = 256;

  /// All views of the columns, of one another too.
  void collectViews() {
    llvm::SetVector<Value> values;
    values.insert(columns);
    for (size_t i = 0; i < values.size() && values.size() <= mostViews; ++i)
      for (Operation *user : values[i].getUsers())
        if (auto view = dyn_cast<GraphOpInterface>(user);
            view && view.getRole() == OpRole::View)
          values.insert(view->getResult(0));
    for (Value value : values)
      views.push_back({value, vectorsOf(value, columns)});
  }

  /// The concatenation that reads what `user` is or negates.
  static ConcatOp concatBehind(Operation *user) {
    if (isa<NegOp>(user) && user->hasOneUse())
      user = *user->user_begin();
    return dyn_cast<ConcatOp>(user);
  }

  /// The vectors of columns whose halves are swapped.
  std::optional<Vectors> rotatedColumns(ConcatOp concat) const {
    bool negates;
    if (!joinsTwoOfLast(concat))
      return std::nullopt;
    auto high =
             vectorsOf(behindNegation(concat.getInputs()[0], negates), columns),
         low =
             vectorsOf(behindNegation(concat.getInputs()[1], negates), columns);
    if (!high || !low || high->count != low->count ||
        high->width != low->width || high->first != low->first + low->width ||
        (low->count > 1 &&
         (low->stride != high->stride || low->stride < 2 * low->width)))
      return std::nullopt;
    Vectors whole{low->first, low->stride, low->count, 2 * low->width};
    whole.stride = std::max(whole.stride, whole.width);
    return whole;
  }

  /// Whether all columns are such vectors, whose halves are runs.
  bool isCut(const Vectors &vectors) const {
    int64_t all = constantOf(getShape(columns).back()).value_or(0),
            width = vectors.width;
    return width % (2 * kColumnRun) == 0 && vectors.first % width == 0 &&
           vectors.stride % width == 0 && all > 0 && all % width == 0;
  }

  static bool joinsTwoOfLast(ConcatOp concat) {
    return concat.getInputs().size() == 2 &&
           concat.getAxis() + 1 == getShape(concat.getResult()).size();
  }

  /// The rotation of what is computed of vectors already.
  static std::optional<Rotation> rotationOfComputed(ConcatOp concat,
                                                    const Rotated &found) {
    Rotation rotation;
    if (!joinsTwoOfLast(concat))
      return std::nullopt;
    Value high = behindNegation(concat.getInputs()[0], rotation.negatesFirst),
          low = behindNegation(concat.getInputs()[1], rotation.negatesSecond);
    int64_t half = found.vectors.width / 2;
    for (Operation *op : found.ops) {
      Value source = op->getResult(0);
      if (startInLast(low, source) == 0 && startInLast(high, source) == half &&
          constantOf(getShape(low).back()) == half &&
          constantOf(getShape(high).back()) == half) {
        rotation.input = source;
        return rotation;
      }
    }
    return std::nullopt;
  }

  /// Adds a reader of vectors, or of half of them; false where it is something
  /// else.
  bool tryAdd(Rotated &found, Operation *user) const {
    ConcatOp concat = concatBehind(user);
    auto pointwise = dyn_cast<GraphOpInterface>(user);
    if (concat && rotatedColumns(concat) == found.vectors) {
      Rotation rotation;
      behindNegation(concat.getInputs()[0], rotation.negatesFirst);
      behindNegation(concat.getInputs()[1], rotation.negatesSecond);
      found.rotations[concat] = rotation;
      found.ops.insert(concat);
      return true;
    }
    if (auto rotation = concat ? rotationOfComputed(concat, found)
                               : std::optional<Rotation>()) {
      found.rotations[concat] = *rotation;
      found.ops.insert(concat);
      return true;
    }
    Exprs shape = getShape(columns);
    AffineExpr one = getAffineConstantExpr(1, columns.getContext());
    shape.back() = one * found.vectors.count;
    shape.push_back(one * found.vectors.width);
    bool isOfVectors =
        pointwise && pointwise.getCells().empty() &&
        (pointwise.getRole() == OpRole::Pointwise || normalizes(user, found));
    if (!isOfVectors || user->getNumResults() != 1 ||
        user->getBlock() != block ||
        user->getResult(0).getType() !=
            makeType(shape, getElementTypeOrSelf(columns)))
      return false;
    found.ops.insert(user);
    return true;
  }

  /// Whether an operator normalizes each vector, of a width that is a cell.
  static bool normalizes(Operation *op, const Rotated &found) {
    auto normalize = dyn_cast<NormalizeOp>(op);
    int64_t last = normalize ? getShape(normalize.getInput()).size() - 1 : 0;
    return normalize && normalize.getAxes() == ArrayRef<int64_t>{last} &&
           normalize.getInput().getType() == normalize.getType() &&
           llvm::isPowerOf2_64(found.vectors.width) &&
           found.vectors.width <= mostColumnsOfCell;
  }

  /// All that is computed of some vectors; nothing where it does not end in one
  /// value, or reads what differs by vector.
  std::optional<Rotated> follow(const Vectors &vectors) const {
    constexpr size_t most = 32;
    Rotated found;
    found.vectors = vectors;
    SmallVector<Value> work;
    for (const auto &[value, own] : views) {
      bool isWhole = own && isSame(*own, vectors);
      if (isWhole)
        found.columns.insert(value);
      if (isWhole || (own && isHalf(*own, vectors)))
        work.push_back(value);
    }
    while (!work.empty() && found.ops.size() < most) {
      Value value = work.pop_back_val();
      for (Operation *user : value.getUsers()) {
        size_t before = found.ops.size();
        if (tryAdd(found, user) && found.ops.size() > before)
          work.push_back(found.ops.back()->getResult(0));
        // Halves of what is computed already.
        if (auto view = dyn_cast<GraphOpInterface>(user);
            view && view.getRole() == OpRole::View && found.isInside(value) &&
            !found.columns.contains(value))
          work.push_back(view->getResult(0));
      }
    }
    SmallVector<Operation *> sorted = found.ops.takeVector();
    llvm::sort(sorted, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    found.ops.insert(sorted.begin(), sorted.end());
    bool reads = llvm::any_of(found.ops, [&](Operation *op) {
      return found.rotations.contains(op) || isa<NormalizeOp>(op);
    });
    if (found.ops.size() >= most || !reads || !findEnd(found) ||
        !llvm::all_of(found.ops, [&](Operation *op) {
          return readsAlikeBeside(op, found);
        }))
      return std::nullopt;
    findWhole(found);
    return found;
  }

  static bool isSame(const Vectors &a, const Vectors &b) {
    return a.first == b.first && a.count == b.count && a.width == b.width &&
           (a.count == 1 || a.stride == b.stride);
  }
  static bool isHalf(const Vectors &half, const Vectors &of) {
    Vectors low = half;
    low.width *= 2;
    Vectors high = low;
    high.first -= half.width;
    return isSame(low, of) || isSame(high, of);
  }

  /// Whether the reader of a value, or what it does for it, is inside.
  static bool isOwnReader(Operation *user, const Rotated &found) {
    if (found.ops.contains(user))
      return true;
    ConcatOp concat = concatBehind(user);
    if (concat && found.rotations.contains(concat))
      return true;
    // Halves of what is computed already.
    auto view = dyn_cast<GraphOpInterface>(user);
    return view && view.getRole() == OpRole::View && !view->use_empty() &&
           llvm::all_of(view->getUsers(), [&](Operation *reader) {
             ConcatOp behind = concatBehind(reader);
             return behind && found.rotations.contains(behind);
           });
  }

  /// Finds the value that others read, one alone.
  static bool findEnd(Rotated &found) {
    for (Operation *op : found.ops)
      for (Operation *user : op->getUsers()) {
        if (isOwnReader(user, found))
          continue;
        if (found.result && found.result != op->getResult(0))
          return false;
        found.result = op->getResult(0);
      }
    return bool(found.result);
  }

  /// Whether a value is computed of the columns, or of too much to tell.
  bool dependsOnColumns(Value value) const {
    constexpr size_t most = 256;
    llvm::SetVector<Value> values;
    values.insert(value);
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] == columns || values.size() > most)
        return true;
      Operation *op = values[i].getDefiningOp();
      if (op && op->getBlock() == block &&
          columns.getDefiningOp()->isBeforeInBlock(op))
        values.insert(op->operand_begin(), op->operand_end());
    }
    return false;
  }

  /// Whether what an operator reads beside vectors is the same for all of them,
  /// and there before them.
  bool readsAlikeBeside(Operation *op, const Rotated &found) const {
    if (found.rotations.contains(op))
      return true;
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      if (found.isInside(operand))
        return true;
      Exprs shape = getShape(operand);
      return (shape.size() < 2 || constantOf(shape[shape.size() - 2]) == 1) &&
             !dependsOnColumns(operand);
    });
  }

  /// concat(result, columns behind each vector), if that alone is wanted.
  void findWhole(Rotated &found) const {
    const Vectors &own = found.vectors;
    auto concat = found.result.hasOneUse()
                      ? dyn_cast<ConcatOp>(*found.result.user_begin())
                      : ConcatOp();
    if (!concat || !joinsTwoOfLast(concat) ||
        concat.getInputs()[0] != found.result)
      return;
    std::optional<Vectors> rest = vectorsOf(concat.getInputs()[1], columns);
    int64_t all = constantOf(getShape(columns).back()).value_or(0);
    if (rest &&
        isSame(*rest,
               {own.first + own.width, own.stride, own.count, rest->width}) &&
        own.first % own.stride + own.width + rest->width <= own.stride &&
        all % own.stride == 0)
      found.whole = concat.getResult();
  }

  /// Whether nobody but these reads columns of theirs at a view.
  bool isReadAlone(Value view, ArrayRef<Rotated> found) const {
    for (Operation *user : view.getUsers()) {
      auto next = dyn_cast<GraphOpInterface>(user);
      if (next && next.getRole() == OpRole::View)
        continue;
      for (const Rotated &r : found)
        if (!isOwnReader(user, r) && mayMeet(view, r.vectors))
          return false;
    }
    return true;
  }

  /// Whether a view of the columns may have some of these.
  bool mayMeet(Value view, const Vectors &vectors) const {
    AffineExpr place = mapThroughViews(view, columns).getResults().back();
    Facts facts = Facts::ofCoordinates(getShape(view));
    auto isApart = [&](AffineExpr place, int64_t first, int64_t end) {
      Interval range = boundsOf(simplify(place, facts), facts);
      return range.high < first || range.low >= end;
    };
    int64_t stride = vectors.stride, end = vectors.first + vectors.width;
    // In front of all or behind them, or between them everywhere.
    return !isApart(place, vectors.first, end + (vectors.count - 1) * stride) &&
           !isApart(place % stride, vectors.first % stride,
                    vectors.first % stride + vectors.width);
  }

  Value columns;
  Block *block;
  SmallVector<std::pair<Value, std::optional<Vectors>>> views;
};

} // namespace

SmallVector<Rotated> graph::findRotated(Value columns) {
  return Finder(columns).run();
}

/// Whether weights have a number for each element of a vector, and may have
/// others for each vector.
static bool mayDiffer(Value a, Value b, WeightsOnly &weightsOnly) {
  auto isOfElements = [&](Value value) {
    Exprs shape = getShape(value);
    return weightsOnly(value) && !shape.empty() &&
           llvm::all_of(ArrayRef(shape).drop_back(),
                        [](AffineExpr e) { return constantOf(e) == 1; });
  };
  return a.getType() == b.getType() && isOfElements(a) && isOfElements(b);
}

bool graph::areAlike(const Rotated &a, const Rotated &b,
                     WeightsOnly &weightsOnly) {
  if (a.ops.size() != b.ops.size())
    return false;
  IRMapping same;
  auto isSame = [&](Value x, Value y) {
    return (a.columns.contains(x) && b.columns.contains(y)) ||
           same.lookupOrDefault(x) == y;
  };
  for (auto [x, y] : llvm::zip_equal(a.ops, b.ops)) {
    auto p = a.rotations.find(x), q = b.rotations.find(y);
    bool isRotation = p != a.rotations.end();
    if (x->getName() != y->getName() || isRotation != (q != b.rotations.end()))
      return false;
    if (isRotation) {
      Value from = p->second.input, to = q->second.input;
      if (bool(from) != bool(to) || (from && !isSame(from, to)) ||
          p->second.negatesFirst != q->second.negatesFirst ||
          p->second.negatesSecond != q->second.negatesSecond)
        return false;
    } else if (x->getAttrDictionary() != y->getAttrDictionary() ||
               x->getNumOperands() != y->getNumOperands()) {
      return false;
    } else {
      for (auto [from, to] :
           llvm::zip_equal(x->getOperands(), y->getOperands()))
        if (!isSame(from, to) && (a.isInside(from) || b.isInside(to) ||
                                  !mayDiffer(from, to, weightsOnly)))
          return false;
    }
    same.map(x->getResult(0), y->getResult(0));
  }
  return same.lookupOrDefault(a.result) == b.result;
}
