// The folder of --dump-dir.
#ifndef CHARONIA_CODEGEN_DRIVER_STAGEDUMP_H
#define CHARONIA_CODEGEN_DRIVER_STAGEDUMP_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"
#include <string>

namespace charonia::driver {

/// Modules after their stages, and folders of code, numbered in order.
class StageDump {
public:
  /// An empty `folder`: nothing is written.
  explicit StageDump(std::string folder) : folder(std::move(folder)) {}

  /// Writes the module, and beside it the weights that no earlier one had.
  llvm::LogicalResult write(mlir::ModuleOp module, const llvm::Twine &name);
  /// The next folder, for others to fill; empty where nothing is written.
  std::string takeFolder(const llvm::Twine &name);

private:
  std::string pathOf(const llvm::Twine &name) const;

  std::string folder;
  unsigned written = 0;
  llvm::StringSet<> weights;
};

} // namespace charonia::driver

#endif
