#include "graph/analysis/Weights.h"

using namespace mlir;

namespace charonia::graph {

bool isWeight(Operation *op) { return isa_and_present<WeightOp>(op); }

Value addWeight(OpBuilder &builder, Location location, StringRef stem,
                RankedTensorType type, std::vector<char> bytes) {
  WeightStore &store =
      builder.getContext()->getLoadedDialect<GraphDialect>()->getWeights();
  std::string name = store.uniqueName(stem);
  store.add(name, type, std::move(bytes));
  return WeightOp::create(builder, location, type, builder.getStringAttr(name));
}

/// Whether an attribute refers to shape symbols, whose values a build does not
/// know.
static bool readsSymbols(Operation *op) {
  return llvm::any_of(op->getAttrs(), [](NamedAttribute attribute) {
    auto map = dyn_cast<AffineMapAttr>(attribute.getValue());
    return map && llvm::any_of(map.getValue().getResults(), [](AffineExpr e) {
             return !e.isSymbolicOrConstant() ||
                    !isa<AffineConstantExpr>(simplify(e));
           });
  });
}

bool WeightsOnly::operator()(Value value) {
  auto [it, isNew] = known.try_emplace(value, false);
  if (!isNew)
    return it->second;
  auto op = value.getDefiningOp<GraphOpInterface>();
  bool result = op &&
                cast<RankedTensorType>(value.getType()).hasStaticShape() &&
                !readsSymbols(op) &&
                llvm::all_of(op->getOperands(),
                             [&](Value operand) { return (*this)(operand); });
  return known[value] = result;
}

int64_t WeightsOnly::sourceBytes(Value value) {
  int64_t bytes = 0;
  llvm::DenseSet<Operation *> seen;
  SmallVector<Value> work{value};
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (isWeight(op))
      bytes += byteSize(cast<RankedTensorType>(op->getResult(0).getType()));
    work.append(op->operand_begin(), op->operand_end());
  }
  return bytes;
}

} // namespace charonia::graph
