#include "codegen/driver/IndexWidth.h"
#include "codegen/tile/ir/IndexAttributes.h"
#include "graph/analysis/StoredParts.h"
#include "graph/ir/Symbolic.h"
#include "runtime/engine/Engine.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace charonia::driver {
namespace {

/// What the indices of a kernel count, over the module's symbols.
class IndexedCounts {
public:
  explicit IndexedCounts(ArrayRef<graph::Symbol> symbols)
      : facts(graph::getDeclaredFacts(symbols)),
        sizes(graph::getOptimum(symbols)) {}

  void visit(graph::KernelOp kernel) {
    for (Value value : kernel.getInputs())
      addElements(value.getType());
    for (unsigned i = 0; i < kernel.getNumResults(); ++i)
      addElements(graph::getStoredType(kernel, i));
    for (Operation &op : kernel.getBody().front())
      if (auto graphOp = dyn_cast<graph::GraphOpInterface>(&op))
        visit(graphOp);
  }

  /// Whether 32 bits are too few at the sizes to optimize for.
  bool isWide() const {
    return hasWideNumbers || llvm::any_of(counts, [&](AffineExpr count) {
             auto value = graph::evaluate(count, sizes);
             return !value || *value > engine::maxIndexed / 2;
           });
  }

  /// What may be too much at other sizes, without what is below the rest.
  graph::Exprs limits() const {
    graph::Exprs found;
    for (AffineExpr count : counts)
      if (!llvm::any_of(found, [&](AffineExpr other) {
            return graph::isNonNegative(other - count, facts);
          })) {
        llvm::erase_if(found, [&](AffineExpr other) {
          return graph::isNonNegative(count - other, facts);
        });
        found.push_back(count);
      }
    return found;
  }

private:
  void visit(graph::GraphOpInterface op) {
    Value result = op->getResult(0);
    for (AffineExpr extent : graph::getShape(result))
      add(extent);
    // A sort doubles what it counts, past the end of the row.
    bool isOrdered = op.getRole() == graph::OpRole::Ordered;
    add(op.getReductionExtent() * (isOrdered ? 4 : 1));
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (multiplies(op.getOperandMap(i))) {
        addElements(op->getOperand(i).getType());
        addElements(result.getType());
      }
    if (graph::SymbolicTensor numbers = evaluator.evaluate(result))
      for (AffineExpr number : *numbers.elements)
        if (number && !isa<AffineConstantExpr>(number))
          hasWideNumbers |= isWideNumber(number);
  }

  /// Whether coordinates are joined to larger numbers, or taken from such.
  static bool multiplies(AffineMap map) {
    bool found = false;
    for (AffineExpr result : map ? map.getResults() : ArrayRef<AffineExpr>())
      result.walk([&](AffineExpr e) {
        found |=
            isa<AffineBinaryOpExpr>(e) && e.getKind() != AffineExprKind::Add;
      });
    return found;
  }

  /// ... or a part of it.
  bool isWideNumber(AffineExpr number) {
    bool found = false;
    graph::BoundsFinder bounds(facts);
    number.walk([&](AffineExpr e) {
      graph::Interval range = bounds(e);
      found |=
          !isa<AffineConstantExpr>(e) &&
          (range.low < -engine::maxIndexed || range.high > engine::maxIndexed);
    });
    return found;
  }

  void addElements(Type type) {
    add(graph::numElements(graph::getShape(type), type.getContext()));
  }
  void add(AffineExpr count) {
    count = graph::simplify(count, facts);
    if (graph::boundsOf(count, facts).high > engine::maxIndexed)
      counts.insert(count);
  }

  graph::Facts facts;
  /// Of small tensors, as sizes are; the others' numbers are data, or places,
  /// which their extents bound.
  graph::SymbolicEvaluator evaluator;
  SmallVector<int64_t> sizes;
  llvm::SmallSetVector<AffineExpr, 8> counts;
  bool hasWideNumbers = false;
};

} // namespace

void chooseIndexBits(graph::KernelOp kernel, func::FuncOp function) {
  IndexedCounts counts(graph::getSymbols(kernel->getParentOfType<ModuleOp>()));
  counts.visit(kernel);
  Builder b(kernel.getContext());
  if (counts.isWide())
    function->setAttr(tile::kIndexBitsAttr, b.getI64IntegerAttr(64));
  else if (graph::Exprs limits = counts.limits(); !limits.empty())
    function->setAttr(tile::kIndexedAttr, AffineMapAttr::get(graph::mapOf(
                                              0, limits, kernel.getContext())));
}

} // namespace charonia::driver
