#include "codegen/driver/Watchdog.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <unistd.h>

namespace charonia::driver {

uint64_t ownMemory() {
  // Pages: size, resident, shared with files, ...
  auto file = llvm::MemoryBuffer::getFileAsStream("/proc/self/statm");
  if (!file)
    return 0;
  llvm::SmallVector<llvm::StringRef> fields;
  (*file)->getBuffer().split(fields, ' ');
  uint64_t resident = 0, shared = 0;
  if (fields.size() < 3 || fields[1].getAsInteger(10, resident) ||
      fields[2].getAsInteger(10, shared) || shared > resident)
    return 0;
  return (resident - shared) * sysconf(_SC_PAGESIZE);
}

Watchdog::Watchdog(Limits limits,
                   std::function<void(const std::string &)> exceeded)
    : limits(limits), exceeded(std::move(exceeded)) {
  if (limits.seconds > 0 || limits.bytes > 0)
    thread = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  disarm();
  if (thread.joinable())
    thread.join();
}

void Watchdog::disarm() {
  {
    std::lock_guard lock(mutex);
    done = true;
  }
  wake.notify_one();
}

void Watchdog::watch() {
  using Clock = std::chrono::steady_clock;
  constexpr auto interval = std::chrono::milliseconds(20);
  // Longer than a process lives, and within what the clock can count.
  double seconds = std::min(limits.seconds, 1e9);
  auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(seconds));
  std::unique_lock lock(mutex);
  while (!done) {
    std::string which;
    if (limits.seconds > 0 && Clock::now() >= deadline)
      which = llvm::formatv("the time limit of {0} s", limits.seconds);
    else if (uint64_t used = limits.bytes ? ownMemory() : 0;
             used > limits.bytes)
      // Rounded up, so that it is seen to be more.
      which = llvm::formatv("the memory limit of {0} MB ({1} MB are in use)",
                            limits.bytes / 1000000, (used + 999999) / 1000000);
    // With the lock, for which disarm() waits.
    if (!which.empty())
      return exceeded(which);
    auto next = Clock::now() + interval;
    if (!limits.bytes)
      next = deadline;
    else if (limits.seconds > 0)
      next = std::min(next, deadline);
    wake.wait_until(lock, next, [&] { return done; });
  }
}

} // namespace charonia::driver
