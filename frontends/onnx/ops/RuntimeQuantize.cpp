// ONNX Runtime's quantized operators, as compositions of products of integers
// and elementwise operators.
#include "frontends/common/builders/Activation.h"
#include "frontends/common/builders/Gather.h"
#include "frontends/common/builders/Matrix.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/ops/Attention.h"
#include "frontends/onnx/ops/Quantize.h"
#include "frontends/onnx/ops/Window.h"
#include <numeric>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

static mlir::Type single(Emitter &e) { return e.getBuilder().getF32Type(); }

/// A scale or zero point for a whole tensor.
static Value only(Node &n, Emitter &e, unsigned i) {
  if (!n.has(i))
    return {};
  for (AffineExpr size : graph::getShape(n.input(i)))
    if (size != e.number(1))
      return e.fail("input " + Twine(i) + ", " +
                        e.describe(n.input(i).getType()) +
                        ", is not supported: one for the whole tensor is",
                    "quantize without channels of their own");
  return e.reshape(n.input(i), {});
}

/// Operand `i` in float by the scale and zero point that follow it.
static Value dequantized(Node &n, Emitter &e, unsigned i) {
  Value x = distances(e, {n.input(i), only(n, e, i + 2)});
  return e.mul(e.cast(x, single(e)), only(n, e, i + 1));
}
/// `x` as integers by the scale of operand `i` and the zero point behind it.
static Value quantized(Node &n, Emitter &e, Value x, unsigned i,
                       mlir::Type element) {
  return saturate(e, e.div(x, only(n, e, i)), only(n, e, i + 1), element);
}

template <typename Op> static llvm::LogicalResult binary(Node &n, Emitter &e) {
  Value y = e.op<Op>({dequantized(n, e, 0), dequantized(n, e, 3)});
  return n.yield(quantized(n, e, y, 6, elementOf(n.input(0))));
}

/// The result of an operator of one operand.
static llvm::LogicalResult yieldUnary(Node &n, Emitter &e, Value y) {
  return n.yield(quantized(n, e, y, 3, elementOf(n.input(0))));
}
static llvm::LogicalResult sigmoid(Node &n, Emitter &e) {
  return yieldUnary(n, e, e.op<graph::SigmoidOp>({dequantized(n, e, 0)}));
}
static llvm::LogicalResult leakyRelu(Node &n, Emitter &e) {
  return yieldUnary(n, e,
                    buildLeakyRelu(dequantized(n, e, 0), n.number("alpha"), e));
}
static llvm::LogicalResult softmax(Node &n, Emitter &e) {
  Value x = dequantized(n, e, 0);
  auto axis = n.axis("axis", rankOf(n.input(0)), -1);
  if (failed(axis) || !x)
    return llvm::failure();
  Exprs shape = graph::getShape(x);
  int64_t along = *axis;
  // Until opset 12 the dimensions before and from `axis` were one each.
  if (n.integer("opset") < 13) {
    auto sizes = llvm::ArrayRef(shape);
    x = e.reshape(x, {productOf(sizes.take_front(along), e.getContext()),
                      productOf(sizes.drop_front(along), e.getContext())});
    along = 1;
  }
  return yieldUnary(n, e, e.reshape(buildSoftmax(x, along, false, e), shape));
}

/// `x` with its channels behind the batch where the node has them last, and
/// back.
static Value channelsFirst(Node &n, Emitter &e, Value x, bool back = false) {
  int64_t rank = rankOf(x);
  if (!n.flag("channels_last") || rank < 3)
    return x;
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (back)
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  else
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
  return e.transpose(x, order);
}
static llvm::LogicalResult averagePool(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 3, 5)))
    return llvm::failure();
  Value x = channelsFirst(n, e, dequantized(n, e, 0));
  bool countPad = n.flag("count_include_pad");
  if (!x)
    return llvm::failure();
  auto window = readWindow(n, e, std::nullopt, 0, x);
  if (failed(window))
    return llvm::failure();
  Value y = buildPool(graph::PoolKind::average, *window, countPad, e);
  return yieldUnary(n, e, channelsFirst(n, e, y, true));
}
static llvm::LogicalResult globalAveragePool(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 3, 32)))
    return llvm::failure();
  Value x = channelsFirst(n, e, dequantized(n, e, 0));
  auto axes = llvm::to_vector(llvm::seq<int64_t>(2, rankOf(x)));
  return yieldUnary(n, e, channelsFirst(n, e, e.mean(x, axes, true), true));
}
static llvm::LogicalResult reduceMean(Node &n, Emitter &e) {
  auto axes = n.axes(*n.integers("axes"), rankOf(n.input(0)));
  if (failed(axes))
    return llvm::failure();
  llvm::sort(*axes);
  return yieldUnary(n, e,
                    e.mean(dequantized(n, e, 0), *axes, n.flag("keepdims")));
}

