//===- Fork.h - Whether a child process came in between ---------*- C++ -*-===//
//
// After fork() a child has the parent's memory but none of its threads, and a
// CUDA driver that must not be called. Objects that depend on either remember
// the process they were made in.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_RUNTIME_DEVICE_FORK_H
#define CHARONIA_RUNTIME_DEVICE_FORK_H

#include <cstdint>

namespace charonia {

/// Made in the process that makes the object.
class ProcessMark {
public:
  ProcessMark() : forks(forksSoFar()) {}
  /// Whether this process is a child of the one that made the object. Costs a
  /// load: forks are counted by a handler, not found by asking for the process.
  bool inherited() const { return forks != forksSoFar(); }

private:
  static uint64_t forksSoFar();
  uint64_t forks;
};

} // namespace charonia

#endif // CHARONIA_RUNTIME_DEVICE_FORK_H
