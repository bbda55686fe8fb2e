#include "graph/passes/Passes.h"
#include "graph/passes/Patterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
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
    if (auto constant = term.constant())
      product.coefficient *= divides ? 1 / *constant : *constant;
    else if (auto mul = term.as<MulOp>(); mul && opens)
      work.append({{term.with(mul.getRhs()), divides},
                   {term.with(mul.getLhs()), divides}});
    else if (auto div = term.as<DivOp>(); div && opens && term.isReal())
      work.append({{term.with(div.getRhs()), !divides},
                   {term.with(div.getLhs()), divides}});
    else if (auto inverse = term.as<ReciprocalOp>(); inverse && opens)
      work.append({{term.with(inverse.getInput()), !divides}});
    else
      (divides ? product.divisors : product.factors).push_back(term);
  }
  return product;
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
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