/// Operands: scale and zero point of the result, then each tensor with its own.
static llvm::LogicalResult concat(Node &n, Emitter &e) {
  if (n.numInputs() < 5 || n.numInputs() % 3 != 2)
    return e.fail("needs a scale and a zero point for each tensor");
  auto axis = n.axis("axis", rankOf(n.input(2)));
  if (failed(axis))
    return llvm::failure();
  Values parts;
  for (unsigned i = 2; i < n.numInputs(); i += 3) {
    if (isFloat(n.input(i)) || !isFloat(n.input(i + 1)))
      return e.fail("input " + Twine(i) + " has to be of integers, and input " +
                    Twine(i + 1) + " its scale in float");
    parts.push_back(dequantized(n, e, i));
  }
  return n.yield(
      quantized(n, e, e.concat(parts, *axis), 0, elementOf(n.input(1))));
}
static llvm::LogicalResult where(Node &n, Emitter &e) {
  Value y = e.select(n.input(0), dequantized(n, e, 1), dequantized(n, e, 4));
  return n.yield(quantized(n, e, y, 7, elementOf(n.input(1))));
}

/// Integers, their scale and their zero point: each one for all, or one a row
/// on the left, a column on the right.
struct Scaled {
  Value integers, scale, point;
};

/// NumPy's matmul of these in float: their scales times the sum.
static Value scaledProduct(Emitter &e, const Scaled &a, const Scaled &b,
                           mlir::Type element) {
  Matrices m(a.integers, b.integers, e);
  if (e.failed())
    return {};
  Value sum = shiftedProduct(e, {m.lhs, a.point, rankOf(m.lhs) - 2},
                             {m.rhs, b.point, rankOf(m.rhs) - 1});
  if (!sum)
    return {};
  int64_t rank = rankOf(sum);
  Value factor = e.mul(alongAxis(e, a.scale, rank, rank - 2),
                       alongAxis(e, b.scale, rank, rank - 1));
  return m.dropFrom(e.mul(e.cast(sum, element), factor), e);
}

/// Operands: a, b, scales, zero points, bias.
static llvm::LogicalResult matMulIntegerToFloat(Node &n, Emitter &e) {
  for (unsigned i : {0, 1})
    if (failed(n.needsRank(i, 1, 32)))
      return llvm::failure();
  Value y = scaledProduct(e, {n.input(0), n.input(2), n.input(4)},
                          {n.input(1), n.input(3), n.input(5)},
                          elementOf(n.input(2)));
  return n.yield(n.has(6) ? e.add(y, n.input(6)) : y);
}

/// Operands: a in float, quantized to bytes by its own range; b, scale, zero
/// point, bias.
static llvm::LogicalResult dynamicQuantizeMatMul(Node &n, Emitter &e) {
  Value a = n.input(0);
  for (unsigned i : {0, 1})
    if (failed(n.needsRank(i, 1, 32)))
      return llvm::failure();
  auto [integers, scale, point] = quantizeDynamically(e, a);
  Value y = scaledProduct(e, {integers, scale, point},
                          {n.input(1), n.input(2), n.input(3)}, single(e));
  return n.yield(n.has(4) ? e.add(y, n.input(4)) : y);
}

