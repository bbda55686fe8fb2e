//===- Constraint.h - What must hold between sizes --------------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_ENGINE_CONSTRAINT_H
#define CHARONIA_RUNTIME_ENGINE_CONSTRAINT_H

#include "charonia/signature.h"

namespace charonia::engine {

/// Of a tensor's type or ranges, or of the inputs that a message names, in
/// bytes, but for the last part that is told.
constexpr size_t maxText = 4096;

/// What evaluating `expr` reported, with the symbols' names for their numbers.
Status withNames(const Status &status, const ShapeExpr &expr,
                 std::span<const Symbol> symbols);

/// Whether the symbols' `values`, found from `shapes` (one an input), satisfy
/// the signature's constraints, or just those that name symbol `only`. The
/// message names the inputs and dimensions that disagree. The constraints have
/// passed verify().
Status checkConstraints(const Signature &signature,
                        std::span<const std::vector<int64_t>> shapes,
                        std::span<const int64_t> values,
                        std::optional<size_t> only = std::nullopt);

} // namespace charonia::engine

#endif // CHARONIA_RUNTIME_ENGINE_CONSTRAINT_H
