// What recognize-patterns looks for; each is in a file of its own.
#ifndef CHARONIA_GRAPH_PASSES_PATTERNS_H
#define CHARONIA_GRAPH_PASSES_PATTERNS_H

#include "graph/passes/Expression.h"

namespace charonia::graph {

/// softmax(scale * Q K^T + mask) V.
void addAttentionPatterns(mlir::RewritePatternSet &patterns);
/// Layer and rms normalization, softmax written with exp, max and sum.
void addNormalizationPatterns(mlir::RewritePatternSet &patterns);
/// gelu by erf and by tanh.
void addActivationPatterns(mlir::RewritePatternSet &patterns);

/// The factors of a tree of products: what is multiplied, but for constants,
/// which are in `coefficient`. Looks through products that nothing else reads.
struct Product {
  llvm::SmallVector<Term> factors;
  double coefficient = 1;
};
Product factorize(Term root);
/// |a - b| <= tolerance * |b|
bool isClose(double a, double b, double tolerance = 1e-3);

} // namespace charonia::graph

#endif
