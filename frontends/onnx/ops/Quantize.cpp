// Linear quantization, as compositions of elementwise operators and products of
// integers.
#include "frontends/onnx/ops/Quantize.h"
#include "frontends/common/builders/Float8.h"
#include "frontends/common/builders/Matrix.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/Tensors.h"
#include "frontends/onnx/ops/Window.h"
#include "graph/ir/Float8.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

Value charonia::frontend::onnx::inBlocks(Emitter &e, Value parameter, Value x,
                                         int64_t axis, int64_t block) {
  if (!parameter || !x)
    return {};
  Exprs shape = graph::getShape(parameter), dims = graph::getShape(x);
  int64_t rank = dims.size();
  if ((int64_t)shape.size() != rank || block < 1 || block > maxDimension)
    return e.fail("scale and zero point, " + e.describe(parameter.getType()) +
                  ", fit neither an axis nor blocks of " +
                  e.describe(x.getType()));
  // [.., count, ..] to [.., count, block, ..] to [.., count * block, ..], cut.
  Exprs split = shape, repeated = shape, merged = shape;
  split.insert(split.begin() + axis + 1, e.number(1));
  repeated.insert(repeated.begin() + axis + 1, e.number(block));
  merged[axis] = graph::simplify(shape[axis] * block);
  Value blocks =
      e.reshape(e.broadcast(e.reshape(parameter, split), repeated), merged);
  if (merged[axis] == dims[axis])
    return blocks;
  auto known = graph::constantOf(merged[axis]),
       wanted = graph::constantOf(dims[axis]);
  if (!known || !wanted || *known < *wanted)
    return e.fail("blocks of " + Twine(block) + " do not cover axis " +
                  Twine(axis) + " of " + e.describe(x.getType()));
  // The parameter's other dimensions may be 1 where those of `x` are more.
  merged[axis] = dims[axis];
  return e.slice(blocks, Exprs(rank, e.number(0)),
                 llvm::SmallVector<int64_t>(rank, 1), merged);
}

/// A scale or zero point shaped to broadcast to `x`: one for all, one for each
/// element along the axis, or one for each block of elements along it.
static Value spread(Node &n, Emitter &e, Value parameter, Value x) {
  if (!parameter || !x)
    return {};
  Exprs shape = graph::getShape(parameter), dims = graph::getShape(x);
  int64_t rank = dims.size(), block = n.integer("block_size", 0);
  if (llvm::all_of(shape, [&](AffineExpr d) { return d == e.number(1); }))
    return e.reshape(parameter, {});
  auto axis = n.axis("axis", rank, 1);
  if (failed(axis))
    return {};
  if (shape.size() == 1 && !block) {
    if (!e.agree(shape[0], dims[*axis], "scales along the axis"))
      return e.fail("scale and zero point, " + e.describe(parameter.getType()) +
                    ", do not have one element for each along axis " +
                    Twine(*axis) + " of " + e.describe(x.getType()));
    return e.asChannels(parameter, rank - 1 - *axis);
  }
  return inBlocks(e, parameter, x, *axis, block);
}

Value charonia::frontend::onnx::saturate(Emitter &e, Value x, Value zero,
                                         mlir::Type element, unsigned bits) {
  Value rounded = e.op<graph::RoundOp>({x});
  if (!rounded || !element)
    return {};
  mlir::Type wide = elementOf(rounded);
  if (zero)
    rounded = e.add(rounded, e.cast(zero, wide));
  unsigned width = bits ? bits : element.getIntOrFloatBitWidth();
  bool isUnsigned = element.isUnsignedInteger();
  double low = isUnsigned ? 0 : -std::ldexp(1.0, width - 1),
         high = std::ldexp(1.0, isUnsigned ? width : width - 1) - 1;
  rounded = e.min(e.max(rounded, e.scalar(low, wide)), e.scalar(high, wide));
  return e.cast(rounded, element);
}

static bool isSmallInteger(mlir::Type element) {
  return element && element.isInteger() &&
         element.getIntOrFloatBitWidth() <= 16;
}

