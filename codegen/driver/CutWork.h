// Cuts kernels that would do their work again and again.
#ifndef CHARONIA_CODEGEN_DRIVER_CUTWORK_H
#define CHARONIA_CODEGEN_DRIVER_CUTWORK_H

#include "codegen/driver/Kernels.h"

namespace charonia::driver {

/// Whether a kernel does several times the work of its operators, by the count
/// of its tile program, and so much of it that somebody notices. `again`: its
/// program instances compute small sums again, as the fusion plan wants it.
bool repeatsWork(const TileWork &done, const TileWork &needed,
                 bool again = false);

/// Counts the tile programs of the kernels of `function` for each of the
/// backends. One that repeats work becomes two: up to an operator, whose result
/// is stored, and from it on. Of all its operators that one is taken with which
/// the two do least, and both are counted again. Kernels that no cut makes much
/// cheaper stay. The tile programs of what stays are added to `programs`.
/// Call before the kernels are laid out; from any thread. `activity` (null:
/// nobody asks) is told of each kernel that is counted.
void cutRepeatedWork(mlir::func::FuncOp function,
                     llvm::ArrayRef<const Backend *> backends,
                     TilePrograms &programs, Activity *activity);

} // namespace charonia::driver

#endif
