// For what is only tried.
#ifndef CHARONIA_CODEGEN_DRIVER_SILENCE_H
#define CHARONIA_CODEGEN_DRIVER_SILENCE_H

#include "mlir/IR/Diagnostics.h"
#include <thread>

namespace charonia::driver {

/// Keeps what this thread reports to itself: of what is tried, an error means
/// that it is none.
class Silence {
public:
  explicit Silence(mlir::MLIRContext *context)
      : handler(context,
                [own = std::this_thread::get_id()](mlir::Diagnostic &) {
                  return llvm::success(std::this_thread::get_id() == own);
                }) {}

private:
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace charonia::driver

#endif
