#include "graph/analysis/CodeSize.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <queue>

using namespace mlir;

namespace charonia::graph {
namespace {

/// The coordinates at which a kernel computes an operator: those of `like`,
/// `count` of them. What is read element by element by one operator, or by
/// several of the same coordinates, is computed at just theirs; what is read
/// otherwise has coordinates of its own.
struct Coordinates {
  Operation *like = nullptr;
  int64_t count = 0;
};

bool readsElementByElement(GraphOpInterface op, unsigned operand) {
  return op.getRole() == OpRole::Pointwise &&
         getShape(op->getOperand(operand)) == getShape(op->getResult(0));
}

class Estimate {
public:
  Estimate(ArrayRef<Operation *> ops,
           llvm::function_ref<bool(Operation *)> isCopied, int64_t limit)
      : inside(ops.begin(), ops.end()), isCopied(isCopied), limit(limit) {
    for (Operation *op : ops)
      push(op);
  }

  int64_t run() {
    int64_t total = 0;
    while (!work.empty() && total < limit) {
      auto op = cast<GraphOpInterface>(work.top());
      work.pop();
      int64_t count = place(op);
      OpRole role = op.getRole();
      if (role != OpRole::Contraction && role != OpRole::Window)
        total += std::min(limit, count * std::min(limit, op.getCodeSize()));
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp();
            def && !inside.contains(def) && isCopied(def) &&
            isa<GraphOpInterface>(def)) {
          inside.insert(def);
          push(def);
        }
    }
    return std::min(total, limit);
  }

private:
  struct Later {
    bool operator()(Operation *a, Operation *b) const {
      return a->isBeforeInBlock(b);
    }
  };

  void push(Operation *op) {
    if (isa<GraphOpInterface>(op))
      work.push(op);
  }

  /// Finds the coordinates from those of the readers, which are behind the
  /// operator in the block and so are known.
  int64_t place(GraphOpInterface op) {
    llvm::SmallPtrSet<Operation *, 4> likes;
    int64_t count = 0;
    Operation *like = nullptr;
    bool own = false, stored = op->getNumResults() != 1;
    auto addLike = [&](Operation *other, int64_t times) {
      like = other;
      if (likes.insert(other).second)
        count += times;
    };
    for (OpOperand &use : op->getUses()) {
      auto it = known.find(use.getOwner());
      if (it == known.end()) {
        stored |= !inside.contains(use.getOwner());
        continue;
      }
      if (readsElementByElement(cast<GraphOpInterface>(use.getOwner()),
                                use.getOperandNumber())) {
        addLike(it->second.like, it->second.count);
      } else {
        own = true;
        count += it->second.count;
      }
    }
    // Results of a kernel are one-to-one with each other.
    if (stored || (likes.empty() && !own))
      addLike(nullptr, 1);
    count = std::min(count, limit);
    known[op] = own || likes.size() > 1 ? Coordinates{op, count}
                                        : Coordinates{like, count};
    return count;
  }

  llvm::DenseSet<Operation *> inside;
  llvm::function_ref<bool(Operation *)> isCopied;
  int64_t limit;
  llvm::DenseMap<Operation *, Coordinates> known;
  std::priority_queue<Operation *, std::vector<Operation *>, Later> work;
};

} // namespace

int64_t estimateCode(ArrayRef<Operation *> ops,
                     llvm::function_ref<bool(Operation *)> isCopied,
                     int64_t limit) {
  return Estimate(ops, isCopied, limit).run();
}

int64_t estimateCode(KernelOp kernel, int64_t limit) {
  SmallVector<Operation *> ops;
  for (Operation &op : kernel.getBody().front().without_terminator())
    ops.push_back(&op);
  return estimateCode(ops, [](Operation *) { return false; }, limit);
}

} // namespace charonia::graph
