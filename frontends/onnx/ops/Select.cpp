// Operators whose results are as large as the values of an operand say: taken
// where these are known while the model is read.
#include "frontends/common/Diagnostic.h"
#include "frontends/common/Tensors.h"
#include "frontends/common/builders/Gather.h"
#include "frontends/onnx/Registry.h"
#include "graph/ir/StoredWeight.h"
#include <numeric>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

/// A number of 64 bits that compares as the element of these bits does: equal
/// zeros, NaN behind all others.
static int64_t keyOf(uint64_t bits, mlir::Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  llvm::APInt value(width, bits, /*isSigned=*/false, /*implicitTrunc=*/true);
  if (auto isFloat = llvm::dyn_cast<mlir::FloatType>(type)) {
    if (llvm::APFloat(isFloat.getFloatSemantics(), value).isNaN())
      return std::numeric_limits<int64_t>::max();
    bool isNegative = value.isSignBitSet();
    value.clearSignBit();
    int64_t magnitude = value.getZExtValue();
    return isNegative ? -magnitude : magnitude;
  }
  if (width == 64 && type.isUnsignedInteger())
    return int64_t(bits ^ (uint64_t(1) << 63));
  return type.isUnsignedInteger() || width == 1 ? int64_t(value.getZExtValue())
                                                : value.getSExtValue();
}

/// The elements of operand i in order, as keys; fails where they are not known.
static llvm::FailureOr<SmallVector<int64_t>> keys(Node &n, Emitter &e,
                                                  unsigned i) {
  Value value = n.input(i);
  mlir::Type element = elementOf(value);
  SmallVector<int64_t> result;
  if (auto weight = value.getDefiningOp<graph::WeightOp>()) {
    const graph::Weight *data = graph::storedWeight(weight);
    unsigned bytes = (element.getIntOrFloatBitWidth() + 7) / 8;
    for (size_t at = 0; data && at + bytes <= data->bytes.size(); at += bytes) {
      uint64_t bits = 0;
      std::memcpy(&bits, data->bytes.data() + at, bytes);
      result.push_back(keyOf(bits, element));
    }
    return result;
  }
  mlir::DenseElementsAttr constant = e.constantOf(value);
  if (!constant)
    return e.fail("shapes that depend on data are not supported: the result is "
                  "as large as the values of input " +
                      Twine(i) + " ('" + printable(n.inputName(i)) + "') say",
                  "make that input a constant, keep all elements and mask them "
                  "(Where), or do this outside of the engine");
  if (isFloat(value))
    for (const llvm::APFloat &x : constant.getValues<llvm::APFloat>())
      result.push_back(keyOf(x.bitcastToAPInt().getZExtValue(), element));
  else
    for (const llvm::APInt &x : constant.getValues<llvm::APInt>())
      result.push_back(keyOf(x.getZExtValue(), element));
  return result;
}

/// Integers as a tensor of these sizes.
static Value tensorOf(ArrayRef<int64_t> values, ArrayRef<int64_t> dims,
                      Emitter &e) {
  auto type = e.type(e.numbers(dims), e.getBuilder().getI64Type());
  if (!type)
    return {};
  const char *data = reinterpret_cast<const char *>(values.data());
  return materialize(
      ownedTensor(type, {data, data + values.size() * sizeof(int64_t)}),
      "positions", e);
}
static Value listOf(ArrayRef<int64_t> values, Emitter &e) {
  return tensorOf(values, {int64_t(values.size())}, e);
}

/// Of a tensor whose elements, however many, are all the same one: whether that
/// is not 0.
static std::optional<bool> isFilled(Value value, Emitter &e) {
  auto spread = value.getDefiningOp<graph::BroadcastOp>();
  auto one = e.constantOf(spread ? spread.getInput() : value);
  if (!one || !one.isSplat())
    return std::nullopt;
  auto element = one.getSplatValue<mlir::Attribute>();
  if (auto number = llvm::dyn_cast<mlir::FloatAttr>(element))
    return !number.getValue().isZero();
  auto number = llvm::dyn_cast<mlir::IntegerAttr>(element);
  return number ? std::optional(!number.getValue().isZero()) : std::nullopt;
}

/// The coordinates of all elements of a tensor, [rank, elements].
static Value allCoordinates(const Exprs &shape, Emitter &e) {
  AffineExpr count = productOf(shape, e.getContext());
  if (!count)
    return e.fail("the number of elements is absurdly large");
  Values rows;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    rows.push_back(e.reshape(e.iota(shape, axis, e.getBuilder().getI64Type()),
                             {e.number(1), count}));
  return rows.size() == 1 ? rows.front() : e.concat(rows, 0);
}

