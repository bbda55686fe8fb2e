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
    ZeroPadding stored = padding;
    if (isLarge)
      stored = keepRows(op, padding);
    for (auto [extent, low, high] :
         llvm::zip_equal(shape, stored.lows, stored.highs))
      extent = simplify(extent + (low + high));
    op->setOperand(padding.operand, zeroPadded(builder, op->getLoc(), value,
                                               shape, stored.lows));
    setAttributes(op, stored.attributes);
  }

  /// What remains to be stored where the operator keeps the padding of whole
  /// rows of the window: it leaves out those that lie outside.
  static ZeroPadding keepRows(GraphOpInterface op, const ZeroPadding &padding) {
    unsigned last = padding.lows.size();
    while (last > 0 && padding.lows[last - 1] == 0 &&
           padding.highs[last - 1] == 0)
      --last;
    Padding rows{padding.lows, padding.highs, 0};
    ZeroPadding stored = padding;
    for (unsigned d = 0; d < padding.lows.size(); ++d) {
      bool isRow = d + 1 < last;
      (isRow ? stored.lows : rows.lows)[d] = 0;
      (isRow ? stored.highs : rows.highs)[d] = 0;
    }
    // As the operator is without any.
    DictionaryAttr before = op->getAttrDictionary();
    setAttributes(op, padding.attributes);
    auto form = op.getPaddedForm(padding.operand, rows);
    op->setAttrs(before);
    if (!form)
      return padding;
    stored.attributes = *form;
    return stored;
  }

  static void setAttributes(Operation *op,
                            ArrayRef<NamedAttribute> attributes) {
    for (NamedAttribute attribute : attributes)
      op->setAttr(attribute.getName(), attribute.getValue());
  }
};

} // namespace
} // namespace charonia::graph
