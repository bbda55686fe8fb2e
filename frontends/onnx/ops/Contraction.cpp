// Matrix products and convolutions.
#include "frontends/common/Diagnostic.h"
#include "frontends/common/builders/Activation.h"
#include "frontends/common/builders/Matrix.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/ops/Quantize.h"
#include "frontends/onnx/ops/Window.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using mlir::Value;

static Value matmul(Value lhs, Value rhs, Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 1, 32)) || failed(n.needsRank(1, 1, 32)))
    return {};
  return buildMatmul(lhs, rhs, e);
}
static llvm::LogicalResult matMul(Node &n, Emitter &e) {
  return n.yield(matmul(n.input(0), n.input(1), n, e));
}

static llvm::LogicalResult matMulInteger(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 1, 32)) || failed(n.needsRank(1, 1, 32)))
    return llvm::failure();
  int64_t row = std::max<int64_t>(rankOf(n.input(0)) - 2, 0),
          column = rankOf(n.input(1)) - 1;
  return n.yield(shiftedProduct(e, {n.input(0), n.input(2), row},
                                {n.input(1), n.input(3), column}));
}

/// The activation that ONNX Runtime fused into the node, by its parameters;
/// none without attribute `activation`.
static Value activated(Value x, Node &n, llvm::ArrayRef<double> parameters,
                       Emitter &e) {
  std::string name = n.text("activation");
  auto parameter = [&](unsigned i, double otherwise) {
    return i < parameters.size() ? parameters[i] : otherwise;
  };
  if (name.empty() || !x)
    return x;
  if (name == "Relu")
    return buildRelu(x, e);
  if (name == "Tanh")
    return e.op<graph::TanhOp>({x});
  if (name == "Sigmoid")
    return e.op<graph::SigmoidOp>({x});
  if (name == "LeakyRelu")
    return buildLeakyRelu(x, parameter(0, 0.01), e);
  if (name == "Elu")
    return buildElu(x, parameter(0, 1), e);
  if (name == "HardSigmoid")
    return buildHardSigmoid(x, parameter(0, 0.2), parameter(1, 0.5), e);
  if (name == "HardSwish")
    return buildHardSwish(x, e);
  if (name == "Softplus")
    return buildSoftplus(x, e);
  if (name == "Clip" && parameters.size() == 2)
    return e.min(e.max(x, e.scalar(parameters[0], elementOf(x))),
                 e.scalar(parameters[1], elementOf(x)));
  return e.fail("attribute 'activation' = '" + printable(name) + "' with " +
                    llvm::Twine(parameters.size()) +
                    " parameters is not supported",
                "save the model without ONNX Runtime's extended optimizations");
}

/// `v` with its first dimension behind the batch dimensions, if `batch`, and
/// then with its last two swapped, if `matrix`.
static Value transposed(Value v, bool batch, bool matrix, Emitter &e) {
  int64_t rank = rankOf(v);
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (batch && rank > 2)
    std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (matrix && rank > 1)
    std::swap(order[rank - 1], order[rank - 2]);
  return llvm::is_sorted(order) ? v : e.transpose(v, order);
}
static llvm::LogicalResult fusedMatMul(Node &n, Emitter &e) {
  auto operand = [&](unsigned i, llvm::StringRef batch,
                     llvm::StringRef matrix) {
    return transposed(n.input(i), n.flag(batch), n.flag(matrix), e);
  };
  Value product = matmul(operand(0, "transBatchA", "transA"),
                         operand(1, "transBatchB", "transB"), n, e);
  double alpha = n.number("alpha", 1);
  if (alpha != 1)
    product = e.mul(product, e.scalar(alpha, elementOf(product)));
  return n.yield(product);
}

