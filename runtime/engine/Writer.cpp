//===- Writer.cpp - Writing an engine file --------------------------------===//

#include "runtime/engine/Writer.h"
#include "runtime/engine/AtomicFile.h"
#include "runtime/engine/Checksum.h"
#include "runtime/engine/Encoding.h"
#include "runtime/engine/Format.h"

#include <algorithm>
#include <cstring>

namespace charonia::engine {

//===----------------------------------------------------------------------===//
// CodeSection
//===----------------------------------------------------------------------===//

Range CodeSection::append(std::span<const std::byte> piece, uint64_t alignment,
                          bool nul) {
  uint64_t hash = checksum(piece.data(), piece.size());
  for (const Piece &known : pieces)
    if (known.hash == hash && known.range.size == piece.size() &&
        known.nul >= nul && known.alignment % alignment == 0 &&
        std::equal(piece.begin(), piece.end(),
                   data.begin() + known.range.offset))
      return known.range;
  uint64_t offset = (data.size() + alignment - 1) / alignment * alignment;
  data.resize(offset);
  data.insert(data.end(), piece.begin(), piece.end());
  if (nul)
    data.push_back(std::byte(0));
  Range range{section, offset, piece.size()};
  pieces.push_back({hash, alignment, nul, range});
  return range;
}

Range CodeSection::add(std::span<const std::byte> piece, uint64_t alignment) {
  return append(piece, alignment, false);
}

Range CodeSection::addText(std::string_view text) {
  return append(std::as_bytes(std::span(text)), 16, true);
}

//===----------------------------------------------------------------------===//
// Writer
//===----------------------------------------------------------------------===//

uint32_t Writer::addSection(SectionKind kind, std::string name,
                            std::span<const std::byte> bytes) {
  sections.push_back({kind, std::move(name), bytes.size(), bytes, nullptr});
  return static_cast<uint32_t>(sections.size() - 1);
}

uint32_t Writer::addSection(SectionKind kind, std::string name, uint64_t size,
                            SectionProducer producer) {
  sections.push_back({kind, std::move(name), size, {}, std::move(producer)});
  return static_cast<uint32_t>(sections.size() - 1);
}

/// Where an engine's bytes go.
class Writer::Output {
public:
  virtual ~Output() = default;
  virtual Status append(const void *data, size_t size) = 0;
  virtual Status writeAt(uint64_t offset, const void *data, size_t size) = 0;
  virtual uint64_t position() const = 0;

