// Elements that a model stores, as constants and as weights.
#ifndef CHARONIA_GRAPH_PASSES_STORED_H
#define CHARONIA_GRAPH_PASSES_STORED_H

#include "graph/ir/Dialect.h"
#include <optional>

namespace charonia::graph {

/// A constant or a weight as its bytes, those of i1 one each.
struct Stored {
  mlir::RankedTensorType type;
  llvm::ArrayRef<char> kept; ///< Of the attribute or the store,
  std::vector<char> owned;   ///< or else of its own.

  llvm::ArrayRef<char> bytes() const {
    return owned.empty() ? kept : llvm::ArrayRef<char>(owned);
  }
  int64_t count() const { return type.getNumElements(); }
  size_t width() const { return bytes().size() / count(); }
  llvm::ArrayRef<char> element(int64_t i) const {
    return bytes().slice(i * width(), width());
  }
};

/// What a constant or a weight stores; nothing of other operators, and of
/// constants that say one element for all.
std::optional<Stored> storedIn(mlir::Operation *op);

/// base + steps[d] * the coordinate along each dimension d.
struct Progression {
  int64_t base;
  llvm::SmallVector<int64_t> steps;
};

/// Integers of whole bytes, of which there are some, as a progression whose
/// sums do not wrap. Those of no sign are taken as if they had one: less is
/// found.
std::optional<Progression> progressionOf(const Stored &stored);

} // namespace charonia::graph

#endif
