#include "frontends/tensorflow/Bundle.h"
#include "frontends/common/Diagnostic.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/Format.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::StringRef;

static const char *const damagedRemedy =
    "the file is damaged: fetch or export the model again";

std::unique_ptr<Bundle> Bundle::open(OpenFile openFile, Problem &problem) {
  auto bundle = std::make_unique<Bundle>();
  bundle->openFile = std::move(openFile);
  auto index = bundle->openFile("variables.index", problem);
  if (!index)
    return {};
  bundle->index = std::move(*index);
  auto table = readTable(bundle->index.text(), problem);
  if (!table)
    return {};
  bundle->table = std::move(*table);
  if (auto found = bundle->readHeader()) {
    problem = std::move(*found);
    return {};
  }
  return bundle;
}

static bool parse(google::protobuf::MessageLite &message, StringRef bytes) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

std::optional<Problem> Bundle::readHeader() {
  constexpr int maxShards = 100000;
  proto::BundleHeader header;
  auto entry = table.find("");
  if (entry == table.end() || !parse(header, entry->second) ||
      header.shards() < 0 || header.shards() > maxShards)
    return Problem{"the table of variables has no sound header", damagedRemedy};
  if (header.endianness() != 0)
    return Problem{"its variables are stored in big-endian order",
                   "save the model on a little-endian machine"};
  numShards = header.shards();
  return std::nullopt;
}

const FileBytes *Bundle::shard(int index, Problem &problem) {
  if (auto it = shards.find(index); it != shards.end())
    return &it->second;
  std::string name;
  llvm::raw_string_ostream(name)
      << llvm::format("variables.data-%05d-of-%05d", index, numShards);
  auto file = openFile(name, problem);
  return file ? &(shards[index] = std::move(*file)) : nullptr;
}

std::optional<FileBytes>
Bundle::bytesOf(StringRef key, proto::BundleEntry &entry, Problem &problem) {
  auto fail = [&](const std::string &what, const char *remedy) {
    problem = {"variable '" + printable(key.str()) + "' " + what, remedy};
    return std::nullopt;
  };
  auto found = table.find(key);
  if (found == table.end())
    return fail("is not among the stored ones",
                "export the model again with all of its variables");
  if (!parse(entry, found->second))
    return fail("has an entry that cannot be read", damagedRemedy);
  if (entry.slices_size())
    return fail("is stored in slices, which is not supported",
                "export the model without partitioned variables");
  if (entry.shard() < 0 || entry.shard() >= numShards)
    return fail("lies in shard " + std::to_string(entry.shard()) + " of " +
                    std::to_string(numShards),
                damagedRemedy);
  const FileBytes *file = shard(entry.shard(), problem);
  if (!file)
    return std::nullopt;
  auto size = static_cast<uint64_t>(entry.size()),
       offset = static_cast<uint64_t>(entry.offset());
  if (entry.size() < 0 || entry.offset() < 0 || offset > file->bytes.size() ||
      size > file->bytes.size() - offset)
    return fail("lies outside of its file, which has " +
                    std::to_string(file->bytes.size()) + " bytes",
                damagedRemedy);
  return FileBytes{file->bytes.slice(offset, size), file->owner};
}

std::optional<TensorData>
Bundle::load(StringRef key, mlir::MLIRContext *context, Problem &problem) {
  proto::BundleEntry entry;
  auto data = bytesOf(key, entry, problem);
  if (!data)
    return std::nullopt;
  std::string name = "variable '" + printable(key.str()) + "' ";
  mlir::Type element = elementType(entry.dtype(), context);
  if (!element) {
    problem = {name + "is of " + dtypeName(entry.dtype()) +
                   ", which is not supported",
               elementTypeRemedy};
    return std::nullopt;
  }
  llvm::SmallVector<int64_t> dims;
  for (const auto &dim : entry.shape().dims())
    dims.push_back(dim.size());
  int64_t elements, bytes;
  auto type = denseType(element, dims, elements, bytes, problem);
  if (!type) {
    problem.what = name + problem.what;
    return std::nullopt;
  }
  if (bytes != static_cast<int64_t>(data->bytes.size())) {
    problem = {name + "has " + std::to_string(data->bytes.size()) +
                   " bytes, but its shape and type take " +
                   std::to_string(bytes),
               damagedRemedy};
    return std::nullopt;
  }
  if (maskCrc(crc32c(data->text())) != entry.crc()) {
    problem = {name + "has bytes whose checksum differs", damagedRemedy};
    return std::nullopt;
  }
  return normalizeBools({type, data->bytes, data->owner});
}

std::optional<StringRef> Bundle::loadText(StringRef key, Problem &problem) {
  proto::BundleEntry entry;
  auto data = bytesOf(key, entry, problem);
  if (!data)
    return std::nullopt;
  // One length, the checksum of lengths, the text.
  StringRef rest = data->text();
  auto length = takeVarint(rest);
  bool fits = length && entry.shape().dims_size() == 0 &&
              rest.size() >= sizeof(uint32_t) &&
              *length == rest.size() - sizeof(uint32_t);
  if (fits) {
    uint32_t narrow = static_cast<uint32_t>(*length), lengths = 0;
    char word[sizeof(uint32_t)];
    llvm::support::endian::write32le(word, narrow);
    lengths = crc32c(StringRef(word, sizeof word));
    StringRef text = rest.drop_front(sizeof(uint32_t));
    uint32_t all =
        crc32c(text, crc32c(rest.take_front(sizeof(uint32_t)), lengths));
    if (llvm::support::endian::read32le(rest.data()) == maskCrc(lengths) &&
        maskCrc(all) == entry.crc())
      return text;
  }
  problem = {"variable '" + printable(key.str()) +
                 "' is no text with sound checksums",
             damagedRemedy};
  return std::nullopt;
}
