// Normalizations and softmax.
#include "frontends/common/builders/Normalization.h"
#include "frontends/common/builders/Activation.h"
#include "frontends/tensorflow/ops/Window.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using llvm::SmallVector;
using mlir::Value;

/// Of channels that are last; without statistics those of the input itself.
static LogicalResult fusedBatchNorm(Node &n, Emitter &e) {
  if (failed(n.needsTensors(5, 5)) || failed(n.needsRank(0, 4, 5)))
    return llvm::failure();
  auto last = channelsAreLast(n, e);
  if (failed(last))
    return llvm::failure();
  Value x = n.input(0), scale = n.input(1), shift = n.input(2);
  int64_t rank = rankOf(x);
  // In training form the statistics given are of earlier batches, or empty.
  bool isTraining = n.flag("is_training", true);
  for (unsigned i : {1, 2, 3, 4}) {
    if (i > 2 && isTraining)
      break;
    if (failed(n.needsRank(i, 1, 1)))
      return llvm::failure();
    if (!e.agree(graph::getShape(n.input(i))[0],
                 graph::getShape(x)[*last ? rank - 1 : 1],
                 "has a number for each channel"))
      return e.fail(e.describe(n.input(i).getType()) +
                    " does not fit the channels of " + e.describe(x.getType()));
  }
  double epsilon = n.number("epsilon", 1e-4);
  mlir::Type type = elementOf(x);
  Value wide = e.cast(x, elementOf(scale));
  Value normal;
  auto spread = [&](Value v) { return *last ? v : e.asChannels(v, rank - 2); };
  if (isTraining) {
    SmallVector<int64_t> axes;
    for (int64_t d = 0; d < rank; ++d)
      if (d != (*last ? rank - 1 : 1))
        axes.push_back(d);
    normal = buildNormalize(wide, axes, epsilon, false, e);
    normal = e.add(e.mul(normal, spread(scale)), spread(shift));
  } else {
    // What is in parentheses depends on weights alone.
    mlir::Type element = elementOf(n.input(4));
    Value deviation =
        e.op<graph::SqrtOp>({e.add(n.input(4), e.scalar(epsilon, element))});
    Value factor = e.div(scale, deviation);
    Value offset = e.sub(shift, e.mul(n.input(3), factor));
    normal = e.add(e.mul(wide, spread(factor)), spread(offset));
  }
  Items &results = n.getResults();
  if (failed(n.yield(e.cast(normal, type))))
    return llvm::failure();
  // The statistics, which inference does not change; others are for training.
  for (unsigned i : {3, 4})
    results.push_back(isTraining ? Item() : Item(n.input(i)));
  return llvm::success();
}

template <bool log> static LogicalResult softmax(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 1)) || failed(n.needsRank(0, 1, 32)))
    return llvm::failure();
  return n.yield(buildSoftmax(n.input(0), rankOf(n.input(0)) - 1, log, e));
}

/// x / (bias + alpha * sum of squares of neighbouring channels) ^ beta.
static LogicalResult lrn(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 1)) || failed(n.needsRank(0, 4, 4)))
    return llvm::failure();
  Value x = n.input(0), wide = e.widen(x);
  int64_t radius = n.integer("depth_radius", 5);
  if (!wide || radius < 0 || radius > (int64_t(1) << 20))
    return e.fail("attribute 'depth_radius' may not be " + llvm::Twine(radius));
  Exprs shape = graph::getShape(x);
  mlir::AffineExpr area =
      productOf(llvm::ArrayRef(shape).drop_back(), e.getContext());
  if (!area)
    return e.fail("the number of elements is absurdly large");
  Value squares =
      e.reshape(e.mul(wide, wide), {area, e.number(1), shape[3], e.number(1)});
  Value sum = e.op<graph::PoolOp>(
      {squares},
      {e.attr("kind",
              graph::PoolKindAttr::get(e.getContext(), graph::PoolKind::sum)),
       e.attr("kernel", {2 * radius + 1, 1}), e.attr("strides", {1, 1}),
       e.attr("pads", {radius, 0, radius, 0}), e.attr("dilations", {1, 1})});
  auto number = [&](const char *name, double otherwise) {
    return e.scalar(n.number(name, otherwise), elementOf(wide));
  };
  Value base = e.add(number("bias", 1),
                     e.mul(number("alpha", 1), e.reshape(sum, shape)));
  Value y = e.div(wide, e.op<graph::PowOp>({base, number("beta", 0.5)}));
  return n.yield(e.cast(y, elementOf(x)));
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::normalizationRows() {
  static const char *const results =
      "y batch_mean batch_variance reserve_space_1 reserve_space_2 "
      "reserve_space_3";
  static const Row rows[] = {
      {"FusedBatchNorm", fusedBatchNorm, results},
      {"FusedBatchNormV2", fusedBatchNorm, results},
      {"FusedBatchNormV3", fusedBatchNorm, results},
      {"Softmax", softmax<false>},
      {"LogSoftmax", softmax<true>},
      {"LRN", lrn},
  };
  return rows;
}
