#include "graph/passes/AttentionMasks.h"
#include "graph/analysis/IndexContent.h"

using namespace mlir;
using namespace charonia::graph;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Beside scores of magnitudes below 2^75 = 3.8e22, a fill up to this is as
/// good as -inf: it absorbs a score that is added to it, and softmax gives 0
/// for it in a row that keeps any score. Scores of half precision never come
/// near, those of f32 would be products of operands beyond 1e10.
constexpr double absorbingFill = -1e30;

double rounded(double value, Type type) {
  APFloat number(value);
  bool inexact;
  number.convert(cast<FloatType>(type).getFloatSemantics(),
                 APFloat::rmNearestTiesToEven, &inexact);
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
  return number.convertToDouble();
}

/// Finds the condition of a float mask that is 0 or a fill.
void splitFloatMask(MaskStep &step) {
  Term m = step.added;
  // Views between condition and use stay with the condition.
  SmallVector<GraphOpInterface> views;
  SmallVector<Type> types{m.element()};
  while (auto op = m.get().getDefiningOp<GraphOpInterface>()) {
    Term inner = throughFloatCasts(m);
    if (inner == m && op.getRole() == OpRole::View) {
      views.push_back(op);
      inner = m.with(op->getOperand(0));
    }
    if (inner == m)
      break;
    m = inner;
    types.push_back(m.element());
  }
  auto select = m.as<SelectOp>();
  if (!select)
    return;
  Term zero = m.with(select.getLhs()), low = m.with(select.getRhs());
  bool inverted = !zero.is(0);
  if (inverted)
    std::swap(zero, low);
  auto fill = low.constant();
  if (!zero.is(0) || !fill)
    return;
  Term keep = m.with(select.getCondition());
  if (keep.get().getType() != withElement(select.getType(), keep.element()))
    return;
  for (GraphOpInterface view : llvm::reverse(views))
    keep = keep.under(view);
  step.keep = keep;
  step.fill = *fill;
  for (Type type : llvm::reverse(types))
    step.fill = rounded(step.fill, type);
  step.inverted = inverted;
}

/// What is true just where all of these are not negative, as functions of the
/// coordinates of scores.
std::optional<Exprs> conditionsOf(Term keep, ArrayRef<AffineExpr> scores) {
  Exprs shape = getShape(keep.get()), at;
  MLIRContext *context = keep.get().getContext();
  size_t offset = scores.size() - shape.size();
  for (auto [i, size] : llvm::enumerate(shape))
    at.push_back(constantOf(size) == 1 ? getAffineConstantExpr(0, context)
                                       : getAffineDimExpr(offset + i, context));
  return conditionsAt(keep.get(), at, scores);
}

/// The column of row s (a dim) on the diagonal that ends in the last corner.
AffineExpr diagonal(ArrayRef<AffineExpr> scores) {
  size_t rank = scores.size();
  return getAffineDimExpr(rank - 2, scores[0].getContext()) +
         (scores[rank - 1] - scores[rank - 2]);
}

/// How a condition relates to the rows s and columns t of the scores.
enum class Relation { Always, Causal, Other };

