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

namespace {

/// The same for conditions.
struct Conditions {
  ArrayRef<AffineExpr> extents;
  int budget = 256;

  std::optional<Exprs> at(Value value, ArrayRef<AffineExpr> coordinates,
                          int depth) {
    auto op = value.getDefiningOp<GraphOpInterface>();
    if (!op || depth > 16 || --budget < 0)
      return std::nullopt;
    auto contents = [&](unsigned operand, ArrayRef<AffineExpr> inner) {
      return contentAt(op->getOperand(operand), inner, extents);
    };
    auto conditions = [&](unsigned operand, ArrayRef<AffineExpr> inner) {
      return at(op->getOperand(operand), inner, depth + 1);
    };
    if (auto known = op.getConditionsAt(coordinates, contents, conditions))
      return known;
    AffineExpr content = contentAt(value, coordinates, extents);
    return content && constantOf(content) ? std::optional(Exprs{content - 1})
                                          : std::nullopt;
  }
};

} // namespace

std::optional<Exprs>
charonia::graph::conditionsAt(Value value, ArrayRef<AffineExpr> coordinates,
                              ArrayRef<AffineExpr> extents) {
  return Conditions{extents}.at(value, coordinates, 0);
}
