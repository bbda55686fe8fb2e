#include "frontends/common/Steps.h"

using namespace charonia;
using namespace charonia::frontend;

std::optional<int64_t> charonia::frontend::knownInteger(mlir::Value value,
                                                        Emitter &e) {
  if (!value)
    return std::nullopt;
  if (auto known = e.evaluate(value).constants())
    return known->size() == 1 ? std::optional(known->front()) : std::nullopt;
  auto constant = e.constantOf(value);
  mlir::Type element = constant ? constant.getElementType() : mlir::Type();
  if (!constant || constant.getNumElements() != 1 || !element.isInteger())
    return std::nullopt;
  llvm::APInt number = *constant.value_begin<llvm::APInt>();
  return element.isInteger(1) ? int64_t(number.getZExtValue())
                              : number.getSExtValue();
}

std::set<std::string> charonia::frontend::openSizesBehind(mlir::Value value,
                                                          Emitter &e) {
  std::set<std::string> names;
  std::vector<mlir::Value> todo = {value};
  constexpr size_t maxValues = 64;
  for (size_t i = 0; i < todo.size() && todo.size() < maxValues; ++i) {
    auto known = todo[i] ? e.evaluate(todo[i]) : graph::SymbolicTensor();
    for (mlir::AffineExpr element : known ? *known.elements : graph::Exprs())
      if (element)
        element.walk([&](mlir::AffineExpr part) {
          if (llvm::isa<mlir::AffineSymbolExpr>(part))
            names.insert(e.getSymbols().toString(part));
        });
    // Behind what follows from sizes are others that it does not name.
    if (todo[i] && todo[i].getDefiningOp() && !known.isComplete())
      llvm::append_range(todo, todo[i].getDefiningOp()->getOperands());
  }
  return names;
}
