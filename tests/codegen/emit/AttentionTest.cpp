// Tile programs of attention with rows that keep nothing, run by the
// interpreter and compared with plain loops.
#include "tests/codegen/emit/EmitContext.h"
#include "tests/codegen/interpreter/TileInterpreter.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace charonia;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// How rows lose their keys.
struct Masks {
  const char *name;
  bool mask = false, bias = false, causal = false;
  double fill = -infinity; // of mask and causal
  double low = -infinity;  // of the bias
  /// A mask of coordinates: keeps `back` keys up to the row's own and `ahead`
  /// behind that.
  int64_t back = 0, ahead = 0;
  bool hasRange() const { return back || ahead; }
};

constexpr Masks masks[] = {
    {"mask", true},
    {"bias", false, true},
    {"causal", false, false, true},
    {"mask_causal", true, false, true},
    {"mask_bias", true, true},
    {"finite", true, false, false, -1e9},
    {"finite_bias", false, true, false, -infinity, -3.4028234663852886e38},
    {"finite_causal_bias", true, true, true, -1e4, -1e4},
    {"zero_fill", true, true, false, 0},
    {"window", false, false, true, -infinity, -infinity, 4, 1000},
    {"band", false, false, false, -infinity, -infinity, 20, 3},
    {"only_ahead", false, true, false, -infinity, -infinity, 0, 40},
    {"finite_band", false, false, false, -1e4, -infinity, 2, 1},
};

struct Param {
  Masks masks;
  const char *guard;
  bool gpu;
  int64_t queries, keys;
};

class AttentionTest : public testing::TestWithParam<Param>,
                      protected EmitContext {
protected:
  static constexpr int64_t heads = 2, depth = 5, width = 3;

  mlir::func::FuncOp emit() {
    const Param &p = GetParam();
    std::string q = llvm::formatv("tensor<1x2x{0}x5xf32>", p.queries),
                k = llvm::formatv("tensor<1x2x{0}x5xf32>", p.keys),
                v = llvm::formatv("tensor<1x2x{0}x3xf32>", p.keys),
                y = llvm::formatv("tensor<1x2x{0}x3xf32>", p.queries),
                m = llvm::formatv("tensor<{0}x{1}xi1>", p.queries, p.keys),
                b = llvm::formatv("tensor<2x1x{0}xf32>", p.keys);
    std::vector<std::string> names{"%q", "%k", "%v"}, types{q, k, v};
    std::string operands = "%q, %k, %v";
    if (p.masks.mask) {
      operands += " mask %m";
      names.push_back("%m");
      types.push_back(m);
    }
    std::string range;
    if (p.masks.hasRange()) {
      operands += " mask %range";
      range =
          llvm::formatv(R"(
          %row = graph.iota {{axis = 0 : i64} : () -> tensor<{0}x1xi64>
          %col = graph.iota {{axis = 1 : i64} : () -> tensor<1x{1}xi64>
          %low = graph.constant dense<{2}> : tensor<i64>
          %high = graph.constant dense<{3}> : tensor<i64>
          %after = graph.add %row, %low : (tensor<{0}x1xi64>, tensor<i64>) -> tensor<{0}x1xi64>
          %upto = graph.add %row, %high : (tensor<{0}x1xi64>, tensor<i64>) -> tensor<{0}x1xi64>
          %first = graph.compare gt %col, %after : (tensor<1x{1}xi64>, tensor<{0}x1xi64>) -> {4}
          %last = graph.compare le %col, %upto : (tensor<1x{1}xi64>, tensor<{0}x1xi64>) -> {4}
          %range = graph.and %first, %last : ({4}, {4}) -> {4})",
                        p.queries, p.keys, p.keys - p.queries - p.masks.back,
                        p.keys - p.queries + p.masks.ahead, m);
    }
    if (p.masks.bias) {
      operands += " bias %b";
      names.push_back("%b");
      types.push_back(b);
    }
    std::string inputs = llvm::join(types, ", ");
    std::string arguments;
    for (size_t i = 0; i < names.size(); ++i)
      arguments += (i ? ", " : "") + names[i] + ": " + types[i];
    if (p.masks.hasRange())
      types.insert(types.begin() + 3, m);
    uint64_t fill;
    std::memcpy(&fill, &p.masks.fill, sizeof fill);
    std::string text =
        llvm::formatv(R"(
      func.func @main({0}) -> {1} {
        %0 = graph.kernel "k" ({2}) : ({8}) -> {1} {
        ^bb0({0}): {9}
          %1 = graph.attention {4} {scale = 0.5 : f64, fill = 0x{5} : f64, guard = {6} : i32 {7}} : ({3}) -> {1}
          graph.yield %1 : {1}
        }
        return %0 : {1}
      })",
                      arguments, y, llvm::join(names, ", "),
                      llvm::join(types, ", "), operands, llvm::utohexstr(fill),
                      guard(), p.masks.causal ? ", causal" : "", inputs, range);
    // Names of the region's arguments hide those of the function.
    size_t region = text.find("^bb0(");
    for (const std::string &name : names)
      for (size_t at = region; (at = text.find(name, at)) != text.npos; at += 3)
        if (at < text.find("graph.yield"))
          text.insert(at + 1, "r");
    graph::KernelOp kernel = parseKernel(text);
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(module->getBody());
    auto function = emit::emitKernel(
        kernel, p.gpu ? emit::EmitTarget::gpu() : emit::EmitTarget::x86v3(),
        builder);
    EXPECT_TRUE(succeeded(function));
    return *function;
  }

  int guard() const {
    llvm::StringRef name = GetParam().guard;
    return name == "empty" ? 1 : name == "nan" ? 2 : 0;
  }

  std::vector<float> random(size_t size) {
    std::vector<float> values(size);
    for (float &v : values)
      v = std::uniform_real_distribution<float>(-1, 1)(engine);
    return values;
  }

  std::mt19937 engine{1};
};

