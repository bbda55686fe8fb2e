#include "graph/analysis/Computing.h"
#include "graph/ir/Dialect.h"

using namespace mlir;

namespace charonia::graph {

static bool isCall(Operation &op) { return isa<func::CallOp, RepeatOp>(op); }

bool callsOthers(func::FuncOp function) {
  return llvm::any_of(function.getBody().front(), isCall);
}

SmallVector<func::FuncOp> getComputing(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main)
    return {};
  if (!callsOthers(main))
    return {main};
  SmallVector<func::FuncOp> callees;
  for (Operation &op : main.getBody().front())
    if (isCall(op))
      callees.push_back(module.lookupSymbol<func::FuncOp>(
          op.getAttrOfType<FlatSymbolRefAttr>("callee")));
  return callees;
}

} // namespace charonia::graph
