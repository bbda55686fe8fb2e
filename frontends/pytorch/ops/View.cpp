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
static SmallVector<int64_t> permutationOf(Call &c, int64_t rank) {
  // In place the name has a _ behind it.
  std::string plain = c.getNode().target;
  if (size_t at = plain.find("_."); at != std::string::npos)
    plain.erase(at, 1);
  llvm::StringRef op = plain;
  if (op.contains(".permute."))
    return c.axes("dims", rank);
  if (op.contains(".t."))
    return rank == 2 ? swapped(2, 0, 1) : swapped(rank, 0, 0);
  if (op.contains(".numpy_T.") || op.contains(".mT.") ||
      op.contains(".matrix_H.")) {
    if (!op.contains(".numpy_T."))
      return rank < 2 ? swapped(rank, 0, 0) : swapped(rank, rank - 2, rank - 1);
    auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    std::reverse(order.begin(), order.end());
    return order;
  }
  if (op.contains(".movedim.")) {
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
  bool isAxis = op.contains(".swapaxes");
  return swapped(rank, c.axis(isAxis ? "axis0" : "dim0", rank),
                 c.axis(isAxis ? "axis1" : "dim1", rank));
}
static LogicalResult permute(Call &c) {
  Value x = c.tensor("self");
  auto permutation = permutationOf(c, rankOf(x));
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
static Value writePermute(Call &c, Value self, Value view) {
  auto permutation = permutationOf(c, rankOf(self));
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

static Value writeSame(Call &, Value, Value view) { return view; }
static LogicalResult same(Call &c) {
  c.ignore({"memory_format", "non_blocking"});
  return c.yield(c.tensor("self"));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::viewRows() {
  static const Row rows[] = {
      {"aten.view.default", reshape, Alias::View, writeReshape},
      {"aten._unsafe_view.default", reshape, Alias::View, writeReshape},
      {"aten.reshape.default", reshape, Alias::Maybe, writeReshape},
      {"aten.view_as.default", reshape, Alias::View, writeReshape},
      {"aten.reshape_as.default", reshape, Alias::Maybe, writeReshape},
      {"aten.flatten.using_ints", reshape, Alias::Maybe, writeReshape},
      {"aten.ravel.default", reshape, Alias::Maybe, writeReshape},
      {"aten.unflatten.int", reshape, Alias::View, writeReshape},
      {"aten.unsqueeze.default", reshape, Alias::View, writeReshape},
      {"aten.squeeze.default", reshape, Alias::View, writeReshape},
      {"aten.squeeze.dim", reshape, Alias::View, writeReshape},
      {"aten.squeeze.dims", reshape, Alias::View, writeReshape},
      {"aten.atleast_1d.default", reshape, Alias::View, writeReshape},
      {"aten.atleast_2d.default", reshape, Alias::View, writeReshape},
      {"aten.atleast_3d.default", reshape, Alias::View, writeReshape},
      {"aten.expand.default", expand, Alias::View},
      {"aten.expand_as.default", expand, Alias::View},
      {"aten.broadcast_to.default", expand, Alias::View},
      {"aten.transpose.int", permute, Alias::View, writePermute},
      {"aten.permute.default", permute, Alias::View, writePermute},
      {"aten.t.default", permute, Alias::View, writePermute},
      {"aten.numpy_T.default", permute, Alias::View, writePermute},
      {"aten.mT.default", permute, Alias::View, writePermute},
      {"aten.swapaxes.default", permute, Alias::View, writePermute},
      {"aten.swapdims.default", permute, Alias::View, writePermute},
      {"aten.movedim.int", permute, Alias::View, writePermute},
      {"aten.movedim.intlist", permute, Alias::View, writePermute},
      {"aten.as_strided.default", asStrided, Alias::View},
      {"aten.alias.default", same, Alias::View, writeSame},
      {"aten.detach.default", same, Alias::View, writeSame},
      {"aten.contiguous.default", same, Alias::Maybe, writeSame},
      {"aten.clone.default", same},
      {"aten.lift_fresh_copy.default", same},
  };
  return rows;
}
