#include "graph/analysis/IndexContent.h"

using namespace mlir;
using namespace charonia::graph;

namespace {

/// A walk that gives up on large expressions instead of taking long.
struct Contents {
  ArrayRef<AffineExpr> extents;
  int budget = 512;

  AffineExpr at(Value value, ArrayRef<AffineExpr> coordinates, int depth) {
    auto op = value.getDefiningOp<GraphOpInterface>();
    if (!op || depth > 64 || --budget < 0 ||
        !getElementTypeOrSelf(value).isIntOrIndex())
      return {};
    AffineExpr content =
        op.getContentAt(coordinates, extents,
                        [&](unsigned operand, ArrayRef<AffineExpr> inner) {
                          return at(op->getOperand(operand), inner, depth + 1);
                        });
    return content
               ? simplify(AffineMap::get(extents.size(), 64, content), extents)
                     .getResult(0)
               : content;
  }
};

} // namespace

AffineExpr charonia::graph::contentAt(Value value,
                                      ArrayRef<AffineExpr> coordinates,
                                      ArrayRef<AffineExpr> extents) {
  return Contents{extents}.at(value, coordinates, 0);
}

/// The coordinates of an operand that a view or a pointwise operator reads.
static Exprs readAt(GraphOpInterface op, unsigned operand,
                    ArrayRef<AffineExpr> coordinates) {
  Exprs inner;
  for (AffineExpr e : op.getOperandMap(operand).getResults())
    inner.push_back(e.replaceDims(coordinates));
  return inner;
}

static std::optional<Exprs> conditions(Value value, Exprs coordinates,
                                       ArrayRef<AffineExpr> extents,
                                       int depth) {
  auto op = value.getDefiningOp<GraphOpInterface>();
  if (!op || depth > 16)
    return std::nullopt;
  if (op.getRole() == OpRole::View)
    return conditions(op->getOperand(0), readAt(op, 0, coordinates), extents,
                      depth + 1);
  if (isa<AndOp>(op)) {
    auto a = conditions(op->getOperand(0), readAt(op, 0, coordinates), extents,
                        depth + 1);
    auto b = conditions(op->getOperand(1), readAt(op, 1, coordinates), extents,
                        depth + 1);
    if (!a || !b)
      return std::nullopt;
    a->append(*b);
    return a;
  }
  if (auto negation = dyn_cast<NotOp>(*op)) {
    // not (e >= 0) is -e - 1 >= 0.
    auto inner = conditions(op->getOperand(0), readAt(op, 0, coordinates),
                            extents, depth + 1);
    if (!inner || inner->size() != 1)
      return std::nullopt;
    return Exprs{-(*inner)[0] - 1};
  }
  if (auto compare = dyn_cast<CompareOp>(*op)) {
    AffineExpr a = contentAt(op->getOperand(0), readAt(op, 0, coordinates),
                             extents),
               b = contentAt(op->getOperand(1), readAt(op, 1, coordinates),
                             extents);
    if (!a || !b)
      return std::nullopt;
    switch (compare.getPredicate()) {
    case Predicate::lt:
      return Exprs{b - a - 1};
    case Predicate::le:
      return Exprs{b - a};
    case Predicate::gt:
      return Exprs{a - b - 1};
    case Predicate::ge:
      return Exprs{a - b};
    default:
      return std::nullopt;
    }
  }
  AffineExpr content = contentAt(value, coordinates, extents);
  return content && constantOf(content) ? std::optional(Exprs{content - 1})
                                        : std::nullopt;
}

std::optional<Exprs>
charonia::graph::conditionsAt(Value value, ArrayRef<AffineExpr> coordinates,
                              ArrayRef<AffineExpr> extents) {
  return conditions(value, Exprs(coordinates), extents, 0);
}

Exprs charonia::graph::coordinatesOf(Value value) {
  Exprs dims;
  for (size_t i = 0, rank = getShape(value).size(); i < rank; ++i)
    dims.push_back(getAffineDimExpr(i, value.getContext()));
  return dims;
}