  Status padTo(uint64_t alignment) {
    static const char zeros[pageSize] = {};
    return append(zeros, (alignment - position() % alignment) % alignment);
  }
};

class Writer::FileOutput : public Writer::Output {
public:
  explicit FileOutput(AtomicFile &file) : file(file) {}
  Status append(const void *data, size_t size) override {
    return file.append(data, size);
  }
  Status writeAt(uint64_t offset, const void *data, size_t size) override {
    return file.writeAt(offset, data, size);
  }
  uint64_t position() const override { return file.position(); }

private:
  AtomicFile &file;
};

class Writer::MemoryOutput : public Writer::Output {
public:
  explicit MemoryOutput(std::vector<std::byte> &bytes) : bytes(bytes) {}
  Status append(const void *data, size_t size) override {
    auto *first = static_cast<const std::byte *>(data);
    bytes.insert(bytes.end(), first, first + size);
    return Status::ok();
  }
  Status writeAt(uint64_t offset, const void *data, size_t size) override {
    auto *first = static_cast<const std::byte *>(data);
    std::copy(first, first + size, bytes.begin() + offset);
    return Status::ok();
  }
  uint64_t position() const override { return bytes.size(); }

private:
  std::vector<std::byte> &bytes;
};

namespace {

SectionEntry makeEntry(SectionKind kind, const std::string &name,
                       uint64_t size) {
  SectionEntry entry = {};
  entry.kind = static_cast<uint32_t>(kind);
  entry.alignment = static_cast<uint32_t>(pageSize);
  entry.size = size;
  std::memcpy(entry.name, name.data(),
              std::min(name.size(), sizeof(entry.name) - 1));
  return entry;
}

} // namespace

Status Writer::write(const Manifest &manifest, const std::string &path,
                     const std::function<void()> &beforeCommit) const {
  AtomicFile file(path);
  CHARONIA_RETURN_IF_ERROR(file.open());
  FileOutput output(file);
  CHARONIA_RETURN_IF_ERROR(writeTo(manifest, output));
  if (beforeCommit)
    beforeCommit();
  return file.commit();
}

Status Writer::write(const Manifest &manifest,
                     std::vector<std::byte> &bytes) const {
  bytes.clear();
  MemoryOutput output(bytes);
  return writeTo(manifest, output);
}

Status Writer::writeTo(const Manifest &manifest, Output &file) const {
  std::vector<SectionInfo> infos;
  for (const Section &section : sections) {
    SectionInfo info;
    info.kind = section.kind;
    info.name = section.name;
    info.size = section.size;
    infos.push_back(std::move(info));
  }
  if (sections.size() + 1 > maxSections)
    return Status(StatusCode::InvalidArgument, "an engine has at most " +
                                                   std::to_string(maxSections) +
                                                   " sections");
  // What the Reader would reject is a bug of whoever filled the manifest.
  if (Status status = verify(manifest, infos); !status)
    return Status(StatusCode::Internal,
                  "the engine's manifest is wrong: " + status.message());
  CHARONIA_ASSIGN_OR_RETURN(std::string encoded, encodeManifest(manifest));

  std::vector<SectionEntry> table;
  table.push_back(makeEntry(SectionKind::Manifest, "manifest", encoded.size()));
  for (const Section &section : sections)
    table.push_back(makeEntry(section.kind, section.name, section.size));
  size_t tableBytes = table.size() * sizeof(SectionEntry);

  // The table is complete only at the end; its place is kept by zeros.
  std::vector<char> head(sizeof(FileHeader) + tableBytes);
  CHARONIA_RETURN_IF_ERROR(file.append(head.data(), head.size()));

  for (size_t i = 0; i < table.size(); ++i) {
    CHARONIA_RETURN_IF_ERROR(file.padTo(pageSize));
    table[i].offset = file.position();
    ChecksumStream sum;
    uint64_t expected = table[i].size, seen = 0;
    SectionSink sink([&](std::span<const std::byte> bytes) {
      if (bytes.size() > expected - seen)
        return Status(StatusCode::Internal,
                      "the section '" + std::string(table[i].name) +
                          "' has more bytes than announced");
      seen += bytes.size();
      sum.update(bytes.data(), bytes.size());
      return file.append(bytes.data(), bytes.size());
    });
    if (i == 0)
      CHARONIA_RETURN_IF_ERROR(sink.write(encoded.data(), encoded.size()));
    else if (const Section &section = sections[i - 1]; section.producer)
      CHARONIA_RETURN_IF_ERROR(section.producer(sink));
    else
      CHARONIA_RETURN_IF_ERROR(sink.write(section.bytes));
    if (seen != expected)
      return Status(StatusCode::Internal,
                    "the section '" + std::string(table[i].name) +
                        "' has fewer bytes than announced");
    table[i].checksum = sum.digest();
  }

  FileHeader header = {};
  std::memcpy(header.magic, formatMagic, sizeof(formatMagic));
  header.version = formatVersion;
  header.sectionCount = static_cast<uint32_t>(table.size());
  header.fileSize = file.position();
  std::memcpy(head.data(), &header, sizeof(header));
  std::memcpy(head.data() + sizeof(header), table.data(), tableBytes);
  header.checksum = checksum(head.data(), head.size());
  std::memcpy(head.data(), &header, sizeof(header));
  return file.writeAt(0, head.data(), head.size());
}

} // namespace charonia::engine
