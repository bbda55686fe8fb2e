#include "codegen/driver/Waves.h"
#include "codegen/driver/Convert.h"
#include "codegen/driver/InPlace.h"
#include "codegen/driver/JoinParts.h"
#include "codegen/driver/Work.h"
#include "graph/analysis/StoredParts.h"
#include "graph/analysis/Updates.h"
#include "graph/ir/Dialect.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace charonia::driver {
namespace {

/// Bytes of the arena that a kernel of a wave uses, at most: one that uses more
/// fills the chip by itself.
constexpr int64_t mostBytes = 4 << 20;
/// What all values that live at a time may take more than in the model's own
/// order: a quarter of that, and so many bytes, if no size is open: with larger
/// ones that would be any number.
constexpr int64_t spareBytes = 1 << 20;
/// Kernels of a wave, each of which stays on the chip until those before it
/// have ended, and how many further ones are looked at for it.
constexpr size_t mostInWave = 16, mostAhead = 128;

/// Whether values of an operator are memory, and no views of another's.
bool givesMemory(Operation *op) {
  return isa<graph::KernelOp, graph::JoinedOp, graph::RepeatOp, func::CallOp>(
      op);
}

/// Views of what kernels give, and what they are views of. What is stored as a
/// part of a value lies in its memory.
Value rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (op->getNumOperands() == 0 || givesMemory(op))
      break;
    value = op->getOperand(0);
  }
  Value joined = joinedOf(value);
  return joined ? joined : value;
}

/// The values of a block that lie in the arena, in bytes at the sizes to
/// optimize for.
class ArenaValues {
public:
  ArenaValues(Block &block, bool isWhole) : isWhole(isWhole) {
    Operation *end = block.getTerminator();
    sizes = graph::getOptimum(end);
    for (Value result : end->getOperands())
      returned.insert(rootOf(result));
  }

  /// 0 for a weight, or what callers hold.
  int64_t bytesOf(Value value) const {
    Value root = rootOf(value);
    Operation *op = root.getDefiningOp();
    bool isHeld = op ? !givesMemory(op) : isWhole;
    if (isHeld || (isWhole && op && returned.contains(root)))
      return 0;
    // Of a part its own.
    Type type =
        joinedOf(value) ? partType(cast<OpResult>(value)) : root.getType();
    Result<int64_t> size = sizeInBytes(type).evaluate(sizes);
    return size ? *size : std::numeric_limits<int64_t>::max() / 4;
  }
  /// What of a kernel's result is stored as a part of another value.
  static Type partType(OpResult result) {
    auto part = graph::getStoredPart(cast<graph::KernelOp>(result.getOwner()),
                                     result.getResultNumber());
    graph::Exprs shape = graph::getShape(result);
    if (part)
      shape[part->axis] = part->count;
    return graph::makeType(shape, getElementTypeOrSelf(result));
  }
  bool isReturned(Value root) const { return returned.contains(root); }
  bool hasOpenSizes() const { return !sizes.empty(); }

private:
  /// Whether arguments and results are a model's inputs and outputs.
  bool isWhole;
  SmallVector<int64_t> sizes;
  llvm::DenseSet<Value> returned;
};

