#include "codegen/driver/JoinParts.h"
#include "codegen/driver/Runs.h"
#include "codegen/driver/StepResults.h"
#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/StoredParts.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace charonia::driver {
namespace {

using graph::Exprs;
using graph::GraphOpInterface;

/// Results of a kernel up to which it stores one more.
constexpr unsigned mostResults = 8;
/// Operands of a join, those of joins that it joins among them: values that are
/// doubled again and again have as many as elements.
constexpr size_t mostSlices = 4096;

/// Elements `first` to `first + count` of a value along the joined axis.
struct Slice {
  Value of;
  AffineExpr first, count;
  OpResult computed = {}; ///< By a kernel of its own, once there is one.
};

/// A result of a kernel of which some elements along an axis are an operand of
/// a join, in that order; null where the operand is something else.
struct Source {
  OpResult result;
  unsigned axis = 0;
  /// Whether nothing reads the result but this join, by one operand of it, and
  /// it has no place yet.
  bool isAlone = false;
};

/// Whether the view takes some elements along `axis` of its operand, one after
/// the other, and all along others; gives the first.
AffineExpr firstAlong(GraphOpInterface view, unsigned axis) {
  std::optional<Exprs> starts = boxStarts(view);
  if (!starts)
    return {};
  Exprs in = graph::getShape(view->getOperand(0)),
        out = graph::getShape(view->getResult(0));
  for (unsigned d = 0; d < in.size(); ++d)
    if (d != axis && (in[d] != out[d] || graph::constantOf((*starts)[d]) != 0))
      return {};
  return (*starts)[axis];
}

class Join {
public:
  explicit Join(graph::KernelOp kernel)
      : kernel(kernel), body(kernel.getBody().front()), b(kernel) {}

  void run() {
    if (kernel.getNumResults() != 1)
      return;
    Value whole = body.getTerminator()->getOperand(0);
    auto join = whole.getDefiningOp<GraphOpInterface>();
    if (!join || !join.getJoinedDim())
      return;
    axis = *join.getJoinedDim();
    shape = graph::getShape(whole);
    collect(join);
    if (!mayBeStored())
      return;
    auto joined = graph::JoinedOp::create(b, kernel.getLoc(), whole.getType(),
                                          ValueRange());
    b.setInsertionPoint(joined);
    // First, as it may read what others are made of: that is stored twice then.
    for (Slice &slice : slices)
      if (!sourceOf(slice).result)
        slice.computed = compute(slice.of);
    AffineExpr offset = constant(0);
    for (const Slice &slice : slices) {
      // One by one, as a kernel that gives a further result is replaced.
      joined->insertOperands(joined->getNumOperands(), store(slice, offset));
      offset = graph::simplify(offset + slice.count);
    }
    kernel->replaceAllUsesWith(joined);
    llvm::SmallSetVector<Operation *, 8> before;
    for (Value input : kernel.getInputs())
      if (Operation *op = input.getDefiningOp())
        before.insert(op);
    kernel.erase();
    eraseUnread(before);
  }

private:
  /// Views that only this kernel has read.
  static void eraseUnread(llvm::SmallSetVector<Operation *, 8> &views) {
    while (!views.empty()) {
      Operation *view = views.pop_back_val();
      if (!view->use_empty() || view->getNumOperands() != 1 ||
          !graph::isSameBytes(view))
        continue;
      if (Operation *op = view->getOperand(0).getDefiningOp())
        views.insert(op);
      view->erase();
    }
  }

  AffineExpr constant(int64_t value) {
    return getAffineConstantExpr(value, kernel.getContext());
  }

  /// The join's operands, those of its operands that are joins in their place,
  /// and what slices are of.
  void collect(GraphOpInterface join) {
    for (Value operand : join->getOperands()) {
      if (slices.size() > mostSlices)
        return;
      auto op = operand.getDefiningOp<GraphOpInterface>();
      if (op && op.getJoinedDim() == axis) {
        collect(op);
        continue;
      }
      Slice slice{operand, constant(0), graph::getShape(operand)[axis]};
      while (auto view = slice.of.getDefiningOp<GraphOpInterface>()) {
        AffineExpr first = firstAlong(view, axis);
        if (!first)
          break;
        slice.of = view->getOperand(0);
        slice.first = graph::simplify(slice.first + first);
      }
      add(slice);
    }
  }

  /// Neighbours that are so in one value are one.
  void add(const Slice &slice) {
    if (!slices.empty() && slices.back().of == slice.of &&
        slice.first ==
            graph::simplify(slices.back().first + slices.back().count)) {
      Slice &last = slices.back();
      last.count = graph::simplify(last.count + slice.count);
      return;
    }
    slices.push_back(slice);
  }

  /// The kernel's result that an operand of this kernel is, whatever shapes it
  /// takes on the way that keep the joined axis.
  Source sourceOf(const Slice &slice) {
    if (slice.computed)
      return {slice.computed, axis, /*isAlone=*/true};
    auto argument = dyn_cast<BlockArgument>(slice.of);
    if (!argument)
      return {};
    Exprs from = graph::getShape(argument);
    Source source;
    Value value = kernel.getInputs()[argument.getArgNumber()];
    source.isAlone = llvm::count(kernel.getInputs(), value) == 1;
    while (!value.getDefiningOp<graph::KernelOp>()) {
      Operation *view = value.getDefiningOp();
      if (!view || view->getNumOperands() != 1 || !graph::isSameBytes(view))
        return {};
      source.isAlone &= value.hasOneUse();
      value = view->getOperand(0);
    }
    source.isAlone &= value.hasOneUse();
    auto producer = value.getDefiningOp<graph::KernelOp>();
    auto found = axisOf(from, graph::getShape(value));
    if (!found || producer->getBlock() != kernel->getBlock() ||
        !storesTiles(producer))
      return {};
    source.axis = *found;
    source.result = cast<OpResult>(value);
    return source;
  }