/// Operands: a, scale, zero point; b, scale, zero point; bias in 32 bits; scale
/// and zero point of the result, which is in float without them.
static llvm::LogicalResult qGemm(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 2, 2)) || failed(n.needsRank(3, 2, 2)))
    return llvm::failure();
  bool transA = n.flag("transA"), transB = n.flag("transB");
  auto operand = [&](unsigned i, bool transposed) {
    return transposed ? e.transpose(n.input(i), {1, 0}) : n.input(i);
  };
  Value sum = shiftedProduct(e, {operand(0, transA), only(n, e, 2)},
                             {operand(3, transB), n.input(5), 1});
  if (!sum)
    return llvm::failure();
  if (n.has(6)) {
    Value whole = e.add(sum, n.input(6));
    if (whole && whole.getType() != sum.getType())
      return e.fail("C, " + e.describe(n.input(6).getType()) +
                    ", does not broadcast to the product, " +
                    e.describe(sum.getType()));
    sum = whole;
  }
  Value factor = e.mul(e.mul(only(n, e, 1), alongAxis(e, n.input(4), 2, 1)),
                       e.scalar(n.number("alpha"), single(e)));
  if (n.has(7))
    factor = e.div(factor, only(n, e, 7));
  Value y = e.mul(e.cast(sum, single(e)), factor);
  if (!n.has(7))
    return n.yield(y);
  mlir::Type element = elementOf(n.has(8) ? n.input(8) : n.input(0));
  return n.yield(saturate(e, y, only(n, e, 8), element));
}

/// Operands: input, weight, bias, scales, mask, zero points, past.
static llvm::LogicalResult qAttention(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 3, 3)) || failed(n.needsRank(1, 2, 2)))
    return llvm::failure();
  auto whole = graph::constantOf(graph::getShape(n.input(1))[1]);
  if (!whole || *whole % 3)
    return e.fail("weights of " + e.describe(n.input(1).getType()) +
                  " do not hold queries, keys and values");
  Value projected = scaledProduct(e, {n.input(0), only(n, e, 3), only(n, e, 6)},
                                  {n.input(1), n.input(4), n.input(7)},
                                  elementOf(n.input(2)));
  return yieldAttention(n, e, e.add(projected, n.input(2)),
                        SmallVector<int64_t>(3, *whole / 3), {n.input(5), {}},
                        n.input(8));
}

/// Numbers of `bits` bits, the lowest first in each byte of the last dimension,
/// in 32 bits. Shifts are places, so that what computes an element reads its
/// byte once, wherever it is.
static Value unpacked(Emitter &e, Value bytes, int64_t bits) {
  constexpr int64_t byteBits = 8;
  mlir::Type i32 = e.getBuilder().getI32Type();
  Value wide = e.cast(bytes, i32);
  if (!wide || bits == byteBits)
    return wide;
  int64_t parts = byteBits / bits;
  Exprs dims = graph::getShape(wide), flat = dims;
  dims.push_back(e.number(1));
  flat.back() = graph::simplify(flat.back() * parts);
  Value shifts = e.slice(e.iota({e.number(byteBits)}, 0, i32), {e.number(0)},
                         {bits}, {e.number(parts)});
  Value part = e.op<graph::ShrOp>({e.reshape(wide, dims), shifts});
  part = e.op<graph::AndOp>({part, e.scalar((int64_t(1) << bits) - 1, i32)});
  return e.reshape(part, flat);
}

namespace {
/// What the attributes of MatMulNBits say: a matrix [N, K] in blocks along K.
struct BlockedMatrix {
  int64_t rows, depth, bits, block, blocks;
};
} // namespace

/// Zero points by row and block, in float; in bytes they are packed like the
/// matrix, each row to whole bytes.
static Value blockZeroPoints(Node &n, Emitter &e, const BlockedMatrix &m) {
  if (!n.has(3))
    return e.scalar(double(int64_t(1) << (m.bits - 1)), single(e));
  Value given = n.input(3);
  AffineExpr rows = e.number(m.rows), blocks = e.number(m.blocks);
  if (isFloat(given))
    return e.cast(e.reshape(given, {rows, blocks, e.number(1)}), single(e));
  int64_t bytes = (m.blocks * m.bits + 7) / 8;
  Value points = unpacked(e, e.reshape(given, {rows, e.number(bytes)}), m.bits);
  points = e.slice(points, {e.number(0), e.number(0)}, {1, 1}, {rows, blocks});
  return e.cast(e.reshape(points, {rows, blocks, e.number(1)}), single(e));
}

