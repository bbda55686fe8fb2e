// What integers a value may have.
#ifndef CHARONIA_GRAPH_PASSES_NARROWRANGE_H
#define CHARONIA_GRAPH_PASSES_NARROWRANGE_H

#include "graph/ir/Dialect.h"
#include <optional>

namespace charonia::graph {

/// Bounds of the elements of a value of integers, of whatever type.
struct IntegerRange {
  int64_t low, high;
  bool isWithin(int64_t from, int64_t to) const {
    return low >= from && high <= to;
  }
};

/// What the elements of `value` lie between, if they are integers, as far as
/// weights, masks, parts, casts and constants that are added say; at most its
/// type's range, nothing where that has 64 bits.
std::optional<IntegerRange> integerRangeOf(mlir::Value value);

} // namespace charonia::graph

#endif