/// Whether all elements are known to be zero.
static bool isZero(Emitter &e, Value x) {
  mlir::DenseElementsAttr known = e.constantOf(x);
  if (!known)
    return false;
  if (llvm::isa<mlir::FloatType>(known.getElementType()))
    return llvm::all_of(
        known.getValues<llvm::APFloat>(),
        [](const llvm::APFloat &zero) { return zero.isZero(); });
  return llvm::isa<mlir::IntegerType>(known.getElementType()) &&
         llvm::all_of(known.getValues<llvm::APInt>(),
                      [](const llvm::APInt &zero) { return zero == 0; });
}

static llvm::LogicalResult quantizeLinear(Node &n, Emitter &e) {
  Value x = n.input(0), zero = n.input(2);
  int asked = int(n.integer("output_dtype"));
  int narrow = zero ? n.narrowInput(2) : narrowType(asked);
  mlir::Type element =
      zero    ? elementOf(zero)
      : asked ? heldType(asked, e.getContext())
              : mlir::IntegerType::get(e.getContext(), 8,
                                       mlir::IntegerType::Unsigned);
  bool toFloat8 = element && graph::isFloat8(element);
  if (!isSmallInteger(element) && !toFloat8)
    return e.fail("quantization to this type is not supported",
                  "quantize to integers of 2, 4, 8 or 16 bits or to float8");
  n.setNarrowResult(narrow);
  // In float, whatever the operands are; `precision` may ask for double.
  mlir::Type wide = e.getBuilder().getF32Type();
  if (n.integer("precision") == ::onnx::TensorProto::DOUBLE)
    wide = e.getBuilder().getF64Type();
  Value scale = spread(n, e, e.cast(n.input(1), wide), x);
  if (zero)
    zero = spread(n, e, zero, x);
  if (!scale || (n.has(2) && !zero))
    return llvm::failure();
  Value quotient = e.div(e.cast(x, wide), scale);
  if (!toFloat8)
    return n.yield(
        saturate(e, quotient, zero, element, narrow ? narrowBits(narrow) : 0));
  if (zero && !isZero(e, zero))
    quotient = e.add(quotient, e.cast(zero, wide));
  return n.yield(n.integer("saturate", 1) ? buildSaturated(quotient, element, e)
                                          : e.cast(quotient, element));
}

static llvm::LogicalResult dequantizeLinear(Node &n, Emitter &e) {
  Value x = n.input(0), zero = n.input(2);
  mlir::Type wide = e.getBuilder().getF32Type(), result = elementOf(n.input(1));
  if (n.integer("output_dtype"))
    result = elementType(int(n.integer("output_dtype")), e.getContext());
  if (!result)
    return e.fail("attribute 'output_dtype' names a type that is not supported",
                  elementTypeRemedy);
  Value scale = spread(n, e, e.cast(n.input(1), wide), x);
  // Differences of integers are exact, those of floats of 8 bits nearly so.
  mlir::Type exact =
      isFloat(x) ? wide : mlir::Type(e.getBuilder().getI32Type());
  Value distance = e.cast(x, exact);
  if (zero && !isZero(e, zero))
    distance = e.sub(distance, e.cast(spread(n, e, zero, x), exact));
  return n.yield(e.cast(e.mul(e.cast(distance, wide), scale), result));
}

Value charonia::frontend::onnx::alongAxis(Emitter &e, Value parameter,
                                          int64_t rank, int64_t axis) {
  if (!parameter)
    return {};
  Exprs shape = graph::getShape(parameter);
  if (llvm::all_of(shape, [&](AffineExpr d) { return d == e.number(1); }))
    return e.reshape(parameter, {});
  if (shape.size() == 1)
    return e.asChannels(parameter, rank - 1 - axis);
  return parameter; // broadcasts as it is
}

static bool isByte(Value x) {
  mlir::Type element = elementOf(x);
  return element && element.isInteger(8);
}

Value charonia::frontend::onnx::distances(Emitter &e, const Shifted &x) {
  mlir::Type element = elementOf(x.value),
             wide = e.getBuilder().getIntegerType(
                 element && element.isInteger() &&
                         element.getIntOrFloatBitWidth() <= 8
                     ? 16
                     : 32);
  if (!x.zero)
    return e.cast(x.value, wide);
  return e.sub(e.cast(x.value, wide),
               e.cast(alongAxis(e, x.zero, rankOf(x.value), x.axis), wide));
}

