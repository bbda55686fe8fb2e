// Files that are read where they lie.
#ifndef CHARONIA_FRONTENDS_COMMON_MAPPEDFILE_H
#define CHARONIA_FRONTENDS_COMMON_MAPPEDFILE_H

#include "frontends/common/Emitter.h"
#include <memory>

namespace charonia::frontend {

/// Bytes and what keeps them alive.
struct FileBytes {
  llvm::ArrayRef<char> bytes;
  std::shared_ptr<const void> owner;
  llvm::StringRef text() const { return {bytes.data(), bytes.size()}; }
};

/// The file at `path`, mapped read-only; none and a problem where it cannot be,
/// or is no regular file.
std::optional<FileBytes> mapFile(llvm::StringRef path, Problem &problem);

} // namespace charonia::frontend

#endif
