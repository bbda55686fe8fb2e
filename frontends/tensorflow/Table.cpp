#include "frontends/tensorflow/Table.h"
#include "llvm/Support/Endian.h"
#include <array>

using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::StringRef;
using llvm::support::endian::read32le;
using llvm::support::endian::read64le;

/// No name of a variable is longer.
constexpr size_t maxKey = 4096;
/// Keys share what they begin with, so they may be larger than their file: by
/// as much in all.
constexpr size_t maxKeyBytesPerByte = 64;

// Checksums.

static constexpr std::array<uint32_t, 256> makeCrcTable() {
  constexpr uint32_t polynomial = 0x82F63B78;
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc & 1 ? (crc >> 1) ^ polynomial : crc >> 1;
    table[i] = crc;
  }
  return table;
}

static uint32_t crcByTable(StringRef bytes, uint32_t crc) {
  static constexpr std::array<uint32_t, 256> table = makeCrcTable();
  for (unsigned char c : bytes)
    crc = table[(crc ^ c) & 255] ^ (crc >> 8);
  return crc;
}

#if defined(__x86_64__)
/// Weights are read at the speed of memory with the processor's instruction.
__attribute__((target("sse4.2"))) static uint32_t
crcByInstruction(StringRef bytes, uint32_t crc) {
  uint64_t wide = crc;
  for (; bytes.size() >= 8; bytes = bytes.drop_front(8))
    wide = __builtin_ia32_crc32di(wide, read64le(bytes.data()));
  crc = static_cast<uint32_t>(wide);
  for (unsigned char c : bytes)
    crc = __builtin_ia32_crc32qi(crc, c);
  return crc;
}
#endif

uint32_t charonia::frontend::tensorflow::crc32c(StringRef bytes, uint32_t crc) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2"))
    return ~crcByInstruction(bytes, ~crc);
#endif
  return ~crcByTable(bytes, ~crc);
}

uint32_t charonia::frontend::tensorflow::maskCrc(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// Blocks.

std::optional<uint64_t>
charonia::frontend::tensorflow::takeVarint(StringRef &bytes) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    uint64_t byte = static_cast<unsigned char>(bytes.front());
    bytes = bytes.drop_front();
    if (shift == 63 && byte > 1)
      return std::nullopt;
    value |= (byte & 127) << shift;
    if (byte < 128)
      return value;
  }
  return std::nullopt;
}

namespace {
class TableReader {
public:
  TableReader(StringRef bytes, Problem &problem)
      : bytes(bytes), problem(problem) {}
  std::optional<Table> read();

private:
  static constexpr size_t footerSize = 48, trailerSize = 5;
  using Visit = llvm::function_ref<bool(StringRef key, StringRef value)>;

  bool fail(std::string what) {
    problem = {"the table of variables " + what,
               "the file is damaged: fetch or export the model again"};
    return false;
  }
  /// The contents of the block at the place that the front of `handle` names.
  std::optional<StringRef> takeBlock(StringRef &handle);
  bool forEach(StringRef block, Visit visit);

  StringRef bytes;
  Problem &problem;
  size_t keyBytes = 0;
};
} // namespace

std::optional<StringRef> TableReader::takeBlock(StringRef &handle) {
  auto offset = takeVarint(handle), size = takeVarint(handle);
  if (!offset || !size || *offset > bytes.size() ||
      bytes.size() - *offset < trailerSize ||
      *size > bytes.size() - *offset - trailerSize) {
    fail("names a block outside of itself");
    return std::nullopt;
  }
  StringRef block = bytes.substr(*offset, *size);
  uint32_t stored = read32le(bytes.data() + *offset + *size + 1);
  if (stored != maskCrc(crc32c(bytes.substr(*offset, *size + 1)))) {
    fail("has a block whose checksum differs");
    return std::nullopt;
  }
  if (bytes[*offset + *size] != 0) {
    problem = {"the table of variables is compressed, which is not supported",
               "save the model with TensorFlow's own writer, which does not "
               "compress it"};
    return std::nullopt;
  }
  return block;
}

bool TableReader::forEach(StringRef block, Visit visit) {
  constexpr size_t word = 4;
  uint32_t restarts = block.size() < word ? 0 : read32le(block.end() - word);
  if (block.size() < word || restarts > block.size() / word - 1)
    return fail("has a block that is cut short");
  StringRef rest = block.drop_back((size_t(restarts) + 1) * word);
  std::string key;
  while (!rest.empty()) {
    auto shared = takeVarint(rest), own = takeVarint(rest),
         size = takeVarint(rest);
    if (!shared || !own || !size || *shared > key.size() ||
        *own > rest.size() || *size > rest.size() - *own)
      return fail("has an entry that does not fit into its block");
    if (*shared + *own > maxKey)
      return fail("has a key of over " + std::to_string(maxKey) + " bytes");
    key.resize(*shared);
    key += rest.take_front(*own);
    keyBytes += key.size();
    if (keyBytes / maxKeyBytesPerByte > bytes.size())
      return fail("has keys that are far larger than itself");
    StringRef value = rest.substr(*own, *size);
    rest = rest.drop_front(*own + *size);
    if (!visit(key, value))
      return false;
  }
  return true;
}

std::optional<Table> TableReader::read() {
  constexpr uint64_t magic = 0xdb4775248b80fb57;
  if (bytes.size() < footerSize || read64le(bytes.end() - 8) != magic) {
    fail("does not end as one does");
    return std::nullopt;
  }
  StringRef footer = bytes.take_back(footerSize);
  auto offset = takeVarint(footer), size = takeVarint(footer);
  if (!offset || !size) {
    fail("does not end as one does");
    return std::nullopt;
  }
  auto index = takeBlock(footer);
  if (!index)
    return std::nullopt;
  Table table;
  // Blocks follow each other: one that is named again would be read again.
  const char *last = bytes.data();
  bool ok = forEach(*index, [&](StringRef, StringRef handle) {
    auto block = takeBlock(handle);
    if (!block)
      return false;
    if (block->begin() < last)
      return fail("has blocks that overlap");
    last = block->end();
    return forEach(*block, [&](StringRef key, StringRef value) {
      return table.emplace(key.str(), value).second || fail("has a key twice");
    });
  });
  return ok ? std::optional(std::move(table)) : std::nullopt;
}

std::optional<Table>
charonia::frontend::tensorflow::readTable(StringRef bytes, Problem &problem) {
  return TableReader(bytes, problem).read();
}