TEST_P(AttentionTest, Rows) {
  const Param &p = GetParam();
  mlir::func::FuncOp function = emit();
  std::vector<float> q = random(heads * p.queries * depth),
                     k = random(heads * p.keys * depth),
                     v = random(heads * p.keys * width),
                     y(heads * p.queries * width);
  // Rows that keep nothing, all, the first keys, the last ones.
  std::vector<uint8_t> mask(p.queries * p.keys);
  for (int64_t s = 0; s < p.queries; ++s)
    for (int64_t t = 0; t < p.keys; ++t)
      mask[s * p.keys + t] = s % 4 == 1   ? 1
                             : s % 4 == 2 ? t < p.keys / 4
                             : s % 4 == 3 ? t >= p.keys - p.keys / 4
                                          : 0;
  // The first head loses its first keys, the second all.
  std::vector<float> bias(heads * p.keys);
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t t = 0; t < p.keys; ++t)
      bias[h * p.keys + t] = h || t < p.keys / 2 ? float(p.masks.low) : 0.25f;
  // A score that is no number, in a row of its own.
  if (p.queries > 5)
    q[5 * depth] = NAN;

  std::vector<tile::InterpreterBuffer> buffers{
      {q.data(), q.size()}, {k.data(), k.size()}, {v.data(), v.size()}};
  if (p.masks.mask)
    buffers.push_back({mask.data(), mask.size()});
  if (p.masks.bias)
    buffers.push_back({bias.data(), bias.size()});
  buffers.push_back({y.data(), y.size()});
  int64_t grid = function->getAttrOfType<mlir::AffineMapAttr>(tile::kGridAttr)
                     .getValue()
                     .getSingleConstantResult();
  ASSERT_EQ(tile::interpret(function, buffers, {}, 0, grid), "");

  for (int64_t h = 0; h < heads; ++h)
    for (int64_t s = 0; s < p.queries; ++s) {
      std::vector<float> scores(p.keys);
      float top = -INFINITY;
      for (int64_t t = 0; t < p.keys; ++t) {
        float score = 0;
        for (int64_t d = 0; d < depth; ++d)
          score += q[(h * p.queries + s) * depth + d] *
                   k[(h * p.keys + t) * depth + d];
        score *= 0.5f;
        int64_t own = s + p.keys - p.queries;
        if ((p.masks.mask && !mask[s * p.keys + t]) ||
            (p.masks.hasRange() &&
             (t <= own - p.masks.back || t > own + p.masks.ahead)) ||
            (p.masks.causal && t > s + p.keys - p.queries))
          score = p.masks.fill;
        if (p.masks.bias) {
          score += bias[h * p.keys + t];
          if (guard() == 1 && std::isinf(bias[h * p.keys + t]))
            score = -INFINITY;
        }
        scores[t] = score;
        top = std::isnan(score) ? score
              : std::isnan(top) ? top
                                : std::max(top, score);
      }
      double sum = 0;
      for (float score : scores)
        sum += std::exp(double(score) - top);
      for (int64_t c = 0; c < width; ++c) {
        double want = 0;
        for (int64_t t = 0; t < p.keys; ++t)
          want += std::exp(double(scores[t]) - top) / sum *
                  v[(h * p.keys + t) * width + c];
        if (guard() == 2 && std::isnan(sum))
          want = 0;
        if (guard() == 1 && top == -INFINITY)
          want = 0;
        float got = y[(h * p.queries + s) * width + c];
        if (std::isnan(want))
          EXPECT_TRUE(std::isnan(got)) << h << " " << s << " " << c;
        else
          EXPECT_NEAR(got, want, 2e-4) << h << " " << s << " " << c;
      }
    }
}

