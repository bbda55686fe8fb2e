// Discrete Fourier transforms along one or several dimensions, and frequencies.
#include "frontends/common/builders/Fourier.h"
#include "frontends/common/builders/Pad.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/pytorch/ops/Complex.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;

namespace {
/// What a transform does: of real or complex signals, to real or complex ones.
enum class Kind { Complex, ToOneSide, FromOneSide };

struct Transform {
  Kind kind = Kind::Complex;
  bool inverse = false;
  /// As Fourier's.
  double norm = 0;
  /// What is complex, before or behind it, is the conjugate.
  bool conjugates = false;
};
} // namespace

/// `z` transformed along `axis` to, or of one side from, `length` elements.
static Complex transformAlong(Complex z, int64_t axis, AffineExpr length,
                              const Transform &what, Emitter &e) {
  bool isReal = what.kind == Kind::FromOneSide;
  Value x = joinComplex(z, e);
  if (!x)
    return {};
  auto size = graph::constantOf(graph::getShape(x)[axis]),
       known = graph::constantOf(length);
  if (size && known && *known <= maxDimension) {
    int64_t needed = isReal ? *known / 2 + 1 : *known;
    if (*size < needed)
      x = buildPad(graph::PadMode::constant, x, e.scalar(0.0, elementOf(x)),
                   {e.number(0)}, {e.number(needed - *size)}, {axis}, e);
  }
  Fourier how;
  how.axis = axis;
  how.length = length;
  how.inverse = what.inverse;
  how.onesided = what.kind != Kind::Complex;
  how.norm = what.norm;
  x = buildFourier(x, how, e);
  if (!x)
    return {};
  if (isReal) {
    Exprs shape = graph::getShape(x);
    return {e.reshape(x, llvm::ArrayRef(shape).drop_back()), {}};
  }
  return splitComplex(x, e);
}

/// The power of the length that a transform is divided by: "backward" ones if
/// they are inverse, "forward" ones if not, "ortho" by the root.
static double normOf(Call &c, bool inverse) {
  std::string norm = c.text("norm", "backward");
  if (norm == "ortho")
    return 0.5;
  if (norm != "backward" && norm != "forward")
    c.fail("norm '" + norm + "' is not supported");
  return (norm == "backward") == inverse ? 1 : 0;
}

/// Of `size` frequencies of one side.
static AffineExpr lengthOfSide(AffineExpr size) {
  return graph::simplify((size - 1) * 2);
}

static Complex conjugated(Complex z, Emitter &e) {
  return {z.real, z.imaginary ? e.op<graph::NegOp>({z.imaginary}) : Value()};
}

/// Along several dimensions, the last of them first, or last where that gives
/// real numbers.
static LogicalResult transform(Call &c, llvm::ArrayRef<int64_t> axes,
                               llvm::ArrayRef<AffineExpr> lengths,
                               Transform what) {
  Emitter &e = c.getEmitter();
  Complex z = readComplex(c, "self");
  bool toReal = what.kind == Kind::FromOneSide;
  z.real = e.cast(z.real, c.resultElement());
  if (e.failed())
    return c.yield(Value());
  if (axes.empty())
    return what.kind == Kind::Complex
               ? yieldComplex(c, spreadComplex(z, graph::getShape(z.real), e))
               : c.fail("transforms along no dimension are not supported");
  if (toReal && what.conjugates)
    z = conjugated(z, e);
  auto order = llvm::to_vector(llvm::seq<size_t>(0, axes.size()));
  if (!toReal)
    std::reverse(order.begin(), order.end());
  for (size_t i : order) {
    Transform one = what;
    if (i + 1 != axes.size())
      one = {Kind::Complex, what.inverse, what.norm};
    if (!lengths[i])
      return c.yield(Value());
    z = transformAlong(z, axes[i], lengths[i], one, e);
  }
  if (toReal)
    return c.yield(z.real);
  return yieldComplex(c, what.conjugates ? conjugated(z, e) : z);
}

// As programs are exported.

/// fft and its kind: `n` elements along `dim`. hfft is irfft of the conjugate,
/// ihfft the conjugate of rfft, but for the factors.
template <Kind kind, bool inverse, bool hermitian = false>
static LogicalResult alongOne(Call &c) {
  Value x = readComplex(c, "self").real;
  int64_t axis = c.axis("dim", rankOf(x), -1);
  if (!x || c.getEmitter().failed())
    return c.yield(Value());
  AffineExpr length = c.has("n") ? c.size("n") : graph::getShape(x)[axis];
  if (kind == Kind::FromOneSide && !c.has("n"))
    length = lengthOfSide(length);
  bool goesBack = hermitian ? kind == Kind::FromOneSide : inverse;
  return transform(c, {axis}, {length},
                   {kind, goesBack, normOf(c, inverse), hermitian});
}

