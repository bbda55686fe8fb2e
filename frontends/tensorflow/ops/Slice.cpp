// Operators that cut tensors and put them together along an axis.
#include "frontends/common/builders/Slice.h"
#include "frontends/common/builders/Pad.h"
#include "frontends/tensorflow/Node.h"
#include "frontends/tensorflow/ops/Dynamic.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

namespace {
/// A slice as StridedSlice describes it, dimension by dimension of the input.
class StridedSlice {
public:
  StridedSlice(Node &n, Emitter &e, Exprs begins, Exprs ends,
               SmallVector<int64_t> strides)
      : n(n), e(e), begins(std::move(begins)), ends(std::move(ends)),
        strides(std::move(strides)), shape(graph::getShape(n.input(0))) {}

  Value run() {
    int64_t consumed = 0, count = static_cast<int64_t>(begins.size());
    for (int64_t i = 0; i < count; ++i)
      consumed += !isSet("new_axis_mask", i) && !isSet("ellipsis_mask", i);
    int64_t ellipses = 0;
    for (int64_t i = 0; i < count; ++i)
      ellipses += isSet("ellipsis_mask", i);
    if (ellipses > 1)
      return e.fail("has more than one ellipsis", "export the model again");
    int64_t skipped = static_cast<int64_t>(shape.size()) - consumed;
    if (skipped < 0)
      return e.fail("takes " + Twine(consumed) + " dimensions of " +
                    e.describe(n.input(0).getType()));
    for (int64_t i = 0; i < count; ++i) {
      if (isSet("ellipsis_mask", i)) {
        for (int64_t k = 0; k < skipped; ++k)
          keep();
      } else if (isSet("new_axis_mask", i)) {
        result.push_back(e.number(1));
      } else if (!take(i)) {
        return {};
      }
    }
    while (dim < shape.size())
      keep();
    Value x = e.slice(n.input(0), starts, steps, taken);
    for (auto [d, start] : places)
      x = takeAt(x, d, start, e.number(1), e);
    return e.reshape(x, result);
  }

private:
  bool isSet(llvm::StringRef mask, int64_t i) {
    return i < 63 && ((n.integer(mask, 0) >> i) & 1);
  }
  void add(AffineExpr start, int64_t step, AffineExpr count) {
    starts.push_back(start);
    steps.push_back(step);
    taken.push_back(count);
    ++dim;
  }
  void keep() {
    result.push_back(shape[dim]);
    add(e.number(0), 1, shape[dim]);
  }
  /// Cuts the next dimension as entry i says.
  bool take(int64_t i) {
    AffineExpr size = shape[dim];
    if (strides[i] == 0) {
      e.fail("a stride is 0");
      return false;
    }
    if (isSet("shrink_axis_mask", i)) {
      if (strides[i] < 0) {
        e.fail("takes one element with a stride of " + Twine(strides[i]) +
               "; it has to be above 0");
        return false;
      }
      if (!begins[i]) {
        places.push_back({static_cast<int64_t>(dim), placeOf(i, size)});
        add(e.number(0), 1, size);
        return true;
      }
      SliceRange one = element(begins[i], size);
      if (!one.count)
        return false;
      add(one.start, 1, one.count);
      return true;
    }
    constexpr int64_t farthest = std::numeric_limits<int32_t>::max();
    bool forward = strides[i] > 0;
    AffineExpr begin = isSet("begin_mask", i) ? e.number(forward ? 0 : farthest)
                                              : begins[i],
               end = isSet("end_mask", i)
                         ? e.number(forward ? farthest : -farthest)
                         : ends[i];
    if (!begin || !end)
      return succeeded(n.dependsOnData(begin ? 2 : 1));
    SliceRange range = cutSlice(begin, end, strides[i], size, e);
    if (!range.count)
      return false;
    result.push_back(range.count);
    add(range.start, range.step, range.count);
    return true;
  }
  /// An index that is data, which may count from the end.
  Value placeOf(int64_t i, AffineExpr size) {
    mlir::Type i64 = e.getBuilder().getI64Type();
    Value start = startAt(n.input(1), i, e);
    return e.select(
        e.compare(graph::Predicate::lt, start, e.scalar(int64_t(0), i64)),
        e.add(start, e.size(size, i64)), start);
  }
  /// The element at an index, which may count from the end.
  SliceRange element(AffineExpr index, AffineExpr size) {
    Symbols &symbols = e.getSymbols();
    if (symbols.isAtLeast(e.number(-1), index))
      index = graph::simplify(index + size);
    if (!symbols.assumeAtLeast(index, e.number(0),
                               "so that an index lies inside its tensor") ||
        !symbols.assumeAtLeast(graph::simplify(size - 1), index,
                               "so that an index lies inside its tensor")) {
      e.fail("index " + symbols.toString(index) + " is out of range for size " +
                 symbols.toString(size),
             "narrow the ranges with --shape");
      return {};
    }
    return {index, e.number(1), 1};
  }

