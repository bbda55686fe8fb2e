#include "frontends/pytorch/Archive.h"
#include "frontends/common/Diagnostic.h"
#include "llvm/Support/Endian.h"
#include <zlib.h>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::StringRef;

static const char *const damagedRemedy =
    "the file is damaged or cut short: fetch or export it again";
/// Entries may inflate to this many bytes, and so many times the file's size.
constexpr uint64_t inflateFloor = uint64_t(64) << 20, inflateFactor = 32;

// Sizes of the format's records, without what varies in length.
constexpr size_t localSize = 30, recordSize = 46, endSize = 22, end64Size = 56,
                 locatorSize = 20;
/// What a field of 32 bits says where 64 bits are elsewhere.
constexpr uint64_t elsewhere = 0xffffffff;

static uint64_t number(StringRef bytes, size_t at, int count) {
  const char *from = bytes.data() + at;
  return count == 2   ? llvm::support::endian::read16le(from)
         : count == 4 ? llvm::support::endian::read32le(from)
                      : llvm::support::endian::read64le(from);
}
/// Whether a record of `size` bytes with this signature is at `at`.
static bool isAt(StringRef bytes, uint64_t at, StringRef signature,
                 size_t size) {
  return at <= bytes.size() && size <= bytes.size() - at &&
         bytes.substr(at).starts_with(signature);
}

static Problem damaged(const llvm::Twine &what) {
  return {"the zip directory is damaged: " + what.str(), damagedRemedy};
}

std::unique_ptr<Archive> Archive::open(StringRef path, Problem &problem) {
  auto file = mapFile(path, problem);
  return file ? read(*std::move(file), problem) : nullptr;
}

std::unique_ptr<Archive> Archive::read(Bytes file, Problem &problem) {
  std::unique_ptr<Archive> archive(new Archive(std::move(file)));
  std::optional<Problem> found = archive->readDirectory();
  if (!found)
    found = archive->checkOverlap();
  if (found) {
    problem = std::move(*found);
    return {};
  }
  archive->dropCommonFolder();
  return archive;
}

namespace {
/// Where the directory lies, by the record at the file's end.
struct Directory {
  uint64_t offset = 0, size = 0, count = 0;
};
} // namespace

/// The last record of its kind that a comment of its length follows.
static std::optional<uint64_t> findEnd(StringRef file) {
  constexpr size_t longestComment = 0xffff;
  for (size_t comment = 0;
       comment <= longestComment && comment + endSize <= file.size();
       ++comment) {
    size_t at = file.size() - endSize - comment;
    if (isAt(file, at, "PK\5\6", endSize) &&
        number(file, at + 20, 2) == comment)
      return at;
  }
  return std::nullopt;
}

/// Of a file whose end is no directory's.
static Problem explainEnd(StringRef file) {
  if (!file.starts_with("PK\3\4"))
    return {"not a zip file", "programs are saved by torch.export.save"};
  size_t at = file.rfind("PK\5\6");
  if (at == StringRef::npos || !isAt(file, at, "PK\5\6", endSize))
    return {"cut short: it has no directory at its end", damagedRemedy};
  uint64_t end = at + endSize + number(file, at + 20, 2);
  if (end < file.size())
    return {"the zip file ends at byte " + std::to_string(end) +
                ", but there are " + std::to_string(file.size() - end) +
                " behind that",
            "fetch or export it again, or cut these bytes off"};
  return damaged("its comment ends behind the file");
}

static std::optional<Directory> findDirectory(StringRef file,
                                              Problem &problem) {
  std::optional<uint64_t> end = findEnd(file);
  if (!end) {
    problem = explainEnd(file);
    return std::nullopt;
  }
  Directory directory{number(file, *end + 16, 4), number(file, *end + 12, 4),
                      number(file, *end + 10, 2)};
  uint64_t limit = *end;
  if (*end >= locatorSize &&
      isAt(file, *end - locatorSize, "PK\6\7", locatorSize)) {
    uint64_t at = number(file, *end - locatorSize + 8, 8);
    if (!isAt(file, at, "PK\6\6", end64Size)) {
      problem = damaged("there is no record of 64 bits where it should be");
      return std::nullopt;
    }
    directory = {number(file, at + 48, 8), number(file, at + 40, 8),
                 number(file, at + 32, 8)};
    limit = at;
  }
  if (directory.offset > limit || directory.size > limit - directory.offset) {
    problem = damaged("it is not inside of the file");
    return std::nullopt;
  }
  return directory;
}

