#include "frontends/common/MappedFile.h"
#include "llvm/Support/FileSystem.h"

using namespace charonia::frontend;
namespace fs = llvm::sys::fs;

std::optional<FileBytes> charonia::frontend::mapFile(llvm::StringRef path,
                                                     Problem &problem) {
  fs::file_status status;
  std::error_code error = fs::status(path, status);
  // A pipe could be read once, and whoever opens it may wait for ever.
  if (!error && status.type() != fs::file_type::regular_file) {
    problem = {"is not a regular file", "copy it into one"};
    return std::nullopt;
  }
  auto descriptor = fs::openNativeFileForRead(path);
  if (!descriptor) {
    problem = {"cannot be read: " + llvm::toString(descriptor.takeError()), ""};
    return std::nullopt;
  }
  // What is open is asked, not what the path may lead to by now.
  error = fs::status(*descriptor, status);
  auto region = std::make_shared<fs::mapped_file_region>();
  if (!error && status.getSize())
    *region =
        fs::mapped_file_region(*descriptor, fs::mapped_file_region::readonly,
                               status.getSize(), 0, error);
  fs::closeFile(*descriptor);
  if (error) {
    problem = {"cannot be mapped: " + error.message(), ""};
    return std::nullopt;
  }
  FileBytes file{{}, region};
  if (status.getSize())
    file.bytes = {region->const_data(), status.getSize()};
  return file;
}
