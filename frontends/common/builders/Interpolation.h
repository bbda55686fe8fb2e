// Interpolation along one axis of known sizes, as a matrix.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_INTERPOLATION_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_INTERPOLATION_H

#include "graph/ir/Dialect.h"
#include <vector>

namespace charonia::frontend {

/// What resizing does to one axis.
struct AxisInterpolation {
  graph::ResizeMode mode = graph::ResizeMode::linear;
  graph::CoordinateMode coordinates = graph::CoordinateMode::half_pixel;
  graph::NearestMode nearest = graph::NearestMode::round_prefer_floor;
  bool antialias = false, excludeOutside = false;
  double cubicCoefficient = -0.75;
  int64_t from = 1, to = 1;
  double scale = 1;
  /// Part of the axis that is resized, in units of its extent, instead of a
  /// coordinate mode.
  bool crop = false;
  double cropStart = 0, cropEnd = 1;
};

/// A row for each element of the result: the weights of the elements it is made
/// of. Row-major [to, from].
struct AxisWeights {
  std::vector<double> values;
  /// Rows whose coordinate lies outside of the axis (only with `crop`).
  std::vector<bool> outside;
};

AxisWeights weightsOf(const AxisInterpolation &axis);

} // namespace charonia::frontend

#endif
