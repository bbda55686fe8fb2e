// Single elements of constants, and what the scalar rules of pointwise
// operators (graph/ops/Elementwise.td) are written with.
#ifndef CHARONIA_GRAPH_IR_SCALAR_H
#define CHARONIA_GRAPH_IR_SCALAR_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

namespace charonia::graph {

/// An element: a float as double, an integer (i1 as 0 or 1) as int64_t.
struct Scalar {
  double real = 0;
  int64_t integer = 0;
};

/// Inclusive bounds of floats, perhaps infinite; NaN aside.
struct RealRange {
  double low = -std::numeric_limits<double>::infinity(),
         high = std::numeric_limits<double>::infinity();
};

namespace scalar {

inline std::optional<Scalar> result(double value) { return Scalar{value, 0}; }
inline std::optional<Scalar> result(int64_t value) { return Scalar{0, value}; }
inline std::optional<Scalar> result(bool value) { return Scalar{0, value}; }
inline std::optional<Scalar> result(std::optional<int64_t> value) {
  return value ? result(*value) : std::nullopt;
}

/// Integers wrap.
inline int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }

/// Whether x / y has a value.
inline bool divides(int64_t x, int64_t y) {
  return y != 0 && !(x == std::numeric_limits<int64_t>::min() && y == -1);
}
inline std::optional<int64_t> quotient(int64_t x, int64_t y) {
  return divides(x, y) ? std::optional(x / y) : std::nullopt;
}
/// With the sign of x.
inline std::optional<int64_t> remainder(int64_t x, int64_t y) {
  return divides(x, y) ? std::optional(x % y) : std::nullopt;
}
/// With the sign of y.
inline std::optional<int64_t> modulo(int64_t x, int64_t y) {
  auto r = remainder(x, y);
  return r && *r != 0 && (*r < 0) != (y < 0) ? *r + y : r;
}
inline double modulo(double x, double y) {
  double r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

inline double sign(double x) {
  return std::isnan(x) ? x : double((x > 0) - (x < 0));
}
inline int64_t sign(int64_t x) { return (x > 0) - (x < 0); }
/// NaN wins.
inline double larger(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? std::nan("") : std::max(x, y);
}
inline double smaller(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? std::nan("") : std::min(x, y);
}

/// Of bounds at which inf - inf or 0 * inf occur, nothing is known.
inline RealRange rangeOf(double low, double high) {
  RealRange all;
  return {std::isnan(low) ? all.low : low, std::isnan(high) ? all.high : high};
}
inline RealRange operator-(RealRange x) { return {-x.high, -x.low}; }
inline RealRange operator+(RealRange x, RealRange y) {
  return rangeOf(x.low + y.low, x.high + y.high);
}
inline RealRange operator*(RealRange x, RealRange y) {
  RealRange product{0, 0};
  bool first = true;
  for (double a : {x.low, x.high})
    for (double b : {y.low, y.high}) {
      double p = a * b;
      if (std::isnan(p))
        return {};
      product.low = first ? p : std::min(product.low, p);
      product.high = first ? p : std::max(product.high, p);
      first = false;
    }
  return product;
}
/// Of all elements of both.
inline RealRange hull(RealRange x, RealRange y) {
  return {std::min(x.low, y.low), std::max(x.high, y.high)};
}
/// Of a function that never falls.
template <typename Function> RealRange rising(RealRange x, Function function) {
  return rangeOf(function(x.low), function(x.high));
}

} // namespace scalar
} // namespace charonia::graph

#endif
