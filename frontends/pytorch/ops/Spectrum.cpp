// Spectra of windows of a signal, the signal of such, and what windows are
// multiplied with.
#include "frontends/common/builders/Fold.h"
#include "frontends/common/builders/Fourier.h"
#include "frontends/common/builders/Pad.h"
#include "frontends/common/builders/Special.h"
#include "frontends/pytorch/ops/Complex.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;

constexpr double pi = 3.14159265358979323846;

// Windows.

namespace {
/// A window to be built: `place` goes from 0 in its first element to 1 in its
/// last, or in that behind it.
struct Shape {
  explicit Shape(Call &c) : c(c), e(c.getEmitter()) {
    c.ignore({"dtype", "layout", "device", "pin_memory"});
    isPeriodic = c.flag("periodic", true);
    // The shape that the file states is compared with this one.
    AffineExpr length = c.size("window_length");
    if (e.failed() || !length)
      return;
    if (auto known = graph::constantOf(length); known && *known < 0) {
      e.fail("a window of " + llvm::Twine(*known) + " elements");
      return;
    }
    dims = {length};
    mlir::Type f64 = e.getBuilder().getF64Type();
    AffineExpr span = isPeriodic ? dims[0] : graph::simplify(dims[0] - 1);
    place = e.div(e.iota(dims, 0, f64), e.max(e.size(span, f64), number(1)));
  }
  Value number(double value) {
    return e.scalar(value, e.getBuilder().getF64Type());
  }
  LogicalResult yield(Value y) {
    if (!place)
      return c.yield(Value());
    // A window of one element is 1.
    if (dims[0] == e.number(1))
      y = number(1);
    return c.yield(e.broadcast(e.cast(y, c.resultElement()), dims));
  }
  Call &c;
  Emitter &e;
  Exprs dims;
  bool isPeriodic = true;
  Value place;
};
} // namespace

/// Weights of cosines of whole multiples of the angle.
template <int terms>
static LogicalResult cosineWindow(Call &c, const double (&weights)[terms]) {
  Shape w(c);
  Emitter &e = w.e;
  Value y = w.number(weights[0]);
  for (int k = 1; k < terms; ++k)
    y = e.add(y,
              e.mul(e.op<graph::CosOp>({e.mul(w.place, w.number(2 * pi * k))}),
                    w.number(weights[k])));
  return w.yield(y);
}
static LogicalResult hann(Call &c) { return cosineWindow(c, {0.5, -0.5}); }
static LogicalResult hamming(Call &c) {
  double alpha = c.number("alpha", 0.54), beta = c.number("beta", 0.46);
  return cosineWindow(c, {alpha, -beta});
}
static LogicalResult blackman(Call &c) {
  return cosineWindow(c, {0.42, -0.5, 0.08});
}
static LogicalResult bartlett(Call &c) {
  Shape w(c);
  Emitter &e = w.e;
  Value rise = e.mul(w.place, w.number(2));
  return w.yield(e.min(rise, e.sub(w.number(2), rise)));
}
static LogicalResult kaiser(Call &c) {
  double beta = c.number("beta", 12);
  Shape w(c);
  Emitter &e = w.e;
  Value way = e.sub(e.mul(w.place, w.number(2)), w.number(1));
  Value height = e.max(e.sub(w.number(1), e.mul(way, way)), w.number(0));
  Value top = e.mul(e.op<graph::SqrtOp>({height}), w.number(beta));
  return w.yield(e.div(buildBesselI(top, 0, /*scaled=*/false, e),
                       buildBesselI(w.number(beta), 0, false, e)));
}

// Spectra.