std::vector<Param> params() {
  std::vector<Param> all;
  for (const Masks &m : masks)
    for (const char *guard : {"none", "empty", "nan"})
      for (bool gpu : {true, false})
        for (auto [queries, keys] :
             {std::pair<int64_t, int64_t>{7, 7}, {9, 150}, {1, 3}, {13, 6}})
          all.push_back({m, guard, gpu, queries, keys});
  // Around the sizes of tiles, with and without a past, and more queries than
  // keys.
  for (const Masks &m : masks)
    if (m.causal || m.hasRange())
      for (bool gpu : {true, false})
        for (auto [queries, keys] : {std::pair<int64_t, int64_t>{1, 129},
                                     {63, 63},
                                     {65, 127},
                                     {49, 49},
                                     {129, 65},
                                     {64, 200}})
          all.push_back({m, "empty", gpu, queries, keys});
  return all;
}

class LongAttentionTest : public AttentionTest {};

/// Values that are no numbers spoil every block that is read; those that no row
/// of a tile keeps are not.
TEST_P(LongAttentionTest, BlocksThatNoRowKeepsAreLeftOut) {
  const Param &p = GetParam();
  mlir::func::FuncOp function = emit();
  // Farther than any tile is large.
  constexpr int64_t margin = 256;
  auto run = [&](bool last) {
    std::vector<float> q = random(heads * p.queries * depth),
                       k = random(heads * p.keys * depth),
                       v = random(heads * p.keys * width),
                       y(heads * p.queries * width);
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t t = 0; t < p.keys; ++t)
        if (last ? t < p.keys - margin : t > margin)
          std::fill_n(&v[(h * p.keys + t) * width], width, NAN);
    std::vector<tile::InterpreterBuffer> buffers{{q.data(), q.size()},
                                                 {k.data(), k.size()},
                                                 {v.data(), v.size()},
                                                 {y.data(), y.size()}};
    int64_t grid = function->getAttrOfType<mlir::AffineMapAttr>(tile::kGridAttr)
                       .getValue()
                       .getSingleConstantResult();
    EXPECT_EQ(tile::interpret(function, buffers, {}, 0, grid), "");
    return y[(last ? p.queries - 1 : 0) * width];
  };
  if (p.masks.causal || p.masks.ahead)
    EXPECT_FALSE(std::isnan(run(/*last=*/false)));
  if (p.masks.back)
    EXPECT_FALSE(std::isnan(run(/*last=*/true)));
}

std::vector<Param> longParams() {
  std::vector<Param> all;
  for (const Masks &m : masks)
    if (!m.mask && !m.bias && m.fill == -infinity)
      for (bool gpu : {true, false})
        all.push_back({m, "none", gpu, 600, 600});
  return all;
}
std::string nameOf(const testing::TestParamInfo<Param> &info) {
  const Param &p = info.param;
  return llvm::formatv("{0}_{1}_{2}_{3}x{4}", p.masks.name, p.guard,
                       p.gpu ? "gpu" : "cpu", p.queries, p.keys)
      .str();
}
INSTANTIATE_TEST_SUITE_P(Masks, LongAttentionTest,
                         testing::ValuesIn(longParams()), nameOf);

INSTANTIATE_TEST_SUITE_P(Masks, AttentionTest, testing::ValuesIn(params()),
                         nameOf);

} // namespace
