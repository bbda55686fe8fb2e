#include "graph/analysis/Cells.h"
#include "graph/ir/FormedOps.h"
#include "graph/passes/Columns.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/RotatedVectors.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_ROTATECOLUMNS
#include "graph/passes/Passes.h.inc"

namespace {

struct RotateColumns : impl::RotateColumnsBase<RotateColumns> {
  using RotateColumnsBase::RotateColumnsBase;

  void runOnOperation() override {
    ordered.clear();
    weightsOnly = {};
    SmallVector<GraphOpInterface> products;
    getOperation().walk([&](GraphOpInterface op) {
      if (columnOfCells(op) && rowsOf(op) >= leastRows &&
          hasOwnColumns(op, weightsOnly))
        products.push_back(op);
    });
    for (GraphOpInterface product : products) {
      Value columns = behindBias(product, weightsOnly);
      SmallVector<Rotated> found = findRotated(columns);
      if (isWorth(columns, found))
        rewrite(product, columns, found);
    }
    eraseDead(getOperation());
  }

private:
  /// Whether most columns are of heads that are rotated: what is computed is
  /// computed of all, and of few takes longer than kernels of their own. Each
  /// kind of heads has code of its own.
  static bool isWorth(Value columns, ArrayRef<Rotated> found) {
    if (found.empty())
      return false;
    int64_t rotated = 0;
    SmallVector<Operation *> ops;
    for (const Rotated &r : found) {
      rotated += r.vectors.count * r.vectors.stride;
      ops.append(r.ops.begin(), r.ops.end());
    }
    return 2 * rotated >= *constantOf(getShape(columns).back()) &&
           fitBehindProduct(ops);
  }

  /// -1 for negated halves of a vector, whose runs are in turn, else 1.
  static Value signsOf(OpBuilder &b, Location loc, const Rotation &rotation,
                       Type vectors) {
    auto element = cast<FloatType>(getElementTypeOrSelf(vectors));
    int64_t width = *constantOf(getShape(vectors).back());
    SmallVector<Attribute> signs;
    for (int64_t i = 0; i < width; ++i) {
      bool isFirst = i / kColumnRun % 2 == 0;
      bool negates = isFirst ? rotation.negatesFirst : rotation.negatesSecond;
      signs.push_back(FloatAttr::get(element, negates ? -1.0 : 1.0));
    }
    return ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(RankedTensorType::get({width}, element), signs));
  }

  /// What is read beside vectors in the order of their elements, once for all
  /// that read it; times a rotation's signs if there is one.
  Value inOrder(Value beside, Type vectors, const Rotation *rotation) {
    unsigned negated =
        rotation ? 1 + 2 * rotation->negatesFirst + 4 * rotation->negatesSecond
                 : 0;
    AffineExpr width = getShape(vectors).back();
    Value &turned = ordered[{{beside, *constantOf(width)}, negated}];
    if (turned)
      return turned;
    OpBuilder b(beside.getContext());
    b.setInsertionPointAfterValue(beside);
    Location loc = beside.getLoc();
    Exprs shape = getShape(beside);
    turned = beside;
    if (!shape.empty() && shape.back() == width)
      turned = halvesInTurn(b, loc, turned, shape.size() - 1, /*groups=*/1,
                            /*stored=*/weightsOnly(beside));
    if (rotation && rotation->negates())
      turned =
          MulOp::create(b, loc, turned, signsOf(b, loc, *rotation, vectors));
    return turned;
  }

  /// Of all vectors what is computed of some, alike.
  class Computing {
  public:
    Computing(RotateColumns &pass, OpBuilder &b,
              ArrayRef<const Rotated *> alike, Value columns, Value vectors)
        : pass(pass), b(b), alike(alike), some(*alike.front()),
          columns(columns), vectors(vectors) {}

    Value run() {
      for (Operation *op : some.ops) {
        auto rotation = some.rotations.find(op);
        Value done;
        if (rotation != some.rotations.end()) {
          if (!isScaled(op))
            done = rotated(op, rotation->second, {});
        } else if (Operation *concat = scaledBy(op)) {
          unsigned factor = op->getOperand(0) == concat->getResult(0) ? 1 : 0;
          done = rotated(op, some.rotations.lookup(concat), beside(op, factor));
        } else if (auto normalize = dyn_cast<NormalizeOp>(op)) {
          done = normalized(normalize);
        } else {
          done = copy(op);
        }
        if (done)
          mapping.map(op->getResult(0), done);
      }
      return mapping.lookup(some.result);
    }

  private:
    /// What is computed of an operand, for all vectors.
    Value valueOf(Value operand) const {
      return some.columns.contains(operand) ? vectors : mapping.lookup(operand);
    }

