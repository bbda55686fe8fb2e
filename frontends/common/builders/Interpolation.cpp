#include "frontends/common/builders/Interpolation.h"
#include <algorithm>
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using graph::CoordinateMode;
using graph::NearestMode;
using graph::ResizeMode;

/// Where in the input element `i` of the result lies.
static double coordinateOf(const AxisInterpolation &a, double i) {
  double exact = a.scale * double(a.from);
  if (a.crop) {
    double span = (a.cropEnd - a.cropStart) * double(a.from - 1);
    return a.cropStart * double(a.from - 1) +
           (a.to == 1 ? span / 2 : i * span / double(a.to - 1));
  }
  switch (a.coordinates) {
  case CoordinateMode::asymmetric:
    return i / a.scale;
  case CoordinateMode::align_corners:
    return a.to == 1 ? 0 : i * double(a.from - 1) / double(a.to - 1);
  case CoordinateMode::half_pixel_symmetric: {
    double offset = double(a.from) / 2 * (1 - double(a.to) / exact);
    return offset + (i + 0.5) / a.scale - 0.5;
  }
  case CoordinateMode::half_pixel_or_zero:
    if (a.to == 1)
      return 0;
    [[fallthrough]];
  case CoordinateMode::half_pixel:
    return (i + 0.5) / a.scale - 0.5;
  }
  return 0;
}

/// Cubic convolution at distance `x`.
static double cubic(double x, double c) {
  x = std::abs(x);
  if (x <= 1)
    return ((c + 2) * x - (c + 3)) * x * x + 1;
  return x < 2 ? ((c * x - 5 * c) * x + 8 * c) * x - 4 * c : 0;
}

static int64_t nearestOf(double x, NearestMode mode) {
  switch (mode) {
  case NearestMode::floor:
    return std::floor(x);
  case NearestMode::ceil:
    return std::ceil(x);
  case NearestMode::round_prefer_floor:
    return std::ceil(x - 0.5);
  case NearestMode::round_prefer_ceil:
    return std::floor(x + 0.5);
  }
  return 0;
}

AxisWeights charonia::frontend::weightsOf(const AxisInterpolation &a) {
  AxisWeights result;
  result.values.resize(a.from * a.to);
  result.outside.resize(a.to);
  if (!a.to)
    return result;
  // Where elements are left out, the filter is as wide as what they stand for.
  double stretch = a.antialias ? std::min(a.scale, 1.0) : 1.0;
  int64_t reach = std::ceil((a.mode == ResizeMode::cubic ? 2 : 1) / stretch);
  for (int64_t i = 0; i < a.to; ++i) {
    double x = coordinateOf(a, double(i));
    // A region of interest may be anything.
    if (!(std::abs(x) < 1e15))
      x = -1;
    result.outside[i] = a.crop && (x < 0 || x > double(a.from - 1));
    double *row = result.values.data() + i * a.from;
    auto clamped = [&](int64_t k) {
      return std::clamp<int64_t>(k, 0, a.from - 1);
    };
    if (a.mode == ResizeMode::nearest) {
      row[clamped(nearestOf(x, a.nearest))] = 1;
      continue;
    }
    std::vector<double> terms(a.from);
    double sum = 0;
    int64_t base = std::floor(x);
    for (int64_t k = base - reach; k <= base + reach; ++k) {
      if (a.excludeOutside && (k < 0 || k >= a.from))
        continue;
      double d = (double(k) - x) * stretch;
      double w = a.mode == ResizeMode::cubic ? cubic(d, a.cubicCoefficient)
                                             : std::max(0.0, 1 - std::abs(d));
      terms[clamped(k)] += w;
      sum += w;
    }
    for (int64_t k = 0; k < a.from; ++k)
      row[k] = sum == 0 ? 0 : terms[k] / sum;
  }
  return result;
}
