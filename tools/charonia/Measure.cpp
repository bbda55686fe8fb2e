#include "tools/charonia/Measure.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>

namespace charonia::tool {

Latency Latency::of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  auto quantile = [&](double q) {
    return seconds[std::min(seconds.size() - 1, size_t(q * seconds.size()))];
  };
  Latency latency;
  latency.count = seconds.size();
  latency.min = seconds.front();
  latency.mean =
      std::accumulate(seconds.begin(), seconds.end(), 0.0) / seconds.size();
  latency.p50 = quantile(0.5);
  latency.p90 = quantile(0.9);
  latency.p99 = quantile(0.99);
  return latency;
}

nlohmann::json Latency::json() const {
  return {{"min", min * 1e3}, {"mean", mean * 1e3}, {"p50", p50 * 1e3},
          {"p90", p90 * 1e3}, {"p99", p99 * 1e3},   {"count", count}};
}

Result<Latency> measure(Context &context, double seconds, unsigned iterations) {
  std::vector<double> times;
  auto start = std::chrono::steady_clock::now();
  while (true) {
    CHARONIA_ASSIGN_OR_RETURN(double time, context.runTimed());
    times.push_back(time);
    double passed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    if (iterations ? times.size() >= iterations
                   : passed >= seconds && times.size() >= 3)
      return Latency::of(std::move(times));
  }
}

} // namespace charonia::tool
