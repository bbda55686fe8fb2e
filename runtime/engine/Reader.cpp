//===- Reader.cpp - Opening an engine file --------------------------------===//

#include "runtime/engine/Reader.h"
#include "runtime/engine/Encoding.h"
#include "runtime/engine/Format.h"
#include "runtime/engine/Guard.h"
#include "runtime/engine/Sha256.h"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace charonia::engine {

namespace {

Status corrupt(const std::string &what) {
  return Status(StatusCode::Corrupt, what);
}

/// The header alone: enough to tell a foreign, a newer and a truncated file
/// apart.
Status checkHeader(const FileHeader &header, uint64_t fileSize) {
  if (std::memcmp(header.magic, formatMagic, sizeof(formatMagic)) != 0)
    return corrupt("it is not a Charonia engine");
  if (header.version != formatVersion)
    return Status(StatusCode::Unsupported,
                  "it has format version " + std::to_string(header.version) +
                      ", but this runtime reads version " +
                      std::to_string(formatVersion) +
                      "; compile the model again with the matching compiler");
  if (header.fileSize != fileSize)
    return corrupt(
        (header.fileSize > fileSize ? "it is truncated: " : "it is damaged: ") +
        std::string("the header tells of ") + std::to_string(header.fileSize) +
        " bytes, but there are " + std::to_string(fileSize));
  if (header.sectionCount < 1 || header.sectionCount > maxSections ||
      header.sectionCount * sizeof(SectionEntry) >
          fileSize - sizeof(FileHeader))
    return corrupt("it is damaged: the header tells of " +
                   std::to_string(header.sectionCount) + " sections");
  return Status::ok();
}

Result<SectionInfo> checkEntry(const SectionEntry &entry, size_t index,
                               uint64_t previousEnd, uint64_t fileSize) {
  std::string where = "it is damaged: section " + std::to_string(index);
  if (entry.kind < 1 || entry.kind > 4 ||
      (entry.kind == static_cast<uint32_t>(SectionKind::Manifest)) !=
          (index == 0))
    return corrupt(where + " is of an unexpected kind");
  if (entry.alignment != pageSize || entry.offset % pageSize != 0)
    return corrupt(where + " is not aligned to " + std::to_string(pageSize) +
                   " bytes");
  if (entry.offset < previousEnd || entry.offset > fileSize ||
      entry.size > fileSize - entry.offset)
    return corrupt(where + " does not lie inside the file");
  if (entry.name[sizeof(entry.name) - 1] != 0)
    return corrupt(where + " has an unterminated name");
  SectionInfo info;
  info.kind = static_cast<SectionKind>(entry.kind);
  info.name = entry.name;
  info.alignment = entry.alignment;
  info.offset = entry.offset;
  info.size = entry.size;
  info.checksum = entry.checksum;
  return info;
}

/// Space for a whole file, aligned as a mapping is.
std::byte *allocatePages(uint64_t size) {
  uint64_t rounded = (size + pageSize - 1) / pageSize * pageSize;
  void *memory = std::aligned_alloc(pageSize, rounded);
  if (!memory)
    throw std::bad_alloc();
  return static_cast<std::byte *>(memory);
}

} // namespace

Reader::~Reader() {
  if (mapping)
    munmap(mapping, size);
  std::free(owned);
}

/// Reads `size` bytes of the file into memory of the Reader, if its header is
/// one of an engine of this size.
Status Reader::readAll(int fd) {
  FileHeader header;
  if (size >= sizeof(header)) {
    ssize_t n;
    do
      n = ::pread(fd, &header, sizeof(header), 0);
    while (n < 0 && errno == EINTR);
    if (n == ssize_t(sizeof(header)))
      CHARONIA_RETURN_IF_ERROR(checkHeader(header, size));
  }
  base = owned = allocatePages(size);
  for (uint64_t at = 0; at < size;) {
    ssize_t n = ::read(fd, owned + at, size - at);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return Status(StatusCode::Io,
                    std::string("it cannot be read: ") +
                        (n < 0 ? std::generic_category().message(errno)
                               : "it became shorter"));
    at += n;
  }
  return Status::ok();
}