static Value gemmOf(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 2, 2)) || failed(n.needsRank(1, 2, 2)))
    return {};
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
    return product;
  Value c = beta == 1 ? n.input(2) : e.mul(n.input(2), e.scalar(beta, element));
  Value sum = e.add(product, c);
  if (sum && sum.getType() != product.getType())
    return e.fail("C, " + e.describe(c.getType()) +
                  ", does not broadcast to the product, " +
                  e.describe(product.getType()));
  return sum;
}
static llvm::LogicalResult gemm(Node &n, Emitter &e) {
  return n.yield(gemmOf(n, e));
}
static llvm::LogicalResult fusedGemm(Node &n, Emitter &e) {
  SmallVector<double> parameters;
  llvm::StringRef missing;
  for (llvm::StringRef name :
       {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (!n.hasAttribute(name)) {
      missing = missing.empty() ? name : missing;
      continue;
    }
    if (!missing.empty())
      return e.fail("has attribute '" + name + "', but no '" + missing + "'",
                    "export the model again");
    parameters.push_back(n.number(name));
  }
  return n.yield(activated(gemmOf(n, e), n, parameters, e));
}

static llvm::FailureOr<Window> readConvWindow(Node &n, Emitter &e) {
  int64_t rank = rankOf(n.input(0));
  if (failed(n.needsRank(0, 3, 5)) || failed(n.needsRank(1, rank, rank)))
    return llvm::failure();
  auto kernel = kernelOf(n.input(1), e);
  if (failed(kernel))
    return llvm::failure();
  return readWindow(n, e, *kernel, 0);
}

static Value convOf(Node &n, Emitter &e) {
  auto window = readConvWindow(n, e);
  if (failed(window))
    return {};
  Value result =
      buildConv(*window, window->input, n.input(1), n.integer("group", 1), e);
  if (!n.has(2) || !result)
    return result;
  if (failed(n.needsRank(2, 1, 1)))
    return {};
  Value sum = e.add(result, e.asChannels(n.input(2), window->kernel.size()));
  if (sum && sum.getType() != result.getType())
    return e.fail("the bias, " + e.describe(n.input(2).getType()) +
                  ", does not have one element an output channel");
  return sum;
}
static llvm::LogicalResult conv(Node &n, Emitter &e) {
  return n.yield(convOf(n, e));
}
static llvm::LogicalResult fusedConv(Node &n, Emitter &e) {
  Value result = convOf(n, e);
  if (n.has(3) && result) {
    Value sum = e.add(result, n.input(3));
    if (sum && sum.getType() != result.getType())
      return e.fail("Z, " + e.describe(n.input(3).getType()) +
                    ", does not broadcast to the result, " +
                    e.describe(result.getType()));
    result = sum;
  }
  return n.yield(activated(result, n, n.numbersOf("activation_params"), e));
}

/// Padding is applied after the zero point is taken off, so that it reads as
/// zero.
static llvm::LogicalResult convInteger(Node &n, Emitter &e) {
  int64_t rank = rankOf(n.input(0));
  if (failed(n.needsRank(0, 3, 5)) || failed(n.needsRank(1, rank, rank)))
    return llvm::failure();
  auto kernel = kernelOf(n.input(1), e);
  if (failed(kernel))
    return llvm::failure();
  auto [input, filter] =
      convOperands(e, {n.input(0), n.input(2), 1}, {n.input(1), n.input(3), 0});
  if (!input || !filter)
    return llvm::failure();
  auto window = readWindow(n, e, *kernel, 0, input);
  if (failed(window))
    return llvm::failure();
  return n.yield(
      buildConv(*window, window->input, filter, n.integer("group", 1), e));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::contractionRows() {
  static const Row rows[] = {
      {"", "MatMul", 1, 13, matMul},
      {"", "MatMulInteger", 10, 10, matMulInteger},
      {"", "Gemm", 1, 13, gemm},
      {"", "Conv", 1, 22, conv},
      {"", "ConvInteger", 10, 10, convInteger},
      {"com.microsoft", "FusedMatMul", 1, 1, fusedMatMul},
      {"com.microsoft", "TransposeMatMul", 1, 1, fusedMatMul},
      {"com.microsoft", "FusedGemm", 1, 1, fusedGemm},
      {"com.microsoft", "FusedConv", 1, 1, fusedConv},
  };
  return rows;
}
