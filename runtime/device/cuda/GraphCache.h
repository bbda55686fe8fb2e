//===- GraphCache.h - Recorded graphs per shape and binding -----*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_DEVICE_CUDA_GRAPHCACHE_H
#define CHARONIA_RUNTIME_DEVICE_CUDA_GRAPHCACHE_H

#include "runtime/device/cuda/CudaDevice.h"

#include <functional>
#include <map>
#include <vector>

namespace charonia::cuda {

/// A graph has addresses in it, so it belongs to a plan and to the addresses of
/// arena, inputs and outputs. Recording costs more than launching the kernels
/// once: a combination is recorded when it comes back, and callers whose memory
/// is new each time never pay for graphs.
class GraphCache {
public:
  using Addresses = std::vector<DevicePtr>;
  using Enqueue = std::function<Status(CuStream)>;

  static Result<GraphCache> create(DeviceRef device);
  GraphCache(GraphCache &&) = default;
  GraphCache &operator=(GraphCache &&) = default;
  ~GraphCache();

  /// Runs what `enqueue` enqueues, on `stream`: from a graph or by calling it.
  Status run(const void *plan, const Addresses &addresses, CuStream stream,
             const Enqueue &enqueue);
  void forget(const void *plan);

private:
  explicit GraphCache(DeviceRef device) : device(std::move(device)) {}

  struct Entry {
    Addresses addresses;
    CuGraphExec graph = nullptr;
  };
  struct Plan {
    std::vector<Entry> entries;  ///< Most recently used first.
    std::vector<Addresses> seen; ///< Once, without being recorded.
  };
  Status record(Plan &plan, const Addresses &addresses, const Enqueue &enqueue);

  DeviceRef device;
  Stream recording; ///< The caller's stream may be one that cannot record.
  std::map<const void *, Plan> plans;
  bool works = true;
};

} // namespace charonia::cuda

#endif // CHARONIA_RUNTIME_DEVICE_CUDA_GRAPHCACHE_H
