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

mlir::RankedTensorType Bundle::typeOf(StringRef key,
                                      mlir::MLIRContext *context) const {
  auto found = table.find(key);
  proto::BundleEntry entry;
  if (found == table.end() || !parse(entry, found->second))
    return {};
  llvm::SmallVector<int64_t> dims;
  for (const auto &dim : entry.shape().dims())
    dims.push_back(dim.size());
  mlir::Type element = elementType(entry.dtype(), context);
  int64_t elements, bytes;
  Problem problem;
  return element ? denseType(element, dims, elements, bytes, problem)
                 : mlir::RankedTensorType();
}

std::optional<TensorData>
Bundle::load(StringRef key, mlir::MLIRContext *context, Problem &problem) {
  auto found = table.find(key);
  proto::BundleEntry entry;
  return found != table.end() && parse(entry, found->second) &&
                 entry.slices_size()
             ? loadParts(key, entry, context, problem)
             : loadWhole(key, context, problem);
}

std::optional<TensorData>
Bundle::loadWhole(StringRef key, mlir::MLIRContext *context, Problem &problem) {
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

// Parts of variables. Their keys are numbers and names in a code whose order is
// theirs (tensorflow/core/lib/strings/ordered_code.cc).

static void putNumber(std::string &key, uint64_t value) {
  std::string digits;
  for (; value; value >>= 8)
    digits.insert(digits.begin(), static_cast<char>(value));
  key.push_back(static_cast<char>(digits.size()));
  key += digits;
}
static void putText(std::string &key, StringRef text) {
  for (char c : text) {
    key.push_back(c);
    if (c == 0 || c == '\xff')
      key.push_back(c == 0 ? '\xff' : 0);
  }
  key += StringRef("\0\1", 2);
}
/// As many bytes as there are ones in front of the first zero, which a
/// negative number has the other way round.
static void putSigned(std::string &key, int64_t value) {
  uint64_t magnitude = value < 0 ? ~static_cast<uint64_t>(value) : value;
  unsigned bits = 64 - llvm::countl_zero(magnitude), length = bits / 7 + 1;
  constexpr unsigned widest = 10;
  char bytes[widest];
  llvm::support::endian::write64be(bytes + widest - 8, value);
  bytes[0] = bytes[1] = value < 0 ? '\xff' : 0;
  char *first = bytes + widest - length;
  for (unsigned bit = 0; bit < length; ++bit)
    first[bit / 8] ^= static_cast<char>(0x80 >> bit % 8);
  key.append(first, length);
}

namespace {
/// A part of a tensor, by dimension.
struct Part {
  llvm::SmallVector<int64_t> starts, lengths;
  TensorData data;
};
} // namespace

static bool overlap(const Part &a, const Part &b) {
  for (size_t d = 0; d < a.starts.size(); ++d)
    if (a.starts[d] + a.lengths[d] <= b.starts[d] ||
        b.starts[d] + b.lengths[d] <= a.starts[d])
      return false;
  return true;
}

/// Copies a part to its place among `dims` elements of `width` bytes.
static void place(const Part &part, llvm::ArrayRef<int64_t> dims, size_t width,
                  std::vector<char> &bytes) {
  size_t rank = dims.size(), from = 0;
  size_t row = width * (rank ? part.lengths.back() : 1);
  llvm::SmallVector<int64_t> index(rank, 0);
  while (from < part.data.bytes.size()) {
    size_t to = 0;
    for (size_t d = 0; d < rank; ++d)
      to = to * dims[d] + part.starts[d] + index[d];
    std::memcpy(bytes.data() + to * width, part.data.bytes.data() + from, row);
    from += row;
    for (size_t d = rank ? rank - 1 : 0; d-- > 0;) {
      if (++index[d] < part.lengths[d])
        break;
      index[d] = 0;
    }
  }
}

std::optional<TensorData> Bundle::loadParts(StringRef key,
                                            const proto::BundleEntry &entry,
                                            mlir::MLIRContext *context,
                                            Problem &problem) {
  // Each part is compared with each other.
  constexpr int maxParts = 4096;
  auto fail = [&](const std::string &what) {
    problem = {"variable '" + printable(key.str()) + "' " + what,
               damagedRemedy};
    return std::nullopt;
  };
  llvm::SmallVector<int64_t> dims;
  for (const auto &dim : entry.shape().dims())
    dims.push_back(dim.size());
  mlir::Type element = elementType(entry.dtype(), context);
  int64_t elements = 0, bytes = 0, covered = 0;
  auto type = element ? denseType(element, dims, elements, bytes, problem)
                      : mlir::RankedTensorType();
  if (!type)
    return fail("has a shape or type that is not supported");
  if (entry.slices_size() > maxParts)
    return fail("is stored in over " + std::to_string(maxParts) + " parts");
  std::vector<Part> parts;
  for (const auto &slice : entry.slices()) {
    Part part;
    std::string partKey;
    putNumber(partKey, 0);
    putText(partKey, key);
    putNumber(partKey, slice.extents_size());
    if (slice.extents_size() != static_cast<int>(dims.size()))
      return fail("has parts of another rank");
    for (auto [extent, size] : llvm::zip(slice.extents(), dims)) {
      bool isAll = !extent.has_length();
      int64_t start = extent.start(), length = isAll ? size : extent.length();
      if (start < 0 || length < 0 || start > size || length > size - start ||
          (isAll && start))
        return fail("has a part that lies outside of it");
      putSigned(partKey, start);
      putSigned(partKey, isAll ? -1 : length);
      part.starts.push_back(start);
      part.lengths.push_back(length);
    }
    auto data = loadWhole(partKey, context, problem);
    if (!data)
      return std::nullopt;
    if (data->type.getElementType() != element ||
        data->type.getShape() != llvm::ArrayRef(part.lengths))
      return fail("has a part of another type or shape than it says");
    covered += data->type.getNumElements();
    part.data = std::move(*data);
    for (const Part &other : parts)
      if (overlap(part, other))
        return fail("has parts that overlap");
    parts.push_back(std::move(part));
  }
  if (covered != elements)
    return fail("has parts that leave some of it out");
  std::vector<char> all(bytes);
  for (const Part &part : parts)
    place(part, dims, elements ? bytes / elements : 1, all);
  return ownedTensor(type, std::move(all));
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
