#include "frontends/common/builders/Fourier.h"
#include "frontends/common/Tables.h"
#include "frontends/common/builders/FourierParts.h"
#include "frontends/common/builders/Matrix.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

// Products with matrices of cosines and sines: of a length that is a product of
// two, along one factor and then along the other.

/// Elements of a transform's matrix.
constexpr int64_t maxMatrix = int64_t(1) << 24;

namespace {
/// cos and sin (2 pi i j / length) for a table of so many elements; where these
/// are many, each angle of the period is computed once.
class Period {
public:
  Period(int64_t length, int64_t elements) : length(length) {
    if (length <= elements / 4)
      for (int64_t k = 0; k < length; ++k) {
        cosines.push_back(compute(false, k));
        sines.push_back(compute(true, k));
      }
  }
  double get(bool sine, int64_t i, int64_t j) const {
    // The product in a whole period keeps the angle exact.
    int64_t k = i * j % length;
    return cosines.empty() ? compute(sine, k) : (sine ? sines : cosines)[k];
  }

private:
  double compute(bool sine, int64_t k) const {
    double angle = 2 * M_PI * double(k) / double(length);
    return sine ? std::sin(angle) : std::cos(angle);
  }
  int64_t length;
  std::vector<double> cosines, sines;
};
} // namespace

/// [rows, columns] of a function of row and column, rounded once.
template <typename T, typename Function>
static mlir::ElementsAttr fill(mlir::RankedTensorType type, Function valueAt) {
  std::vector<T> values;
  values.reserve(type.getNumElements());
  for (int64_t i = 0; i < type.getDimSize(0); ++i)
    for (int64_t j = 0; j < type.getDimSize(1); ++j)
      values.push_back(static_cast<T>(valueAt(i, j)));
  return mlir::DenseElementsAttr::get(type, llvm::ArrayRef<T>(values));
}
template <typename Function>
static Value table(Emitter &e, mlir::Type element, int64_t rows,
                   int64_t columns, Function valueAt) {
  auto type = mlir::RankedTensorType::get({rows, columns}, element);
  if (failed(reserveTable(type, e)))
    return {};
  return e.constant(element.isF64() ? fill<double>(type, valueAt)
                                    : fill<float>(type, valueAt));
}

/// [from, to]: factor * cos or sin (2 pi i j / length), or half of the sum for
/// spectra of which only one side is given.
static Value matrix(Emitter &e, mlir::Type element, int64_t from, int64_t to,
                    int64_t length, bool sine, double factor, bool mirrored) {
  Period period(length, from * to);
  return table(e, element, from, to, [&](int64_t i, int64_t j) {
    double value = factor * period.get(sine, i, j);
    return mirrored && i > 0 && 2 * i < length ? 2 * value : value;
  });
}

/// The factor of `length` along which a transform of `parts` parts is taken
/// first; none where `direct` multiplications are hardly more.
static std::optional<int64_t> splitOf(int64_t length, int64_t parts,
                                      int64_t direct) {
  std::optional<int64_t> best;
  int64_t least = direct / 4;
  for (int64_t i = 2; i * i <= length; ++i)
    if (length % i == 0)
      for (int64_t first : {i, length / i}) {
        int64_t second = length / first;
        int64_t cost = 2 * length * (parts * first + 2 * second);
        if (cost < least && 4 * std::max(first, second) <=
                                maxMatrix / std::max(first, second)) {
          least = cost;
          best = first;
        }
      }
  return best;
}

/// A matrix of 2x2 blocks that multiplies a pair of real and imaginary parts
/// with e^(-+2 pi i jk / length): pairs are rows of what is on its right, or,
/// transposed, columns of what is on its left. `parts` 1: just real ones.
static Value pairMatrix(Emitter &e, mlir::Type element, int64_t length,
                        int64_t parts, bool inverse, bool transposed,
                        double factor) {
  int64_t rows = 2 * length, columns = parts * length;
  Period period(length, rows * columns);
  return table(e, element, transposed ? columns : rows,
               transposed ? rows : columns, [&](int64_t i, int64_t j) {
                 if (transposed)
                   std::swap(i, j);
                 bool toImaginary = i >= length, fromImaginary = j >= length;
                 bool isSine = toImaginary != fromImaginary;
                 double value =
                     factor * period.get(isSine, i % length, j % length);
                 return isSine && fromImaginary == inverse ? -value : value;
               });
}