  Node &n;
  Emitter &e;
  Exprs begins, ends;
  SmallVector<int64_t> strides;
  Exprs shape, starts, taken, result;
  SmallVector<int64_t> steps;
  /// Dimensions of which the element is taken that data names.
  SmallVector<std::pair<int64_t, Value>> places;
  size_t dim = 0;
};
} // namespace

static LogicalResult stridedSlice(Node &n, Emitter &e) {
  if (failed(n.needsTensors(4, 4)))
    return llvm::failure();
  for (unsigned i : {1, 2, 3})
    if (failed(n.needsRank(i, 1, 1)))
      return llvm::failure();
  auto begins = n.partlyKnown(1), ends = n.partlyKnown(2);
  auto strides = n.constants(3);
  if (failed(begins) || failed(ends) || failed(strides))
    return llvm::failure();
  if (begins->size() != ends->size() || begins->size() != strides->size())
    return e.fail("begin, end and strides differ in length");
  return n.yield(StridedSlice(n, e, *begins, *ends, *strides).run());
}

/// `size` elements from `begin` on; -1 for all that are left.
static LogicalResult slice(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)))
    return llvm::failure();
  auto begins = n.partlyKnown(1), sizes = n.known(2);
  if (failed(begins) || failed(sizes))
    return llvm::failure();
  Exprs shape = graph::getShape(n.input(0)), dims;
  SmallVector<std::pair<int64_t, AffineExpr>> moved;
  if (begins->size() != shape.size() || sizes->size() != shape.size())
    return e.fail("needs a begin and a size for each of " +
                  Twine(shape.size()) + " dimensions");
  Symbols &symbols = e.getSymbols();
  for (auto [d, size, begin, extent] :
       llvm::enumerate(*sizes, *begins, shape)) {
    if (!begin) {
      if (size == e.number(-1))
        return n.dependsOnData(1);
      moved.push_back({static_cast<int64_t>(d), size});
      dims.push_back(extent);
      begin = e.number(0);
      continue;
    }
    AffineExpr count =
        size == e.number(-1) ? graph::simplify(extent - begin) : size;
    if (!symbols.assumeAtLeast(begin, e.number(0),
                               "so that a slice starts inside its tensor") ||
        !symbols.assumeAtLeast(count, e.number(0),
                               "so that a slice does not end before it "
                               "starts") ||
        !symbols.assumeAtLeast(graph::simplify(extent - begin), count,
                               "so that a slice ends inside its tensor"))
      return e.fail("a slice of " + symbols.toString(count) + " from " +
                        symbols.toString(begin) +
                        " does not lie inside of size " +
                        symbols.toString(extent),
                    "narrow the ranges with --shape");
    dims.push_back(count);
  }
  Value x =
      e.slice(n.input(0), *begins, SmallVector<int64_t>(shape.size(), 1), dims);
  for (auto [d, count] : moved) {
    if (!symbols.assumeAtLeast(count, e.number(0),
                               "so that a slice has a size") ||
        !symbols.assumeAtLeast(shape[d], count,
                               "so that a slice lies inside its tensor"))
      return e.fail("a slice of " + symbols.toString(count) +
                    " does not lie inside of size " +
                    symbols.toString(shape[d]));
    x = takeAt(x, d, startAt(n.input(1), d, e), count, e);
  }
  return n.yield(x);
}

/// Operands along an axis, which is the last operand, or the first.
template <bool axisFirst> static LogicalResult concat(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, Node::manyInputs)))
    return llvm::failure();
  unsigned last = n.numInputs() - 1;
  auto given = n.constantInteger(axisFirst ? 0 : last);
  if (failed(given))
    return llvm::failure();
  Values parts(n.allInputs().drop_front(axisFirst).take_front(last));
  auto axis = n.axis(*given, rankOf(parts[0]));
  return failed(axis) ? llvm::failure() : n.yield(e.concat(parts, *axis));
}

static LogicalResult pack(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, Node::manyInputs)))
    return llvm::failure();
  auto axis = n.axis(n.integer("axis", 0), rankOf(n.input(0)) + 1);
  if (failed(axis))
    return llvm::failure();
  Values parts;
  for (Value value : n.allInputs()) {
    Exprs dims = graph::getShape(value);
    if (static_cast<int64_t>(dims.size()) != rankOf(n.input(0)))
      return e.fail("its inputs have different numbers of dimensions");
    dims.insert(dims.begin() + *axis, e.number(1));
    parts.push_back(e.reshape(value, dims));
  }
  return n.yield(e.concat(parts, *axis));
}

