// Pooling over windows and over all of space.
#include "frontends/common/builders/Gather.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/ops/Window.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using graph::PoolKind;
using graph::ReduceKind;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Value;

/// Places in planes, as indices of the tensor.
static Value inTensor(Value places, Value x, Emitter &e) {
  mlir::Type i64 = e.getBuilder().getI64Type();
  Exprs shape = graph::getShape(x), ones(shape.size(), e.number(1));
  Exprs samples = ones, channels = ones;
  samples[0] = shape[0], channels[1] = shape[1];
  Value plane = e.scalar(int64_t(1), i64);
  for (AffineExpr size : llvm::drop_begin(shape, 2))
    plane = e.mul(plane, e.size(size, i64));
  Value before = e.add(e.mul(e.iota(samples, 0, i64), e.size(shape[1], i64)),
                       e.iota(channels, 1, i64));
  return e.add(places, e.mul(before, plane));
}

static llvm::LogicalResult maxPool(Node &n, Emitter &e) {
  auto window = readWindow(n, e, std::nullopt, lowestOf(elementOf(n.input(0))));
  if (failed(window))
    return llvm::failure();
  Value y = buildPool(PoolKind::max, *window, false, e);
  if (!y || !n.wants(1))
    return n.yield(y);
  Value places = buildArgMaxPool(
      *window, graph::getShape(y),
      n.flag("storage_order") ? PlaceOrder::columnMajor : PlaceOrder::rowMajor,
      true, e);
  return n.yield({y, inTensor(places, n.input(0), e)});
}

/// What a MaxPool of this window was over, at least.
static Exprs unpooledShape(Node &n, Emitter &e) {
  Exprs shape = graph::getShape(n.input(0));
  size_t spatial = shape.size() - 2;
  auto kernel = readWindowList(n, e, "kernel_shape", spatial, 1, 1);
  auto strides = readWindowList(n, e, "strides", spatial, 1, 1);
  auto pads = readWindowList(n, e, "pads", 2 * spatial, 0, 0);
  if (failed(kernel) || failed(strides) || failed(pads))
    return {};
  for (size_t i = 0; i < spatial; ++i)
    shape[i + 2] =
        graph::simplify((shape[i + 2] - 1) * (*strides)[i] +
                        ((*kernel)[i] - (*pads)[i] - (*pads)[i + spatial]));
  return shape;
}

/// Elements at their places in a tensor of zeros. Places count in the whole
/// result, as those of MaxPool do, also where it is larger than the window
/// needs (as in ONNX Runtime; ONNX's reference counts them without what is
/// more).
static llvm::LogicalResult maxUnpool(Node &n, Emitter &e) {
  Value x = n.input(0), places = n.input(1);
  if (failed(n.needsRank(0, 3, 5)))
    return llvm::failure();
  Exprs shape = unpooledShape(n, e), from = graph::getShape(x);
  if (shape.empty())
    return llvm::failure();
  if (n.has(2)) {
    auto given = n.known(2);
    if (failed(given))
      return llvm::failure();
    if (given->size() != shape.size() ||
        !e.agree((*given)[0], from[0], "keeps the batch") ||
        !e.agree((*given)[1], from[1], "keeps the channels"))
      return e.fail("'output_shape' does not fit " + e.describe(x.getType()));
    shape = *given;
  }
  AffineExpr count = productOf(from, e.getContext()),
             total = productOf(shape, e.getContext());
  Exprs at = graph::getShape(places);
  auto hasPlace = [&](auto dims) {
    return e.agree(std::get<0>(dims), std::get<1>(dims),
                   "has a place for each value");
  };
  if (!count || !total || at.size() != from.size() ||
      !llvm::all_of(llvm::zip(at, from), hasPlace))
    return e.fail("places of " + e.describe(places.getType()) +
                  " do not fit values of " + e.describe(x.getType()));
  Value zeros = e.broadcast(e.scalar(int64_t(0), elementOf(x)), {total});
  Value all = buildScatterElements(zeros, e.reshape(places, {count}),
                                   e.reshape(x, {count}), 0,
                                   graph::ScatterReduction::none, e);
  return n.yield(e.reshape(all, shape));
}

static llvm::LogicalResult averagePool(Node &n, Emitter &e) {
  bool countPad = n.flag("count_include_pad");
  auto window = readWindow(n, e, std::nullopt, 0);
  if (failed(window))
    return llvm::failure();
  return n.yield(buildPool(PoolKind::average, *window, countPad, e));
}

