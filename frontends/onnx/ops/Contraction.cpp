// Matrix products and convolutions.
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/ops/Window.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using mlir::Value;

/// NumPy's matmul: vectors get a dimension of 1, which is dropped from the
/// result.
static Value matmul(Value lhs, Value rhs, Node &n, Emitter &e) {
  if (!lhs || !rhs || failed(n.needsRank(0, 1, 32)) ||
      failed(n.needsRank(1, 1, 32)))
    return {};
  bool lhsVector = rankOf(lhs) == 1, rhsVector = rankOf(rhs) == 1;
  Exprs lhsShape = graph::getShape(lhs), rhsShape = graph::getShape(rhs);
  if (lhsVector)
    lhs = e.reshape(lhs, {e.number(1), lhsShape[0]});
  if (rhsVector)
    rhs = e.reshape(rhs, {rhsShape[0], e.number(1)});
  Value result = e.op<graph::MatmulOp>({lhs, rhs});
  if (!result || (!lhsVector && !rhsVector))
    return result;
  Exprs shape = graph::getShape(result);
  if (rhsVector)
    shape.pop_back();
  if (lhsVector)
    shape.erase(rhsVector ? shape.end() - 1 : shape.end() - 2);
  return e.reshape(result, shape);
}
static llvm::LogicalResult matMul(Node &n, Emitter &e) {
  return n.yield(matmul(n.input(0), n.input(1), n, e));
}

/// `value` in 32 bits less its zero point, a scalar or one entry along `axis`.
static Value withoutZeroPoint(Value value, Value zero, int64_t axis,
                              Emitter &e) {
  mlir::Type i32 = e.getBuilder().getI32Type();
  Value wide = e.cast(value, i32);
  if (!zero)
    return wide;
  zero = e.cast(zero, i32);
  if (zero && rankOf(zero) == 1 && value)
    zero = e.asChannels(zero, rankOf(value) - 1 - axis);
  return e.sub(wide, zero);
}
static llvm::LogicalResult matMulInteger(Node &n, Emitter &e) {
  int64_t row = std::max<int64_t>(rankOf(n.input(0)) - 2, 0),
          column = rankOf(n.input(1)) - 1;
  return n.yield(matmul(withoutZeroPoint(n.input(0), n.input(2), row, e),
                        withoutZeroPoint(n.input(1), n.input(3), column, e), n,
                        e));
}

static llvm::LogicalResult gemm(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 2, 2)) || failed(n.needsRank(1, 2, 2)))
    return llvm::failure();
  auto operand = [&](unsigned i, llvm::StringRef transposed) {
    return n.flag(transposed) ? e.transpose(n.input(i), {1, 0}) : n.input(i);
  };
  Value product =
      e.op<graph::MatmulOp>({operand(0, "transA"), operand(1, "transB")});
  mlir::Type element = elementOf(n.input(0));
  double alpha = n.number("alpha", 1), beta = n.number("beta", 1);
  if (alpha != 1)
    product = e.mul(product, e.scalar(alpha, element));
  if (!n.has(2) || beta == 0 || !product)
    return n.yield(product);
  Value c = beta == 1 ? n.input(2) : e.mul(n.input(2), e.scalar(beta, element));
  Value sum = e.add(product, c);
  if (sum && sum.getType() != product.getType())
    return e.fail("C, " + e.describe(c.getType()) +
                  ", does not broadcast to the product, " +
                  e.describe(product.getType()));
  return n.yield(sum);
}

/// The convolution of `input` as readWindow left it.
static Value convolve(Node &n, Emitter &e, const Window &w, Value input,
                      Value filter) {
  int64_t groups = n.integer("group", 1);
  auto channels = graph::constantOf(graph::getShape(input)[1]);
  Exprs shape = graph::getShape(filter);
  auto outputs = graph::constantOf(shape[0]),
       perGroup = graph::constantOf(shape[1]);
  if (!channels && perGroup && groups > 0 &&
      *perGroup <= maxDimension / groups &&
      e.agree(graph::getShape(input)[1], e.number(*perGroup * groups),
              "multiplies over the channels"))
    channels = *perGroup * groups;
  if (!channels)
    return e.fail("the number of channels has to be known",
                  "fix that size with --shape");
  if (!outputs || !perGroup || groups < 1 || groups > *channels ||
      *outputs % groups || *channels / groups != *perGroup ||
      *channels % groups)
    return e.fail("a filter of " + e.describe(filter.getType()) + " in " +
                  llvm::Twine(groups) + " groups does not fit the " +
                  llvm::Twine(*channels) + " channels of the input");
  return e.op<graph::ConvOp>({input, filter}, {e.attr("strides", w.strides),
                                               e.attr("pads", w.pads),
                                               e.attr("dilations", w.dilations),
                                               e.attr("groups", groups)});
}

static llvm::FailureOr<Window> readConvWindow(Node &n, Emitter &e) {
  int64_t rank = rankOf(n.input(0));
  if (failed(n.needsRank(0, 3, 5)) || failed(n.needsRank(1, rank, rank)))
    return llvm::failure();
  SmallVector<int64_t> kernel;
  Exprs filter = graph::getShape(n.input(1));
  for (mlir::AffineExpr size : llvm::drop_begin(filter, 2)) {
    auto known = graph::constantOf(size);
    if (!known)
      return e.fail("the filter's size has to be known",
                    "fix that size with --shape");
    kernel.push_back(*known);
  }
  return readWindow(n, e, kernel, 0);
}

static llvm::LogicalResult conv(Node &n, Emitter &e) {
  auto window = readConvWindow(n, e);
  if (failed(window))
    return llvm::failure();
  Value result = convolve(n, e, *window, window->input, n.input(1));
  if (!n.has(2) || !result)
    return n.yield(result);
  if (failed(n.needsRank(2, 1, 1)))
    return llvm::failure();
  Value sum = e.add(result, e.asChannels(n.input(2), window->kernel.size()));
  if (sum && sum.getType() != result.getType())
    return e.fail("the bias, " + e.describe(n.input(2).getType()) +
                  ", does not have one element an output channel");
  return n.yield(sum);
}

/// Padding is applied after the zero point is taken off, so that it reads as
/// zero.
static llvm::LogicalResult convInteger(Node &n, Emitter &e) {
  if (n.text("auto_pad", "NOTSET") != "NOTSET" &&
      !llvm::cast<mlir::RankedTensorType>(n.input(0).getType())
           .hasStaticShape())
    return e.fail("auto_pad needs sizes that are known",
                  "fix them with --shape");
  auto window = readConvWindow(n, e);
  if (failed(window))
    return llvm::failure();
  Value input = withoutZeroPoint(n.input(0), n.input(2), 1, e);
  Value filter = withoutZeroPoint(n.input(1), n.input(3), 0, e);
  if (!input || !filter)
    return llvm::failure();
  return n.yield(convolve(n, e, *window, input, filter));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::contractionRows() {
  static const Row rows[] = {
      {"", "MatMul", 1, 13, matMul},
      {"", "MatMulInteger", 10, 10, matMulInteger},
      {"", "Gemm", 7, 13, gemm},
      {"", "Conv", 1, 22, conv},
      {"", "ConvInteger", 10, 10, convInteger},
  };
  return rows;
}
