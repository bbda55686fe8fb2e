#include "graph/analysis/Weights.h"
#include "graph/passes/Passes.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_OUTLINECONSTANTS
#include "graph/passes/Passes.h.inc"

namespace {

/// The elements as a weight store keeps them: bool as one byte each.
std::vector<char> bytesOf(DenseElementsAttr value) {
  if (!value.getElementType().isInteger(1)) {
    ArrayRef<char> raw = value.getRawData();
    return {raw.begin(), raw.end()};
  }
  std::vector<char> bytes;
  for (bool element : value.getValues<bool>())
    bytes.push_back(element);
  return bytes;
}

/// Integers in equal steps upwards, from `start` on.
struct Progression {
  int64_t start, step;
};

/// Elements of a constant, in turn along its one dimension of more than one, if
/// they are such integers and an iota of their type reaches the last.
std::optional<Progression> progressionOf(DenseElementsAttr value) {
  auto element = dyn_cast<IntegerType>(value.getElementType());
  constexpr int64_t most = 64;
  int64_t count = value.getNumElements();
  bool isLine = llvm::is_contained(value.getType().getShape(), count);
  if (!element || element.getWidth() < 8 || count < 2 || count > most ||
      !isLine)
    return std::nullopt;
  SmallVector<APInt> all(value.getValues<APInt>());
  // Those of no sign are taken as if they had one: less is found.
  auto at = [&](int64_t i) { return all[i].getSExtValue(); };
  Progression found{at(0), 0};
  if (found.start < 0 || at(1) <= found.start || at(1) > most * most)
    return std::nullopt;
  found.step = at(1) - found.start;
  for (int64_t i = 0; i < count; ++i)
    if (at(i) != found.start + i * found.step)
      return std::nullopt;
  return found;
}

/// Such integers as positions, which are computed sooner than fetched, where
/// operators on elements alone read them: as shifts of packed numbers, which
/// are known where code is made.
Value asPositions(OpBuilder &b, ConstantOp op, DenseElementsAttr value) {
  auto isElementwise = [](Operation *user) {
    auto graphOp = dyn_cast<GraphOpInterface>(user);
    return graphOp && graphOp.getRole() == OpRole::Pointwise;
  };
  std::optional<Progression> line = progressionOf(value);
  if (!line || !llvm::all_of(op->getUsers(), isElementwise))
    return {};
  auto number = [&](int64_t n) {
    return getAffineConstantExpr(n, op.getContext());
  };
  int64_t count = value.getNumElements();
  Type element = value.getElementType();
  Location loc = op.getLoc();
  Value iota = IotaOp::create(
      b, loc,
      makeType({number(line->start + (count - 1) * line->step + 1)}, element),
      b.getI64IntegerAttr(0));
  Value taken =
      SliceOp::create(b, loc, makeType({number(count)}, element), iota,
                      AffineMapAttr::get(AffineMap::get(
                          0, 0, {number(line->start)}, op.getContext())),
                      b.getDenseI64ArrayAttr({line->step}));
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
      auto value = dyn_cast<DenseElementsAttr>(op.getValue());
      if (!value || value.isSplat())
        continue;
      OpBuilder builder(op);
      auto type = cast<RankedTensorType>(op.getType());
      if (Value positions = asPositions(builder, op, value)) {
        op.replaceAllUsesWith(positions);
        op.erase();
        continue;
      }
      Value weight;
      if (StringAttr name = names.lookup(value)) {
        weight = WeightOp::create(builder, op.getLoc(), type, name);
      } else {
        weight =
            addWeight(builder, op.getLoc(), "constant", type, bytesOf(value));
        names[value] = weight.getDefiningOp<WeightOp>().getNameAttr();
      }
      op.replaceAllUsesWith(weight);
      op.erase();
    }
  }
};

} // namespace
} // namespace charonia::graph
