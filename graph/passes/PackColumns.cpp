#include "graph/analysis/FusionPlan.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/Views.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_PACKCOLUMNS
#include "graph/passes/Passes.h.inc"

namespace {

struct PackColumns : impl::PackColumnsBase<PackColumns> {
  using PackColumnsBase::PackColumnsBase;

  void runOnOperation() override {
    optimum = getOptimum(getOperation());
    llvm::DenseMap<Value, Value> packed;
    for (auto op : llvm::make_early_inc_range(
             getOperation().getBody().front().getOps<GraphOpInterface>())) {
      for (unsigned operand : op.getStreamedOperands())
        if (wantsRows(op, op->getOperand(operand)))
          setStored(op->getOperand(operand).getDefiningOp());
      std::optional<Columns> columns =
          op.getRole() == OpRole::Contraction ? op.getColumns() : std::nullopt;
      if (!columns || columns->groups > 1 || !wants(op, *columns))
        continue;
      OpOperand &operand = op->getOpOperand(columns->operand);
      Value &view = packed[operand.get()];
      if (!view)
        view = pack(operand.get());
      operand.set(view);
    }
  }

  /// Whether many tiles of rows read columns out of rows so far apart, and so
  /// evenly, that a core's cache has no place for them all, at the sizes to
  /// optimize for.
  bool wants(GraphOpInterface op, const Columns &columns) {
    Value value = op->getOperand(columns.operand);
    Type element = getElementTypeOrSelf(value);
    SmallVector<int64_t> sizes = sizesOf(value);
    unsigned rank = sizes.size();
    if (rank < 2 || columns.operandDim + 1 != rank ||
        element.getIntOrFloatBitWidth() < 16 || !isComputed(value))
      return false;
    int64_t width = sizes.back(), terms = sizes[rank - 2],
            bytes = width * element.getIntOrFloatBitWidth() / 8,
            all = elementsOf(value), results = elementsOf(op->getResult(0));
    if (all <= 0 || results <= 0 || bytes % line != 0 || width <= panel)
      return false;
    int64_t rows = results / (all / terms);
    return rows >= fewestRows && terms > placesOf(bytes);
  }

  /// Rows so many bytes apart, whole lines, of which a core's cache has places
  /// for one line each.
  int64_t placesOf(int64_t bytes) const {
    return sets / std::gcd(bytes / line, sets.getValue()) * ways;
  }

  /// The same of what views make, if many tiles of rows pass over it: it is
  /// stored as it is passed over.
  bool wantsRows(GraphOpInterface op, Value value) {
    if (!composedView(value) || !isComputed(value))
      return false;
    unsigned last = getShape(value).size() - 1;
    int64_t bytes = getElementTypeOrSelf(value).getIntOrFloatBitWidth() / 8;
    auto between = distance(value, last - 1), along = distance(value, last);
    if (along != 1 || !between || *between <= sizesOf(value)[last] ||
        *between * bytes % line != 0)
      return false;
    int64_t rows = sizesOf(op->getResult(0))[last - 1],
            streamed = op.getStreamedOperands().size();
    return rows >= fewestStreams * fewestRows &&
           streamed * sizesOf(value)[last - 1] > placesOf(*between * bytes);
  }

  /// Elements between neighbours along a dimension, where views read them.
  std::optional<int64_t> distance(Value value, unsigned dim) {
    Exprs shape = getShape(value);
    MLIRContext *context = value.getContext();
    AffineMap map = AffineMap::getMultiDimIdentityMap(shape.size(), context);
    while (GraphOpInterface view = composedView(value)) {
      map = composeMaps(view.getOperandMap(0), map, shape);
      value = view->getOperand(0);
    }
    Exprs first(shape.size(), getAffineConstantExpr(0, context)), next = first;
    next[dim] = getAffineConstantExpr(1, context);
    int64_t result = 0, run = 1;
    SmallVector<int64_t> sizes = sizesOf(value);
    for (unsigned i = sizes.size(); i-- > 0; run *= sizes[i]) {
      AffineExpr place = map.getResult(i);
      auto from = evaluate(place.replaceDims(first), optimum),
           to = evaluate(place.replaceDims(next), optimum);
      if (!from || !to)
        return std::nullopt;
      result += (*to - *from) * run;
    }
    return result;
  }

  SmallVector<int64_t> sizesOf(Value value) {
    SmallVector<int64_t> sizes;
    for (AffineExpr extent : getShape(value))
      sizes.push_back(
          std::max<int64_t>(evaluate(extent, optimum).value_or(1), 0));
    return sizes;
  }

  int64_t elementsOf(Value value) {
    int64_t all = 1;
    for (int64_t size : sizesOf(value))
      all = llvm::SaturatingMultiply<uint64_t>(all, size);
    return all;
  }

  /// Weights are packed already, and what is repeated is smaller where it is.
  bool isComputed(Value value) {
    int64_t elements = elementsOf(value);
    while (GraphOpInterface view = composedView(value)) {
      value = view->getOperand(0);
      if (elementsOf(value) < elements)
        return false;
    }
    Operation *op = value.getDefiningOp();
    return !op || op->getNumOperands() > 0;
  }

  /// The views of panels [N / panel, .., K, panel] that give back [.., K, N];
  /// the panels are stored.
  Value pack(Value value) {
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    Location location = value.getLoc();
    Type element = getElementTypeOrSelf(value);
    Exprs shape = getShape(value), padded = shape, split = shape;
    AffineExpr width = builder.getAffineConstantExpr(panel),
               count = simplify((shape.back() + (panel - 1)).floorDiv(panel));
    padded.back() = simplify(count * panel);
    split.back() = count;
    split.push_back(width);
    unsigned last = shape.size() - 1;
    SmallVector<int64_t> inFront{last}, back;
    for (unsigned d = 0; d < last; ++d) {
      inFront.push_back(d);
      back.push_back(d + 1);
    }
    inFront.push_back(last + 1);
    back.append({0, last + 1});
    auto permuted = [&](Value x, ArrayRef<int64_t> permutation) -> Value {
      Exprs from = getShape(x), to;
      for (int64_t d : permutation)
        to.push_back(from[d]);
      return TransposeOp::create(builder, location, makeType(to, element), x,
                                 permutation);
    };
    auto reshaped = [&](Value x, ArrayRef<AffineExpr> to) -> Value {
      return ReshapeOp::create(builder, location, makeType(to, element), x);
    };
    if (padded != shape)
      value = zeroPadded(builder, location, value, padded,
                         SmallVector<int64_t>(shape.size(), 0));
    Value panels = permuted(reshaped(value, split), inFront);
    setStored(panels.getDefiningOp());
    Value result = reshaped(permuted(panels, back), padded);
    if (padded == shape)
      return result;
    SmallVector<AffineExpr> starts(shape.size(),
                                   builder.getAffineConstantExpr(0));
    return SliceOp::create(builder, location, makeType(shape, element), result,
                           AffineMap::get(0, 0, starts, builder.getContext()),
                           SmallVector<int64_t>(shape.size(), 1));
  }

  static constexpr int64_t line = 64;
  /// Tiles of so many times `fewestRows` repay a kernel that stores what they
  /// pass over.
  static constexpr int64_t fewestStreams = 8;
  SmallVector<int64_t> optimum;
};

} // namespace
} // namespace charonia::graph
