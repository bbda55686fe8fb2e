//===- ThreadPool.h - Spreading a grid over threads -------------*- C++ -*-===//
//
// An engine runs some sixty kernels of 20 us to 2 ms in a row, so what counts
// is the time between one kernel's end and the next one's start. Workers
// therefore spin for a while before they sleep, and the caller never waits for
// a worker that has not begun: it takes over that worker's share.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_RUNTIME_DEVICE_CPU_THREADPOOL_H
#define CHARONIA_RUNTIME_DEVICE_CPU_THREADPOOL_H

#include "charonia/status.h"
#include "runtime/device/Fork.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace charonia::cpu {

/// A pool of `threads` threads, one of which is the thread that calls run().
/// One run() at a time; a pool per context.
class ThreadPool {
public:
  /// Runs program instances [begin, end) on thread number `thread`.
  using Body = void (*)(void *argument, int thread, int64_t begin, int64_t end);

  /// Ends the threads; in a child process, which has none of them, leaves the
  /// pool as it is: their locks may be held for ever.
  struct End {
    void operator()(ThreadPool *pool) const;
  };
  using Ptr = std::unique_ptr<ThreadPool, End>;

  static Result<Ptr> create(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  /// Whether the threads belong to a parent process; run() must not be called.
  bool inherited() const { return mark.inherited(); }

  int threads() const { return static_cast<int>(shares.size()); }

  /// Calls `body` on disjoint ranges that cover [0, grid), each at least
  /// `grain` long where the grid allows, and returns when all have returned.
  void run(int64_t grid, int64_t grain, Body body, void *argument);

  /// Hints that run() will be called soon: wakes workers that sleep.
  void wake();

private:
  ThreadPool() = default;

  /// A thread's part of the grid. Its owner and, when they are done with their
  /// own, the others claim pieces from the front.
  struct alignas(128) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void worker(int self);
  void work(int self);
  bool claim(Share &share, int64_t &begin, int64_t &end) const;
  /// Waits for a job that is newer than `seen`; false: the pool ends.
  bool awaitJob(uint64_t seen);

  // The state word: bits 0..23 count the workers inside the job, bit 24 says
  // that it may be entered, the bits above are its number.
  static constexpr uint64_t insideMask = (uint64_t(1) << 24) - 1;
  static constexpr uint64_t openBit = uint64_t(1) << 24;
  static constexpr uint64_t jobOne = uint64_t(1) << 25;
  alignas(128) std::atomic<uint64_t> state{0};

  // The job; written while no worker is inside.
  alignas(128) Body body = nullptr;
  void *argument = nullptr;
  int64_t grain = 1;
  std::vector<Share> shares;

  alignas(128) std::atomic<int> sleepers{0};
  std::atomic<bool> ending{false};
  std::mutex mutex;
  std::condition_variable condition;
  uint64_t wakeCount = 0; ///< Under the mutex.
  ProcessMark mark;
  std::vector<std::thread> workers;
};

} // namespace charonia::cpu

#endif // CHARONIA_RUNTIME_DEVICE_CPU_THREADPOOL_H
