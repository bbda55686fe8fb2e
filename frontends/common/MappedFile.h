// Files that are read where they lie.
#ifndef CHARONIA_FRONTENDS_COMMON_MAPPEDFILE_H
#define CHARONIA_FRONTENDS_COMMON_MAPPEDFILE_H

#include "frontends/common/Emitter.h"
#include "llvm/ADT/StringMap.h"
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

/// Files that a model's file names, mapped read-only, each once. After symbolic
/// links and `..` are followed they have to lie in the model's folder, or in
/// that of the file that the model is a link to: caches of models are trees of
/// such links.
class FolderFiles {
public:
  /// `what` the files hold, as in "external data"; `folder` is empty where the
  /// model came from memory: then none may be used. `model` is its file.
  FolderFiles(llvm::StringRef what, llvm::StringRef folder,
              llvm::StringRef model)
      : what(what.str()), folder(folder.str()), model(model.str()) {}

  /// The file at `location` below the folder; none and a problem, which names
  /// it, where it may not be used.
  std::optional<FileBytes> open(llvm::StringRef location, Problem &problem);

private:
  std::string what, folder, model;
  /// By the path that links lead to.
  llvm::StringMap<FileBytes> files;
};

} // namespace charonia::frontend

#endif
