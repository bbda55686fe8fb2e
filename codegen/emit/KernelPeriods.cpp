// What the cost model looks at of a kernel: after how many elements along its
// dimensions something begins anew.
#include "codegen/emit/ReadKernel.h"
#include "graph/ir/Dialect.h"
#include <numeric>

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;
using graph::Exprs;
using graph::OpRole;

void emit::readParts(KernelShape &shape, Value value, AffineMap map) {
  auto op = value.getDefiningOp<graph::GraphOpInterface>();
  std::optional<unsigned> joined = op ? op.getJoinedDim() : std::nullopt;
  if (!joined || op->getNumOperands() < manyParts)
    return;
  auto dim = dyn_cast<AffineDimExpr>(map.getResult(*joined));
  if (!dim)
    return;
  int64_t &step = shape.partStep[dim.getPosition()];
  for (Value part : op->getOperands())
    step = std::gcd(
        step, graph::constantOf(graph::getShape(part)[*joined]).value_or(1));
}

void emit::readPeriods(KernelShape &shape, Value value, AffineMap map) {
  auto resize = value.getDefiningOp<graph::ResizeOp>();
  if (!resize || resize.getMode() == graph::ResizeMode::cubic ||
      resize.getCoordinates() == graph::CoordinateMode::align_corners)
    return;
  constexpr int64_t most = 16;
  for (int64_t axis : resize.getAxes()) {
    auto dim = dyn_cast<AffineDimExpr>(map.getResult(axis));
    AffineExpr from = graph::getShape(resize.getInput())[axis],
               to = graph::getShape(value)[axis];
    for (int64_t factor = 2; dim && factor <= most; ++factor)
      if (graph::simplify(to - from * factor) == 0)
        shape.period[dim.getPosition()] =
            std::lcm(shape.period[dim.getPosition()], factor);
  }
}

void emit::readInterleaved(KernelShape &shape, Value value, AffineMap map) {
  constexpr int64_t most = 16;
  auto op = value.getDefiningOp<graph::GraphOpInterface>();
  if (op && op->getNumOperands() > 0 && op.getOperandMap(0))
    return;
  // One run of memory is one, whatever the dimensions that it has there.
  AffineExpr offset = getAffineConstantExpr(0, map.getContext());
  for (auto [extent, coordinate] :
       llvm::zip(graph::getShape(value), map.getResults()))
    offset = offset * extent + coordinate;
  Exprs places = {graph::simplify(graph::mapOf(shape.root.size(), {offset},
                                               map.getContext()),
                                  shape.root)
                      .getResult(0)};
  if (std::optional<unsigned> joined =
          op ? op.getJoinedDim() : std::optional<unsigned>())
    places.push_back(map.getResult(*joined));
  for (AffineExpr place : places)
    place.walk([&](AffineExpr expr) {
      auto part = dyn_cast<AffineBinaryOpExpr>(expr);
      if (!part || (part.getKind() != AffineExprKind::FloorDiv &&
                    part.getKind() != AffineExprKind::Mod))
        return;
      std::optional<int64_t> period = graph::constantOf(part.getRHS());
      if (!period || *period < 2 || *period > most)
        return;
      graph::Sum along(part.getLHS());
      for (unsigned d = 0; d < shape.root.size(); ++d)
        if (along.coefficientOf(d) == 1)
          shape.period[d] = std::lcm(shape.period[d], *period);
    });
}

SmallVector<int64_t> emit::repeatedIndices(Value root) {
  unsigned rank = graph::getShape(root).size();
  SmallVector<int64_t> bytes(rank, 0);
  MLIRContext *context = root.getContext();
  llvm::MapVector<Value, AffineMap> reached;
  reached[root] = AffineMap::getMultiDimIdentityMap(rank, context);
  for (size_t n = 0; n < reached.size(); ++n) {
    auto [value, map] = *(reached.begin() + n);
    auto op = value.getDefiningOp<graph::GraphOpInterface>();
    for (unsigned i = 0; op && i < op->getNumOperands(); ++i)
      if (AffineMap step = op.getOperandMap(i))
        reached.insert({op->getOperand(i), graph::composeMaps(step, map)});
    if (!op || op.getRole() != OpRole::Indexing)
      continue;
    op.getChosenMap([&](unsigned i, ArrayRef<AffineExpr> at) -> AffineExpr {
      AffineMap index = graph::composeMaps(
          graph::mapOf(map.getNumResults(), at, context), map);
      Type element = getElementTypeOrSelf(op->getOperand(i));
      for (unsigned d = 0; d < rank; ++d)
        if (!index.isFunctionOfDim(d))
          bytes[d] += llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
      return getAffineConstantExpr(0, context);
    });
  }
  return bytes;
}
