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

} // namespace scalar
} // namespace charonia::graph

#endif
