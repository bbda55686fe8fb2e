#include "graph/ir/Dialect.h"
#include "graph/passes/Passes.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_SPLITCONCATS
#include "graph/passes/Passes.h.inc"

namespace {

struct SplitConcats : impl::SplitConcatsBase<SplitConcats> {
  using SplitConcatsBase::SplitConcatsBase;

  void runOnOperation() override {
    if (most < 2) {
      getOperation().emitError("most is at least 2");
      return signalPassFailure();
    }
    SmallVector<ConcatOp> wide;
    getOperation().walk([&](ConcatOp op) {
      if (op.getInputs().size() > widthOf(op))
        wide.push_back(op);
    });
    for (ConcatOp op : wide) {
      OpBuilder builder(op);
      SmallVector<Value> parts(op.getInputs());
      uint64_t width = widthOf(op);
      while (parts.size() > width) {
        SmallVector<Value> joined;
        for (ArrayRef<Value> rest = parts; !rest.empty();) {
          ArrayRef<Value> group = rest.take_front(width);
          rest = rest.drop_front(group.size());
          joined.push_back(join(builder, op, group));
        }
        parts = std::move(joined);
      }
      op.getInputsMutable().assign(parts);
    }
  }

  uint64_t widthOf(ConcatOp op) {
    bool isStatic = llvm::all_of(op.getInputs(), [&](Value input) {
      return constantOf(getShape(input)[op.getAxis()]).has_value();
    });
    return isStatic ? most : std::max<uint64_t>(most / 4, 2);
  }

  /// Joins the parts where the last of them is there, so that they need not
  /// be kept longer.
  static Value join(OpBuilder &builder, ConcatOp op, ArrayRef<Value> parts) {
    if (parts.size() == 1)
      return parts[0];
    OpBuilder::InsertionGuard guard(builder);
    Operation *last = nullptr;
    for (Value part : parts)
      if (Operation *def = part.getDefiningOp();
          def && (!last || last->isBeforeInBlock(def)))
        last = def;
    if (last)
      builder.setInsertionPointAfter(last);
    return ConcatOp::create(builder, op.getLoc(), parts, op.getAxis());
  }
};

} // namespace
} // namespace charonia::graph
