#include "codegen/driver/StepResults.h"
#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/Updates.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace charonia::driver {

namespace {
/// A value as a kernel's result, seen through what keeps its bytes.
struct Whole {
  OpResult result; ///< Null where no kernel of the block makes it.
  SmallVector<Operation *> views; ///< From the value back to the result.
};
} // namespace

static Whole wholeOf(Value value) {
  Whole whole;
  while (Operation *op = value.getDefiningOp()) {
    if (isa<graph::KernelOp>(op)) {
      whole.result = cast<OpResult>(value);
      break;
    }
    if (op->getNumOperands() != 1 || !graph::isSameBytes(op))
      break;
    whole.views.push_back(op);
    value = op->getOperand(0);
  }
  return whole;
}

bool storesTiles(graph::KernelOp kernel) {
  return !graph::getUpdatedInput(kernel) &&
         llvm::none_of(kernel.getBody().front(), [](Operation &op) {
           auto graphOp = dyn_cast<graph::GraphOpInterface>(op);
           return graphOp && graphOp.getRole() == graph::OpRole::Ordered;
         });
}

OpResult addResult(OpResult result) {
  auto kernel = cast<graph::KernelOp>(result.getOwner());
  Operation *yield = kernel.getBody().front().getTerminator();
  SmallVector<Type> types(kernel.getResultTypes());
  types.push_back(result.getType());
  OpBuilder builder(kernel);
  auto wider = graph::KernelOp::create(
      builder, kernel.getLoc(), types, kernel.getInputs(),
      kernel.getSymNameAttr(), kernel.getScheduleAttr());
  wider->setDiscardableAttrs(kernel->getDiscardableAttrDictionary());
  yield->insertOperands(yield->getNumOperands(),
                        yield->getOperand(result.getResultNumber()));
  wider.getBody().takeBody(kernel.getBody());
  kernel->replaceAllUsesWith(wider->getResults().drop_back());
  kernel.erase();
  return wider->getResults().back();
}

void storeTwice(graph::RepeatOp repeat) {
  auto function = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      repeat, repeat.getCalleeAttr());
  Operation *terminator = function.getBody().front().getTerminator();
  unsigned carried = repeat.getCarried();
  for (unsigned i = carried; i < terminator->getNumOperands(); ++i) {
    Whole given = wholeOf(terminator->getOperand(i));
    auto isGiven = [&](Value next) {
      return wholeOf(next).result == given.result;
    };
    if (!given.result ||
        !storesTiles(cast<graph::KernelOp>(given.result.getOwner())) ||
        llvm::none_of(terminator->getOperands().take_front(carried), isGiven))
      continue;
    Value copy = addResult(given.result);
    OpBuilder builder(terminator);
    for (Operation *view : llvm::reverse(given.views)) {
      IRMapping inside;
      inside.map(view->getOperand(0), copy);
      copy = builder.clone(*view, inside)->getResult(0);
    }
    terminator->setOperand(i, copy);
  }
}

} // namespace charonia::driver
