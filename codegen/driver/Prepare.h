// What @prepare computes, by the compiler's own kernels on the machine that
// compiles.
#ifndef CHARONIA_CODEGEN_DRIVER_PREPARE_H
#define CHARONIA_CODEGEN_DRIVER_PREPARE_H

#include "charonia/runtime.h"
#include "codegen/driver/Kernels.h"

namespace charonia::driver {

/// Computes prepared weights one by one, when they are written to the engine,
/// so that at no time more than one of them is in memory.
class Preparation {
public:
  /// Compiles @prepare (null: there is none), result by result; equal ones
  /// once.
  static mlir::FailureOr<std::unique_ptr<Preparation>>
  create(mlir::func::FuncOp prepare, Backend &host,
         const KernelOptions &options);

  /// Whether `name` is a prepared weight.
  bool contains(llvm::StringRef name) const { return units.count(name); }
  /// The bytes of a prepared weight; calls `consume` with them.
  Status
  compute(llvm::StringRef name,
          llvm::function_ref<Status(std::span<const std::byte>)> consume);
  /// Distinct kernels that were compiled.
  unsigned numKernels() const { return kernels; }

private:
  struct Code;
  /// One result: code that may be shared, and the weights that it reads.
  struct Unit {
    std::shared_ptr<Code> code;
    std::vector<std::string> weights;
  };
  explicit Preparation(mlir::MLIRContext *context) : context(context) {}
  mlir::LogicalResult addUnit(mlir::func::FuncOp prepare, unsigned result,
                              llvm::StringMap<std::shared_ptr<Code>> &known);

  mlir::MLIRContext *context;
  llvm::StringMap<Unit> units;
  unsigned kernels = 0;
};

} // namespace charonia::driver

#endif