namespace {
/// What both directions are told.
struct Frames {
  explicit Frames(Call &c)
      : c(c), e(c.getEmitter()), length(c.integer("n_fft")),
        step(c.integer("hop_length", length / 4)),
        own(c.integer("win_length", length)),
        isNormalized(c.flag("normalized", false)) {
    constexpr int64_t most = int64_t(1) << 24;
    if (length < 1 || length > most || step < 1 || step > most || own < 1 ||
        own > length)
      c.fail("transforms of length " + Twine(length) + ", " + Twine(step) +
             " apart, with windows of " + Twine(own) + " are not supported");
    if (c.isComplex({"window"}))
      c.fail("complex windows are not supported",
             "multiply by real and imaginary part in the model");
    if (c.flag("align_to_window", false))
      c.fail("align_to_window is not supported");
  }
  /// In the middle of `length` elements; null where all of them count alike.
  Value window(mlir::Type element) {
    Value given = c.optionalTensor("window");
    if (e.failed() || (!given && own == length))
      return {};
    Value w = given ? e.cast(given, element)
                    : e.broadcast(e.scalar(1.0, element), {e.number(own)});
    if (!w || rankOf(w) != 1 || graph::getShape(w)[0] != e.number(own))
      return c.fail("a window of " +
                    (w ? e.describe(w.getType()) : std::string("none")) +
                    " does not fit " + Twine(own) + " elements");
    int64_t low = (length - own) / 2;
    return buildPad(graph::PadMode::constant, w, e.scalar(0.0, element),
                    {e.number(low)}, {e.number(length - own - low)}, {0}, e);
  }
  Call &c;
  Emitter &e;
  int64_t length, step, own;
  bool isNormalized;
};
} // namespace

/// Real, or real and imaginary signals, [N, elements] or [elements], as
/// [N, parts, elements].
static Value signalOf(Complex z, Emitter &e) {
  if (!z.real)
    return {};
  Exprs shape = graph::getShape(z.real);
  AffineExpr one = e.number(1);
  Exprs dims = {shape.size() == 2 ? shape[0] : one, one, shape.back()};
  Value real = e.reshape(z.real, dims);
  return z.imaginary ? e.concat({real, e.reshape(z.imaginary, dims)}, 1) : real;
}

/// The result's dimensions are frequencies and windows, and real and imaginary
/// part where it is not complex.
static LogicalResult stft(Call &c) {
  Emitter &e = c.getEmitter();
  Complex z = readComplex(c, "self");
  Frames f(c);
  bool isComplex = bool(z.imaginary), onesided = c.flag("onesided", !isComplex),
       asComplex = c.flag("return_complex", isComplex);
  std::string mode = c.text("pad_mode", "reflect");
  bool isCentered = c.flag("center", false);
  if (!z.real || e.failed())
    return c.yield(Value());
  if (rankOf(z.real) < 1 || rankOf(z.real) > 2 || (onesided && isComplex))
    return c.fail("is of real signals of one or two dimensions, or of all "
                  "frequencies of complex ones");
  mlir::Type element = elementOf(z.real);
  Value x = signalOf(z, e), window = f.window(e.getBuilder().getF64Type());
  if (isCentered) {
    auto known = llvm::StringSwitch<std::optional<graph::PadMode>>(mode)
                     .Case("constant", graph::PadMode::constant)
                     .Case("reflect", graph::PadMode::reflect)
                     .Case("replicate", graph::PadMode::edge)
                     .Default(std::nullopt);
    if (!known)
      return c.fail("padding '" + mode + "' is not supported");
    AffineExpr half = e.number(f.length / 2);
    x = buildPad(*known, x, e.scalar(0.0, element), {half}, {half}, {2}, e);
  }
  if (f.isNormalized) {
    Value factor =
        e.scalar(1 / std::sqrt(double(f.length)), e.getBuilder().getF64Type());
    window = window ? e.mul(window, factor) : factor;
  }
  if (e.failed())
    return c.yield(Value());
  // [N, windows, frequencies, 2].
  Value y = e.transpose(buildStft(x, window, f.step, f.length, onesided, e),
                        {0, 2, 1, 3});
  if (!y)
    return c.yield(Value());
  if (!asComplex)
    return c.yield(e.reshape(y, c.resultShape()));
  auto [real, imaginary] = splitComplex(y, e);
  Exprs shape = c.resultShape();
  return c.yieldComplex(e.reshape(real, shape), e.reshape(imaginary, shape));
}

