#include "graph/analysis/Weights.h"
#include "graph/passes/Passes.h"
#include "graph/passes/Stored.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_OUTLINECONSTANTS
#include "graph/passes/Passes.h.inc"

namespace {

/// Integers in equal steps upwards, along the one dimension of more than one,
/// as positions, which are computed sooner than fetched, where operators on
/// elements alone read them: as shifts of packed numbers, which are known where
/// code is made.
Value asPositions(OpBuilder &b, ConstantOp op, const Stored &stored) {
  constexpr int64_t most = 64;
  auto isElementwise = [](Operation *user) {
    auto graphOp = dyn_cast<GraphOpInterface>(user);
    return graphOp && graphOp.getRole() == OpRole::Pointwise;
  };
  auto element = dyn_cast<IntegerType>(stored.type.getElementType());
  int64_t count = stored.count();
  bool isLine = llvm::is_contained(stored.type.getShape(), count);
  if (!element || element.getWidth() < 8 || count < 2 || count > most ||
      !isLine || !llvm::all_of(op->getUsers(), isElementwise))
    return {};
  std::optional<Progression> found = progressionOf(stored);
  if (!found)
    return {};
  int64_t start = found->base, step = llvm::sum_of(found->steps);
  if (start < 0 || step <= 0 || start + step > most * most)
    return {};
  auto number = [&](int64_t n) {
    return getAffineConstantExpr(n, op.getContext());
  };
  Location loc = op.getLoc();
  Value iota = IotaOp::create(
      b, loc, makeType({number(start + (count - 1) * step + 1)}, element),
      b.getI64IntegerAttr(0));
  Value taken =
      SliceOp::create(b, loc, makeType({number(count)}, element), iota,
                      AffineMapAttr::get(AffineMap::get(0, 0, {number(start)},
                                                        op.getContext())),
                      b.getDenseI64ArrayAttr({step}));
  if (taken.getType() == op.getType())
    return taken;
  return ReshapeOp::create(b, loc, op.getType(), taken);
}

struct OutlineConstants : impl::OutlineConstantsBase<OutlineConstants> {
  void runOnOperation() override {
    SmallVector<ConstantOp> constants;
    getOperation().walk([&](ConstantOp op) { constants.push_back(op); });
    // Equal constants share a weight.
    llvm::DenseMap<Attribute, StringAttr> names;
    for (ConstantOp op : constants) {
      std::optional<Stored> stored = storedIn(op);
      if (!stored)
        continue;
      OpBuilder builder(op);
      if (Value positions = asPositions(builder, op, *stored)) {
        op.replaceAllUsesWith(positions);
        op.erase();
        continue;
      }
      Value weight;
      if (StringAttr name = names.lookup(op.getValue())) {
        weight = WeightOp::create(builder, op.getLoc(), stored->type, name);
      } else {
        ArrayRef<char> bytes = stored->bytes();
        weight = addWeight(builder, op.getLoc(), "constant", stored->type,
                           {bytes.begin(), bytes.end()});
        names[op.getValue()] = weight.getDefiningOp<WeightOp>().getNameAttr();
      }
      op.replaceAllUsesWith(weight);
      op.erase();
    }
  }
};

} // namespace
} // namespace charonia::graph
