// How large tiles are around sums that each program instance computes again:
// of one mind are the plan, which asks whether it pays, and the cost model.
#ifndef CHARONIA_GRAPH_ANALYSIS_SUMSAGAIN_H
#define CHARONIA_GRAPH_ANALYSIS_SUMSAGAIN_H

#include "llvm/ADT/bit.h"
#include <algorithm>
#include <cstdint>

namespace charonia::graph {

/// Elements of a tile of `elements` that are computed one by one, where each
/// instance reads `bytes` for its sums: what leaves every multiprocessor one or
/// two instances, or, where that is much to read, at most one.
inline int64_t tileAroundSums(int64_t elements, int64_t multiprocessors,
                              int64_t bytes) {
  constexpr int64_t least = 256, most = 4096, much = 8 << 10;
  auto each = uint64_t(elements / multiprocessors + 1);
  int64_t tile = bytes >= much ? llvm::bit_ceil(each) : llvm::bit_floor(each);
  return std::clamp(tile, least, most);
}

/// Columns that such a tile has of a product of one row.
inline constexpr int64_t columnsAroundSums = 32;

} // namespace charonia::graph

#endif
