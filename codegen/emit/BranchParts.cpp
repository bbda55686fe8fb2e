#include "codegen/emit/BranchParts.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace charonia;

/// Whether an operation may write to memory, or an operation in it.
static bool mayWrite(Operation *op) {
  auto effects = getEffectsRecursively(op);
  return !effects || llvm::any_of(*effects, [](const auto &effect) {
    return !isa<MemoryEffects::Read>(effect.getEffect());
  });
}

/// Moves what only `side` uses from in front of the branch into it, last things
/// first. Loads pass nothing that writes.
static void fill(scf::IfOp branch, Region &side) {
  Block &block = side.front();
  for (Operation *op = branch->getPrevNode(), *next; op; op = next) {
    next = op->getPrevNode();
    if (mayWrite(op))
      return;
    bool moves = op->getNumRegions() == 0 && op->getNumResults() > 0 &&
                 (isPure(op) || isa<tile::LoadOp>(op)) && !op->use_empty() &&
                 llvm::all_of(op->getUsers(), [&](Operation *user) {
                   return side.isAncestor(user->getParentRegion());
                 });
    if (moves)
      op->moveBefore(&block, block.begin());
  }
}

void emit::branchParts(func::FuncOp function) {
  SmallVector<arith::SelectOp> selects;
  function.walk([&](arith::SelectOp select) {
    if (isa<RankedTensorType>(select.getType()) &&
        !isa<RankedTensorType>(select.getCondition().getType()))
      selects.push_back(select);
  });
  // The last of a chain first, so that the others move into its branch.
  for (arith::SelectOp select : llvm::reverse(selects)) {
    OpBuilder b(select);
    auto branch =
        scf::IfOp::create(b, select.getLoc(), select->getResultTypes(),
                          select.getCondition(), true);
    for (auto [side, value] :
         {std::pair(&branch.getThenRegion(), select.getTrueValue()),
          {&branch.getElseRegion(), select.getFalseValue()}}) {
      b.setInsertionPointToEnd(&side->front());
      scf::YieldOp::create(b, select.getLoc(), value);
    }
    select.replaceAllUsesWith(branch.getResult(0));
    select.erase();
    fill(branch, branch.getThenRegion());
    fill(branch, branch.getElseRegion());
  }
}
