#include "frontends/onnx/ModelFile.h"
#include "frontends/common/Diagnostic.h"
#include "frontends/onnx/Schema.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <climits>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace charonia;
using namespace charonia::frontend;
namespace io = google::protobuf::io;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;
using llvm::StringRef;

/// Subgraphs nest in messages: graph, node, attribute.
constexpr int maxMessageDepth = 100;
/// As deep as is read to tell a model that nests too deep from a damaged one.
constexpr int maxTriedDepth = 2000;

static bool parseWithin(int depth, io::ZeroCopyInputStream &stream,
                        ::onnx::ModelProto &model) {
  // Its default handler writes to the terminal.
  static auto *silenced = google::protobuf::SetLogHandler(nullptr);
  (void)silenced;
  io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(std::numeric_limits<int>::max());
  coded.SetRecursionLimit(depth);
  return model.ParsePartialFromCodedStream(&coded) &&
         coded.ConsumedEntireMessage();
}

/// `makeStream` gives a stream from the beginning, each time.
template <typename MakeStream>
static std::optional<Problem> parseStreams(MakeStream makeStream,
                                           ::onnx::ModelProto &model) {
  auto parses = [&](int depth, ::onnx::ModelProto &into) {
    auto &&stream = makeStream();
    return parseWithin(depth, stream, into);
  };
  if (!parses(maxMessageDepth, model)) {
    if (::onnx::ModelProto deep; parses(maxTriedDepth, deep))
      return Problem{"its subgraphs nest over 30 deep",
                     "export the model with fewer If, Loop and Scan nodes "
                     "inside of one another"};
    return Problem{"not an ONNX model: the file is damaged, cut short or of "
                   "another format",
                   "export the model again, or fetch the file again"};
  }
  for (auto [given, what] : {std::pair(model.has_graph(), "graph"),
                             std::pair(model.has_ir_version(), "ir_version")})
    if (!given)
      return Problem{std::string("not an ONNX model: it holds no ") + what,
                     "give a file written by an ONNX exporter"};
  return std::nullopt;
}

std::optional<Problem> frontend::onnx::parseModel(StringRef bytes,
                                                  ::onnx::ModelProto &model) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    return Problem{"the model is over 2 GiB, the limit of its format",
                   "save it with external data"};
  return parseStreams(
      [&] {
        return io::ArrayInputStream(bytes.data(),
                                    static_cast<int>(bytes.size()));
      },
      model);
}

std::optional<Problem> frontend::onnx::readModel(StringRef file,
                                                 ::onnx::ModelProto &model) {
  fs::file_status status;
  if (std::error_code error = fs::status(file, status))
    return Problem{"cannot be read: " + error.message(), ""};
  if (status.type() == fs::file_type::directory_file)
    return Problem{"is a folder, not a model file", ""};
  // A pipe could be read once, and whoever opens it may wait for ever.
  if (status.type() != fs::file_type::regular_file)
    return Problem{"is not a regular file", "copy the model into one"};
  if (path::extension(file) == ".onnxtxt") {
    auto buffer = llvm::MemoryBuffer::getFile(file);
    if (!buffer)
      return Problem{"cannot be read: " + buffer.getError().message(), ""};
    std::string error = parseText((*buffer)->getBuffer().str(), model);
    if (!error.empty())
      return Problem{"not ONNX text: " + error, ""};
    return std::nullopt;
  }
  if (status.getSize() > static_cast<uint64_t>(std::numeric_limits<int>::max()))
    return Problem{"the model is over 2 GiB, the limit of its format",
                   "save it with external data"};
  auto descriptor = fs::openNativeFileForRead(file);
  if (!descriptor)
    return Problem{"cannot be read: " + llvm::toString(descriptor.takeError()),
                   ""};
  // Reading stops at an error, which the stream keeps.
  std::optional<io::FileInputStream> stream;
  std::optional<Problem> problem = parseStreams(
      [&]() -> io::ZeroCopyInputStream & {
        ::lseek(*descriptor, 0, SEEK_SET);
        return stream.emplace(*descriptor, 1 << 20);
      },
      model);
  if (stream->GetErrno())
    problem =
        Problem{"cannot be read: " +
                    std::error_code(stream->GetErrno(), std::generic_category())
                        .message(),
                ""};
  stream.reset();
  fs::closeFile(*descriptor);
  return problem;
}

struct frontend::onnx::ExternalFiles::File {
  fs::mapped_file_region region;
  uint64_t size = 0;
};

static bool isInside(StringRef file, StringRef folder) {
  return file.consume_front(folder) && (folder == "/" || file.starts_with("/"));
}

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

std::shared_ptr<frontend::onnx::ExternalFiles::File>
frontend::onnx::ExternalFiles::open(StringRef location, Problem &problem) {
  std::string shown = "external data file '" + printable(location.str()) + "'";
  auto fail = [&](std::string what, std::string remedy) {
    problem = {shown + " " + what, std::move(remedy)};
    return std::shared_ptr<File>();
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
      "external data has to lie in the model's folder, " + base.str().str();
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
                "external data needs the file system /proc");
  if (!isInside(*resolved, base) && !isInside(*resolved, behind))
    return fail("lies outside the model's folder", rule);
  if (auto it = files.find(*resolved); it != files.end())
    return it->second;
  struct stat status;
  if (::fstat(found.get(), &status))
    return fail("cannot be read: " + lastError(), "");
  if (!S_ISREG(status.st_mode))
    return fail("is not a regular file", rule);
  Descriptor readable(::open(found.name().c_str(), O_RDONLY | O_CLOEXEC));
  if (!readable)
    return fail("cannot be opened: " + lastError(), "");
  auto file = std::make_shared<File>();
  file->size = status.st_size;
  std::error_code unmapped;
  if (file->size)
    file->region = fs::mapped_file_region(
        fs::convertFDToNativeFile(readable.get()),
        fs::mapped_file_region::readonly, file->size, 0, unmapped);
  if (unmapped)
    return fail("cannot be mapped: " + unmapped.message(), "");
  return files[*resolved] = file;
}

std::optional<frontend::onnx::ExternalFiles::Bytes>
frontend::onnx::ExternalFiles::load(const ::onnx::TensorProto &tensor,
                                    int64_t expected, Problem &problem) {
  std::string location;
  uint64_t offset = 0, length = expected;
  for (const auto &entry : tensor.external_data()) {
    uint64_t *number = entry.key() == "offset"   ? &offset
                       : entry.key() == "length" ? &length
                                                 : nullptr;
    if (entry.key() == "location")
      location = entry.value();
    else if (number && StringRef(entry.value()).getAsInteger(10, *number)) {
      problem = {"external data has '" + printable(entry.value()) +
                     "' for its " + entry.key() + ", which is not a size",
                 "export the model again"};
      return std::nullopt;
    }
  }
  if (length != static_cast<uint64_t>(expected)) {
    problem = {"external data has a length of " + std::to_string(length) +
                   " bytes, but the tensor takes " + std::to_string(expected),
               "export the model again"};
    return std::nullopt;
  }
  std::shared_ptr<File> file = open(location, problem);
  if (!file)
    return std::nullopt;
  if (offset > file->size || length > file->size - offset) {
    problem = {"external data file '" + printable(location) +
                   "' is too short: it has " + std::to_string(file->size) +
                   " bytes, the tensor is at " + std::to_string(offset) + ".." +
                   std::to_string(offset + length),
               "the file is cut short: fetch or export it again"};
    return std::nullopt;
  }
  const char *data = file->size ? file->region.const_data() + offset : nullptr;
  return Bytes{llvm::ArrayRef<char>(data, length), file};
}
