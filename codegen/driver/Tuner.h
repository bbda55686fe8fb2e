// Schedules by measurement.
#ifndef CHARONIA_CODEGEN_DRIVER_TUNER_H
#define CHARONIA_CODEGEN_DRIVER_TUNER_H

#include "codegen/driver/KernelTimer.h"
#include "codegen/driver/Kernels.h"
#include "codegen/driver/TuningCache.h"
#include <optional>

namespace charonia::driver {

/// Candidates of a kernel: so many that the cost model takes for the best.
inline constexpr unsigned maxCandidates = 16;

struct TuningOptions {
  /// Measures what the cache does not have; null: nothing is measured, and such
  /// kernels keep the cost model's choice.
  KernelTimer *timer = nullptr;
  /// After so long no further kernel is measured; nothing: all are.
  std::optional<double> seconds;
  /// Of compiled candidates; null: none.
  KernelCache *kernelCache = nullptr;
  /// Called after each kernel that was measured: the cache has grown.
  std::function<Status()> keep;
  std::function<void(unsigned done, unsigned total)> progress;
  Activity *activity = nullptr;
};

/// A kernel that was measured, for reports.
struct MeasuredKernel {
  struct Candidate {
    std::string schedule;
    uint32_t rank;  ///< By the cost model, from 1; in this order.
    double seconds; ///< Of a launch, the median.
  };
  std::string name;
  std::vector<Candidate> candidates;
};

struct TuningReport {
  /// Kernels with alternatives; of these: what the cache knew, what was
  /// measured, and what keeps the cost model's choice since nobody measured it.
  unsigned kernels = 0, known = 0, left = 0;
  std::vector<MeasuredKernel> measured;
  double seconds = 0;
  /// What the cache and measurements say of each kernel; nothing where it has
  /// no alternatives or was left.
  std::vector<std::optional<TuningEntry>> entries;
};

/// The key of a kernel in a TuningCache: equal for equal kernels, with the same
/// sizes to optimize for.
std::string tuningKey(const KernelSet &kernels, unsigned number,
                      const Backend &backend);

/// Gives each kernel of `kernels` the schedule that takes least time among
/// those that the cost model ranks (its attribute `schedule`, which is left
/// alone where there is one already): by `cache`, or as measured on the timer's
/// device and noted there. `launches` of each in the program: those that matter
/// most come first. Kernels that get one are taken out of `programs`. Fails
/// with a diagnostic where something has to be measured and cannot.
mlir::FailureOr<TuningReport> tuneKernels(const KernelSet &kernels,
                                          llvm::ArrayRef<unsigned> launches,
                                          TilePrograms &programs,
                                          Backend &backend, TuningCache &cache,
                                          const TuningOptions &options);

/// The name of the engine's note about a kernel of a program.
std::string tuningNote(const std::string &arch, size_t kernel);
/// For reports: "8.12 us by tiles ... (3 of 16 by the cost model, whose first
/// takes 9.01 us), on NVIDIA H200".
std::string describe(const TuningEntry &entry);

} // namespace charonia::driver

#endif
