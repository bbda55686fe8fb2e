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
#include <cstring>

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

/// A file of the manifest and of a code and a weights section of 4096 bytes
/// each.
inline std::vector<std::byte> seal(std::span<const std::byte> manifest) {
  FileHeader header = {};
  std::memcpy(header.magic, formatMagic, sizeof(formatMagic));
  header.version = formatVersion;
  header.sectionCount = 3;
  SectionEntry table[3] = {};
  uint64_t position = pageSize;
  const uint64_t sizes[3] = {manifest.size(), pageSize, pageSize};
  for (int i = 0; i < 3; ++i) {
    table[i].kind = i + 1;
    table[i].alignment = pageSize;
    table[i].offset = position;
    table[i].size = sizes[i];
    position += (sizes[i] + pageSize - 1) / pageSize * pageSize;
  }
  header.fileSize = position;
  std::vector<std::byte> file(position);
  std::ranges::copy(manifest, file.begin() + pageSize);
  for (SectionEntry &entry : table)
    entry.checksum = checksum(file.data() + entry.offset, entry.size);
  std::memcpy(file.data(), &header, sizeof(header));
  std::memcpy(file.data() + sizeof(header), table, sizeof(table));
  reseal(file);
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
