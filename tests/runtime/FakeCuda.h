//===- FakeCuda.h - A CUDA driver made of host code -------------*- C++ -*-===//
//
// A shared library with the driver's symbols, so that the CUDA device is tested
// on machines without a GPU. Device memory is host memory; kernels are
// functions of this library, found by name. What is enqueued on a stream runs
// only when somebody waits for it, so a missing wait or a buffer that goes away
// too early shows.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_TESTS_RUNTIME_FAKECUDA_H
#define CHARONIA_TESTS_RUNTIME_FAKECUDA_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// What a tensor map was encoded from.
struct FakeMap {
  bool im2col = false;
  uint64_t address = 0;
  std::vector<uint64_t> extents, strides;
  std::vector<int> corners; ///< Lower, then upper.
  std::vector<uint32_t> box, steps;
  /// Element type, interleave, swizzle, promotion and fill.
  std::vector<int> kinds;
};

struct FakeCuda {
  // What to pretend.
  int initResult = 0;
  int deviceCount = 1;
  int capability = 90;
  int driverVersion = 12030;
  uint64_t memory = uint64_t(1) << 30;
  bool rejectCubins = false;
  bool rejectCapture = false;
  int launchResult = 0;
  int encodeResult = 0;

  // What happened.
  std::map<std::string, int> calls; ///< By the driver function's name.
  int ptxLoaded = 0;
  int cubinsLoaded = 0;
  int overlappedLaunches = 0;
  unsigned lastClusterSize = 0;
  std::vector<FakeMap> maps; ///< Since the fake was reset.
  std::string misuse; ///< The first call that no real driver would accept.
  /// Objects that are alive, by kind.
  std::map<std::string, int> alive;
  uint64_t allocated = 0;

  int count(const std::string &name) const {
    auto found = calls.find(name);
    return found == calls.end() ? 0 : found->second;
  }
};

/// The library's one instance; also exported as "fakeCuda" for dlsym.
extern "C" FakeCuda *fakeCuda();

#endif // CHARONIA_TESTS_RUNTIME_FAKECUDA_H
