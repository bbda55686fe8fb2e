// Discrete Fourier transforms, and what their spectra are multiplied by.
#include "frontends/common/Tensors.h"
#include "frontends/common/builders/Fourier.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/Tensors.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using mlir::Value;

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
  Fourier how;
  how.axis = *axis;
  how.inverse = n.flag("inverse");
  how.onesided = n.flag("onesided");
  how.norm = how.inverse ? 1 : 0;
  how.length = graph::getShape(x)[*axis];
  if (n.has(1)) {
    auto length = n.known(1);
    if (failed(length))
      return llvm::failure();
    if (length->size() != 1)
      return e.fail("takes one length");
    how.length = length->front();
  } else if (how.inverse && how.onesided) {
    how.length = graph::simplify((how.length - 1) * 2);
  }
  return n.yield(buildFourier(x, how, e));
}

namespace {
/// Triangles of a spectrum that are of one width on the mel scale.
struct MelScale {
  int64_t bins, length, rate;
  double low, high;
};
} // namespace

/// The elements of a spectrum where triangles begin, as ONNX's reference
/// rounds; each is the top of the triangle that begins with the one before.
static llvm::SmallVector<int64_t> edgesOf(const MelScale &scale) {
  auto mel = [](double hertz) {
    return 2595 * std::log1p(hertz / 700) / std::log(10.0);
  };
  double step = (mel(scale.high) - mel(scale.low)) / double(scale.bins + 2);
  llvm::SmallVector<int64_t> edges;
  for (int64_t i = 0; i < scale.bins + 2; ++i) {
    double at = double(i) * step + mel(scale.low);
    double hertz = 700 * std::expm1(at / 2595 * std::log(10.0));
    double place =
        std::floor(double(scale.length + 1) * hertz / double(scale.rate));
    edges.push_back(std::abs(place) < 1e9 ? int64_t(place) : -1);
  }
  return edges;
}

/// Heights of the triangles, [spectrum, bins]; empty where they leave the
/// spectrum.
static std::vector<double> trianglesOf(const MelScale &scale, int64_t rows) {
  auto edges = edgesOf(scale);
  std::vector<double> weights(rows * scale.bins);
  for (int64_t i = 0; i < scale.bins; ++i) {
    int64_t left = edges[i], top = edges[i + 1], right = edges[i + 2];
    if (std::min(left, top) < 0 || std::max(left, top) >= rows || right > rows)
      return {};
    auto at = [&](int64_t j) -> double & {
      return weights[j * scale.bins + i];
    };
    if (left == top)
      at(top) = 1;
    for (int64_t j = left; j <= top && left != top; ++j)
      at(j) = double(j - left) / double(top - left);
    for (int64_t j = top; j < right; ++j)
      at(j) = double(right - j) / double(right - top);
  }
  return weights;
}

/// Numbers as a matrix of `element`.
static Value melTensor(const std::vector<double> &weights,
                       llvm::ArrayRef<int64_t> dims, mlir::Type element,
                       Emitter &e) {
  std::vector<float> single(weights.begin(), weights.end());
  bool isSingle = element.isF32();
  auto type =
      e.type(e.numbers(dims), isSingle ? element : e.getBuilder().getF64Type());
  const char *data = isSingle ? reinterpret_cast<const char *>(single.data())
                              : reinterpret_cast<const char *>(weights.data());
  size_t bytes = weights.size() * (isSingle ? sizeof(float) : sizeof(double));
  Value made = materialize(ownedTensor(type, {data, data + bytes}), "mel", e);
  return isSingle ? made : e.cast(made, element);
}

/// Operands: bins, length of the transform, samples a second, lowest and
/// highest frequency.
static llvm::LogicalResult melWeightMatrix(Node &n, Emitter &e) {
  constexpr int64_t most = 1 << 20;
  auto bins = n.constantInteger(0), length = n.constantInteger(1),
       rate = n.constantInteger(2);
  auto low = n.constantNumber(3), high = n.constantNumber(4);
  if (failed(bins) || failed(length) || failed(rate) || failed(low) ||
      failed(high))
    return llvm::failure();
  mlir::Type element =
      elementType(int(n.integer("output_datatype", 1)), e.getContext());
  int64_t rows = *length / 2 + 1;
  if (*bins < 1 || *length < 1 || *rate < 1 || *bins > most || rows > most ||
      *bins * rows > (int64_t(1) << 26) || !element)
    return e.fail("a matrix of these sizes or of this type is not supported");
  std::vector<double> weights =
      trianglesOf({*bins, *length, *rate, *low, *high}, rows);
  if (weights.empty())
    return e.fail("frequencies lie outside of the spectrum",
                  "the highest may be half of the sample rate");
  return n.yield(melTensor(weights, {rows, *bins}, element, e));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::transformRows() {
  static const Row rows[] = {
      {"", "DFT", 17, 20, dft},
      {"", "MelWeightMatrix", 17, 17, melWeightMatrix},
  };
  return rows;
}
