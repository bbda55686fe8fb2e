#include "graph/passes/AttentionMasks.h"
#include "graph/passes/Patterns.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace charonia::graph;

namespace {

/// softmax(scale * Q K^T + masks) V as it is found; `scores` is the product of
/// Q and K^T. Masks are in the shape that the softmax has.
struct Attention {
  MatmulOp output, scores;
  SoftmaxOp softmax;
  Exprs shape;
  RowGuard guard = RowGuard::none;
  double scale = 1;
  SmallVector<MaskStep> masks;
};

/// What a reshape that leaves rows and columns as they are is of: scores of
/// windows that were one image, of batches and heads that are one dimension.
Term underReshape(Term x) {
  auto reshape = x.as<ReshapeOp>();
  if (!reshape)
    return {};
  Term inner = x.with(reshape->getOperand(0));
  Exprs outside = getShape(x.get()), inside = getShape(inner.get());
  if (outside.size() < 2 || inside.size() < 2 ||
      ArrayRef(outside).take_back(2) != ArrayRef(inside).take_back(2))
    return {};
  return inner;
}

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

/// Dimensions of two shapes of the same elements: some of one that are one of
/// the other.
struct Run {
  unsigned from, fromEnd, to, toEnd;
};
std::optional<SmallVector<Run>> runsOf(ArrayRef<AffineExpr> from,
                                       ArrayRef<AffineExpr> to) {
  SmallVector<Run> runs;
  // The end of a run of `many` from `at` on that has as many elements.
  auto endOf = [](ArrayRef<AffineExpr> many, unsigned at, AffineExpr extent,
                  bool isLast) -> unsigned {
    AffineExpr covered = many[at++];
    while (at < many.size() && (covered != extent || isLast))
      covered = simplify(covered * many[at++]);
    return covered == extent ? at : 0;
  };
  unsigned i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    unsigned iEnd = endOf(from, i, to[j], j + 1 == to.size()), jEnd = j + 1;
    if (!iEnd) {
      iEnd = i + 1;
      jEnd = endOf(to, j, from[i], iEnd == from.size());
    }
    if (!jEnd)
      return std::nullopt;
    runs.push_back({i, iEnd, j, jEnd});
    i = iEnd, j = jEnd;
  }
  return i == from.size() && j == to.size() ? std::optional(runs)
                                            : std::nullopt;
}

