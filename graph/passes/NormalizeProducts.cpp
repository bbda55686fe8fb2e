#include "graph/analysis/Cells.h"
#include "graph/analysis/FusionPlan.h"
#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/Ranges.h"
#include "graph/analysis/Walked.h"
#include "graph/analysis/Weights.h"
#include "graph/ir/FormedOps.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_NORMALIZEPRODUCTS
#include "graph/passes/Passes.h.inc"

namespace {

/// rows = normalize(input) * scale + shift, in a small type, scale and shift
/// [K] made of weights, or null.
struct NormalizedRows {
  NormalizeOp normalize;
  Value input, scale, shift, rows;
  /// What moves whole rows between the normalization and `rows`; all that is
  /// between.
  SmallVector<GraphOpInterface> views;
  SmallVector<Operation *> chain;
  /// Reads the rows: products with weights, and others in products' kernels.
  SmallVector<MatmulOp> products;
  SmallVector<OpOperand *> others;
};

/// Whether a view moves rows as a whole.
bool keepsRows(GraphOpInterface view) {
  if (view.getRole() != OpRole::View || view->getNumOperands() != 1)
    return false;
  AffineMap map = view.getOperandMap(0);
  Exprs from = getShape(view->getOperand(0)), to = getShape(view->getResult(0));
  if (!map || from.empty() || to.empty() || from.back() != to.back())
    return false;
  map = simplify(map, to);
  unsigned last = to.size() - 1;
  return map.getResults().back() ==
             getAffineDimExpr(last, view->getContext()) &&
         llvm::none_of(map.getResults().drop_back(),
                       [&](AffineExpr e) { return e.isFunctionOfDim(last); });
}

/// Whether `value` has a number for each element of a row, the same for all
/// rows.
bool isOfLast(Value value, Value rows) {
  Exprs shape = getShape(value);
  return !shape.empty() && shape.back() == getShape(rows).back() &&
         llvm::all_of(ArrayRef(shape).drop_back(),
                      [](AffineExpr e) { return constantOf(e) == 1; });
}

struct NormalizeProducts : impl::NormalizeProductsBase<NormalizeProducts> {
  using NormalizeProductsBase::NormalizeProductsBase;

  void runOnOperation() override {
    known.clear();
    SmallVector<NormalizeOp> ops;
    getOperation().walk([&](NormalizeOp op) { ops.push_back(op); });
    for (NormalizeOp op : ops) {
      std::optional<NormalizedRows> rows = rowsOf(op);
      if (!rows || !findReaders(*rows))
        continue;
      for (MatmulOp product : rows->products)
        rewrite(*rows, product);
      rewriteOthers(*rows);
    }
    eraseDead(getOperation());
  }

private:
  static bool isSmall(Value value) {
    Type element = getElementTypeOrSelf(value);
    return element.isF16() || element.isBF16();
  }

  /// The operand of a value that is no weight, where the other one is the same
  /// for all rows, and of no higher rank.
  Value besideWeights(Operation *op, Value &weights) {
    for (unsigned i : {0, 1}) {
      Value other = op->getOperand(1 - i);
      Value own = op->getOperand(i);
      if (weightsOnly(other) && isOfLast(other, own) && !weightsOnly(own) &&
          getShape(own) == getShape(op->getResult(0))) {
        weights = other;
        return own;
      }
    }
    return {};
  }

  /// What a normalization of rows of a small type gives in the end.
  std::optional<NormalizedRows> rowsOf(NormalizeOp op) {
    unsigned rank = getShape(op.getInput()).size();
    if (rank < 2 || op.getAxes() != ArrayRef<int64_t>{rank - 1} ||
        !constantOf(getShape(op.getInput()).back()))
      return std::nullopt;
    NormalizedRows found;
    found.normalize = op;
    found.input = op.getInput();
    found.rows = op.getResult();
    if (auto cast = found.input.getDefiningOp<CastOp>();
        cast && !isSmall(found.input))
      found.input = cast.getInput();
    if (!isSmall(found.input) ||
        constantOf(simplify(getShape(found.input).back() % columnsInCell)) !=
            0 ||
        !isBehindProduct(found.input))
      return std::nullopt;
    while (found.rows.hasOneUse()) {
      Operation *user = *found.rows.user_begin();
      auto view = dyn_cast<GraphOpInterface>(user);
      Value weights;
      if (view && keepsRows(view))
        found.views.push_back(view);
      else if (isa<MulOp>(user) && !found.scale && !found.shift &&
               besideWeights(user, weights) == found.rows)
        found.scale = weights;
      else if (isa<AddOp>(user) && !found.shift &&
               besideWeights(user, weights) == found.rows)
        found.shift = weights;
      else if (!isa<CastOp>(user))
        break;
      found.chain.push_back(user);
      found.rows = user->getResult(0);
    }
    return found.rows.use_empty() ? std::nullopt : std::optional(found);
  }

