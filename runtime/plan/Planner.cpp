//===- Planner.cpp - Packing buffers into one arena -----------------------===//
//
// Packers that look at pairs of groups that live together have a budget of such
// looks (Greedy.cpp); where so many live
// together that one packing would pass it, sweeps over time pack the groups in
// n log n (Sweep.cpp). So time and memory are bounded by the number of buffers.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/Planner.h"
#include "runtime/plan/Packing.h"

#include <algorithm>
#include <string>
#include <utility>

namespace charonia::plan {

namespace {

/// Largest sums of sizes that are live at one step.
struct LiveSums {
  uint64_t bytes = 0, aligned = 0; ///< As they are; each aligned by itself.
};
LiveSums largestLiveSums(const std::vector<Group> &groups) {
  Order births =
            orderBy(groups.size(), [&](uint32_t g) { return groups[g].first; }),
        deaths =
            orderBy(groups.size(), [&](uint32_t g) { return groups[g].last; });
  LiveSums live, most;
  auto next = deaths.begin();
  auto aligned = [](const Group &group) {
    return alignUp(group.size, group.alignment);
  };
  for (uint32_t g : births) {
    for (; groups[*next].last < groups[g].first; ++next) {
      live.bytes -= groups[*next].size;
      live.aligned -= aligned(groups[*next]);
    }
    live.bytes += groups[g].size;
    live.aligned += aligned(groups[g]);
    most.bytes = std::max(most.bytes, live.bytes);
    most.aligned = std::max(most.aligned, live.aligned);
  }
  return most;
}

/// Where there are more groups, the second sweep is not worth its time.
constexpr size_t mostSweptTwice = 4096;

Packing packGroups(const std::vector<Group> &groups, uint64_t goal,
                   uint64_t &looks) {
  Packing best;
  looks = packGreedily(groups, goal, best);
  for (bool backward : {false, true})
    if (looks == 0 && best.peak > goal &&
        !(backward && groups.size() > mostSweptTwice))
      if (Packing packing = sweep(groups, backward); packing.peak < best.peak)
        best = std::move(packing);
  return best;
}

Status wrong(size_t index, const char *what) {
  return Status(StatusCode::InvalidArgument,
                "memory planner: buffer " + std::to_string(index) + " " + what);
}

/// Sizes, lifetimes and alignments make sense, each by itself and all in sum.
Status checkRequests(std::span<const BufferRequest> requests) {
  uint64_t total = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const BufferRequest &request = requests[i];
    if (request.firstStep > request.lastStep)
      return wrong(i, "dies before it is born");
    if (request.alignment == 0 ||
        (request.alignment & (request.alignment - 1)) != 0)
      return wrong(i, "has an alignment that is no power of two");
    // Leaves room for aligning every buffer up.
    if (request.size > INT64_MAX / 2 ||
        __builtin_add_overflow(total, request.size + request.alignment,
                               &total) ||
        total > INT64_MAX / 2)
      return Status(StatusCode::OutOfRange,
                    "memory planner: the buffers' sizes overflow");
  }
  return Status::ok();
}

} // namespace

Result<ArenaPlan> planArena(std::span<const BufferRequest> requests) {
  CHARONIA_RETURN_IF_ERROR(checkRequests(requests));
  // Nothing is placed for empty buffers.
  std::vector<Group> groups;
  ArenaPlan plan;
  for (const BufferRequest &request : requests)
    if (request.size != 0) {
      groups.push_back({request.size, request.alignment, request.firstStep,
                        request.lastStep});
      plan.alignment = std::max<uint64_t>(plan.alignment, request.alignment);
    }

  plan.offsets.resize(requests.size());
  LiveSums most = largestLiveSums(groups);
  plan.lowerBound = most.bytes;
  if (groups.empty())
    return plan;
  Packing packing = packGroups(groups, most.aligned, plan.looks);
  plan.peak = packing.peak;
  for (size_t i = 0, group = 0; i < requests.size(); ++i)
    if (requests[i].size != 0)
      plan.offsets[i] = packing.offsets[group++];
  return plan;
}

} // namespace charonia::plan
