#include "graph/analysis/IndexContent.h"
#include "graph/ir/Exact.h"

using namespace mlir;
using namespace charonia::graph;

bool charonia::graph::mayWrap(AffineExpr content, IntegerType type,
                              const Facts &facts) {
  return type.getWidth() != 1 && type.getWidth() < 64 &&
         !holds(type, boundsOf(content, facts));
}

namespace {

/// A walk that gives up on large expressions instead of taking long.
struct Contents {
  ArrayRef<AffineExpr> extents;
  int budget = 512;
  std::optional<Facts> facts = std::nullopt;
  ExprEffort effort = {};

  /// The content as it is read by what tells a number that wrapped from one
  /// that did not: null where it may.
  AffineExpr told(Value value, AffineExpr content) {
    auto type = dyn_cast<IntegerType>(getElementTypeOrSelf(value));
    if (!content || !type || type.getWidth() >= 64)
      return content;
    if (!facts)
      facts = factsAt(value);
    return mayWrap(content, type, *facts) ? AffineExpr() : content;
  }

  /// Ranges of the module's symbols, and of dims as numbers.
  Facts factsAt(Value value) const {
    auto module = value.getParentRegion()->getParentOfType<ModuleOp>();
    Facts result = module ? getFacts(module) : Facts();
    result.setExtents(extents);
    for (auto [dim, extent] : llvm::zip_equal(result.dims, extents))
      if (Interval size = extent ? boundsOf(extent, result) : Interval();
          size.high != Interval::noHigh)
        dim.high = size.high - 1;
    return result;
  }

  AffineExpr at(Value value, ArrayRef<AffineExpr> coordinates, int depth) {
    auto op = value.getDefiningOp<GraphOpInterface>();
    if (!op || depth > 64 || --budget < 0 ||
        !getElementTypeOrSelf(value).isIntOrIndex())
      return {};
    AffineExpr content =
        op.getContentAt(coordinates, extents,
                        [&](unsigned operand, ArrayRef<AffineExpr> inner) {
                          Value from = op->getOperand(operand);
                          AffineExpr content = at(from, inner, depth + 1);
                          return op.commutesWithWrapping(operand)
                                     ? content
                                     : told(from, content);
                        });
    return content && !effort.isTooMuch(content)
               ? simplify(AffineMap::get(extents.size(), 64, content), extents)
                     .getResult(0)
               : AffineExpr();
  }
};

} // namespace

AffineExpr charonia::graph::contentAt(Value value,
                                      ArrayRef<AffineExpr> coordinates,
                                      ArrayRef<AffineExpr> extents) {
  Contents contents{extents};
  return contents.told(value, contents.at(value, coordinates, 0));
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
