// Colors of images, whose last dimension is red, green and blue.
#include "frontends/common/builders/Slice.h"
#include "frontends/tensorflow/Node.h"
#include "frontends/tensorflow/ops/Num.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using graph::Predicate;
using llvm::LogicalResult;
using mlir::Value;

namespace {
/// Three channels: red, green, blue, or hue (of 1), saturation, value.
struct Channels {
  Num a, b, c;
};
} // namespace

/// Operand 0 in float; fails unless it has three channels.
static std::optional<Channels> readChannels(Node &n, Emitter &e,
                                            unsigned count) {
  if (failed(n.needsTensors(count, count)) || failed(n.needsRank(0, 1, 32)))
    return std::nullopt;
  for (unsigned i = 1; i < count; ++i)
    if (failed(n.needsRank(i, 0, 0)))
      return std::nullopt;
  Value x = e.widen(n.input(0));
  int64_t last = rankOf(x) - 1;
  if (!e.agree(graph::getShape(x)[last], e.number(3), "has three channels")) {
    e.fail("works on colors of three channels, not on " +
           e.describe(x.getType()));
    return std::nullopt;
  }
  auto channel = [&](int64_t i) {
    return Num{sliceAlong(x, last, {e.number(i), e.number(1), 1}, e), &e};
  };
  return Channels{channel(0), channel(1), channel(2)};
}
/// Three channels in the type of operand 0.
static LogicalResult yieldChannels(Node &n, Emitter &e, const Channels &x) {
  Value all =
      e.concat({x.a.value, x.b.value, x.c.value}, rankOf(n.input(0)) - 1);
  return n.yield(e.cast(all, elementOf(n.input(0))));
}

static Channels toHsv(const Channels &rgb) {
  const auto &[r, g, b] = rgb;
  Num value = max(max(r, g), b), range = value - min(min(r, g), b);
  Num zero = range.of(0.0);
  Num saturation = select(zero < value, range / value, zero);
  Num whole = range * 6.0;
  auto isMost = [&](Num x) { return compare(Predicate::eq, x, value); };
  Num hue = select(isMost(r), (g - b) / whole,
                   select(isMost(g), (b - r) / whole + 2.0 / 6.0,
                          (r - g) / whole + 4.0 / 6.0));
  hue = select(zero < range, hue, zero);
  return {select(hue < 0, hue + 1, hue), saturation, value};
}
static Channels toRgb(const Channels &hsv) {
  const auto &[hue, saturation, value] = hsv;
  Num six = hue * 6;
  // How much of a color there is: 0 and 1 between slopes.
  auto part = [&](double center, bool inverse) {
    Num distance = apply<graph::AbsOp>(six - center);
    Num slope = inverse ? distance - 1 : distance.of(2.0) - distance;
    return max(min(slope, 1), 0);
  };
  auto color = [&](Num part) {
    return (saturation.of(1.0) - saturation + saturation * part) * value;
  };
  return {color(part(3, true)), color(part(2, false)), color(part(4, false))};
}

static LogicalResult rgbToHsv(Node &n, Emitter &e) {
  auto x = readChannels(n, e, 1);
  return x ? yieldChannels(n, e, toHsv(*x)) : llvm::failure();
}
static LogicalResult hsvToRgb(Node &n, Emitter &e) {
  auto x = readChannels(n, e, 1);
  return x ? yieldChannels(n, e, toRgb(*x)) : llvm::failure();
}
/// Operand 1 as a number beside channels.
static Num amountOf(Node &n, const Channels &x) {
  Emitter &e = *x.a.e;
  return x.a.of(e.cast(n.input(1), elementOf(x.a.value)));
}
static LogicalResult adjustHue(Node &n, Emitter &e) {
  auto x = readChannels(n, e, 2);
  if (!x)
    return llvm::failure();
  Channels hsv = toHsv(*x);
  Num turned = hsv.a + amountOf(n, *x);
  hsv.a = turned - apply<graph::FloorOp>(turned);
  return yieldChannels(n, e, toRgb(hsv));
}
static LogicalResult adjustSaturation(Node &n, Emitter &e) {
  auto x = readChannels(n, e, 2);
  if (!x)
    return llvm::failure();
  Channels hsv = toHsv(*x);
  hsv.b = max(min(hsv.b * amountOf(n, *x), 1), 0);
  return yieldChannels(n, e, toRgb(hsv));
}

/// Away from the mean of each image's channels, or toward it.
static LogicalResult adjustContrast(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(0, 3, 32)) ||
      failed(n.needsRank(1, 0, 0)))
    return llvm::failure();
  Num x = {e.widen(n.input(0)), &e};
  int64_t rank = rankOf(x.value);
  Num mean = x.of(e.mean(x.value, {rank - 3, rank - 2}, true));
  Num factor = x.of(e.cast(n.input(1), elementOf(x.value)));
  return n.yield(
      e.cast(((x - mean) * factor + mean).value, elementOf(n.input(0))));
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::colorRows() {
  static const Row rows[] = {
      {"RGBToHSV", rgbToHsv},
      {"HSVToRGB", hsvToRgb},
      {"AdjustHue", adjustHue},
      {"AdjustSaturation", adjustSaturation},
      {"AdjustContrastv2", adjustContrast},
  };
  return rows;
}
