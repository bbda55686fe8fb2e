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

static void passRuns(graph::KernelOp kernel, int64_t alignment,
                     const graph::Facts &facts) {
  Block &body = kernel.getBody().front();
  OpBuilder builder(kernel);
  for (unsigned i = 0; i < body.getNumArguments(); ++i) {
    BlockArgument whole = body.getArgument(i);
    graph::GraphOpInterface view = findPart(whole);
    AffineExpr offset = view ? runOffset(view) : AffineExpr();
    if (!offset)
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
