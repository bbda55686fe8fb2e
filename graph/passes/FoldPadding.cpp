#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/Views.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

namespace charonia::graph {
#define GEN_PASS_DEF_FOLDPADDING
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

/// What the operator puts around its input; nothing where that is more than one
/// value, cuts, or depends on open sizes.
std::optional<Padding> paddingOf(PadOp op) {
  std::optional<double> value = splatOf(op.getValue());
  if (op.getMode() != PadMode::constant || !value)
    return std::nullopt;
  Padding padding{{}, {}, *value};
  for (auto [from, to, at] :
       llvm::zip_equal(getShape(op.getInput()), getShape(op.getResult()),
                       op.getLows().getResults())) {
    std::optional<int64_t> low = constantOf(at),
                           high = constantOf(simplify(to - from - at));
    if (!low || !high || *low < 0 || *high < 0)
      return std::nullopt;
    padding.lows.push_back(*low);
    padding.highs.push_back(*high);
  }
  return padding;
}

class FoldPadding : public charonia::graph::impl::FoldPaddingBase<FoldPadding> {
  void runOnOperation() override {
    // In order, so that a pad meets what a pad in front of it became part of.
    SmallVector<PadOp> pads;
    getOperation().walk([&](PadOp op) { pads.push_back(op); });
    for (PadOp op : pads)
      if (std::optional<Padding> padding = paddingOf(op))
        fold(op.getResult(), op.getInput(), *padding);
    eraseDead(getOperation());
  }

  /// `value` is `input` with the padding. Where readers take it, they read the
  /// input, be it transposed.
  static void fold(Value value, Value input, const Padding &padding) {
    for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
      auto reader = dyn_cast<GraphOpInterface>(use.getOwner());
      if (!reader)
        continue;
      if (auto permutation = permutationOf(reader->getResult(0))) {
        OpBuilder builder(reader);
        fold(reader->getResult(0), transposedBy(builder, input, *permutation),
             {applyPermutation(padding.lows, *permutation),
              applyPermutation(padding.highs, *permutation), padding.value});
        continue;
      }
      auto attributes = reader.getPaddedForm(use.getOperandNumber(), padding);
      if (!attributes)
        continue;
      for (NamedAttribute attribute : *attributes)
        reader->setAttr(attribute.getName(), attribute.getValue());
      use.set(input);
    }
  }
};

} // namespace
