#include "codegen/emit/ShortRows.h"
#include "codegen/emit/KernelShape.h"
#include "codegen/emit/rules/Rules.h"
#include "graph/analysis/Walked.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;
using graph::OpRole;

/// The open extent of the rows of `op` if these lie along memory; null
/// otherwise.
static AffineExpr openRowsOf(graph::GraphOpInterface op) {
  if (op.getRole() != OpRole::Reduction &&
      op.getRole() != OpRole::RowNormalization)
    return {};
  SmallVector<int64_t> axes = op.getReductionAxes();
  AffineExpr extent = op.getReductionExtent();
  if (axes.empty() || !extent)
    return {};
  extent = graph::simplify(extent);
  if (graph::constantOf(extent) ||
      !endsWithLast(axes, graph::getShape(op->getOperand(0))))
    return {};
  return extent;
}

/// Of rows that are walked inside of an instance, a register or two at a time,
/// as windows slide along them or their ends are padded: those rows, and what
/// half of a register of 512 bits holds, which takes half of the time on many
/// machines. One or two elements are a column of a long image.
static ShortRows walkedRows(graph::KernelOp kernel, const EmitTarget &target,
                            const Schedule &schedule) {
  constexpr int64_t shortest = 8, fewest = 2;
  ShortRows rows;
  if (schedule.groups.empty() || !schedule.groups.back().sequential)
    return rows;
  graph::Exprs root = graph::getShape(graph::getWalked(kernel));
  ArrayRef<unsigned> dims = schedule.groups.back().dims;
  if (dims.size() != 1 || graph::constantOf(root[dims[0]]))
    return rows;
  rows.extent = root[dims[0]];
  auto module = kernel->getParentOfType<ModuleOp>();
  int64_t least = graph::boundsOf(rows.extent, graph::getFacts(module)).low;
  if (least <= fewest)
    rows.lengths.push_back(fewest);
  if (target.vectorElements > shortest && least <= shortest)
    rows.lengths.push_back(shortest);
  return rows;
}

ShortRows emit::shortRowsOf(graph::KernelOp kernel, const EmitTarget &target,
                            const Schedule &schedule) {
  ShortRows rows;
  if (target.kind != EmitTarget::Kind::Cpu || orderedOf(kernel))
    return rows;
  bool isUsedAgain = false;
  for (auto op : kernel.getBody().front().getOps<graph::GraphOpInterface>()) {
    // Rows beside a product are those of its schedule.
    if (op.getRole() == OpRole::Window)
      return walkedRows(kernel, target, schedule);
    if (op.getRole() == OpRole::Contraction)
      return {};
    AffineExpr extent = openRowsOf(op);
    if (!extent)
      continue;
    if (rows.extent && rows.extent != extent)
      return {};
    rows.extent = extent;
    isUsedAgain |= op.getRole() == OpRole::RowNormalization;
  }
  if (!rows.extent)
    return walkedRows(kernel, target, schedule);
  // Rows over several open dimensions are hardly ever so short.
  constexpr int64_t longest = 1024;
  if (graph::evaluate(rows.extent, graph::getOptimum(kernel)).value_or(0) >
      longest)
    return rows;
  // Registers: what is read once alone is as fast in steps from there on.
  SmallVector<int64_t> counts{1, 2};
  if (isUsedAgain)
    counts.push_back(4);
  auto module = kernel->getParentOfType<ModuleOp>();
  graph::Interval range = graph::boundsOf(rows.extent, graph::getFacts(module));
  for (int64_t count : counts)
    if (int64_t length = count * target.vectorElements;
        range.low <= length && length < range.high)
      rows.lengths.push_back(length);
  return rows;
}
