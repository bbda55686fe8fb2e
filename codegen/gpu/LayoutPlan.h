// Which layout every tile of a kernel gets: decided once, outward from the
// anchors.
//
//  1. Anchors (LayoutAnchors.cpp), from the first operator to the last. The
//     result of a dot has the fragments of its instruction, what a reduction
//     reads and what a loop carries have one layout. Elementwise operators hand
//     on the layout of their operands; a reduction also fixes the free values
//     that it is computed from.
//  2. Hints (LayoutHints.cpp). An anchor without a layout of its own takes that
//     of a memory access before or behind it, whose layout makes accesses long
//     and coalesced.
//  3. Demands (LayoutDemands.cpp), from the last operator to the first. Every
//     operator asks for its operands in the layouts it needs. An anchored value
//     is computed as it is anchored and converted; a free one is computed in
//     each layout asked for if that is cheap, else in the first.
#ifndef CHARONIA_CODEGEN_GPU_LAYOUTPLAN_H
#define CHARONIA_CODEGEN_GPU_LAYOUTPLAN_H

#include "codegen/gpu/ir/SimtDialect.h"
#include "codegen/layout/Layouts.h"
#include "codegen/target/GpuTarget.h"
#include "codegen/tile/analysis/Access.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include <map>
#include <optional>

namespace charonia::gpu {

/// How a dot is computed.
struct DotPlan {
  DotInstruction::Form form;
  WarpGrid warps;
  LinearLayout result;
  /// Columns of the left operand in one step, and the fragments of one; of what
  /// takes fragments.
  int64_t step = 0;
  LinearLayout lhs, rhs;
  /// Columns that are computed, of wgmma; 0: all.
  int64_t used = 0;
  /// The left operand of all steps where it stays in registers.
  std::optional<LinearLayout> lhsRegisters;
};

/// What one access along the lanes of a warp touches.
struct Coalescing {
  /// The axis whose neighbours are neighbours in memory, and how many of them
  /// one thread moves at once; each `repeat` of them are one in memory.
  unsigned axis = 0;
  unsigned vector = 1;
  unsigned repeat = 1;
  /// Consecutive bytes that a warp touches at least.
  unsigned runBytes = 0;
  /// Elements of memory that one thread moves at once.
  unsigned moved() const { return vector / repeat; }
};

/// How many neighbours along which axis of a matrix a thread can write to
/// shared memory at once, with `layout`.
std::pair<unsigned, unsigned> longestRun(const LinearLayout &layout,
                                         unsigned limit);

class LayoutPlan {
public:
  /// `stays`: see assignLayouts.
  LayoutPlan(mlir::func::FuncOp function, unsigned warps,
             const GpuTarget &target, bool stays)
      : function(function), warps(warps), target(target), stays(stays) {}

  /// Fails with a diagnostic for what a GPU program instance cannot hold.
  mlir::LogicalResult run();

  /// The layouts in which `value` is computed: its own where an anchor decides,
  /// else those demanded. Empty where nothing needs it.
  llvm::ArrayRef<LinearLayout> layoutsOf(mlir::Value value) const;
  const DotPlan &dotPlan(tile::DotOp op) const { return dots.find(op)->second; }
  /// The layout in which a store or a reduction takes its operands.
  const LinearLayout &operandLayout(mlir::Operation *op) const {
    return operands.find(op)->second;
  }
  /// The layout in which an operand of a dot is written to shared memory.
  const LinearLayout &stagedLayout(mlir::Value operand) const {
    return staged.find(operand)->second;
  }

  /// Bytes of a tile that may go through shared memory at once.
  int64_t mostExchanged() const;