/// Parts of these sizes along the axis.
static Values cut(Value value, int64_t axis, llvm::ArrayRef<AffineExpr> sizes,
                  Emitter &e) {
  Values parts;
  AffineExpr start = e.number(0);
  for (AffineExpr size : sizes) {
    parts.push_back(sliceAlong(value, axis, {start, size, 1}, e));
    start = graph::simplify(start + size);
  }
  return parts;
}

constexpr int64_t maxParts = 1 << 16;

static LogicalResult unpack(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 1)))
    return llvm::failure();
  Exprs dims = graph::getShape(n.input(0));
  auto axis = n.axis(n.integer("axis", 0), dims.size());
  int64_t count = n.integer("num", 0);
  if (failed(axis))
    return llvm::failure();
  if (count > 0 && count <= maxParts && failed(e.writeOut(count)))
    return llvm::failure();
  if (count < 0 || count > maxParts ||
      !e.agree(dims[*axis], e.number(count), "is unpacked"))
    return e.fail("size " + e.getSymbols().toString(dims[*axis]) +
                  " does not unpack into " + Twine(count) + " parts");
  Values parts = cut(n.input(0), *axis, Exprs(count, e.number(1)), e);
  dims.erase(dims.begin() + *axis);
  for (Value &part : parts)
    part = e.reshape(part, dims);
  return n.yield(parts);
}

static LogicalResult split(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)))
    return llvm::failure();
  auto given = n.constantInteger(0);
  if (failed(given))
    return llvm::failure();
  Exprs shape = graph::getShape(n.input(1));
  auto axis = n.axis(*given, shape.size());
  int64_t count = n.integer("num_split", 0);
  if (failed(axis))
    return llvm::failure();
  AffineExpr part =
      count > 0 && count <= maxParts
          ? divideSizes({shape[*axis]}, {e.number(count)}, e.getContext())
          : AffineExpr();
  if (!part)
    return e.fail("size " + e.getSymbols().toString(shape[*axis]) +
                  " does not split into " + Twine(count) + " equal parts");
  if (failed(e.writeOut(count)))
    return llvm::failure();
  return n.yield(cut(n.input(1), *axis, Exprs(count, part), e));
}

/// Of given sizes, of which one may be -1: what is left.
static LogicalResult splitSizes(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)) || failed(n.needsRank(1, 1, 1)))
    return llvm::failure();
  auto sizes = n.known(1);
  auto given = n.constantInteger(2);
  if (failed(sizes) || failed(given))
    return llvm::failure();
  Exprs shape = graph::getShape(n.input(0));
  auto axis = n.axis(*given, shape.size());
  if (failed(axis))
    return llvm::failure();
  AffineExpr total = e.number(0), *rest = nullptr;
  if (failed(e.writeOut(static_cast<int64_t>(sizes->size()))))
    return llvm::failure();
  for (AffineExpr &size : *sizes) {
    if (size == e.number(-1))
      rest = &size;
    else
      total = total + size;
  }
  if (rest)
    *rest = graph::simplify(shape[*axis] - total);
  else if (!e.agree(graph::simplify(total), shape[*axis], "splits all of it"))
    return e.fail("parts of " + e.describe(*sizes) + " do not make up size " +
                  e.getSymbols().toString(shape[*axis]));
  return n.yield(cut(n.input(0), *axis, *sizes, e));
}

