// Views between the products of an attention and its softmax.
#ifndef CHARONIA_GRAPH_PASSES_ATTENTIONVIEWS_H
#define CHARONIA_GRAPH_PASSES_ATTENTIONVIEWS_H

#include "graph/passes/Expression.h"

namespace charonia::graph {

/// A view of scores: a transpose, a reshape, or what repeats them.
struct ScoreView {
  enum Kind { Reshape, Transpose, Broadcast } kind = Reshape;
  Exprs from, to;
  llvm::SmallVector<int64_t> permutation;
};
/// The view that makes a value, if one of these does.
std::optional<ScoreView> viewOf(Term x);

/// Another extent for a dimension.
struct Replaced {
  size_t dim;
  mlir::AffineExpr extent;
};

/// A chain of views, and what it does to whatever broadcasts to the shape that
/// it begins with: masks, and operands of the products, which have an extent of
/// their own in place of rows or columns.
class Route {
public:
  Route() = default;
  explicit Route(Exprs source) : source(std::move(source)) {}

  llvm::ArrayRef<mlir::AffineExpr> from() const { return source; }
  llvm::ArrayRef<mlir::AffineExpr> to() const {
    return views.empty() ? source : views.back().to;
  }
  bool empty() const { return views.empty(); }

  /// Views of views are one view where that can be.
  void append(ScoreView view);
  void append(const Route &other);
  void appendReshape(Exprs to);
  void appendTranspose(llvm::ArrayRef<int64_t> permutation);

  /// The way back; nothing where elements were repeated.
  std::optional<Route> reversed() const;
  /// Where a dimension comes out that no view on the way takes apart or joins
  /// with others.
  std::optional<unsigned> placeOf(unsigned dim) const;
  /// The same views of a shape with other extents; nothing where one of these
  /// is of a dimension without a place.
  std::optional<Route> with(llvm::ArrayRef<Replaced> extents) const;

  /// Whether the three below can be asked: what is to be repeated along which
  /// dimensions is known.
  bool canCarry() const;
  /// The shape of what broadcasts to `from`, as what broadcasts to `to`.
  Exprs shapeOf(Exprs own) const;
  Term carry(Term x) const;

private:
  Exprs source;
  llvm::SmallVector<ScoreView> views;
};

/// The shape of these dimensions and the last two of `shape`.
Exprs withLeading(llvm::ArrayRef<mlir::AffineExpr> leading,
                  llvm::ArrayRef<mlir::AffineExpr> shape);
Term reshaped(Term x, const Exprs &shape);
/// x, in whose shape dimensions of 1 stand in front up to a rank.
Term withRank(Term x, size_t rank);

} // namespace charonia::graph

#endif
