// Operators under permuted dimensions: what layout assignment asks.
#include "graph/ir/Refinement.h"
#include "graph/ops/Common.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace charonia::graph;

using Permutation = ArrayRef<int64_t>;

static size_t rankOf(Value value) { return getShape(value).size(); }

/// Where dimension `dim` is after a transpose.
static int64_t placeOf(int64_t dim, Permutation permutation) {
  return llvm::find(permutation, dim) - permutation.begin();
}
static SmallVector<int64_t> placesOf(ArrayRef<int64_t> dims,
                                     Permutation permutation) {
  SmallVector<int64_t> places;
  for (int64_t dim : dims)
    places.push_back(placeOf(dim, permutation));
  llvm::sort(places);
  return places;
}

static NamedAttribute named(Operation *op, StringRef name, Attribute value) {
  return {StringAttr::get(op->getContext(), name), value};
}
static Attribute integers(Operation *op, ArrayRef<int64_t> values) {
  return DenseI64ArrayAttr::get(op->getContext(), values);
}
static Attribute integer(Operation *op, int64_t value) {
  return IntegerAttr::get(IntegerType::get(op->getContext(), 64), value);
}

/// Result and operand 0 permuted alike, other operands as they are.
static Permuted alike(Operation *op, Permutation permutation) {
  Permuted permuted;
  permuted.operands.resize(op->getNumOperands());
  permuted.operands[0].assign(permutation.begin(), permutation.end());
  permuted.result = invertPermutationVector(permutation);
  return permuted;
}

/// A permutation of the last dimensions, of all of `rank`.
static SmallVector<int64_t> extended(Permutation permutation, size_t rank) {
  SmallVector<int64_t> all;
  int64_t leading = rank - permutation.size();
  for (int64_t i = 0; i < leading; ++i)
    all.push_back(i);
  for (int64_t p : permutation)
    all.push_back(p + leading);
  return all;
}

/// Of operators that broadcast their operands to the result.
static Permuted permuteBroadcast(GraphOpInterface op, Permutation permutation) {
  size_t rank = rankOf(op->getResult(0));
  SmallVector<int64_t> all = extended(permutation, rank);
  Permuted permuted;
  for (Value operand : op->getOperands()) {
    bool single = llvm::all_of(getShape(operand),
                               [](AffineExpr e) { return constantOf(e) == 1; });
    permuted.operands.push_back(single ? SmallVector<int64_t>() : all);
  }
  permuted.result = invertPermutationVector(all);
  return permuted;
}

std::optional<Permuted>
charonia::graph::permutePointwise(GraphOpInterface op, unsigned,
                                  Permutation permutation) {
  if (op.getRole() != OpRole::Pointwise)
    return std::nullopt;
  return permuteBroadcast(op, permutation);
}

/// Splits or merges dimensions that are neighbours on both sides.
std::optional<Permuted> ReshapeOp::getPermuted(unsigned,
                                               Permutation permutation) {
  Exprs shape = getShape(getInput()), transposed;
  for (int64_t p : permutation)
    transposed.push_back(shape[p]);
  std::optional<SunkTranspose> sunk = sinkTranspose(
      transposed, invertPermutationVector(permutation), getShape(getResult()));
  if (!sunk)
    return std::nullopt;
  Permuted permuted;
  permuted.operands.emplace_back(permutation);
  permuted.result = std::move(sunk->permutation);
  return permuted;
}

std::optional<Permuted> BroadcastOp::getPermuted(unsigned,
                                                 Permutation permutation) {
  return permuteBroadcast(*this, permutation);
}

std::optional<Permuted> MatmulOp::getPermuted(unsigned operand,
                                              Permutation permutation) {
  size_t rank = permutation.size();
  if (operand != 0 || rank != rankOf(getResult()) ||
      permutation.back() != (int64_t)rank - 1)
    return std::nullopt;
  Permuted permuted = alike(*this, permutation);
  if (rankOf(getRhs()) == 2)
    return permuted;
  // With matrices in batches, rows stay rows.
  if (permutation[rank - 2] != (int64_t)rank - 2 || rankOf(getRhs()) != rank)
    return std::nullopt;
  permuted.operands[1] = permuted.operands[0];
  return permuted;
}

std::optional<Permuted> ConcatOp::getPermuted(unsigned,
                                              Permutation permutation) {
  Permuted permuted = alike(*this, permutation);
  for (auto &operand : permuted.operands)
    operand.assign(permutation.begin(), permutation.end());
  permuted.attributes.push_back(
      named(*this, "axis", integer(*this, placeOf(getAxis(), permutation))));
  return permuted;
}

static AffineMap permutedMap(AffineMap map, Permutation permutation) {
  Exprs results;
  for (int64_t p : permutation)
    results.push_back(map.getResult(p));
  return AffineMap::get(0, map.getNumSymbols(), results, map.getContext());
}