  /// The best layout of an access on its own, and what it achieves.
  LinearLayout coalesced(const tile::AccessOp &access) const;
  Coalescing judge(const tile::AccessOp &access,
                   const LinearLayout &layout) const {
    return judge(access, axesOf(access), layout);
  }
  /// `axes`: the access along each axis of its tile.
  /// `checks`: how far a vector may reach. By `steppedChecks` it may end inside
  /// of the tile's checks; its elements are then accessed one by one.
  static Coalescing
  judge(const tile::AccessOp &access, llvm::ArrayRef<tile::AxisAccess> axes,
        const LinearLayout &layout,
        int64_t tile::AxisAccess::*checks = &tile::AxisAccess::steppedChecks);
  /// The axis along which a thread loads runs as long as vectors that begin
  /// anywhere in memory, so that each lies in two aligned ones: elements of 16
  /// bits, of which a row of known length is checked.
  static std::optional<unsigned>
  unalignedRuns(const tile::AccessOp &access,
                llvm::ArrayRef<tile::AxisAccess> axes,
                const LinearLayout &layout);

private:
  /// The analysis of each axis, made once for each operation.
  llvm::ArrayRef<tile::AxisAccess> axesOf(const tile::AccessOp &access) const;
  mlir::LogicalResult verify();
  void anchorBlock(mlir::Block &block);
  void anchorLoop(mlir::scf::ForOp loop);
  void anchorBranch(mlir::scf::IfOp op);
  void anchorDot(tile::DotOp op);
  void anchorReduce(tile::ReduceOp op);
  void anchorScan(tile::ScanOp op);
  void anchorExchange(tile::ExchangeOp op);
  void anchorCells(mlir::Operation &op);
  void anchorStore(tile::StoreOp op);
  /// Gives a value the layout of another, if that has one.
  void anchorLike(mlir::Value value, const LinearLayout *layout);
  struct DotShape {
    int64_t m, n, k;
    unsigned bits; // of an operand's element
  };
  std::optional<DotPlan> planWarpgroup(tile::DotOp op,
                                       const DotShape &dot) const;
  DotPlan planMma(tile::DotOp op, const DotShape &dot) const;
  DotPlan planMultiplyAdds(const DotShape &dot) const;
  void fix(mlir::Value value, const LinearLayout &layout);
  void demandBlock(mlir::Block &block);
  void demandOperands(mlir::Operation *op);
  void demandStore(tile::StoreOp op);
  LinearLayout besideGroups(const tile::AccessOp &access,
                            const LinearLayout &layout,
                            const LinearLayout &other) const;
  void demandLoop(mlir::scf::ForOp loop);
  void demandBranch(mlir::scf::IfOp branch);
  void demandDot(tile::DotOp op);
  void demandReduce(tile::ReduceOp op);
  void demandScan(tile::ScanOp op);
  void demandFor(mlir::Operation *op, const LinearLayout &layout);
  /// Tile symbols of an access, where its tile has `layout`.
  void demandSymbols(mlir::ValueRange symbols, const LinearLayout &layout);
  void demand(mlir::Value value, const LinearLayout &layout);
  bool keepsRowsTogether(mlir::Value value,
                         llvm::SmallPtrSetImpl<mlir::Value> &seen) const;
  std::optional<LinearLayout> hintFromProducers(mlir::Value value,
                                                unsigned depth = 0) const;
  /// In which the loads that `value` is computed from read runs, where most of
  /// them, `least` at least, do not in layout `asked`.
  std::optional<LinearLayout> layoutOfLoads(mlir::Value value,
                                            const LinearLayout &asked,
                                            unsigned least) const;
  /// In which a thread has neighbours that read the same elements, where
  /// `value` is computed from loads that overlap and that costs less.
  std::optional<LinearLayout> layoutOfWindow(mlir::Value value) const;
  std::optional<LinearLayout> hintFromUsers(mlir::Value value,
                                            unsigned depth = 0) const;
  LinearLayout defaultLayout(mlir::Value value) const;
  bool isCheap(mlir::Value value, unsigned depth = 0) const;
  const LinearLayout *anchored(mlir::Value value) const;
  /// The layout in which an operand of a dot is best written to shared memory.
  LinearLayout stagingLayout(mlir::Value operand) const;

  mlir::func::FuncOp function;
  unsigned warps;
  const GpuTarget &target;
  bool stays;
  /// Several warpgroups multiply, each by itself.
  bool hasGroups = false;
  llvm::DenseMap<mlir::Value, LinearLayout> natural, staged;
  llvm::DenseMap<mlir::Operation *, DotPlan> dots;
  llvm::DenseMap<mlir::Operation *, LinearLayout> operands;
  mutable std::map<mlir::Operation *, llvm::SmallVector<tile::AxisAccess>>
      analyzed;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<LinearLayout, 1>> demands;
};

/// Elementwise arith and math on tiles.
bool isElementwise(mlir::Operation *op);

/// Where the elements of a tile lie that `layout`'s tile takes by broadcasting:
/// axis i of the input is axis axes[i]; unit axes stand for all.
LinearLayout broadcastSource(const LinearLayout &layout,
                             llvm::ArrayRef<int64_t> axes,
                             llvm::ArrayRef<int64_t> inputShape);
/// The same with axes in place, for the tile symbols of an access.
LinearLayout broadcastSource(const LinearLayout &layout,
                             llvm::ArrayRef<int64_t> inputShape);

/// The layout of what `join` joins, whose result has `layout`.
LinearLayout layoutApart(tile::JoinAxesOp join, const LinearLayout &layout);

/// Where the elements of a tile lie of whose cells `part`, in `layout`, is one:
/// a thread holds the others of its elements' cells as well.
LinearLayout layoutOfCells(tile::CellPartOp part, const LinearLayout &layout);

/// By register of a thread: the number of its element among those that the
/// thread holds, which several registers may.
llvm::SmallVector<unsigned> heldElements(const LinearLayout &layout);

/// What a conversion between two register layouts takes.
enum class Move { Registers, Shuffles, Shared };
Move classifyMove(const LinearLayout &from, const LinearLayout &to);

} // namespace charonia::gpu

#endif