std::optional<Problem> Archive::readDirectory() {
  Problem problem;
  std::optional<Directory> directory = findDirectory(file.text(), problem);
  if (!directory)
    return problem;
  StringRef rest = file.text().substr(directory->offset, directory->size);
  for (uint64_t i = 0; i < directory->count; ++i) {
    if (!isAt(rest, 0, "PK\1\2", recordSize))
      return damaged("entry " + llvm::Twine(i) + " of " +
                     llvm::Twine(directory->count) + " is not there");
    uint64_t size = recordSize + number(rest, 28, 2) + number(rest, 30, 2) +
                    number(rest, 32, 2);
    if (size > rest.size())
      return damaged("entry " + llvm::Twine(i) + " ends behind it");
    if (auto found = readEntry(rest.take_front(size)))
      return found;
    rest = rest.drop_front(size);
  }
  return std::nullopt;
}

/// Takes the fields that say "elsewhere" out of the extra field of 64 bits.
/// False where it has too few.
static bool readWide(StringRef extra, llvm::ArrayRef<uint64_t *> fields) {
  StringRef wide;
  while (extra.size() >= 4) {
    uint64_t size = number(extra, 2, 2);
    if (size > extra.size() - 4)
      return false;
    if (number(extra, 0, 2) == 1)
      wide = extra.substr(4, size);
    extra = extra.drop_front(4 + size);
  }
  for (uint64_t *field : fields) {
    if (*field != elsewhere)
      continue;
    if (wide.size() < 8)
      return false;
    *field = number(wide, 0, 8);
    wide = wide.drop_front(8);
  }
  return true;
}

/// An entry of the directory. Only that is believed: of the local header, which
/// may say 0 for sizes, just how long it is.
std::optional<Problem> Archive::readEntry(StringRef record) {
  uint64_t nameSize = number(record, 28, 2), method = number(record, 10, 2);
  StringRef name = record.substr(recordSize, nameSize);
  std::string shown = "entry '" + printable(name.str()) + "'";
  Entry entry;
  entry.checksum = number(record, 16, 4);
  entry.stored = number(record, 20, 4);
  entry.size = number(record, 24, 4);
  entry.deflated = method == 8;
  uint64_t header = number(record, 42, 4);
  StringRef extra = record.substr(recordSize + nameSize, number(record, 30, 2));
  if (!readWide(extra, {&entry.size, &entry.stored, &header}))
    return damaged(shown + " lacks its sizes");
  if (number(record, 8, 2) & 1)
    return Problem{shown + " is encrypted, which is not supported",
                   "pack the file again without a password"};
  if (method != 0 && method != 8)
    return Problem{shown + " is compressed by method " +
                       std::to_string(method) +
                       "; only stored and deflated entries are supported",
                   "export the file again, or pack it with zip -0"};
  StringRef all = file.text();
  if (!isAt(all, header, "PK\3\4", localSize))
    return damaged(shown + " has no header where the directory says");
  entry.offset = header + localSize + number(all, header + 26, 2) +
                 number(all, header + 28, 2);
  if (entry.offset > all.size() || entry.stored > all.size() - entry.offset)
    return damaged(shown + " of " + llvm::Twine(entry.stored) + " bytes at " +
                   llvm::Twine(entry.offset) +
                   " ends behind the file, which has " +
                   llvm::Twine(all.size()) + " bytes");
  if (!entry.deflated && entry.size != entry.stored)
    return damaged(shown + " is stored in " + llvm::Twine(entry.stored) +
                   " bytes but has " + llvm::Twine(entry.size));
  // Packers write folders as empty entries.
  if (name.ends_with("/") && !entry.size)
    return std::nullopt;
  if (!entries.try_emplace(name, entry).second)
    return damaged(shown + " is there twice");
  return std::nullopt;
}

