// What a tile program of a GPU says of its indices, its cluster and the order
// of its scans, and keeps on its way down.
#ifndef CHARONIA_CODEGEN_TILE_IR_INDEXATTRIBUTES_H
#define CHARONIA_CODEGEN_TILE_IR_INDEXATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace charonia::tile {

/// Integer attribute of a GPU kernel: bits of its indices, 32 where it has
/// none.
inline constexpr llvm::StringLiteral kIndexBitsAttr = "tile.index_bits";
/// AffineMap ()[shape symbols] -> (numbers of elements) of a GPU kernel of
/// 32-bit indices: what these have to count, where sizes in the symbols' ranges
/// are too large for them.
inline constexpr llvm::StringLiteral kIndexedAttr = "tile.indexed";

/// Integer attribute of a GPU kernel: neighbours in the grid that run together,
/// as a cluster; 1 where it has none.
inline constexpr llvm::StringLiteral kClusterAttr = "tile.cluster";

/// Unit attribute of a tile.scan: elements are combined strictly one after the
/// other, the carry first, as parts combined on their own give another result.
inline constexpr llvm::StringLiteral kOneByOneAttr = "tile.one_by_one";

} // namespace charonia::tile

#endif