  /// Whether weights that are scaled have a place in the small type: what lies
  /// below its normal numbers would lose more than the rows that were scaled.
  bool mayScale(Value scale, Value weights) {
    constexpr double least = 1.0 / 16, leastProduct = 0x1p-10, most = 65504;
    Ranges ranges(most);
    auto sizeOf = [&](Value value) {
      std::optional<RealRange> bounds = ranges.boundsOf(value);
      return bounds ? std::max(std::abs(bounds->low), std::abs(bounds->high))
                    : 1.0;
    };
    double size = sizeOf(scale), product = size * sizeOf(weights);
    return size >= least && product >= leastProduct && product < most;
  }

  /// Whether a product takes the rows, and may have scaled weights. One of a
  /// single column reads its rows once, as a normalization of them does.
  bool takesRows(OpOperand &use, const NormalizedRows &rows) {
    auto product = dyn_cast<MatmulOp>(use.getOwner());
    return product && use.getOperandNumber() == 0 &&
           getShape(product.getRhs()).size() == 2 &&
           constantOf(getShape(product.getRhs()).back()) != 1 &&
           weightsOnly(product.getRhs()) &&
           getElementTypeOrSelf(product.getRhs()) ==
               getElementTypeOrSelf(rows.input) &&
           (!rows.scale || (!isShared(product.getRhs()) &&
                            mayScale(rows.scale, product.getRhs())));
  }

  /// Finds all that read the rows; false if these have to be stored for one.
  bool findReaders(NormalizedRows &rows) {
    for (OpOperand &use : rows.rows.getUses()) {
      auto op = dyn_cast<GraphOpInterface>(use.getOwner());
      if (takesRows(use, rows))
        rows.products.push_back(cast<MatmulOp>(use.getOwner()));
      else if (op && op.getRole() == OpRole::Pointwise &&
               isBehindProduct(op->getResult(0)))
        rows.others.push_back(&use);
      else
        return false;
    }
    Exprs shape = getShape(rows.input);
    AffineExpr count = numElements(ArrayRef(shape).drop_back(), &getContext());
    int64_t usual = evaluate(count, getOptimum(rows.normalize)).value_or(0);
    int64_t most = rows.others.empty() ? mostRows : mostRowsBeside;
    return !rows.products.empty() && usual >= leastRows && usual <= most;
  }

  /// For others than products: they normalize what they read.
  void rewriteOthers(NormalizedRows &rows) {
    if (rows.others.empty())
      return;
    OpBuilder b(rows.rows.getContext());
    at = &b;
    b.setInsertionPointAfterValue(rows.rows);
    const RowSums &sums = sumsOf(rows.input, rows.normalize.getRms());
    IRMapping mapping;
    Value normalized = NormalizeRowsOp::create(
        b, rows.normalize.getLoc(), rows.input, sums.squares, sums.terms,
        rows.normalize.getEpsilonAttr());
    if (normalized.getType() != rows.normalize.getType())
      normalized = CastOp::create(b, rows.normalize.getLoc(), normalized,
                                  getElementTypeOrSelf(rows.normalize));
    mapping.map(rows.normalize.getResult(), normalized);
    for (Operation *op : rows.chain)
      b.clone(*op, mapping);
    for (OpOperand *use : rows.others)
      use->set(mapping.lookup(rows.rows));
  }

  /// Whether something else reads the weights as well, so that scaled ones
  /// would be stored beside them.
  static bool isShared(Value weights) {
    for (; weights.hasOneUse();
         weights = weights.getDefiningOp()->getOperand(0))
      if (!weights.getDefiningOp() ||
          weights.getDefiningOp()->getNumOperands() != 1)
        return false;
    return true;
  }

  /// Weights as they are in f32, before they were rounded.
  Term inFull(Term weights) {
    Type full = Float32Type::get(&getContext());
    if (weights.element() == full)
      return weights;
    if (auto cast = weights.as<CastOp>();
        cast && getElementTypeOrSelf(cast.getInput()) == full)
      return weights.with(cast.getInput());
    auto op = weights.as<GraphOpInterface>();
    if (op && op->getNumOperands() > 0 &&
        (op.getRole() == OpRole::View || op.getJoinedDim())) {
      IRMapping mapping;
      for (Value operand : op->getOperands())
        if (!mapping.contains(operand))
          mapping.map(operand, inFull(weights.with(operand)).get());
      Operation *copy = at->clone(*op, mapping);
      copy->getResult(0).setType(makeType(getShape(weights.get()), full));
      return weights.with(copy->getResult(0));
    }
    return weights.make<CastOp>(weights.get(), full);
  }

