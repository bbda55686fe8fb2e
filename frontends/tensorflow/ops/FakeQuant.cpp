// Floats rounded to what a quantized model would have, as training for
// quantization leaves them in graphs.
#include "frontends/tensorflow/Node.h"
#include "frontends/tensorflow/ops/Num.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using graph::Predicate;
using llvm::LogicalResult;
using llvm::Twine;

/// x cut to a range that is moved so that 0 is one of its steps, and rounded to
/// a step.
static LogicalResult roundToSteps(Node &n, Emitter &e, Num low, Num high) {
  int64_t bits = n.integer("num_bits", 8);
  constexpr int64_t mostBits = 16;
  if (bits < 2 || bits > mostBits)
    return e.fail("attribute 'num_bits' may not be " + Twine(bits));
  double first = n.flag("narrow_range") ? 1 : 0,
         last = static_cast<double>((int64_t(1) << bits) - 1);
  Num x = {n.input(0), &e};
  auto round = [](Num v) { return apply<graph::FloorOp>(v + 0.5); };
  // The inverse is a quotient of its own and multiplied with, as TensorFlow
  // does: ties between two steps fall as they do there.
  Num scale = (high - low) / (last - first),
      inverse = low.of(last - first) / (high - low);
  Num zero = low.of(first) - low / scale;
  zero = round(max(min(zero, last), first));
  Num least = (zero.of(first) - zero) * scale,
      most = (zero.of(last) - zero) * scale;
  Num ofZero = round((least.of(0.0) - least) * inverse);
  // The product is rounded on its own: without the maximum, which is the
  // product, it would be fused with the difference.
  Num product = max((max(min(x, most), least) - least) * inverse, 0);
  Num result = round(product - ofZero) * scale;
  mlir::Value isNothing =
      e.op<graph::AndOp>({compare(Predicate::eq, low, low.of(0.0)),
                          compare(Predicate::eq, high, high.of(0.0))});
  return n.yield(select(isNothing, x.of(0.0), result).value);
}

static LogicalResult byAttributes(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 1)))
    return llvm::failure();
  Num x = {n.input(0), &e};
  return roundToSteps(n, e, x.of(n.number("min", -6)),
                      x.of(n.number("max", 6)));
}
/// A range of all, or one for each index of the last dimension.
template <int64_t rank> static LogicalResult byOperands(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)) || failed(n.needsRank(1, rank, rank)) ||
      failed(n.needsRank(2, rank, rank)) || failed(n.needsRank(0, rank, 32)))
    return llvm::failure();
  if (rank == 1)
    for (unsigned i : {1, 2})
      if (!e.agree(graph::getShape(n.input(i))[0],
                   graph::getShape(n.input(0)).back(),
                   "has a range for each channel"))
        return e.fail(e.describe(n.input(i).getType()) +
                      " is not a bound for each channel of " +
                      e.describe(n.input(0).getType()));
  return roundToSteps(n, e, {n.input(1), &e}, {n.input(2), &e});
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::fakeQuantRows() {
  static const Row rows[] = {
      {"FakeQuantWithMinMaxArgs", byAttributes},
      {"FakeQuantWithMinMaxVars", byOperands<0>},
      {"FakeQuantWithMinMaxVarsPerChannel", byOperands<1>},
  };
  return rows;
}