  /// The dimension of `to` that the joined axis of `from` is.
  std::optional<unsigned> axisOf(ArrayRef<AffineExpr> from,
                                 ArrayRef<AffineExpr> to) {
    auto count = [&](ArrayRef<AffineExpr> shape) {
      return graph::numElements(shape, kernel.getContext());
    };
    AffineExpr before = count(from.take_front(axis)),
               behind = count(from.drop_front(axis + 1));
    for (unsigned d = 0; d < to.size(); ++d)
      if (to[d] == from[axis] && count(to.take_front(d)) == before &&
          count(to.drop_front(d + 1)) == behind)
        return d;
    return std::nullopt;
  }

  /// Whether the kernels that give the operands can store all of them, but for
  /// one that is computed here.
  bool mayBeStored() {
    if (slices.size() > mostSlices)
      return false;
    unsigned computed = 0;
    llvm::SmallDenseMap<Operation *, unsigned> added;
    for (const Slice &slice : slices) {
      Exprs own = graph::getShape(slice.of);
      own[axis] = shape[axis];
      if (own != shape)
        return false;
      if (OpResult result = sourceOf(slice).result) {
        auto producer = cast<graph::KernelOp>(result.getOwner());
        if (producer.getNumResults() + ++added[producer] > mostResults)
          return false;
        continue;
      }
      ++computed;
      if (!isComputedHere(slice.of))
        return false;
    }
    return computed <= 1 && computed < slices.size();
  }

  /// Whether a kernel of its own can compute the value: what it takes has no
  /// loops.
  static bool isComputedHere(Value value) {
    llvm::SmallSetVector<Value, 16> reached;
    reached.insert(value);
    for (size_t i = 0; i < reached.size(); ++i) {
      auto op = reached[i].getDefiningOp<GraphOpInterface>();
      if (!op)
        continue;
      graph::OpRole role = op.getRole();
      if (role != graph::OpRole::Pointwise && role != graph::OpRole::View &&
          role != graph::OpRole::Indexing && role != graph::OpRole::Source)
        return false;
      reached.insert_range(op->getOperands());
    }
    return true;
  }

  /// Lets a kernel store the slice where it belongs, and gives what it stores.
  Value store(const Slice &slice, AffineExpr offset) {
    Source source = sourceOf(slice);
    if (!source.isAlone)
      source.result = addResult(source.result);
    graph::setStoredPart(
        cast<graph::KernelOp>(source.result.getOwner()),
        source.result.getResultNumber(),
        {source.axis, slice.first, slice.count, offset, shape[axis]});
    return source.result;
  }

  /// A kernel of what computes the value.
  OpResult compute(Value value) {
    auto own = graph::KernelOp::create(
        b, kernel.getLoc(), TypeRange(value.getType()), kernel.getInputs(),
        kernel.getSymNameAttr(), DictionaryAttr());
    IRMapping inside;
    kernel.getBody().cloneInto(&own.getBody(), inside);
    Block &block = own.getBody().front();
    block.getTerminator()->setOperands(inside.lookup(value));
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>())
        op.erase();
    for (unsigned i = block.getNumArguments(); i-- > 0;)
      if (block.getArgument(i).use_empty()) {
        block.eraseArgument(i);
        own->eraseOperand(i);
      }
    own.setSymName(nameOf(block));
    return cast<OpResult>(own->getResult(0));
  }

  /// A label for people.
  static std::string nameOf(Block &block) {
    std::string name;
    for (auto op : block.getOps<GraphOpInterface>())
      if (op.getRole() != graph::OpRole::View && name.size() < 64)
        name += (name.empty() ? "" : "_") + op->getName().stripDialect().str();
    return name.empty() ? "copy" : name;
  }

  graph::KernelOp kernel;
  Block &body;
  OpBuilder b;
  unsigned axis = 0;
  Exprs shape; ///< Of the joined value.
  SmallVector<Slice> slices;
};

/// Whether the result, or what has the same bytes, is returned.
bool isReturned(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return user->hasTrait<OpTrait::IsTerminator>() ||
           (graph::isSameBytes(user) && isReturned(user->getResult(0)));
  });
}

} // namespace

Value joinedOf(Value result) {
  if (!result.getDefiningOp<graph::KernelOp>() || !result.hasOneUse())
    return {};
  auto joined = dyn_cast<graph::JoinedOp>(*result.user_begin());
  return joined ? joined.getResult() : Value();
}

void joinParts(func::FuncOp function, bool isWhole) {
  for (auto kernel :
       llvm::make_early_inc_range(function.getOps<graph::KernelOp>()))
    if (isWhole || llvm::none_of(kernel.getResults(), isReturned))
      Join(kernel).run();
}

} // namespace charonia::driver
