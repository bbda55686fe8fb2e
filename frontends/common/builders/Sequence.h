// Ranges and cumulative sums.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_SEQUENCE_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_SEQUENCE_H

#include "frontends/common/Operands.h"

namespace charonia::frontend {

/// start + i * delta for as many i as stay before the limit: operands 0, 2 and
/// 1 of the node, scalars. Bounds of integers may follow from sizes. How many
/// there are is computed in double, or in the type of the elements.
mlir::Value buildRange(Operands &operands, bool countsInType, Emitter &e);

/// Whether a vector of integers is 0, 1, 2, ..., of any length: as numbers, or
/// by what it is computed of.
bool countsFromZero(mlir::Value value, Emitter &e);

/// The sum, or product, of the elements up to each one along `axis`; from the
/// end with `reverse`. An exclusive one leaves out the element itself.
mlir::Value buildCumulative(mlir::Value x, graph::ReduceKind kind, int64_t axis,
                            bool exclusive, bool reverse, Emitter &e);

} // namespace charonia::frontend

#endif
