// Kernels that store a result as a part of a larger value.
#ifndef CHARONIA_GRAPH_ANALYSIS_STOREDPARTS_H
#define CHARONIA_GRAPH_ANALYSIS_STOREDPARTS_H

#include "graph/ir/Dialect.h"

namespace charonia::graph {

/// On kernels: of each result where it lies in a larger value, or a unit
/// attribute. The type of such a result is its own; the memory that a launch is
/// passed for it is the whole value's.
inline constexpr llvm::StringLiteral kStoredPartsAttr = "graph.stored_parts";

/// What of a result is stored as a part of a value that has more along one
/// axis, and else the same bytes. Over shape symbols: which of the result's
/// elements along the axis are, where the first of them lies in the value, and
/// what the value has there.
struct StoredPart {
  unsigned axis = 0;
  mlir::AffineExpr first, count, offset, extent;

  friend bool operator==(const StoredPart &, const StoredPart &) = default;
};

/// Nothing for a result that is stored as it is.
std::optional<StoredPart> getStoredPart(KernelOp kernel, unsigned result);
void setStoredPart(KernelOp kernel, unsigned result, const StoredPart &part);

/// The type of the memory that a launch is passed for a result, in the result's
/// dimensions.
mlir::Type getStoredType(KernelOp kernel, unsigned result);

} // namespace charonia::graph

#endif
