// What integers a value may have.
#ifndef CHARONIA_GRAPH_ANALYSIS_NARROWRANGE_H
#define CHARONIA_GRAPH_ANALYSIS_NARROWRANGE_H

#include "graph/ir/Dialect.h"
#include <optional>

namespace charonia::graph {

/// Bounds of the elements of a value of integers.
struct IntegerRange {
  int64_t low, high;
  bool isWithin(int64_t from, int64_t to) const {
    return low >= from && high <= to;
  }
};

/// What the elements of `value` lie between, as far as weights, masks, parts
/// and casts of them say; at most its type's range, nothing where that has 64
/// bits or is none of integers.
std::optional<IntegerRange> integerRangeOf(mlir::Value value);

} // namespace charonia::graph

#endif
