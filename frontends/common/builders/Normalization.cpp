#include "frontends/common/builders/Normalization.h"

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using mlir::Value;

Value charonia::frontend::buildNormalize(Value x, llvm::ArrayRef<int64_t> axes,
                                         double epsilon, bool rms, Emitter &e) {
  SmallVector<mlir::NamedAttribute> attributes = {e.attr("axes", axes),
                                                  e.attr("epsilon", epsilon)};
  if (rms)
    attributes.push_back(e.unit("rms"));
  return e.op<graph::NormalizeOp>({x}, attributes);
}

Value charonia::frontend::buildBatchNorm(Value x, Value scale, Value shift,
                                         Value mean, Value variance,
                                         double epsilon, Emitter &e) {
  if (!x || !mean || !variance)
    return {};
  // Statistics may be wider than the data. Of half types all is computed in
  // float: a factor that is rounded would not take the mean away.
  mlir::Type given = elementOf(x);
  x = e.widen(x);
  variance = e.widen(variance);
  mean = e.cast(mean, elementOf(variance));
  mlir::Type element = elementOf(variance);
  unsigned trailing = rankOf(x) - 2;
  variance = e.add(variance, e.scalar(epsilon, element));
  Value deviation = e.op<graph::SqrtOp>({variance});
  Value factor =
      e.div(scale ? e.cast(scale, element) : e.scalar(1.0, element), deviation);
  Value product = e.mul(mean, factor);
  Value offset = shift ? e.sub(e.cast(shift, element), product)
                       : e.op<graph::NegOp>({product});
  auto perChannel = [&](Value v) {
    return e.asChannels(e.cast(v, elementOf(x)), trailing);
  };
  return e.cast(e.add(e.mul(x, perChannel(factor)), perChannel(offset)), given);
}

Value charonia::frontend::groupChannels(Value x, int64_t groups, Emitter &e) {
  if (!x)
    return {};
  Exprs shape = graph::getShape(x);
  auto count = graph::constantOf(shape[1]);
  if (!count || groups < 1 || *count % groups)
    return e.fail(e.getSymbols().toString(shape[1]) +
                      " channels do not split into " + llvm::Twine(groups) +
                      " groups",
                  count ? "" : "fix that size with --shape");
  Exprs grouped = {shape[0], e.number(groups), e.number(*count / groups)};
  grouped.append(shape.begin() + 2, shape.end());
  return e.reshape(x, grouped);
}
