//===- ExecutionPlan.h - A program at one concrete shape --------*- C++ -*-===//
//
// All expressions evaluated, all aliases resolved, the arena packed: what is
// left to do for a run is to add base addresses. Devices share this part.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_RUNTIME_EXEC_EXECUTIONPLAN_H
#define CHARONIA_RUNTIME_EXEC_EXECUTIONPLAN_H

#include "runtime/engine/Engine.h"

#include <memory>

namespace charonia::exec {

/// An address relative to a base that is known at run time.
struct Location {
  engine::Buffer::Kind base = engine::Buffer::Kind::Arena;
  uint32_t index = 0;  ///< Input, Output: number in the signature.
  uint64_t offset = 0; ///< Bytes.
};

/// A tensor map of a launch with its sizes, in the order of the map's
/// expressions.
struct PlannedMap {
  const engine::TensorMap *map = nullptr;
  std::vector<int64_t> extents; ///< In elements, each 1 to 2^31 - 1024.
  std::vector<int64_t> strides; ///< In bytes, multiples of 16 below 2^40.
};

struct PlannedStep {
  const engine::Step *step = nullptr;
  const engine::Kernel *kernel = nullptr;   ///< Launch only.
  const engine::KernelCode *code = nullptr; ///< Launch only.
  uint32_t kernelIndex = 0;                 ///< Launch only.
  int64_t grid = 0;                         ///< Launch only; may be 0.
  uint64_t bytes = 0;                       ///< Copy and fill; may be 0.
  int64_t time = 0; ///< Of a step that is repeated: how often it ran before.
  std::span<const Location> args;
  std::span<const int64_t> symbols; ///< Launch: sizes that its kernel gets.
  /// Launch: those of its code. The tensors lie in their arguments' buffers and
  /// begin at multiples of 16. None if the grid is 0.
  std::vector<PlannedMap> maps;
};

struct PlannedTensor {
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  /// What the program assumes of the address; 1 if it never touches the tensor.
  uint32_t alignment = 1;
};

struct ExecutionPlan {
  ExecutionPlan() = default;
  ExecutionPlan(const ExecutionPlan &) = delete; // Steps point into it.
  ExecutionPlan &operator=(const ExecutionPlan &) = delete;

  std::vector<int64_t> symbols;
  std::vector<PlannedTensor> inputs;
  std::vector<PlannedTensor> outputs;
  std::vector<PlannedStep> steps;
  std::vector<Location> args;       ///< Of all steps.
  std::vector<int64_t> stepSymbols; ///< Of all steps.
  size_t mapBytes = 0;              ///< That the steps' maps take.
  /// What the plan takes of memory, but for some bytes a tensor. Of one program
  /// that differs by maps of launches without instances and by how often steps
  /// are repeated.
  size_t bytes() const {
    return steps.size() * sizeof(PlannedStep) + args.size() * sizeof(Location) +
           stepSymbols.size() * sizeof(int64_t) + mapBytes;
  }
  uint64_t arenaBytes = 0;
  uint64_t arenaAlignment = 64;
  uint64_t arenaLowerBound = 0;
};

/// Evaluates `program` with `variant` for the symbols' values. The manifest is
/// verified; what can still go wrong depends on the shape: overflows, and
/// buffers that are smaller than what steps do with them.
Result<std::unique_ptr<ExecutionPlan>>
makeExecutionPlan(const Signature &signature, const engine::Program &program,
                  const engine::Variant &variant,
                  std::span<const int64_t> symbols);

} // namespace charonia::exec

#endif // CHARONIA_RUNTIME_EXEC_EXECUTIONPLAN_H
