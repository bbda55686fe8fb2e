#include "graph/analysis/Weights.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

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

/// What an operator of static shapes takes by itself; views are composed with
/// their readers.
static int64_t ownWork(Operation *op) {
  auto graphOp = cast<GraphOpInterface>(op);
  if (graphOp.getRole() == OpRole::Source || graphOp.getRole() == OpRole::View)
    return 0;
  int64_t bytes = byteSize(cast<RankedTensorType>(op->getResult(0).getType()));
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  auto flops = evaluate(graphOp.getFlops(), ArrayRef<int64_t>());
  return flops && *flops <= most - bytes ? *flops + bytes : most;
}

bool WeightsOnly::isAffordable(Value value) {
  auto add = [](int64_t a, int64_t b) {
    return std::min<uint64_t>(llvm::SaturatingAdd<uint64_t>(a, b),
                              std::numeric_limits<int64_t>::max());
  };
  // What several operands share is counted for each of them, unless that is
  // too much.
  int64_t total = ownWork(value.getDefiningOp());
  for (Value operand : value.getDefiningOp()->getOperands())
    total = add(total, work.lookup(operand));
  if (total > smallWork) {
    total = 0;
    llvm::SetVector<Operation *> below;
    below.insert(value.getDefiningOp());
    for (size_t i = 0; i < below.size(); ++i) {
      total = add(total, ownWork(below[i]));
      for (Value operand : below[i]->getOperands())
        below.insert(operand.getDefiningOp());
    }
  }
  work[value] = total;
  return total <= smallWork || total / workPerByte <= sourceBytes(value);
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
                             [&](Value operand) { return (*this)(operand); }) &&
                isAffordable(value);
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
