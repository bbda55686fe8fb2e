// Cutting tensors and putting them together.
#include "frontends/common/builders/Slice.h"
#include "frontends/common/builders/Pad.h"
#include "frontends/pytorch/Registry.h"
#include "llvm/ADT/StringSwitch.h"
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::LogicalResult;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Value;

/// `self` with the elements of `range` along `axis` replaced by `part`.
static Value replaceAlong(Value self, Value part, int64_t axis,
                          const SliceRange &range, Emitter &e) {
  if (!self || !part || !range.count)
    return {};
  Exprs shape = graph::getShape(self);
  AffineExpr size = shape[axis];
  if (range.step == 1) {
    AffineExpr end = graph::simplify(range.start + range.count);
    Values parts;
    auto keep = [&](AffineExpr from, AffineExpr to) {
      AffineExpr count = graph::simplify(to - from);
      if (count != e.number(0))
        parts.push_back(sliceAlong(self, axis, {from, count, 1}, e));
    };
    keep(e.number(0), range.start);
    if (range.count != e.number(0))
      parts.push_back(part);
    keep(end, size);
    return parts.empty() ? self : e.concat(parts, axis);
  }
  // Every step-th element: taken from the part spread out, where it is one.
  mlir::Type i64 = e.getBuilder().getI64Type();
  Exprs along(shape.size(), e.number(1));
  along[axis] = size;
  Value offset = e.sub(e.iota(along, axis, i64), e.size(range.start, i64));
  Value step = e.scalar(range.step, i64), zero = e.scalar(int64_t(0), i64);
  Value place = e.div(offset, step);
  auto both = [&](Value a, Value b) { return e.op<graph::AndOp>({a, b}); };
  Value isInside = both(
      both(e.compare(graph::Predicate::ge, offset, zero),
           e.compare(graph::Predicate::lt, place, e.size(range.count, i64))),
      e.compare(graph::Predicate::eq, e.op<graph::ModOp>({offset, step}),
                zero));
  Value indices = e.reshape(e.select(isInside, place, zero), {size});
  Value spread = e.op<graph::GatherOp>({part, indices}, e.attr("axis", axis));
  return e.select(isInside, spread, self);
}

// slice and select.

static SliceRange sliceRange(Call &c, int64_t axis, Value self) {
  Emitter &e = c.getEmitter();
  AffineExpr start = c.size("start", 0),
             end = c.size("end", std::numeric_limits<int64_t>::max());
  int64_t step = c.integer("step", 1);
  if (step < 1)
    c.fail("a step of " + llvm::Twine(step) + " is not supported");
  if (!self || !start || !end || e.failed())
    return {};
  return cutSlice(start, end, step, graph::getShape(self)[axis], e);
}
static LogicalResult slice(Call &c) {
  Value x = c.tensor("self");
  int64_t axis = c.axis("dim", rankOf(x), 0);
  return c.yield(sliceAlong(x, axis, sliceRange(c, axis, x), c.getEmitter()));
}
static Value writeSlice(Call &c, Value self, Value view) {
  int64_t axis = c.axis("dim", rankOf(self), 0);
  return replaceAlong(self, view, axis, sliceRange(c, axis, self),
                      c.getEmitter());
}
static LogicalResult sliceScatter(Call &c) {
  Value x = c.tensor("self"), part = c.operand("src", elementOf(x));
  int64_t axis = c.axis("dim", rankOf(x), 0);
  return c.yield(
      replaceAlong(x, part, axis, sliceRange(c, axis, x), c.getEmitter()));
}

static SliceRange selectRange(Call &c, int64_t axis, Value self) {
  Emitter &e = c.getEmitter();
  AffineExpr index = c.size("index");
  if (!self || !index || e.failed())
    return {};
  AffineExpr size = graph::getShape(self)[axis];
  Symbols &symbols = e.getSymbols();
  if (!symbols.isAtLeast(index, e.number(0))) {
    if (!symbols.isAtLeast(e.number(-1), index)) {
      c.fail("cannot tell whether " + symbols.toString(index) +
             " counts from the end");
      return {};
    }
    index = graph::simplify(index + size);
  }
  if (!symbols.assumeAtLeast(index, e.number(0),
                             "so that an index lies inside its tensor") ||
      !symbols.assumeAtLeast(graph::simplify(size - 1), index,
                             "so that an index lies inside its tensor")) {
    c.fail("index " + symbols.toString(index) + " is out of range for size " +
           symbols.toString(size));
    return {};
  }
  return {index, e.number(1), 1};
}
/// `shape` without dimension `axis`.
static Exprs without(Exprs shape, int64_t axis) {
  shape.erase(shape.begin() + axis);
  return shape;
}
static LogicalResult select(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  int64_t axis = c.axis("dim", rankOf(x));
  Value part = sliceAlong(x, axis, selectRange(c, axis, x), e);
  if (!part)
    return c.yield(part);
  return c.yield(e.reshape(part, without(graph::getShape(part), axis)));
}
static Value replaceSelected(Call &c, Value self, Value part) {
  Emitter &e = c.getEmitter();
  int64_t axis = c.axis("dim", rankOf(self));
  SliceRange range = selectRange(c, axis, self);
  if (!self || !range.count)
    return {};
  Exprs shape = graph::getShape(self);
  shape[axis] = e.number(1);
  return replaceAlong(self, e.reshape(part, shape), axis, range, e);
}
static LogicalResult selectScatter(Call &c) {
  Value x = c.tensor("self");
  return c.yield(replaceSelected(c, x, c.operand("src", elementOf(x))));
}