/// A digest as sha256() writes it.
static Result<std::string> parseDigest(const std::string &given) {
  std::string digest = given;
  for (char &c : digest)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (digest.size() != 64 ||
      digest.find_first_not_of("0123456789abcdef") != std::string::npos)
    return Status(StatusCode::InvalidArgument,
                  "the expected digest '" + given +
                      "' is not a SHA-256 of 64 hexadecimal digits");
  return digest;
}

Status Reader::checkDigest(const std::string &expected) const {
  if (expected.empty())
    return Status::ok();
  CHARONIA_ASSIGN_OR_RETURN(std::string wanted, parseDigest(expected));
  if (std::string is = digest(); is != wanted)
    return corrupt("it is not the pinned file: its SHA-256 is " + is +
                   ", expected was " + wanted);
  return Status::ok();
}

std::string Reader::subject() const {
  return path.empty() ? "the engine in memory" : "the engine '" + path + "'";
}

std::string Reader::digest() const { return sha256({base, size}); }

Result<std::shared_ptr<const Reader>> Reader::open(const std::string &path,
                                                   const std::string &digest) {
  return guarded([&]() -> Result<std::shared_ptr<const Reader>> {
    std::shared_ptr<Reader> reader(new Reader());
    reader->path = path;
    auto failure = [&](int error) {
      return Status(error == ENOENT ? StatusCode::NotFound : StatusCode::Io,
                    "cannot open the engine '" + path +
                        "': " + std::generic_category().message(error));
    };
    struct File {
      int fd;
      ~File() {
        if (fd >= 0)
          close(fd);
      }
    } file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.fd < 0)
      return failure(errno);
    struct stat info;
    if (fstat(file.fd, &info) != 0)
      return failure(errno);
    if (S_ISDIR(info.st_mode))
      return failure(EISDIR);
    if (!S_ISREG(info.st_mode))
      return Status(StatusCode::InvalidArgument,
                    "cannot open the engine '" + path +
                        "': it is not a regular file");
    reader->size = static_cast<uint64_t>(info.st_size);
    std::string context = reader->subject() + " cannot be used";
    if (!digest.empty()) {
      // Nothing is read for a digest that no file has.
      if (auto parsed = parseDigest(digest); !parsed)
        return parsed.status().withContext(context);
      if (Status status = reader->readAll(file.fd); !status)
        return status.withContext(context);
    } else if (reader->size != 0) {
      void *map =
          mmap(nullptr, reader->size, PROT_READ, MAP_PRIVATE, file.fd, 0);
      if (map == MAP_FAILED)
        return failure(errno);
      reader->mapping = map;
      reader->base = static_cast<const std::byte *>(map);
    }
    Status status = reader->checkDigest(digest);
    if (status)
      status = reader->parse();
    if (!status)
      return status.withContext(context);
    return std::shared_ptr<const Reader>(std::move(reader));
  });
}

Result<std::shared_ptr<const Reader>>
Reader::fromMemory(std::span<const std::byte> bytes, bool borrow,
                   const std::string &digest) {
  return guarded([&]() -> Result<std::shared_ptr<const Reader>> {
    std::shared_ptr<Reader> reader(new Reader());
    reader->size = bytes.size();
    if (borrow) {
      if (reinterpret_cast<uintptr_t>(bytes.data()) % pageSize != 0)
        return Status(
            StatusCode::InvalidArgument,
            "an engine in borrowed memory must start at a multiple of " +
                std::to_string(pageSize) + " bytes");
    }
    // With a digest the bytes that were compared must be those that are used.
    if (borrow && digest.empty()) {
      reader->base = bytes.data();
    } else if (!bytes.empty()) {
      reader->base = reader->owned = allocatePages(bytes.size());
      std::memcpy(reader->owned, bytes.data(), bytes.size());
    }
    Status status = reader->checkDigest(digest);
    if (status)
      status = reader->parse();
    if (!status)
      return status.withContext(reader->subject() + " cannot be used");
    return std::shared_ptr<const Reader>(std::move(reader));
  });
}

