// Times of many runs.
#ifndef CHARONIA_TOOLS_CHARONIA_MEASURE_H
#define CHARONIA_TOOLS_CHARONIA_MEASURE_H

#include "charonia/runtime.h"

#include <nlohmann/json_fwd.hpp>

namespace charonia::tool {

/// Of the seconds that single runs took.
struct Latency {
  double min = 0, mean = 0, p50 = 0, p90 = 0, p99 = 0;
  size_t count = 0;

  static Latency of(std::vector<double> seconds);
  /// In milliseconds, under the keys min, mean, p50, p90, p99, count.
  nlohmann::json json() const;
};

/// Runs for `seconds`, or `iterations` times if that is not 0; at least three
/// times. The time of a run is the device's own, without copies of inputs and
/// outputs.
Result<Latency> measure(Context &context, double seconds,
                        unsigned iterations = 0);

} // namespace charonia::tool

#endif