static SliceRange narrowRange(Call &c, int64_t axis, Value self) {
  Emitter &e = c.getEmitter();
  AffineExpr start = c.size("start"), length = c.size("length");
  if (!self || !start || !length || e.failed())
    return {};
  AffineExpr size = graph::getShape(self)[axis];
  if (e.getSymbols().isAtLeast(e.number(-1), start))
    start = graph::simplify(start + size);
  return cutSlice(start, graph::simplify(start + length), 1, size, e);
}
static LogicalResult narrow(Call &c) {
  Value x = c.tensor("self");
  int64_t axis = c.axis("dim", rankOf(x));
  return c.yield(sliceAlong(x, axis, narrowRange(c, axis, x), c.getEmitter()));
}
static Value writeNarrow(Call &c, Value self, Value view) {
  int64_t axis = c.axis("dim", rankOf(self));
  return replaceAlong(self, view, axis, narrowRange(c, axis, self),
                      c.getEmitter());
}

// Lists of parts.

/// Which dimension is split: the argument's, or one of those that stack() and
/// its kind join along.
enum class Along { Dim, Rows, Columns, Depth };
static int64_t splitAxis(Call &c, Value x, Along along) {
  int64_t rank = rankOf(x);
  switch (along) {
  case Along::Dim:
    return rank ? c.axis("dim", rank, 0) : 0;
  case Along::Rows:
    return 0;
  case Along::Columns:
    return rank == 1 ? 0 : 1;
  case Along::Depth:
    return c.axis(2, rank);
  }
  llvm_unreachable("no such dimension");
}
/// The parts of a split: the file's shapes of the results say how long each is.
/// None and a failure where they do not make up the whole.
static std::optional<SmallVector<SliceRange>> splitRanges(Call &c, Value x,
                                                          int64_t axis) {
  Emitter &e = c.getEmitter();
  c.ignore({"split_size", "split_sizes", "chunks", "sections", "indices",
            "tensor_indices_or_sections"});
  if (!x || axis >= rankOf(x) || e.failed()) {
    c.fail("splits no dimension");
    return std::nullopt;
  }
  SmallVector<SliceRange> ranges;
  AffineExpr start = e.number(0);
  for (unsigned i = 0; i < c.numResults(); ++i) {
    Exprs shape = c.resultShape(i);
    if (static_cast<int64_t>(shape.size()) != rankOf(x) || !shape[axis]) {
      c.fail("does not fit its results");
      return std::nullopt;
    }
    ranges.push_back({start, shape[axis], 1});
    start = graph::simplify(start + shape[axis]);
  }
  if (e.agree(start, graph::getShape(x)[axis], "splits all of it"))
    return ranges;
  c.fail("the parts do not make up size " +
         e.getSymbols().toString(graph::getShape(x)[axis]));
  return std::nullopt;
}
template <Along along> static LogicalResult split(Call &c) {
  Value x = c.tensor("self");
  int64_t axis = splitAxis(c, x, along);
  auto ranges = splitRanges(c, x, axis);
  Values parts;
  if (!ranges)
    return c.yield(Value());
  for (const SliceRange &range : *ranges)
    parts.push_back(sliceAlong(x, axis, range, c.getEmitter()));
  return c.yield(parts);
}
template <Along along>
static Value writeSplit(Call &c, Value self, Value view) {
  int64_t axis = splitAxis(c, self, along);
  auto ranges = splitRanges(c, self, axis);
  return ranges && c.getWritten() < ranges->size()
             ? replaceAlong(self, view, axis, (*ranges)[c.getWritten()],
                            c.getEmitter())
             : Value();
}
static LogicalResult unbind(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  int64_t axis = c.axis("dim", rankOf(x), 0);
  if (!x || e.failed() ||
      !e.agree(graph::getShape(x)[axis], e.number(c.numResults()),
               "takes all of it"))
    return c.fail("the results are not one for each element");
  Exprs shape = without(graph::getShape(x), axis);
  Values parts;
  for (unsigned i = 0; i < c.numResults(); ++i)
    parts.push_back(e.reshape(
        sliceAlong(x, axis, {e.number(i), e.number(1), 1}, e), shape));
  return c.yield(parts);
}

