#include "graph/analysis/Weights.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "llvm/Support/MathExtras.h"
#include <vector>

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
    // What several contractions read alike is padded once.
    std::vector<Padded> all;
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
      // What is written anew takes the zeros around it along.
      std::optional<ZeroPadding> around = op.getZeroPadding();
      if (around && around->operand == columns->operand)
        around.reset();
      for (auto [i, dim] : llvm::enumerate(runs)) {
        Padded padded{op->getOperand(i)};
        unsigned rank = getShape(padded.value).size();
        padded.lows.assign(rank, 0);
        padded.highs.assign(rank, 0);
        if (around && around->operand == i) {
          padded.lows = around->lows;
          padded.highs = around->highs;
        }
        padded.highs[dim] += llvm::bit_ceil<uint64_t>(*extent) - *extent;
        auto same = llvm::find_if(
            all, [&](const Padded &other) { return other.isLike(padded); });
        if (same == all.end()) {
          pad(op, padded);
          same = all.insert(all.end(), std::move(padded));
        }
        op->setOperand(i, same->wider);
      }
      if (around)
        for (NamedAttribute attribute : around->attributes)
          op->setAttr(attribute.getName(), attribute.getValue());
    }
  }

  struct Padded {
    Value value;
    SmallVector<int64_t> lows, highs;
    Value wider;
    bool isLike(const Padded &other) const {
      return value == other.value && lows == other.lows && highs == other.highs;
    }
  };

  static void pad(GraphOpInterface op, Padded &padded) {
    OpBuilder builder(op);
    builder.setInsertionPointAfterValue(padded.value);
    Exprs shape = getShape(padded.value);
    for (auto [extent, low, high] :
         llvm::zip_equal(shape, padded.lows, padded.highs))
      extent = simplify(extent + (low + high));
    padded.wider = zeroPadded(builder, padded.value.getLoc(), padded.value,
                              shape, padded.lows);
  }
};

} // namespace
} // namespace charonia::graph