/// cos or sin (2 pi i j / length), [from, to].
static Value turns(Emitter &e, mlir::Type element, int64_t from, int64_t to,
                   bool sine) {
  return matrix(e, element, from, to, from * to, sine, 1, false);
}

/// The transform of `parts`, [..., length] each and real or real and imaginary,
/// as [..., length, 2]: of element `second * i + j` along i, then along j.
static Value splitTransform(Values parts, int64_t first, int64_t second,
                            bool inverse, double factor, Emitter &e) {
  mlir::Type element = elementOf(parts.front());
  Exprs outer = graph::getShape(parts.front());
  outer.pop_back();
  int64_t rank = outer.size();
  auto shaped = [&](Value v, llvm::ArrayRef<int64_t> inner) {
    Exprs dims = outer;
    llvm::append_range(dims, e.numbers(inner));
    return e.reshape(v, dims);
  };
  for (Value &part : parts)
    part = shaped(part, {first, second});
  int64_t count = parts.size();
  Value signal = count == 1 ? parts.front() : e.concat(parts, rank);
  Value along = e.op<graph::MatmulOp>(
      {pairMatrix(e, element, first, count, inverse, false, 1), signal});
  auto half = [&](int64_t which) {
    Exprs dims = outer, starts(rank + 2, e.number(0));
    llvm::append_range(dims, e.numbers({first, second}));
    starts[rank] = e.number(which * first);
    return e.slice(along, starts, SmallVector<int64_t>(rank + 2, 1), dims);
  };
  Value real = half(0), imaginary = half(1),
        cosines = turns(e, element, first, second, false),
        sines = turns(e, element, first, second, true);
  Value turnedReal = e.mul(imaginary, sines), turned = e.mul(real, sines);
  real = e.mul(real, cosines);
  real = inverse ? e.sub(real, turnedReal) : e.add(real, turnedReal);
  imaginary = e.mul(imaginary, cosines);
  imaginary = inverse ? e.add(imaginary, turned) : e.sub(imaginary, turned);
  Value product = e.op<graph::MatmulOp>(
      {e.concat({real, imaginary}, rank + 1),
       pairMatrix(e, element, second, 2, inverse, true, factor)});
  // [first, parts, second]: frequency first * k + i is (i, k).
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  order.append({rank + 2, rank, rank + 1});
  return shaped(e.transpose(shaped(product, {first, 2, second}), order),
                {first * second, 2});
}

namespace {
/// What a signal is multiplied by, [elements read, elements of the result].
struct Tables {
  Value cosines, sines;
};
} // namespace

/// By one product: (a + ib)(cos - i sin), and + for the inverse. The parts of
/// the result lie side by side.
static Value directTransform(Value x, int64_t parts, const Tables &tables,
                             const Fourier &how, llvm::ArrayRef<int64_t> back,
                             Emitter &e) {
  auto [cosines, sines] = tables;
  auto times = [&](Value v, Value m) { return buildMatmul(v, m, e); };
  Value a = componentOf(x, 0, how.axis, e), real = times(a, cosines),
        imaginary = times(a, sines);
  if (!how.inverse)
    imaginary = e.op<graph::NegOp>({imaginary});
  if (parts == 2) {
    Value b = componentOf(x, 1, how.axis, e), cross = times(b, sines);
    real = how.inverse ? e.sub(real, cross) : e.add(real, cross);
    imaginary = e.add(imaginary, times(b, cosines));
  }
  Values results = {real, imaginary};
  if (how.inverse && how.onesided)
    results.pop_back();
  return joinParts(results, back, e);
}

