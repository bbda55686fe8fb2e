// Operators that cut tensors and put them together along an axis.
#include "frontends/common/builders/Slice.h"
#include "frontends/onnx/Registry.h"
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

static llvm::LogicalResult sliceBy(Node &n, Emitter &e, const Exprs &starts,
                                   const Exprs &ends,
                                   std::optional<SmallVector<int64_t>> axes,
                                   std::optional<SmallVector<int64_t>> steps) {
  Exprs shape = graph::getShape(n.input(0)), dims = shape;
  int64_t rank = shape.size();
  if (!axes)
    axes = llvm::to_vector(llvm::seq<int64_t>(0, starts.size()));
  if (!steps)
    steps = SmallVector<int64_t>(starts.size(), 1);
  if (ends.size() != starts.size() || axes->size() != starts.size() ||
      steps->size() != starts.size())
    return e.fail("starts, ends, axes and steps differ in length");
  auto checked = n.axes(*axes, rank);
  if (failed(checked))
    return llvm::failure();
  Exprs firsts = e.numbers(SmallVector<int64_t>(rank, 0));
  SmallVector<int64_t> allSteps(rank, 1);
  for (auto [axis, start, end, step] :
       llvm::zip(*checked, starts, ends, *steps)) {
    if (step == 0)
      return e.fail("a step is 0");
    SliceRange range = cutSlice(start, end, step, shape[axis], e,
                                /*startsInside=*/true);
    if (!range.count)
      return llvm::failure();
    firsts[axis] = range.start;
    allSteps[axis] = range.step;
    dims[axis] = range.count;
  }
  return n.yield(e.slice(n.input(0), firsts, allSteps, dims));
}

static llvm::LogicalResult sliceAttributes(Node &n, Emitter &e) {
  return sliceBy(n, e, e.numbers(*n.integers("starts")),
                 e.numbers(*n.integers("ends")), n.integers("axes"),
                 std::nullopt);
}

static llvm::LogicalResult slice(Node &n, Emitter &e) {
  auto starts = n.known(1), ends = n.known(2);
  std::optional<SmallVector<int64_t>> axes, steps;
  for (unsigned i : {3, 4}) {
    if (!n.has(i))
      continue;
    auto values = n.constants(i);
    if (failed(values))
      return llvm::failure();
    (i == 3 ? axes : steps) = *values;
  }
  if (failed(starts) || failed(ends))
    return llvm::failure();
  return sliceBy(n, e, *starts, *ends, axes, steps);
}

static llvm::LogicalResult concat(Node &n, Emitter &e) {
  // The default is that of opset 1 to 3; later an axis has to be given.
  auto axis = n.axis("axis", rankOf(n.input(0)), 1);
  if (failed(axis))
    return llvm::failure();
  return n.yield(e.concat(n.allInputs(), *axis));
}

/// Sizes of the parts of a dimension of `size` elements.
static llvm::FailureOr<Exprs> partSizes(Node &n, Emitter &e, AffineExpr size) {
  if (auto attribute = n.integers("split"); attribute && !attribute->empty())
    return e.numbers(*attribute);
  if (n.has(1))
    return n.known(1);
  int64_t parts = n.numOutputs();
  if (n.hasAttribute("num_outputs") && n.integer("num_outputs") != parts)
    return e.fail("attribute 'num_outputs' is " +
                  Twine(n.integer("num_outputs")) + ", but the node has " +
                  Twine(parts) + " outputs");
  if (AffineExpr even = divideSizes({size}, {e.number(parts)}, e.getContext()))
    return Exprs(parts, even);
  auto known = graph::constantOf(size);
  if (!known || n.sinceVersion() < 18)
    return e.fail("size " + e.getSymbols().toString(size) +
                  " does not split into " + Twine(parts) + " equal parts");
  // The last part is smaller.
  int64_t part = (*known + parts - 1) / parts;
  Exprs sizes(parts - 1, e.number(part));
  sizes.push_back(e.number(*known - part * (parts - 1)));
  return sizes;
}

static llvm::LogicalResult split(Node &n, Emitter &e) {
  Exprs shape = graph::getShape(n.input(0));
  auto axis = n.axis("axis", shape.size());
  if (failed(axis))
    return llvm::failure();
  AffineExpr size = shape[*axis];
  auto sizes = partSizes(n, e, size);
  if (failed(sizes))
    return llvm::failure();
  AffineExpr total = e.number(0);
  for (AffineExpr part : *sizes)
    total = total + part;
  if (sizes->size() != n.numOutputs() ||
      !e.agree(total, size, "splits all of it"))
    return e.fail("parts of " + e.describe(*sizes) + " for " +
                  Twine(n.numOutputs()) + " outputs do not make up size " +
                  e.getSymbols().toString(size));
  Exprs starts = e.numbers(SmallVector<int64_t>(shape.size(), 0));
  SmallVector<int64_t> steps(shape.size(), 1);
  Values parts;
  for (AffineExpr part : *sizes) {
    shape[*axis] = part;
    parts.push_back(e.slice(n.input(0), starts, steps, shape));
    starts[*axis] = graph::simplify(starts[*axis] + part);
  }
  return n.yield(parts);
}

llvm::ArrayRef<Row> charonia::frontend::onnx::sliceRows() {
  static const Row rows[] = {
      {"", "Slice", 1, 1, sliceAttributes},
      {"", "Slice", 10, 13, slice},
      {"", "Concat", 1, 13, concat},
      {"", "Split", 1, 18, split},
  };
  return rows;
}
