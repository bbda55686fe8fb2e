// Discrete Fourier transforms of known length, as products with matrices of
// cosines and sines: of a length that is a product of two, along one factor and
// then along the other.
#include "frontends/onnx/Registry.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

/// Elements of a transform's matrix.
constexpr int64_t maxMatrix = int64_t(1) << 24;

/// [from, to]: factor * cos or sin (2 pi i j / length), or half of the sum for
/// spectra of which only one side is given.
static Value matrix(Emitter &e, int64_t from, int64_t to, int64_t length,
                    bool sine, double factor, bool mirrored) {
  std::vector<float> values(from * to);
  for (int64_t i = 0; i < from; ++i)
    for (int64_t j = 0; j < to; ++j) {
      // The product in a whole period keeps the angle exact.
      double angle = 2 * M_PI * double(i * j % length) / double(length);
      double value = factor * (sine ? std::sin(angle) : std::cos(angle));
      bool twice = mirrored && i > 0 && 2 * i < length;
      values[i * to + j] = float(twice ? 2 * value : value);
    }
  return e.constant(mlir::DenseElementsAttr::get(
      mlir::RankedTensorType::get({from, to}, e.getBuilder().getF32Type()),
      llvm::ArrayRef<float>(values)));
}

/// The part of the last dimension, which goes, with the axis moved to the end.
static Value component(Emitter &e, Value x, int64_t part, int64_t axis) {
  Exprs dims = graph::getShape(x), starts(dims.size(), e.number(0));
  starts.back() = e.number(part);
  dims.back() = e.number(1);
  Value one = e.slice(x, starts, SmallVector<int64_t>(dims.size(), 1), dims);
  dims.pop_back();
  SmallVector<int64_t> order;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d)
    if (d != axis)
      order.push_back(d);
  order.push_back(axis);
  return e.transpose(e.reshape(one, dims), order);
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
static Value pairMatrix(Emitter &e, int64_t length, int64_t parts, bool inverse,
                        bool transposed, double factor) {
  int64_t rows = 2 * length, columns = parts * length;
  std::vector<float> values(rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      bool toImaginary = i >= length, fromImaginary = j >= length;
      double angle = 2 * M_PI * double((i % length) * (j % length) % length) /
                     double(length);
      double sine = inverse ? -std::sin(angle) : std::sin(angle);
      double value = toImaginary == fromImaginary ? std::cos(angle)
                     : fromImaginary              ? sine
                                                  : -sine;
      values[transposed ? j * rows + i : i * columns + j] =
          float(factor * value);
    }
  llvm::SmallVector<int64_t> shape{rows, columns};
  if (transposed)
    std::swap(shape[0], shape[1]);
  return e.constant(mlir::DenseElementsAttr::get(
      mlir::RankedTensorType::get(shape, e.getBuilder().getF32Type()),
      llvm::ArrayRef<float>(values)));
}

/// cos or sin (2 pi i j / length), [from, to].
static Value turns(Emitter &e, int64_t from, int64_t to, bool sine) {
  return matrix(e, from, to, from * to, sine, 1, false);
}

/// The transform of `parts`, [..., length] each and real or real and imaginary,
/// as [..., length, 2]: of element `second * i + j` along i, then along j.
static Value splitTransform(Values parts, int64_t first, int64_t second,
                            bool inverse, Emitter &e) {
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
      {pairMatrix(e, first, count, inverse, false, 1), signal});
  auto half = [&](int64_t which) {
    Exprs dims = outer, starts(rank + 2, e.number(0));
    llvm::append_range(dims, e.numbers({first, second}));
    starts[rank] = e.number(which * first);
    return e.slice(along, starts, SmallVector<int64_t>(rank + 2, 1), dims);
  };
  Value real = half(0), imaginary = half(1),
        cosines = turns(e, first, second, false),
        sines = turns(e, first, second, true);
  Value turnedReal = e.mul(imaginary, sines), turned = e.mul(real, sines);
  real = e.mul(real, cosines);
  real = inverse ? e.sub(real, turnedReal) : e.add(real, turnedReal);
  imaginary = e.mul(imaginary, cosines);
  imaginary = inverse ? e.add(imaginary, turned) : e.sub(imaginary, turned);
  double factor = inverse ? 1.0 / double(first * second) : 1;
  Value product =
      e.op<graph::MatmulOp>({e.concat({real, imaginary}, rank + 1),
                             pairMatrix(e, second, 2, inverse, true, factor)});
  // [first, parts, second]: frequency first * k + i is (i, k).
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  order.append({rank + 2, rank, rank + 1});
  return shaped(e.transpose(shaped(product, {first, 2, second}), order),
                {first * second, 2});
}

