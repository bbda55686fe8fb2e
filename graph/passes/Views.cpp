#include "graph/passes/Views.h"
#include "graph/analysis/FusionPlan.h"
#include "graph/analysis/IterationSpace.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace charonia::graph;

namespace {

/// One summand of a coordinate: a result's dim times a stride.
struct Factor {
  unsigned dim;
  AffineExpr stride;
};

/// A coordinate as a sum of dims times strides, and what has no dims; nothing
/// for other forms.
std::optional<SmallVector<Factor>> factorsOf(AffineExpr e, AffineExpr &offset) {
  MLIRContext *context = e.getContext();
  SmallVector<Factor> factors;
  offset = getAffineConstantExpr(0, context);
  SmallVector<AffineExpr> terms{e};
  while (!terms.empty()) {
    AffineExpr term = terms.pop_back_val();
    if (term.isSymbolicOrConstant()) {
      offset = offset + term;
      continue;
    }
    if (auto dim = dyn_cast<AffineDimExpr>(term)) {
      factors.push_back({dim.getPosition(), getAffineConstantExpr(1, context)});
      continue;
    }
    auto binary = cast<AffineBinaryOpExpr>(term);
    if (binary.getKind() == AffineExprKind::Add) {
      terms.push_back(binary.getLHS());
      terms.push_back(binary.getRHS());
      continue;
    }
    auto dim = dyn_cast<AffineDimExpr>(binary.getLHS());
    if (binary.getKind() != AffineExprKind::Mul || !dim ||
        !binary.getRHS().isSymbolicOrConstant())
      return std::nullopt;
    factors.push_back({dim.getPosition(), simplify(binary.getRHS())});
  }
  offset = simplify(offset);
  return factors;
}

/// Sorts factors so that each stride is the product of the extents behind it.
bool nest(SmallVector<Factor> &factors, ArrayRef<AffineExpr> extents) {
  SmallVector<Factor> nested;
  AffineExpr stride =
      getAffineConstantExpr(1, extents[factors[0].dim].getContext());
  while (!factors.empty()) {
    auto it = llvm::find_if(
        factors, [&](const Factor &f) { return f.stride == stride; });
    if (it == factors.end())
      return false;
    stride = simplify(stride * extents[it->dim]);
    nested.push_back(*it);
    factors.erase(it);
  }
  factors.assign(nested.rbegin(), nested.rend());
  return true;
}

} // namespace

std::optional<ViewPlan>
charonia::graph::planViews(AffineMap map, ArrayRef<AffineExpr> input,
                           ArrayRef<AffineExpr> result) {
  MLIRContext *context = map.getContext();
  AffineExpr zero = getAffineConstantExpr(0, context),
             one = getAffineConstantExpr(1, context);
  ViewPlan plan;
  plan.result = Exprs(result);

  // The same elements in the same order: a reshape.
  AffineMap row = reshapeMap(input, result, context);
  if (ArrayRef(row.getResults()) == ArrayRef(map.getResults()) &&
      numElements(input, context) == numElements(result, context)) {
    plan.starts = AffineMap::get(0, 0, Exprs(input.size(), zero), context);
    plan.steps.assign(input.size(), 1);
    plan.sliced = Exprs(input);
    plan.split = plan.unsplit = Exprs(result);
    for (size_t i = 0; i < result.size(); ++i)
      plan.permutation.push_back(i);
    return plan;
  }

  Exprs starts;
  SmallVector<unsigned> order; // the result's dims in the order of the input
  SmallVector<bool> used(result.size(), false);
  for (auto [i, e] : llvm::enumerate(map.getResults())) {
    AffineExpr offset;
    auto factors = factorsOf(e, offset);
    if (!factors)
      return std::nullopt;
    int64_t step = 1;
    if (factors->empty()) {
      starts.push_back(offset);
      plan.steps.push_back(1);
      plan.sliced.push_back(one);
      continue;
    }
    if (factors->size() == 1) {
      auto constant = constantOf((*factors)[0].stride);
      if (!constant || *constant == 0)
        return std::nullopt;
      step = *constant;
    } else if (offset != zero || !nest(*factors, result)) {
      return std::nullopt;
    }
    AffineExpr extent = one;
    for (const Factor &factor : *factors) {
      if (used[factor.dim])
        return std::nullopt;
      used[factor.dim] = true;
      order.push_back(factor.dim);
      plan.split.push_back(result[factor.dim]);
      extent = extent * result[factor.dim];
    }
    extent = simplify(extent);
    // A part of a dimension that is split would need its own slice before.
    if (factors->size() > 1 && extent != input[i])
      return std::nullopt;
    starts.push_back(offset);
    plan.steps.push_back(step);
    plan.sliced.push_back(extent);
  }
  plan.starts = AffineMap::get(0, map.getNumSymbols(), starts, context);

  // Positions in `order` of the dims in the order of the result.
  for (unsigned dim = 0; dim < result.size(); ++dim) {
    auto it = llvm::find(order, dim);
    if (it != order.end()) {
      plan.permutation.push_back(it - order.begin());
      plan.unsplit.push_back(result[dim]);
    } else {
      plan.unsplit.push_back(one);
    }
  }
  return plan;
}

static Exprs permuted(ArrayRef<AffineExpr> dims,
                      ArrayRef<int64_t> permutation) {
  Exprs result;
  for (int64_t p : permutation)
    result.push_back(dims[p]);
  return result;
}

