// Writes the tile program of a kernel by one schedule: the frame and what is
// stored in Kernel.cpp, the walk of an instance over its part in
// KernelWalk.cpp.
#ifndef CHARONIA_CODEGEN_EMIT_KERNELBUILDER_H
#define CHARONIA_CODEGEN_EMIT_KERNELBUILDER_H

#include "codegen/emit/ShortRows.h"
#include "codegen/emit/TileEmitter.h"
#include "graph/analysis/Cells.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::emit {

class KernelBuilder {
public:
  KernelBuilder(graph::KernelOp kernel, const EmitTarget &target,
                const Schedule &schedule, mlir::OpBuilder &builder,
                std::optional<unsigned> sharedAxis)
      : kernel(kernel), target(target), schedule(schedule), b(builder),
        function(createFunction(target)),
        e(kernel, target, this->schedule, builder, function),
        sharedAxis(sharedAxis), axes(schedule.axes),
        starts(schedule.groups.size()) {
    for (const Schedule::Group &g : schedule.groups)
      tiles.push_back(g.tile);
  }

  /// Of what was written: whether instances that share rows share all that is
  /// reduced.
  bool sharesRows() const { return !e.isAnyUnshared(); }

  mlir::FailureOr<mlir::func::FuncOp> run();

private:
  /// What no group of the schedule walks would stay what the memory held, but
  /// for rows that an operator with a program of its own writes.
  mlir::LogicalResult checkThatAllIsWalked();
  /// A row that instances share is walked along once, in a cluster of them.
  mlir::LogicalResult checkRowParts();
  /// Tiles have whole cells where a result adds these up.
  mlir::LogicalResult checkCells();
  /// A product and a sum that one operator expands into (terms of a dot, a
  /// polynomial) may become one fused multiply-add: one rounding less, half the
  /// instructions. What an operator gives is rounded by itself (kRoundedAttr).
  void allowContraction();
  mlir::func::FuncOp createFunction(const EmitTarget &target);
  mlir::AffineExpr extentOf(const Schedule::Group &g);
  mlir::AffineExpr countOf(const Schedule::Group &g);
  /// Tile numbers of the grid's groups from the program's index.
  void startGrid();
  /// A GPU takes instances in their order, and what it takes last should be
  /// short.
  bool runsLongestLast();
  /// Whether any of the groups has more than one tile.
  bool isAnyMoving(llvm::ArrayRef<unsigned> groups);
  /// Tile numbers of the two fastest groups, the fastest in runs. Gives what is
  /// left of the program's index `rest` for the others.
  mlir::Value startRuns(llvm::ArrayRef<unsigned> parallel, mlir::Value rest);
  void findPosition(llvm::ArrayRef<unsigned> parallel);
  /// What a part of a split leaves behind: its registers of f32. Small tiles
  /// are held several times over: by multiply-adds of up to 16 elements a
  /// thread.
  int64_t slotBytes() const {
    int64_t elements = 1;
    for (unsigned axis : schedule.axes)
      elements *= schedule.groups[axis].tile;
    return 4 * std::max(elements, schedule.warps * 32 * 16);
  }
  mlir::Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, kernel.getLoc(), value);
  }

  /// A tile of `size` of the group that has a rest, from `first` on, a multiple
  /// of `divisor`; `inside` of its elements certainly exist.
  mlir::LogicalResult walkTile(unsigned group, mlir::Value first, int64_t size,
                               int64_t inside, int64_t divisor = 1);
  /// A tile for the `left` elements from `first` on, of `size` if these are no
  /// more, else of twice that, or of the shortest, up to the group's rest.
  mlir::LogicalResult walkUpTo(unsigned group, mlir::Value first,
                               mlir::Value left, int64_t size);
  /// A tile of a rest, which may be the whole one.
  mlir::LogicalResult walkPartOfRest(unsigned group, mlir::Value first,
                                     mlir::Value left);
  /// The `left` elements from `begin` on, at most `most`, in tiles of `size`,
  /// or what a rest has in their place.
  mlir::LogicalResult walkInTiles(unsigned group, mlir::Value begin,
                                  mlir::Value left, int64_t most, int64_t size);
  /// The `left` elements from `begin` on, fewer than a whole tile.
  mlir::LogicalResult walkRest(unsigned group, mlir::Value begin,
                               mlir::Value left);
  /// Walks all groups. Where one has a rest, its whole tiles lie inside without
  /// a look at their ends, and what is behind them takes shorter ones.
  mlir::LogicalResult walkWithRest();
  /// The same once for each length that rows of an open extent may not exceed,
  /// then for those that do.
  mlir::LogicalResult walkByLength(const ShortRows &rows, unsigned from = 0);
  /// The kernel, and in front of it once more what there is of it where one of
  /// its groups has a single element.
  mlir::LogicalResult walkAll();
  mlir::LogicalResult walkVector(unsigned group);
  /// Of a tile of rows, whose memory may lie 4 KB apart, no more at once than a
  /// cache has lines for one place.
  mlir::LogicalResult walkSums();
  mlir::LogicalResult walk(unsigned group);
  /// The same of an open extent: whole tiles, and what is left if anything is.
  mlir::LogicalResult walkOpen(unsigned group);
  /// Whether what is written is a tile of a rest. What a product has of its
  /// rows is its own to look at.
  bool isRowOfRest(unsigned group);
  /// Whether a group walks rows of a product that are stored in another order.
  bool hasMovedRows(const Schedule::Group &g);
  /// Whether a loop inside of a CPU's program instance ends with a tile that is
  /// not whole.
  bool isRagged(const Schedule::Group &g);

  /// Coordinates of the group's dimensions for tile `number`.
  void place(unsigned group, mlir::AffineExpr number);
  void setCoordinates(const Schedule::Group &g, mlir::AffineExpr index,
                      Exprs &coordinates);
  /// The same of tiles that begin anew at each multiple of `within`. What one
  /// has past the next multiple is not its own, and is of the same part for all
  /// that is read.
  void placeWithin(unsigned group, mlir::AffineExpr number);
  llvm::SmallVector<int64_t> tileOf() const;

  mlir::LogicalResult storeResults();
  /// In another order, or another shape, an element past a row's end may be one
  /// of the next row: nobody wants it.
  void addEnds(Demand &demand);
  /// Cells along an axis of the tile; null: there are none.
  const graph::CellSide *cellsAlong(unsigned axis) const;
  /// The same of a result that has some of each of the tile's cells; nothing
  /// where it has all.
  std::optional<mlir::LogicalResult> storeOfCells(unsigned result,
                                                  const Demand &tile);
  /// Stores the sums of what the tile's cells have of a result's operand.
  mlir::LogicalResult storeCells(unsigned result, const Demand &tile);
  /// What a tile has in each of its cells.
  mlir::Value sumCells(mlir::Value tile);
  /// What is of cells, for each element of the tile `like`.
  mlir::Value spreadOverCells(mlir::Value sums, mlir::Value like);
  /// What of a tile is somebody's, 0 elsewhere, and its cells' sums.
  struct CellSums {
    mlir::Value terms, sums;
  };
  /// Of squared distances from the mean of each cell, of `count` elements.
  mlir::Value sumSquaredDistances(const CellSums &cells, int64_t count);
  /// Stores what a result has of each of the tile's cells.
  mlir::LogicalResult storeParts(unsigned result, const Demand &tile);
  /// The demand on what is stored of the cells of a demanded tile.
  Demand placesOfCells(Demand demand);
  /// Of the instances of a cluster each stores its share of a tile; false where
  /// none has any.
  bool takeShare(Demand &demand);
  /// Writes a tile of a result to its memory, or where it belongs in that of a
  /// larger value.
  void store(unsigned result, Value tile, const Demand &demand);
  /// The tile of a result that is stored as `demand` says, `walked` being the
  /// demand on what is walked.
  FailureOr<Value> emitResult(const Demand &walked, const Demand &demand);
  /// A row value is stored once for its row, not for each element along it.
  Demand withoutUnusedAxes(const Demand &demand);

  graph::KernelOp kernel;
  const EmitTarget &target;
  Schedule schedule; ///< Of the body that is being written.
  mlir::OpBuilder &b;
  mlir::func::FuncOp function;
  TileEmitter e;
  /// See TileEmitter::Split.
  std::optional<unsigned> sharedAxis;
  mlir::Operation *yield = nullptr;
  /// See graph::getFirst.
  Value first;
  /// See graph::kWalksProductAttr.
  bool walksProduct = false;
  Exprs root, coordinates;
  /// The coordinates, also of what a tile has past the end of a dimension.
  Exprs unbounded;
  /// What of the tile is its own.
  llvm::SmallVector<Guard> guards;
  /// Of groups whose tile may have elements past the last of their dimensions.
  llvm::SmallVector<std::optional<Guard>> ends;
  /// From coordinates of what is walked to those of each result.
  llvm::SmallVector<mlir::AffineMap> resultMaps;
  /// Where tiles have whole cells, as a result has some of each.
  llvm::SmallVector<graph::CellSide> cells;
  std::optional<graph::IterationSpace> space; ///< If there are such.
  /// Of the tile that is being stored, by what its cells are of.
  llvm::SmallDenseMap<Value, CellSums> cellSums;
  llvm::SmallVector<mlir::AffineExpr> tileNumbers;
  /// Of the tile that is being written: groups that have an axis, the extent of
  /// each group, and where it begins if that is not by its number.
  llvm::SmallVector<unsigned> axes;
  llvm::SmallVector<int64_t> tiles;
  llvm::SmallVector<mlir::AffineExpr> starts;
};

} // namespace charonia::emit

#endif