/// Bytes without their sign, or with one: the same numbers less 128 or plus
/// 128, which is what their zero point becomes.
static Shifted withOtherSign(Emitter &e, const Shifted &x) {
  mlir::Type element = elementOf(x.value), i32 = e.getBuilder().getI32Type();
  bool isUnsigned = element.isUnsignedInteger();
  auto other = mlir::IntegerType::get(e.getContext(), 8,
                                      isUnsigned ? mlir::IntegerType::Signless
                                                 : mlir::IntegerType::Unsigned);
  Value highest = e.scalar(int64_t(isUnsigned ? 128 : -128), element);
  Value by = e.scalar(int64_t(isUnsigned ? -128 : 128), i32);
  return {e.cast(e.op<graph::XorOp>({x.value, highest}), other),
          x.zero ? e.add(e.cast(x.zero, i32), by) : by, x.axis};
}

/// The zero point in 32 bits as it broadcasts to the operand; null where it is
/// zero.
static Value zeroOf(Emitter &e, const Shifted &x) {
  if (!x.zero)
    return {};
  if (isZero(e, x.zero))
    return {};
  return e.cast(alongAxis(e, x.zero, rankOf(x.value), x.axis),
                e.getBuilder().getI32Type());
}

std::pair<Value, Value>
charonia::frontend::onnx::convOperands(Emitter &e, const Shifted &input,
                                       const Shifted &filter) {
  if (isByte(input.value) && isByte(filter.value) && !zeroOf(e, input)) {
    Shifted other = elementOf(input.value) == elementOf(filter.value)
                        ? withOtherSign(e, filter)
                        : filter;
    if (!zeroOf(e, other) && !e.failed())
      return {input.value, other.value};
  }
  return {distances(e, input), distances(e, filter)};
}

/// Whether a zero point, if any, is the same all along a dimension, counted
/// from the last.
static bool isSameAlong(Emitter &e, Value zero, unsigned fromLast) {
  if (!zero)
    return true;
  Exprs shape = graph::getShape(zero);
  return shape.size() <= fromLast ||
         shape[shape.size() - 1 - fromLast] == e.number(1);
}

/// Of bytes (a - p) (b - q) = a b - q (sum of a's row) - p (sum of b's column,
/// less q each): bytes are multiplied as they are, with a sign on one side.
Value charonia::frontend::onnx::shiftedProduct(Emitter &e, const Shifted &a,
                                               const Shifted &b) {
  Value aZero = zeroOf(e, a), bZero = zeroOf(e, b);
  if (e.failed())
    return {};
  if (!isByte(a.value) || !isByte(b.value) || rankOf(a.value) < 2 ||
      rankOf(b.value) < 2 || !isSameAlong(e, aZero, 0) ||
      !isSameAlong(e, bZero, 1))
    return buildProduct(distances(e, a), distances(e, b), e);
  mlir::Type i32 = e.getBuilder().getI32Type();
  Shifted right = b;
  if (elementOf(a.value) == elementOf(b.value))
    right = withOtherSign(e, b);
  Value product = buildProduct(a.value, right.value, e);
  if (Value zero = zeroOf(e, right)) {
    Value rows = e.reduce(graph::ReduceKind::sum, e.cast(a.value, i32),
                          {rankOf(a.value) - 1}, /*keepdims=*/true);
    product = e.sub(product, e.mul(rows, zero));
  }
  if (!aZero)
    return product;
  Value terms = e.cast(b.value, i32);
  Value columns =
      e.reduce(graph::ReduceKind::sum, bZero ? e.sub(terms, bZero) : terms,
               {rankOf(b.value) - 2}, /*keepdims=*/true);
  return e.sub(product, e.mul(aZero, columns));
}

