#include "frontends/onnx/PoolSizes.h"
#include "graph/ir/Constraints.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace charonia;
using namespace charonia::frontend::onnx;
using charonia::graph::Exprs;
using llvm::SmallVector;
using mlir::Type;
using mlir::Value;

PoolSizes::PoolSizes(mlir::Block &block,
                     llvm::ArrayRef<SmallVector<Value, 2>> nodes) {
  for (const auto &results : nodes)
    for (Value result : results)
      llvm::append_range(alike[result], results);
  // What is inferred here is none of the module's assumptions.
  graph::ScopedSizeRules none(block.getParentOp()->getContext(), nullptr);
  for (mlir::Operation &op : block) {
    bool reads = llvm::any_of(op.getOperands(), [&](Value operand) {
      return types.contains(operand);
    });
    if (auto pool = llvm::dyn_cast<graph::PoolOp>(op);
        pool && pool.getCeilMode())
      set(pool.getResult(), ofPool(pool));
    else if (reads)
      follow(op);
  }
}

void PoolSizes::set(Value value, Type type) {
  if (type == value.getType())
    return;
  types[value] = type;
  for (Value other : alike.lookup(value))
    if (other != value && graph::getShape(other) == graph::getShape(value))
      types[other] =
          type ? graph::withElement(type, mlir::getElementTypeOrSelf(other))
               : Type();
}

/// As many windows as begin inside of all padding, and one more.
Type PoolSizes::ofPool(graph::PoolOp pool) const {
  Type from = typeOf(pool.getInput());
  if (!from)
    return from;
  Exprs shape = graph::getShape(from);
  size_t spatial = pool.getKernel().size(),
         first = pool.getChannelsLast() ? 1 : 2;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t reach = (pool.getKernel()[i] - 1) * pool.getDilations()[i],
            pads = pool.getPads()[i] + pool.getPads()[spatial + i];
    mlir::AffineExpr &size = shape[first + i];
    size = graph::simplify(
        (size + (pads - reach - 1)).ceilDiv(pool.getStrides()[i]) + 1);
  }
  return graph::makeType(shape, mlir::getElementTypeOrSelf(pool.getResult()));
}

/// Infers the operator's types once more, of what it would read. Where its type
/// is its own, as of a reshape, none can be told.
void PoolSizes::follow(mlir::Operation &op) {
  mlir::Block scratch;
  SmallVector<Value> operands;
  SmallVector<Type> inferred;
  bool known = true;
  for (Value operand : op.getOperands()) {
    Type type = typeOf(operand);
    known &= static_cast<bool>(type);
    operands.push_back(known && type != operand.getType()
                           ? scratch.addArgument(type, op.getLoc())
                           : operand);
  }
  auto inference = llvm::dyn_cast<mlir::InferTypeOpInterface>(op);
  known = known && inference &&
          succeeded(inference.inferReturnTypes(
              op.getContext(), std::nullopt, operands, op.getAttrDictionary(),
              op.getPropertiesStorage(), op.getRegions(), inferred));
  for (auto [i, result] : llvm::enumerate(op.getResults()))
    set(result, known ? inferred[i] : Type());
}
