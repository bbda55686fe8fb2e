//===- AtomicFile.h - A file that appears whole or not at all ---*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_ENGINE_ATOMICFILE_H
#define CHARONIA_RUNTIME_ENGINE_ATOMICFILE_H

#include "charonia/status.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace charonia::engine {

/// Writes beside `path` and takes its place on commit(). Until then, and if
/// commit() fails or is never called, `path` is untouched and nothing remains.
/// Where the file system can, the unfinished file has no name at all, so that
/// not even a killed process leaves one behind.
class AtomicFile {
public:
  explicit AtomicFile(std::string path) : target(std::move(path)) {}
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  Status open();
  Status append(const void *data, size_t size);
  Status writeAt(uint64_t offset, const void *data, size_t size);
  uint64_t position() const { return written; }
  Status commit();

private:
  Status failure(const char *doing, int error) const;

  std::string target;    ///< As given, for messages.
  std::string resolved;  ///< With symbolic links followed.
  std::string temporary; ///< Name of the unfinished file; empty: it has none.
  int fd = -1;
  uint64_t written = 0;
};

} // namespace charonia::engine

#endif // CHARONIA_RUNTIME_ENGINE_ATOMICFILE_H
