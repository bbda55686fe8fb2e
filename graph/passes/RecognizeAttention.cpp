#include "graph/analysis/IndexContent.h"
#include "graph/passes/Patterns.h"
#include <numeric>

using namespace mlir;
using namespace charonia::graph;

namespace {

/// A term added to the scores: a float tensor, or a fill where `keep` is false.
struct Mask {
  Term added, keep;
  double fill = 0;
  bool inverted = false; // keep is true where the fill goes
};

/// softmax(scale * Q K^T + masks) V as it is found; `scores` is the product of
/// Q and K^T.
struct Attention {
  MatmulOp output, scores;
  SoftmaxOp softmax;
  double scale = 1;
  SmallVector<Mask> masks;
};

/// Fills below this take part in no row that has anything else.
constexpr double lowFill = -1e4;

/// The operand of a conversion between floats.
Term throughCasts(Term x) {
  while (auto cast = x.as<CastOp>()) {
    if (!isa<FloatType>(getElementTypeOrSelf(cast.getInput())) || !x.isReal())
      break;
    x = x.with(cast.getInput());
  }
  return x;
}

/// softmax, perhaps with rows of NaN (nothing kept) replaced by zeros.
Term probabilities(Term p) {
  p = throughCasts(p);
  auto select = p.as<SelectOp>();
  if (!select)
    return p;
  Term kept = p.with(select.getRhs());
  Term tested = p.with(select.getCondition()).operand<IsNanOp>();
  bool matches = tested == kept && p.with(select.getLhs()).is(0);
  return matches ? throughCasts(kept) : Term();
}

/// Whether the chain of scales and masks from here ends in a matmul.
bool leadsToScores(Term x, int depth = 0) {
  x = throughCasts(x);
  if (x.as<MatmulOp>())
    return true;
  if (depth > 8)
    return false;
  if (auto mul = x.as<MulOp>())
    return (x.with(mul.getRhs()).constant() &&
            leadsToScores(x.with(mul.getLhs()), depth + 1)) ||
           (x.with(mul.getLhs()).constant() &&
            leadsToScores(x.with(mul.getRhs()), depth + 1));
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
  if (auto mul = x.as<MulOp>()) {
    Term a = x.with(mul.getLhs()), b = x.with(mul.getRhs());
    if (a.constant())
      std::swap(a, b);
    // Only positive scales keep the order of fills.
    if (!b.constant() || !(*b.constant() > 0))
      return false;
    found.scale *= *b.constant();
    x = a;
    return true;
  }
  if (auto add = x.as<AddOp>()) {
    Term a = x.with(add.getLhs()), b = x.with(add.getRhs());
    if (!leadsToScores(a))
      std::swap(a, b);
    Mask mask;
    mask.added = found.scale == 1 ? b : b * found.scale;
    found.masks.push_back(mask);
    x = a;
    return true;
  }
  if (auto select = x.as<SelectOp>()) {
    Mask mask;
    mask.keep = x.with(select.getCondition());
    Term a = x.with(select.getLhs()), fill = x.with(select.getRhs());
    if (!leadsToScores(a)) {
      std::swap(a, fill);
      mask.inverted = true;
    }
    auto constant = fill.constant();
    if (!constant || !(*constant <= lowFill))
      return false;
    mask.fill = *constant;
    found.masks.push_back(mask);
    x = a;
    return true;
  }
  return false;
}

std::optional<Attention> match(MatmulOp output, Term lhs) {
  Attention found;
  found.output = output;
  Term p = probabilities(lhs);
  found.softmax = p ? p.as<SoftmaxOp>() : SoftmaxOp();
  if (!found.softmax || found.softmax.getLog() ||
      (int64_t)found.softmax.getAxis() + 1 !=
          (int64_t)getShape(found.softmax.getInput()).size())
    return std::nullopt;
  Term x = throughCasts(p.with(found.softmax.getInput()));
  Exprs shape = getShape(x.get());
  if (!leadsToScores(x))
    return std::nullopt;
  while (!(found.scores = x.as<MatmulOp>())) {
    if (found.masks.size() > 4 || !peel(x, found))
      return std::nullopt;
    x = throughCasts(x);
    // A mask that enlarges the scores is none.
    if (getShape(x.get()) != shape)
      return std::nullopt;
  }
  Type element = getElementTypeOrSelf(output);
  if (!isa<FloatType>(element) ||
      getElementTypeOrSelf(found.scores) != element || shape.size() > 4)
    return std::nullopt;
  return found;
}

/// Takes constant factors off a value, also below views that nothing else
/// reads.
Term withoutScale(Term x, double &scale) {
  if (auto mul = x.as<MulOp>()) {
    for (unsigned i : {0, 1}) {
      auto factor = x.with(mul->getOperand(1 - i)).constant();
      Value rest = mul->getOperand(i);
      if (factor && *factor != 0 && rest.getType() == mul.getType()) {
        scale *= *factor;
        return withoutScale(x.with(rest), scale);
      }
    }
    return x;
  }
  auto view = x.get().getDefiningOp<GraphOpInterface>();
  if (!view || view.getRole() != OpRole::View || !x.get().hasOneUse())
    return x;
  double inner = 1;
  Term rest = withoutScale(x.with(view->getOperand(0)), inner);
  if (inner == 1)
    return x;
  scale *= inner;
  OpBuilder builder(view);
  Operation *copy = builder.clone(*view);
  copy->setOperand(0, rest.get());
  return x.with(copy->getResult(0));
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

/// How a condition relates to the rows s and columns t of the scores.
enum class Relation { Always, Causal, Other };

Relation relationOf(Term keep, ArrayRef<AffineExpr> scores) {
  // Coordinates of the condition within those of the scores.
  Exprs shape = getShape(keep.get()), at;
  MLIRContext *context = keep.get().getContext();
  size_t offset = scores.size() - shape.size();
  for (auto [i, size] : llvm::enumerate(shape))
    at.push_back(constantOf(size) == 1 ? getAffineConstantExpr(0, context)
                                       : getAffineDimExpr(offset + i, context));
  auto conditions = conditionsAt(keep.get(), at, scores);
  if (!conditions)
    return Relation::Other;
  size_t rank = scores.size();
  AffineExpr s = getAffineDimExpr(rank - 2, context),
             t = getAffineDimExpr(rank - 1, context);
  AffineExpr causal = s + (scores[rank - 1] - scores[rank - 2]) - t;
  bool isCausal = false;
  for (AffineExpr e : *conditions) {
    if (isNonNegative(e, scores))
      continue;
    if (simplify(e - causal) != 0)
      return Relation::Other;
    isCausal = true;
  }
  return isCausal ? Relation::Causal : Relation::Always;
}

/// A float mask that is 0 or a fill by a condition.
void splitFloatMask(Mask &mask) {
  Term m = throughCasts(mask.added);
  // Views between condition and use stay with the condition.
  SmallVector<GraphOpInterface> views;
  while (auto view = m.get().getDefiningOp<GraphOpInterface>()) {
    if (view.getRole() != OpRole::View)
      break;
    views.push_back(view);
    m = throughCasts(m.with(view->getOperand(0)));
  }
  auto select = m.as<SelectOp>();
  if (!select)
    return;
  Term a = m.with(select.getLhs()), b = m.with(select.getRhs());
  bool inverted = !a.is(0);
  if (inverted)
    std::swap(a, b);
  auto fill = b.constant();
  if (!a.is(0) || !fill || !(*fill <= lowFill))
    return;
  Term keep = m.with(select.getCondition());
  if (keep.get().getType() != withElement(select.getType(), keep.element()))
    return;
  for (GraphOpInterface view : llvm::reverse(views)) {
    OpBuilder builder(mask.added.get().getContext());
    builder.setInsertionPointAfterValue(mask.added.get());
    Operation *copy = builder.clone(*view);
    copy->setOperand(0, keep.get());
    copy->getResult(0).setType(
        withElement(copy->getResult(0).getType(), keep.element()));
    keep = keep.with(copy->getResult(0));
  }
  mask.keep = keep;
  mask.fill = *fill;
  mask.inverted = inverted;
}

/// The masks as operand and attribute of graph.attention.
struct Masking {
  Term operand;
  bool causal = false;
};

Masking combine(ArrayRef<Mask> masks, ArrayRef<AffineExpr> scores) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Masking result;
  SmallVector<Mask> rest;
  // A row keeps at least its own column where there are no more rows than
  // columns; only then a finite fill is as good as an infinite one.
  bool rowsKeep =
      isNonNegative(scores[scores.size() - 1] - scores[scores.size() - 2]);
  for (Mask mask : masks) {
    if (mask.added)
      splitFloatMask(mask);
    if (mask.keep) {
      Term keep =
          mask.inverted ? mask.keep.make<NotOp>(mask.keep.get()) : mask.keep;
      Relation relation = relationOf(keep, scores);
      if (relation == Relation::Always)
        continue;
      if (relation == Relation::Causal &&
          (rowsKeep || mask.fill == -infinity)) {
        result.causal = true;
        continue;
      }
      mask.keep = keep;
    }
    rest.push_back(mask);
  }
  bool infinite = llvm::all_of(
      rest, [](const Mask &m) { return m.keep && m.fill == -infinity; });
  for (const Mask &mask : rest) {
    Term term = mask.added;
    if (infinite) {
      term = mask.keep;
    } else if (!term) {
      Term fill = result.operand ? result.operand.scalar(mask.fill) : Term();
      Type element = fill ? fill.element()
                          : Float32Type::get(mask.keep.get().getContext());
      Term keep = mask.keep;
      auto constant = [&](double value) {
        OpBuilder builder(keep.get().getContext());
        builder.setInsertionPointAfterValue(keep.get());
        return scalarConstant(builder, keep.get().getLoc(), element, value);
      };
      term = keep.make<SelectOp>(keep.get(), constant(0), constant(mask.fill));
    }
    if (!result.operand)
      result.operand = term;
    else if (infinite)
      result.operand = term.make<AndOp>(result.operand.get(), term.get());
    else if (result.operand.element() == term.element())
      result.operand = result.operand + term;
    else
      result.operand = result.operand +
                       term.make<CastOp>(term.get(), result.operand.element());
  }
  return result;
}

LogicalResult recognizeAttention(MatmulOp op, PatternRewriter &rewriter) {
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
  k = asFourDims(k.make<TransposeOp>(k.get(), swapped), rank);
  q = asFourDims(q, rank);
  Term v = asFourDims(root.with(op.getRhs()), rank);

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

  Masking masking = combine(found->masks, scores);
  Term mask = masking.operand;
  if (mask && getShape(mask.get()).size() == 3)
    mask = asFourDims(mask, rank);

  Value attention = AttentionOp::create(
      rewriter, op.getLoc(), makeType(four, root.element()), q.get(), k.get(),
      v.get(), mask.get(), rewriter.getF64FloatAttr(scale),
      masking.causal ? rewriter.getUnitAttr() : UnitAttr());
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
