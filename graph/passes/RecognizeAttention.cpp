#include "graph/passes/AttentionMasks.h"
#include "graph/passes/Patterns.h"
#include <cmath>

using namespace mlir;
using namespace charonia::graph;

namespace {

/// A step as it is found, in a shape that scores have there, and what the
/// scores are multiplied by behind it.
struct FoundMask {
  MaskStep step;
  Exprs shape;
  double factor = 1;
};

/// softmax(scale * Q K^T + masks) V as it is found; `scores` is the product of
/// Q and K^T, `shape` that of what the softmax is of. Nothing is built before
/// all is known to fit: a pattern that fails leaves the graph as it was.
struct Attention {
  MatmulOp output, scores;
  SoftmaxOp softmax;
  Exprs shape;
  RowGuard guard = RowGuard::none;
  double scale = 1;
  SmallVector<FoundMask> masks;
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

/// Whether inShape gives a term.
bool fitsShape(Term mask, ArrayRef<AffineExpr> from, ArrayRef<AffineExpr> to) {
  return from == to ||
         (getShape(mask.get()).size() <= from.size() && runsOf(from, to));
}

/// What broadcasts to `from`, as what broadcasts to `to`, of the same elements
/// in another shape, of which runs tell.
Term inShape(Term mask, ArrayRef<AffineExpr> from, ArrayRef<AffineExpr> to) {
  if (from == to)
    return mask;
  AffineExpr one = getAffineConstantExpr(1, mask.get().getContext());
  Exprs own = getShape(mask.get()), whole, result;
  own.insert(own.begin(), from.size() - own.size(), one);
  std::optional<SmallVector<Run>> runs = runsOf(from, to);
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
    mask.added = b;
    found.masks.push_back({mask, shape, found.scale});
    x = a;
    return getShape(a.get()) == shape && fitsShape(b, shape, found.shape);
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
    found.masks.push_back({mask, shape, 1});
    x = a;
    return getShape(a.get()) == shape &&
           fitsShape(mask.keep, shape, found.shape);
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
  if (found.shape.size() > 4 || !leadsToScores(x))
    return std::nullopt;
  while (!(found.scores = x.as<MatmulOp>())) {
    if (found.masks.size() > 4 || !peel(x, found))
      return std::nullopt;
    x = throughFloatCasts(x);
  }
  std::reverse(found.masks.begin(), found.masks.end());
  Type element = getElementTypeOrSelf(output);
  if (!isa<FloatType>(element) || getElementTypeOrSelf(found.scores) != element)
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

/// Whether a shape of four dimensions has these first ones, or 1.
bool canLead(ArrayRef<AffineExpr> shape, AffineExpr batch, AffineExpr heads) {
  return (shape[0] == batch || constantOf(shape[0]) == 1) &&
         (shape[1] == heads || constantOf(shape[1]) == 1);
}

/// x with these first dimensions, broadcast where it has 1.
Term withLeading(Term x, AffineExpr batch, AffineExpr heads) {
  Exprs shape = getShape(x.get()), wanted = shape;
  wanted[0] = batch;
  wanted[1] = heads;
  return shape == wanted
             ? x
             : x.make<BroadcastOp>(makeType(wanted, x.element()), x.get());
}

/// The shape of an operand of a product of shape `product`, where that is one
/// in the shape of `scores`, which has the same rows and columns. Nothing where
/// it is repeated along some batches and not others.
std::optional<Exprs> ofBatches(Exprs shape, ArrayRef<AffineExpr> product,
                               ArrayRef<AffineExpr> scores) {
  if (product == scores)
    return shape;
  Exprs result(scores.drop_back(2));
  ArrayRef<AffineExpr> leading = ArrayRef(shape).drop_back(2);
  if (llvm::all_of(leading, [](AffineExpr e) { return constantOf(e) == 1; }))
    result.assign(result.size(),
                  getAffineConstantExpr(1, shape.back().getContext()));
  else if (leading != product.drop_back(2))
    return std::nullopt;
  llvm::append_range(result, ArrayRef(shape).take_back(2));
  return result;
}

Term reshaped(Term x, const Exprs &shape) {
  return getShape(x.get()) == shape
             ? x
             : x.make<ReshapeOp>(makeType(shape, x.element()), x.get());
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

/// Shapes of four dimensions that the operands are given; K as its transpose.
struct Operands {
  Exprs query, key, value, result;
  AffineExpr keyHeads;
};
std::optional<Operands> operandsOf(Attention &found) {
  Exprs own = getShape(found.output.getLhs()),
        whole = getShape(found.output.getResult()),
        product = getShape(found.scores.getResult());
  ArrayRef<AffineExpr> scores = found.shape;
  // Of operands of a product in another shape only batches of the whole can be
  // told apart.
  if (whole.size() != own.size() ||
      (own != found.shape &&
       ArrayRef(whole).drop_back(2) != ArrayRef(own).drop_back(2)))
    return std::nullopt;
  std::optional<Exprs> q = ofBatches(getShape(found.scores.getLhs()), product,
                                     scores),
                       k = ofBatches(getShape(found.scores.getRhs()), product,
                                     scores),
                       v = ofBatches(getShape(found.output.getRhs()), own,
                                     scores);
  if (!q || !k || !v)
    return std::nullopt;
  Exprs result = own == found.shape ? whole : found.shape;
  result.back() = whole.back();
  auto four = [&](const Exprs &shape) {
    return fourDims(shape, scores.size(), own.back().getContext());
  };
  Operands shapes{four(*q), four(*k), four(*v), four(result), {}};
  // Keys and values of one head serve all queries; else they have as many.
  shapes.keyHeads = shapes.key[1];
  if (constantOf(shapes.keyHeads) != 1 || shapes.value[1] != shapes.keyHeads)
    shapes.keyHeads = shapes.result[1];
  AffineExpr batch = shapes.result[0];
  if (!canLead(shapes.query, batch, shapes.result[1]) ||
      !canLead(shapes.key, batch, shapes.keyHeads) ||
      !canLead(shapes.value, batch, shapes.keyHeads))
    return std::nullopt;
  return shapes;
}

/// The masks in the shape of the softmax, scaled.
SmallVector<MaskStep> stepsOf(const Attention &found) {
  SmallVector<MaskStep> steps;
  for (const FoundMask &mask : found.masks) {
    MaskStep step = mask.step;
    for (Term *term : {&step.added, &step.keep})
      if (*term)
        *term = inShape(*term, mask.shape, found.shape);
    if (step.added && mask.factor != 1)
      step.added = step.added * mask.factor;
    steps.push_back(step);
  }
  return steps;
}

LogicalResult recognizeAttention(MatmulOp op, PatternRewriter &rewriter) {
  if (isWide(op))
    return failure();
  Term root(op.getResult(), rewriter, op.getLoc());
  std::optional<Attention> found = match(op, root.with(op.getLhs()));
  if (!found)
    return failure();
  std::optional<Operands> shapes = operandsOf(*found);
  if (!shapes)
    return failure();

  double scale = found->scale;
  Term q = withoutScale(root.with(found->scores.getLhs()), scale);
  Term k = withoutScale(root.with(found->scores.getRhs()), scale);
  Term v = reshaped(root.with(op.getRhs()), shapes->value);
  q = inType(reshaped(q, shapes->query), v.element());
  k = inType(reshaped(k, shapes->key), v.element());
  k = k.make<TransposeOp>(k.get(), SmallVector<int64_t>{0, 1, 3, 2});
  const Exprs &four = shapes->result;
  q = withLeading(q, four[0], four[1]);
  k = withLeading(k, four[0], shapes->keyHeads);
  v = withLeading(v, four[0], shapes->keyHeads);

  Masking masking = combineMasks(stepsOf(*found), found->shape, root.element());
  for (Term *term : {&masking.mask, &masking.bias})
    if (*term && getShape(term->get()).size() == 3)
      *term = reshaped(*term, fourDims(getShape(term->get()),
                                       found->shape.size(), op.getContext()));

  Value attention =
      AttentionOp::create(rewriter, op.getLoc(), makeType(four, root.element()),
                          q.get(), k.get(), v.get(), masking.mask.get(),
                          masking.bias.get(), rewriter.getF64FloatAttr(scale),
                          masking.causal ? rewriter.getUnitAttr() : UnitAttr(),
                          rewriter.getF64FloatAttr(masking.fill),
                          RowGuardAttr::get(op.getContext(), found->guard));
  if (four != getShape(op.getResult()))
    attention =
        ReshapeOp::create(rewriter, op.getLoc(), op.getType(), attention);
  rewriter.replaceOp(op, attention);
  return success();
}

} // namespace

void charonia::graph::addAttentionPatterns(RewritePatternSet &patterns) {
  patterns.add(recognizeAttention);
}