/// Of a length whose matrix has too many elements; a longer one may be taken in
/// two steps.
static Failed failLength(int64_t length, int64_t parts, bool mayGrow,
                         Emitter &e) {
  constexpr int64_t farthest = 4096;
  std::string remedy = "use a shorter transform";
  for (int64_t longer = length + 1;
       mayGrow && length < maxMatrix && longer < length + farthest; ++longer)
    if (auto first = splitOf(longer, parts, 2 * parts * longer * longer)) {
      remedy += ", or one of length " + std::to_string(longer) + " = " +
                std::to_string(*first) + " * " +
                std::to_string(longer / *first);
      break;
    }
  return e.fail("a transform of length " + Twine(length) +
                    " is not supported: it takes a matrix of over " +
                    Twine(maxMatrix) + " elements",
                remedy);
}

/// Of a length that is known, as is how much of it is there.
static Value knownTransform(Value x, int64_t parts, int64_t length,
                            const Fourier &how, Emitter &e) {
  int64_t rank = rankOf(x), axis = how.axis;
  Exprs shape = graph::getShape(x);
  int64_t size = *graph::constantOf(shape[axis]);
  bool mirrored = how.inverse && how.onesided;
  int64_t from = std::min(mirrored ? length / 2 + 1 : length, size);
  int64_t to = how.onesided && !how.inverse ? length / 2 + 1 : length;
  std::optional<int64_t> first;
  if (from == length && !mirrored)
    first = splitOf(length, parts, 2 * parts * length * to);
  if (!first && from * to > maxMatrix)
    return failLength(length, parts, !mirrored, e);
  mlir::Type element = elementOf(x);
  double factor = std::pow(double(length), -how.norm);
  if (from < size) {
    shape[axis] = e.number(from);
    x = e.slice(x, Exprs(rank, e.number(0)), SmallVector<int64_t>(rank, 1),
                shape);
  }
  SmallVector<int64_t> back = fromEndTo(axis, rank - 1);
  if (!first) {
    auto tableOf = [&](bool sine) {
      return matrix(e, element, from, to, length, sine, factor, mirrored);
    };
    return directTransform(x, parts, {tableOf(false), tableOf(true)}, how, back,
                           e);
  }
  Values signal;
  for (int64_t part = 0; part < parts; ++part)
    signal.push_back(componentOf(x, part, axis, e));
  Value result =
      splitTransform(signal, *first, length / *first, how.inverse, factor, e);
  back.push_back(rank - 1);
  result = e.transpose(result, back);
  shape[axis] = e.number(to);
  shape.back() = e.number(2);
  return e.slice(result, Exprs(rank, e.number(0)),
                 SmallVector<int64_t>(rank, 1), shape);
}

Value charonia::frontend::buildFourier(Value x, const Fourier &how,
                                       Emitter &e) {
  if (!x || !how.length)
    return {};
  Exprs shape = graph::getShape(x);
  auto length = graph::constantOf(how.length),
       parts = graph::constantOf(shape.back());
  if (how.axis == rankOf(x) - 1 || !parts || (*parts != 1 && *parts != 2))
    return e.fail("the last dimension has to hold real, or real and imaginary "
                  "parts, not " +
                  e.describe(x.getType()));
  if (!isFloat(x))
    return e.fail("the signal has to be of a float type");
  if (length && *length < 1)
    return e.fail("a transform of length " + Twine(*length) +
                  " is not supported");
  if (length && *length > maxMatrix)
    return failLength(*length, *parts, false, e);
  auto size = graph::constantOf(shape[how.axis]);
  if (size && *size < 1)
    return e.fail("a transform of no elements is not supported");
  mlir::Type element = elementOf(x);
  if (!element.isF64())
    x = e.cast(x, e.getBuilder().getF32Type());
  if (!length)
    return e.cast(openTransform(x, *parts, how, e), element);
  if (!size) {
    bool mirrored = how.inverse && how.onesided;
    x = fitTo(x, how.axis, e.number(mirrored ? *length / 2 + 1 : *length), e);
  }
  return x ? e.cast(knownTransform(x, *parts, *length, how, e), element)
           : Value();
}
