#include "codegen/driver/Waves.h"
#include "codegen/driver/Convert.h"
#include "graph/analysis/Updates.h"
#include "graph/ir/Dialect.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace charonia::driver {
namespace {

/// Bytes of a kernel's operands and results that the arena holds for as long as
/// the wave lasts, at most.
constexpr int64_t mostBytes = 4 << 20;
/// Kernels of a wave, and how many further ones are looked at for it: both
/// bound what lives at a time.
constexpr size_t mostInWave = 16, mostAhead = 128;

/// The kernels of a block between two operators that have to stay where they
/// are.
class Segment {
public:
  /// `end`: what they stay in front of.
  Segment(ArrayRef<Operation *> operations, Operation *end)
      : operations(operations), left(operations.begin(), operations.end()),
        end(end), sizes(graph::getOptimum(end)) {
    for (Operation *op : operations)
      if (auto kernel = dyn_cast<graph::KernelOp>(op)) {
        numbers[op] = kernels.size();
        kernels.push_back(kernel);
      }
    for (graph::KernelOp kernel : kernels) {
      needs.push_back(neededBy(kernel));
      mayJoin.push_back(isSmall(kernel));
    }
  }

  void run() {
    if (kernels.size() < 2)
      return;
    SmallVector<SmallVector<unsigned>> waves = findWaves();
    if (waves.size() == kernels.size())
      return;
    for (ArrayRef<unsigned> wave : waves)
      for (auto [i, number] : llvm::enumerate(wave)) {
        graph::KernelOp kernel = kernels[number];
        auto unit = UnitAttr::get(kernel.getContext());
        if (i > 0)
          kernel->setAttr(graph::kBesidePreviousAttr, unit);
        if (i + 1 < wave.size())
          kernel->setAttr(graph::kBesideNextAttr, unit);
        moveToEnd(kernel);
      }
    for (Operation *op : operations)
      moveToEnd(op);
  }

private:
  /// The kernels of the segment that give the kernel's operands, or what these
  /// are views of.
  SmallVector<unsigned> neededBy(graph::KernelOp kernel) const {
    SmallVector<unsigned> needed;
    llvm::SmallSetVector<Operation *, 8> from;
    from.insert(kernel);
    for (size_t i = 0; i < from.size(); ++i)
      for (Value operand : from[i]->getOperands())
        if (Operation *op = operand.getDefiningOp()) {
          if (auto it = numbers.find(op); it != numbers.end())
            needed.push_back(it->second);
          else if (!isa<graph::KernelOp>(op))
            from.insert(op);
        }
    return needed;
  }

  static bool liesInArena(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (isa<graph::KernelOp>(op))
        return llvm::none_of(value.getUsers(), llvm::IsaPred<func::ReturnOp>);
      if (op->getNumOperands() == 0)
        return false;
      value = op->getOperand(0);
    }
    return false; // An argument.
  }

  bool isSmall(graph::KernelOp kernel) const {
    int64_t bytes = 0;
    SmallVector<Value> values(kernel.getInputs());
    llvm::append_range(values, kernel.getResults());
    for (Value value : values) {
      if (!liesInArena(value))
        continue;
      Result<int64_t> size = sizeInBytes(value.getType()).evaluate(sizes);
      if (!size || *size > mostBytes - bytes)
        return false;
      bytes += *size;
    }
    return true;
  }

  /// In the order in which they have to follow one another. A wave begins with
  /// the first kernel that is left, so the model's own order stays where there
  /// is no choice.
  SmallVector<SmallVector<unsigned>> findWaves() {
    SmallVector<SmallVector<unsigned>> waves;
    llvm::SmallSetVector<unsigned, 32> waiting;
    llvm::BitVector done(kernels.size());
    auto isReady = [&](unsigned number) {
      return llvm::all_of(needs[number],
                          [&](unsigned needed) { return done[needed]; });
    };
    waiting.insert_range(llvm::seq<unsigned>(0, kernels.size()));
    while (!waiting.empty()) {
      SmallVector<unsigned> wave{waiting.front()};
      ArrayRef<unsigned> others =
          waiting.getArrayRef().drop_front().take_front(mostAhead);
      for (unsigned number : others)
        if (mayJoin[wave.front()] && mayJoin[number] && isReady(number) &&
            wave.size() < mostInWave)
          wave.push_back(number);
      for (unsigned number : wave) {
        done.set(number);
        waiting.remove(number);
      }
      waves.push_back(std::move(wave));
    }
    return waves;
  }

  /// Behind all that has been moved, with the views that it reads.
  void moveToEnd(Operation *op) {
    if (!left.erase(op))
      return;
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && !isa<graph::KernelOp>(def))
        moveToEnd(def);
    if (op->getNumOperands() > 0)
      op->moveBefore(end);
  }

  ArrayRef<Operation *> operations;
  llvm::DenseSet<Operation *> left; ///< To be moved.
  Operation *end;
  SmallVector<int64_t> sizes; ///< To optimize for.
  SmallVector<graph::KernelOp> kernels;
  llvm::DenseMap<Operation *, unsigned> numbers;
  SmallVector<SmallVector<unsigned>> needs;
  SmallVector<bool> mayJoin;
};

/// Steps and calls have kernels of their own; what is written in place was read
/// by kernels in front, and is read by those behind.
bool staysInPlace(Operation &op) {
  if (auto kernel = dyn_cast<graph::KernelOp>(op))
    return graph::getUpdatedInput(kernel).has_value();
  return op.getNumRegions() > 0 || isa<func::CallOp, graph::RepeatOp>(op) ||
         op.hasTrait<OpTrait::IsTerminator>();
}

} // namespace

void formWaves(func::FuncOp function) {
  for (Block &block : function.getBody()) {
    SmallVector<Operation *> operations;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!staysInPlace(op)) {
        operations.push_back(&op);
        continue;
      }
      Segment(operations, &op).run();
      operations.clear();
    }
  }
}

} // namespace charonia::driver
