//===- GraphCache.cpp - Recorded graphs per shape and binding -------------===//

#include "runtime/device/cuda/GraphCache.h"

#include <algorithm>

namespace charonia::cuda {

namespace {
// Callers that alternate between a few sets of buffers stay on graphs.
constexpr size_t maxGraphsPerPlan = 4;
constexpr size_t maxSeenPerPlan = 8;
} // namespace

Result<GraphCache> GraphCache::create(DeviceRef device) {
  GraphCache cache(device);
  CHARONIA_ASSIGN_OR_RETURN(cache.recording, Stream::create(std::move(device)));
  return cache;
}

GraphCache::~GraphCache() {
  while (!plans.empty())
    forget(plans.begin()->first);
}

void GraphCache::forget(const void *plan) {
  auto found = plans.find(plan);
  if (found == plans.end())
    return;
  CudaDevice::Scope scope(*device);
  for (Entry &entry : found->second.entries)
    if (!device->inherited())
      device->driver().graphExecDestroy(entry.graph);
  plans.erase(found);
}

Status GraphCache::run(const void *planKey, const Addresses &addresses,
                       CuStream stream, const Enqueue &enqueue) {
  if (!works)
    return enqueue(stream);
  Plan &plan = plans[planKey];
  auto entry = std::ranges::find(plan.entries, addresses, &Entry::addresses);
  if (entry == plan.entries.end()) {
    auto seen = std::ranges::find(plan.seen, addresses);
    if (seen == plan.seen.end()) {
      if (plan.seen.size() == maxSeenPerPlan)
        plan.seen.erase(plan.seen.begin());
      plan.seen.push_back(addresses);
      return enqueue(stream);
    }
    plan.seen.erase(seen);
    if (!record(plan, addresses, enqueue)) {
      // Graphs are an optimization; if it is a real failure, this repeats it.
      works = false;
      return enqueue(stream);
    }
  } else {
    std::rotate(plan.entries.begin(), entry, entry + 1);
  }
  const Driver &api = device->driver();
  return api.check(api.graphLaunch(plan.entries.front().graph, stream),
                   "launching a graph");
}

Status GraphCache::record(Plan &plan, const Addresses &addresses,
                          const Enqueue &enqueue) {
  const Driver &api = device->driver();
  CHARONIA_RETURN_IF_ERROR(
      api.check(api.streamBeginCapture(recording.get(), captureRelaxed),
                "recording a graph"));
  Status enqueued = enqueue(recording.get());
  CuGraph graph = nullptr;
  // Must be ended whatever happened.
  Status ended = api.check(api.streamEndCapture(recording.get(), &graph),
                           "recording a graph");
  if (enqueued && ended) {
    Entry entry;
    if (plan.entries.size() == maxGraphsPerPlan) {
      entry = std::move(plan.entries.back());
      plan.entries.pop_back();
      GraphUpdateResult details = {};
      if (!api.graphExecUpdate ||
          api.graphExecUpdate(entry.graph, graph, &details) != cudaSuccess) {
        api.graphExecDestroy(entry.graph);
        entry.graph = nullptr;
      }
    }
    if (!entry.graph)
      ended = api.check(api.graphInstantiate(&entry.graph, graph, 0),
                        "making a graph ready");
    if (ended) {
      entry.addresses = addresses;
      plan.entries.insert(plan.entries.begin(), std::move(entry));
    }
  }
  if (graph)
    api.graphDestroy(graph);
  return enqueued ? ended : enqueued;
}

} // namespace charonia::cuda
