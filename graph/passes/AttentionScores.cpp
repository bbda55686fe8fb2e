#include "graph/passes/AttentionScores.h"
#include "graph/passes/Patterns.h"
#include <cmath>

using namespace mlir;
using namespace charonia::graph;

namespace {

/// The steps from scores to the product behind a term: scales, masks, views.
/// Nothing where there is none.
std::optional<unsigned> distanceToScores(Term x, unsigned depth = 0) {
  x = throughFloatCasts(x);
  if (x.as<MatmulOp>())
    return depth;
  if (depth > 8)
    return std::nullopt;
  auto of = [&](Value next) {
    return distanceToScores(x.with(next), depth + 1);
  };
  if (viewOf(x))
    return of(x.get().getDefiningOp()->getOperand(0));
  if (auto scaled = multipleOf(x))
    return of(scaled->value.get());
  if (auto div = x.as<DivOp>(); div && x.isReal())
    return of(div.getLhs());
  if (!x.as<AddOp>() && !x.as<SelectOp>() && !(x.as<MulOp>() && x.isReal()))
    return std::nullopt;
  std::optional<unsigned> nearest;
  for (Value operand : x.get().getDefiningOp()->getOperands().take_back(2))
    if (std::optional<unsigned> distance = of(operand))
      nearest = std::min(nearest.value_or(*distance), *distance);
  return nearest;
}

/// Whether the first or else the second of two has the scores of a shape: a
/// bias may be made by a product of its own, of other dimensions or further
/// away.
std::optional<unsigned> scoresOf(Term a, Term b, ArrayRef<AffineExpr> shape) {
  const Term sides[] = {a, b};
  std::optional<unsigned> best, nearest;
  for (auto [i, term] : llvm::enumerate(sides)) {
    std::optional<unsigned> distance;
    if (ArrayRef(getShape(term.get())) == shape)
      distance = distanceToScores(term);
    if (distance && (!nearest || *distance < *nearest))
      best = i, nearest = distance;
  }
  return best;
}

/// Walks from the softmax to the product of queries and keys.
class Peeler {
public:
  Peeler(Attention &found, Exprs softmax,
         const std::optional<ScoreView> &canonical)
      : found(found), shape(std::move(softmax)) {
    if (canonical)
      views.push_back(*canonical);
  }

  /// Whether x, what the softmax is of, comes to a product by known steps.
  bool run(Term x) {
    constexpr unsigned most = 16;
    for (unsigned i = 0; i < most; ++i) {
      x = throughFloatCasts(x);
      if ((found.scores = x.as<MatmulOp>()))
        return true;
      if (found.masks.size() > 4 || !step(x))
        return false;
      shape = getShape(x.get());
    }
    return false;
  }

  /// How scores as they are here come to be canonical.
  Route route() const {
    Route result(shape);
    for (const ScoreView &view : llvm::reverse(views))
      result.append(view);
    return result;
  }

private:
  /// One step; false where the form is another, as with a mask that enlarges
  /// the scores.
  bool step(Term &x) {
    if (std::optional<ScoreView> view = viewOf(x)) {
      views.push_back(*view);
      x = x.with(x.get().getDefiningOp()->getOperand(0));
      return true;
    }
    if (auto scaled = multipleOf(x)) {
      // Only positive finite scales keep the order of fills.
      if (!(scaled->factor > 0) || std::isinf(scaled->factor))
        return false;
      found.scale *= scaled->factor;
      x = scaled->value;
      return true;
    }
    if (auto mul = x.as<MulOp>(); mul && x.isReal())
      return scaleRows(x, mul.getLhs(), mul.getRhs());
    if (auto div = x.as<DivOp>(); div && x.isReal())
      return scaleRows(x, div.getLhs(), div.getRhs(), /*divides=*/true);
    // What is added would have to be multiplied, too.
    if (!found.rowScales.empty())
      return false;
    if (auto add = x.as<AddOp>())
      return addMask(x, x.with(add.getLhs()), x.with(add.getRhs()));
    if (auto select = x.as<SelectOp>())
      return fillMask(x, select);
    return false;
  }

  bool scaleRows(Term &x, Value lhs, Value rhs, bool divides = false) {
    Term sides[] = {x.with(lhs), x.with(rhs)};
    std::optional<unsigned> scores = scoresOf(sides[0], sides[1], shape);
    Route way = route();
    if (!scores || (divides && *scores != 0) || !way.canCarry())
      return false;
    Term factor = sides[1 - *scores];
    Exprs canonical = way.shapeOf(getShape(factor.get()));
    if (!canonical.empty() && constantOf(canonical.back()) != 1)
      return false;
    found.rowScales.push_back({factor, way, divides});
    x = sides[*scores];
    return true;
  }

  bool addMask(Term &x, Term a, Term b) {
    std::optional<unsigned> scores = scoresOf(a, b, shape);
    if (!scores)
      return false;
    x = *scores == 0 ? a : b;
    MaskStep mask;
    mask.added = *scores == 0 ? b : a;
    return push(mask, found.scale);
  }

  bool fillMask(Term &x, SelectOp select) {
    Term kept = x.with(select.getLhs()), fill = x.with(select.getRhs());
    std::optional<unsigned> scores = scoresOf(kept, fill, shape);
    if (!scores)
      return false;
    MaskStep mask;
    mask.keep = x.with(select.getCondition());
    if (*scores == 1) {
      std::swap(kept, fill);
      mask.inverted = true;
    }
    auto constant = fill.constant();
    if (!constant || std::isnan(*constant))
      return false;
    mask.fill = *constant * found.scale;
    x = kept;
    return push(mask, 1);
  }

  bool push(const MaskStep &mask, double factor) {
    Route way = route();
    if (!way.canCarry())
      return false;
    found.masks.push_back({mask, way, factor});
    return true;
  }

  Attention &found;
  Exprs shape;
  SmallVector<ScoreView> views; ///< nearest to the softmax first
};

} // namespace

std::optional<Route>
charonia::graph::peelScores(Attention &found, Term x,
                            const std::optional<ScoreView> &canonical) {
  if (!distanceToScores(x))
    return std::nullopt;
  Peeler peeler(found, getShape(x.get()), canonical);
  if (!peeler.run(x))
    return std::nullopt;
  std::reverse(found.masks.begin(), found.masks.end());
  return peeler.route();
}
