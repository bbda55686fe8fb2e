// softmax(scale * Q K^T + masks) V as models write it.
#ifndef CHARONIA_GRAPH_PASSES_ATTENTIONMATCH_H
#define CHARONIA_GRAPH_PASSES_ATTENTIONMATCH_H

#include "graph/passes/AttentionMasks.h"
#include "graph/passes/AttentionViews.h"

namespace charonia::graph {

/// A step as it is found, how it comes to the canonical scores, and what the
/// scores are multiplied by behind it.
struct FoundMask {
  MaskStep step;
  Route route;
  double factor = 1;
};

/// What each row of scores is multiplied with or divided by.
struct RowScale {
  Term factor;
  Route route;
  bool divides = false;
};

/// An attention as it is found. All that it is made of is carried to canonical
/// scores [batches..., rows, columns], which are those of the softmax but for
/// the order of their dimensions. Nothing is built before all is known to fit:
/// a pattern that fails leaves the graph as it was.
struct Attention {
  MatmulOp output, scores;
  Exprs shape; ///< of the canonical scores
  RowGuard guard = RowGuard::none;
  double scale = 1;
  llvm::SmallVector<FoundMask, 2> masks; ///< in their order from the product on
  llvm::SmallVector<RowScale, 1> rowScales;

  Term query, key, value; ///< as the products have them
  /// To [batches..., rows, width], [..., width, columns] and [..., columns,
  /// width]; each batch is as in `shape` or 1, of the result as in `output`.
  Route queryRoute, keyRoute, valueRoute;
  Route resultRoute; ///< from [batches..., rows, width] to the product's result
};

/// The attention that ends in this product, if one does.
std::optional<Attention> findAttention(Term product);

} // namespace charonia::graph

#endif