/// Operands: a, scale, zero point; b, scale, zero point; scale and zero point
/// of the result.
static llvm::LogicalResult qLinearMatMul(Node &n, Emitter &e) {
  for (unsigned i : {0, 3})
    if (failed(n.needsRank(i, 1, 32)))
      return llvm::failure();
  mlir::Type wide = e.getBuilder().getF32Type(),
             element = elementOf(n.input(7));
  if (!isSmallInteger(element) || isFloat(n.input(0)) || isFloat(n.input(3)))
    return e.fail("quantization to this type is not supported",
                  "quantize to integers of 8 or 16 bits, or write products of "
                  "float8 as DequantizeLinear, MatMul, QuantizeLinear");
  Matrices m(n.input(0), n.input(3), e);
  if (e.failed())
    return llvm::failure();
  Value product = shiftedProduct(e, {m.lhs, n.input(2), rankOf(m.lhs) - 2},
                                 {m.rhs, n.input(5), rankOf(m.rhs) - 1});
  if (!product)
    return llvm::failure();
  int64_t rank = rankOf(product);
  auto scale = [&](unsigned i, int64_t axis) {
    return e.cast(alongAxis(e, n.input(i), rank, axis), wide);
  };
  Value factor =
      e.div(e.mul(scale(1, rank - 2), scale(4, rank - 1)), scale(6, rank - 2));
  Value y = saturate(e, e.mul(e.cast(product, wide), factor),
                     alongAxis(e, n.input(7), rank, rank - 2), element);
  return n.yield(m.dropFrom(y, e));
}

/// Operands: x, scale, zero point; filter, scale, zero point (one for all or
/// one an output channel); scale and zero point of the result; bias in 32 bits.
/// Padding is applied to what has its zero point taken off, so it reads as
/// zero.
static llvm::LogicalResult qLinearConv(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 3, 5)) || failed(n.needsRank(3, 3, 5)))
    return llvm::failure();
  auto kernel = kernelOf(n.input(3), e);
  if (failed(kernel))
    return llvm::failure();
  auto [input, filter] =
      convOperands(e, {n.input(0), n.input(2), 1}, {n.input(3), n.input(5), 0});
  auto window = readWindow(n, e, *kernel, 0, input);
  if (failed(window) || !filter)
    return llvm::failure();
  Value sum =
      buildConv(*window, window->input, filter, n.integer("group", 1), e);
  if (!sum)
    return llvm::failure();
  int64_t rank = rankOf(sum);
  mlir::Type wide = e.getBuilder().getF32Type();
  if (n.has(8)) {
    if (failed(n.needsRank(8, 1, 1)))
      return llvm::failure();
    sum = e.add(sum, e.asChannels(n.input(8), rank - 2));
  }
  auto scale = [&](unsigned i) {
    return e.cast(alongAxis(e, n.input(i), rank, 1), wide);
  };
  Value factor = e.div(e.mul(scale(1), scale(4)), scale(6));
  return n.yield(saturate(e, e.mul(e.cast(sum, wide), factor),
                          alongAxis(e, n.input(7), rank, 1),
                          elementOf(n.input(7))));
}

DynamicBytes charonia::frontend::onnx::quantizeDynamically(Emitter &e,
                                                           Value x) {
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x)));
  mlir::Type f32 = e.getBuilder().getF32Type();
  auto byte =
      mlir::IntegerType::get(e.getContext(), 8, mlir::IntegerType::Unsigned);
  Value zero = e.scalar(0.0, f32), most = e.scalar(255.0, f32);
  Value low = e.min(e.reduce(graph::ReduceKind::min, x, axes, false), zero);
  Value high = e.max(e.reduce(graph::ReduceKind::max, x, axes, false), zero);
  Value scale = e.div(e.sub(high, low), most);
  scale = e.select(e.compare(graph::Predicate::eq, scale, zero),
                   e.scalar(1.0, f32), scale);
  Value point = saturate(e, e.op<graph::NegOp>({e.div(low, scale)}), {}, byte);
  return {saturate(e, e.div(x, scale), point, byte), scale, point};
}
static llvm::LogicalResult dynamicQuantizeLinear(Node &n, Emitter &e) {
  DynamicBytes y = quantizeDynamically(e, n.input(0));
  return n.yield({y.integers, y.scale, y.point});
}

llvm::ArrayRef<Row> charonia::frontend::onnx::quantizeRows() {
  static const Row rows[] = {
      {"", "QuantizeLinear", 10, 28, quantizeLinear},
      {"", "DequantizeLinear", 10, 28, dequantizeLinear},
      {"", "DynamicQuantizeLinear", 11, 11, dynamicQuantizeLinear},
      {"", "QLinearMatMul", 10, 21, qLinearMatMul},
      {"", "QLinearConv", 10, 10, qLinearConv},
      {"com.microsoft", "QuantizeLinear", 1, 1, quantizeLinear},
      {"com.microsoft", "DequantizeLinear", 1, 1, dequantizeLinear},
  };
  return rows;
}
