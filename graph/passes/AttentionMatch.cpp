#include "graph/passes/AttentionScores.h"

using namespace mlir;
using namespace charonia::graph;

namespace {

/// softmax, perhaps with rows of NaN replaced by zeros.
Term probabilities(Term p, RowGuard &guard) {
  auto select = p.as<SelectOp>();
  if (!select)
    return p;
  Term kept = p.with(select.getRhs());
  Term tested = p.with(select.getCondition()).operand<IsNanOp>();
  if (tested != kept || !p.with(select.getLhs()).is(0))
    return {};
  guard = RowGuard::nan;
  return throughFloatCasts(kept);
}

/// The softmax that an operand of a product has, and how its dimensions come to
/// be those of that operand.
struct Probabilities {
  SoftmaxOp softmax;
  Term input;
  Exprs own;  ///< the operand's shape, without what is only repeated
  Route back; ///< from there to canonical scores
  std::optional<ScoreView> canonical;
};

/// `rows` and `columns` are the dimensions of operand `p` of these.
std::optional<Probabilities> probabilitiesOf(Term p, unsigned rows,
                                             RowGuard &guard) {
  p = throughFloatCasts(p);
  // The product repeats them just as well.
  if (auto repeated = p.as<BroadcastOp>()) {
    Exprs to = getShape(p.get()), from = getShape(repeated->getOperand(0));
    if (from.size() < 2 ||
        ArrayRef(from).take_back(2) != ArrayRef(to).take_back(2))
      return std::nullopt;
    rows -= to.size() - from.size();
    p = throughFloatCasts(p.with(repeated->getOperand(0)));
  }
  Exprs own = getShape(p.get());
  unsigned columns = 2 * own.size() - 3 - rows;
  SmallVector<ScoreView> views;
  while (std::optional<ScoreView> view = viewOf(p)) {
    views.push_back(*view);
    p = throughFloatCasts(p.with(p.get().getDefiningOp()->getOperand(0)));
  }
  p = probabilities(p, guard);
  auto softmax = p ? p.as<SoftmaxOp>() : SoftmaxOp();
  if (!softmax || softmax.getLog())
    return std::nullopt;
  Route above(getShape(softmax.getInput()));
  for (const ScoreView &view : llvm::reverse(views))
    above.append(view);
  std::optional<Route> back = above.reversed();
  std::optional<unsigned> row = back ? back->placeOf(rows) : std::nullopt,
                          column = back ? back->placeOf(columns) : std::nullopt;
  if (!row || !column || *column != (uint64_t)softmax.getAxis())
    return std::nullopt;
  Probabilities result{softmax, p.with(softmax.getInput()), own, *back, {}};
  SmallVector<int64_t> order;
  for (unsigned i = 0; i < back->to().size(); ++i)
    if (i != *row && i != *column)
      order.push_back(i);
  llvm::append_values(order, *row, *column);
  Route turn{Exprs(back->to())};
  turn.appendTranspose(order);
  if (!turn.empty()) {
    result.canonical = ScoreView{ScoreView::Transpose, Exprs(turn.from()),
                                 Exprs(turn.to()), order};
    result.back.append(*result.canonical);
  }
  return result;
}

/// Operands of the product of queries and keys, which may be in either order.
bool setScores(Attention &found, Term root, const Route &route) {
  unsigned rank = route.from().size(), last = found.shape.size() - 1;
  Term lhs = root.with(found.scores.getLhs()),
       rhs = root.with(found.scores.getRhs());
  AffineExpr width = getShape(lhs.get()).back();
  // Scores of no terms are zeros, no product.
  if (constantOf(width) == 0)
    return false;
  std::optional<Route> left = route.with({{rank - 1, width}}),
                       right = route.with({{rank - 2, width}});
  std::optional<unsigned> row = route.placeOf(rank - 2),
                          column = route.placeOf(rank - 1);
  if (!left || !right || !row || !column)
    return false;
  if (*row == last && *column == last - 1) {
    std::swap(lhs, rhs);
    std::swap(left, right);
  } else if (*row != last - 1 || *column != last) {
    return false;
  }
  found.query = lhs, found.queryRoute = *left;
  found.key = rhs, found.keyRoute = *right;
  return true;
}

/// The other operand of the last product, and what that gives. `rows` is the
/// dimension of rows in its operand of probabilities.
bool setValue(Attention &found, Term value, const Probabilities &p,
              unsigned rows) {
  Exprs whole = getShape(found.output.getResult()), own = p.own,
        shape = getShape(value.get());
  unsigned rank = own.size(), last = found.shape.size() - 1;
  // Of what the values alone repeat each probability serves several.
  Route back = p.back;
  if (whole.size() != rank ||
      ArrayRef(whole).drop_back(2) != ArrayRef(own).drop_back(2)) {
    if (!back.empty())
      return false;
    back = Route(withLeading(ArrayRef(whole).drop_back(2), own));
    rows += whole.size() - rank;
    rank = whole.size();
    last = rank - 1;
  }
  unsigned columns = 2 * rank - 3 - rows;
  // Probabilities are left of values, or transposed on the other side.
  AffineExpr width = columns > rows ? shape.back() : shape[shape.size() - 2],
             count = found.shape.back();
  std::optional<Route> there = back.with({{rows, count}, {columns, width}}),
                       away = back.reversed();
  if (away)
    away = away->with({{last, width}});
  if (!there || !away)
    return false;
  found.value = value;
  found.valueRoute = *there;
  found.resultRoute = *away;
  return true;
}

std::optional<Attention> find(Term root, bool isRight) {
  Attention found;
  MatmulOp output = found.output = root.as<MatmulOp>();
  Term p = root.with(isRight ? output.getRhs() : output.getLhs()),
       value = root.with(isRight ? output.getLhs() : output.getRhs());
  unsigned rank = getShape(p.get()).size();
  std::optional<Probabilities> of =
      probabilitiesOf(p, isRight ? rank - 1 : rank - 2, found.guard);
  if (!of)
    return std::nullopt;
  found.shape = Exprs(of->back.to());
  std::optional<Route> route = peelScores(found, of->input, of->canonical);
  if (!route)
    return std::nullopt;
  Type element = getElementTypeOrSelf(output);
  unsigned rows = of->own.size() - (isRight ? 1 : 2);
  if (!isa<FloatType>(element) ||
      getElementTypeOrSelf(found.scores) != element ||
      !setScores(found, root, *route) || !setValue(found, value, *of, rows))
    return std::nullopt;
  return found;
}

} // namespace

std::optional<Attention> charonia::graph::findAttention(Term product) {
  std::optional<Attention> found = find(product, /*isRight=*/false);
  return found ? found : find(product, /*isRight=*/true);
}
