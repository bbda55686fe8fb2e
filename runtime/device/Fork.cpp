//===- Fork.cpp - Whether a child process came in between -----------------===//

#include "runtime/device/Fork.h"

#include <atomic>

#include <pthread.h>

namespace charonia {

namespace {
std::atomic<uint64_t> forkCount{0};
} // namespace

uint64_t ProcessMark::forksSoFar() {
  // Before the first object, so before any fork that matters.
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { ++forkCount; });
  return forkCount.load(std::memory_order_relaxed);
}

} // namespace charonia
