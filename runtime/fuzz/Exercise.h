//===- Exercise.h - Everything a hostile engine can reach -------*- C++ -*-===//
//
// Shared by the fuzzer and the tests of bad input: puts a manifest into a file
// whose checksums are right, opens it and does what a runtime does with it,
// short of running its machine code.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_RUNTIME_FUZZ_EXERCISE_H
#define CHARONIA_RUNTIME_FUZZ_EXERCISE_H

#include "runtime/engine/Format.h"
#include "runtime/engine/Reader.h"
#include "runtime/exec/ExecutionPlan.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace charonia::engine::fuzz {

/// Makes the header's checksum right again.
inline void reseal(std::vector<std::byte> &file) {
  FileHeader header;
  if (file.size() < sizeof(header))
    return;
  std::memcpy(&header, file.data(), sizeof(header));
  uint64_t tableEnd =
      sizeof(header) + uint64_t(header.sectionCount) * sizeof(SectionEntry);
  if (tableEnd > file.size())
    return;
  header.checksum = 0;
  std::memcpy(file.data(), &header, sizeof(header));
  header.checksum = checksum(file.data(), tableEnd);
  std::memcpy(file.data(), &header, sizeof(header));
}

/// x86-64's `ret`: of a kernel, a call that does nothing.
inline constexpr std::byte returnInstruction{0xc3};

/// Bytes that start at a multiple of 4096, as a mapped file does.
class PageBuffer {
public:
  explicit PageBuffer(size_t size)
      : bytes(static_cast<std::byte *>(std::aligned_alloc(pageSize, size))),
        size(size) {
    std::memset(bytes, 0, size);
  }
  ~PageBuffer() { std::free(bytes); }
  PageBuffer(const PageBuffer &) = delete;
  PageBuffer &operator=(const PageBuffer &) = delete;
  operator std::span<const std::byte>() const { return {bytes, size}; }
  std::byte *data() const { return bytes; }

private:
  std::byte *bytes;
  size_t size;
};

/// A file of the manifest, of a section of code that is nothing but returns,
/// and of weights: as much of both as small models have.
inline std::unique_ptr<PageBuffer> seal(std::span<const std::byte> manifest) {
  constexpr uint64_t codeBytes = 16 * pageSize, weightBytes = 64 * pageSize;
  FileHeader header = {};
  std::memcpy(header.magic, formatMagic, sizeof(formatMagic));
  header.version = formatVersion;
  header.sectionCount = 3;
  SectionEntry table[3] = {};
  uint64_t position = pageSize;
  const uint64_t sizes[3] = {manifest.size(), codeBytes, weightBytes};
  for (int i = 0; i < 3; ++i) {
    table[i].kind = i + 1;
    table[i].alignment = pageSize;
    table[i].offset = position;
    table[i].size = sizes[i];
    position += (sizes[i] + pageSize - 1) / pageSize * pageSize;
  }
  header.fileSize = position;
  auto file = std::make_unique<PageBuffer>(position);
  std::ranges::copy(manifest, file->data() + pageSize);
  std::memset(file->data() + table[1].offset,
              static_cast<int>(returnInstruction), codeBytes);
  // The same in every file.
  static const uint64_t codeSum =
      checksum(file->data() + table[1].offset, codeBytes);
  static const uint64_t weightSum =
      checksum(file->data() + table[2].offset, weightBytes);
  table[0].checksum = checksum(file->data() + pageSize, manifest.size());
  table[1].checksum = codeSum;
  table[2].checksum = weightSum;
  header.checksum = 0;
  std::memcpy(file->data(), &header, sizeof(header));
  std::memcpy(file->data() + sizeof(header), table, sizeof(table));
  header.checksum = checksum(file->data(), sizeof(header) + sizeof(table));
  std::memcpy(file->data(), &header, sizeof(header));
  return file;
}

/// What a runtime does with an opened engine before it runs code.
inline void exercise(const Reader &reader) {
  const Signature &signature = reader.manifest().signature;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<int64_t> opts, highest, lowest;
  for (const Symbol &symbol : signature.symbols) {
    opts.push_back(symbol.opt);
    highest.push_back(symbol.max);
    lowest.push_back(symbol.min);
  }
  for (const TensorSpec &spec : signature.inputs) {
    (void)signature.typeString(spec);
    (void)signature.rangeString(spec);
    auto shape = signature.evaluateShape(spec, opts);
    shapes.push_back(shape ? *shape
                           : std::vector<int64_t>(spec.dims.size(), 3));
  }
  (void)signature.constraintStrings();
  (void)signature.solveSymbols(shapes);
  for (auto &shape : shapes)
    for (int64_t &dim : shape)
      dim = INT64_MAX;
  (void)signature.solveSymbols(shapes);
  for (const Program &program : reader.manifest().programs)
    for (const Variant &variant : program.variants) {
      for (const auto &symbols : {opts, highest, lowest})
        (void)exec::makeExecutionPlan(signature, program, variant, symbols);
      for (const CodeModule &module : variant.modules)
        for (const Range &range : {module.image, module.ptx, module.cubin})
          if (!range.empty())
            (void)checksum(reader.range(range).data(), range.size);
    }
  (void)reader.verifyAll();
}

/// Opens and exercises; true if the file was accepted.
inline bool tryFile(std::span<const std::byte> file) {
  auto reader = Reader::fromMemory(file, /*borrow=*/false);
  if (!reader)
    return false;
  exercise(**reader);
  return true;
}

} // namespace charonia::engine::fuzz

#endif // CHARONIA_RUNTIME_FUZZ_EXERCISE_H
