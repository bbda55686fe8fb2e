#include "graph/analysis/Weights.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_PADTERMS
#include "graph/passes/Passes.h.inc"

namespace {

struct PadTerms : impl::PadTermsBase<PadTerms> {
  using PadTermsBase::PadTermsBase;

  void runOnOperation() override {
    WeightsOnly weightsOnly;
    SmallVector<GraphOpInterface> ops;
    getOperation().walk([&](GraphOpInterface op) { ops.push_back(op); });
    // What several contractions read is padded once.
    llvm::DenseMap<std::pair<Value, int64_t>, Value> padded;
    for (GraphOpInterface op : ops) {
      SmallVector<int64_t> runs = op.getTermRuns();
      std::optional<Columns> columns = op.getColumns();
      if (runs.empty() || !columns ||
          !weightsOnly(op->getOperand(columns->operand)))
        continue;
      std::optional<int64_t> extent = constantOf(
          getShape(op->getOperand(columns->operand))[runs[columns->operand]]);
      if (!extent || *extent >= longest || llvm::isPowerOf2_64(*extent))
        continue;
      for (auto [i, dim] : llvm::enumerate(runs)) {
        Value value = op->getOperand(i);
        Value &wider = padded[{value, dim}];
        if (!wider) {
          OpBuilder builder(op);
          builder.setInsertionPointAfterValue(value);
          wider = pad(builder, value, dim, llvm::bit_ceil<uint64_t>(*extent));
        }
        op->setOperand(i, wider);
      }
    }
  }

  static Value pad(OpBuilder &builder, Value value, int64_t dim, int64_t size) {
    Exprs shape = getShape(value);
    shape[dim] = builder.getAffineConstantExpr(size);
    return zeroPadded(builder, value.getLoc(), value, shape,
                      SmallVector<int64_t>(shape.size(), 0));
  }
};

} // namespace
} // namespace charonia::graph
