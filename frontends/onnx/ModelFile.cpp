#include "frontends/onnx/ModelFile.h"
#include "frontends/common/Diagnostic.h"
#include "frontends/onnx/Schema.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
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

std::optional<FileBytes>
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
  auto file = files.open(location, problem);
  if (!file)
    return std::nullopt;
  size_t size = file->bytes.size();
  if (offset > size || length > size - offset) {
    problem = {"external data file '" + printable(location) +
                   "' is too short: it has " + std::to_string(size) +
                   " bytes, the tensor is at " + std::to_string(offset) + ".." +
                   std::to_string(offset + length),
               "the file is cut short: fetch or export it again"};
    return std::nullopt;
  }
  return FileBytes{file->bytes.slice(offset, length), file->owner};
}
