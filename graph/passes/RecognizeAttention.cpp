#include "graph/passes/AttentionMatch.h"
#include "graph/passes/Patterns.h"
#include <cmath>

using namespace mlir;
using namespace charonia::graph;

namespace {

/// Takes constant factors off a value, also below views that nothing else
/// reads.
Term withoutScale(Term x, double &scale) {
  if (auto scaled = multipleOf(x)) {
    bool matters = scaled->factor != 0 && !std::isinf(scaled->factor);
    if (!matters || scaled->value.get().getType() != x.get().getType())
      return x;
    scale *= scaled->factor;
    return withoutScale(scaled->value, scale);
  }
  auto view = x.get().getDefiningOp<GraphOpInterface>();
  if (!view || view.getRole() != OpRole::View || !x.get().hasOneUse())
    return x;
  double inner = 1;
  Term rest = withoutScale(x.with(view->getOperand(0)), inner);
  if (inner == 1)
    return x;
  scale *= inner;
  return rest.under(view);
}

/// Queries and keys may be smaller floats than values are, whose products are
/// wide.
Term inType(Term x, Type element) {
  return x.element() == element ? x : x.make<CastOp>(x.get(), element);
}

/// Whether a row of the result is so wide that it should not wait, beside the
/// maximum and the sum of its scores, for the last key: three kernels are
/// faster then, and shorter. A channel attention has as many columns as the
/// image has pixels.
bool isWide(const Attention &found) {
  constexpr int64_t mostColumns = 256;
  return evaluate(found.resultRoute.from().back(), getOptimum(found.output))
             .value_or(mostColumns) > mostColumns;
}

bool isOne(AffineExpr extent) { return constantOf(extent) == 1; }

/// The dimensions of canonical scores in front of rows and columns, and what of
/// them masks, keys and values have.
struct Leading {
  Exprs all, added, kept, keys, values;

  explicit Leading(const Attention &found)
      : all(found.resultRoute.from().drop_back(2)),
        one(getAffineConstantExpr(1, found.shape[0].getContext())) {
    added = kept = keys = values = Exprs(all.size(), one);
    for (const FoundMask &mask : found.masks) {
      join(added, mask.step.added, mask.route);
      join(kept, mask.step.keep, mask.route);
    }
    join(keys, found.key, found.keyRoute);
    join(values, found.value, found.valueRoute);
  }

  /// Those of keys and values if the first `cut` dimensions become a batch:
  /// heads that are neighbours may share them.
  Exprs sharedKeys(size_t cut) const {
    Exprs shared = all;
    for (size_t i = all.size();
         i > cut && isOne(keys[i - 1]) && isOne(values[i - 1]); --i)
      shared[i - 1] = keys[i - 1];
    return shared;
  }

private:
  void join(Exprs &leading, Term term, const Route &route) const {
    if (!term)
      return;
    Exprs shape = route.shapeOf(getShape(term.get()));
    while (shape.size() < all.size() + 2)
      shape.insert(shape.begin(), one);
    for (size_t i = 0; i < all.size(); ++i)
      if (isOne(leading[i]))
        leading[i] = shape[i];
  }

