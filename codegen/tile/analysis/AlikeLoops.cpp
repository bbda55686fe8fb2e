#include "codegen/tile/analysis/AlikeLoops.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace charonia;

llvm::SmallPtrSet<Value, 4> tile::writtenBuffers(func::FuncOp function) {
  llvm::SmallPtrSet<Value, 4> written;
  function.walk([&](StoreOp store) { written.insert(store.getBuffer()); });
  function.walk([&](SortOp sort) { written.insert(sort.getBuffer()); });
  return written;
}

bool tile::LoopComparison::areAlike(Value x, Value y) {
  if (x == y)
    return !isCarried(x);
  if (x == first.getInductionVar())
    return y == second.getInductionVar();
  auto [it, isNew] = known.try_emplace({x, y}, false);
  if (!isNew)
    return it->second;
  bool alike = isa<OpResult>(x) && isa<OpResult>(y) &&
               cast<OpResult>(x).getResultNumber() ==
                   cast<OpResult>(y).getResultNumber() &&
               doAlike(x.getDefiningOp(), y.getDefiningOp());
  return known[{x, y}] = alike;
}

bool tile::LoopComparison::isCarried(Value value) {
  return llvm::is_contained(first.getRegionIterArgs(), value) ||
         llvm::is_contained(second.getRegionIterArgs(), value);
}

bool tile::LoopComparison::doAlike(Operation *a, Operation *b) {
  if (a == b)
    return true;
  if (a->getName() != b->getName() || a->getNumRegions() > 0 ||
      a->getNumOperands() != b->getNumOperands() ||
      a->getResultTypes() != b->getResultTypes() ||
      a->getAttrDictionary() != b->getAttrDictionary())
    return false;
  auto load = dyn_cast<LoadOp>(a);
  if (load ? written.contains(load.getBuffer()) : !isPure(a))
    return false;
  return llvm::all_of(llvm::zip_equal(a->getOperands(), b->getOperands()),
                      [&](auto pair) {
                        return areAlike(std::get<0>(pair), std::get<1>(pair));
                      });
}