static llvm::LogicalResult nonZero(Node &n, Emitter &e) {
  Value x = n.input(0);
  Exprs shape = graph::getShape(x);
  // PyTorch's exporter made ranges of ones up to opset 10.
  if (auto filled = isFilled(x, e); filled && !shape.empty())
    return n.yield(*filled ? allCoordinates(shape, e)
                           : tensorOf({}, {int64_t(shape.size()), 0}, e));
  auto elements = keys(n, e, 0);
  if (failed(elements))
    return llvm::failure();
  int64_t zero = keyOf(0, elementOf(x)), rank = shape.size();
  SmallVector<int64_t> hits, coordinates;
  for (auto [at, key] : llvm::enumerate(*elements))
    if (key != zero)
      hits.push_back(at);
  int64_t inner = elements->size();
  for (AffineExpr size : shape) {
    int64_t extent = *graph::constantOf(size);
    inner /= std::max<int64_t>(extent, 1);
    for (int64_t at : hits)
      coordinates.push_back(at / inner % extent);
  }
  return n.yield(tensorOf(coordinates, {rank, int64_t(hits.size())}, e));
}

/// `x` as one dimension, or as it is where the node has an axis; which that is.
static llvm::FailureOr<int64_t> flatUnlessAxis(Node &n, Emitter &e, Value &x) {
  if (n.hasAttribute("axis"))
    return n.axis("axis", rankOf(x));
  AffineExpr count = productOf(graph::getShape(x), e.getContext());
  if (!count)
    return e.fail("the number of elements is absurdly large");
  x = e.reshape(x, {count});
  return 0;
}

/// Entries of `x` along `axis`.
static Value take(Value x, ArrayRef<int64_t> places, int64_t axis, Emitter &e) {
  Value at = listOf(places, e);
  if (!at || failed(checkPositions(x, at, axis, e)))
    return {};
  return e.op<graph::GatherOp>({x, at}, e.attr("axis", axis));
}

static llvm::LogicalResult compress(Node &n, Emitter &e) {
  Value x = n.input(0);
  auto axis = flatUnlessAxis(n, e, x);
  auto kept = keys(n, e, 1);
  if (failed(axis) || failed(kept) || !x)
    return llvm::failure();
  // What a condition says beyond the last entry counts for nothing.
  auto extent = graph::constantOf(graph::getShape(x)[*axis]);
  SmallVector<int64_t> places;
  for (auto [at, key] : llvm::enumerate(*kept))
    if (key && (!extent || int64_t(at) < *extent))
      places.push_back(at);
  return n.yield(take(x, places, *axis, e));
}

namespace {
/// Entries that are alike: which comes first, how many there are, and the group
/// of each.
struct Groups {
  SmallVector<int64_t> first, counts, groupOf;
};
} // namespace

/// Groups of entries of `width` keys each, sorted by them, or by where the
/// first of each is.
static Groups groupsOf(ArrayRef<int64_t> entries, int64_t count, int64_t width,
                       bool sorted) {
  auto entry = [&](int64_t i) { return entries.slice(i * width, width); };
  SmallVector<int64_t> order(count), names(count);
  std::iota(order.begin(), order.end(), 0);
  auto isLess = [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(entry(a).begin(), entry(a).end(),
                                        entry(b).begin(), entry(b).end());
  };
  llvm::sort(order, [&](int64_t a, int64_t b) {
    return isLess(a, b) || (a < b && !isLess(b, a));
  });
  Groups all;
  all.groupOf.resize(count);
  for (auto [at, i] : llvm::enumerate(order)) {
    if (at == 0 || isLess(order[at - 1], i)) {
      all.first.push_back(i);
      all.counts.push_back(0);
    }
    all.groupOf[i] = all.first.size() - 1;
    ++all.counts.back();
  }
  if (sorted)
    return all;
  Groups byPlace;
  for (int64_t i = 0; i < count; ++i) {
    int64_t group = all.groupOf[i];
    if (all.first[group] == i) {
      names[group] = byPlace.first.size();
      byPlace.first.push_back(i);
      byPlace.counts.push_back(all.counts[group]);
    }
    byPlace.groupOf.push_back(names[group]);
  }
  return byPlace;
}

static llvm::LogicalResult unique(Node &n, Emitter &e) {
  Value x = n.input(0);
  auto elements = keys(n, e, 0);
  auto axis = flatUnlessAxis(n, e, x);
  if (failed(elements) || failed(axis) || !x)
    return llvm::failure();
  Exprs shape = graph::getShape(x);
  int64_t count = *graph::constantOf(shape[*axis]), inner = 1;
  for (AffineExpr size : llvm::drop_begin(shape, *axis + 1))
    inner *= *graph::constantOf(size);
  int64_t all = elements->size(), width = count ? all / count : 0;
  SmallVector<int64_t> entries(all);
  for (int64_t at = 0; at < all; ++at) {
    int64_t outer = at / (inner * count), i = at / inner % count;
    entries[i * width + outer * inner + at % inner] = (*elements)[at];
  }
  Groups groups = groupsOf(entries, count, width, n.integer("sorted", 1) != 0);
  return n.yield({take(x, groups.first, *axis, e), listOf(groups.first, e),
                  listOf(groups.groupOf, e), listOf(groups.counts, e)});
}

llvm::ArrayRef<Row> charonia::frontend::onnx::selectRows() {
  static const Row rows[] = {
      {"", "NonZero", 9, 13, nonZero},
      {"", "Compress", 9, 28, compress},
      {"", "Unique", 11, 28, unique},
  };
  return rows;
}
