#include "graph/passes/Patterns.h"

using namespace mlir;
using namespace charonia::graph;

namespace {

/// A reduction along axes that keeps the rank: as `keepdims`, or reshaped so.
struct Kept {
  Term input;
  SmallVector<int64_t> axes;
  explicit operator bool() const { return static_cast<bool>(input); }
};

Kept keptReduction(Term value, ReduceKind kind) {
  Exprs shape = getShape(value.get());
  Term inner = value;
  if (auto reshape = value.as<ReshapeOp>())
    inner = value.with(reshape.getInput());
  auto reduce = inner.as<ReduceOp>();
  if (!reduce || reduce.getKind() != kind)
    return {};
  Exprs kept = getShape(reduce.getInput());
  for (int64_t axis : reduce.getAxes())
    kept[axis] = getAffineConstantExpr(1, reduce.getContext());
  if (kept != shape)
    return {};
  return {value.with(reduce.getInput()), llvm::to_vector(reduce.getAxes())};
}

/// sum(x) / n
Kept mean(Term value) {
  Product product = factorize(value);
  if (product.factors.size() != 1 || !product.divisors.empty())
    return {};
  Kept sum = keptReduction(product.factors[0], ReduceKind::sum);
  if (!sum)
    return {};
  auto reduce = product.factors[0].as<ReduceOp>();
  if (!reduce)
    reduce = product.factors[0].operand<ReshapeOp>().as<ReduceOp>();
  auto extent = constantOf(reduce.getReductionExtent());
  bool divides = extent && isClose(product.coefficient * *extent, 1, 1e-5);
  return divides ? sum : Kept();
}

/// x of mean(x * x).
Kept meanSquare(Term value) {
  Kept squares = mean(value);
  Term square = squares.input;
  auto mul = square.as<MulOp>();
  if (!mul || mul.getLhs() != mul.getRhs())
    return {};
  squares.input = square.with(mul.getLhs());
  return squares;
}

/// y of a factor 1 / sqrt(y).
Term squareUnder(Term factor) {
  Term inner = factor.operand<RsqrtOp>();
  return inner ? inner : factor.operand<ReciprocalOp>().operand<SqrtOp>();
}

/// d / sqrt(mean(d * d) + epsilon), with d = x - mean(x): layer normalization;
/// with any other d: rms normalization. Other factors and divisors stay.
template <typename Op>
LogicalResult recognizeNormalize(Op op, PatternRewriter &rewriter) {
  Term root(op.getResult(), rewriter, op.getLoc());
  if (!root.isReal())
    return failure();
  Product product = factorize(root);
  SmallVector<Term> others(product.factors);
  others.append(product.divisors);
  for (auto [i, factor] : llvm::enumerate(others)) {
    bool divides = i >= product.factors.size();
    Term square =
        divides ? factor.template operand<SqrtOp>() : squareUnder(factor);
    auto add = square.as<AddOp>();
    if (!add)
      continue;
    Term variance = root.with(add.getLhs()), epsilon = root.with(add.getRhs());
    if (variance.constant())
      std::swap(variance, epsilon);
    if (!epsilon.constant() || !(*epsilon.constant() >= 0))
      continue;
    Kept squares = meanSquare(variance);
    auto it = llvm::find(product.factors, squares.input);
    if (!squares || it == product.factors.end())
      continue;
    Term x = squares.input;
    bool rms = true;
    if (auto sub = x.as<SubOp>()) {
      Kept center = mean(root.with(sub.getRhs()));
      if (center && center.input.get() == sub.getLhs() &&
          center.axes == squares.axes) {
        x = center.input;
        rms = false;
      }
    }
    Term result = x.make<NormalizeOp>(
        x.get().getType(), x.get(), rewriter.getDenseI64ArrayAttr(squares.axes),
        rewriter.getF64FloatAttr(*epsilon.constant()),
        rms ? rewriter.getUnitAttr() : UnitAttr());
    size_t centered = it - product.factors.begin();
    for (auto [j, other] : llvm::enumerate(others))
      if (j != i && j != centered)
        result = j < product.factors.size() ? result * other : result / other;
    if (product.coefficient != 1)
      result = result * product.coefficient;
    Value value =
        broadcastTo(rewriter, op.getLoc(), result.get(), op.getType());
    if (!value)
      return failure();
    rewriter.replaceOp(op, value);
    return success();
  }
  return failure();
}

/// exp(x - max(x)) / sum(exp(x - max(x)))
LogicalResult recognizeSoftmax(DivOp op, PatternRewriter &rewriter) {
  Term root(op.getResult(), rewriter, op.getLoc());
  Term exponential = root.with(op.getLhs());
  Kept sum = keptReduction(root.with(op.getRhs()), ReduceKind::sum);
  auto sub = exponential.operand<ExpOp>().as<SubOp>();
  if (!sum || !(sum.input == exponential) || sum.axes.size() != 1 || !sub)
    return failure();
  Kept max = keptReduction(root.with(sub.getRhs()), ReduceKind::max);
  if (!max || max.input.get() != sub.getLhs() || max.axes != sum.axes ||
      sub.getLhs().getType() != op.getType())
    return failure();
  rewriter.replaceOpWithNewOp<SoftmaxOp>(op, op.getType(), sub.getLhs(),
                                         sum.axes[0], false);
  return success();
}

/// (x - max(x)) - log(sum(exp(x - max(x))))
LogicalResult recognizeLogSoftmax(SubOp op, PatternRewriter &rewriter) {
  Term root(op.getResult(), rewriter, op.getLoc());
  Term shifted = root.with(op.getLhs());
  auto sub = shifted.as<SubOp>();
  auto log = root.with(op.getRhs()).as<LogOp>();
  if (!sub || !log)
    return failure();
  Kept sum = keptReduction(root.with(log.getInput()), ReduceKind::sum);
  Kept max = keptReduction(root.with(sub.getRhs()), ReduceKind::max);
  if (!sum || !max || !(sum.input.operand<ExpOp>() == shifted) ||
      sum.axes.size() != 1 || max.input.get() != sub.getLhs() ||
      max.axes != sum.axes || sub.getLhs().getType() != op.getType())
    return failure();
  rewriter.replaceOpWithNewOp<SoftmaxOp>(op, op.getType(), sub.getLhs(),
                                         sum.axes[0], true);
  return success();
}

} // namespace

void charonia::graph::addNormalizationPatterns(RewritePatternSet &patterns) {
  patterns.add(recognizeNormalize<MulOp>);
  patterns.add(recognizeNormalize<DivOp>);
  patterns.add(recognizeSoftmax);
  patterns.add(recognizeLogSoftmax);
}
