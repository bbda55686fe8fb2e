#include "codegen/driver/Runs.h"
#include "graph/analysis/IterationSpace.h"
#include "graph/ir/WeightStore.h"

using namespace mlir;

namespace charonia::driver {

AffineExpr runOffset(graph::GraphOpInterface view) {
  if (view.getRole() != graph::OpRole::View || view->getNumOperands() != 1)
    return {};
  MLIRContext *context = view->getContext();
  AffineExpr zero = getAffineConstantExpr(0, context);
  graph::Exprs in = graph::getShape(view->getOperand(0)),
               out = graph::getShape(view->getResult(0)), at;
  for (auto [d, size] : llvm::enumerate(out))
    at.push_back(graph::constantOf(size) == 1 ? zero
                                              : getAffineDimExpr(d, context));
  auto number = [&](ArrayRef<AffineExpr> coordinates,
                    ArrayRef<AffineExpr> shape) {
    AffineExpr flat = zero;
    for (auto [coordinate, size] : llvm::zip_equal(coordinates, shape))
      flat = flat * size + coordinate;
    return flat;
  };
  AffineMap map = view.getOperandMap(0);
  if (!map)
    return {};
  // The same for all elements.
  AffineExpr offset =
      graph::simplify(number(graph::applyMap(map, at), in) - number(at, out),
                      graph::Facts::ofCoordinates(out));
  return offset.isSymbolicOrConstant() ? offset : AffineExpr();
}

/// The part that all readers of the argument read it through, whichever of the
/// equal views; null if there is none.
static graph::GraphOpInterface findPart(BlockArgument argument) {
  graph::GraphOpInterface one;
  for (Operation *user : argument.getUsers()) {
    auto view = dyn_cast<graph::GraphOpInterface>(user);
    if (!view || graph::isSameBytes(view) ||
        (one && !OperationEquivalence::isEquivalentTo(
                    one, view, OperationEquivalence::IgnoreLocations)))
      return {};
    one = view;
  }
  return one;
}

/// Slices of slices become slices.
static void joinSlices(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(body))
    if (auto slice = dyn_cast<graph::SliceOp>(op)) {
      auto inner = slice.getInput().getDefiningOp<graph::SliceOp>();
      SmallVector<OpFoldResult> folded;
      if (!inner || failed(op.fold(folded)))
        continue;
      if (!folded.empty()) {
        slice.replaceAllUsesWith(cast<Value>(folded.front()));
        slice.erase();
      } else if (inner->use_empty()) {
        inner->erase();
      }
    }
}

/// A slice of a tensor's leading dimensions, which is a run: all before the
/// last of them have one element in it.
struct LeadingPart {
  graph::Exprs starts, shape;
  unsigned count = 0; ///< Leading dimensions.

  friend bool operator==(const LeadingPart &, const LeadingPart &) = default;
};

/// The leading part of which a slice reads some; nothing where it is no cut.
static std::optional<LeadingPart> leadingPart(graph::SliceOp slice) {
  if (!llvm::all_of(slice.getSteps(), [](int64_t step) { return step == 1; }))
    return std::nullopt;
  graph::Exprs in = graph::getShape(slice.getInput()),
               out = graph::getShape(slice.getResult());
  LeadingPart part{graph::Exprs(slice.getStarts().getResults()), out};
  while (part.count < out.size() && graph::constantOf(out[part.count++]) == 1)
    ;
  bool cuts = false;
  for (unsigned d = 0; d < out.size(); ++d) {
    if (d < part.count) {
      cuts |= in[d] != out[d];
      continue;
    }
    part.starts[d] = getAffineConstantExpr(0, slice.getContext());
    part.shape[d] = in[d];
  }
  return cuts ? std::optional(std::move(part)) : std::nullopt;
}

/// Where all readers of the argument slice one leading part of it, lets them
/// slice that: of each step of a recurrence a kernel may read some columns.
static void splitSlices(BlockArgument whole) {
  std::optional<LeadingPart> part;
  for (Operation *user : whole.getUsers()) {
    auto slice = dyn_cast<graph::SliceOp>(user);
    auto leading = slice ? leadingPart(slice) : std::nullopt;
    if (!leading || (part && *part != *leading))
      return;
    part = std::move(leading);
  }
  if (!part)
    return;
  MLIRContext *context = whole.getContext();
  SmallVector<graph::SliceOp> readers;
  for (Operation *user : whole.getUsers())
    readers.push_back(cast<graph::SliceOp>(user));
  OpBuilder builder = OpBuilder::atBlockBegin(whole.getOwner());
  auto outer = graph::SliceOp::create(
      builder, whole.getLoc(),
      graph::makeType(part->shape, getElementTypeOrSelf(whole)), whole,
      graph::mapOf(0, part->starts, context), readers.front().getSteps());
  for (graph::SliceOp reader : readers) {
    graph::Exprs starts(reader.getStarts().getResults());
    std::fill_n(starts.begin(), part->count, getAffineConstantExpr(0, context));
    reader.getInputMutable().assign(outer);
    reader.setStarts(graph::mapOf(0, starts, context));
    if (reader.getType() == outer.getType()) {
      reader.replaceAllUsesWith(outer.getResult());
      reader.erase();
    }
  }
}

/// Whether a value is one of several results: others follow from the operator
/// that computes it, which has to stay.
static bool isOneOfResults(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return user->hasTrait<OpTrait::IsTerminator>() &&
           user->getNumOperands() > 1;
  });
}

static void passRuns(graph::KernelOp kernel, int64_t alignment,
                     const graph::Facts &facts) {
  Block &body = kernel.getBody().front();
  OpBuilder builder(kernel);
  joinSlices(body);
  for (unsigned i = 0; i < body.getNumArguments(); ++i) {
    BlockArgument whole = body.getArgument(i);
    splitSlices(whole);
    graph::GraphOpInterface view = findPart(whole);
    AffineExpr offset = view ? runOffset(view) : AffineExpr();
    if (!offset || llvm::any_of(whole.getUsers(), [](Operation *user) {
          return isOneOfResults(user->getResult(0));
        }))
      continue;
    int64_t divisor = graph::divisorOf(
        offset * graph::elementBytes(getElementTypeOrSelf(whole)), facts);
    if (divisor % alignment != 0)
      continue;
    Operation *outside = builder.clone(*view);
    outside->setOperand(0, kernel.getInputs()[i]);
    kernel->setOperand(i, outside->getResult(0));
    BlockArgument part = body.insertArgument(
        i + 1, view->getResult(0).getType(), whole.getLoc());
    for (Operation *user : llvm::make_early_inc_range(whole.getUsers())) {
      user->getResult(0).replaceAllUsesWith(part);
      user->erase();
    }
    body.eraseArgument(i);
  }
}

void passRuns(func::FuncOp function, int64_t alignment) {
  graph::Facts facts = graph::getFacts(function->getParentOfType<ModuleOp>());
  for (auto kernel :
       llvm::make_early_inc_range(function.getOps<graph::KernelOp>()))
    passRuns(kernel, alignment, facts);
}

} // namespace charonia::driver
