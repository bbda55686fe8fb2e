// Pooling over windows and over all of space.
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
using mlir::Value;

/// Where the first largest element of each window lies in the tensor: positions
/// of the window are compared one after another.
static Value argMaxPool(Node &n, Emitter &e, const Window &w, Exprs result,
                        double lowest) {
  constexpr int64_t maxPositions = 64;
  size_t spatial = w.kernel.size();
  int64_t positions = 1;
  for (int64_t k : w.kernel)
    positions *= std::min(k, maxPositions + 1);
  if (positions > maxPositions)
    return e.fail("indices for windows of over 64 elements are not supported",
                  "export the model without the output 'Indices'");
  mlir::Type i64 = e.getBuilder().getI64Type();
  Exprs shape = graph::getShape(n.input(0)), lows(shape.size(), e.number(0)),
        padded = shape;
  for (size_t i = 0; i < spatial; ++i) {
    lows[i + 2] = e.number(w.pads[i]);
    padded[i + 2] = graph::simplify((result[i + 2] - 1) * w.strides[i] +
                                    (w.kernel[i] - 1) * w.dilations[i] + 1);
  }
  Value input = e.pad(graph::PadMode::constant, n.input(0),
                      e.scalar(lowest, elementOf(n.input(0))), lows, padded);
  // Coordinates of the element, linear in row-major order, or column-major in
  // space.
  SmallVector<int64_t> order;
  for (size_t d = 0; d < shape.size(); ++d)
    order.push_back(d < 2 || !n.flag("storage_order") ? d
                                                      : shape.size() + 1 - d);
  auto coordinate = [&](int64_t d, llvm::ArrayRef<int64_t> at) -> Value {
    Exprs along(result.size(), e.number(1));
    along[d] = result[d];
    Value i = e.iota(along, d, i64);
    if (d < 2)
      return i;
    int64_t offset = at[d - 2] * w.dilations[d - 2] - w.pads[d - 2];
    return e.add(e.mul(i, e.scalar(w.strides[d - 2], i64)),
                 e.scalar(offset, i64));
  };
  Value best, where;
  SmallVector<int64_t> at(spatial, 0);
  for (int64_t p = 0; p < positions; ++p) {
    Exprs starts(shape.size(), e.number(0));
    SmallVector<int64_t> steps(shape.size(), 1);
    for (size_t i = 0, rest = p; i < spatial; ++i) {
      size_t d = spatial - 1 - i;
      at[d] = rest % w.kernel[d];
      rest /= w.kernel[d];
      starts[d + 2] = e.number(at[d] * w.dilations[d]);
      steps[d + 2] = w.strides[d];
    }
    Value x = e.slice(input, starts, steps, result), index;
    for (int64_t d : order)
      index =
          index ? e.add(e.mul(index, e.size(shape[d], i64)), coordinate(d, at))
                : coordinate(d, at);
    index = e.broadcast(index, result);
    if (!best) {
      best = x;
      where = index;
      continue;
    }
    Value larger = e.compare(graph::Predicate::gt, x, best);
    best = e.select(larger, x, best);
    where = e.select(larger, index, where);
  }
  return where;
}

static llvm::LogicalResult maxPool(Node &n, Emitter &e) {
  mlir::Type element = elementOf(n.input(0));
  double lowest = -std::numeric_limits<double>::infinity();
  if (element.isInteger())
    lowest = element.isUnsignedInteger()
                 ? 0
                 : -std::ldexp(1.0, element.getIntOrFloatBitWidth() - 1);
  auto window = readWindow(n, e, std::nullopt, lowest);
  if (failed(window))
    return llvm::failure();
  Value y = buildPool(PoolKind::max, *window, false, e);
  if (!n.wants(1))
    return n.yield(y);
  if (window->input != n.input(0))
    return e.fail("indices with auto_pad need sizes that are known",
                  "fix them with --shape");
  return n.yield({y, argMaxPool(n, e, *window, graph::getShape(y), lowest)});
}

static llvm::LogicalResult averagePool(Node &n, Emitter &e) {
  bool countPad = n.flag("count_include_pad");
  auto window = readWindow(n, e, std::nullopt,
                           countPad ? std::optional<double>(0) : std::nullopt);
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
      {"", "AveragePool", 1, 22, averagePool},
      {"", "LpPool", 1, 22, lpPool},
      {"", "GlobalAveragePool", 1, 22, globalAveragePool},
      {"", "GlobalMaxPool", 1, 22, globalMaxPool},
      {"", "GlobalLpPool", 1, 22, globalLpPool},
      {"", "LpNormalization", 1, 22, lpNormalization},
  };
  return rows;
}
