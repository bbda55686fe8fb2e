#include "graph/analysis/Pairs.h"
#include "graph/ir/Dialect.h"
#include "graph/passes/NarrowRange.h"
#include "graph/passes/Passes.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_BOUNDPRODUCTS
#include "graph/passes/Passes.h.inc"

namespace {

struct BoundProducts : impl::BoundProductsBase<BoundProducts> {
  void runOnOperation() override {
    for (auto op : getOperation().getBody().front().getOps<GraphOpInterface>())
      if (op.getRole() == OpRole::Contraction && op->getNumOperands() == 2 &&
          fitsPairs(op->getOperand(0), op->getOperand(1)))
        notePairsFit(op);
  }

  /// The largest magnitude of a value's elements, if they are bytes.
  static std::optional<int64_t> magnitude(Value value) {
    auto type = dyn_cast<IntegerType>(getElementTypeOrSelf(value));
    std::optional<IntegerRange> range;
    if (type && type.getWidth() == 8)
      range = integerRangeOf(value);
    if (!range)
      return std::nullopt;
    return std::max(std::abs(range->low), std::abs(range->high));
  }

  static bool fitsPairs(Value lhs, Value rhs) {
    constexpr int64_t most = std::numeric_limits<int16_t>::max();
    std::optional<int64_t> x = magnitude(lhs), y = magnitude(rhs);
    return x && y && 2 * *x * *y <= most;
  }
};

} // namespace
} // namespace charonia::graph