  /// Whether `value` is computed element by element from a product's result,
  /// rows of columns staying these though they may move, and from nothing that
  /// comes later: then it is in that product's kernel.
  bool isBehindProduct(Value value) {
    llvm::SmallSetVector<Value, 8> values;
    values.insert(value);
    GraphOpInterface last;
    for (size_t i = 0; i < values.size(); ++i) {
      auto op = values[i].getDefiningOp<GraphOpInterface>();
      if (!op || weightsOnly(values[i]))
        continue;
      if (op.getRole() == OpRole::Pointwise || keepsRows(op)) {
        values.insert(op->operand_begin(), op->operand_end());
        continue;
      }
      if (!last || last->isBeforeInBlock(op))
        last = op;
    }
    return last && columnOfCells(last) &&
           hasPlace(last, values.getArrayRef()) &&
           fitBehind(last, values.getArrayRef());
  }

  /// Whether each element of the first of `values`, with all that it is
  /// computed of behind a product, has a place of its own in the product's
  /// result: tiles have whole rows of it, or runs of these.
  static bool hasPlace(GraphOpInterface product, ArrayRef<Value> values) {
    FusionLimits limits;
    IterationSpace space = IterationSpace::of(product);
    llvm::SmallPtrSet<Operation *, 16> behind{product.getOperation()};
    SmallVector<Operation *> ops;
    for (Value value : values)
      if (Operation *op = value.getDefiningOp();
          op && product->isBeforeInBlock(op))
        ops.push_back(op);
    llvm::sort(
        ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    unsigned moves = 0;
    bool mayRoll = givesRows(product);
    for (Operation *op : ops) {
      if (llvm::none_of(op->getOperands(), [&](Value operand) {
            return behind.contains(operand.getDefiningOp());
          }))
        continue;
      behind.insert(op);
      auto graphOp = cast<GraphOpInterface>(op);
      bool isView = graphOp.getRole() == OpRole::View;
      moves += isView && !isSameBytes(op);
      // A roll has one behind the last of its views.
      auto place =
          space.fit(graphOp, [](Operation *) { return true; }, mayRoll);
      if (moves > limits.maxViews ||
          (place ? countTerms(place->map, limits.maxTerms + 1) > limits.maxTerms
                 : !isView))
        return false;
      if (place)
        space.add(op->getResult(0), *place);
    }
    auto place = space.lookup(values.front());
    return place && place->extent == IterationSpace::Extent::Full &&
           keepsColumns(product, place->map);
  }

  /// Whether the last coordinate is that of a product's columns, the others are
  /// of its rows, and none is of rows of several matrices.
  static bool keepsColumns(GraphOpInterface product, AffineMap map) {
    SmallVector<DimKind> kinds = product.getResultDimKinds();
    Exprs shape = getShape(product->getResult(0));
    unsigned column = kinds.size() - 1;
    if (map.getResults().back() !=
        getAffineDimExpr(column, product->getContext()))
      return false;
    return llvm::all_of(map.getResults().drop_back(), [&](AffineExpr e) {
      std::optional<DimKind> one;
      for (unsigned d = 0; d <= column; ++d) {
        if (!e.isFunctionOfDim(d) || constantOf(shape[d]) == 1)
          continue;
        if (d == column || (one && *one != kinds[d]))
          return false;
        one = kinds[d];
      }
      return true;
    });
  }

  /// Whether those of the values that are computed behind a product, and sums
  /// of runs of them, fit in its kernel.
  static bool fitBehind(Operation *product, ArrayRef<Value> values) {
    FusionLimits limits;
    auto isBehind = [&](Value value) {
      Operation *op = value.getDefiningOp();
      return op && product->isBeforeInBlock(op);
    };
    int64_t code = 0;
    llvm::SmallPtrSet<void *, 8> reads;
    for (Value value : llvm::make_filter_range(values, isBehind)) {
      auto op = value.getDefiningOp<GraphOpInterface>();
      code += op.getRole() == OpRole::View ? 0 : op.getCodeSize();
      for (Value operand : op->getOperands())
        if (!isBehind(operand))
          reads.insert(operand.getAsOpaquePointer());
    }
    return code < limits.maxEpilogueCode / 2 && reads.size() < limits.maxInputs;
  }

  /// Sums of runs of a row, and of squared distances from their means; for a
  /// root mean square just those of squares.
  struct RowSums {
    Value squares, terms;
  };

  const RowSums &sumsOf(Value rows, bool rms) {
    RowSums &sums = known[{rows, rms}];
    if (sums.squares)
      return sums;
    OpBuilder builder(rows.getContext());
    builder.setInsertionPointAfterValue(rows);
    Term x(rows, builder, rows.getLoc());
    Term full = x.make<CastOp>(rows, Float32Type::get(&getContext()));
    // The product reads the rows as they are stored: what rounding them adds
    // has to be in their mean.
    full.get().getDefiningOp()->setAttr(kAsStoredAttr, builder.getUnitAttr());
    auto runs = [&](Term terms, bool distances) {
      return terms.make<SumRunsOp>(terms.get(), columnsInCell, distances).get();
    };
    sums.squares = rms ? runs(full * full, false) : runs(full, true);
    if (!rms)
      sums.terms = runs(full, false);
    return sums;
  }

  /// What lies as the normalized rows' input, or has parts of these, in the
  /// places of the rows.
  Value moved(const NormalizedRows &rows, Value value) {
    AffineExpr last = getShape(value).back();
    for (GraphOpInterface view : rows.views) {
      IRMapping mapping;
      mapping.map(view->getOperand(0), value);
      Operation *copy = at->clone(*view, mapping);
      Exprs shape = getShape(view->getResult(0));
      shape.back() = last;
      copy->getResult(0).setType(makeType(shape, getElementTypeOrSelf(value)));
      value = copy->getResult(0);
    }
    return value;
  }

  void rewrite(NormalizedRows &rows, MatmulOp product) {
    OpBuilder b(product);
    at = &b;
    Term weights(product.getRhs(), b, product.getLoc());
    Type small = weights.element();
    Exprs shape = getShape(weights.get());
    AffineExpr one = getAffineConstantExpr(1, &getContext());
    Term full = inFull(weights), scaled = full;
    auto reshaped = [&](Term x, Exprs to) {
      return x.make<ReshapeOp>(makeType(to, x.element()), x.get());
    };
    if (rows.scale)
      scaled =
          full * reshaped(inFull(weights.with(rows.scale)), {shape[0], one});
    Term factors =
        rows.scale ? scaled.make<CastOp>(scaled.get(), small) : weights;
    const RowSums &sums = sumsOf(rows.input, rows.normalize.getRms());
    Value columns, terms;
    if (!rows.normalize.getRms()) {
      terms = moved(rows, sums.terms);
      Term exact =
          factors.make<CastOp>(factors.get(), Float32Type::get(&getContext()));
      columns = exact
                    .make<ReduceOp>(ReduceKind::sum, exact.get(),
                                    ArrayRef<int64_t>{0}, /*keepDims=*/false)
                    .get();
    }
    Term result =
        weights.with(NormalizedMatmulOp::create(
                         b, product.getLoc(), moved(rows, rows.input),
                         factors.get(), moved(rows, sums.squares), terms,
                         columns, rows.normalize.getEpsilonAttr())
                         .getResult());
    if (!rows.shift) {
      product.getResult().replaceAllUsesWith(result.get());
      return;
    }
    Term shift = reshaped(inFull(weights.with(rows.shift)), {one, shape[0]});
    Term added =
        reshaped(shift.make<MatmulOp>(shift.get(), full.get()), {shape[1]});
    addBehind(product, result, added, small);
  }

  /// result + added, with what is added there anyway.
  void addBehind(MatmulOp product, Term result, Term added, Type small) {
    Value old = product.getResult(), bias;
    auto add = old.hasOneUse() ? dyn_cast<AddOp>(*old.user_begin()) : AddOp();
    if (add && besideWeights(add, bias) == old) {
      at->setInsertionPoint(add);
      Term more = inFull(added.with(bias));
      added = more.make<ReshapeOp>(added.get().getType(), more.get()) + added;
      old = add.getResult();
    }
    Term sum = result + added.make<CastOp>(added.get(), small);
    old.replaceAllUsesWith(sum.get());
  }

  WeightsOnly weightsOnly;
  /// By rows, and whether it is their root mean square that is wanted.
  llvm::DenseMap<std::pair<Value, unsigned>, RowSums> known;
  /// Where terms are made.
  OpBuilder *at = nullptr;
};

} // namespace
} // namespace charonia::graph