/// Operands: a; the matrix's blocks in bytes, [N, blocks, bytes]; scales, zero
/// points, an order of columns, bias.
static llvm::LogicalResult matMulNBits(Node &n, Emitter &e) {
  BlockedMatrix m{n.integer("N"), n.integer("K"), n.integer("bits"),
                  n.integer("block_size"), 0};
  if (m.bits != 2 && m.bits != 4 && m.bits != 8)
    return e.fail("attribute 'bits' = " + Twine(m.bits) + " is not supported",
                  "quantize to 2, 4 or 8 bits");
  if (n.has(4))
    return e.fail("input 4 (g_idx) is not supported",
                  "quantize without an order of columns");
  if (n.integer("weight_prepacked") != 0)
    return e.fail("attribute 'weight_prepacked' = " +
                      Twine(n.integer("weight_prepacked")) +
                      " is not supported",
                  "save the model before ONNX Runtime packs its weights");
  constexpr int64_t most = int64_t(1) << 30;
  if (m.rows < 1 || m.depth < 1 || m.block < 8 || m.rows > most ||
      m.depth > most || m.block > most)
    return e.fail("a matrix of " + Twine(m.rows) + " x " + Twine(m.depth) +
                  " in blocks of " + Twine(m.block) + " cannot be");
  m.blocks = (m.depth + m.block - 1) / m.block;
  AffineExpr rows = e.number(m.rows), blocks = e.number(m.blocks);
  Value bytes = e.reshape(n.input(1),
                          {rows, blocks, e.number((m.block * m.bits + 7) / 8)});
  Value scales =
      e.cast(e.reshape(n.input(2), {rows, blocks, e.number(1)}), single(e));
  Value matrix = e.cast(unpacked(e, bytes, m.bits), single(e));
  matrix = e.mul(e.sub(matrix, blockZeroPoints(n, e, m)), scales);
  matrix = e.reshape(matrix, {rows, e.number(m.blocks * m.block)});
  if (m.blocks * m.block != m.depth)
    matrix = e.slice(matrix, {e.number(0), e.number(0)}, {1, 1},
                     {rows, e.number(m.depth)});
  matrix = e.cast(e.transpose(matrix, {1, 0}), elementOf(n.input(0)));
  if (!matrix || failed(n.needsRank(0, 1, 32)))
    return llvm::failure();
  Value y = buildMatmul(n.input(0), matrix, e);
  return n.yield(n.has(5) ? e.add(y, n.input(5)) : y);
}

/// Integers of 4 bits, which are held in 8, as bytes of two neighbours in the
/// last dimension.
static Value packedPairs(Emitter &e, Value integers) {
  Exprs pairs = graph::getShape(integers), dims = pairs;
  auto byte =
      mlir::IntegerType::get(e.getContext(), 8, mlir::IntegerType::Unsigned);
  dims.back() = graph::simplify(dims.back().floorDiv(2));
  pairs.back() = dims.back();
  pairs.push_back(e.number(2));
  Value both = e.reshape(e.cast(integers, byte), pairs);
  auto part = [&](int64_t i) {
    return e.reshape(
        sliceAlong(both, rankOf(both) - 1, {e.number(i), e.number(1), 1}, e),
        dims);
  };
  Value low = e.op<graph::AndOp>({part(0), e.scalar(int64_t(15), byte)});
  return e.op<graph::OrOp>(
      {low, e.op<graph::ShlOp>({part(1), e.scalar(int64_t(4), byte)})});
}

/// Rows of a table of few bits: what is gathered is its bytes.
static Value gatheredIntegers(Node &n, Emitter &e, int64_t axis, int64_t bits) {
  constexpr unsigned half = 4;
  Value table = n.input(0);
  mlir::Type i32 = e.getBuilder().getI32Type();
  auto gather = [&](Value from) {
    return e.op<graph::GatherOp>({from, n.input(1)}, e.attr("axis", axis));
  };
  int narrow = n.narrowInput(0);
  auto last = graph::constantOf(graph::getShape(table).back());
  if (!narrow)
    return unpacked(e, gather(table), bits);
  if (!last || *last % 2 || axis + 1 == rankOf(table))
    return e.cast(gather(table), i32);
  Value rows = unpacked(e, gather(packedPairs(e, table)), half);
  if (narrow == ::onnx::TensorProto::UINT4)
    return rows;
  Value sign = e.scalar(int64_t(1) << (half - 1), i32);
  return e.sub(e.op<graph::XorOp>({rows, sign}), sign);
}