/// The signal of windows' spectra: windows add up, and so do their squares,
/// which the sum is divided by.
static LogicalResult istft(Call &c) {
  Emitter &e = c.getEmitter();
  Complex z = readComplex(c, "self");
  Frames f(c);
  bool isCentered = c.flag("center", true);
  if (c.flag("return_complex", false))
    return c.fail("complex signals are not supported",
                  "give istft() return_complex=False");
  if (!z.real || !z.imaginary || rankOf(z.real) < 2 || rankOf(z.real) > 3 ||
      e.failed())
    return c.fail("is of complex spectra of two or three dimensions");
  Exprs shape = graph::getShape(z.real);
  if (shape.size() == 2)
    shape.insert(shape.begin(), e.number(1));
  bool onesided = c.flag("onesided", shape[1] != e.number(f.length));
  int64_t frequencies = f.length / 2 + 1;
  if (shape[1] != e.number(onesided ? frequencies : f.length))
    return c.fail("spectra of " + e.describe(z.real.getType()) +
                  " do not fit transforms of length " + Twine(f.length));
  mlir::Type element = elementOf(z.real);
  // [N, frequencies, windows, 2] to [N, windows, frequencies, 2].
  Exprs apart = shape;
  apart.push_back(e.number(1));
  Value x = e.transpose(
      e.concat({e.reshape(z.real, apart), e.reshape(z.imaginary, apart)}, 3),
      {0, 2, 1, 3});
  if (!onesided && x) {
    // What mirrors them is not read.
    Exprs dims = graph::getShape(x);
    dims[2] = e.number(frequencies);
    x = e.slice(x, Exprs(4, e.number(0)), {1, 1, 1, 1}, dims);
  }
  Fourier how;
  how.axis = 2;
  AffineExpr one = e.number(1), length = e.number(f.length);
  how.length = length;
  how.inverse = how.onesided = true;
  how.norm = f.isNormalized ? 0.5 : 1;
  Value frames =
      e.reshape(buildFourier(x, how, e), {shape[0], shape[2], length});
  Value window = f.window(element);
  if (!window)
    window = e.broadcast(e.scalar(1.0, element), {length});
  Value weights =
      e.broadcast(e.reshape(e.mul(window, window), {one, one, length}),
                  {one, shape[2], length});
  Value y = e.div(buildOverlapAdd(e.mul(frames, window), f.step, e),
                  buildOverlapAdd(weights, f.step, e));
  if (!y || e.failed())
    return c.yield(Value());
  // Of what there is, from the middle of the first window on; zeros behind it.
  Exprs result = c.resultShape(), dims = {shape[0], result.back()};
  AffineExpr start = e.number(isCentered ? f.length / 2 : 0);
  AffineExpr there = graph::simplify(graph::getShape(y)[1] - start);
  c.ignore({"length"});
  if (!e.getSymbols().isAtLeast(there, dims[1])) {
    AffineExpr more = graph::simplify(dims[1] - there);
    if (!e.getSymbols().isAtLeast(more, e.number(0)))
      return c.fail("cannot tell whether the signal has the length that is "
                    "asked for",
                    "fix its sizes with --shape");
    y = buildPad(graph::PadMode::constant, y, e.scalar(0.0, element),
                 {e.number(0)}, {more}, {1}, e);
  }
  return c.yield(
      e.reshape(e.slice(y, {e.number(0), start}, {1, 1}, dims), result));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::spectrumRows() {
  static const Row rows[] = {
      {"aten.hann_window.default", hann},
      {"aten.hann_window.periodic", hann},
      {"aten.hamming_window.default", hamming},
      {"aten.hamming_window.periodic", hamming},
      {"aten.hamming_window.periodic_alpha", hamming},
      {"aten.hamming_window.periodic_alpha_beta", hamming},
      {"aten.blackman_window.default", blackman},
      {"aten.blackman_window.periodic", blackman},
      {"aten.bartlett_window.default", bartlett},
      {"aten.bartlett_window.periodic", bartlett},
      {"aten.kaiser_window.default", kaiser},
      {"aten.kaiser_window.periodic", kaiser},
      {"aten.kaiser_window.beta", kaiser},
      {"aten.stft.default", {stft, stft}},
      {"aten.stft.center", {stft, stft}},
      {"aten.istft.default", {istft, istft}},
  };
  return rows;
}
