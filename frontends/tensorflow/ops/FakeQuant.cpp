// Floats rounded to what a quantized model would have, as training for
// quantization leaves them in graphs.
#include "frontends/common/Diagnostic.h"
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

namespace {
/// The least and the largest number that x is rounded to steps between.
struct Limits {
  Num low, high;
};
} // namespace

/// The operands, or the least and the largest element; along `axis`, unless it
/// is -1, of each index by itself.
static std::optional<Limits> limitsOf(Node &n, Emitter &e, bool areGiven,
                                      int64_t axis) {
  Num x = {n.input(0), &e};
  int64_t rank = rankOf(x.value);
  if (!areGiven) {
    llvm::SmallVector<int64_t> others;
    for (int64_t i = 0; i < rank; ++i)
      if (i != axis)
        others.push_back(i);
    return Limits{
        x.of(e.reduce(graph::ReduceKind::min, x.value, others, true)),
        x.of(e.reduce(graph::ReduceKind::max, x.value, others, true))};
  }
  mlir::Value bounds[] = {n.input(1), n.input(2)};
  for (mlir::Value &bound : bounds) {
    Exprs shape = graph::getShape(bound);
    bool isFit = axis < 0
                     ? shape.empty()
                     : shape.size() == 1 &&
                           e.agree(shape[0], graph::getShape(x.value)[axis],
                                   "has a range for each index");
    if (!isFit) {
      e.fail(e.describe(bound.getType()) + " is no bound for " +
                 (axis < 0 ? "all of " : "each index of a dimension of ") +
                 e.describe(x.value.getType()),
             "give one bound, or one for each index of attribute 'axis'");
      return std::nullopt;
    }
    if (axis >= 0)
      bound = e.asChannels(bound, rank - 1 - axis);
  }
  return Limits{x.of(bounds[0]), x.of(bounds[1])};
}

/// x rounded to steps around 0, the largest of which keep it between limits:
/// the side that needs the larger steps decides.
template <bool rangeGiven, bool bitsGiven>
static LogicalResult roundAroundZero(Node &n, Emitter &e) {
  unsigned operands = bitsGiven ? 4 : 3;
  if (failed(n.needsTensors(operands, operands)))
    return llvm::failure();
  llvm::FailureOr<int64_t> bits =
      bitsGiven ? n.constantInteger(3) : n.integer("num_bits", 8);
  constexpr int64_t mostBits = 62;
  if (failed(bits))
    return llvm::failure();
  bool isSigned = n.flag("signed_input", true);
  if (*bits < 1 + isSigned || *bits > mostBits)
    return e.fail("rounds to " + Twine(*bits) +
                  " bits, which is not supported");
  int64_t axis = n.integer("axis", -1);
  if (axis < -1 || axis >= rankOf(n.input(0)))
    return e.fail("attribute 'axis' may not be " + Twine(axis));
  std::string mode = n.text("round_mode", "HALF_TO_EVEN");
  if (mode != "HALF_TO_EVEN" && mode != "HALF_UP")
    return e.fail("attribute 'round_mode' may not be '" + printable(mode) +
                  "'");
  bool areGiven = n.flag("range_given", rangeGiven);
  auto limits = limitsOf(n, e, areGiven, axis);
  if (!limits)
    return llvm::failure();
  auto [low, high] = *limits;
  int64_t half = int64_t(1) << (*bits - 1);
  double least = isSigned ? -double(half - n.flag("narrow_range")) : 0,
         most = isSigned ? double(half - 1) : double((int64_t(1) << *bits) - 1);
  Num x = {n.input(0), &e};
  double largest = largestOf(elementOf(x.value));
  Num steps = select(high.of(0.0) < high, high.of(most) / high, largest),
      size = high / most;
  if (isSigned) {
    Num others = select(low < 0, low.of(least) / low, largest);
    mlir::Value decides = others < steps;
    steps = select(decides, others, steps);
    size = select(decides, low / least, size);
    Num ofLow = size * least;
    high = select(decides, size * most, high);
    low = select(decides, low, ofLow);
  } else {
    low = size * least;
  }
  if (areGiven)
    x = max(min(x, high), low);
  // As above, the product is rounded on its own.
  Num product = max(x * steps, -largest);
  Num rounded = mode == "HALF_UP" ? apply<graph::FloorOp>(product + 0.5)
                                  : apply<graph::RoundOp>(product);
  return n.yield((rounded * size).value);
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::fakeQuantRows() {
  static const Row rows[] = {
      {"FakeQuantWithMinMaxArgs", byAttributes},
      {"FakeQuantWithMinMaxVars", byOperands<0>},
      {"FakeQuantWithMinMaxVarsPerChannel", byOperands<1>},
      {"QuantizeAndDequantizeV2", roundAroundZero<false, false>},
      {"QuantizeAndDequantizeV3", roundAroundZero<true, true>},
      {"QuantizeAndDequantizeV4", roundAroundZero<false, false>},
  };
  return rows;
}
