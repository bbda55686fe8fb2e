#include "codegen/driver/Runs.h"
#include "graph/ir/WeightStore.h"

using namespace mlir;

namespace charonia::driver {

AffineExpr runOffset(graph::SliceOp slice) {
  graph::Exprs in = graph::getShape(slice.getInput()),
               out = graph::getShape(slice.getResult());
  ArrayRef<AffineExpr> starts = slice.getStarts().getResults();
  AffineExpr zero = getAffineConstantExpr(0, slice.getContext()),
             size = getAffineConstantExpr(1, slice.getContext()), offset = zero;
  // From the innermost dimension outward: whole ones, then one in part, then
  // single elements.
  bool whole = true;
  for (size_t d = in.size(); d-- > 0;) {
    bool single = graph::constantOf(out[d]) == 1;
    if (whole ? !single && slice.getSteps()[d] != 1 : !single)
      return {};
    whole &= starts[d] == zero && out[d] == in[d] && slice.getSteps()[d] == 1;
    offset = offset + starts[d] * size;
    size = size * in[d];
  }
  return graph::simplify(offset);
}

/// The slice that all readers of the argument read it through, whichever of the
/// equal ones; null if there is none.
static graph::SliceOp findSlice(BlockArgument argument) {
  graph::SliceOp one;
  for (Operation *user : argument.getUsers()) {
    auto slice = dyn_cast<graph::SliceOp>(user);
    if (!slice || (one && (slice.getStarts() != one.getStarts() ||
                           slice.getSteps() != one.getSteps() ||
                           slice.getType() != one.getType())))
      return {};
    one = slice;
  }
  return one;
}

static void passRuns(graph::KernelOp kernel, int64_t alignment,
                     const graph::Facts &facts) {
  Block &body = kernel.getBody().front();
  OpBuilder builder(kernel);
  for (unsigned i = 0; i < body.getNumArguments(); ++i) {
    BlockArgument whole = body.getArgument(i);
    graph::SliceOp slice = findSlice(whole);
    AffineExpr offset = slice ? runOffset(slice) : AffineExpr();
    if (!offset)
      continue;
    int64_t divisor = graph::divisorOf(
        offset * graph::elementBytes(slice.getType().getElementType()), facts);
    if (divisor % alignment != 0)
      continue;
    Operation *outside = builder.clone(*slice);
    outside->setOperand(0, kernel.getInputs()[i]);
    kernel->setOperand(i, outside->getResult(0));
    BlockArgument part =
        body.insertArgument(i + 1, slice.getType(), whole.getLoc());
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
