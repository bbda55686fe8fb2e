//===- Reader.h - Opening an engine file ------------------------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_ENGINE_READER_H
#define CHARONIA_RUNTIME_ENGINE_READER_H

#include "runtime/engine/Engine.h"

#include <cstddef>
#include <memory>

namespace charonia::engine {

/// An opened engine: immutable, safe to share between threads. The file is
/// memory mapped and must not be changed while it is open (replacing it by
/// rename, as the Writer does, is fine).
class Reader {
public:
  ~Reader();
  Reader(const Reader &) = delete;
  Reader &operator=(const Reader &) = delete;

  /// Checks header, section table, manifest and their checksums, and everything
  /// the manifest refers to. Sections' bytes are checked by verifySection().
  /// With a digest (SHA-256 in hexadecimal) the file is read to memory instead
  /// of being mapped, once its header is right, and its bytes must have that
  /// digest.
  static Result<std::shared_ptr<const Reader>>
  open(const std::string &path, const std::string &digest = {});

  /// The same over memory. The bytes are copied unless `borrow` and no digest
  /// is given; with `borrow` they must outlive the Reader and start at a
  /// multiple of 4096.
  static Result<std::shared_ptr<const Reader>>
  fromMemory(std::span<const std::byte> bytes, bool borrow,
             const std::string &digest = {});

  const Manifest &manifest() const { return content; }
  /// The raw sections, numbered as the Writer numbered them.
  std::span<const SectionInfo> sections() const { return table; }
  const SectionInfo &manifestSection() const { return manifestInfo; }
  /// The bytes of section `index`, which must exist; starts at a multiple of
  /// 4096.
  std::span<const std::byte> section(uint32_t index) const;
  /// The bytes of a range of the verified manifest.
  std::span<const std::byte> range(const Range &range) const;

  /// Compares a section's checksum; reads all its bytes.
  Status verifySection(uint32_t index) const;
  /// The same for a checksum that was taken of a copy of the section.
  Status checkSection(uint32_t index, uint64_t checksum) const;
  /// All sections, and that the gaps between them are zero.
  Status verifyAll() const;

  /// SHA-256 of the whole file in hexadecimal; reads it all.
  std::string digest() const;

  /// Empty if the engine is in memory.
  const std::string &name() const { return path; }
  uint64_t fileSize() const { return size; }

private:
  Reader() = default;
  /// "the engine 'a.engine'", to begin messages.
  std::string subject() const;
  Status parse();
  Status checkDigest(const std::string &expected) const;
  Status readAll(int fd);
  Status checkSection(const SectionInfo &info, uint64_t sum) const;
  Status verifySection(const SectionInfo &info) const;

  std::string path;
  const std::byte *base = nullptr;
  uint64_t size = 0;
  void *mapping = nullptr;
  std::byte *owned = nullptr;
  Manifest content;
  SectionInfo manifestInfo;
  std::vector<SectionInfo> table;
};

} // namespace charonia::engine

#endif // CHARONIA_RUNTIME_ENGINE_READER_H
