// An engine whose CUDA program is run by the interpreter instead of a GPU.
#ifndef CHARONIA_TOOLS_CHARONIA_SIMT_SIMTENGINE_H
#define CHARONIA_TOOLS_CHARONIA_SIMT_SIMTENGINE_H

#include "codegen/gpu/interpreter/Interpreter.h"
#include "runtime/engine/Reader.h"
#include "runtime/exec/ExecutionPlan.h"
#include "tools/charonia/Npy.h"
#include <map>

namespace charonia::tool {

struct SimtOptions {
  uint64_t seed = 0;
  interpreter::CopyTiming copies = interpreter::CopyTiming::Late;
};

/// Runs the steps of the program as a device would: the same plan of memory,
/// every kernel from the dump of its stage "thread".
class SimtEngine {
public:
  /// `dump`: the folder that --dump-dir named when the engine was compiled.
  /// `arch` ("sm_90") and `precision` ("fp16") choose the program and its
  /// variant; empty: the only one. An error if none or several fit.
  static Result<SimtEngine> open(const std::string &engine,
                                 const std::string &dump,
                                 const std::string &arch,
                                 const std::string &precision,
                                 mlir::MLIRContext &context);

  /// What is run: "sm_90, fp16".
  std::string description() const;

  const Signature &signature() const { return reader->manifest().signature; }

  /// `inputs` in the signature's order. Findings go to `report`, whatever the
  /// status.
  Result<std::vector<Array>> run(const std::vector<Array> &inputs,
                                 const SimtOptions &options,
                                 interpreter::Report &report);

private:
  struct Memory;
  SimtEngine(std::shared_ptr<const engine::Reader> reader,
             mlir::MLIRContext &context)
      : reader(std::move(reader)), context(&context) {}
  Result<const interpreter::Kernel *> kernelOf(const exec::PlannedStep &step);
  Status checkKernel(const interpreter::Kernel &kernel,
                     const exec::PlannedStep &step) const;
  const engine::Repeat *repeatOf(uint32_t step) const;
  Status launch(const exec::PlannedStep &step, const exec::ExecutionPlan &plan,
                uint32_t number, Memory &memory, const SimtOptions &options,
                interpreter::Report &report);

  std::shared_ptr<const engine::Reader> reader;
  std::string code; ///< Folder with a folder for each kernel.
  mlir::MLIRContext *context;
  const engine::Program *program = nullptr;
  const engine::Variant *variant = nullptr;
  std::map<uint32_t, interpreter::Kernel> kernels;
};

} // namespace charonia::tool

#endif
