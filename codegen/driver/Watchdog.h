// Ends a compilation that takes more time or memory than it may.
#ifndef CHARONIA_CODEGEN_DRIVER_WATCHDOG_H
#define CHARONIA_CODEGEN_DRIVER_WATCHDOG_H

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace charonia::driver {

struct Limits {
  /// Of the clock on the wall, from the start of the watchdog; 0: none.
  double seconds = 0;
  /// Of the process's own memory, which the files that it maps are not part of;
  /// 0: none.
  uint64_t bytes = 0;
};

/// Looks at the process from a thread of its own, several times a second, until
/// it is destroyed: what exceeds a limit may be a single pass of LLVM that asks
/// nobody. `exceeded` is called once, with which limit it was; it is expected
/// to end the process.
class Watchdog {
public:
  Watchdog(Limits limits, std::function<void(const std::string &)> exceeded);
  ~Watchdog();

  /// From here on nothing is exceeded. Waits where `exceeded` is being called.
  void disarm();

private:
  void watch();

  Limits limits;
  std::function<void(const std::string &)> exceeded;
  std::mutex mutex;
  std::condition_variable wake;
  bool done = false;
  std::thread thread;
};

/// Memory of the process in bytes, without mapped files; 0 if the system does
/// not say.
uint64_t ownMemory();

} // namespace charonia::driver

#endif
