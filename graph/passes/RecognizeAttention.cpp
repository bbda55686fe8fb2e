#include "graph/passes/AttentionMasks.h"
#include "graph/passes/Patterns.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace charonia::graph;

namespace {

/// softmax(scale * Q K^T + masks) V as it is found; `scores` is the product of
/// Q and K^T.
struct Attention {
  MatmulOp output, scores;
  SoftmaxOp softmax;
  RowGuard guard = RowGuard::none;
  double scale = 1;
  SmallVector<MaskStep> masks;
};

/// softmax, perhaps with rows of NaN replaced by zeros.
Term probabilities(Term p, RowGuard &guard) {
  p = throughFloatCasts(p);
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

/// What is added to scores in another shape of theirs: reshape(reshape(scores)
/// + mask), as of windows that were one image.
struct ReshapedSum {
  Term scores, mask;
  AddOp sum;
};
std::optional<ReshapedSum> sumUnderReshape(Term x) {
  auto outer = x.as<ReshapeOp>();
  if (!outer)
    return std::nullopt;
  Term sum = throughFloatCasts(x.with(outer->getOperand(0)));
  auto add = sum.as<AddOp>();
  if (!add)
    return std::nullopt;
  for (unsigned i : {0, 1}) {
    auto inner =
        throughFloatCasts(sum.with(add->getOperand(i))).as<ReshapeOp>();
    if (inner && getShape(inner->getOperand(0)) == getShape(x.get()))
      return ReshapedSum{x.with(inner->getOperand(0)),
                         x.with(add->getOperand(1 - i)), add};
  }
  return std::nullopt;
}

/// What broadcasts to `from`, as what broadcasts to `to`: of the same elements
/// in another shape, whose dimensions are runs of those of `from`. The empty
/// term where they are not.
Term inShape(Term mask, ArrayRef<AffineExpr> from, ArrayRef<AffineExpr> to) {
  AffineExpr one = getAffineConstantExpr(1, mask.get().getContext());
  Exprs own = getShape(mask.get()), whole, result;
  own.insert(own.begin(), from.size() - own.size(), one);
  size_t at = 0;
  for (auto [i, extent] : llvm::enumerate(to)) {
    AffineExpr covered = one;
    size_t first = at;
    while (at < from.size() && (covered != extent || i + 1 == to.size()))
      covered = simplify(covered * from[at++]);
    if (covered != extent)
      return {};
    // Repeated along all of the run, or else written out.
    bool repeats = llvm::all_of(llvm::seq(first, at), [&](size_t j) {
      return constantOf(own[j]) == 1;
    });
    for (size_t j = first; j < at; ++j)
      whole.push_back(repeats ? one : from[j]);
    result.push_back(repeats ? one : extent);
  }
  if (at != from.size())
    return {};
  if (own != getShape(mask.get()))
    mask = mask.make<ReshapeOp>(makeType(own, mask.element()), mask.get());
  if (whole != own)
    mask = mask.make<BroadcastOp>(makeType(whole, mask.element()), mask.get());
  return mask.make<ReshapeOp>(makeType(result, mask.element()), mask.get());
}

/// Whether the chain of scales and masks from here ends in a matmul.
bool leadsToScores(Term x, int depth = 0) {
  x = throughFloatCasts(x);
  if (x.as<MatmulOp>())
    return true;
  if (depth > 8)
    return false;
  if (std::optional<ReshapedSum> sum = sumUnderReshape(x))
    return leadsToScores(sum->scores, depth + 1);
  if (auto scaled = multipleOf(x))
    return leadsToScores(scaled->value, depth + 1);
  if (auto add = x.as<AddOp>())
    return leadsToScores(x.with(add.getLhs()), depth + 1) ||
           leadsToScores(x.with(add.getRhs()), depth + 1);
  if (auto select = x.as<SelectOp>())
    return leadsToScores(x.with(select.getLhs()), depth + 1) ||
           leadsToScores(x.with(select.getRhs()), depth + 1);
  return false;
}

/// One step from the softmax toward the matmul; false where the form is
/// another.
bool peel(Term &x, Attention &found) {
  if (std::optional<ReshapedSum> sum = sumUnderReshape(x)) {
    MaskStep mask;
    mask.added =
        inShape(sum->mask, getShape(sum->sum.getResult()), getShape(x.get()));
    if (!mask.added)
      return false;
    if (found.scale != 1)
      mask.added = mask.added * found.scale;
    found.masks.push_back(mask);
    x = sum->scores;
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
  if (auto add = x.as<AddOp>()) {
    Term a = x.with(add.getLhs()), b = x.with(add.getRhs());
    if (!leadsToScores(a))
      std::swap(a, b);
    MaskStep mask;
    mask.added = found.scale == 1 ? b : b * found.scale;
    found.masks.push_back(mask);
    x = a;
    return true;
  }
  if (auto select = x.as<SelectOp>()) {
    MaskStep mask;
    mask.keep = x.with(select.getCondition());
    Term a = x.with(select.getLhs()), fill = x.with(select.getRhs());
    if (!leadsToScores(a)) {
      std::swap(a, fill);
      mask.inverted = true;
    }
    auto constant = fill.constant();
    if (!constant || std::isnan(*constant))
      return false;
    mask.fill = *constant * found.scale;
    found.masks.push_back(mask);
    x = a;
    return true;
  }
  return false;
}

std::optional<Attention> match(MatmulOp output, Term lhs) {
  Attention found;
  found.output = output;
  Term p = probabilities(lhs, found.guard);
  found.softmax = p ? p.as<SoftmaxOp>() : SoftmaxOp();
  if (!found.softmax || found.softmax.getLog() ||
      (int64_t)found.softmax.getAxis() + 1 !=
          (int64_t)getShape(found.softmax.getInput()).size())
    return std::nullopt;
  Term x = throughFloatCasts(p.with(found.softmax.getInput()));
  Exprs shape = getShape(x.get());
  if (!leadsToScores(x))
    return std::nullopt;
  while (!(found.scores = x.as<MatmulOp>())) {
    if (found.masks.size() > 4 || !peel(x, found))
      return std::nullopt;
    x = throughFloatCasts(x);
    // A mask that enlarges the scores is none.
    if (getShape(x.get()) != shape)
      return std::nullopt;
  }
  std::reverse(found.masks.begin(), found.masks.end());
  Type element = getElementTypeOrSelf(output);
  if (!isa<FloatType>(element) ||
      getElementTypeOrSelf(found.scores) != element || shape.size() > 4)
    return std::nullopt;
  return found;
}

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

/// The shape [batch, heads, rows, columns] of what broadcasts to scores of a
/// rank.
Exprs fourDims(Exprs shape, size_t rank, MLIRContext *context) {
  AffineExpr one = getAffineConstantExpr(1, context);
  while (shape.size() < rank)
    shape.insert(shape.begin(), one);
  if (shape.size() == 3)
    shape.insert(shape.begin() + 1, one);
  while (shape.size() < 4)
    shape.insert(shape.begin(), one);
  return shape;
}
Term asFourDims(Term x, size_t rank) {
  Exprs shape = fourDims(getShape(x.get()), rank, x.get().getContext());
  return shape.size() == getShape(x.get()).size()
             ? x
             : x.make<ReshapeOp>(makeType(shape, x.element()), x.get());
}

/// x with these first dimensions, broadcast where it has 1; the empty term
/// where it has others.
Term withLeading(Term x, AffineExpr batch, AffineExpr heads) {
  Exprs shape = getShape(x.get()), wanted = shape;
  wanted[0] = batch;
  wanted[1] = heads;
  for (unsigned i : {0, 1})
    if (shape[i] != wanted[i] && constantOf(shape[i]) != 1)
      return {};
  return shape == wanted
             ? x
             : x.make<BroadcastOp>(makeType(wanted, x.element()), x.get());
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
bool isWide(MatmulOp op) {
  constexpr int64_t mostColumns = 256;
  return evaluate(getShape(op.getResult()).back(), getOptimum(op))
             .value_or(mostColumns) > mostColumns;
}

LogicalResult recognizeAttention(MatmulOp op, PatternRewriter &rewriter) {
  if (isWide(op))
    return failure();
  Term root(op.getResult(), rewriter, op.getLoc());
  std::optional<Attention> found = match(op, root.with(op.getLhs()));
  if (!found)
    return failure();
  Exprs scores = getShape(found->scores.getResult());
  if (scores != getShape(op.getLhs()) ||
      getShape(op.getResult()).size() != scores.size())
    return failure();

  double scale = found->scale;
  Term q = withoutScale(root.with(found->scores.getLhs()), scale);
  Term k = withoutScale(root.with(found->scores.getRhs()), scale);
  SmallVector<int64_t> swapped(getShape(k.get()).size());
  std::iota(swapped.begin(), swapped.end(), 0);
  std::swap(swapped[swapped.size() - 2], swapped[swapped.size() - 1]);
  size_t rank = scores.size();
  Term v = asFourDims(root.with(op.getRhs()), rank);
  k = inType(k.make<TransposeOp>(k.get(), swapped), v.element());
  k = asFourDims(k, rank);
  q = asFourDims(inType(q, v.element()), rank);

  Exprs result = getShape(op.getResult()),
        four = fourDims(result, rank, op.getContext());
  // Keys and values of one head serve all queries; else they have as many.
  AffineExpr keyHeads = getShape(k.get())[1];
  if (constantOf(keyHeads) != 1 || getShape(v.get())[1] != keyHeads)
    keyHeads = four[1];
  q = withLeading(q, four[0], four[1]);
  k = withLeading(k, four[0], keyHeads);
  v = withLeading(v, four[0], keyHeads);
  if (!q || !k || !v)
    return failure();

  Masking masking = combineMasks(found->masks, scores, root.element());
  for (Term *term : {&masking.mask, &masking.bias})
    if (*term && getShape(term->get()).size() == 3)
      *term = asFourDims(*term, rank);

  Value attention =
      AttentionOp::create(rewriter, op.getLoc(), makeType(four, root.element()),
                          q.get(), k.get(), v.get(), masking.mask.get(),
                          masking.bias.get(), rewriter.getF64FloatAttr(scale),
                          masking.causal ? rewriter.getUnitAttr() : UnitAttr(),
                          rewriter.getF64FloatAttr(masking.fill),
                          RowGuardAttr::get(op.getContext(), found->guard));
  if (four != result)
    attention =
        ReshapeOp::create(rewriter, op.getLoc(), op.getType(), attention);
  rewriter.replaceOp(op, attention);
  return success();
}

} // namespace

void charonia::graph::addAttentionPatterns(RewritePatternSet &patterns) {
  patterns.add(recognizeAttention);
}