/// fftn and its kind: sizes `s` along `dim`, all dimensions, or the last two.
template <Kind kind, bool inverse, bool isPlane>
static LogicalResult alongSeveral(Call &c) {
  Value x = readComplex(c, "self").real;
  int64_t rank = rankOf(x);
  Exprs sizes = c.has("s") ? c.sizes("s") : Exprs();
  SmallVector<int64_t> axes;
  if (c.has("dim"))
    axes = c.axes("dim", rank, /*emptyIsAll=*/false);
  else
    for (int64_t d = isPlane      ? rank - 2
                     : c.has("s") ? rank - int64_t(sizes.size())
                                  : 0;
         d < rank; ++d)
      axes.push_back(c.axis(d, rank));
  if (!x || c.getEmitter().failed())
    return c.yield(Value());
  if (c.has("s") && sizes.size() != axes.size())
    return c.fail("has " + Twine(sizes.size()) + " sizes for " +
                  Twine(axes.size()) + " dimensions");
  Exprs lengths;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    bool isGiven = c.has("s") && graph::constantOf(sizes[i]) != -1;
    AffineExpr length = isGiven ? sizes[i] : graph::getShape(x)[axis];
    if (kind == Kind::FromOneSide && !isGiven && i + 1 == axes.size())
      length = lengthOfSide(length);
    lengths.push_back(length);
  }
  return transform(c, axes, lengths, {kind, inverse, normOf(c, inverse)});
}

// As run_decompositions() leaves them.

/// _fft_c2c, _fft_r2c, _fft_c2r: `normalization` is none, by the root of the
/// number of elements, by it.
template <Kind kind> static LogicalResult plain(Call &c) {
  Value x = readComplex(c, "self").real;
  SmallVector<int64_t> axes;
  Exprs lengths;
  for (int64_t d : c.integers("dim"))
    axes.push_back(c.axis(d, rankOf(x)));
  bool inverse = kind == Kind::FromOneSide;
  Kind used = kind;
  if (kind == Kind::Complex)
    inverse = !c.flag("forward");
  if (kind == Kind::ToOneSide && !c.flag("onesided"))
    used = Kind::Complex;
  if (!x || c.getEmitter().failed())
    return c.yield(Value());
  for (auto [i, axis] : llvm::enumerate(axes)) {
    bool isLast = kind == Kind::FromOneSide && i + 1 == axes.size();
    lengths.push_back(isLast ? c.size("last_dim_size")
                             : graph::getShape(x)[axis]);
  }
  int64_t normalization = c.integer("normalization");
  if (normalization < 0 || normalization > 2)
    return c.fail("normalization " + Twine(normalization) +
                  " is not supported");
  return transform(c, axes, lengths, {used, inverse, 0.5 * normalization});
}

// Frequencies.

/// The first frequency moves to the middle, or back.
template <bool back> static LogicalResult shift(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  for (int64_t axis : c.axes("dim", rankOf(x))) {
    if (!x || e.failed())
      break;
    AffineExpr size = graph::getShape(x)[axis];
    x = buildRoll(
        x, graph::simplify(back ? (size + 1).floorDiv(2) : size.floorDiv(2)),
        axis, e);
  }
  return c.yield(x);
}
/// i / (n d), the second half of them negative unless there is one side.
template <bool onesided> static LogicalResult frequencies(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"dtype", "layout", "device", "pin_memory"});
  mlir::Type element = c.resultElement(), f64 = e.getBuilder().getF64Type();
  AffineExpr n = c.size("n");
  double step = c.number("d", 1);
  if (!n || e.failed())
    return c.yield(Value());
  AffineExpr length = onesided ? graph::simplify(n.floorDiv(2) + 1) : n;
  Value i = e.iota({length}, 0, f64), count = e.size(n, f64);
  if (!onesided) {
    AffineExpr half = graph::simplify((n + 1).floorDiv(2));
    i = e.select(e.compare(graph::Predicate::lt, i, e.size(half, f64)), i,
                 e.sub(i, count));
  }
  return c.yield(e.cast(e.div(i, e.mul(count, e.scalar(step, f64))), element));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::fourierRows() {
  constexpr Kind complex = Kind::Complex, to = Kind::ToOneSide,
                 from = Kind::FromOneSide;
  auto both = [](ImportFunction function) {
    return Import(function, function);
  };
  static const Row rows[] = {
      {"aten.fft_fft.default", both(alongOne<complex, false>)},
      {"aten.fft_ifft.default", both(alongOne<complex, true>)},
      {"aten.fft_rfft.default", both(alongOne<to, false>)},
      {"aten.fft_irfft.default", both(alongOne<from, true>)},
      {"aten.fft_hfft.default", both(alongOne<from, false, true>)},
      {"aten.fft_ihfft.default", both(alongOne<to, true, true>)},
      {"aten.fft_fft2.default", both(alongSeveral<complex, false, true>)},
      {"aten.fft_ifft2.default", both(alongSeveral<complex, true, true>)},
      {"aten.fft_rfft2.default", both(alongSeveral<to, false, true>)},
      {"aten.fft_irfft2.default", both(alongSeveral<from, true, true>)},
      {"aten.fft_fftn.default", both(alongSeveral<complex, false, false>)},
      {"aten.fft_ifftn.default", both(alongSeveral<complex, true, false>)},
      {"aten.fft_rfftn.default", both(alongSeveral<to, false, false>)},
      {"aten.fft_irfftn.default", both(alongSeveral<from, true, false>)},
      {"aten._fft_c2c.default", both(plain<complex>)},
      {"aten._fft_r2c.default", both(plain<to>)},
      {"aten._fft_c2r.default", both(plain<from>)},
      {"aten.fft_fftshift.default", partwise(shift<false>)},
      {"aten.fft_ifftshift.default", partwise(shift<true>)},
      {"aten.fft_fftfreq.default", frequencies<false>},
      {"aten.fft_rfftfreq.default", frequencies<true>},
  };
  return rows;
}