  AffineExpr one;
};

/// Whether these dimensions of something are repeated along some of `whole` and
/// not along others, so that it has to be written out where they are one.
bool isMixed(ArrayRef<AffineExpr> some, ArrayRef<AffineExpr> whole) {
  bool repeats = false, differs = false;
  for (auto [extent, all] : llvm::zip(some, whole))
    if (!isOne(all))
      (isOne(extent) ? repeats : differs) = true;
  return repeats && differs;
}

/// Of how many of the first dimensions a batch is made, so that the least has
/// to be written out. The last one is what is mostly called a head.
size_t chooseCut(const Leading &leading) {
  size_t rank = leading.all.size();
  if (rank <= 2)
    return std::min<size_t>(rank, 1);
  size_t best = 0, least = 0;
  for (size_t cut = rank - 1; cut > 0; --cut) {
    Exprs shared = leading.sharedKeys(cut);
    auto mixedParts = [&](ArrayRef<AffineExpr> own,
                          ArrayRef<AffineExpr> whole) {
      return size_t(isMixed(own.take_front(cut), whole.take_front(cut))) +
             isMixed(own.drop_front(cut), whole.drop_front(cut));
    };
    size_t mixed = mixedParts(leading.added, leading.all) +
                   mixedParts(leading.kept, leading.all) +
                   mixedParts(leading.keys, shared) +
                   mixedParts(leading.values, shared);
    if (!best || mixed < least)
      best = cut, least = mixed;
  }
  return best;
}

/// Batches of canonical scores as two: batches and heads.
struct Batches {
  Exprs all, keys; ///< of scores; of keys and values, where heads may share
  AffineExpr batch, heads, keyHeads;
};

std::optional<Batches> batchesOf(const Attention &found) {
  MLIRContext *context = found.shape[0].getContext();
  Leading leading(found);
  size_t cut = chooseCut(leading);
  Batches batches{leading.all, leading.sharedKeys(cut), {}, {}, {}};
  auto count = [&](ArrayRef<AffineExpr> dims) {
    return numElements(dims, context);
  };
  batches.batch = count(ArrayRef(batches.all).take_front(cut));
  batches.heads = count(ArrayRef(batches.all).drop_front(cut));
  batches.keyHeads = count(ArrayRef(batches.keys).drop_front(cut));
  // Whatever the last two dimensions are.
  ArrayRef<AffineExpr> result = found.resultRoute.from();
  for (auto [from, heads] : {std::pair(batches.all, batches.heads),
                             std::pair(batches.keys, batches.keyHeads)}) {
    Route route(withLeading(from, result));
    route.appendReshape(withLeading(Exprs{batches.batch, heads}, result));
    if (!route.canCarry())
      return std::nullopt;
  }
  return batches;
}

/// What broadcasts to a shape of these batches, in four dimensions.
Term inFour(Term x, ArrayRef<AffineExpr> batches, AffineExpr batch,
            AffineExpr heads) {
  x = withRank(x, batches.size() + 2);
  Exprs own = getShape(x.get());
  Route route(withLeading(batches, own));
  route.appendReshape(withLeading(Exprs{batch, heads}, own));
  return route.carry(x);
}

/// The same, with all batches and heads.
Term inFull(Term x, ArrayRef<AffineExpr> batches, AffineExpr batch,
            AffineExpr heads) {
  x = inFour(x, batches, batch, heads);
  Exprs shape = getShape(x.get()),
        wanted = withLeading(Exprs{batch, heads}, shape);
  return shape == wanted
             ? x
             : x.make<BroadcastOp>(makeType(wanted, x.element()), x.get());
}

/// Queries in four dimensions, multiplied with what rows of scores are.
Term queriesOf(const Attention &found, Term q, const Batches &batches) {
  q = inFull(found.queryRoute.carry(q), batches.all, batches.batch,
             batches.heads);
  for (const RowScale &scale : found.rowScales) {
    Term factor = scale.route.carry(scale.factor);
    if (getShape(factor.get()).size() > 2)
      factor = inFour(factor, batches.all, batches.batch, batches.heads);
    q = inType(q, factor.element());
    q = scale.divides ? q / factor : q * factor;
  }
  return q;
}

/// The masks of canonical scores, scaled.
SmallVector<MaskStep> stepsOf(const Attention &found) {
  SmallVector<MaskStep> steps;
  for (const FoundMask &mask : found.masks) {
    MaskStep step = mask.step;
    for (Term *term : {&step.added, &step.keep})
      if (*term)
        *term = mask.route.carry(*term);
    if (step.added && mask.factor != 1)
      step.added = step.added * mask.factor;
    steps.push_back(step);
  }
  return steps;
}

LogicalResult recognizeAttention(MatmulOp op, PatternRewriter &rewriter) {
  Term root(op.getResult(), rewriter, op.getLoc());
  std::optional<Attention> found = findAttention(root);
  if (!found || isWide(*found))
    return failure();
  std::optional<Batches> batches = batchesOf(*found);
  if (!batches)
    return failure();

  AffineExpr batch = batches->batch, heads = batches->heads;
  double scale = found->scale;
  Term q = withoutScale(found->query, scale);
  Term k = withoutScale(found->key, scale);
  Term v = inFull(found->valueRoute.carry(found->value), batches->keys, batch,
                  batches->keyHeads);
  q = inType(queriesOf(*found, q, *batches), v.element());
  k = inType(
      inFull(found->keyRoute.carry(k), batches->keys, batch, batches->keyHeads),
      v.element());
  k = k.make<TransposeOp>(k.get(), SmallVector<int64_t>{0, 1, 3, 2});

  Masking masking = combineMasks(stepsOf(*found), found->shape, root.element());
  for (Term *term : {&masking.mask, &masking.bias})
    if (*term && getShape(term->get()).size() > 2)
      *term = inFour(*term, batches->all, batch, heads);

  Exprs four = withLeading(Exprs{batch, heads}, found->resultRoute.from());
  Value attention =
      AttentionOp::create(rewriter, op.getLoc(), makeType(four, root.element()),
                          q.get(), k.get(), v.get(), masking.mask.get(),
                          masking.bias.get(), rewriter.getF64FloatAttr(scale),
                          masking.causal ? rewriter.getUnitAttr() : UnitAttr(),
                          rewriter.getF64FloatAttr(masking.fill),
                          RowGuardAttr::get(op.getContext(), found->guard));
  Route away(four);
  away.appendReshape(Exprs(found->resultRoute.from()));
  away.append(found->resultRoute);
  rewriter.replaceOp(op, away.carry(root.with(attention)).get());
  return success();
}

} // namespace

void charonia::graph::addAttentionPatterns(RewritePatternSet &patterns) {
  patterns.add(recognizeAttention);
}
