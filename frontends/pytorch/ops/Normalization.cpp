// Normalizations.
#include "frontends/common/builders/Normalization.h"
#include "frontends/pytorch/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::LogicalResult;
using llvm::SmallVector;
using mlir::Value;

/// y * weight + bias, where there are any, in the type of y.
static Value scaleAndShift(Value y, Value weight, Value bias, Emitter &e) {
  if (weight && y)
    y = e.mul(y, e.cast(weight, elementOf(y)));
  if (bias && y)
    y = e.add(y, e.cast(bias, elementOf(y)));
  return y;
}

static LogicalResult layerNorm(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("input"), weight = c.optionalTensor("weight"),
        bias = c.optionalTensor("bias");
  int64_t rank = rankOf(x), count = c.sizes("normalized_shape").size();
  double epsilon = c.number("eps", 1e-5);
  c.ignore({"cudnn_enable"});
  if (count < 1 || count > rank)
    return c.fail("normalizes " + llvm::Twine(count) + " of " +
                  llvm::Twine(rank) + " dimensions");
  auto axes = llvm::to_vector(llvm::seq<int64_t>(rank - count, rank));
  return c.yield(scaleAndShift(buildNormalize(x, axes, epsilon, false, e),
                               weight, bias, e));
}
static LogicalResult rmsNorm(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("input"), weight = c.optionalTensor("weight");
  int64_t rank = rankOf(x), count = c.sizes("normalized_shape").size();
  if (count < 1 || count > rank || !x)
    return c.fail("normalizes " + llvm::Twine(count) + " of " +
                  llvm::Twine(rank) + " dimensions");
  // By default the least number that 1 can be told from, in the type computed
  // in.
  double epsilon = c.number("eps", elementOf(x).isF64() ? 0x1p-52 : 0x1p-23);
  auto axes = llvm::to_vector(llvm::seq<int64_t>(rank - count, rank));
  return c.yield(
      scaleAndShift(buildNormalize(x, axes, epsilon, true, e), weight, {}, e));
}

static bool needsChannels(Call &c, Value x) {
  if (rankOf(x) < 2)
    c.fail("needs at least 2 dimensions, not " + llvm::Twine(rankOf(x)));
  return x && rankOf(x) >= 2;
}
static LogicalResult batchNorm(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("input"), weight = c.optionalTensor("weight"),
        bias = c.optionalTensor("bias"),
        mean = c.optionalTensor("running_mean"),
        variance = c.optionalTensor("running_var");
  double epsilon = c.number("eps");
  c.ignore({"momentum", "cudnn_enabled"});
  if (!needsChannels(c, x))
    return c.yield(Value());
  // Without statistics those of the batch, with the biased variance.
  if (c.flag("training", false) || !mean || !variance) {
    SmallVector<int64_t> axes{0};
    for (int64_t d = 2; d < rankOf(x); ++d)
      axes.push_back(d);
    auto perChannel = [&](Value v) {
      return v ? e.asChannels(v, rankOf(x) - 2) : v;
    };
    return c.yield(scaleAndShift(buildNormalize(x, axes, epsilon, false, e),
                                 perChannel(weight), perChannel(bias), e));
  }
  return c.yield(buildBatchNorm(x, weight, bias, mean, variance, epsilon, e));
}

/// x as groups of channels, normalized, with weights of channels.
static LogicalResult normalizeGroups(Call &c, int64_t groups) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("input"), weight = c.optionalTensor("weight"),
        bias = c.optionalTensor("bias");
  double epsilon = c.number("eps", 1e-5);
  if (!needsChannels(c, x))
    return c.yield(Value());
  auto perChannel = [&](Value v) {
    return v ? e.asChannels(v, rankOf(x) - 2) : v;
  };
  Value y = groupChannels(x, groups, e);
  if (!y)
    return c.yield(y);
  y = buildNormalize(y, llvm::to_vector(llvm::seq<int64_t>(2, rankOf(y))),
                     epsilon, false, e);
  return c.yield(scaleAndShift(e.reshape(y, graph::getShape(x)),
                               perChannel(weight), perChannel(bias), e));
}
static LogicalResult groupNorm(Call &c) {
  int64_t groups = c.integer("num_groups");
  c.ignore({"cudnn_enabled"});
  return normalizeGroups(c, groups);
}
static LogicalResult nativeGroupNorm(Call &c) {
  int64_t groups = c.integer("group");
  c.ignore({"N", "C", "HxW"});
  return normalizeGroups(c, groups);
}
static LogicalResult instanceNorm(Call &c) {
  Value x = c.tensor("input");
  c.ignore({"momentum", "cudnn_enabled", "running_mean", "running_var"});
  if (!c.flag("use_input_stats"))
    return c.fail("running statistics are not supported",
                  "use batch_norm for them");
  auto channels =
      rankOf(x) > 1 ? graph::constantOf(graph::getShape(x)[1]) : std::nullopt;
  if (!channels)
    return c.fail("the number of channels has to be known",
                  "fix that size when exporting");
  return normalizeGroups(c, *channels);
}

/// v with a norm of g in all dimensions but one.
static LogicalResult weightNorm(Call &c) {
  Emitter &e = c.getEmitter();
  Value v = c.tensor("v"), g = c.tensor("g"), wide = e.widen(v);
  int64_t rank = rankOf(v), dim = c.integer("dim", 0);
  // -1 stands for none of them.
  bool isWhole = dim == -1;
  int64_t kept = isWhole ? -1 : c.axis(dim, rank);
  SmallVector<int64_t> axes;
  for (int64_t d = 0; d < rank; ++d)
    if (d != kept)
      axes.push_back(d);
  Value norm = e.op<graph::SqrtOp>(
      {e.reduce(graph::ReduceKind::sum, e.mul(wide, wide), axes, true)});
  Value y = e.mul(wide, e.div(e.cast(g, elementOf(wide)), norm));
  Value result = e.cast(y, elementOf(v));
  return c.numResults() > 1 ? c.yield({result, norm}) : c.yield(result);
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::normalizationRows() {
  static const Row rows[] = {
      {"aten._weight_norm.default", weightNorm},
      {"aten._weight_norm_interface.default", weightNorm},
      {"aten.layer_norm.default", layerNorm},
      {"aten.native_layer_norm.default", layerNorm},
      {"aten.rms_norm.default", rmsNorm},
      {"aten.batch_norm.default", batchNorm},
      {"aten._native_batch_norm_legit_no_training.default", batchNorm},
      {"aten._native_batch_norm_legit.no_stats", batchNorm},
      {"aten.group_norm.default", groupNorm},
      {"aten.native_group_norm.default", nativeGroupNorm},
      {"aten.instance_norm.default", instanceNorm},
  };
  return rows;
}
