// The graph passes of a compilation, in order.
#ifndef CHARONIA_CODEGEN_DRIVER_PIPELINE_H
#define CHARONIA_CODEGEN_DRIVER_PIPELINE_H

#include "charonia/types.h"
#include "mlir/Pass/PassManager.h"
#include <functional>
#include <string>
#include <vector>

namespace charonia::driver {

/// A part of the pipeline that --stop-after and --dump-dir know by name.
struct Stage {
  std::string name;
  std::function<void(mlir::OpPassManager &)> build;
};

/// What the passes need to know of a program that is to come.
struct PipelineOptions {
  DeviceKind device = DeviceKind::Cpu;
  /// fp32, tf32, fp16 or bf16.
  std::string precision = "fp32";
  /// CPU: columns of a panel of packed weights.
  int64_t panelColumns = 32;
  /// GPU: multiprocessors of the largest chip that gets a program.
  int64_t multiprocessors = 132;
};

/// For the module as it was imported, once for all programs.
std::vector<Stage> commonStages();
/// For each program's copy of the module.
std::vector<Stage> programStages(const PipelineOptions &options);

} // namespace charonia::driver

#endif
