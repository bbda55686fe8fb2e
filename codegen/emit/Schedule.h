// How a kernel is cut into tiles: data beside the kernel, proposed by a cost
// model and replaced by a tuner.
#ifndef CHARONIA_CODEGEN_EMIT_SCHEDULE_H
#define CHARONIA_CODEGEN_EMIT_SCHEDULE_H

#include "codegen/emit/Emit.h"
#include "graph/ir/Dialect.h"
#include <optional>
#include <string>

namespace charonia::emit {

struct Schedule {
  /// Dimensions of the kernel's first result that are walked as one linear
  /// index (row-major in the order listed), `tile` elements at a time, or
  /// `own` of them.
  struct Group {
    llvm::SmallVector<unsigned> dims;
    int64_t tile = 1;
    /// Walked by a loop inside a program instance instead of by the grid.
    bool sequential = false;
    /// Of these the first that are the tile's own, where it is not all of them
    /// (0): a GPU's tiles have powers of two, its steps need not.
    int64_t own = 0;
    /// CPU: what is left behind the last whole tile is walked in tiles of so
    /// many, a power of two, and of its half, quarter and so on down to
    /// `shortest` where those hold what is left then; 0: by a whole tile. Of
    /// one group of the grid at most.
    int64_t rest = 0, shortest = 1;
    /// With a rest: where so many elements are left, or fewer, each is a tile
    /// of its own, whatever is shortest: the last one behind tiles of the rest
    /// (1), or all behind the last whole tile, which the rest then is (more).
    int64_t singles = 0;
    /// CPU: of an open number of a product's columns a single one has a body of
    /// its own, in which terms are the lanes (alongTerms).
    bool vector = false;
    /// Tiles begin anew at each multiple of it, which divides the extent, and
    /// none reaches over one, as those of a grouped convolution's columns,
    /// where each group has terms of its own; 0: nowhere.
    int64_t within = 0;
    int64_t step() const { return own ? own : tile; }
    /// What is wrong with `rest`, `shortest`, `singles`, `vector` and `within`;
    /// empty where nothing is.
    llvm::StringRef problem() const;
    /// Elements that tiles have for `extent` of them.
    int64_t covered(int64_t extent) const;
  };
  /// From the slowest in the grid's order to the fastest. Dimensions in no
  /// group have extent 1.
  llvm::SmallVector<Group> groups;
  /// Group that gives each axis of the tile: axis i of every result's tile is
  /// group `axes[i]`. Groups of tile 1 have no axis.
  llvm::SmallVector<unsigned> axes;
  /// Tiles of the fastest group that run with all of the next slower one before
  /// its further tiles do, so that what they read stays in a cache; 0: all of
  /// them.
  int64_t run = 0;
  /// With a run: tiles of the next slower group that it takes together; 0: all
  /// of them.
  int64_t section = 0;
  /// Extent of a step of a contraction's K loop.
  int64_t kTile = 8;
  /// Keys that attention takes in a step.
  int64_t keyTile = 64;
  /// GPU: features of queries and keys that attention multiplies at once; 0:
  /// all.
  int64_t featureTile = 0;
  /// GPU: warps of a program instance, stages of the K loop's pipeline.
  int64_t warps = 4, stages = 3;
  /// GPU: program instances for which a multiprocessor should have registers.
  int64_t residents = 1;
  /// GPU: products are computed across: their columns, weights as a rule, are
  /// the rows of the dot, so that their rows may come in any multiple of 8.
  bool swap = false;
  /// CPU: terms of a product of a single row or column, or of a row of a
  /// window, are the lanes, as they lie in the memory of the operands.
  bool alongTerms = false;
  /// GPU: program instances that share the terms of a contraction. Taken as 1
  /// where the kernel has not just one product on tiles.
  int64_t splits = 1;
  /// GPU: program instances, neighbours in the grid and a cluster, that share a
  /// row: of its tiles each takes every so-manyth, and what is known of the
  /// whole row they tell each other.
  int64_t rowParts = 1;

  /// In words, without what is as in every schedule; other words for each:
  /// "tiles 0.1:64 2:128/96, axes 0 1, k 64, warps 8, stages 6, across".
  std::string text() const;

  /// To and from the attribute `schedule` of a kernel.
  mlir::DictionaryAttr toAttribute(mlir::MLIRContext *context) const;
  static mlir::FailureOr<Schedule> fromAttribute(mlir::DictionaryAttr attribute,
                                                 mlir::Location location);
};

/// Whether later tiles of rows take longer: attention in which a row keeps the
/// keys up to its own.
bool growsByRow(graph::KernelOp kernel);

/// The operator of role Ordered that writes the kernel's result by a program of
/// its own; null where the kernel is written tile by tile.
graph::GraphOpInterface orderedOf(graph::KernelOp kernel);

/// The cost model's choice for a kernel.
Schedule chooseSchedule(graph::KernelOp kernel, const EmitTarget &target);

/// The schedules between which the cost model decides, at most so many: its
/// choice, then what it takes for worse and worse. Just the choice where a
/// kernel has one form alone.
std::vector<Schedule> candidateSchedules(graph::KernelOp kernel,
                                         const EmitTarget &target,
                                         unsigned most);

/// The kernel's own schedule if it has one, else the cost model's. Fails with a
/// diagnostic where its own is none.
mlir::FailureOr<Schedule> scheduleOf(graph::KernelOp kernel,
                                     const EmitTarget &target);

/// A schedule that does the same with less at once: shorter steps, then smaller
/// tiles. Nothing where no less is left.
std::optional<Schedule> narrower(const Schedule &schedule);

} // namespace charonia::emit

#endif
