//===- AtomicFile.cpp - A file that appears whole or not at all -----------===//

#include "runtime/engine/AtomicFile.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace charonia::engine {

namespace {

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Calls `make(name)` with fresh names beside `path` until one is free.
template <typename Make>
int makeTemporary(const std::string &path, std::string &name, Make make) {
  for (unsigned attempt = 0; attempt < 1000; ++attempt) {
    name = path + ".tmp" + std::to_string(getpid()) + "." +
           std::to_string(attempt);
    int result = make(name.c_str());
    if (result >= 0 || errno != EEXIST)
      return result;
  }
  return -1;
}

} // namespace

AtomicFile::~AtomicFile() {
  if (fd >= 0)
    close(fd);
  if (!temporary.empty())
    unlink(temporary.c_str());
}

Status AtomicFile::failure(const char *doing, int error) const {
  std::string message = "cannot ";
  message += doing;
  message += " '" + target + "': " + std::generic_category().message(error);
  return Status(StatusCode::Io, message);
}

Status AtomicFile::open() {
  resolved = target;
  if (char *real = realpath(target.c_str(), nullptr)) {
    resolved = real;
    free(real);
    struct stat info;
    if (stat(resolved.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
      return Status(StatusCode::Io,
                    "cannot write '" + target + "': " +
                        (S_ISDIR(info.st_mode) ? "it is a directory"
                                               : "it is not a regular file"));
  } else if (errno != ENOENT) {
    return failure("write", errno);
  }
  std::string folder = folderOf(resolved);
#ifdef O_TMPFILE
  fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (fd >= 0)
    return Status::ok();
  if (errno == ENOENT || errno == EACCES || errno == EROFS || errno == ENOTDIR)
    return failure("write", errno);
#endif
  std::string name;
  fd = makeTemporary(resolved, name, [](const char *path) {
    return ::open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
  });
  if (fd < 0)
    return failure("write", errno);
  temporary = name;
  return Status::ok();
}

Status AtomicFile::append(const void *data, size_t size) {
  CHARONIA_RETURN_IF_ERROR(writeAt(written, data, size));
  written += size;
  return Status::ok();
}

Status AtomicFile::writeAt(uint64_t offset, const void *data, size_t size) {
  const char *bytes = static_cast<const char *>(data);
  while (size != 0) {
    // The kernel takes at most 2 GiB at a time.
    ssize_t n = pwrite(fd, bytes, std::min<size_t>(size, size_t(1) << 30),
                       static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR)
        continue;
      return failure("write", errno);
    }
    bytes += n;
    offset += n;
    size -= n;
  }
  return Status::ok();
}

Status AtomicFile::commit() {
  if (fsync(fd) != 0)
    return failure("write", errno);
  if (temporary.empty()) {
    // A nameless file can be given a free name only, so it gets a temporary
    // one.
    std::string self = "/proc/self/fd/" + std::to_string(fd), name;
    if (makeTemporary(resolved, name, [&](const char *path) {
          return linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path,
                        AT_SYMLINK_FOLLOW);
        }) < 0)
      return failure("write", errno);
    temporary = name;
  }
  // close() can report a delayed failure, on network file systems for example.
  int closed = close(fd);
  fd = -1;
  if (closed != 0)
    return failure("write", errno);
  if (rename(temporary.c_str(), resolved.c_str()) != 0)
    return failure("write", errno);
  temporary.clear();
  // Makes the new name survive a power cut; the file is whole either way.
  int folder =
      ::open(folderOf(resolved).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    (void)fsync(folder);
    close(folder);
  }
  return Status::ok();
}

} // namespace charonia::engine
