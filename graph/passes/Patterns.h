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

/// The factors of a tree of products and quotients: what is multiplied and what
/// that is divided by, but for constants, which are in `coefficient`. Looks
/// through those that nothing else reads.
struct Product {
  llvm::SmallVector<Term> factors, divisors;
  double coefficient = 1;
  /// The operators of the tree.
  llvm::SmallVector<mlir::Operation *> operators;
  size_t size() const { return factors.size() + divisors.size(); }
};
Product factorize(Term root);
/// Whether what leads from `input` to `values`, which are made of it and
/// constants alone, is read by nothing but itself and `readers`.
bool isReadWithin(mlir::ValueRange values, mlir::Value input,
                  llvm::ArrayRef<mlir::Operation *> readers);
/// What a product or a quotient has beside a constant: x = value * factor.
struct Multiple {
  Term value;
  double factor;
};
std::optional<Multiple> multipleOf(Term x);
/// |a - b| <= tolerance * |b|
bool isClose(double a, double b, double tolerance = 1e-3);

} // namespace charonia::graph

#endif