unsigned ViewPlan::countViews(ArrayRef<AffineExpr> input) const {
  bool slices = ArrayRef(sliced) != input ||
                llvm::any_of(steps, [](int64_t s) { return s != 1; });
  Exprs transposed = permuted(split, permutation);
  bool transposes = !isIdentityPermutation(permutation);
  unsigned count = slices + transposes + (unsplit != result);
  if (transposes)
    count += (sliced != split) + (transposed != unsplit);
  else
    count += sliced != unsplit;
  return count;
}

Value charonia::graph::buildViews(OpBuilder &builder, Location location,
                                  Value value, const ViewPlan &plan) {
  Type element = getElementTypeOrSelf(value);
  auto reshape = [&](ArrayRef<AffineExpr> shape) {
    if (ArrayRef(getShape(value)) != shape)
      value =
          ReshapeOp::create(builder, location, makeType(shape, element), value);
  };
  if (getShape(value) != plan.sliced ||
      llvm::any_of(plan.steps, [](int64_t s) { return s != 1; }))
    value = SliceOp::create(builder, location, makeType(plan.sliced, element),
                            value, plan.starts, plan.steps);
  if (!isIdentityPermutation(plan.permutation)) {
    reshape(plan.split);
    value = TransposeOp::create(builder, location, value, plan.permutation);
  }
  reshape(plan.unsplit);
  if (plan.unsplit != plan.result)
    value = BroadcastOp::create(builder, location,
                                makeType(plan.result, element), value);
  return value;
}

static GraphOpInterface viewOf(Value value) {
  auto op = value.getDefiningOp<GraphOpInterface>();
  return op && op.getRole() == OpRole::View ? op : GraphOpInterface();
}

GraphOpInterface charonia::graph::composedView(Value value) {
  auto op = value.getDefiningOp<GraphOpInterface>();
  bool isComposed =
      op && op.getRole() == OpRole::View && !isStored(op.getOperation());
  return isComposed ? op : GraphOpInterface();
}

std::optional<SmallVector<int64_t>>
charonia::graph::permutationOf(Value value) {
  auto view = value.getDefiningOp<GraphOpInterface>();
  if (!view || view.getRole() != OpRole::View)
    return std::nullopt;
  Exprs result = getShape(value), input = getShape(view->getOperand(0));
  AffineMap map = view.getOperandMap(0);
  if (result.size() != input.size() || !map ||
      map.getNumResults() != input.size())
    return std::nullopt;
  SmallVector<int64_t> permutation(result.size(), -1);
  for (auto [i, coordinate] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(coordinate);
    if (!dim || permutation[dim.getPosition()] >= 0 ||
        result[dim.getPosition()] != input[i])
      return std::nullopt;
    permutation[dim.getPosition()] = i;
  }
  return isIdentityPermutation(permutation) ? std::nullopt
                                            : std::optional(permutation);
}

/// value under dimensions of one element added in front, up to `rank`.
static Value withRank(OpBuilder &builder, Value value, size_t rank) {
  Exprs shape = getShape(value);
  if (shape.size() >= rank)
    return value;
  shape.insert(shape.begin(), rank - shape.size(),
               getAffineConstantExpr(1, value.getContext()));
  return ReshapeOp::create(builder, value.getLoc(),
                           makeType(shape, getElementTypeOrSelf(value)), value);
}

Value charonia::graph::transposedBy(OpBuilder &builder, Value value,
                                    ArrayRef<int64_t> permutation) {
  value = withRank(builder, value, permutation.size());
  SmallVector<int64_t> joined(permutation);
  if (auto inner = permutationOf(value)) {
    joined = applyPermutation(*inner, permutation);
    value = value.getDefiningOp()->getOperand(0);
  }
  if (isIdentityPermutation(joined))
    return value;
  return TransposeOp::create(builder, value.getLoc(), value, joined);
}

/// Whether coordinates can be those of a few views: what resolves no division
/// grows with each one.
static bool isSimple(AffineMap map) {
  constexpr unsigned mostTerms = 256;
  return countTerms(map, mostTerms + 1) <= mostTerms;
}

bool charonia::graph::shortenViews(GraphOpInterface last, OpBuilder &builder) {
  Value result = last->getResult(0);
  Exprs extents = getShape(result);
  AffineMap map =
      AffineMap::getMultiDimIdentityMap(extents.size(), builder.getContext());
  Value source = result, bestSource;
  std::optional<ViewPlan> best;
  unsigned length = 0;
  int bestGain = 0;
  // Beyond this length the maps are no longer simple ones.
  while (GraphOpInterface view = length < 16 ? viewOf(source) : nullptr) {
    map = composeMaps(view.getOperandMap(0), map, extents);
    if (!isSimple(map))
      break;
    source = view->getOperand(0);
    ++length;
    auto plan = planViews(map, getShape(source), extents);
    int gain = plan ? int(length) - int(plan->countViews(getShape(source))) : 0;
    if (gain > bestGain) {
      best = std::move(plan);
      bestSource = source;
      bestGain = gain;
    }
  }
  if (!best)
    return false;
  builder.setInsertionPoint(last);
  result.replaceAllUsesWith(
      buildViews(builder, last->getLoc(), bestSource, *best));
  return true;
}
