// What a structured access does along each axis of its tile: strides, runs of
// consecutive elements, alignment, how far its bounds checks vary. Both targets
// choose their memory instructions by it.
#ifndef CHARONIA_CODEGEN_TILE_ANALYSIS_ACCESS_H
#define CHARONIA_CODEGEN_TILE_ANALYSIS_ACCESS_H

#include "codegen/tile/ir/TileDialect.h"
#include "graph/ir/Algebra.h"
#include <optional>

namespace charonia::tile {

/// A load, store or prefetch, seen alike.
struct AccessOp {
  mlir::Operation *op;
  mlir::RankedTensorType tile;
  mlir::Value buffer;
  mlir::ValueRange symbols;
  mlir::AffineMap map, shape;
  int64_t rank;
  llvm::ArrayRef<int64_t> checks;

  static AccessOp get(LoadOp op);
  static AccessOp get(StoreOp op);
  static AccessOp get(PrefetchOp op);
};

/// An access along one axis, for blocks of elements aligned to their own size
/// within the tile.
struct AxisAccess {
  /// Elements between neighbours, where it is the same everywhere in the tile;
  /// 0 if the axis does not move the address.
  std::optional<int64_t> stride;
  /// Largest power of two V (at most the extent) so that each aligned block of
  /// V elements along the axis is consecutive in memory (stride 1). 1 if none.
  int64_t contiguous = 1;
  /// Largest power of two that divides the element offset of the first element
  /// of each such block, for every value of the other axes and symbols.
  int64_t alignment = 1;
  /// Largest power of two R so that the R elements of each aligned block along
  /// the axis are one and the same in memory, where others differ: of a byte
  /// the numbers packed in it, of a block its scale. `contiguous` and
  /// `alignment` then count what differs.
  int64_t repeat = 1;
  /// Largest power of two V so that the checks agree within each aligned block
  /// of V.
  int64_t uniformChecks = 1;
  /// The same, where the coordinate of one check may also go up by one from
  /// element to element, if its extent is V at least: where neither the first
  /// element of a block is inside nor the last, none is.
  int64_t steppedChecks = 1;
  /// The same, where that coordinate is never negative: the elements of a block
  /// that are inside are its first.
  int64_t endingChecks = 1;
};

/// What is known of the dims and symbols of the access's maps.
graph::Facts factsOf(const AccessOp &access);

/// Element offset from the start of the buffer, over the map's dims and
/// symbols, simplified. `inner`, if given, takes the place of the innermost
/// dim.
mlir::AffineExpr linearOffset(const AccessOp &access, const graph::Facts &facts,
                              mlir::AffineExpr inner = {});

/// What happens along `axis`. A symbol that is a tile counts as varying along
/// the axes where its extent is not 1.
AxisAccess analyzeAxis(const AccessOp &access, unsigned axis);
/// The same along every axis.
llvm::SmallVector<AxisAccess> analyzeAxes(const AccessOp &access);

/// Whether neighbours along another axis begin inside of the run of memory that
/// an element is part of along `axis`, as windows do that overlap: what is read
/// for one is read for others as well. A hint: it looks at the first elements.
bool runsOverlap(const AccessOp &access, unsigned axis);

} // namespace charonia::tile

#endif
