// Matrix products and convolutions.
#include "frontends/common/builders/Matrix.h"
#include "frontends/common/builders/Shape.h"
#include "frontends/tensorflow/ops/Window.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Value;

/// The operand with its last two dimensions exchanged.
static Value transposed(Value matrix, Emitter &e) {
  SmallVector<int64_t> permutation =
      llvm::to_vector(llvm::seq<int64_t>(0, rankOf(matrix)));
  std::swap(permutation.back(), permutation[permutation.size() - 2]);
  return e.transpose(matrix, permutation);
}

static LogicalResult product(Node &n, Emitter &e, int64_t maxRank,
                             llvm::StringRef lhs, llvm::StringRef rhs) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(0, 2, maxRank)) ||
      failed(n.needsRank(1, 2, maxRank)))
    return llvm::failure();
  Value a = n.input(0), b = n.input(1);
  return n.yield(buildMatmul(n.flag(lhs) ? transposed(a, e) : a,
                             n.flag(rhs) ? transposed(b, e) : b, e));
}
static LogicalResult matMul(Node &n, Emitter &e) {
  return product(n, e, 2, "transpose_a", "transpose_b");
}
static LogicalResult batchMatMul(Node &n, Emitter &e) {
  return product(n, e, 32, "adj_x", "adj_y");
}

/// [K..., C / groups, O] as [O, K..., C / groups], or in the order of channels
/// in front.
static Value filterOf(Value filter, const Window &w, Emitter &e) {
  int64_t rank = rankOf(filter);
  SmallVector<int64_t> permutation = {rank - 1};
  if (!w.channelsLast)
    permutation.push_back(rank - 2);
  for (int64_t d = 0; d < rank - 2; ++d)
    permutation.push_back(d);
  if (w.channelsLast)
    permutation.push_back(rank - 2);
  return e.transpose(filter, permutation);
}

/// Groups are as many as the filter's channels go into the input's.
static LogicalResult conv(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)))
    return llvm::failure();
  int64_t rank = rankOf(n.input(0));
  if (failed(n.needsRank(0, 4, 5)) || failed(n.needsRank(1, rank, rank)))
    return llvm::failure();
  auto window = readConvWindow(n, e);
  if (failed(window))
    return llvm::failure();
  Exprs filter = graph::getShape(n.input(1)),
        input = graph::getShape(window->input);
  auto perGroup = graph::constantOf(filter[rank - 2]),
       channels = graph::constantOf(input[window->channelsLast ? rank - 1 : 1]);
  int64_t groups =
      perGroup && channels && *perGroup > 0 ? *channels / *perGroup : 1;
  return n.yield(buildConv(*window, window->input,
                           filterOf(n.input(1), *window, e), groups, e));
}

/// The filter, [H, W, C, M], has M results for each channel: C groups.
static LogicalResult depthwiseConv(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(0, 4, 4)) ||
      failed(n.needsRank(1, 4, 4)))
    return llvm::failure();
  auto window = readConvWindow(n, e);
  if (failed(window))
    return llvm::failure();
  Exprs filter = graph::getShape(n.input(1));
  auto channels = graph::constantOf(filter[2]);
  AffineExpr results = productOfSizes({filter[2], filter[3]}, e);
  if (!channels || !results)
    return e.fail("the number of channels has to be known",
                  "fix that size with --shape");
  Value grouped =
      e.reshape(n.input(1), {filter[0], filter[1], e.number(1), results});
  return n.yield(buildConv(*window, window->input,
                           filterOf(grouped, *window, e), *channels, e));
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::contractionRows() {
  static const Row rows[] = {
      {"MatMul", matMul},
      {"BatchMatMul", batchMatMul},
      {"BatchMatMulV2", batchMatMul},
      {"BatchMatMulV3", batchMatMul},
      {"Conv2D", conv},
      {"Conv3D", conv},
      {"DepthwiseConv2dNative", depthwiseConv},
  };
  return rows;
}