static Value writeUnbound(Call &c, Value self, Value view) {
  Emitter &e = c.getEmitter();
  int64_t axis = c.axis("dim", rankOf(self), 0);
  if (!self || e.failed())
    return {};
  Exprs shape = graph::getShape(self);
  shape[axis] = e.number(1);
  return replaceAlong(self, e.reshape(view, shape), axis,
                      {e.number(c.getWritten()), e.number(1), 1}, e);
}

static LogicalResult cat(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Values values;
  Value empty;
  for (Value value : c.tensors("tensors")) {
    if (!value)
      return c.yield(Value());
    // Empty vectors fit anything, as they always did.
    Exprs shape = graph::getShape(value);
    if (shape.size() != 1 || shape[0] != e.number(0))
      values.push_back(e.cast(value, element));
    else
      empty = e.cast(value, element);
  }
  if (values.empty())
    return empty ? c.yield(empty) : c.fail("joins nothing");
  return c.yield(e.concat(values, c.axis("dim", rankOf(values[0]), 0)));
}
static LogicalResult stack(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Values values;
  int64_t axis = 0;
  for (Value value : c.tensors("tensors")) {
    if (!value)
      return c.yield(Value());
    axis = c.axis("dim", rankOf(value) + 1, 0);
    Exprs shape = graph::getShape(value);
    shape.insert(shape.begin() + axis, e.number(1));
    values.push_back(e.reshape(e.cast(value, element), shape));
  }
  if (values.empty())
    return c.fail("joins nothing");
  return c.yield(e.concat(values, axis));
}

static LogicalResult flip(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  if (!x)
    return c.yield(x);
  Exprs shape = graph::getShape(x);
  Exprs starts = e.numbers(SmallVector<int64_t>(shape.size(), 0));
  SmallVector<int64_t> steps(shape.size(), 1);
  for (int64_t value : c.integers("dims")) {
    int64_t d = c.axis(value, shape.size());
    if (e.failed())
      return c.yield(Value());
    starts[d] = graph::simplify(shape[d] - 1);
    steps[d] = -1;
  }
  return c.yield(e.slice(x, starts, steps, shape));
}
static LogicalResult roll(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  Exprs shifts = c.sizes("shifts");
  SmallVector<int64_t> dims = c.integers("dims");
  if (!x)
    return c.yield(x);
  Exprs whole = graph::getShape(x);
  bool isFlat = dims.empty();
  if (isFlat) {
    x = e.reshape(x, {productOf(whole, e.getContext())});
    dims = {0};
  }
  if (dims.size() != shifts.size())
    return c.fail("has " + llvm::Twine(shifts.size()) + " shifts for " +
                  llvm::Twine(dims.size()) + " dimensions");
  for (auto [shift, dim] : llvm::zip_equal(shifts, dims)) {
    int64_t axis = c.axis(dim, rankOf(x));
    if (!x || !shift || e.failed())
      return c.yield(Value());
    auto by = graph::constantOf(shift);
    if (by && (*by < -maxDimension || *by > maxDimension))
      return c.fail("a shift of " + llvm::Twine(*by) + " is absurdly large");
    x = buildRoll(x, shift, axis, e);
  }
  return c.yield(isFlat ? e.reshape(x, whole) : x);
}