std::optional<Permuted> PadOp::getPermuted(unsigned operand,
                                           Permutation permutation) {
  if (operand != 0)
    return std::nullopt;
  Permuted permuted = alike(*this, permutation);
  permuted.attributes.push_back(named(
      *this, "lows", AffineMapAttr::get(permutedMap(getLows(), permutation))));
  return permuted;
}

std::optional<Permuted> SliceOp::getPermuted(unsigned,
                                             Permutation permutation) {
  Permuted permuted = alike(*this, permutation);
  permuted.attributes.push_back(
      named(*this, "starts",
            AffineMapAttr::get(permutedMap(getStarts(), permutation))));
  permuted.attributes.push_back(
      named(*this, "steps",
            integers(*this, applyPermutation(getSteps(), permutation))));
  return permuted;
}

std::optional<Permuted> ResizeOp::getPermuted(unsigned,
                                              Permutation permutation) {
  Permuted permuted = alike(*this, permutation);
  SmallVector<std::pair<int64_t, double>> axes;
  for (auto [axis, scale] : llvm::zip_equal(getAxes(), getScales()))
    axes.push_back({placeOf(axis, permutation), scale});
  llvm::sort(axes);
  SmallVector<int64_t> places;
  SmallVector<double> scales;
  for (auto [axis, scale] : axes) {
    places.push_back(axis);
    scales.push_back(scale);
  }
  permuted.attributes.push_back(named(*this, "axes", integers(*this, places)));
  permuted.attributes.push_back(
      named(*this, "scales", DenseF64ArrayAttr::get(getContext(), scales)));
  return permuted;
}

/// Of reductions along axes: without `keepdims`, the result has the other
/// dimensions, in the order they are left in.
static Permuted permuteReduction(Operation *op, Permutation permutation,
                                 ArrayRef<int64_t> axes, bool keepdims) {
  Permuted permuted = alike(op, permutation);
  if (keepdims)
    return permuted;
  SmallVector<int64_t> kept, order;
  for (int64_t dim = 0; dim < (int64_t)permutation.size(); ++dim)
    if (!llvm::is_contained(axes, dim))
      kept.push_back(dim);
  for (int64_t dim : permutation)
    if (!llvm::is_contained(axes, dim))
      order.push_back(llvm::find(kept, dim) - kept.begin());
  permuted.result = invertPermutationVector(order);
  return permuted;
}

std::optional<Permuted> ReduceOp::getPermuted(unsigned,
                                              Permutation permutation) {
  Permuted permuted =
      permuteReduction(*this, permutation, getAxes(), getKeepdims());
  permuted.attributes.push_back(
      named(*this, "axes", integers(*this, placesOf(getAxes(), permutation))));
  return permuted;
}

std::optional<Permuted> ArgReduceOp::getPermuted(unsigned,
                                                 Permutation permutation) {
  Permuted permuted =
      permuteReduction(*this, permutation, (int64_t)getAxis(), getKeepdims());
  permuted.attributes.push_back(
      named(*this, "axis", integer(*this, placeOf(getAxis(), permutation))));
  return permuted;
}

std::optional<Permuted> SoftmaxOp::getPermuted(unsigned,
                                               Permutation permutation) {
  Permuted permuted = alike(*this, permutation);
  permuted.attributes.push_back(
      named(*this, "axis", integer(*this, placeOf(getAxis(), permutation))));
  return permuted;
}

std::optional<Permuted> NormalizeOp::getPermuted(unsigned,
                                                 Permutation permutation) {
  Permuted permuted = alike(*this, permutation);
  permuted.attributes.push_back(
      named(*this, "axes", integers(*this, placesOf(getAxes(), permutation))));
  return permuted;
}

/// [N, C, S...] to [N, S..., C].
static SmallVector<int64_t> channelsLast(size_t rank) {
  SmallVector<int64_t> permutation{0};
  for (size_t i = 2; i < rank; ++i)
    permutation.push_back(i);
  permutation.push_back(1);
  return permutation;
}

std::optional<Permuted> ConvOp::getChannelsLastForm() {
  if (getChannelsLast())
    return std::nullopt;
  Permuted permuted = alike(*this, channelsLast(getSpatialRank() + 2));
  permuted.operands[1] = permuted.operands[0];
  permuted.attributes.push_back(
      named(*this, "channels_last", UnitAttr::get(getContext())));
  return permuted;
}

std::optional<Permuted> PoolOp::getChannelsLastForm() {
  if (getChannelsLast())
    return std::nullopt;
  Permuted permuted = alike(*this, channelsLast(getKernel().size() + 2));
  permuted.attributes.push_back(
      named(*this, "channels_last", UnitAttr::get(getContext())));
  return permuted;
}
