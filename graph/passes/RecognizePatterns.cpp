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
  SmallVector<Term> work{root};
  while (!work.empty()) {
    Term term = work.pop_back_val();
    if (auto constant = term.constant())
      product.coefficient *= *constant;
    else if (auto mul = term.as<MulOp>();
             mul && (term == root || term.get().hasOneUse()) &&
             product.factors.size() + work.size() < 16)
      work.append({term.with(mul.getRhs()), term.with(mul.getLhs())});
    else
      product.factors.push_back(term);
  }
  return product;
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