Status Reader::parse() {
  if (size < sizeof(FileHeader)) {
    size_t n = std::min<size_t>(size, sizeof(formatMagic));
    if (n == 0 || std::memcmp(base, formatMagic, n) != 0)
      return corrupt("it is not a Charonia engine");
    return corrupt("it is truncated: " + std::to_string(size) +
                   " bytes are less than a header");
  }
  FileHeader header;
  std::memcpy(&header, base, sizeof(header));
  CHARONIA_RETURN_IF_ERROR(checkHeader(header, size));

  size_t tableEnd =
      sizeof(FileHeader) + header.sectionCount * sizeof(SectionEntry);
  std::vector<std::byte> head(base, base + tableEnd);
  uint64_t stored = header.checksum;
  header.checksum = 0;
  std::memcpy(head.data(), &header, sizeof(header));
  if (checksum(head.data(), head.size()) != stored)
    return corrupt("it is damaged: the header's checksum does not match");
  for (uint64_t word : header.reserved)
    if (word != 0)
      return corrupt("it is damaged: reserved header fields are not zero");

  uint64_t end = tableEnd;
  for (uint32_t i = 0; i < header.sectionCount; ++i) {
    SectionEntry entry;
    std::memcpy(&entry, head.data() + sizeof(FileHeader) + i * sizeof(entry),
                sizeof(entry));
    CHARONIA_ASSIGN_OR_RETURN(SectionInfo info,
                              checkEntry(entry, i, end, size));
    end = info.offset + info.size;
    if (i == 0)
      manifestInfo = std::move(info);
    else
      table.push_back(std::move(info));
  }
  CHARONIA_RETURN_IF_ERROR(verifySection(manifestInfo));
  CHARONIA_ASSIGN_OR_RETURN(
      content, decodeManifest({base + manifestInfo.offset, manifestInfo.size}));
  return verify(content, table).withContext("its manifest is wrong");
}

std::span<const std::byte> Reader::section(uint32_t index) const {
  assert(index < table.size());
  return {base + table[index].offset, table[index].size};
}

std::span<const std::byte> Reader::range(const Range &range) const {
  return section(range.section).subspan(range.offset, range.size);
}

Status Reader::checkSection(const SectionInfo &info, uint64_t sum) const {
  if (sum == info.checksum)
    return Status::ok();
  return corrupt("it is damaged: the checksum of the section '" + info.name +
                 "' does not match");
}

Status Reader::verifySection(const SectionInfo &info) const {
  return checkSection(info, checksum(base + info.offset, info.size));
}

Status Reader::checkSection(uint32_t index, uint64_t sum) const {
  assert(index < table.size());
  return checkSection(table[index], sum)
      .withContext(subject() + " cannot be used");
}

Status Reader::verifySection(uint32_t index) const {
  assert(index < table.size());
  return checkSection(index,
                      checksum(base + table[index].offset, table[index].size));
}

Status Reader::verifyAll() const {
  uint64_t end = sizeof(FileHeader) + (table.size() + 1) * sizeof(SectionEntry);
  auto checkGap = [&](uint64_t next) {
    bool zero = std::all_of(base + end, base + next,
                            [](std::byte b) { return b == std::byte(0); });
    return zero ? Status::ok()
                : corrupt(subject() +
                          " is damaged: bytes between sections are not zero");
  };
  CHARONIA_RETURN_IF_ERROR(checkGap(manifestInfo.offset));
  end = manifestInfo.offset + manifestInfo.size;
  for (uint32_t i = 0; i < table.size(); ++i) {
    CHARONIA_RETURN_IF_ERROR(checkGap(table[i].offset));
    CHARONIA_RETURN_IF_ERROR(verifySection(i));
    end = table[i].offset + table[i].size;
  }
  return checkGap(size);
}

} // namespace charonia::engine
