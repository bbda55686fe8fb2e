// What a compilation is doing, for limits, progress and reports of its cost.
#ifndef CHARONIA_CODEGEN_DRIVER_ACTIVITY_H
#define CHARONIA_CODEGEN_DRIVER_ACTIVITY_H

#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Support/LLVM.h"
#include <chrono>
#include <list>
#include <mutex>
#include <string>
#include <vector>

namespace charonia::driver {

/// One compilation: stages one after another, in the last of them kernels side
/// by side. Thread-safe.
class Activity {
public:
  using Clock = std::chrono::steady_clock;

  /// A stage begins and the one before it ends.
  void enter(llvm::StringRef stage);
  /// What the stage is busy with: a pass, a node of the model.
  void note(llvm::StringRef what);

  /// A kernel that some thread works on for as long as the object lives.
  class Kernel {
  public:
    Kernel(Activity *activity, std::string name,
           std::vector<std::string> nodes);
    ~Kernel();
    Kernel(const Kernel &) = delete;

  private:
    friend class Activity;
    Activity *activity;
    std::string name;
    std::vector<std::string> nodes;
    Clock::time_point start = Clock::now();
    std::list<Kernel *>::iterator place;
  };

  /// Seconds since the first stage began.
  double seconds() const;
  /// Stages with their seconds and the kernels that took longest.
  struct Cost {
    std::string name;
    double seconds;
  };
  std::vector<Cost> stages() const;
  std::vector<Cost> slowestKernels() const;
  /// "stage 'kernels for x86-64-v4', kernel 'add_sin' (nodes 'a', 'b') for 3.1
  /// s", and a line with the time of each stage.
  std::string describe() const;

private:
  std::vector<Cost> stagesLocked() const;

  mutable std::mutex mutex;
  std::vector<Cost> finished;
  std::vector<Cost> slowest; ///< Falling; not more than a few.
  std::string stage = "starting", busyWith;
  Clock::time_point start = Clock::now(), stageStart = start;
  std::list<Kernel *> kernels;
};

/// Tells the activity which pass runs.
class PassActivity : public mlir::PassInstrumentation {
public:
  explicit PassActivity(Activity &activity) : activity(activity) {}
  void runBeforePass(mlir::Pass *pass, mlir::Operation *op) override;

private:
  Activity &activity;
};

} // namespace charonia::driver

#endif
