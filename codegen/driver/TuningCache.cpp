#include "codegen/driver/TuningCache.h"
#include "charonia/types.h"
#include "runtime/engine/AtomicFile.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace charonia::driver {
namespace {

constexpr StringLiteral header = "charonia tuning 1\n";
constexpr StringLiteral sumWord = "sum ";
constexpr size_t sumDigits = 16, mostBytes = size_t(64) << 20;

std::string sumOf(StringRef text) {
  return utohexstr(xxh3_64bits(text), /*LowerCase=*/true, sumDigits);
}

Status bad(std::string message) {
  return Status(StatusCode::Corrupt, std::move(message));
}

/// Letters, digits, signs and blanks, some of them.
bool isWords(StringRef text) {
  constexpr size_t most = 256;
  return !text.empty() && text.size() <= most && all_of(text, isPrint);
}

bool readNumber(StringRef text, uint64_t most, uint64_t &value) {
  return !text.empty() && all_of(text, isDigit) &&
         !text.getAsInteger(10, value) && value >= 1 && value <= most;
}

/// target, key, device, nanoseconds, those untuned, rank, candidates, schedule.
Status readEntry(StringRef line, TuningCache &cache) {
  constexpr size_t numFields = 8;
  constexpr uint64_t mostNanoseconds = 1'000'000'000'000, mostCandidates = 4096;
  SmallVector<StringRef, numFields> fields;
  line.split(fields, '\t');
  if (fields.size() != numFields)
    return bad("has " + std::to_string(fields.size()) + " fields, not " +
               std::to_string(numFields));
  auto [target, key] = std::pair(fields[0].str(), fields[1].str());
  if (!isWords(target) || key.size() != TuningCache::keyDigits ||
      !all_of(key, [](char c) { return isHexDigit(c) && !isUpper(c); }))
    return bad("does not name a target and a kernel");
  TuningEntry entry;
  uint64_t rank = 0, candidates = 0;
  if (!readNumber(fields[3], mostNanoseconds, entry.nanoseconds) ||
      !readNumber(fields[4], mostNanoseconds, entry.untunedNanoseconds) ||
      !readNumber(fields[6], mostCandidates, candidates) ||
      !readNumber(fields[5], candidates, rank))
    return bad("has a number that cannot be");
  if (!isWords(fields[2]) || !isWords(fields[7]))
    return bad("does not name a device and a schedule");
  if (cache.find(target, key))
    return bad("is a second entry for one kernel");
  entry.device = fields[2].str();
  entry.schedule = fields[7].str();
  entry.rank = rank;
  entry.candidates = candidates;
  cache.set(target, key, std::move(entry));
  return Status::ok();
}

} // namespace

const TuningEntry *TuningCache::find(const std::string &target,
                                     const std::string &key) const {
  auto it = entries.find({target, key});
  return it == entries.end() ? nullptr : &it->second;
}

void TuningCache::set(const std::string &target, const std::string &key,
                      TuningEntry entry) {
  entries[{target, key}] = std::move(entry);
}

std::string TuningCache::text() const {
  std::string text = header.str();
  for (const auto &[name, e] : entries)
    text += name.first + "\t" + name.second + "\t" + e.device + "\t" +
            std::to_string(e.nanoseconds) + "\t" +
            std::to_string(e.untunedNanoseconds) + "\t" +
            std::to_string(e.rank) + "\t" + std::to_string(e.candidates) +
            "\t" + e.schedule + "\n";
  return text + sumWord.str() + sumOf(text) + "\n";
}

Result<TuningCache> TuningCache::parse(std::string_view given) {
  StringRef text(given), lines = text;
  if (!lines.consume_front(header))
    return bad("is no tuning cache of this version of the format");
  size_t tail = sumWord.size() + sumDigits + 1;
  if (lines.size() < tail || !lines.take_back(tail).starts_with(sumWord) ||
      lines.take_back(tail).drop_front(sumWord.size()) !=
          sumOf(text.drop_back(tail)) + "\n")
    return bad("is damaged: its checksum is not that of its lines");
  lines = lines.drop_back(tail);
  TuningCache cache;
  for (size_t number = 2; !lines.empty(); ++number) {
    auto [line, rest] = lines.split('\n');
    CHARONIA_RETURN_IF_ERROR(
        readEntry(line, cache).withContext("line " + std::to_string(number)));
    lines = rest;
  }
  return cache;
}

Result<TuningCache> TuningCache::read(const std::string &path) {
  sys::fs::file_status status;
  if (std::error_code error = sys::fs::status(path, status)) {
    if (error == errc::no_such_file_or_directory)
      return TuningCache();
    return Status(StatusCode::Io, path + ": " + error.message());
  }
  if (status.type() != sys::fs::file_type::regular_file)
    return Status(StatusCode::Io, path + ": is not a regular file");
  if (status.getSize() > mostBytes)
    return bad(path + ": is no tuning cache: it has " +
               std::to_string(status.getSize()) + " bytes");
  auto file = MemoryBuffer::getFile(path, /*IsText=*/false,
                                    /*RequiresNullTerminator=*/false,
                                    /*IsVolatile=*/true);
  if (!file)
    return Status(StatusCode::Io, path + ": " + file.getError().message());
  StringRef bytes = (*file)->getBuffer();
  Result<TuningCache> cache = parse({bytes.data(), bytes.size()});
  return cache ? std::move(cache)
               : Result<TuningCache>(cache.status().withContext(path));
}

Status TuningCache::write(const std::string &path) const {
  engine::AtomicFile file(path);
  std::string bytes = text();
  CHARONIA_RETURN_IF_ERROR(file.open());
  CHARONIA_RETURN_IF_ERROR(file.append(bytes.data(), bytes.size()));
  return file.commit();
}

} // namespace charonia::driver
