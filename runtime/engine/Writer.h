//===- Writer.h - Writing an engine file ------------------------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_ENGINE_WRITER_H
#define CHARONIA_RUNTIME_ENGINE_WRITER_H

#include "runtime/engine/Engine.h"

#include <cstddef>
#include <functional>

namespace charonia::engine {

/// Takes a section's bytes in order, in pieces of any size.
class SectionSink {
public:
  using WriteFn = std::function<Status(std::span<const std::byte>)>;
  explicit SectionSink(WriteFn fn) : fn(std::move(fn)) {}
  Status write(std::span<const std::byte> bytes) { return fn(bytes); }
  Status write(const void *data, size_t size) {
    return fn({static_cast<const std::byte *>(data), size});
  }

private:
  WriteFn fn;
};

/// Produces a section's bytes when the file is written.
using SectionProducer = std::function<Status(SectionSink &)>;

/// Packs pieces of code into one section; equal pieces are stored once.
class CodeSection {
public:
  /// `section` is the index that addSection() will return for bytes().
  explicit CodeSection(uint32_t section) : section(section) {}
  Range add(std::span<const std::byte> piece, uint64_t alignment = 64);
  /// PTX is stored with a terminating NUL, which the range does not count.
  Range addText(std::string_view text);
  std::span<const std::byte> bytes() const { return data; }

private:
  Range append(std::span<const std::byte> piece, uint64_t alignment, bool nul);
  uint32_t section;
  std::vector<std::byte> data;
  struct Piece {
    uint64_t hash;
    uint64_t alignment;
    bool nul;
    Range range;
  };
  std::vector<Piece> pieces;
};

/// Writes engine files: the same manifest and sections give the same bytes. Not
/// thread-safe; one Writer per file.
class Writer {
public:
  /// Adds a section whose bytes stay valid until write() returns. Returns the
  /// index by which the manifest refers to it (the first is 0).
  uint32_t addSection(SectionKind kind, std::string name,
                      std::span<const std::byte> bytes);
  /// Adds a section of exactly `size` bytes that `producer` streams.
  uint32_t addSection(SectionKind kind, std::string name, uint64_t size,
                      SectionProducer producer);
  /// The index that the next addSection() returns.
  uint32_t nextSection() const {
    return static_cast<uint32_t>(sections.size());
  }

  /// Checks the manifest, then writes a temporary file in path's folder, syncs
  /// it and renames it to `path`. On any failure (disk full, producer's error)
  /// the old file, if any, is as it was and nothing new is left.
  /// `beforeCommit` is called when all bytes are written, right before the file
  /// is synced and gets its name.
  Status write(const Manifest &manifest, const std::string &path,
               const std::function<void()> &beforeCommit = {}) const;
  /// The same bytes in memory.
  Status write(const Manifest &manifest, std::vector<std::byte> &bytes) const;

private:
  class Output;
  class FileOutput;
  class MemoryOutput;
  Status writeTo(const Manifest &manifest, Output &output) const;

  struct Section {
    SectionKind kind;
    std::string name;
    uint64_t size;
    std::span<const std::byte> bytes;
    SectionProducer producer;
  };
  std::vector<Section> sections;
};

} // namespace charonia::engine

#endif // CHARONIA_RUNTIME_ENGINE_WRITER_H