/// Pairs of what comes before and behind each dimension.
static LogicalResult padBy(Node &n, Emitter &e, graph::PadMode mode,
                           Value fill) {
  if (failed(n.needsRank(1, 2, 2)))
    return llvm::failure();
  auto pairs = n.known(1);
  int64_t rank = rankOf(n.input(0));
  if (failed(pairs))
    return llvm::failure();
  if (static_cast<int64_t>(pairs->size()) != 2 * rank)
    return e.fail("has " + Twine(pairs->size()) + " paddings for " +
                  Twine(rank) + " dimensions");
  for (AffineExpr amount : *pairs)
    if (!e.getSymbols().assumeAtLeast(amount, e.number(0),
                                      "so that a padding adds elements"))
      return e.fail("a padding may not be " + e.getSymbols().toString(amount),
                    "cut with a slice instead");
  Exprs lows, highs;
  for (int64_t d = 0; d < rank; ++d) {
    lows.push_back((*pairs)[2 * d]);
    highs.push_back((*pairs)[2 * d + 1]);
  }
  return n.yield(buildPad(mode, n.input(0), fill, lows, highs,
                          llvm::to_vector(llvm::seq<int64_t>(0, rank)), e));
}
static Value zeroLike(Value x, Emitter &e) {
  return e.scalar(int64_t(0), elementOf(x));
}
static LogicalResult pad(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 3)))
    return llvm::failure();
  Value fill = n.has(2) ? e.reshape(n.input(2), {}) : zeroLike(n.input(0), e);
  return padBy(n, e, graph::PadMode::constant, fill);
}
/// REFLECT leaves out the edge, SYMMETRIC repeats it: the tensor behind its own
/// mirror image.
static LogicalResult mirrorPad(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)))
    return llvm::failure();
  std::string mode = n.text("mode", "");
  if (mode == "REFLECT")
    return padBy(n, e, graph::PadMode::reflect, zeroLike(n.input(0), e));
  if (mode != "SYMMETRIC")
    return e.fail("mode '" + mode + "' is not supported");
  auto pairs = n.constants(1);
  Value x = n.input(0);
  int64_t rank = rankOf(x);
  if (failed(pairs))
    return llvm::failure();
  if (static_cast<int64_t>(pairs->size()) != 2 * rank)
    return e.fail("has " + Twine(pairs->size()) + " paddings for " +
                  Twine(rank) + " dimensions");
  for (int64_t d = 0; d < rank; ++d) {
    int64_t low = (*pairs)[2 * d], high = (*pairs)[2 * d + 1];
    AffineExpr size = graph::getShape(x)[d];
    Symbols &symbols = e.getSymbols();
    for (int64_t amount : {low, high})
      if (amount < 0 || !symbols.assumeAtLeast(size, e.number(amount),
                                               "so that padding can mirror it"))
        return e.fail("cannot mirror " + Twine(amount) + " elements of size " +
                      symbols.toString(size));
    Values parts;
    if (low)
      parts.push_back(
          sliceAlong(x, d, {e.number(low - 1), e.number(low), -1}, e));
    parts.push_back(x);
    if (high)
      parts.push_back(
          sliceAlong(x, d, {graph::simplify(size - 1), e.number(high), -1}, e));
    if (parts.size() > 1)
      x = e.concat(parts, d);
    if (!x)
      return llvm::failure();
  }
  return n.yield(x);
}

static LogicalResult reverse(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)))
    return llvm::failure();
  auto given = n.constants(1);
  if (failed(given))
    return llvm::failure();
  auto axes = n.axes(*given, rankOf(n.input(0)));
  if (failed(axes))
    return llvm::failure();
  Value x = n.input(0);
  for (int64_t axis : *axes) {
    AffineExpr size = graph::getShape(x)[axis];
    x = sliceAlong(x, axis, {graph::simplify(size - 1), size, -1}, e);
    if (!x)
      return llvm::failure();
  }
  return n.yield(x);
}

static LogicalResult roll(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)))
    return llvm::failure();
  auto shifts = n.known(1);
  auto given = n.constants(2);
  if (failed(shifts) || failed(given))
    return llvm::failure();
  if (shifts->size() != given->size())
    return e.fail("has " + Twine(shifts->size()) + " shifts for " +
                  Twine(given->size()) + " dimensions");
  Value x = n.input(0);
  for (auto [shift, axisGiven] : llvm::zip(*shifts, *given)) {
    auto axis = n.axis(axisGiven, rankOf(x));
    if (failed(axis))
      return llvm::failure();
    auto by = graph::constantOf(shift);
    if (by && (*by < -maxDimension || *by > maxDimension))
      return e.fail("a shift of " + Twine(*by) + " is absurdly large");
    x = buildRoll(x, shift, *axis, e);
  }
  return n.yield(x);
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::sliceRows() {
  static const Row rows[] = {
      ofParts({"StridedSlice", stridedSlice}),
      ofParts({"Slice", slice}),
      ofParts({"ConcatV2", concat<false>}),
      ofParts({"Concat", concat<true>}),
      ofParts({"Pack", pack}),
      {.op = "Unpack",
       .import = unpack,
       .complex = Row::OfComplex::EachPart,
       .counted = "num"},
      {.op = "Split",
       .import = split,
       .complex = Row::OfComplex::EachPart,
       .counted = "num_split"},
      {.op = "SplitV",
       .import = splitSizes,
       .complex = Row::OfComplex::EachPart,
       .counted = "num_split"},
      ofParts({"Pad", pad}),
      ofParts({"PadV2", pad}),
      ofParts({"MirrorPad", mirrorPad}),
      ofParts({"ReverseV2", reverse}),
      ofParts({"Roll", roll}),
  };
  return rows;
}