/// Operands: a table, indices, a scale for each block of the table, and a zero
/// point; bytes hold the integers of `bits` bits, the lowest first, and zero
/// points alike. Only rows that are read are dequantized.
static llvm::LogicalResult gatherBlockQuantized(Node &n, Emitter &e) {
  Value table = n.input(0), scales = n.input(2);
  int64_t rank = rankOf(table), block = n.integer("block_size");
  int64_t bits = n.integer("bits");
  if (failed(n.needsRank(0, 1, 32)) || failed(n.needsRank(2, rank, rank)) ||
      (n.has(3) && failed(n.needsRank(3, rank, rank))))
    return llvm::failure();
  auto axis = n.axis("gather_axis", rank),
       along = n.axis("quantize_axis", rank);
  if (failed(axis) || failed(along) ||
      failed(checkPositions(table, n.input(1), *axis, e)))
    return llvm::failure();
  bool isPacked = !n.narrowInput(0);
  if (isPacked ? bits != 2 && bits != 4 && bits != 8 : bits != 4)
    return e.fail("attribute 'bits' = " + Twine(bits) + " is not supported",
                  "quantize to 2, 4 or 8 bits");
  if (*axis == *along || (isPacked && *along != rank - 1))
    return e.fail("gathers along axis " + Twine(*axis) +
                      " what is in blocks along axis " + Twine(*along) +
                      ", which is not supported",
                  "quantize along another axis than that of the positions" +
                      Twine(isPacked ? ", the last one" : ""));
  Value rows = gatheredIntegers(n, e, *axis, bits);
  // Behind the positions' dimensions, which stand in place of one.
  int64_t place = *along > *axis ? *along + rankOf(n.input(1)) - 1 : *along;
  auto parameter = [&](Value value) {
    return e.op<graph::GatherOp>({value, n.input(1)}, e.attr("axis", *axis));
  };
  mlir::Type i32 = e.getBuilder().getI32Type();
  scales = parameter(e.cast(scales, single(e)));
  if (!rows || !scales)
    return llvm::failure();
  if (n.has(3)) {
    Value points = parameter(n.input(3));
    points = isPacked ? unpacked(e, points, bits) : e.cast(points, i32);
    if (!points)
      return llvm::failure();
    // Bytes of zero points may have room for more than there are.
    Exprs dims = graph::getShape(points);
    dims[place] = graph::getShape(scales)[place];
    points = e.slice(points, Exprs(dims.size(), e.number(0)),
                     SmallVector<int64_t>(dims.size(), 1), dims);
    rows = e.sub(rows, inBlocks(e, points, rows, place, block));
  } else if (isPacked) {
    rows = e.sub(rows, e.scalar(int64_t(1) << (bits - 1), i32));
  }
  Value y =
      e.mul(e.cast(rows, single(e)), inBlocks(e, scales, rows, place, block));
  return n.yield(e.cast(y, elementOf(n.input(2))));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::runtimeQuantizeRows() {
  static const Row rows[] = {
      {"com.microsoft", "QLinearAdd", 1, 1, binary<graph::AddOp>},
      {"com.microsoft", "QLinearMul", 1, 1, binary<graph::MulOp>},
      {"com.microsoft", "QLinearSigmoid", 1, 1, sigmoid},
      {"com.microsoft", "QLinearLeakyRelu", 1, 1, leakyRelu},
      {"com.microsoft", "QLinearSoftmax", 1, 1, softmax},
      {"com.microsoft", "QLinearAveragePool", 1, 1, averagePool},
      {"com.microsoft", "QLinearGlobalAveragePool", 1, 1, globalAveragePool},
      {"com.microsoft", "QLinearReduceMean", 1, 1, reduceMean},
      {"com.microsoft", "QLinearConcat", 1, 1, concat},
      {"com.microsoft", "QLinearWhere", 1, 1, where},
      {"com.microsoft", "MatMulIntegerToFloat", 1, 1, matMulIntegerToFloat},
      {"com.microsoft", "DynamicQuantizeMatMul", 1, 1, dynamicQuantizeMatMul},
      {"com.microsoft", "QGemm", 1, 1, qGemm},
      {"com.microsoft", "QAttention", 1, 1, qAttention},
      {"com.microsoft", "MatMulNBits", 1, 1, matMulNBits},
      {"com.microsoft", "GatherBlockQuantized", 1, 1, gatherBlockQuantized},
  };
  return rows;
}
