#include "codegen/driver/WeightFile.h"
#include "codegen/driver/Convert.h"
#include "graph/ir/Dialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace charonia::driver {
namespace {

namespace fs = llvm::sys::fs;

/// The format's names of types; a type it does not know is written as bytes.
StringRef typeName(Type element) {
  switch (toDType(element).value_or(DType::UInt8)) {
  case DType::Float32:
    return "F32";
  case DType::Float64:
    return "F64";
  case DType::Float16:
    return "F16";
  case DType::BFloat16:
    return "BF16";
  case DType::Int16:
    return "I16";
  case DType::Int32:
    return "I32";
  case DType::Int64:
    return "I64";
  case DType::UInt16:
    return "U16";
  case DType::UInt32:
    return "U32";
  case DType::UInt64:
    return "U64";
  case DType::Bool:
    return "BOOL";
  case DType::Float8E4M3:
    return "F8_E4M3";
  case DType::Float8E5M2:
    return "F8_E5M2";
  case DType::Int8:
  case DType::Int4:
    return "I8";
  default:
    return "U8";
  }
}

graph::WeightStore &storeOf(ModuleOp module) {
  return module.getContext()
      ->getLoadedDialect<graph::GraphDialect>()
      ->getWeights();
}

/// Where a tensor lies in a mapped file.
struct Entry {
  ArrayRef<char> bytes;
  SmallVector<int64_t> shape;
  std::shared_ptr<const void> owner;
};

/// The header is untrusted: every number is checked against the file.
std::string readHeader(std::shared_ptr<llvm::MemoryBuffer> file,
                       llvm::StringMap<Entry> &entries) {
  StringRef bytes = file->getBuffer();
  std::string bad =
      file->getBufferIdentifier().str() + ": is not a safetensors file: ";
  if (bytes.size() < 8)
    return bad + "it has no header";
  uint64_t length = llvm::support::endian::read64le(bytes.data());
  if (length > bytes.size() - 8)
    return bad + "its header ends outside of the file";
  auto header = llvm::json::parse(bytes.substr(8, length));
  if (!header)
    return bad + toString(header.takeError());
  const llvm::json::Object *tensors = header->getAsObject();
  if (!tensors)
    return bad + "its header is not an object";
  StringRef data = bytes.drop_front(8 + length);
  for (const auto &[name, value] : *tensors) {
    const llvm::json::Object *fields = value.getAsObject();
    const llvm::json::Array *shape =
        fields ? fields->getArray("shape") : nullptr;
    const llvm::json::Array *offsets =
        fields ? fields->getArray("data_offsets") : nullptr;
    if (!shape || !offsets || offsets->size() != 2)
      continue; // __metadata__
    auto begin = (*offsets)[0].getAsUINT64(), end = (*offsets)[1].getAsUINT64();
    if (!begin || !end || *begin > *end || *end > data.size())
      return bad + "tensor '" + name.str() + "' lies outside of the file";
    Entry entry{{data.data() + *begin, size_t(*end - *begin)}, {}, file};
    for (const llvm::json::Value &extent : *shape)
      entry.shape.push_back(extent.getAsInteger().value_or(-1));
    entries[name] = std::move(entry);
  }
  return "";
}

} // namespace

std::string writeWeightFile(ModuleOp module, const std::string &path,
                            llvm::StringSet<> &written) {
  graph::WeightStore &store = storeOf(module);
  SmallVector<std::pair<StringRef, const graph::Weight *>> weights;
  module.walk([&](graph::WeightOp op) {
    const graph::Weight *weight = store.lookup(op.getName());
    if (weight && written.insert(op.getName()).second)
      weights.emplace_back(op.getName(), weight);
  });
  if (weights.empty())
    return "";
  // The format leaves no gaps: the widest first, and all are aligned.
  llvm::sort(weights, [](const auto &a, const auto &b) {
    int64_t wide = graph::elementBytes(a.second->type.getElementType()),
            other = graph::elementBytes(b.second->type.getElementType());
    return std::pair(-wide, a.first) < std::pair(-other, b.first);
  });
  llvm::json::Object header;
  uint64_t offset = 0;
  for (auto &[name, weight] : weights) {
    uint64_t end = offset + weight->bytes.size();
    header[name] = llvm::json::Object{
        {"dtype", typeName(weight->type.getElementType())},
        {"shape", llvm::json::Array(weight->type.getShape())},
        {"data_offsets", llvm::json::Array{offset, end}}};
    offset = end;
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(header));
  text.resize(llvm::alignTo(text.size() + 8, 64) - 8, ' ');
  std::error_code failed;
  llvm::raw_fd_ostream file(path, failed);
  if (!failed) {
    char length[8];
    llvm::support::endian::write64le(length, text.size());
    file.write(length, sizeof(length));
    file << text;
    for (auto &[name, weight] : weights)
      file.write(weight->bytes.data(), weight->bytes.size());
    file.flush();
    failed = file.error();
    file.clear_error();
  }
  return failed ? path + ": " + failed.message() : "";
}

std::string readWeightFiles(ModuleOp module, const std::string &folder) {
  llvm::StringMap<Entry> entries;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; it != end && !failed;
       it.increment(failed)) {
    if (llvm::sys::path::extension(it->path()) != ".safetensors")
      continue;
    auto file = llvm::MemoryBuffer::getFile(it->path(), /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
    if (!file)
      return it->path() + ": " + file.getError().message();
    if (std::string error = readHeader(std::move(*file), entries);
        !error.empty())
      return error;
  }
  graph::WeightStore &store = storeOf(module);
  std::string error;
  module.walk([&](graph::WeightOp op) {
    auto found = entries.find(op.getName());
    if (found == entries.end() || store.lookup(op.getName()))
      return;
    auto type = cast<RankedTensorType>(op.getType());
    Entry &entry = found->second;
    if (ArrayRef<int64_t>(entry.shape) != type.getShape() ||
        (int64_t)entry.bytes.size() != graph::byteSize(type)) {
      llvm::raw_string_ostream(error)
          << "weight '" << op.getName() << "' is " << type
          << " in the module, but not in the files beside it";
      return;
    }
    store.add(op.getName(), graph::Weight{type, entry.bytes, entry.owner});
  });
  return error;
}

} // namespace charonia::driver
