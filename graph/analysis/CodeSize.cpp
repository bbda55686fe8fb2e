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

/// Vector instructions for a register of the result, with what is done for each
/// of several places.
int64_t codeOf(GraphOpInterface op) {
  int64_t places = op.getPlacesRead();
  return op.getCodeSize() + (places > 1 ? op.getFlopsPerTerm() : 0);
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
        total += std::min(limit, count * std::min(limit, codeOf(op)));
      for (OpOperand &operand : op->getOpOperands())
        if (Operation *def = operand.get().getDefiningOp();
            def && isa<GraphOpInterface>(def)) {
          if (!inside.contains(def)) {
            if (!isCopied(def))
              continue;
            inside.insert(def);
            push(def);
          }
          addReader(readers[def], operand);
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

  /// What the readers in the kernel ask of an operator.
  struct Readers {
    llvm::SmallPtrSet<Operation *, 4> likes;
    Operation *like = nullptr;
    int64_t count = 0;
    unsigned uses = 0;
    /// Whether one does not read element by element.
    bool own = false;

    void addLike(Operation *other, int64_t times) {
      like = other;
      if (likes.insert(other).second)
        count += times;
    }
  };

  void addReader(Readers &of, OpOperand &use) {
    ++of.uses;
    const Coordinates &reader = known.find(use.getOwner())->second;
    auto op = cast<GraphOpInterface>(use.getOwner());
    if (readsElementByElement(op, use.getOperandNumber())) {
      of.addLike(reader.like, reader.count);
    } else {
      of.own = true;
      of.count += std::min(limit, op.getPlacesRead()) * reader.count;
    }
  }

  /// Finds the coordinates from those of the readers, which are behind the
  /// operator in the block and so are known. Its other uses are not looked at:
  /// a constant may have as many as the model has operators.
  int64_t place(GraphOpInterface op) {
    Readers of = std::move(readers[op]);
    readers.erase(op);
    bool stored = op->getNumResults() != 1 ||
                  op->getResult(0).hasNUsesOrMore(of.uses + 1);
    // Results of a kernel are one-to-one with each other.
    if (stored || (of.likes.empty() && !of.own))
      of.addLike(nullptr, 1);
    int64_t count = std::min(of.count, limit);
    known[op] = of.own || of.likes.size() > 1 ? Coordinates{op, count}
                                              : Coordinates{of.like, count};
    return count;
  }

  llvm::DenseSet<Operation *> inside;
  llvm::function_ref<bool(Operation *)> isCopied;
  int64_t limit;
  llvm::DenseMap<Operation *, Coordinates> known;
  /// Of what is yet to be placed.
  llvm::DenseMap<Operation *, Readers> readers;
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
