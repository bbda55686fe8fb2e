//===- Format.h - The bytes of an engine file's header ----------*- C++ -*-===//
//
// Little-endian throughout. docs/engine-format.md is the description.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_RUNTIME_ENGINE_FORMAT_H
#define CHARONIA_RUNTIME_ENGINE_FORMAT_H

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace charonia::engine {

static_assert(std::endian::native == std::endian::little,
              "the engine file is little-endian and read in place");

constexpr char formatMagic[8] = {'\x89', 'C', 'H', 'A', 'R', 'O', '\r', '\n'};
constexpr uint32_t formatVersion = 8;
constexpr uint64_t pageSize = 4096;
constexpr uint32_t maxSections = 4096;
constexpr uint64_t maxManifestBytes = uint64_t(1) << 26;
/// The structs of Engine.h that a manifest unpacks to take at most so many
/// bytes for each of its own. Compiled engines stay below 8.
constexpr uint64_t maxUnpacking = 24;
/// Of one shape expression.
constexpr size_t maxExprTerms = 4096;
/// Inputs and outputs, each: a run looks at every pair of an input and an
/// output.
constexpr size_t maxTensors = 4096;
/// Of a shape symbol, an input, an output and the reason of a constraint, in
/// bytes.
constexpr size_t maxNameBytes = 4096;

/// Of one kernel's code, each 128 bytes of its parameters.
constexpr size_t maxTensorMaps = 16;
/// Terms of the expressions of tensor maps, counted once for each launch that
/// evaluates them, in one variant: what binding a shape takes for them is
/// bounded whatever the launches are.
constexpr uint64_t maxMapTerms = uint64_t(1) << 20;

/// At offset 0; the section table follows at once. The first section is the
/// manifest, the others are numbered from 0 in the order of the table.
struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t sectionCount; ///< With the manifest.
  uint64_t fileSize;
  uint64_t reserved[4]; ///< Zero.
  uint64_t checksum;    ///< XXH3 of header and table, this field taken as zero.
};
static_assert(sizeof(FileHeader) == 64 &&
              std::is_trivially_copyable_v<FileHeader>);

struct SectionEntry {
  uint32_t kind;
  uint32_t alignment;
  uint64_t offset;
  uint64_t size;
  uint64_t checksum; ///< XXH3, 64 bits, of the section's bytes.
  char name[32];     ///< Zero-padded; the last byte is zero.
};
static_assert(sizeof(SectionEntry) == 64 &&
              std::is_trivially_copyable_v<SectionEntry>);

/// XXH3, 64 bits.
uint64_t checksum(const void *data, size_t size);

} // namespace charonia::engine

#endif // CHARONIA_RUNTIME_ENGINE_FORMAT_H
