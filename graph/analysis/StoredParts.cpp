#include "graph/analysis/StoredParts.h"
#include "graph/ir/Symbolic.h"

using namespace mlir;

namespace charonia::graph {

std::optional<StoredPart> getStoredPart(KernelOp kernel, unsigned result) {
  auto parts = kernel->getAttrOfType<ArrayAttr>(kStoredPartsAttr);
  auto part = parts && result < parts.size()
                  ? dyn_cast<ArrayAttr>(parts[result])
                  : ArrayAttr();
  if (!part)
    return std::nullopt;
  AffineMap along = cast<AffineMapAttr>(part[1]).getValue();
  return StoredPart{unsigned(cast<IntegerAttr>(part[0]).getInt()),
                    along.getResult(0), along.getResult(1), along.getResult(2),
                    along.getResult(3)};
}

void setStoredPart(KernelOp kernel, unsigned result, const StoredPart &part) {
  Builder b(kernel.getContext());
  SmallVector<Attribute> parts(kernel.getNumResults(), b.getUnitAttr());
  if (auto known = kernel->getAttrOfType<ArrayAttr>(kStoredPartsAttr))
    llvm::copy(known, parts.begin());
  AffineExpr along[] = {part.first, part.count, part.offset, part.extent};
  parts[result] =
      b.getArrayAttr({b.getI64IntegerAttr(part.axis),
                      AffineMapAttr::get(mapOf(0, along, b.getContext()))});
  kernel->setAttr(kStoredPartsAttr, b.getArrayAttr(parts));
}

Type getStoredType(KernelOp kernel, unsigned result) {
  Type type = kernel.getResult(result).getType();
  std::optional<StoredPart> part = getStoredPart(kernel, result);
  if (!part)
    return type;
  Exprs shape = getShape(type);
  shape[part->axis] = part->extent;
  return makeType(shape, getElementTypeOrSelf(type));
}

} // namespace charonia::graph