    Value copy(Operation *op) {
      SmallVector<Value> operands;
      for (auto [i, operand] : llvm::enumerate(op->getOperands()))
        operands.push_back(
            some.isInside(operand)
                ? valueOf(operand)
                : pass.inOrder(beside(op, i), vectors.getType(), nullptr));
      Operation *made = b.clone(*op);
      made->setOperands(operands);
      made->getResult(0).setType(vectors.getType());
      return made->getResult(0);
    }

    Value flat(Value value) {
      return value == vectors
                 ? columns
                 : Value(ReshapeOp::create(b, value.getLoc(), columns.getType(),
                                           value));
    }

    Value normalized(NormalizeOp op) {
      Value input = flat(valueOf(op.getInput()));
      int64_t width = *constantOf(getShape(vectors).back());
      Value cells = NormalizeCellsOp::create(
          b, op.getLoc(), input.getType(), input, b.getI64IntegerAttr(width),
          op.getEpsilonAttr(), op.getRmsAttr());
      return ReshapeOp::create(b, op.getLoc(), vectors.getType(), cells);
    }

    /// What operator `op` reads beside vectors as its operand `i`: a row for
    /// each vector where that is not the same for all that are computed alike.
    Value beside(Operation *op, unsigned i) {
      Value own = op->getOperand(i);
      size_t place = llvm::find(some.ops, op) - some.ops.begin();
      auto ofOther = [&](const Rotated &other) {
        return other.ops[place]->getOperand(i);
      };
      if (llvm::all_of(alike, [&](const Rotated *other) {
            return ofOther(*other) == own;
          }))
        return own;
      int64_t width = *constantOf(getShape(vectors).back()),
              count = *constantOf(getShape(columns).back()) / width;
      SmallVector<Value> ofVector(count, own);
      for (const Rotated *other : alike)
        for (int64_t v = 0; v < other->vectors.count; ++v)
          ofVector[(other->vectors.first + v * other->vectors.stride) / width] =
              ofOther(*other);
      return pass.tableOf(ofVector, vectors.getDefiningOp());
    }

    /// Vectors with their halves swapped, times what `factor` is if that is not
    /// null: the signs go there, which may be weights.
    Value rotated(Operation *op, const Rotation &rotation, Value factor) {
      Location loc = op->getLoc();
      Value input = rotation.input ? mapping.lookup(rotation.input) : vectors;
      Value swapped = SwapHalvesOp::create(b, loc, flat(input), kColumnRun);
      swapped = ReshapeOp::create(b, loc, vectors.getType(), swapped);
      // What is no weight would take a kernel of its own.
      bool takesSigns = factor && pass.weightsOnly(factor);
      if (rotation.negates() && !takesSigns)
        swapped = MulOp::create(b, loc, swapped,
                                signsOf(b, loc, rotation, vectors.getType()));
      if (!factor)
        return swapped;
      return MulOp::create(b, loc, swapped,
                           pass.inOrder(factor, vectors.getType(),
                                        takesSigns ? &rotation : nullptr));
    }

    /// The other factor of a product of two; null where both are `value`.
    static Value factorBeside(Operation *mul, Value value) {
      Value other = mul->getOperand(mul->getOperand(0) == value ? 1 : 0);
      return other == value ? Value() : other;
    }
    /// Whether all that reads a rotation multiplies it by something outside.
    bool isScaled(Operation *rotation) const {
      Value value = rotation->getResult(0);
      return value != some.result &&
             llvm::all_of(rotation->getUsers(), [&](Operation *user) {
               Value factor =
                   isa<MulOp>(user) ? factorBeside(user, value) : Value();
               return factor && !some.isInside(factor);
             });
    }
    /// The rotation that a product is of, left for it.
    Operation *scaledBy(Operation *op) const {
      if (!isa<MulOp>(op))
        return nullptr;
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp();
            def && some.rotations.contains(def) && isScaled(def))
          return def;
      return nullptr;
    }

