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

/// A factor or divisor of a product that normalizes another factor, d.
struct Deviation {
  /// What is normalized, and d, which is x or x - mean(x).
  Term x, d;
  SmallVector<int64_t> axes;
  double epsilon = 0;
  bool rms = true;
  explicit operator bool() const { return static_cast<bool>(x); }
};

/// x of d = x - mean(x) along these axes; the empty term where d is another.
Term uncentered(Term d, ArrayRef<int64_t> axes) {
  auto sub = d.as<SubOp>();
  Kept center = sub ? mean(d.with(sub.getRhs())) : Kept();
  bool matches = center && center.input.get() == sub.getLhs() &&
                 ArrayRef(center.axes) == axes;
  return matches ? center.input : Term();
}

/// Of a product with a factor 1 / sqrt(square), and a factor d of square =
/// mean(d * d) + epsilon. Nothing but the product may read what is between x
/// and that factor: it would go on with a root that no longer is the same.
Deviation deviationOf(Term factor, Term square, const Product &product) {
  auto add = square.as<AddOp>();
  if (!add)
    return {};
  Term variance = square.with(add.getLhs()),
       epsilon = square.with(add.getRhs());
  if (variance.constant())
    std::swap(variance, epsilon);
  if (!epsilon.constant() || !(*epsilon.constant() >= 0))
    return {};
  Kept squares = meanSquare(variance);
  if (!squares || !llvm::is_contained(product.factors, squares.input))
    return {};
  Deviation found{{}, squares.input, squares.axes, *epsilon.constant()};
  Term x = uncentered(found.d, found.axes);
  if (x && isReadWithin(factor.get(), x.get(), product.operators)) {
    found.x = x;
    found.rms = false;
  } else if (isReadWithin(factor.get(), found.d.get(), product.operators)) {
    found.x = found.d;
  }
  return found;
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
    Deviation found = deviationOf(factor,
                                  divides ? factor.template operand<SqrtOp>()
                                          : squareUnder(factor),
                                  product);
    if (!found)
      continue;
    Term x = found.x;
    Term result = x.make<NormalizeOp>(
        x.get().getType(), x.get(), rewriter.getDenseI64ArrayAttr(found.axes),
        rewriter.getF64FloatAttr(found.epsilon),
        found.rms ? rewriter.getUnitAttr() : UnitAttr());
    size_t centered =
        llvm::find(product.factors, found.d) - product.factors.begin();
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

/// A softmax, or the logarithm of one, and its exponential and what that is of.
struct Softmax {
  ExpOp exponential;
  SubOp shifted;
  int64_t axis;
  bool log;
};

/// exp(x - max(x)) / sum(exp(x - max(x)))
std::optional<Softmax> softmaxOf(DivOp op, Term root) {
  auto exponential = root.with(op.getLhs()).as<ExpOp>();
  Kept sum = keptReduction(root.with(op.getRhs()), ReduceKind::sum);
  auto shifted = root.with(op.getLhs()).operand<ExpOp>().as<SubOp>();
  if (!sum || !shifted || sum.input.get() != op.getLhs() ||
      sum.axes.size() != 1)
    return std::nullopt;
  return Softmax{exponential, shifted, sum.axes[0], /*log=*/false};
}
/// (x - max(x)) - log(sum(exp(x - max(x))))
std::optional<Softmax> softmaxOf(SubOp op, Term root) {
  auto shifted = root.with(op.getLhs()).as<SubOp>();
  auto log = root.with(op.getRhs()).as<LogOp>();
  if (!shifted || !log)
    return std::nullopt;
  Kept sum = keptReduction(root.with(log.getInput()), ReduceKind::sum);
  if (!sum || sum.axes.size() != 1 ||
      !(sum.input.operand<ExpOp>() == root.with(op.getLhs())))
    return std::nullopt;
  return Softmax{sum.input.as<ExpOp>(), shifted, sum.axes[0], /*log=*/true};
}

/// What an operator is the last of.
std::optional<Softmax> softmaxOf(Operation *op, PatternRewriter &rewriter) {
  std::optional<Softmax> found;
  if (!isa<DivOp, SubOp>(op))
    return found;
  Term root(op->getResult(0), rewriter, op->getLoc());
  if (auto div = dyn_cast<DivOp>(op))
    found = softmaxOf(div, root);
  else
    found = softmaxOf(cast<SubOp>(op), root);
  if (!found)
    return found;
  Term x = root.with(found->shifted.getLhs());
  Kept max = keptReduction(root.with(found->shifted.getRhs()), ReduceKind::max);
  bool matches = max && max.input == x && max.axes.size() == 1 &&
                 max.axes[0] == found->axis &&
                 x.get().getType() == op->getResult(0).getType();
  return matches ? found : std::nullopt;
}

/// Both forms may be there, of which each reads what the other does.
template <typename Op>
LogicalResult recognizeSoftmax(Op op, PatternRewriter &rewriter) {
  std::optional<Softmax> found = softmaxOf(op.getOperation(), rewriter);
  if (!found)
    return failure();
  SmallVector<Operation *> ends;
  SmallVector<Value> between;
  for (Operation *made :
       {found->exponential.getOperation(), found->shifted.getOperation()})
    for (Operation *user : made->getUsers())
      if (softmaxOf(user, rewriter)) {
        ends.push_back(user);
        llvm::append_range(between, user->getOperands());
      }
  Value x = found->shifted.getLhs();
  if (!isReadWithin(between, x, ends))
    return failure();
  rewriter.replaceOpWithNewOp<SoftmaxOp>(op, op.getType(), x, found->axis,
                                         found->log);
  return success();
}

} // namespace

void charonia::graph::addNormalizationPatterns(RewritePatternSet &patterns) {
  patterns.add(recognizeNormalize<MulOp>);
  patterns.add(recognizeNormalize<DivOp>);
  patterns.add(recognizeSoftmax<DivOp>);
  patterns.add(recognizeSoftmax<SubOp>);
}
