#include "graph/passes/AttentionHeads.h"
#include "graph/passes/AttentionMasks.h"
#include "graph/passes/Passes.h"
#include "graph/passes/Patterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

namespace charonia::graph {
#define GEN_PASS_DEF_RECOGNIZEPATTERNS
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

bool charonia::graph::isClose(double a, double b, double tolerance) {
  return std::fabs(a - b) <= tolerance * std::fabs(b);
}

Product charonia::graph::factorize(Term root) {
  Product product;
  SmallVector<std::pair<Term, bool>> work{{root, false}};
  while (!work.empty()) {
    auto [term, divides] = work.pop_back_val();
    bool opens = (term == root || term.get().hasOneUse()) &&
                 product.size() + work.size() < 16;
    if (auto constant = term.constant()) {
      product.coefficient *= divides ? 1 / *constant : *constant;
      continue;
    }
    if (auto mul = term.as<MulOp>(); mul && opens) {
      work.append({{term.with(mul.getRhs()), divides},
                   {term.with(mul.getLhs()), divides}});
    } else if (auto div = term.as<DivOp>(); div && opens && term.isReal()) {
      work.append({{term.with(div.getRhs()), !divides},
                   {term.with(div.getLhs()), divides}});
    } else if (auto inverse = term.as<ReciprocalOp>(); inverse && opens) {
      work.append({{term.with(inverse.getInput()), !divides}});
    } else {
      (divides ? product.divisors : product.factors).push_back(term);
      continue;
    }
    product.operators.push_back(term.get().getDefiningOp());
  }
  return product;
}

bool charonia::graph::isReadWithin(ValueRange values, Value input,
                                   ArrayRef<Operation *> readers) {
  llvm::SetVector<Operation *> inner;
  auto add = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (value != input && op && !splatOf(value))
      inner.insert(op);
  };
  llvm::for_each(values, add);
  for (size_t i = 0; i < inner.size(); ++i)
    llvm::for_each(inner[i]->getOperands(), add);
  return llvm::all_of(inner, [&](Operation *op) {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      return inner.contains(user) || llvm::is_contained(readers, user);
    });
  });
}

std::optional<Multiple> charonia::graph::multipleOf(Term x) {
  if (auto mul = x.as<MulOp>())
    for (unsigned i : {1, 0})
      if (auto factor = x.with(mul->getOperand(i)).constant())
        return Multiple{x.with(mul->getOperand(1 - i)), *factor};
  if (auto div = x.as<DivOp>(); div && x.isReal())
    if (auto divisor = x.with(div.getRhs()).constant())
      return Multiple{x.with(div.getLhs()), 1 / *divisor};
  return std::nullopt;
}

namespace {

class RecognizePatterns
    : public charonia::graph::impl::RecognizePatternsBase<RecognizePatterns> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    addAttentionPatterns(patterns);
    addNormalizationPatterns(patterns);
    addActivationPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns)))) {
      getOperation().emitError("internal error: patterns come to no end");
      return signalPassFailure();
    }
    getOperation().walk(refineMasks);
    getOperation().walk(shareHeads);
    eraseDead(getOperation());
  }
};

} // namespace
