// What measures kernels for the tuner: given to the compiler by whoever has a
// device.
#ifndef CHARONIA_CODEGEN_DRIVER_KERNELTIMER_H
#define CHARONIA_CODEGEN_DRIVER_KERNELTIMER_H

#include "charonia/status.h"
#include "charonia/types.h"
#include <memory>
#include <string>
#include <vector>

namespace charonia::driver {

/// A trial engine on a device, with its inputs bound. For one thread.
class Trial {
public:
  virtual ~Trial() = default;
  /// Runs it; seconds that its launches took on the device.
  virtual Result<double> run() = 0;
  /// Elements of the outputs of the last run, the same ones of every trial that
  /// was loaded with it.
  virtual Result<std::vector<double>> results() = 0;
};

/// An engine file in memory of one candidate (TrialEngine.h), and the words for
/// its schedule.
struct TrialEngine {
  std::vector<std::byte> bytes;
  std::string schedule;
};

/// For one thread.
class KernelTimer {
public:
  virtual ~KernelTimer() = default;
  /// The device on which code for `arch` is measured: "NVIDIA H200". An error
  /// that says what is here instead where there is none of that kind.
  virtual Result<std::string> deviceFor(DeviceKind kind,
                                        const std::string &arch) = 0;
  /// Engines of equal signatures, on the same random inputs in memory of the
  /// device. Inputs whose names agree up to a dot have equal values. In the
  /// order of `engines`; an error in place of what cannot be loaded.
  virtual std::vector<Result<std::unique_ptr<Trial>>>
  load(const std::vector<TrialEngine> &engines, DeviceKind kind,
       const std::string &arch) = 0;
};

} // namespace charonia::driver

#endif