/// Pairs of pads are for the last dimension first.
static LogicalResult pad(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  Exprs pads = c.sizes("pad"), lows, highs;
  std::string mode = c.text("mode", "constant");
  auto known = llvm::StringSwitch<std::optional<graph::PadMode>>(mode)
                   .Case("constant", graph::PadMode::constant)
                   .Case("reflect", graph::PadMode::reflect)
                   .Case("replicate", graph::PadMode::edge)
                   .Case("circular", graph::PadMode::wrap)
                   .Default(std::nullopt);
  SmallVector<int64_t> axes;
  if (!known || pads.size() % 2 ||
      pads.size() / 2 > static_cast<size_t>(rankOf(x)))
    return c.fail("mode '" + mode + "' with " + llvm::Twine(pads.size()) +
                  " pads is not supported");
  for (size_t i = 0; i < pads.size(); i += 2) {
    if (!pads[i] || !pads[i + 1])
      return c.yield(Value());
    axes.push_back(rankOf(x) - 1 - static_cast<int64_t>(i / 2));
    lows.push_back(pads[i]);
    highs.push_back(pads[i + 1]);
  }
  if (*known == graph::PadMode::wrap)
    for (AffineExpr size : llvm::concat<AffineExpr>(lows, highs))
      if (!e.getSymbols().isAtLeast(size, e.number(0)))
        return c.fail("circular padding that cuts is not supported",
                      "cut with a slice first");
  Value fill = c.has("value") ? c.operand("value", elementOf(x))
                              : e.scalar(int64_t(0), elementOf(x));
  return c.yield(buildPad(*known, x, fill, lows, highs, axes, e));
}
/// More repeats than dimensions add dimensions in front.
static LogicalResult repeatBy(Call &c, llvm::StringRef name) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  Exprs repeats = c.sizes(name);
  if (!x || e.failed())
    return c.yield(Value());
  Exprs shape = graph::getShape(x);
  if (repeats.size() > shape.size()) {
    shape.insert(shape.begin(), repeats.size() - shape.size(), e.number(1));
    x = e.reshape(x, shape);
  }
  repeats.insert(repeats.begin(), shape.size() - repeats.size(), e.number(1));
  return c.yield(buildTile(x, repeats, e));
}
static LogicalResult repeat(Call &c) { return repeatBy(c, "repeats"); }
static LogicalResult tile(Call &c) { return repeatBy(c, "dims"); }

llvm::ArrayRef<Row> charonia::frontend::pytorch::sliceRows() {
  static const Row rows[] = {
      {"aten.slice.Tensor", partwise(slice), Alias::View, writeSlice},
      {"aten.slice_scatter.default", partwise(sliceScatter)},
      {"aten.select.int", partwise(select), Alias::View, replaceSelected},
      {"aten.select_scatter.default", partwise(selectScatter)},
      {"aten.narrow.default", partwise(narrow), Alias::View, writeNarrow},
      {"aten.split.Tensor", partwise(split<Along::Dim>), Alias::View,
       writeSplit<Along::Dim>},
      {"aten.split.sizes", partwise(split<Along::Dim>), Alias::View,
       writeSplit<Along::Dim>},
      {"aten.split_with_sizes.default", partwise(split<Along::Dim>),
       Alias::View, writeSplit<Along::Dim>},
      {"aten.chunk.default", partwise(split<Along::Dim>), Alias::View,
       writeSplit<Along::Dim>},
      {"aten.tensor_split.sections", partwise(split<Along::Dim>), Alias::View,
       writeSplit<Along::Dim>},
      {"aten.tensor_split.indices", partwise(split<Along::Dim>), Alias::View,
       writeSplit<Along::Dim>},
      {"aten.hsplit.int", partwise(split<Along::Columns>), Alias::View,
       writeSplit<Along::Columns>},
      {"aten.hsplit.array", partwise(split<Along::Columns>), Alias::View,
       writeSplit<Along::Columns>},
      {"aten.vsplit.int", partwise(split<Along::Rows>), Alias::View,
       writeSplit<Along::Rows>},
      {"aten.vsplit.array", partwise(split<Along::Rows>), Alias::View,
       writeSplit<Along::Rows>},
      {"aten.dsplit.int", partwise(split<Along::Depth>), Alias::View,
       writeSplit<Along::Depth>},
      {"aten.dsplit.array", partwise(split<Along::Depth>), Alias::View,
       writeSplit<Along::Depth>},
      // "Unsafe" is that PyTorch does not watch writes to them.
      {"aten.unsafe_split.Tensor", partwise(split<Along::Dim>), Alias::View,
       writeSplit<Along::Dim>},
      {"aten.unsafe_split_with_sizes.default", partwise(split<Along::Dim>),
       Alias::View, writeSplit<Along::Dim>},
      {"aten.unsafe_chunk.default", partwise(split<Along::Dim>), Alias::View,
       writeSplit<Along::Dim>},
      {"aten.narrow_copy.default", partwise(narrow)},
      {"aten.unbind.int", partwise(unbind), Alias::View, writeUnbound},
      {"aten.cat.default", partwise(cat)},
      {"aten.concat.default", partwise(cat)},
      {"aten.concatenate.default", partwise(cat)},
      {"aten.stack.default", partwise(stack)},
      {"aten.pad.default", partwise(pad)},
      {"aten.constant_pad_nd.default", partwise(pad)},
      {"aten.repeat.default", partwise(repeat)},
      {"aten.tile.default", partwise(tile)},
      {"aten.flip.default", partwise(flip)},
      {"aten.roll.default", partwise(roll)},
  };
  return rows;
}
