// The sorted table of TensorFlow's variables, "variables.index": LevelDB's
// table format
// (https://github.com/google/leveldb/blob/main/doc/table_format.md).
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_TABLE_H
#define CHARONIA_FRONTENDS_TENSORFLOW_TABLE_H

#include "frontends/common/Emitter.h"
#include <map>

namespace charonia::frontend::tensorflow {

/// Values by key; they point into the file's bytes.
using Table = std::map<std::string, llvm::StringRef, std::less<>>;

/// Reads all of a table. Every offset and length is checked, and the checksum
/// of each block; memory is bounded by a multiple of the bytes. None and a
/// problem where it is damaged or compressed.
std::optional<Table> readTable(llvm::StringRef bytes, Problem &problem);

/// CRC-32C (Castagnoli) of `bytes`, going on from `crc`.
uint32_t crc32c(llvm::StringRef bytes, uint32_t crc = 0);
/// As the format stores one, so that a checksum of checksums is of use.
uint32_t maskCrc(uint32_t crc);

/// A varint of up to 64 bits at the front of `bytes`, which it is taken from;
/// none where there is none.
std::optional<uint64_t> takeVarint(llvm::StringRef &bytes);

} // namespace charonia::frontend::tensorflow

#endif
