// The expanded functions, compiled for this CPU, against the C library in a
// wider type. The errors allowed are those that codegen/math/ExpandMath.h
// states. CHARONIA_EXHAUSTIVE=1 takes every f32 instead of one in about a
// thousand.
#include "tests/codegen/cpu/CpuRunner.h"
#include <bit>
#include <cmath>

using namespace charonia::cpu;

namespace {

struct Function {
  const char *name;
  const char *op;
  double (*f32)(double);
  long double (*f64)(long double);
  double ulp32, ulp64;
  /// Largest arguments for which these errors are promised.
  long double limit64 = INFINITY;
};

template <typename T> T rsqrt(T x) { return 1 / std::sqrt(x); }

#define CHARONIA_FUNCTION(name, f, ...)                                        \
  {#name, "math." #name, [](double x) { return double(f(x)); },                \
   [](long double x) { return (long double)(f(x)); }, __VA_ARGS__}
const Function functions[] = {
    CHARONIA_FUNCTION(exp, std::exp, 1.5, 1.5),
    CHARONIA_FUNCTION(exp2, std::exp2, 1.5, 1.5),
    CHARONIA_FUNCTION(expm1, std::expm1, 2, 2),
    CHARONIA_FUNCTION(log, std::log, 1.5, 1.5),
    CHARONIA_FUNCTION(log2, std::log2, 2.5, 2.5),
    CHARONIA_FUNCTION(log10, std::log10, 2.5, 2.5),
    CHARONIA_FUNCTION(log1p, std::log1p, 2.5, 2.5),
    CHARONIA_FUNCTION(tanh, std::tanh, 2.5, 3),
    CHARONIA_FUNCTION(erf, std::erf, 1.5, 3),
    CHARONIA_FUNCTION(erfc, std::erfc, 3.5, 4),
    CHARONIA_FUNCTION(sin, std::sin, 1.5, 2, 0x1p45L),
    CHARONIA_FUNCTION(cos, std::cos, 1.5, 2, 0x1p45L),
    CHARONIA_FUNCTION(tan, std::tan, 3.5, 4, 0x1p45L),
    CHARONIA_FUNCTION(asin, std::asin, 2.5, 3),
    CHARONIA_FUNCTION(acos, std::acos, 2, 3),
    CHARONIA_FUNCTION(atan, std::atan, 1.5, 2),
    CHARONIA_FUNCTION(sinh, std::sinh, 3, 3),
    CHARONIA_FUNCTION(cosh, std::cosh, 3, 3),
    CHARONIA_FUNCTION(asinh, std::asinh, 3.5, 4),
    CHARONIA_FUNCTION(acosh, std::acosh, 3, 4),
    CHARONIA_FUNCTION(atanh, std::atanh, 3, 4),
    CHARONIA_FUNCTION(rsqrt, rsqrt, 1.5, 1.5),
    CHARONIA_FUNCTION(round, std::round, 0, 0),
};

/// Error in units of the last place of T at the reference; 0 where both are NaN
/// or the same infinity. Results below the smallest normal number may be zero.
template <typename T> double ulps(T got, long double reference) {
  if (std::isnan(reference))
    return std::isnan(got) ? 0 : INFINITY;
  T nearest = T(reference);
  if (got == nearest)
    return 0;
  if (std::isinf(nearest) || std::isinf(got) || std::isnan(got)) {
    // Within a unit of the largest number, overflow is a rounding error.
    long double top = std::numeric_limits<T>::max();
    bool border = std::fabs(reference) >
                  top * (1 - 8 * std::numeric_limits<T>::epsilon());
    return border && !std::isnan(got) &&
                   std::signbit(got) == std::signbit(reference)
               ? 0
               : INFINITY;
  }
  if (std::fabs(reference) < std::numeric_limits<T>::min() * 1.0000001L &&
      got == 0)
    return 0;
  int exponent =
      std::max(std::ilogb(nearest), std::numeric_limits<T>::min_exponent - 1);
  long double unit =
      std::ldexp(1.0L, exponent - (std::numeric_limits<T>::digits - 1));
  return double(std::fabs(got - reference) / unit);
}

/// A kernel y = %b on tiles of 64 elements, which `body` makes of %a, x.
std::string kernelOf(llvm::StringRef name, llvm::StringRef body,
                     llvm::StringRef type) {
  return llvm::formatv(R"(
func.func @{0}(%x: !tile.buffer<{2}>, %y: !tile.buffer<{2}>) attributes {{tile.kernel} {{
  %pid = tile.program_id : index
  %a = tile.load %x[%pid] {{map = affine_map<(d0)[s0] -> (s0 * 64 + d0)>, shape = affine_map<()[s0] -> (1048576)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<{2}>, index) -> tensor<64x{2}>
  {1}
  tile.store %b, %y[%pid] {{map = affine_map<(d0)[s0] -> (s0 * 64 + d0)>, shape = affine_map<()[s0] -> (1048576)>, rank = 1 : i64, checks = array<i64>} : tensor<64x{2}>, !tile.buffer<{2}>, index
  return
})",
                       name, body, type)
      .str();
}

class ExpandMath : public CpuKernels {
protected:
  /// A kernel y = op(x) on tiles of 64 elements for each function.
  std::unique_ptr<LoadedImage> compileAll(llvm::StringRef type) {
    std::string program;
    for (const Function &f : functions)
      program += unary(f.name, f.op, type);
    return compile(program);
  }
  std::string unary(llvm::StringRef name, llvm::StringRef op,
                    llvm::StringRef type) {
    return kernelOf(
        name, llvm::formatv("%b = {0} %a : tensor<64x{1}>", op, type).str(),
        type);
  }
  std::string binary(llvm::StringRef name, llvm::StringRef op,
                     llvm::StringRef type) {
    return llvm::formatv(R"(
func.func @{0}(%x: !tile.buffer<{2}>, %z: !tile.buffer<{2}>, %y: !tile.buffer<{2}>) attributes {{tile.kernel} {{
  %pid = tile.program_id : index
  %a = tile.load %x[%pid] {{map = affine_map<(d0)[s0] -> (s0 * 64 + d0)>, shape = affine_map<()[s0] -> (1048576)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<{2}>, index) -> tensor<64x{2}>
  %c = tile.load %z[%pid] {{map = affine_map<(d0)[s0] -> (s0 * 64 + d0)>, shape = affine_map<()[s0] -> (1048576)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<{2}>, index) -> tensor<64x{2}>
  %b = {1} %a, %c : tensor<64x{2}>
  tile.store %b, %y[%pid] {{map = affine_map<(d0)[s0] -> (s0 * 64 + d0)>, shape = affine_map<()[s0] -> (1048576)>, rank = 1 : i64, checks = array<i64>} : tensor<64x{2}>, !tile.buffer<{2}>, index
  return
})",
                         name, op, type)
        .str();
  }

  /// Compares the kernels on these arguments.
  template <typename T> struct Worst {
    double error = 0;
    T at = 0, got = 0;
  };
  template <typename T, typename Reference>
  void measure(const LoadedImage &image, size_t kernel, Buffer<T> &x,
               Buffer<T> &y, Reference reference, Worst<T> &worst) {
    image.run({x.data(), y.data()}, {}, 0, x.size() / 64, kernel);
    for (size_t i = 0; i < x.size(); ++i) {
      double error = ulps<T>(y[i], reference(x[i]));
      if (!(error <= worst.error))
        worst = {error, x[i], y[i]};
    }
  }
};

TEST_P(ExpandMath, F32) {
  auto image = compileAll("f32");
  ASSERT_TRUE(image);
  bool exhaustive = getenv("CHARONIA_EXHAUSTIVE");
  uint64_t stride = exhaustive ? 1 : 1013;
  constexpr size_t block = 1 << 16;
  Buffer<float> x(block), y(block);
  std::vector<Worst<float>> worst(std::size(functions));
  for (uint64_t bits = 0; bits < (uint64_t(1) << 32);) {
    for (size_t i = 0; i < block; ++i, bits += stride)
      x[i] = std::bit_cast<float>(uint32_t(std::min<uint64_t>(bits, ~0u)));
    for (auto [i, f] : llvm::enumerate(functions))
      measure(*image, i, x, y, f.f32, worst[i]);
  }
  for (auto [i, f] : llvm::enumerate(functions)) {
    EXPECT_LE(worst[i].error, f.ulp32)
        << f.name << "(" << worst[i].at << ") = " << worst[i].got;
  }
}

TEST_P(ExpandMath, F64) {
  auto image = compileAll("f64");
  ASSERT_TRUE(image);
  constexpr size_t block = 1 << 15;
  Buffer<double> x(block), y(block);
  std::mt19937_64 bits(7);
  std::uniform_real_distribution<double> narrow(-30, 30), unit(-1, 1);
  for (int round = 0; round < 4; ++round) {
    for (size_t i = 0; i < block; ++i)
      x[i] = round == 0   ? std::bit_cast<double>(bits())
             : round == 1 ? narrow(bits)
             : round == 2 ? unit(bits)
                          : unit(bits) * 800;
    double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN,   1,
                        -1,  0.5,  -0.5,     5e-324,    2e-308};
    std::copy(std::begin(special), std::end(special), x.data());
    for (auto [i, f] : llvm::enumerate(functions)) {
      Worst<double> worst;
      Buffer<double> own =
          Buffer<double>::of(std::vector<double>(x.data(), x.data() + block));
      for (size_t j = 0; j < block; ++j)
        if (std::isfinite(own[j]) && std::fabs(own[j]) > f.limit64)
          own[j] = 1;
      measure(*image, i, own, y, f.f64, worst);
      EXPECT_LE(worst.error, f.ulp64)
          << f.name << "(" << worst.at << ") = " << worst.got;
    }
  }
}

TEST_P(ExpandMath, PowerAndRemainder) {
  auto image = compile(binary("pow", "math.powf", "f32") +
                       binary("fmod", "arith.remf", "f32") +
                       binary("pow64", "math.powf", "f64") +
                       binary("fmod64", "arith.remf", "f64"));
  ASSERT_TRUE(image);
  constexpr size_t block = 1 << 14;
  auto run = [&]<typename T>(T, size_t kernel, auto reference, double allowed,
                             auto generate) {
    Buffer<T> x(block), z(block), y(block);
    for (size_t i = 0; i < block; ++i)
      std::tie(x[i], z[i]) = generate(i);
    image->run({x.data(), z.data(), y.data()}, {}, 0, block / 64, kernel);
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < block; ++i) {
      double error =
          ulps<T>(y[i], reference((long double)x[i], (long double)z[i]));
      if (!(error <= worst))
        worst = error, at = i;
    }
    EXPECT_LE(worst, allowed)
        << "f(" << x[at] << ", " << z[at] << ") = " << y[at];
  };
  auto pow = [](long double a, long double b) { return std::pow(a, b); };
  auto fmod = [](long double a, long double b) { return std::fmod(a, b); };
  const float special[] = {0.f,       -0.f,   1.f,        -1.f,       2.f,
                           -2.f,      3.f,    -3.f,       0.5f,       -0.5f,
                           1e30f,     -1e30f, 1e-30f,     7.25f,      INFINITY,
                           -INFINITY, NAN,    16777215.f, -16777217.f};
  auto specials = [&](size_t i) {
    return std::pair(special[i % std::size(special)],
                     special[i / std::size(special) % std::size(special)]);
  };
  std::uniform_real_distribution<float> base(0, 20), exponent(-20, 20);
  auto ordinary = [&](size_t) {
    return std::pair(base(random), exponent(random));
  };
  auto integral = [&](size_t) {
    return std::pair(exponent(random), std::round(exponent(random)));
  };
  auto anyBits = [&](size_t) {
    auto number = [&] {
      float f;
      do
        f = std::bit_cast<float>(uint32_t(random()));
      while (!std::isnormal(f));
      return f;
    };
    return std::pair(number(), number());
  };
  for (int kernel : {0, 2}) {
    auto check = [&](auto generate) {
      if (kernel == 0)
        run(0.f, kernel, pow, 1, generate);
      else
        run(0.0, kernel, pow, 3, generate);
    };
    check(specials);
    check(ordinary);
    check(integral);
  }
  run(0.f, 1, fmod, 0, specials);
  run(0.f, 1, fmod, 0, ordinary);
  run(0.f, 1, fmod, 0, anyBits);
  run(0.0, 3, fmod, 0, specials);
  run(0.0, 3, fmod, 0, ordinary);
}

/// Quotients by constants are what a division gives, bit by bit.
template <typename T, typename Bits> struct Quotients {
  std::vector<T> divisors = {1,   -1,  3,     7,     -49,      196,
                             768, 1e3, 12544, 50257, 16777215, 16777216};
  explicit Quotients(std::mt19937 &random) {
    std::uniform_real_distribution<T> exponent(0, 24);
    while (divisors.size() < 60)
      divisors.push_back(std::exp2(exponent(random)));
  }
  std::string program(llvm::StringRef type) const {
    std::string text;
    for (auto [i, divisor] : llvm::enumerate(divisors))
      text += kernelOf(
          llvm::formatv("by{0}{1}", i, type).str(),
          llvm::formatv("%c = arith.constant dense<0x{0}> : tensor<64x{1}>\n"
                        "  %b = arith.divf %a, %c : tensor<64x{1}>",
                        llvm::utohexstr(std::bit_cast<Bits>(divisor), false,
                                        sizeof(T) * 2),
                        type)
              .str(),
          type);
    return text;
  }
  /// Any number that is not so small that its remainder vanishes, and those
  /// that are none.
  static std::vector<T> arguments(size_t count, std::mt19937_64 &bits) {
    constexpr T least = sizeof(T) == 4 ? T(0x1p-100) : T(0x1p-900);
    const T infinity = std::numeric_limits<T>::infinity();
    std::vector<T> x = {
        0, -T(0), infinity, -infinity, std::numeric_limits<T>::max(), T(NAN)};
    while (x.size() < count) {
      T value = std::bit_cast<T>(Bits(bits()));
      if (std::isfinite(value) && std::fabs(value) >= least)
        x.push_back(value);
    }
    return x;
  }
  static void check(const LoadedImage &image, const std::vector<T> &divisors,
                    std::mt19937_64 &bits) {
    constexpr size_t block = 1 << 16;
    for (auto [i, divisor] : llvm::enumerate(divisors)) {
      Buffer<T> x = Buffer<T>::of(arguments(block, bits)), y(block);
      image.run({x.data(), y.data()}, {}, 0, block / 64, i);
      for (size_t j = 0; j < block; ++j) {
        T want = x[j] / divisor;
        ASSERT_TRUE(std::isnan(want) ? std::isnan(y[j])
                                     : std::bit_cast<Bits>(T(y[j])) ==
                                           std::bit_cast<Bits>(want))
            << x[j] << " / " << divisor << " = " << want << ", not " << y[j];
      }
    }
  }
};

TEST_P(ExpandMath, QuotientByConstant) {
  std::mt19937_64 bits(11);
  auto run = [&]<typename Q>(Q quotients, llvm::StringRef type) {
    auto image = compile(quotients.program(type));
    ASSERT_TRUE(image);
    quotients.check(*image, quotients.divisors, bits);
  };
  run(Quotients<float, uint32_t>(random), "f32");
  run(Quotients<double, uint64_t>(random), "f64");
}

CHARONIA_CPU_SUITE(ExpandMath);

} // namespace
