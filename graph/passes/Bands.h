// Sets of places that lie in bands: what causal masks and windows keep.
#ifndef CHARONIA_GRAPH_PASSES_BANDS_H
#define CHARONIA_GRAPH_PASSES_BANDS_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>

namespace charonia::graph {

/// low <= the coordinate of dimension `to`, less that of `from` where there is
/// one (-1: there is none), <= high. A limit that all places keep is not there.
struct Band {
  int64_t from, to;
  std::optional<int64_t> low, high;
};

/// Bands whose common places are just those of a tensor of this shape where
/// `holds` is true of their number in row-major order; nothing where there are
/// no such bands, no places, or fewer than two dimensions or more than three of
/// more than one place. Takes time in the number of places.
std::optional<llvm::SmallVector<Band>>
bandsOf(llvm::ArrayRef<int64_t> shape, llvm::function_ref<bool(int64_t)> holds);

} // namespace charonia::graph

#endif
