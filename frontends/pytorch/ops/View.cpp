// Operators whose results have the elements of their operand in another shape,
// and how a write to such a result changes the operand.
#include "frontends/pytorch/ops/Rows.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;

/// The file's shape of the result says what -1 and the like stand for.
static LogicalResult reshape(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  c.ignore({"size", "shape", "dim", "sizes", "start_dim", "end_dim", "other",
            "names", "implicit"});
  return c.yield(e.reshape(x, c.resultShape()));
}
static Value writeReshape(Call &c, Value self, Value view) {
  return c.getEmitter().reshape(view, graph::getShape(self));
}

/// The same bits as another type of the same width; truth values are bytes.
static LogicalResult bitsAs(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"dtype"});
  Value x = c.tensor("self");
  mlir::Type from = elementOf(x), to = c.resultElement();
  if (!from || !to || from == to)
    return c.yield(x);
  auto isByte = [](mlir::Type type) {
    return type.getIntOrFloatBitWidth() <= 8;
  };
  if ((from.isInteger(1) || to.isInteger(1)) && isByte(from) && isByte(to))
    return c.yield(e.cast(x, to));
  if (from.getIntOrFloatBitWidth() != to.getIntOrFloatBitWidth())
    return c.fail("bits of " + e.describe(x.getType()) +
                      " as elements of another width are not supported",
                  "view them as a type of the same width");
  return c.yield(
      e.op<graph::BitcastOp>({x}, e.attr("to", mlir::TypeAttr::get(to))));
}

static LogicalResult expand(Call &c) {
  Value x = c.tensor("self");
  c.ignore({"size", "other", "implicit"});
  return c.yield(c.getEmitter().broadcast(x, c.resultShape()));
}

// Permutations.

static SmallVector<int64_t> swapped(int64_t rank, int64_t a, int64_t b) {
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (rank)
    std::swap(permutation[a], permutation[b]);
  return permutation;
}
/// The order that an operator puts the dimensions of `rank` in.
using Permutation = SmallVector<int64_t> (*)(Call &, int64_t rank);
static SmallVector<int64_t> listed(Call &c, int64_t rank) {
  return c.axes("dims", rank);
}
static SmallVector<int64_t> ofMatrix(Call &, int64_t rank) {
  return rank == 2 ? swapped(2, 0, 1) : swapped(rank, 0, 0);
}
static SmallVector<int64_t> ofLastTwo(Call &, int64_t rank) {
  return rank < 2 ? swapped(rank, 0, 0) : swapped(rank, rank - 2, rank - 1);
}
static SmallVector<int64_t> reversed(Call &, int64_t rank) {
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::reverse(order.begin(), order.end());
  return order;
}
static SmallVector<int64_t> ofDims(Call &c, int64_t rank) {
  return swapped(rank, c.axis("dim0", rank), c.axis("dim1", rank));
}
static SmallVector<int64_t> ofAxes(Call &c, int64_t rank) {
  return swapped(rank, c.axis("axis0", rank), c.axis("axis1", rank));
}
static SmallVector<int64_t> moved(Call &c, int64_t rank) {
  auto from = c.integers("source"), to = c.integers("destination");
  SmallVector<int64_t> order(rank, -1), rest;
  SmallVector<bool> isMoved(rank);
  for (size_t i = 0; i < from.size() && i < to.size() && rank; ++i) {
    int64_t source = c.axis(from[i], rank);
    order[c.axis(to[i], rank)] = source;
    isMoved[source] = true;
  }
  for (int64_t d = 0; d < rank; ++d)
    if (!isMoved[d])
      rest.push_back(d);
  auto next = rest.begin();
  for (int64_t &d : order)
    if (d < 0 && next != rest.end())
      d = *next++;
  return order;
}
template <Permutation order> static LogicalResult permute(Call &c) {
  Value x = c.tensor("self");
  auto permutation = order(c, rankOf(x));
  if (!x || c.getEmitter().failed())
    return c.yield(Value());
  SmallVector<bool> seen(rankOf(x));
  for (int64_t d : permutation)
    if (d < 0 || d >= rankOf(x) || std::exchange(seen[d], true))
      return c.fail("has dimensions that are no permutation");
  if (static_cast<int64_t>(permutation.size()) != rankOf(x))
    return c.fail("names " + llvm::Twine(permutation.size()) + " of " +
                  llvm::Twine(rankOf(x)) + " dimensions");
  return c.yield(c.getEmitter().transpose(x, permutation));
}
template <Permutation order>
static Value writePermute(Call &c, Value self, Value view) {
  auto permutation = order(c, rankOf(self));
  SmallVector<int64_t> inverse(permutation.size());
  for (auto [i, d] : llvm::enumerate(permutation))
    inverse[d] = i;
  return c.getEmitter().transpose(view, inverse);
}