static llvm::LogicalResult dft(Node &n, Emitter &e) {
  Value x = n.input(0);
  int64_t rank = rankOf(x);
  if (failed(n.needsRank(0, 2, 32)))
    return llvm::failure();
  int64_t given = n.sinceVersion() < 20 ? n.integer("axis", 1) : -2;
  if (n.has(2)) {
    auto value = n.constantInteger(2);
    if (failed(value))
      return llvm::failure();
    given = *value;
  }
  auto axis = n.axis(given, rank);
  if (failed(axis))
    return llvm::failure();
  Exprs shape = graph::getShape(x);
  auto size = graph::constantOf(shape[*axis]),
       parts = graph::constantOf(shape.back());
  if (*axis == rank - 1 || !parts || (*parts != 1 && *parts != 2))
    return e.fail("the last dimension has to hold real, or real and imaginary "
                  "parts, not " +
                  e.describe(x.getType()));
  if (!size || *size < 1)
    return e.fail("the length of the transform has to be known",
                  "fix that size with --shape");
  if (!isFloat(x))
    return e.fail("the signal has to be of a float type");
  bool inverse = n.flag("inverse"), onesided = n.flag("onesided");
  int64_t length = inverse && onesided ? 2 * (*size - 1) : *size;
  if (n.has(1)) {
    auto value = n.constantInteger(1);
    if (failed(value))
      return llvm::failure();
    length = *value;
  }
  // What the signal lacks is zero; what it has more is cut.
  int64_t from = std::min(inverse && onesided ? length / 2 + 1 : length, *size);
  int64_t to = onesided && !inverse ? length / 2 + 1 : length;
  if (length < 1 || length > maxMatrix)
    return e.fail("a transform of length " + Twine(length) +
                  " is not supported");
  std::optional<int64_t> first;
  if (from == length && !(inverse && onesided))
    first = splitOf(length, *parts, 2 * *parts * length * to);
  if (!first && from * to > maxMatrix)
    return e.fail("a transform of length " + Twine(length) +
                  " is not supported");
  mlir::Type element = elementOf(x);
  x = e.cast(x, e.getBuilder().getF32Type());
  if (from < *size) {
    shape[*axis] = e.number(from);
    x = e.slice(x, Exprs(rank, e.number(0)), SmallVector<int64_t>(rank, 1),
                shape);
  }
  SmallVector<int64_t> back;
  for (int64_t d = 0; d < rank - 1; ++d)
    back.push_back(d < *axis ? d : d == *axis ? rank - 2 : d - 1);
  if (first) {
    Values signal;
    for (int64_t part = 0; part < *parts; ++part)
      signal.push_back(component(e, x, part, *axis));
    Value result = splitTransform(signal, *first, length / *first, inverse, e);
    back.push_back(rank - 1);
    result = e.transpose(result, back);
    shape[*axis] = e.number(to);
    shape.back() = e.number(2);
    return n.yield(e.cast(e.slice(result, Exprs(rank, e.number(0)),
                                  SmallVector<int64_t>(rank, 1), shape),
                          element));
  }
  double factor = inverse ? 1.0 / double(length) : 1;
  bool mirrored = inverse && onesided;
  Value cosines = matrix(e, from, to, length, false, factor, mirrored),
        sines = matrix(e, from, to, length, true, factor, mirrored);
  auto times = [&](Value v, Value m) { return e.op<graph::MatmulOp>({v, m}); };
  // (a + ib)(cos - i sin), and + for the inverse.
  Value a = component(e, x, 0, *axis), real = times(a, cosines),
        imaginary = times(a, sines);
  if (!inverse)
    imaginary = e.op<graph::NegOp>({imaginary});
  if (*parts == 2) {
    Value b = component(e, x, 1, *axis), cross = times(b, sines);
    real = inverse ? e.sub(real, cross) : e.add(real, cross);
    imaginary = e.add(imaginary, times(b, cosines));
  }
  Values results = {real, imaginary};
  if (mirrored)
    results.pop_back();
  for (Value &v : results) {
    v = e.transpose(v, back);
    if (!v)
      return llvm::failure();
    Exprs dims = graph::getShape(v);
    dims.push_back(e.number(1));
    v = e.reshape(v, dims);
  }
  return n.yield(e.cast(e.concat(results, rank - 1), element));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::transformRows() {
  static const Row rows[] = {
      {"", "DFT", 17, 20, dft},
  };
  return rows;
}
