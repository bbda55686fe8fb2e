// LLVM's relocatable ELF objects laid out as flat images.
#ifndef CHARONIA_CODEGEN_CPU_IMAGE_H
#define CHARONIA_CODEGEN_CPU_IMAGE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace charonia::cpu {

struct FlatObject {
  std::vector<uint8_t> bytes;
  /// Defined functions with external linkage and their offsets, by offset.
  std::vector<std::pair<std::string, uint64_t>> functions;
};

/// Alignment that the offsets of a flat object rely on.
inline constexpr uint64_t kImageAlignment = 64;

/// Lays code and read-only data of an object behind each other and resolves the
/// relocations between them. What cannot stand in such an image (writable data,
/// undefined symbols, absolute addresses) is an error that names it.
llvm::Expected<FlatObject> flattenObject(llvm::StringRef object);

} // namespace charonia::cpu

#endif