/// Whether the file says that an operand lies in row-major order and begins
/// where the view does.
static bool liesAt(Call &c, const TensorMeta *meta) {
  Emitter &e = c.getEmitter();
  if (!meta)
    return false;
  Exprs shape = c.convert(meta->sizes), strides = c.convert(meta->strides);
  AffineExpr expected = e.number(1), offset = c.convert({meta->offset})[0];
  if (shape.size() != strides.size() || !offset ||
      (c.has("storage_offset") && c.size("storage_offset") != offset))
    return false;
  for (auto [size, stride] : llvm::reverse(llvm::zip_equal(shape, strides))) {
    if (!size || !stride)
      return false;
    if (size == e.number(1))
      continue;
    if (graph::simplify(stride - expected) != e.number(0))
      return false;
    expected = graph::simplify(expected * size);
  }
  return true;
}

/// A view of the operand's storage: where that is the operand in row-major
/// order, and sizes and strides of the result are too, nothing moves.
static LogicalResult asStrided(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  Exprs shape = c.resultShape(), strides = c.sizes("stride");
  c.ignore({"size"});
  bool isDense = strides.size() == shape.size() && liesAt(c, c.metaOf("self"));
  AffineExpr expected = e.number(1);
  for (size_t d = shape.size(); isDense && d-- > 0;) {
    if (!shape[d] || !strides[d])
      return c.yield(Value());
    if (shape[d] == e.number(1))
      continue;
    isDense = graph::simplify(strides[d] - expected) == e.number(0);
    expected = graph::simplify(expected * shape[d]);
  }
  if (!isDense || !x ||
      graph::simplify(productOf(graph::getShape(x), e.getContext()) -
                      expected) != e.number(0))
    return c.fail("strides that are not those of the same elements in "
                  "row-major order are not supported",
                  "use slices or unfold() in the model instead");
  return c.yield(e.reshape(x, shape));
}

static LogicalResult same(Call &c) {
  c.ignore({"memory_format", "non_blocking"});
  return c.yield(c.tensor("self"));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::viewRows() {
  static const Row rows[] = {
      {"aten.view.default", partwise(reshape), Alias::View, writeReshape},
      {"aten.view.dtype", bitsAs, Alias::View},
      {"aten._unsafe_view.default", partwise(reshape), Alias::View,
       writeReshape},
      {"aten.reshape.default", partwise(reshape), Alias::Maybe, writeReshape},
      {"aten.view_as.default", partwise(reshape), Alias::View, writeReshape},
      {"aten.reshape_as.default", partwise(reshape), Alias::Maybe,
       writeReshape},
      {"aten.flatten.using_ints", partwise(reshape), Alias::Maybe,
       writeReshape},
      {"aten.ravel.default", partwise(reshape), Alias::Maybe, writeReshape},
      {"aten.unflatten.int", partwise(reshape), Alias::View, writeReshape},
      {"aten.unsqueeze.default", partwise(reshape), Alias::View, writeReshape},
      {"aten.squeeze.default", partwise(reshape), Alias::View, writeReshape},
      {"aten.squeeze.dim", partwise(reshape), Alias::View, writeReshape},
      {"aten.squeeze.dims", partwise(reshape), Alias::View, writeReshape},
      {"aten.atleast_1d.default", partwise(reshape), Alias::View, writeReshape},
      {"aten.atleast_2d.default", partwise(reshape), Alias::View, writeReshape},
      {"aten.atleast_3d.default", partwise(reshape), Alias::View, writeReshape},
      {"aten.expand.default", partwise(expand), Alias::View},
      {"aten.expand_as.default", partwise(expand), Alias::View},
      {"aten.broadcast_to.default", partwise(expand), Alias::View},
      {"aten.transpose.int", partwise(permute<ofDims>), Alias::View,
       writePermute<ofDims>},
      {"aten.permute.default", partwise(permute<listed>), Alias::View,
       writePermute<listed>},
      {"aten.t.default", partwise(permute<ofMatrix>), Alias::View,
       writePermute<ofMatrix>},
      {"aten.numpy_T.default", partwise(permute<reversed>), Alias::View,
       writePermute<reversed>},
      {"aten.mT.default", partwise(permute<ofLastTwo>), Alias::View,
       writePermute<ofLastTwo>},
      {"aten.swapaxes.default", partwise(permute<ofAxes>), Alias::View,
       writePermute<ofAxes>},
      {"aten.swapdims.default", partwise(permute<ofDims>), Alias::View,
       writePermute<ofDims>},
      {"aten.movedim.int", partwise(permute<moved>), Alias::View,
       writePermute<moved>},
      {"aten.moveaxis.int", partwise(permute<moved>), Alias::View,
       writePermute<moved>},
      {"aten.movedim.intlist", partwise(permute<moved>), Alias::View,
       writePermute<moved>},
      {"aten.moveaxis.intlist", partwise(permute<moved>), Alias::View,
       writePermute<moved>},
      {"aten.as_strided.default", asStrided, Alias::View},
      {"aten.alias.default", partwise(same), Alias::View, writeSame},
      {"aten.detach.default", partwise(same), Alias::View, writeSame},
      {"aten.positive.default", partwise(same), Alias::View, writeSame},
      {"aten.contiguous.default", partwise(same), Alias::Maybe, writeSame},
      {"aten.clone.default", partwise(same)},
      {"aten.lift_fresh_copy.default", partwise(same)},
  };
  return rows;
}
