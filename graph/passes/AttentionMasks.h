// Masks between the product of queries and keys and its softmax.
#ifndef CHARONIA_GRAPH_PASSES_ATTENTIONMASKS_H
#define CHARONIA_GRAPH_PASSES_ATTENTIONMASKS_H

#include "graph/passes/Expression.h"
#include <limits>

namespace charonia::graph {

/// A step from scores to softmax as the model says it: scores + `added`, or
/// `keep` ? scores : `fill`.
struct MaskStep {
  Term added, keep;
  double fill = 0;
  bool inverted = false; // keep is true where the fill goes
};

/// The same for graph.attention.
struct Masking {
  Term mask, bias;
  bool causal = false;
  double fill = -std::numeric_limits<double>::infinity();
};

/// What these steps, in their order from the product on, do to scores of this
/// shape [..., rows, columns] of an attention of type `element`.
Masking combineMasks(llvm::ArrayRef<MaskStep> steps,
                     llvm::ArrayRef<mlir::AffineExpr> scores,
                     mlir::Type element);

/// The masks of an attention that the model has as such, as those of one that
/// it has written out would be: causal, none, or conditions instead of a bias.
void refineMasks(AttentionOp op);

/// The operand of conversions between floats.
Term throughFloatCasts(Term x);

} // namespace charonia::graph

#endif
