#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include <cmath>

namespace charonia::graph {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

/// What the rules look at: the extents of an operand at the symbols' opt
/// values, and which of them are combined.
struct Terms {
  SmallVector<int64_t> extents;
  SmallVector<bool> reduced;
  /// Dimensions of more than one element, by what is done to them. `inner`: the
  /// reduced ones behind the last that is kept; `outer`: those before it.
  SmallVector<int64_t> inner, outer;
  int64_t results = 1, innerTerms = 1, outerTerms = 1;

  Terms(Value input, ArrayRef<int64_t> axes, ArrayRef<int64_t> symbols) {
    for (AffineExpr e : getShape(input))
      extents.push_back(std::max<int64_t>(evaluate(e, symbols).value_or(1), 0));
    reduced.assign(extents.size(), false);
    for (int64_t axis : axes)
      reduced[axis] = true;
    bool behind = true;
    Exprs shape = getShape(input);
    for (int64_t d = int64_t(extents.size()) - 1; d >= 0; --d) {
      // An open size may be more than one, whatever is optimized for.
      if (extents[d] == 1 && constantOf(shape[d]))
        continue;
      if (!reduced[d]) {
        behind = false;
        results = capped(results, extents[d]);
        continue;
      }
      (behind ? inner : outer).push_back(d);
      int64_t &terms = behind ? innerTerms : outerTerms;
      terms = capped(terms, extents[d]);
    }
  }

