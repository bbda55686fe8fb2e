// What parts of a split sum do when they have met.
#ifndef CHARONIA_CODEGEN_EMIT_SPLITPARTS_H
#define CHARONIA_CODEGEN_EMIT_SPLITPARTS_H

#include "codegen/emit/Schedule.h"
#include "graph/analysis/Cells.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace charonia::emit {

/// The axis of a tile that the parts of a split may share out among them, where
/// a chip runs them as a cluster: that along which a thread holds most. Stores
/// are runs of eight elements; `cells`: see graph::getCellSides.
std::optional<unsigned> sharedAxisOf(const Schedule &schedule,
                                     const EmitTarget &target,
                                     llvm::ArrayRef<graph::CellSide> cells);

/// Whether parts of a split meet just once, before anything is stored.
bool sumsOnce(mlir::func::FuncOp function);

/// Whether each part does with its share of the sum what it would do with all
/// of it: what follows takes elements one by one, or adds up cells of which
/// each part has whole ones. They share `axis` of the kernel's tile.
bool takesShares(mlir::func::FuncOp function, unsigned axis);

} // namespace charonia::emit

#endif
