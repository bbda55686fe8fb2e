// Compiled kernels on disk, found by what they are made of.
#ifndef CHARONIA_CODEGEN_DRIVER_KERNELCACHE_H
#define CHARONIA_CODEGEN_DRIVER_KERNELCACHE_H

#include "codegen/driver/Backend.h"
#include <mutex>
#include <optional>

namespace charonia::driver {

/// A folder with a file for each kernel, named by a hash of its tile program,
/// its target and the compiler itself. Files appear whole or not at all and are
/// checked when read, so processes may share the folder and a damaged file is
/// only a miss. Thread-safe. Where the folder cannot be written, nothing is
/// kept, and problem() says why.
class KernelCache {
public:
  /// An empty folder name turns the cache off.
  explicit KernelCache(std::string folder);

  /// $XDG_CACHE_HOME/charonia or ~/.cache/charonia; empty if neither is known.
  static std::string defaultFolder();

  /// Hash of a tile program for a target, hexadecimal.
  std::string key(llvm::StringRef program, llvm::StringRef target) const;
  std::optional<KernelBinary> lookup(llvm::StringRef key) const;
  void insert(llvm::StringRef key, const KernelBinary &binary);

  /// Why not all that was compiled is kept; empty if nothing went wrong.
  std::string problem() const;

private:
  std::string pathOf(llvm::StringRef key) const;
  /// The first reason stays.
  void cannotKeep(llvm::StringRef path, std::string why);

  std::string folder;
  /// Hash of the compiler's own program file: another build, other code.
  std::string compiler;
  mutable std::mutex mutex; ///< Of `why`.
  std::string why;
};

} // namespace charonia::driver

#endif
