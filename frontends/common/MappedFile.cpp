#include "frontends/common/MappedFile.h"
#include "frontends/common/Diagnostic.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <climits>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace charonia::frontend;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;
using llvm::StringRef;

namespace {
/// A file descriptor; closed at the end.
class Descriptor {
public:
  explicit Descriptor(int number) : number(number) {}
  Descriptor(Descriptor &&other) : number(std::exchange(other.number, -1)) {}
  ~Descriptor() {
    if (number >= 0)
      ::close(number);
  }
  explicit operator bool() const { return number >= 0; }
  int get() const { return number; }
  /// The name under which the system shows it, which opens what it is open on,
  /// whatever has happened to paths meanwhile.
  std::string name() const { return "/proc/self/fd/" + std::to_string(number); }

private:
  int number;
};
} // namespace

static std::string lastError() {
  return std::error_code(errno, std::generic_category()).message();
}

/// Maps what is open, if it is a regular file; else what is wrong with it.
static std::string map(const Descriptor &descriptor, FileBytes &file) {
  struct stat status;
  if (::fstat(descriptor.get(), &status))
    return "cannot be read: " + lastError();
  if (!S_ISREG(status.st_mode))
    return "is not a regular file";
  auto region = std::make_shared<fs::mapped_file_region>();
  size_t size = status.st_size;
  std::error_code error;
  if (size)
    *region = fs::mapped_file_region(
        fs::convertFDToNativeFile(descriptor.get()),
        fs::mapped_file_region::readonly, size, 0, error);
  if (error)
    return "cannot be mapped: " + error.message();
  file = {{}, region};
  if (size)
    file.bytes = {region->const_data(), size};
  return "";
}

std::optional<FileBytes> charonia::frontend::mapFile(StringRef path,
                                                     Problem &problem) {
  // A pipe could be read once, and whoever opens it may wait for ever: what is
  // open is asked, not what the path may lead to by now.
  Descriptor descriptor(
      ::open(path.str().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!descriptor) {
    problem = {"cannot be read: " + lastError(), ""};
    return std::nullopt;
  }
  FileBytes file;
  std::string wrong = map(descriptor, file);
  if (wrong.empty())
    return file;
  problem = {wrong, "copy it into a regular file"};
  return std::nullopt;
}

/// Where a descriptor's file lies; an error in errno.
static std::optional<std::string> pathOf(const Descriptor &descriptor) {
  std::string path(PATH_MAX, 0);
  ssize_t size =
      ::readlink(descriptor.name().c_str(), path.data(), path.size());
  if (size < 0)
    return std::nullopt;
  path.resize(size);
  return path;
}

static bool isInside(StringRef file, StringRef folder) {
  return file.consume_front(folder) && (folder == "/" || file.starts_with("/"));
}

std::optional<FileBytes> FolderFiles::open(StringRef location,
                                           Problem &problem) {
  std::string shown = what + " file '" + printable(location.str()) + "'";
  auto fail = [&](std::string wrong, std::string remedy) {
    problem = {shown + " " + wrong, std::move(remedy)};
    return std::nullopt;
  };
  if (folder.empty())
    return fail("cannot be used: the model was given as bytes",
                "give the model as a file");
  if (location.empty())
    return fail("has no name", "export the model again");
  if (location.contains('\0'))
    return fail("has a name that no file can have", "export the model again");
  llvm::SmallString<256> base, behind;
  if (std::error_code error = fs::real_path(folder, base))
    return fail("cannot be found: the model's folder: " + error.message(), "");
  std::string rule =
      what + " has to lie in the model's folder, " + base.str().str();
  if (path::is_absolute(location))
    return fail("is an absolute path", rule);
  if (!fs::real_path(model, behind))
    path::remove_filename(behind);
  else
    behind = base;
  // What is open is checked, not a path that may change before it is opened. At
  // first nothing can be read and nothing happens: it may be a device.
  auto openIn = [&](StringRef start) {
    llvm::SmallString<256> wanted(start);
    path::append(wanted, location);
    return Descriptor(::open(wanted.c_str(), O_PATH | O_CLOEXEC));
  };
  Descriptor place = openIn(base);
  std::string error = lastError();
  Descriptor other = place ? Descriptor(-1) : openIn(behind);
  const Descriptor &found = place ? place : other;
  if (!found)
    return fail("cannot be opened: " + error,
                "put it beside the model, into " + base.str().str());
  std::optional<std::string> resolved = pathOf(found);
  if (!resolved)
    return fail("cannot be checked: " + found.name() + ": " + lastError(),
                what + " needs the file system /proc");
  if (!isInside(*resolved, base) && !isInside(*resolved, behind))
    return fail("lies outside the model's folder", rule);
  if (auto it = files.find(*resolved); it != files.end())
    return it->second;
  struct stat status;
  if (::fstat(found.get(), &status) || !S_ISREG(status.st_mode))
    return fail("is not a regular file", "copy it into a regular file");
  Descriptor readable(::open(found.name().c_str(), O_RDONLY | O_CLOEXEC));
  if (!readable)
    return fail("cannot be opened: " + lastError(), "");
  FileBytes file;
  if (std::string wrong = map(readable, file); !wrong.empty())
    return fail(wrong, rule);
  return files[*resolved] = file;
}
