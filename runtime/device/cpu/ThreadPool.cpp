//===- ThreadPool.cpp - Spreading a grid over threads ---------------------===//

#include "runtime/device/cpu/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include <immintrin.h>

namespace charonia::cpu {

namespace {

using Clock = std::chrono::steady_clock;

/// Long enough for the gap between two kernels and for the caller's work
/// between two runs, short enough not to show in a process that is idle.
constexpr auto spinTime = std::chrono::microseconds(200);
/// From then on a spinning thread lets others run between two looks.
constexpr auto politeAfter = std::chrono::microseconds(30);

/// Spins until `ready()`; false if that took too long.
template <typename Ready> bool spinUntil(Ready ready, bool forever) {
  for (int i = 0; i < 256; ++i) {
    if (ready())
      return true;
    _mm_pause();
  }
  auto start = Clock::now();
  bool polite = false;
  for (;;) {
    for (int i = 0; i < (polite ? 1 : 64); ++i) {
      if (ready())
        return true;
      _mm_pause();
    }
    auto spent = Clock::now() - start;
    polite = spent > politeAfter;
    if (polite)
      std::this_thread::yield();
    if (!forever && spent > spinTime)
      return false;
  }
}

} // namespace

void ThreadPool::End::operator()(ThreadPool *pool) const {
  if (!pool->inherited())
    delete pool;
}

Result<ThreadPool::Ptr> ThreadPool::create(int threads) {
  Ptr pool(new ThreadPool());
  pool->shares = std::vector<Share>(threads);
  try {
    for (int i = 1; i < threads; ++i)
      pool->workers.emplace_back([p = pool.get(), i] { p->worker(i); });
  } catch (const std::system_error &error) {
    return Status(StatusCode::Unavailable, "cannot start " +
                                               std::to_string(threads) +
                                               " threads: " + error.what());
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  ending.store(true);
  {
    std::lock_guard lock(mutex);
    ++wakeCount;
  }
  condition.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::wake() {
  if (sleepers.load() == 0)
    return;
  {
    std::lock_guard lock(mutex);
    ++wakeCount;
  }
  condition.notify_all();
}

bool ThreadPool::awaitJob(uint64_t seen) {
  auto ready = [&] {
    uint64_t now = state.load(std::memory_order_acquire);
    return ((now & openBit) && now / jobOne != seen) ||
           ending.load(std::memory_order_relaxed);
  };
  while (!spinUntil(ready, /*forever=*/false)) {
    std::unique_lock lock(mutex);
    uint64_t count = wakeCount;
    // run() publishes the job before it looks for sleepers, and this announces
    // itself before it looks for a job, both sequentially consistent: one of
    // the two sees the other.
    sleepers.fetch_add(1);
    uint64_t now = state.load();
    bool job = (now & openBit) && now / jobOne != seen;
    if (!job && !ending.load())
      condition.wait(lock, [&] { return wakeCount != count; });
    sleepers.fetch_sub(1);
  }
  return !ending.load(std::memory_order_relaxed);
}

void ThreadPool::worker(int self) {
  uint64_t seen = 0;
  while (awaitJob(seen)) {
    // Inside, the job cannot be replaced. It may have closed in between; then
    // the worker leaves without having touched it.
    uint64_t now = state.fetch_add(1, std::memory_order_acq_rel);
    if ((now & openBit) && now / jobOne != seen) {
      seen = now / jobOne;
      work(self);
    }
    state.fetch_sub(1, std::memory_order_acq_rel);
  }
}

bool ThreadPool::claim(Share &share, int64_t &begin, int64_t &end) const {
  int64_t next = share.next.load(std::memory_order_relaxed);
  for (;;) {
    int64_t left = share.end - next;
    if (left <= 0)
      return false;
    // Half of what is left, in whole grains: a thread that is not disturbed
    // needs few claims, and what others can take over stays available for long.
    int64_t half = (left / 2 + grain - 1) / grain * grain;
    int64_t size = std::min(left, std::max(grain, half));
    if (share.next.compare_exchange_weak(next, next + size,
                                         std::memory_order_relaxed)) {
      begin = next;
      end = next + size;
      return true;
    }
  }
}

void ThreadPool::work(int self) {
  int count = threads();
  for (int i = 0; i < count; ++i) {
    int victim = self + i < count ? self + i : self + i - count;
    int64_t begin, end;
    while (claim(shares[victim], begin, end))
      body(argument, self, begin, end);
  }
}

void ThreadPool::run(int64_t grid, int64_t grainSize, Body bodyFn,
                     void *bodyArgument) {
  if (grid <= 0)
    return;
  int count = threads();
  if (count == 1 || grid <= grainSize) {
    bodyFn(bodyArgument, 0, 0, grid);
    return;
  }
  // A worker may be inside by mistake for a moment; it looks at the job only
  // after it has seen it open, so this may be written meanwhile.
  body = bodyFn;
  argument = bodyArgument;
  grain = std::max<int64_t>(grainSize, 1);
  // Equal shares in whole grains; the same thread gets the same part of the
  // grid in every kernel, which keeps its data in its caches.
  int64_t grains = (grid + grain - 1) / grain;
  int64_t each = grains / count, more = grains % count, position = 0;
  for (int i = 0; i < count; ++i) {
    shares[i].next.store(position, std::memory_order_relaxed);
    position = std::min(grid, position + (each + (i < more)) * grain);
    shares[i].end = position;
  }
  state.fetch_add(jobOne + openBit);
  wake();
  work(0);
  // All is claimed. Workers that have not entered yet need not.
  state.fetch_and(~openBit, std::memory_order_acq_rel);
  spinUntil(
      [&] { return (state.load(std::memory_order_acquire) & insideMask) == 0; },
      /*forever=*/true);
}

} // namespace charonia::cpu