/// Entries that share bytes are how small files claim to be huge.
std::optional<Problem> Archive::checkOverlap() const {
  std::vector<std::pair<const Entry *, StringRef>> sorted;
  for (const auto &entry : entries)
    if (entry.second.stored)
      sorted.push_back({&entry.second, entry.first()});
  llvm::sort(sorted, [](const auto &a, const auto &b) {
    return a.first->offset < b.first->offset;
  });
  for (size_t i = 1; i < sorted.size(); ++i) {
    const Entry &before = *sorted[i - 1].first;
    if (before.offset + before.stored > sorted[i].first->offset)
      return Problem{"the zip directory is damaged: entries '" +
                         printable(sorted[i - 1].second.str()) + "' and '" +
                         printable(sorted[i].second.str()) + "' overlap",
                     damagedRemedy};
  }
  return std::nullopt;
}

void Archive::dropCommonFolder() {
  std::optional<StringRef> folder;
  for (const auto &entry : entries) {
    auto [first, rest] = entry.first().split('/');
    if (rest.empty() || (folder && *folder != first))
      return;
    folder = first;
  }
  if (!folder)
    return;
  llvm::StringMap<Entry> shorter;
  for (const auto &entry : entries)
    shorter[entry.first().drop_front(folder->size() + 1)] = entry.second;
  entries = std::move(shorter);
}

std::vector<std::string> Archive::list(StringRef folder) const {
  std::vector<std::string> names;
  for (const auto &entry : entries)
    if (entry.first().starts_with(folder))
      names.push_back(entry.first().str());
  llvm::sort(names);
  return names;
}

static uint32_t checksumOf(llvm::ArrayRef<char> bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
}

std::optional<Archive::Bytes> Archive::load(StringRef name, Problem &problem) {
  auto it = entries.find(name);
  if (it == entries.end()) {
    problem = {"has no entry '" + printable(name.str()) + "'", damagedRemedy};
    return std::nullopt;
  }
  Entry &entry = it->second;
  std::string shown = "entry '" + printable(name.str()) + "'";
  if (entry.deflated) {
    if (!entry.isRead && !inflate(entry, shown, problem))
      return std::nullopt;
    entry.isRead = true;
    return entry.inflated;
  }
  Bytes bytes{file.bytes.slice(entry.offset, entry.size), file.owner};
  if (!entry.isRead && checksumOf(bytes.bytes) != entry.checksum) {
    problem = {shown + " is damaged: its checksum is another", damagedRemedy};
    return std::nullopt;
  }
  entry.isRead = true;
  return bytes;
}

/// Fills `to` with what `from` inflates to; false where that has another length
/// or checksum.
static bool inflateInto(llvm::ArrayRef<char> from, std::vector<char> &to,
                        uint32_t checksum) {
  constexpr size_t most = size_t(1) << 30;
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return false;
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(from.data()));
  // One byte more than there should be: a longer stream does not end.
  char beyond;
  size_t taken = 0, given = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    bool isFull = given == to.size();
    stream.avail_in = static_cast<uInt>(std::min(most, from.size() - taken));
    stream.next_out =
        reinterpret_cast<Bytef *>(isFull ? &beyond : to.data() + given);
    stream.avail_out =
        static_cast<uInt>(isFull ? 1 : std::min(most, to.size() - given));
    uInt before = stream.avail_in, room = stream.avail_out;
    status = ::inflate(&stream, Z_NO_FLUSH);
    taken += before - stream.avail_in;
    given += room - stream.avail_out;
    if (given > to.size())
      break;
  }
  inflateEnd(&stream);
  return status == Z_STREAM_END && given == to.size() &&
         checksumOf(to) == checksum;
}

bool Archive::inflate(Entry &entry, const std::string &shown,
                      Problem &problem) {
  uint64_t limit = inflateFloor + inflateFactor * file.bytes.size();
  if (entry.size > limit - inflated) {
    problem = {shown + " inflates to " + std::to_string(entry.size) +
                   " bytes, too many for a file of " +
                   std::to_string(file.bytes.size()),
               "export the file again, or pack it with zip -0"};
    return false;
  }
  auto data = std::make_shared<std::vector<char>>(entry.size);
  if (!inflateInto(file.bytes.slice(entry.offset, entry.stored), *data,
                   entry.checksum)) {
    problem = {shown + " cannot be inflated", damagedRemedy};
    return false;
  }
  inflated += entry.size;
  entry.inflated = {*data, data};
  return true;
}