    RotateColumns &pass;
    OpBuilder &b;
    ArrayRef<const Rotated *> alike;
    const Rotated &some;
    Value columns, vectors;
    IRMapping mapping;
  };

  /// Weights of vectors' elements, one value after the other as rows.
  static Value tableOf(ArrayRef<Value> values, Operation *before) {
    OpBuilder b(before);
    Location loc = before->getLoc();
    Type element = getElementTypeOrSelf(values.front());
    AffineExpr width = getShape(values.front()).back();
    auto typeOf = [&](int64_t rows) {
      return makeType({b.getAffineConstantExpr(rows), width}, element);
    };
    SmallVector<Value> parts;
    for (ArrayRef<Value> left = values; !left.empty();) {
      ArrayRef<Value> run =
          left.take_while([&](Value value) { return value == left.front(); });
      Value row = ReshapeOp::create(b, loc, typeOf(1), run.front());
      parts.push_back(BroadcastOp::create(b, loc, typeOf(run.size()), row));
      left = left.drop_front(run.size());
    }
    return ConcatOp::create(b, loc, typeOf(values.size()), parts,
                            b.getI64IntegerAttr(0));
  }

  void rewrite(GraphOpInterface product, Value columns,
               ArrayRef<Rotated> found) {
    int64_t width = found.front().vectors.width,
            count = *constantOf(getShape(columns).back()) / width;
    putHalvesInTurn(product, count, weightsOnly);
    OpBuilder b(columns.getContext());
    b.setInsertionPointAfterValue(columns);
    Location loc = columns.getLoc();
    SmallVector<OpOperand *> readers;
    for (OpOperand &use : columns.getUses())
      readers.push_back(&use);
    Value vectors = inGroups(b, loc, columns, columns, width), result = vectors;
    for (const Rotated &r : found)
      hoistOperands(r, vectors.getDefiningOp());
    // What stood there may have moved.
    b.setInsertionPointAfterValue(vectors);
    SmallVector<bool> done(found.size(), false);
    for (size_t i = 0; i < found.size(); ++i) {
      if (done[i])
        continue;
      SmallVector<bool> chosen(count, false);
      SmallVector<const Rotated *> alike;
      for (size_t j = i; j < found.size(); ++j)
        if (!done[j] && areAlike(found[i], found[j], weightsOnly)) {
          done[j] = true;
          alike.push_back(&found[j]);
          const Vectors &own = found[j].vectors;
          for (int64_t v = 0; v < own.count; ++v)
            chosen[(own.first + v * own.stride) / width] = true;
        }
      Value own = Computing(*this, b, alike, columns, vectors).run();
      result = llvm::all_of(chosen, [](bool c) { return c; })
                   ? own
                   : select(b, loc, chosen, own, result);
    }
    unsigned last = getShape(result).size() - 1;
    result = halvesApart(b, loc, result, last, /*groups=*/1);
    for (const Rotated &r : found)
      replace(b, columns, r, result);
    Value flat = ReshapeOp::create(b, loc, columns.getType(), result);
    for (OpOperand *use : readers)
      use->set(flat);
  }

  /// Columns, or what has as many, as [.., groups, width].
  static Value inGroups(OpBuilder &b, Location loc, Value value, Value columns,
                        int64_t width) {
    Exprs shape = getShape(columns);
    int64_t all = *constantOf(shape.back());
    shape.back() = b.getAffineConstantExpr(all / width);
    shape.push_back(b.getAffineConstantExpr(width));
    Type type = makeType(shape, getElementTypeOrSelf(columns));
    return value.getType() == type
               ? value
               : Value(ReshapeOp::create(b, loc, type, value));
  }

  /// Moves what else is read in front of `before`.
  static void hoistOperands(const Rotated &rotated, Operation *before) {
    for (Operation *op : rotated.ops)
      for (Value operand : op->getOperands())
        if (!rotated.rotations.contains(op) && !rotated.isInside(operand))
          hoist(operand, before);
  }

  static Value select(OpBuilder &b, Location loc, ArrayRef<bool> chosen,
                      Value own, Value other) {
    auto type =
        RankedTensorType::get({int64_t(chosen.size()), 1}, b.getI1Type());
    Value condition =
        ConstantOp::create(b, loc, DenseElementsAttr::get(type, chosen));
    return SelectOp::create(b, loc, condition, own, other);
  }

  /// Others read what is computed where they have read what computed it.
  static void replace(OpBuilder &b, Value columns, const Rotated &rotated,
                      Value result) {
    const Vectors &own = rotated.vectors;
    Value old = rotated.whole ? rotated.whole : rotated.result;
    int64_t width = rotated.whole ? own.stride : own.width;
    Location loc = old.getLoc();
    Value from = inGroups(b, loc, result, columns, width);
    unsigned rank = getShape(from).size();
    SmallVector<AffineExpr> starts(rank, b.getAffineConstantExpr(0));
    SmallVector<int64_t> steps(rank, 1);
    starts[rank - 2] = b.getAffineConstantExpr(own.first / width);
    starts[rank - 1] = b.getAffineConstantExpr(own.first % width);
    if (own.count > 1)
      steps[rank - 2] = own.stride / width;
    Value slice =
        SliceOp::create(b, loc, old.getType(), from,
                        AffineMap::get(0, 0, starts, b.getContext()), steps);
    old.replaceAllUsesWith(slice);
  }

  WeightsOnly weightsOnly;
  /// By what it is, its width and signs.
  llvm::DenseMap<std::pair<std::pair<Value, int64_t>, unsigned>, Value> ordered;
};

} // namespace
} // namespace charonia::graph
