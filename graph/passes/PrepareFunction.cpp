#include "graph/passes/PrepareFunction.h"
#include "graph/analysis/Weights.h"

using namespace mlir;

namespace charonia::graph {

static constexpr llvm::StringLiteral functionName = "prepare",
                                     nameAttr = "graph.name";

PrepareFunction::PrepareFunction(ModuleOp module)
    : module(module), function(module.lookupSymbol<func::FuncOp>(functionName)),
      builder(module.getContext()) {
  if (function) {
    Operation *terminator = function.getBody().front().getTerminator();
    for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
      results.push_back(value);
      names.push_back(function.getResultAttr(i, nameAttr));
    }
    terminator->erase();
    builder.setInsertionPointToEnd(&function.getBody().front());
    return;
  }
  builder.setInsertionPointToEnd(module.getBody());
  function = func::FuncOp::create(builder, module.getLoc(), functionName,
                                  builder.getFunctionType({}, {}));
  builder.setInsertionPointToEnd(function.addEntryBlock());
}

PrepareFunction::~PrepareFunction() {
  assert(!function && "@prepare was not finished");
}

Value PrepareFunction::import(Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  // What an earlier pass published is at hand here.
  if (isWeight(op)) {
    auto known = llvm::find(names, op->getAttr("name"));
    if (known != names.end()) {
      Value result = results[known - names.begin()];
      mapping.map(value, result);
      return result;
    }
  }
  for (Value operand : op->getOperands())
    import(operand);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

Value PrepareFunction::publish(Value value, OpBuilder &outside) {
  std::string name = "prepared." + std::to_string(results.size());
  results.push_back(value);
  names.push_back(builder.getStringAttr(name));
  return WeightOp::create(outside, value.getLoc(), value.getType(),
                          outside.getStringAttr(name));
}

void PrepareFunction::finish() {
  if (results.empty()) {
    function.erase();
  } else {
    func::ReturnOp::create(builder, module.getLoc(), results);
    function.setType(
        builder.getFunctionType({}, ValueRange(results).getTypes()));
    for (auto [i, name] : llvm::enumerate(names))
      function.setResultAttr(i, nameAttr, name);
  }
  function = {};
}

} // namespace charonia::graph
