// Where values begin: ids, constants, coordinates, and the kernel's scalar
// code.
#include "codegen/gpu/lower/Lowering.h"
#include "codegen/tile/analysis/Values.h"
#include "graph/ir/Float8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using tile::isTile;

void KernelLowering::lowerOp(tile::ProgramIdOp op) {
  scalars.map(op.getResult(),
              toIndex(NVVM::BlockIdXOp::create(b, loc, b.getI32Type())));
}

void KernelLowering::lowerOp(arith::ConstantOp op) {
  if (auto dense = dyn_cast<DenseElementsAttr>(op.getValue())) {
    auto splat = cast<TypedAttr>(dense.getSplatValue<Attribute>());
    if (auto number = dyn_cast<FloatAttr>(splat);
        number && graph::isFloat8(number.getType()))
      splat = b.getIntegerAttr(heldType(number.getType()),
                               number.getValue().bitcastToAPInt());
    Value value = arith::ConstantOp::create(b, loc, splat);
    bindSplat(op, value);
    return;
  }
  auto integer = dyn_cast<IntegerAttr>(op.getValue());
  if (integer && integer.getType().isIndex())
    scalars.map(op.getResult(), index->constant(integer.getInt()));
  else
    b.clone(*op, scalars);
}

void KernelLowering::lowerOp(tile::SplatOp op) {
  bindSplat(op, scalars.lookupOrDefault(op.getValue()));
}

void KernelLowering::bindSplat(Value tile, Value scalar) {
  bind(tile, Values(simt::layoutOf(tile).inSize(Dim::Register), scalar));
}

void KernelLowering::lowerOp(tile::IndexOp op) {
  const LinearLayout &layout = simt::layoutOf(op.getResult());
  tile::AccessOp like{op,          cast<RankedTensorType>(op.getType()),
                      {},          op.getSymbols(),
                      op.getMap(), {},
                      0,           {}};
  graph::Facts facts = tile::factsOf(like);
  Values values;
  for (unsigned r = 0; r < layout.inSize(Dim::Register); ++r)
    values.push_back(index->materialize(
        index->evaluate(op.getMap().getResult(0), coordinates(layout, r),
                        symbolsOf(like, layout, r), facts)));
  bind(op.getResult(), values);
}

void KernelLowering::lowerOp(tile::InBoundsOp op) {
  const LinearLayout &layout = simt::layoutOf(op.getResult());
  auto checks =
      llvm::to_vector(llvm::seq<int64_t>(0, op.getMap().getNumResults()));
  AddressPlan plan = planAddresses({op,
                                    cast<RankedTensorType>(op.getType()),
                                    {},
                                    op.getSymbols(),
                                    op.getMap(),
                                    op.getShape(),
                                    0,
                                    checks});
  Values values;
  for (unsigned r = 0; r < layout.inSize(Dim::Register); ++r) {
    Value inside = predicateOf(plan, layout, r, coordinates(layout, r),
                               symbolsOf(plan.access, layout, r));
    if (!inside)
      inside = index->cached({"true", {}, {}}, [&]() -> Value {
        return arith::ConstantIntOp::create(b, loc, true, 1);
      });
    values.push_back(inside);
  }
  bind(op.getResult(), values);
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

std::optional<IndexSum> KernelLowering::indexArithmetic(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumOperands() != 2 ||
      !op->getResult(0).getType().isIndex())
    return std::nullopt;
  IndexSum x = sumOf(op->getOperand(0)), y = sumOf(op->getOperand(1));
  bool notNegative = llvm::all_of(op->getOperands(), [](Value v) {
    return v.getType().isIndex() && tile::rangeOf(v).low >= 0;
  });
  using Result = std::optional<IndexSum>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<arith::AddIOp>([&](auto) { return index->add(x, y); })
      .Case<arith::MulIOp>([&](auto) { return index->multiply(x, y); })
      .Case<arith::FloorDivSIOp>(
          [&](auto) { return index->floorDivide(x, y, notNegative); })
      .Case<arith::CeilDivSIOp>([&](auto) {
        IndexSum last = index->add(y, {{}, -1});
        return index->floorDivide(index->add(x, last), y, notNegative);
      })
      .Case<arith::DivSIOp, arith::DivUIOp>([&](auto) -> Result {
        if (!notNegative)
          return std::nullopt;
        return index->floorDivide(x, y, true);
      })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](auto) -> Result {
        if (!notNegative)
          return std::nullopt;
        return index->modulo(x, y, true);
      })
      .Default([](Operation *) { return std::nullopt; });
}

LogicalResult KernelLowering::lowerScalar(Operation *op) {
  if (llvm::any_of(op->getOperands(), isTile) ||
      llvm::any_of(op->getResults(), isTile) || op->getNumRegions())
    return op->emitOpError("has no lowering to a GPU");
  if (std::optional<IndexSum> sum = indexArithmetic(op))
    scalars.map(op->getResult(0), index->materialize(*sum));
  else
    b.clone(*op, scalars);
  return success();
}