Relation relationOf(const std::optional<Exprs> &conditions,
                    ArrayRef<AffineExpr> scores) {
  if (!conditions)
    return Relation::Other;
  AffineExpr causal =
      diagonal(scores) -
      getAffineDimExpr(scores.size() - 1, scores[0].getContext());
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

/// Whether the conditions hold for every row at its column of the diagonal.
bool holdOnDiagonal(const std::optional<Exprs> &conditions,
                    ArrayRef<AffineExpr> scores) {
  if (!conditions)
    return false;
  Exprs at;
  for (size_t i = 0; i + 1 < scores.size(); ++i)
    at.push_back(getAffineDimExpr(i, scores[0].getContext()));
  at.push_back(diagonal(scores));
  return llvm::all_of(*conditions, [&](AffineExpr e) {
    return isNonNegative(e.replaceDims(at), scores);
  });
}

/// (keeps ? score : fill) + bias.
class MaskedScore {
public:
  /// Biases of several types are added in the type `wide`.
  explicit MaskedScore(Type wide) : wide(wide) {}

  /// The score + `term`.
  void add(Term term) {
    if (!bias)
      bias = wide.isF64() || term.element().isF64() ? widened(term) : term;
    else if (bias.element() == term.element())
      bias = bias + term;
    else
      bias = widened(bias) + widened(term);
  }

  /// `keep` ? the score : `other`.
  void select(Term keep, bool causal, double other) {
    bool low = other == -infinity;
    if ((keeps.empty() || fill == other) && (!bias || low)) {
      // A bias added to -inf changes nothing.
      keeps.push_back({keep, causal});
      fill = other;
    } else if (low) {
      add(filled(keep, -infinity));
    } else {
      // Where it is no score that is kept, the bias says it all.
      if (!keeps.empty())
        add(filled(all(/*causal=*/true), fill));
      Term inside = bias ? widened(bias) : keep.scalar(wide, 0);
      bias = keep.make<SelectOp>(keep.get(), inside.get(),
                                 keep.scalar(wide, other).get());
      keeps.push_back({keep, causal});
      fill = 0;
    }
  }

  /// The score + (`keep` ? 0 : `other`) as a fill; false where that is another
  /// score.
  bool fillAbsorbing(Term keep, bool causal, double other) {
    if (!keeps.empty() || other > absorbingFill)
      return false;
    keeps.push_back({keep, causal});
    fill = other;
    return true;
  }

  Masking get() const {
    bool causal =
        llvm::any_of(keeps, [](const Keep &keep) { return keep.causal; });
    return {all(/*causal=*/false), bias, causal, fill};
  }

private:
  struct Keep {
    Term term;
    bool causal;
  };

  /// Whether a score is kept by all conditions, or all but the causal ones.
  Term all(bool causal) const {
    Term result;
    for (const Keep &keep : keeps)
      if (causal || !keep.causal)
        result = result ? result.make<AndOp>(result.get(), keep.term.get())
                        : keep.term;
    return result;
  }
  /// 0 where `keep`, else `value`.
  Term filled(Term keep, double value) const {
    return keep.make<SelectOp>(keep.get(), keep.scalar(wide, 0).get(),
                               keep.scalar(wide, value).get());
  }
  Term widened(Term x) const {
    return x.element() == wide ? x : x.make<CastOp>(x.get(), wide);
  }

  Type wide;
  SmallVector<Keep> keeps;
  double fill = -infinity;
  Term bias;
};

} // namespace

Term charonia::graph::throughFloatCasts(Term x) {
  while (auto cast = x.as<CastOp>()) {
    if (!isa<FloatType>(getElementTypeOrSelf(cast.getInput())) || !x.isReal())
      break;
    x = x.with(cast.getInput());
  }
  return x;
}

Masking charonia::graph::combineMasks(ArrayRef<MaskStep> steps,
                                      ArrayRef<AffineExpr> scores,
                                      Type element) {
  SmallVector<MaskStep> found;
  SmallVector<Relation> relations;
  // Whether every row keeps a column of its own for sure, and all fills are as
  // good as -inf beside it.
  size_t rank = scores.size();
  bool rowsKeep = isNonNegative(scores[rank - 1] - scores[rank - 2]);
  for (MaskStep step : steps) {
    Relation relation = Relation::Other;
    if (step.added)
      splitFloatMask(step);
    if (step.keep) {
      if (step.inverted)
        step.keep = step.keep.make<NotOp>(step.keep.get());
      auto conditions = conditionsOf(step.keep, scores);
      relation = relationOf(conditions, scores);
      rowsKeep &=
          holdOnDiagonal(conditions, scores) && step.fill <= absorbingFill;
    } else {
      rowsKeep = false;
    }
    if (relation == Relation::Always)
      continue;
    found.push_back(step);
    relations.push_back(relation);
  }

  MLIRContext *context = scores[0].getContext();
  MaskedScore score(element.isF64() ? element : Float32Type::get(context));
  for (auto [step, relation] : llvm::zip(found, relations)) {
    bool causal = relation == Relation::Causal;
    double fill = rowsKeep ? -infinity : step.fill;
    if (step.keep && (!step.added || fill == -infinity))
      score.select(step.keep, causal, fill);
    else if (!causal || !score.fillAbsorbing(step.keep, causal, fill))
      score.add(step.added);
  }
  return score.get();
}

void charonia::graph::refineMasks(AttentionOp op) {
  if (op.getCausal() || (!op.getMask() && !op.getBias()))
    return;
  OpBuilder builder(op);
  Term root(op.getResult(), builder, op.getLoc());
  SmallVector<MaskStep> steps;
  if (op.getMask()) {
    MaskStep &step = steps.emplace_back();
    step.keep = root.with(op.getMask());
    step.fill = op.getFill().convertToDouble();
  }
  if (op.getBias())
    steps.emplace_back().added = root.with(op.getBias());
  Exprs scores = getShape(op.getQuery());
  scores.back() = getShape(op.getKey())[2];
  Masking masking = combineMasks(steps, scores, root.element());
  auto assign = [](MutableOperandRange operand, Term term) {
    operand.clear();
    if (term)
      operand.append(ValueRange{term.get()});
  };
  assign(op.getMaskMutable(), masking.mask);
  assign(op.getBiasMutable(), masking.bias);
  op.setCausal(masking.causal);
  op.setFillAttr(builder.getF64FloatAttr(masking.fill));
}
