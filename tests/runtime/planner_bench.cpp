// Prints how long the memory planner takes, and how close it comes to the lower
// bound:  planner_bench [buffers]

#include "PlannerGraphs.h"

#include <cstdio>
#include <cstdlib>

#include <time.h>

using namespace charonia;
using namespace charonia::test;

namespace {

/// Of this thread: other work on the machine does not count.
double processorSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

void measure(const std::string &name,
             const std::vector<BufferRequest> &requests) {
  double best = 1e9;
  plan::ArenaPlan plan;
  for (int round = 0; round < 7; ++round) {
    double start = processorSeconds();
    auto planned = plan::planArena(requests);
    double spent = processorSeconds() - start;
    if (!planned) {
      std::printf("%s: %s\n", name.c_str(), planned.status().message().c_str());
      return;
    }
    best = std::min(best, spent);
    plan = *planned;
  }
  std::printf("%-12s %7zu buffers  %8.3f ms  %9llu looks  ratio %.3f\n",
              name.c_str(), requests.size(), best * 1e3,
              static_cast<unsigned long long>(plan.looks),
              double(plan.peak) / double(plan.lowerBound));
}

} // namespace

int main(int argc, char **argv) {
  int n = argc > 1 ? std::atoi(argv[1]) : 10'000;
  std::mt19937 random(1);
  measure("residual", residualGraph(random, n / 3));
  measure("transformer", transformerGraph(n / 7, 128));
  for (uint32_t span : {5, 20, 100, 1000})
    measure("random " + std::to_string(span), randomGraph(random, n, span));
  measure("all live", std::vector<BufferRequest>(n, {1000, 0, 1}));
}
