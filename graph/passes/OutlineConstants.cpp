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