/// The kernels of a block between two operators that have to stay where they
/// are.
class Segment {
public:
  /// `end`: what they stay in front of.
  Segment(ArrayRef<Operation *> operations, Operation *end,
          const ArenaValues &values)
      : operations(operations), left(operations.begin(), operations.end()),
        end(end), values(values) {
    for (Operation *op : operations)
      if (auto kernel = dyn_cast<graph::KernelOp>(op)) {
        numbers[op] = kernels.size();
        kernels.push_back(kernel);
      }
    for (graph::KernelOp kernel : kernels) {
      needs.push_back(neededBy(kernel));
      given.push_back(0);
      for (Value result : kernel.getResults())
        given.back() += values.bytesOf(result);
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
  /// What lives while kernels run, one wave after another.
  class Live {
  public:
    Live(const Segment &segment) : segment(segment) {
      for (graph::KernelOp kernel : segment.kernels)
        for (Value input : distinctInputs(kernel))
          ++readers[input];
    }
    /// With what a further kernel of the wave gives.
    int64_t with(graph::KernelOp kernel) const {
      return bytes + resultBytes(kernel);
    }
    void add(graph::KernelOp kernel) {
      bytes += resultBytes(kernel);
      wave.push_back(kernel);
    }
    /// The same of one that is alone, with the most that lives meanwhile: a
    /// result may take the place of an operand that nothing else reads.
    int64_t addAlone(graph::KernelOp kernel) {
      int64_t before = bytes;
      add(kernel);
      for (auto [r, result] : llvm::enumerate(kernel.getResults()))
        for (auto [i, input] : llvm::enumerate(kernel.getInputs())) {
          int64_t size = segment.values.bytesOf(result);
          if (readers.lookup(rootOf(input)) == 1 &&
              segment.values.bytesOf(input) == size &&
              canRunInPlace(kernel, i, r)) {
            before -= size;
            break;
          }
        }
      return before + resultBytes(kernel);
    }
    /// What nobody will read is gone.
    void endWave() {
      for (graph::KernelOp kernel : wave) {
        for (Value input : distinctInputs(kernel))
          if (--readers[input] == 0)
            drop(input);
        for (Value result : kernel.getResults())
          if (!readers.contains(rootOf(result)))
            drop(result);
      }
      wave.clear();
    }

  private:
    int64_t resultBytes(graph::KernelOp kernel) const {
      return segment.given[segment.numbers.lookup(kernel)];
    }
    /// Those of kernels of the segment; others live before and behind it.
    llvm::SmallSetVector<Value, 4>
    distinctInputs(graph::KernelOp kernel) const {
      llvm::SmallSetVector<Value, 4> roots;
      for (Value input : kernel.getInputs())
        if (Value root = rootOf(input); segment.isOwn(root))
          roots.insert(root);
      return roots;
    }
    void drop(Value value) {
      if (!segment.values.isReturned(rootOf(value)))
        bytes -= segment.values.bytesOf(value);
    }
    const Segment &segment;
    llvm::DenseMap<Value, unsigned> readers;
    SmallVector<graph::KernelOp> wave;
    int64_t bytes = 0;
  };

  /// Whether it is a value that kernels of the segment give, or joined of such.
  bool isOwn(Value root) const {
    Operation *op = root.getDefiningOp();
    return op && (numbers.contains(op) ||
                  (isa<graph::JoinedOp>(op) &&
                   llvm::all_of(op->getOperands(), [&](Value part) {
                     return numbers.contains(part.getDefiningOp());
                   })));
  }

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

  bool isSmall(graph::KernelOp kernel) const {
    int64_t bytes = 0;
    for (ValueRange list :
         {ValueRange(kernel.getInputs()), ValueRange(kernel.getResults())})
      for (Value value : list) {
        bytes += values.bytesOf(value);
        if (bytes > mostBytes)
          return false;
      }
    return true;
  }

  int64_t mostLiveAlone() const {
    Live live(*this);
    int64_t most = 0;
    for (graph::KernelOp kernel : kernels) {
      most = std::max(most, live.addAlone(kernel));
      live.endWave();
    }
    return most;
  }

  /// In the order in which they have to follow one another. A wave begins with
  /// the first kernel that is left, so the model's own order stays where there
  /// is no choice.
  SmallVector<SmallVector<unsigned>> findWaves() const {
    int64_t alone = mostLiveAlone(),
            most = alone + alone / 4 + (values.hasOpenSizes() ? 0 : spareBytes);
    SmallVector<bool> mayJoin;
    SmallVector<double> costs;
    for (graph::KernelOp kernel : kernels) {
      mayJoin.push_back(isSmall(kernel));
      costs.push_back(costOf(kernel));
    }
    Live live(*this);
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
      live.add(kernels[wave.front()]);
      for (unsigned number :
           waiting.getArrayRef().drop_front().take_front(mostAhead))
        if (mayJoin[wave.front()] && mayJoin[number] && isReady(number) &&
            wave.size() < mostInWave && live.with(kernels[number]) <= most) {
          wave.push_back(number);
          live.add(kernels[number]);
        }
      live.endWave();
      // What takes longest begins first.
      llvm::stable_sort(
          wave, [&](unsigned a, unsigned b) { return costs[a] > costs[b]; });
      for (unsigned number : wave) {
        done.set(number);
        waiting.remove(number);
      }
      waves.push_back(std::move(wave));
    }
    return waves;
  }

  /// Behind all that has been moved, with the views that it reads. Weights and
  /// constants stay in front of everything.
  void moveToEnd(Operation *op) {
    if (!left.erase(op))
      return;
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && !isa<graph::KernelOp>(def))
        moveToEnd(def);
    if (op->getNumOperands() > 0 || isa<graph::KernelOp>(op))
      op->moveBefore(end);
  }

  ArrayRef<Operation *> operations;
  llvm::DenseSet<Operation *> left; ///< To be moved.
  Operation *end;
  const ArenaValues &values;
  SmallVector<graph::KernelOp> kernels;
  llvm::DenseMap<Operation *, unsigned> numbers;
  SmallVector<SmallVector<unsigned>> needs;
  SmallVector<int64_t> given; ///< Bytes of each one's results in the arena.
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

void formWaves(func::FuncOp function, bool isWhole) {
  for (Block &block : function.getBody()) {
    ArenaValues values(block, isWhole);
    SmallVector<Operation *> operations;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!staysInPlace(op)) {
        operations.push_back(&op);
        continue;
      }
      Segment(operations, &op, values).run();
      operations.clear();
    }
  }
}

} // namespace charonia::driver
