#include "graph/ir/Dialect.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_STOREPADDING
#include "graph/passes/Passes.h.inc"

namespace {

struct StorePadding : impl::StorePaddingBase<StorePadding> {
  using StorePaddingBase::StorePaddingBase;

  void runOnOperation() override {
    SmallVector<GraphOpInterface> ops;
    for (auto op : getOperation().getBody().front().getOps<GraphOpInterface>())
      if (op.getRole() == OpRole::Contraction)
        ops.push_back(op);
    for (GraphOpInterface op : ops)
      if (std::optional<ZeroPadding> padding = op.getZeroPadding())
        store(op, *padding);
  }

  void store(GraphOpInterface op, const ZeroPadding &padding) {
    Value value = op->getOperand(padding.operand);
    Exprs shape = getShape(value);
    std::optional<int64_t> channels = constantOf(shape.back());
    // Channels that are not innermost make no run of memory either way.
    if (!channels || padding.lows.back() != 0 || padding.highs.back() != 0)
      return;
    // A large window that is no product of tiles would check each of its
    // elements for each neighbour.
    bool isLarge =
        !op.getColumns() && op.getOperandReads(padding.operand) >= largeWindow;
    if (*channels >= fewest && !isLarge)
      return;
    OpBuilder builder(op);
    for (auto [extent, low, high] :
         llvm::zip_equal(shape, padding.lows, padding.highs))
      extent = simplify(extent + (low + high));
    op->setOperand(padding.operand, zeroPadded(builder, op->getLoc(), value,
                                               shape, padding.lows));
    for (NamedAttribute attribute : padding.attributes)
      op->setAttr(attribute.getName(), attribute.getValue());
  }
};

} // namespace
} // namespace charonia::graph