  static int64_t capped(int64_t a, int64_t b) {
    int64_t product;
    return llvm::MulOverflow(a, b, product) ? int64_t(1) << 40 : product;
  }
  int64_t elements() const {
    return capped(capped(results, innerTerms), outerTerms);
  }
  /// Rows that are no runs of memory, nor lie side by side in it.
  bool isMixed() const { return !inner.empty() && !outer.empty(); }
};

class SplitReductions
    : public charonia::graph::impl::SplitReductionsBase<SplitReductions> {
  using SplitReductionsBase::SplitReductionsBase;

  void runOnOperation() override {
    symbols = getOptimum(getOperation());
    facts = getFacts(getOperation()->getParentOfType<ModuleOp>());
    partsOf.clear();
    OpBuilder builder(&getContext());
    // What a normalization is written out as has reductions of the same rows.
    for (GraphOpInterface op : stagedOps()) {
      builder.setInsertionPoint(op);
      if (Value result = op.writeOut(builder))
        op->getResult(0).replaceAllUsesWith(result);
    }
    for (GraphOpInterface op : stagedOps()) {
      if (!op.combinesPartialResults())
        continue;
      builder.setInsertionPoint(op);
      Value result =
          isExtremeOfOpenRun(op)
              ? extremeInParts(builder, op)
              : reduced(builder, op, op->getOperand(0), op.getReductionAxes());
      Type type = op->getResult(0).getType();
      if (result.getType() != type)
        result = ReshapeOp::create(builder, op->getLoc(), type, result);
      op->getResult(0).replaceAllUsesWith(result);
    }
    eraseDead(getOperation());
  }

  /// Operators whose terms are combined in steps.
  SmallVector<GraphOpInterface> stagedOps() {
    SmallVector<GraphOpInterface> ops;
    getOperation().walk([&](GraphOpInterface op) {
      SmallVector<int64_t> axes = op.getReductionAxes();
      if (!axes.empty() && !op->use_empty() &&
          (isStaged(Terms(op->getOperand(0), axes, symbols)) ||
           isExtremeOfOpenRun(op)))
        ops.push_back(op);
    });
    return ops;
  }

  /// Whether the terms are combined in steps, with partial results in memory.
  bool isStaged(const Terms &terms) const {
    if (terms.elements() < leastElements)
      return false;
    return terms.isMixed() || instancesOf(terms) < fewInstances;
  }

  /// Program instances that a kernel with these rows would have.
  int64_t instancesOf(const Terms &terms) const {
    if (!terms.inner.empty())
      return terms.results;
    int64_t last = 1;
    for (int64_t d = int64_t(terms.extents.size()) - 1; d >= 0 && last == 1;
         --d)
      last = terms.extents[d];
    return std::max<int64_t>(1, terms.results / std::min<int64_t>(last, lanes));
  }

  /// What `op` gives for `input` along `axes`, with dimensions of one element
  /// in their place.
  Value reduced(OpBuilder &builder, GraphOpInterface op, Value input,
                ArrayRef<int64_t> axes) {
    Terms terms(input, axes, symbols);
    if (!isStaged(terms))
      return op.reduceAlong(builder, input, axes, /*keepDims=*/true);
    // Long runs are combined along memory; short ones not before the rest, when
    // their elements and what is kept lie side by side in vectors.
    bool along = terms.outer.empty() || terms.innerTerms >= shortestRun;
    ArrayRef<int64_t> from = along ? terms.inner : terms.outer;
    int64_t all = along ? terms.innerTerms : terms.outerTerms,
            least = along ? leastTermsAlong : leastTermsAcross,
            wanted = std::max<int64_t>(least, std::sqrt(double(all)));
    SmallVector<int64_t> first;
    int64_t count = 1;
    for (int64_t d : from) {
      if (Terms::capped(count, terms.extents[d]) > 2 * wanted)
        break;
      count *= terms.extents[d];
      first.push_back(d);
    }
    if (along && cutOpenRuns && isSumOfFloats(op) && mayBeNarrow(input, terms))
      return reducedInParts(builder, op, input, axes, terms, wanted);
    if (count < wanted && first.size() < from.size())
      if (Value cut =
              splitDimension(builder, op->getLoc(), input, from[first.size()],
                             llvm::divideCeil(wanted, count))) {
        SmallVector<int64_t> moved;
        for (int64_t axis : axes) {
          moved.push_back(axis > from[first.size()] ? axis + 1 : axis);
          if (axis == from[first.size()])
            moved.push_back(axis + 1);
        }
        Value result = reduced(builder, op, cut, moved);
        return ReshapeOp::create(builder, op->getLoc(), keptType(input, axes),
                                 result);
      }
    bool everything = first.size() == terms.inner.size() + terms.outer.size();
    if (first.empty() || everything)
      return op.reduceAlong(builder, input, axes, /*keepDims=*/true);
    llvm::sort(first);
    Value partial = op.reduceAlong(builder, input, first, /*keepDims=*/true);
    return reduced(builder, op, partial, axes);
  }

  /// The dimensions from `from` on as one.
  static Value asRun(OpBuilder &builder, Location location, Value input,
                     int64_t from) {
    Exprs shape = getShape(input), flat(ArrayRef(shape).take_front(from));
    flat.push_back(simplify(
        numElements(ArrayRef(shape).drop_front(from), builder.getContext())));
    return ReshapeOp::create(
        builder, location, makeType(flat, getElementTypeOrSelf(input)), input);
  }

  /// The last dimension in parts of `part`, with the scalar `fill` behind what
  /// there is of the last.
  static Value inParts(OpBuilder &builder, Location location, Value run,
                       int64_t part, Value fill) {
    Exprs padded = getShape(run), cut = padded;
    Type element = getElementTypeOrSelf(run);
    cut.back() = simplify(padded.back().ceilDiv(part));
    padded.back() = simplify(cut.back() * part);
    cut.push_back(builder.getAffineConstantExpr(part));
    Exprs lows(padded.size(), builder.getAffineConstantExpr(0));
    run = PadOp::create(builder, location, makeType(padded, element),
                        PadMode::constant, run, fill,
                        AffineMap::get(0, 0, lows, builder.getContext()));
    return ReshapeOp::create(builder, location, makeType(cut, element), run);
  }

  /// Whether `op` is the greatest or least of all that there is, of an open
  /// number which may be large, whatever is optimized for. Of parts, which
  /// program instances share, it is the same, as no sum would be.
  bool isExtremeOfOpenRun(GraphOpInterface op) const {
    auto reduce = dyn_cast<ReduceOp>(op.getOperation());
    if (!cutOpenRuns || !reduce || reduce.getKind() == ReduceKind::sum ||
        reduce.getKind() == ReduceKind::prod)
      return false;
    auto countOf = [&](Value value) {
      return simplify(numElements(getShape(value), op->getContext()));
    };
    AffineExpr count = countOf(reduce.getInput());
    Interval range = boundsOf(count, facts);
    return !constantOf(count) && range.low >= 1 &&
           range.high >= leastElements &&
           constantOf(countOf(reduce.getResult())) == 1 &&
           isReadAsRun(reduce.getInput());
  }

  /// Whether the elements of `value` lie one behind the other where a kernel
  /// reads them: what is computed on demand at a place of a run would divide it
  /// by open sizes.
  static bool isReadAsRun(Value value) {
    auto op = value.getDefiningOp<GraphOpInterface>();
    if (!op)
      return true;
    auto isLong = [](AffineExpr extent) { return constantOf(extent) != 1; };
    switch (op.getRole()) {
    case OpRole::Pointwise:
      return llvm::count_if(getShape(value), isLong) == 1;
    case OpRole::View:
    case OpRole::Indexing:
      return false;
    default:
      return true;
    }
  }

  /// Its value, of whole parts and of what is left behind them. Neither looks
  /// at an element's place.
  Value extremeInParts(OpBuilder &builder, GraphOpInterface op) {
    Location location = op->getLoc();
    auto [whole, rest] = cutRun(builder, location, op->getOperand(0));
    Value partial = op.reduceAlong(builder, whole, {1}, /*keepDims=*/true),
          most = op.reduceAlong(builder, partial, {0, 1}, /*keepDims=*/false),
          last = op.reduceAlong(builder, rest, {0}, /*keepDims=*/false);
    if (cast<ReduceOp>(op.getOperation()).getKind() == ReduceKind::max)
      return MaxOp::create(builder, location, most.getType(), most, last);
    return MinOp::create(builder, location, most.getType(), most, last);
  }

  /// All elements of `input` in parts of a known length, and what is left.
  std::pair<Value, Value> cutRun(OpBuilder &builder, Location location,
                                 Value input) {
    std::pair<Value, Value> &parts =
        partsOf[{input, builder.getInsertionBlock()}];
    if (parts.first)
      return parts;
    Type element = getElementTypeOrSelf(input);
    Value run = asRun(builder, location, input, 0);
    AffineExpr all = getShape(run)[0],
               count = simplify(all.floorDiv(leastTermsAlong)),
               whole = simplify(count * leastTermsAlong);
    auto slice = [&](AffineExpr start, AffineExpr extent) -> Value {
      return SliceOp::create(builder, location, makeType({extent}, element),
                             run, AffineMap::get(0, numSymbols(), start),
                             ArrayRef<int64_t>{1});
    };
    Exprs cut{count, builder.getAffineConstantExpr(leastTermsAlong)};
    Value first = slice(builder.getAffineConstantExpr(0), whole);
    parts = {
        ReshapeOp::create(builder, location, makeType(cut, element), first),
        slice(whole, simplify(all - whole))};
    return parts;
  }
  unsigned numSymbols() const { return symbols.size(); }

  static bool isSumOfFloats(GraphOpInterface op) {
    auto reduce = dyn_cast<ReduceOp>(op.getOperation());
    return reduce && reduce.getKind() == ReduceKind::sum &&
           isa<FloatType>(getElementTypeOrSelf(reduce.getType()));
  }

  /// Whether rows along the innermost dimensions may be far shorter than what
  /// is optimized for, as each of these is open. Of two the inner one is taken
  /// for a row of an image, which is long.
  static bool mayBeNarrow(Value input, const Terms &terms) {
    constexpr int64_t fewest = 3;
    Exprs shape = getShape(input);
    return llvm::count_if(terms.inner,
                          [&](int64_t d) { return !constantOf(shape[d]); }) >=
               fewest &&
           !constantOf(shape[terms.inner.front()]);
  }

  /// The same where the partial results of dimensions that are open would be
  /// rows that may have a single element: the inner dimensions as one run, in
  /// parts of about `wanted` elements, of which the last ends with zeros.
  Value reducedInParts(OpBuilder &builder, GraphOpInterface op, Value input,
                       ArrayRef<int64_t> axes, const Terms &terms,
                       int64_t wanted) {
    Location location = op->getLoc();
    int64_t from = terms.inner.back();
    Value zero =
        scalarConstant(builder, location, getElementTypeOrSelf(input), 0);
    Value run =
        inParts(builder, location, asRun(builder, location, input, from),
                llvm::bit_ceil<uint64_t>(wanted), zero);
    SmallVector<int64_t> left;
    for (int64_t axis : axes)
      if (axis < from)
        left.push_back(axis);
    left.append({from, from + 1});
    Value partial = op.reduceAlong(builder, run, {from + 1}, /*keepDims=*/true);
    Value result = reduced(builder, op, partial, left);
    return ReshapeOp::create(builder, location, keptType(input, axes), result);
  }

  static Type keptType(Value input, ArrayRef<int64_t> axes) {
    Exprs shape = getShape(input);
    for (int64_t axis : axes)
      shape[axis] = getAffineConstantExpr(1, input.getContext());
    return makeType(shape, getElementTypeOrSelf(input));
  }

  /// Dimension `d` as two, the inner one of about `wanted` elements; null where
  /// none divides it.
  Value splitDimension(OpBuilder &builder, Location location, Value input,
                       int64_t d, int64_t wanted) {
    Exprs shape = getShape(input);
    std::optional<int64_t> extent = constantOf(shape[d]);
    if (!extent)
      return {};
    for (int64_t inner = std::min(*extent / 2, 2 * wanted);
         inner >= std::max<int64_t>(wanted / 4, 2); --inner)
      if (*extent % inner == 0) {
        shape[d] = builder.getAffineConstantExpr(*extent / inner);
        shape.insert(shape.begin() + d + 1,
                     builder.getAffineConstantExpr(inner));
        return ReshapeOp::create(builder, location,
                                 makeType(shape, getElementTypeOrSelf(input)),
                                 input);
      }
    return {};
  }

  /// Elements from which on a step more pays.
  static constexpr int64_t leastElements = 1 << 15;
  /// Program instances with which a chip is not busy.
  static constexpr int64_t fewInstances = 8;
  /// Columns that a program instance takes side by side.
  static constexpr int64_t lanes = 32;
  /// A run of memory that is worth being combined by itself.
  static constexpr int64_t shortestRun = 64;
  /// Terms of a partial result: along memory, where the last step in a vector
  /// costs some dozen of them, and across it.
  static constexpr int64_t leastTermsAlong = 1024, leastTermsAcross = 16;

  SmallVector<int64_t> symbols;
  Facts facts;
  /// Of what more than one extreme is taken in a block.
  llvm::DenseMap<std::pair<Value, Block *>, std::pair<Value, Value>> partsOf;
};

} // namespace