/// |x| to the power of p, and its inverse for the sum.
static Value powers(Value x, double p, Emitter &e) {
  if (p == 2)
    return e.mul(x, x);
  Value magnitude = e.op<graph::AbsOp>({x});
  return p == 1 || !magnitude
             ? magnitude
             : e.op<graph::PowOp>({magnitude, e.scalar(p, elementOf(x))});
}
static Value root(Value sum, double p, Emitter &e) {
  if (p == 1 || !sum)
    return sum;
  if (p == 2)
    return e.op<graph::SqrtOp>({sum});
  return e.op<graph::PowOp>({sum, e.scalar(1.0 / p, elementOf(sum))});
}
static llvm::FailureOr<double> readP(Node &n, Emitter &e) {
  auto *given = n.find("p");
  // In opset 1 it could be a fraction.
  double p = !given ? 2
             : given->type() == ::onnx::AttributeProto::FLOAT
                 ? given->f()
                 : double(given->i());
  if (!(p >= 1) || std::isinf(p))
    return e.fail("attribute 'p' may not be " +
                  llvm::Twine(llvm::formatv("{0}", p).str()));
  return p;
}

static llvm::LogicalResult lpPool(Node &n, Emitter &e) {
  auto window = readWindow(n, e, std::nullopt, 0);
  auto p = readP(n, e);
  if (failed(window) || failed(p))
    return llvm::failure();
  window->input = powers(e.widen(window->input), *p, e);
  Value sum = buildPool(PoolKind::sum, *window, false, e);
  return n.yield(e.cast(root(sum, *p, e), elementOf(n.input(0))));
}

static llvm::FailureOr<SmallVector<int64_t>> spatialAxes(Node &n) {
  if (failed(n.needsRank(0, 3, 32)))
    return llvm::failure();
  return llvm::to_vector(llvm::seq<int64_t>(2, rankOf(n.input(0))));
}
static llvm::LogicalResult globalAveragePool(Node &n, Emitter &e) {
  auto axes = spatialAxes(n);
  if (failed(axes))
    return llvm::failure();
  return n.yield(e.mean(n.input(0), *axes, true));
}
static llvm::LogicalResult globalMaxPool(Node &n, Emitter &e) {
  auto axes = spatialAxes(n);
  if (failed(axes))
    return llvm::failure();
  return n.yield(e.reduce(ReduceKind::max, n.input(0), *axes, true));
}
static llvm::LogicalResult globalLpPool(Node &n, Emitter &e) {
  auto axes = spatialAxes(n);
  auto p = readP(n, e);
  if (failed(axes) || failed(p))
    return llvm::failure();
  Value sum = e.reduce(ReduceKind::sum, powers(e.widen(n.input(0)), *p, e),
                       *axes, true);
  return n.yield(e.cast(root(sum, *p, e), elementOf(n.input(0))));
}

/// x / |x|_p along an axis; 0 where the norm is 0.
static llvm::LogicalResult lpNormalization(Node &n, Emitter &e) {
  auto axis = n.axis("axis", rankOf(n.input(0)), -1);
  auto p = readP(n, e);
  if (failed(axis) || failed(p))
    return llvm::failure();
  Value x = e.widen(n.input(0));
  Value norm =
      root(e.reduce(ReduceKind::sum, powers(x, *p, e), *axis, true), *p, e);
  if (!norm)
    return llvm::failure();
  mlir::Type element = elementOf(norm);
  Value isZero = e.compare(graph::Predicate::eq, norm, e.scalar(0.0, element));
  Value result = e.div(x, e.select(isZero, e.scalar(1.0, element), norm));
  return n.yield(e.cast(result, elementOf(n.input(0))));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::poolingRows() {
  static const Row rows[] = {
      {"", "MaxPool", 1, 22, maxPool},
      {"", "MaxUnpool", 9, 22, maxUnpool},
      {"", "AveragePool", 1, 22, averagePool},
      {"", "LpPool", 1, 22, lpPool},
      {"", "GlobalAveragePool", 1, 22, globalAveragePool},
      {"", "GlobalMaxPool", 1, 22, globalMaxPool},
      {"", "GlobalLpPool", 1, 22, globalLpPool},
      {"", "LpNormalization", 1, 22, lpNormalization},
  };
  return rows;
}
