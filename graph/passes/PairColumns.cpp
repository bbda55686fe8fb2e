#include "graph/analysis/Cells.h"
#include "graph/ir/FormedOps.h"
#include "graph/passes/Columns.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_PAIRCOLUMNS
#include "graph/passes/Passes.h.inc"

namespace {

/// Two values that meet element by element, and what they are columns of.
struct Halves {
  Value first, second;
};

struct PairColumns : impl::PairColumnsBase<PairColumns> {
  using PairColumnsBase::PairColumnsBase;

  void runOnOperation() override {
    weightsOnly = {};
    SmallVector<GraphOpInterface> products;
    getOperation().walk([&](GraphOpInterface op) {
      if (columnOfCells(op) && rowsOf(op) >= leastRows)
        products.push_back(op);
    });
    for (size_t i = 0; i < products.size(); ++i) {
      if (std::optional<Halves> halves = halvesOf(products[i]))
        interleave(products[i], *halves);
      for (size_t j = i + 1; j < products.size(); ++j)
        if (mayJoin(products[i], products[j])) {
          join(products[i], products[j]);
          products.erase(products.begin() + j);
          break;
        }
    }
    eraseDead(getOperation());
  }

private:
  /// Whether all that read two values compute element by element, and something
  /// does from both.
  static bool meet(Value a, Value b) {
    llvm::SetVector<Operation *> behindA = readersOf(a), behindB = readersOf(b);
    auto isAlone = [](Value value, const llvm::SetVector<Operation *> &own) {
      return llvm::all_of(value.getUsers(),
                          [&](Operation *user) { return own.contains(user); });
    };
    llvm::SetVector<Operation *> all = behindA;
    all.insert(behindB.begin(), behindB.end());
    return isAlone(a, behindA) && isAlone(b, behindB) &&
           fitBehindProduct(all.getArrayRef()) &&
           llvm::any_of(behindA,
                        [&](Operation *op) { return behindB.contains(op); });
  }

  /// Pointwise operators behind a value that compute results of its shape.
  static llvm::SetVector<Operation *> readersOf(Value value) {
    constexpr size_t most = 16;
    llvm::SetVector<Operation *> readers;
    Exprs shape = getShape(value);
    auto add = [&](Value from) {
      for (Operation *user : from.getUsers())
        if (auto reader = dyn_cast<GraphOpInterface>(user);
            reader && reader.getRole() == OpRole::Pointwise &&
            reader.getCells().empty() &&
            getShape(reader->getResult(0)) == shape)
          readers.insert(reader);
    };
    add(value);
    for (size_t i = 0; i < readers.size() && readers.size() < most; ++i)
      add(readers[i]->getResult(0));
    return readers;
  }

  /// Whether two products are of the same rows and differ in weights alone, by
  /// whose order none depends on the other.
  bool mayJoin(GraphOpInterface a, GraphOpInterface b) {
    if (a->getName() != b->getName() ||
        a->getAttrDictionary() != b->getAttrDictionary() ||
        a->getBlock() != b->getBlock() ||
        a->getResult(0).getType() != b->getResult(0).getType() ||
        !hasOwnColumns(a, weightsOnly) || !hasOwnColumns(b, weightsOnly))
      return false;
    Columns columns = *a.getColumns();
    unsigned rows = 1 - columns.operand;
    return a->getOperand(rows) == b->getOperand(rows) &&
           a->getOperand(columns.operand).getType() ==
               b->getOperand(columns.operand).getType() &&
           isCutInRuns(getShape(a->getResult(0)).back(), 1) &&
           meet(a->getResult(0), b->getResult(0));
  }

  static bool isCutInRuns(AffineExpr columns, int64_t parts) {
    std::optional<int64_t> known = constantOf(columns);
    // Of a single cell the place of a column would not tell whether it is one.
    return known && *known > kColumnRun * parts &&
           *known % (kColumnRun * parts) == 0;
  }

  /// The two halves of a product's columns, or of these and a number that is
  /// added to each, where nothing else reads them.
  std::optional<Halves> halvesOf(GraphOpInterface product) {
    Value columns = behindBias(product, weightsOnly);
    if (!hasOwnColumns(product, weightsOnly) ||
        !isCutInRuns(getShape(columns).back(), 2) ||
        std::distance(columns.user_begin(), columns.user_end()) != 2)
      return std::nullopt;
    Halves halves;
    for (Operation *user : columns.getUsers()) {
      auto slice = dyn_cast<SliceOp>(user);
      std::optional<unsigned> half =
          slice ? halfOf(slice) : std::optional<unsigned>();
      if (!half)
        return std::nullopt;
      (*half ? halves.second : halves.first) = slice.getResult();
    }
    return halves.first && halves.second && meet(halves.first, halves.second)
               ? std::optional(halves)
               : std::nullopt;
  }

  /// Which half of the last dimension a slice is; nothing: none.
  static std::optional<unsigned> halfOf(SliceOp slice) {
    Exprs from = getShape(slice.getInput()), to = getShape(slice.getResult());
    AffineExpr half = simplify(from.back().floorDiv(2));
    ArrayRef<AffineExpr> starts = slice.getStarts().getResults();
    if (llvm::any_of(slice.getSteps(), [](int64_t s) { return s != 1; }) ||
        from.size() != to.size() || to.back() != half ||
        ArrayRef(from).drop_back() != ArrayRef(to).drop_back())
      return std::nullopt;
    if (constantOf(starts.back()) == 0)
      return 0;
    return starts.back() == half ? std::optional(1u) : std::nullopt;
  }

  static Value partOf(OpBuilder &b, Value product, unsigned part,
                      Location loc) {
    return CellPartOp::create(b, loc, product, kColumnRun, /*parts=*/2, part);
  }

  void interleave(GraphOpInterface product, const Halves &halves) {
    Value last = behindBias(product, weightsOnly);
    putHalvesInTurn(product, /*groups=*/1, weightsOnly);
    OpBuilder b(product);
    b.setInsertionPointAfterValue(last);
    unsigned part = 0;
    for (Value half : {halves.first, halves.second})
      half.replaceAllUsesWith(partOf(b, last, part++, half.getLoc()));
  }

  void join(GraphOpInterface a, GraphOpInterface b) {
    GraphOpInterface first = a->isBeforeInBlock(b) ? a : b;
    OpBuilder builder(first);
    Location loc = builder.getFusedLoc({a.getLoc(), b.getLoc()});
    Columns columns = *a.getColumns();
    unsigned dim = columns.operandDim;
    SmallVector<Value> weights = {a->getOperand(columns.operand),
                                  b->getOperand(columns.operand)};
    for (Value own : weights)
      hoist(own, first);
    Exprs shape = getShape(weights[0]);
    shape[dim] = simplify(shape[dim] * 2);
    Value both = ConcatOp::create(
        builder, loc, makeType(shape, getElementTypeOrSelf(weights[0])),
        weights, builder.getI64IntegerAttr(dim));
    both = halvesInTurn(builder, loc, both, dim, /*groups=*/1);
    Operation *joined = builder.clone(*first);
    joined->setLoc(loc);
    joined->setOperand(columns.operand, both);
    Exprs result = getShape(a->getResult(0));
    result.back() = simplify(result.back() * 2);
    joined->getResult(0).setType(
        makeType(result, getElementTypeOrSelf(a->getResult(0))));
    unsigned part = 0;
    for (GraphOpInterface product : {a, b})
      product->getResult(0).replaceAllUsesWith(
          partOf(builder, joined->getResult(0), part++, product.getLoc()));
  }

  WeightsOnly weightsOnly;
};

} // namespace
} // namespace charonia::graph
