#include "codegen/emit/SplitParts.h"
#include "codegen/tile/ir/TileDialect.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

std::optional<unsigned> emit::sharedAxisOf(const Schedule &schedule,
                                           const EmitTarget &target,
                                           ArrayRef<graph::CellSide> cells) {
  constexpr int64_t least = 8;
  auto hasCells = [&](const Schedule::Group &g) {
    return llvm::all_of(cells, [&](const graph::CellSide &side) {
      return side.dims != g.dims || g.tile % (schedule.splits * side.cell) == 0;
    });
  };
  if (!target.chip || schedule.splits > target.chip->mostInCluster ||
      schedule.splits == 1 || !llvm::isPowerOf2_64(schedule.splits) ||
      schedule.axes.size() != 2)
    return std::nullopt;
  for (unsigned axis : {schedule.swap ? 0u : 1u, schedule.swap ? 1u : 0u}) {
    const Schedule::Group &g = schedule.groups[schedule.axes[axis]];
    if (g.own == 0 && g.tile % (schedule.splits * least) == 0 && hasCells(g))
      return axis;
  }
  return std::nullopt;
}

bool emit::sumsOnce(func::FuncOp function) {
  unsigned sums = 0, stores = 0;
  bool nested = false;
  function.walk([&](Operation *op) {
    stores += isa<tile::StoreOp>(op);
    if (!isa<tile::SplitSumOp>(op))
      return;
    ++sums;
    nested |= op->getParentOp() != function || stores > 0;
  });
  return sums == 1 && !nested;
}

bool emit::takesShares(func::FuncOp function, unsigned axis) {
  tile::SplitSumOp sum;
  function.walk([&](tile::SplitSumOp op) { sum = op; });
  if (!sum.getSharedAxis())
    return false;
  SmallVector<Value> work{sum.getResult()};
  DenseSet<Operation *> seen;
  while (!work.empty())
    for (Operation *user : work.pop_back_val().getUsers()) {
      if (isa<tile::StoreOp>(user) || !seen.insert(user).second)
        continue;
      // What cells have together, of which each part has whole ones.
      auto reduce = dyn_cast<tile::ReduceOp>(user);
      bool isOfCells =
          reduce && (reduce.getAxis() != axis ||
                     reduce.getInputs()[0].getDefiningOp<tile::SplitAxisOp>());
      if (!isa<tile::TransposeOp, tile::SplitAxisOp, tile::JoinAxesOp,
               tile::CellPartOp, tile::SwapHalvesOp, tile::BroadcastOp>(user) &&
          !isOfCells && !OpTrait::hasElementwiseMappableTraits(user))
        return false;
      llvm::append_range(work, user->getResults());
    }
  return true;
}
