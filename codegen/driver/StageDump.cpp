#include "codegen/driver/StageDump.h"
#include "codegen/driver/WeightFile.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace charonia::driver {

std::string StageDump::pathOf(const Twine &name) const {
  SmallString<128> path(folder);
  std::string number;
  llvm::raw_string_ostream(number) << llvm::format("%02u-", written);
  llvm::sys::path::append(path, number + name);
  return std::string(path);
}

LogicalResult StageDump::write(ModuleOp module, const Twine &name) {
  if (folder.empty())
    return success();
  auto error = [&] { return emitError(UnknownLoc::get(module.getContext())); };
  if (std::error_code failed = llvm::sys::fs::create_directories(folder))
    return error() << folder << ": " << failed.message();
  std::string path = pathOf(name + ".mlir");
  std::error_code failed;
  llvm::raw_fd_ostream file(path, failed);
  if (!failed) {
    module->print(file, OpPrintingFlags().enableDebugInfo());
    file.flush();
    failed = file.error();
    file.clear_error();
  }
  if (failed)
    return error() << path << ": " << failed.message();
  if (std::string text =
          writeWeightFile(module, pathOf(name + ".safetensors"), weights);
      !text.empty())
    return error() << text;
  ++written;
  return success();
}

std::string StageDump::takeFolder(const Twine &name) {
  if (folder.empty())
    return {};
  std::string path = pathOf(name);
  ++written;
  return path;
}

} // namespace charonia::driver
