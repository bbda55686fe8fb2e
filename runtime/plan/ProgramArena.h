//===- ProgramArena.h - The arena of a program at one shape -----*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_PLAN_PROGRAMARENA_H
#define CHARONIA_RUNTIME_PLAN_PROGRAMARENA_H

#include "runtime/engine/Engine.h"
#include "runtime/plan/Planner.h"

namespace charonia::plan {

/// Where a buffer lies, without the arena's packing: the outermost buffer of
/// its aliases and the offset in it.
struct BufferRoot {
  uint32_t buffer = 0;
  uint64_t offset = 0;
};

struct ProgramArena {
  /// One a buffer: bytes, and where it lies.
  std::vector<uint64_t> sizes;
  std::vector<BufferRoot> roots;
  /// One a buffer: the number of its root in `packed`; noIndex for what lies in
  /// no arena, aliases of inputs, outputs and weights among them.
  std::vector<uint32_t> requestOf;
  ArenaPlan packed;

  bool contains(size_t buffer) const {
    return requestOf[buffer] != engine::noIndex;
  }
  /// The offset in the arena of a buffer that lies there.
  uint64_t offsetOf(size_t buffer) const {
    return packed.offsets[requestOf[buffer]] + roots[buffer].offset;
  }
};

/// Packs the arena of a verified program for these values of the symbols, which
/// `names` has for messages. Fails where a size can't be computed or is
/// negative, where an alias leaves its buffer or is not aligned in the arena,
/// and where planArena does.
Result<ProgramArena> planProgram(const engine::Program &program,
                                 std::span<const int64_t> symbols,
                                 std::span<const Symbol> names = {});

/// A size in bytes or a count; negative ones fail.
Result<uint64_t> evaluateSize(const ShapeExpr &expr,
                              std::span<const int64_t> symbols,
                              std::span<const Symbol> names);

/// Corrupt: "the engine's program does not fit this shape: " and what.
Status doesNotFit(const std::string &what);

} // namespace charonia::plan

#endif // CHARONIA_RUNTIME_PLAN_PROGRAMARENA_H
