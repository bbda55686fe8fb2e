#include "graph/analysis/ViewMaps.h"

using namespace mlir;

namespace charonia::graph {

namespace {
/// A coordinate that is another one, rolled: as many places on, and again from
/// the first behind the last.
struct Rolled {
  unsigned dim;
  int64_t by, extent;
};
} // namespace

static std::optional<Rolled> rolledOf(AffineExpr e) {
  auto wrapped = dyn_cast<AffineBinaryOpExpr>(e);
  if (!wrapped || wrapped.getKind() != AffineExprKind::Mod)
    return std::nullopt;
  auto moved = dyn_cast<AffineBinaryOpExpr>(wrapped.getLHS());
  if (!moved || moved.getKind() != AffineExprKind::Add)
    return std::nullopt;
  auto dim = dyn_cast<AffineDimExpr>(moved.getLHS());
  std::optional<int64_t> by = constantOf(moved.getRHS()),
                         extent = constantOf(wrapped.getRHS());
  if (!dim || !by || !extent || *by < 0 || *by >= *extent)
    return std::nullopt;
  return Rolled{dim.getPosition(), *by, *extent};
}

/// The inverse of a map from coordinates of shape `to` to coordinates of shape
/// `from`, where each coordinate is passed on as it is, or rolled, and nothing
/// is repeated.
static AffineMap invert(AffineMap map, ArrayRef<AffineExpr> from,
                        ArrayRef<AffineExpr> to) {
  MLIRContext *context = map.getContext();
  SmallVector<AffineExpr> results(to.size());
  for (auto [i, e] : llvm::enumerate(map.getResults())) {
    AffineExpr own = getAffineDimExpr(i, context);
    std::optional<unsigned> dim;
    if (auto d = dyn_cast<AffineDimExpr>(e)) {
      dim = d.getPosition();
    } else if (auto rolled = rolledOf(e);
               rolled && constantOf(from[i]) == rolled->extent) {
      dim = rolled->dim;
      own = (own + (rolled->extent - rolled->by)) % rolled->extent;
    }
    if (dim && !results[*dim]) {
      if (to[*dim] != from[i])
        return {}; // part of the operand, as a slice gives it
      results[*dim] = own;
    } else if (constantOf(from[i]) != 1) {
      return {};
    }
  }
  for (auto [d, e] : llvm::enumerate(results)) {
    if (e)
      continue;
    if (constantOf(to[d]) != 1)
      return {}; // repeated along d
    e = getAffineConstantExpr(0, context);
  }
  return AffineMap::get(from.size(), 0, results, context);
}

AffineMap getForwardMap(GraphOpInterface op, unsigned operand) {
  AffineMap map = op.getOperandMap(operand);
  if (!map)
    return {};
  Exprs from = getShape(op->getOperand(operand)),
        to = getShape(op->getResult(0));
  if (AffineMap inverse = invert(map, from, to))
    return inverse;
  if (isSameBytes(op))
    return reshapeMap(to, from, op->getContext());
  return {};
}

/// Takes the views of the next step off, with the map back through them all;
/// gives the map on, null where there is none.
static AffineMap takeStep(ArrayRef<GraphOpInterface> &views, AffineMap &back,
                          bool mayRoll) {
  constexpr size_t mostTogether = 4;
  GraphOpInterface view = views.consume_front();
  back = view.getOperandMap(0);
  AffineMap step = getForwardMap(view, 0);
  Exprs from = getShape(view->getOperand(0));
  for (size_t n = 1; mayRoll && !step && back && n < mostTogether; ++n) {
    if (views.empty())
      return {};
    view = views.consume_front();
    Exprs to = getShape(view->getResult(0));
    AffineMap next = view.getOperandMap(0);
    back = next ? composeMaps(back, next, to) : next;
    step = back ? invert(back, from, to) : back;
  }
  return step;
}

AffineMap composeForward(ArrayRef<GraphOpInterface> views, AffineMap map,
                         ArrayRef<AffineExpr> extents, bool mayRoll) {
  map = simplify(map, extents);
  while (!views.empty()) {
    AffineMap back, step = takeStep(views, back, mayRoll);
    if (!step)
      return {};
    AffineMap next = composeMaps(step, map, extents);
    if (composeMaps(back, next, extents).getResults() != map.getResults())
      return {};
    map = next;
  }
  return map;
}

bool isSameBytes(Operation *op) {
  auto view = dyn_cast<GraphOpInterface>(op);
  if (!view || view.getRole() != OpRole::View)
    return false;
  Exprs from = getShape(op->getOperand(0)), to = getShape(op->getResult(0));
  MLIRContext *context = op->getContext();
  if (numElements(from, context) != numElements(to, context))
    return false;
  return simplify(view.getOperandMap(0), to) ==
         simplify(reshapeMap(from, to, context), to);
}

unsigned countTerms(AffineMap map, unsigned most) {
  SmallVector<AffineExpr> work;
  if (map)
    work.append(map.getResults().begin(), map.getResults().end());
  unsigned terms = 0;
  while (!work.empty() && terms < most) {
    ++terms;
    if (auto binary = dyn_cast<AffineBinaryOpExpr>(work.pop_back_val()))
      work.append({binary.getLHS(), binary.getRHS()});
  }
  return terms;
}

bool keepsInnermost(AffineMap map, ArrayRef<AffineExpr> shape,
                    ArrayRef<AffineExpr> memory) {
  constexpr int64_t shortestRun = 8;
  int64_t dim = shape.size() - 1, last = memory.size() - 1;
  while (dim >= 0 && constantOf(shape[dim]) == 1)
    --dim;
  while (last >= 0 && constantOf(memory[last]) == 1)
    --last;
  if (dim < 0 || last < 0)
    return true;
  AffineExpr e = map.getResult(last);
  if (auto wrapped = dyn_cast<AffineBinaryOpExpr>(e);
      wrapped && e.getKind() == AffineExprKind::Mod)
    if (constantOf(wrapped.getRHS()).value_or(0) >= shortestRun)
      e = wrapped.getLHS();
  AffineExpr d = getAffineDimExpr(dim, map.getContext());
  return e.isFunctionOfDim(dim) && !simplify(e - d).isFunctionOfDim(dim);
}

} // namespace charonia::graph
