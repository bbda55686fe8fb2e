// Linear quantization, as compositions of elementwise operators and products of
// integers.
#include "frontends/onnx/ops/Quantize.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/Tensors.h"
#include "frontends/onnx/ops/Window.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

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
  if ((int64_t)shape.size() != rank || block < 1 || block > maxDimension)
    return e.fail("scale and zero point, " + e.describe(parameter.getType()) +
                  ", fit neither an axis nor blocks of " +
                  e.describe(x.getType()));
  // [.., count, ..] to [.., count, block, ..] to [.., count * block, ..], cut.
  Exprs split = shape, repeated = shape, merged = shape;
  split.insert(split.begin() + *axis + 1, e.number(1));
  repeated.insert(repeated.begin() + *axis + 1, e.number(block));
  merged[*axis] = graph::simplify(shape[*axis] * block);
  Value blocks =
      e.reshape(e.broadcast(e.reshape(parameter, split), repeated), merged);
  if (merged[*axis] == dims[*axis])
    return blocks;
  auto known = graph::constantOf(merged[*axis]),
       wanted = graph::constantOf(dims[*axis]);
  if (!known || !wanted || *known < *wanted)
    return e.fail("blocks of " + Twine(block) + " do not cover axis " +
                  Twine(*axis) + " of " + e.describe(x.getType()));
  return e.slice(blocks, Exprs(rank, e.number(0)),
                 llvm::SmallVector<int64_t>(rank, 1), dims);
}

Value charonia::frontend::onnx::saturate(Emitter &e, Value x, Value zero,
                                         mlir::Type element) {
  Value rounded = e.op<graph::RoundOp>({x});
  if (!rounded || !element)
    return {};
  mlir::Type wide = elementOf(rounded);
  if (zero)
    rounded = e.add(rounded, e.cast(zero, wide));
  unsigned width = element.getIntOrFloatBitWidth();
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

static llvm::LogicalResult quantizeLinear(Node &n, Emitter &e) {
  Value x = n.input(0), zero = n.input(2);
  mlir::Type element =
      zero ? elementOf(zero)
      : n.integer("output_dtype")
          ? elementType(int(n.integer("output_dtype")), e.getContext())
          : mlir::IntegerType::get(e.getContext(), 8,
                                   mlir::IntegerType::Unsigned);
  if (!isSmallInteger(element))
    return e.fail("quantization to this type is not supported",
                  "quantize to integers of 8 or 16 bits");
  // In float, whatever the operands are; `precision` may ask for double.
  mlir::Type wide = e.getBuilder().getF32Type();
  if (n.integer("precision") == ::onnx::TensorProto::DOUBLE)
    wide = e.getBuilder().getF64Type();
  Value scale = spread(n, e, e.cast(n.input(1), wide), x);
  if (zero)
    zero = spread(n, e, zero, x);
  if (!scale || (n.has(2) && !zero))
    return llvm::failure();
  return n.yield(saturate(e, e.div(e.cast(x, wide), scale), zero, element));
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
  Value integer = e.cast(x, e.getBuilder().getI32Type());
  if (zero)
    integer = e.sub(integer,
                    e.cast(spread(n, e, zero, x), e.getBuilder().getI32Type()));
  return n.yield(e.cast(e.mul(e.cast(integer, wide), scale), result));
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

mlir::Type charonia::frontend::onnx::differenceType(Emitter &e, Value x) {
  mlir::Type element = elementOf(x);
  bool isByte =
      element && element.isInteger() && element.getIntOrFloatBitWidth() <= 8;
  return e.getBuilder().getIntegerType(isByte ? 16 : 32);
}

Value charonia::frontend::onnx::shifted(Emitter &e, Value x, Value zero,
                                        int64_t axis) {
  mlir::Type wide = differenceType(e, x);
  if (!zero)
    return e.cast(x, wide);
  return e.sub(e.cast(x, wide),
               e.cast(alongAxis(e, zero, rankOf(x), axis), wide));
}

/// Operands: a, scale, zero point; b, scale, zero point; scale and zero point
/// of the result.
static llvm::LogicalResult qLinearMatMul(Node &n, Emitter &e) {
  for (unsigned i : {0, 3})
    if (failed(n.needsRank(i, 2, 32)))
      return llvm::failure();
  mlir::Type wide = e.getBuilder().getF32Type(),
             element = elementOf(n.input(7));
  if (!isSmallInteger(element))
    return e.fail("quantization to this type is not supported",
                  "quantize to integers of 8 or 16 bits");
  int64_t row = rankOf(n.input(0)) - 2, column = rankOf(n.input(3)) - 1;
  Value product =
      e.op<graph::MatmulOp>({shifted(e, n.input(0), n.input(2), row),
                             shifted(e, n.input(3), n.input(5), column)});
  if (!product)
    return llvm::failure();
  int64_t rank = rankOf(product);
  auto scale = [&](unsigned i, int64_t axis) {
    return e.cast(alongAxis(e, n.input(i), rank, axis), wide);
  };
  Value factor =
      e.div(e.mul(scale(1, rank - 2), scale(4, rank - 1)), scale(6, rank - 2));
  return n.yield(saturate(e, e.mul(e.cast(product, wide), factor),
                          alongAxis(e, n.input(7), rank, rank - 2), element));
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
  Value input = shifted(e, n.input(0), n.input(2), 1),
        filter = shifted(e, n.input(3), n.input(5), 0);
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

llvm::ArrayRef<Row> charonia::frontend::onnx::quantizeRows() {
  static const Row rows[] = {
      {"", "QuantizeLinear", 10, 28, quantizeLinear},
      {"", "DequantizeLinear", 10, 28, dequantizeLinear},
      {"", "QLinearMatMul", 10, 21, qLinearMatMul},
      {"", "QLinearConv", 10, 10, qLinearConv},
      {"com.microsoft", "QuantizeLinear", 1, 1, quantizeLinear},
      {"com.microsoft", "DequantizeLinear", 1, 1, dequantizeLinear},
  };
  return rows;
}
