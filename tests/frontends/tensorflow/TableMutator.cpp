// How libFuzzer changes a table of variables: its bytes as they are; its bytes,
// with checksums of blocks made right; or one entry, in a table built anew.
// Checksums would keep nearly all changes from what is behind them.
#include "tests/frontends/tensorflow/Files.h"
#include "llvm/Support/Endian.h"

using namespace charonia;
using test::tf::crc32c, test::tf::maskCrc, test::tf::takeVarint;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

static void mutate(std::string &bytes, size_t maxSize) {
  size_t size = bytes.size();
  bytes.resize(maxSize);
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t *>(bytes.data()), size,
                                maxSize));
}

/// Writes the checksum of the block at the front of `handle`; none where there
/// is no such block. The block without the word that counts restarts.
static std::optional<llvm::StringRef> sealBlock(std::string &table,
                                                llvm::StringRef handle) {
  constexpr size_t trailer = 5, word = 4;
  auto offset = takeVarint(handle), size = takeVarint(handle);
  if (!offset || !size || *size < word || *offset > table.size() ||
      *size > table.size() || *offset + *size + trailer > table.size())
    return std::nullopt;
  llvm::StringRef block(table.data() + *offset, *size + 1);
  llvm::support::endian::write32le(table.data() + *offset + *size + 1,
                                   maskCrc(crc32c(block)));
  return block.take_front(*size - word);
}

static void sealBlocks(std::string &table) {
  constexpr size_t footer = 48;
  if (table.size() < footer)
    return;
  llvm::StringRef handles = llvm::StringRef(table).take_back(footer);
  takeVarint(handles), takeVarint(handles);
  auto index = sealBlock(table, handles);
  while (index && !index->empty()) {
    auto shared = takeVarint(*index), own = takeVarint(*index),
         size = takeVarint(*index);
    if (!shared || !own || !size || *own > index->size() ||
        *size > index->size() - *own)
      break;
    sealBlock(table, index->substr(*own, *size));
    *index = index->drop_front(*own + *size);
  }
  // Blocks of this one may overlap it.
  sealBlock(table, handles);
}

/// Makes the checksum of an entry's bytes right, where it names some.
static void sealEntry(std::string &value, llvm::StringRef shard) {
  test::tf::proto::BundleEntry entry;
  if (!entry.ParseFromString(value) || entry.offset() < 0 || entry.size() < 0 ||
      static_cast<size_t>(entry.offset()) > shard.size())
    return;
  entry.set_crc(maskCrc(crc32c(shard.substr(entry.offset(), entry.size()))));
  value = entry.SerializeAsString();
}

static void mutateEntry(std::string &table, unsigned random) {
  constexpr size_t room = 64, perBlock = 5;
  frontend::Problem problem;
  static const auto *files = new auto(test::SavedFiles().files());
  auto read = test::tf::readTable(table, problem);
  if (!read || read->empty())
    read = test::tf::readTable(files->at("variables/variables.index"), problem);
  std::map<std::string, std::string> entries;
  for (const auto &[key, value] : *read)
    entries[key] = value.str();
  auto chosen = std::next(entries.begin(), random % entries.size());
  std::string key = chosen->first, value = chosen->second;
  random /= entries.size();
  // Now and then a key, or one more.
  std::string &changed = random % 8 ? value : key;
  mutate(changed, changed.size() + room);
  if (random % 16)
    entries.erase(chosen);
  sealEntry(value, files->rbegin()->second);
  entries[key] = value;
  table = test::tableFile(entries, 1 + random % perBlock);
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  std::string table(reinterpret_cast<const char *>(data), size);
  switch (seed % 4) {
  case 0:
    return LLVMFuzzerMutate(data, size, maxSize);
  case 1:
    mutate(table, maxSize);
    sealBlocks(table);
    break;
  default:
    mutateEntry(table, seed / 4);
  }
  if (table.size() > maxSize)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::memcpy(data, table.data(), table.size());
  return table.size();
}