/// What broadcasts to `from`, as what broadcasts to `to`, of the same elements
/// in another shape. The empty term where runs do not tell.
Term inShape(Term mask, ArrayRef<AffineExpr> from, ArrayRef<AffineExpr> to) {
  if (from == to)
    return mask;
  AffineExpr one = getAffineConstantExpr(1, mask.get().getContext());
  Exprs own = getShape(mask.get()), whole, result;
  std::optional<SmallVector<Run>> runs = runsOf(from, to);
  if (!runs || own.size() > from.size())
    return {};
  own.insert(own.begin(), from.size() - own.size(), one);
  for (const Run &run : *runs) {
    // Repeated along all of the run, or else written out.
    bool repeats =
        llvm::all_of(llvm::seq(run.from, run.fromEnd),
                     [&](unsigned j) { return constantOf(own[j]) == 1; });
    for (unsigned j = run.from; j < run.fromEnd; ++j)
      whole.push_back(repeats ? one : from[j]);
    for (unsigned j = run.to; j < run.toEnd; ++j)
      result.push_back(repeats ? one : to[j]);
  }
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
  if (Term inner = underReshape(x))
    return leadsToScores(inner, depth + 1);
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
/// another, as with a mask that enlarges the scores.
bool peel(Term &x, Attention &found) {
  Exprs shape = getShape(x.get());
  if (Term inner = underReshape(x)) {
    x = inner;
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
    mask.added = inShape(b, shape, found.shape);
    if (!mask.added)
      return false;
    if (found.scale != 1)
      mask.added = mask.added * found.scale;
    found.masks.push_back(mask);
    x = a;
    return getShape(a.get()) == shape;
  }
  if (auto select = x.as<SelectOp>()) {
    MaskStep mask;
    mask.keep = inShape(x.with(select.getCondition()), shape, found.shape);
    Term a = x.with(select.getLhs()), fill = x.with(select.getRhs());
    if (!leadsToScores(a)) {
      std::swap(a, fill);
      mask.inverted = true;
    }
    auto constant = fill.constant();
    if (!mask.keep || !constant || std::isnan(*constant))
      return false;
    mask.fill = *constant * found.scale;
    found.masks.push_back(mask);
    x = a;
    return getShape(a.get()) == shape;
  }
  return false;
}

std::optional<Attention> match(MatmulOp output, Term lhs) {
  Attention found;
  found.output = output;
  lhs = throughFloatCasts(lhs);
  Term inner = underReshape(lhs);
  Term p = probabilities(inner ? inner : lhs, found.guard);
  found.softmax = p ? p.as<SoftmaxOp>() : SoftmaxOp();
  if (!found.softmax || found.softmax.getLog() ||
      (int64_t)found.softmax.getAxis() + 1 !=
          (int64_t)getShape(found.softmax.getInput()).size())
    return std::nullopt;
  Term x = throughFloatCasts(p.with(found.softmax.getInput()));
  found.shape = getShape(x.get());
  if (!leadsToScores(x))
    return std::nullopt;
  while (!(found.scores = x.as<MatmulOp>())) {
    if (found.masks.size() > 4 || !peel(x, found))
      return std::nullopt;
    x = throughFloatCasts(x);
  }
  std::reverse(found.masks.begin(), found.masks.end());
  Type element = getElementTypeOrSelf(output);
  if (!isa<FloatType>(element) ||
      getElementTypeOrSelf(found.scores) != element || found.shape.size() > 4)
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

/// An operand of a product of shape `product`, as one of the product in the
/// shape of `scores`, which has the same rows and columns. The empty term where
/// it is repeated along some batches and not others.
Term ofBatches(Term x, ArrayRef<AffineExpr> product,
               ArrayRef<AffineExpr> scores) {
  if (product == scores)
    return x;
  Exprs shape = getShape(x.get()), result(scores.drop_back(2));
  if (ArrayRef(shape).drop_back(2) != product.drop_back(2))
    return {};
  llvm::append_range(result, ArrayRef(shape).take_back(2));
  return x.make<ReshapeOp>(makeType(result, x.element()), x.get());
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
  // Of operands of a product in another shape only batches of the whole can be
  // told apart.
  Exprs own = getShape(op.getLhs()), whole = getShape(op.getResult());
  ArrayRef<AffineExpr> scores = found->shape;
  if (whole.size() != own.size() ||
      (own != scores &&
       ArrayRef(whole).drop_back(2) != ArrayRef(own).drop_back(2)))
    return failure();

  double scale = found->scale;
  Term q = withoutScale(root.with(found->scores.getLhs()), scale);
  Term k = withoutScale(root.with(found->scores.getRhs()), scale);
  Exprs product = getShape(found->scores.getResult());
  q = ofBatches(q, product, scores);
  k = ofBatches(k, product, scores);
  Term v = ofBatches(root.with(op.getRhs()), own, scores);
  if (!q || !k || !v)
    return failure();
  SmallVector<int64_t> swapped(getShape(k.get()).size());
  std::iota(swapped.begin(), swapped.end(), 0);
  std::swap(swapped[swapped.size() - 2], swapped[swapped.size() - 1]);
  size_t rank = scores.size();
  v = asFourDims(v, rank);
  k = inType(k.make<TransposeOp>(k.get(), swapped), v.element());
  k = asFourDims(k, rank);
  q = asFourDims(inType(q, v.element()), rank);

  Exprs result = own == scores ? whole : Exprs(scores);
  result.back() = whole.back();
  Exprs four = fourDims(result, rank, op.getContext());
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
  if (four != whole)
    attention =
        ReshapeOp::create(rewriter, op.getLoc(), op.getType(), attention);
  rewriter.replaceOp(op, attention);
  return success();
}

} // namespace

void charonia::graph::addAttentionPatterns(RewritePatternSet &patterns) {
  patterns.add(recognizeAttention);
}
