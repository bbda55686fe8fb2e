#include "graph/analysis/Cells.h"
#include "graph/ir/FormedOps.h"
#include "graph/passes/Columns.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_ROTATECOLUMNS
#include "graph/passes/Passes.h.inc"

namespace {

/// concat([-] x[.., h:], [-] x[.., :h]): the halves of a vector swapped.
struct Rotation {
  Value input;
  bool negatesFirst, negatesSecond;
};

/// x in `value` = x or -x, read by nothing else.
Value behindNegation(Value value, bool &negates) {
  auto neg = value.hasOneUse() ? value.getDefiningOp<NegOp>() : NegOp();
  negates = bool(neg);
  return neg ? neg->getOperand(0) : value;
}

/// Where a slice of the last dimension alone begins; nothing: it is none.
std::optional<int64_t> startOfLast(SliceOp slice) {
  Exprs from = getShape(slice.getInput()), to = getShape(slice.getResult());
  ArrayRef<AffineExpr> starts = slice.getStarts().getResults();
  if (llvm::any_of(slice.getSteps(), [](int64_t s) { return s != 1; }) ||
      from.size() != to.size() ||
      ArrayRef(from).drop_back() != ArrayRef(to).drop_back())
    return std::nullopt;
  return constantOf(starts.back());
}

std::optional<Rotation> rotationOf(ConcatOp concat) {
  if (concat.getInputs().size() != 2)
    return std::nullopt;
  Rotation rotation;
  Value halves[] = {
      behindNegation(concat.getInputs()[0], rotation.negatesFirst),
      behindNegation(concat.getInputs()[1], rotation.negatesSecond)};
  auto high = halves[0].getDefiningOp<SliceOp>(),
       low = halves[1].getDefiningOp<SliceOp>();
  if (!high || !low || high.getInput() != low.getInput())
    return std::nullopt;
  rotation.input = high.getInput();
  Exprs shape = getShape(rotation.input);
  std::optional<int64_t> width = constantOf(shape.back());
  bool isSwap = width &&
                int64_t(concat.getAxis()) == int64_t(shape.size()) - 1 &&
                *width > 0 && *width % (2 * kColumnRun) == 0 &&
                startOfLast(low) == 0 && startOfLast(high) == *width / 2 &&
                constantOf(getShape(low.getResult()).back()) == *width / 2 &&
                constantOf(getShape(high.getResult()).back()) == *width / 2;
  return isSwap ? std::optional(rotation) : std::nullopt;
}

/// Vectors of some heads' columns and what is computed of each by itself.
struct Rotated {
  Operation *reader; ///< Of all columns.
  Value heads;       ///< [.., heads, width]
  llvm::SetVector<Operation *> ops;
  Value result;
  int64_t first = 0, count = 0; ///< Heads.
};

struct RotateColumns : impl::RotateColumnsBase<RotateColumns> {
  using RotateColumnsBase::RotateColumnsBase;

  void runOnOperation() override {
    ordered.clear();
    SmallVector<GraphOpInterface> products;
    getOperation().walk([&](GraphOpInterface op) {
      if (columnOfCells(op) && rowsOf(op) >= leastRows &&
          hasOwnColumns(op, weightsOnly))
        products.push_back(op);
    });
    for (GraphOpInterface product : products)
      rotate(product);
    eraseDead(getOperation());
  }

private:
  void rotate(GraphOpInterface product) {
    Value columns = behindBias(product, weightsOnly);
    SmallVector<Rotated> found;
    for (Operation *user : columns.getUsers()) {
      auto slice = dyn_cast<SliceOp>(user);
      Value own = slice ? slice.getResult() : columns;
      if (slice && !startOfLast(slice))
        continue;
      for (Operation *reader : own.getUsers()) {
        auto heads = dyn_cast<ReshapeOp>(reader);
        std::optional<Rotated> rotated =
            heads ? rotatedOf(columns, slice, heads) : std::nullopt;
        if (rotated && own.hasOneUse())
          found.push_back(std::move(*rotated));
      }
    }
    if (found.empty())
      return;
    AffineExpr width = getShape(found.front().heads).back();
    llvm::erase_if(found, [&](const Rotated &r) {
      return getShape(r.heads).back() != width;
    });
    rewrite(product, columns, found);
  }

  /// What is computed of the vectors of `heads`, if some are rotated and one
  /// value is the end of it.
  std::optional<Rotated> rotatedOf(Value columns, SliceOp slice,
                                   ReshapeOp heads) {
    Exprs all = getShape(columns), shape = getShape(heads.getResult());
    std::optional<int64_t> width = constantOf(shape.back()),
                           total = constantOf(all.back());
    std::optional<int64_t> start = slice ? startOfLast(slice) : 0;
    if (shape.size() != all.size() + 1 || !width || !total || !start ||
        *width < 1 || *total % *width != 0 || *start % *width != 0 ||
        ArrayRef(shape).drop_back(2) != ArrayRef(all).drop_back())
      return std::nullopt;
    Rotated found{slice ? slice.getOperation() : heads.getOperation(),
                  heads.getResult(),
                  {},
                  {},
                  *start / *width,
                  constantOf(shape[shape.size() - 2]).value_or(0)};
    bool rotates = false;
    SmallVector<Value> work{found.heads};
    llvm::SetVector<Value> inside;
    inside.insert(found.heads);
    constexpr size_t most = 24;
    while (!work.empty() && found.ops.size() < most) {
      Value value = work.pop_back_val();
      for (Operation *user : value.getUsers()) {
        Operation *next =
            isOfVectors(user, found.heads) ? user : rotationOver(user);
        if (!next || !found.ops.insert(next))
          continue;
        rotates |= isa<ConcatOp>(next);
        inside.insert(next->getResult(0));
        work.push_back(next->getResult(0));
      }
    }
    if (!rotates || found.count < 1 || !hasOneEnd(found, inside) ||
        !llvm::all_of(
            found.ops,
            [&](Operation *op) { return readsOutsideAlike(op, inside); }))
      return std::nullopt;
    llvm::SmallVector<Operation *> sorted = found.ops.takeVector();
    llvm::sort(sorted, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    found.ops.insert(sorted.begin(), sorted.end());
    return found;
  }

  /// Whether an operator computes each element from those at its place.
  static bool isOfVectors(Operation *op, Value heads) {
    auto pointwise = dyn_cast<GraphOpInterface>(op);
    return pointwise && pointwise.getRole() == OpRole::Pointwise &&
           pointwise.getCells().empty() && op->getNumResults() == 1 &&
           op->getBlock() == heads.getParentBlock() &&
           op->getResult(0).getType() == heads.getType();
  }

  /// The rotation that a slice is of, if it is one's alone.
  static Operation *rotationOver(Operation *slice) {
    if (!isa<SliceOp>(slice) || !slice->hasOneUse())
      return nullptr;
    Operation *user = *slice->user_begin();
    if (isa<NegOp>(user) && user->hasOneUse())
      user = *user->user_begin();
    auto concat = dyn_cast<ConcatOp>(user);
    return concat && rotationOf(concat) ? user : nullptr;
  }

  /// Whether nothing but the last operator's result is read by others.
  static bool hasOneEnd(Rotated &found, const llvm::SetVector<Value> &inside) {
    for (Value value : inside)
      for (Operation *user : value.getUsers()) {
        Operation *rotation = rotationOver(user);
        if (found.ops.contains(user) ||
            (rotation && found.ops.contains(rotation)))
          continue;
        if (found.result && found.result != value)
          return false;
        found.result = value;
      }
    return found.result && found.result != found.heads;
  }

  /// Whether what an operator reads beside vectors is the same for all heads.
  static bool readsOutsideAlike(Operation *op,
                                const llvm::SetVector<Value> &inside) {
    if (isa<ConcatOp>(op))
      return inside.contains(rotationOf(cast<ConcatOp>(op))->input);
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      Exprs shape = getShape(operand);
      return inside.contains(operand) || shape.size() < 2 ||
             constantOf(shape[shape.size() - 2]) == 1;
    });
  }

  /// Whether two are computed alike, of the same operands.
  static bool areAlike(const Rotated &a, const Rotated &b) {
    if (a.ops.size() != b.ops.size())
      return false;
    IRMapping same;
    same.map(a.heads, b.heads);
    for (auto [x, y] : llvm::zip_equal(a.ops, b.ops)) {
      if (x->getName() != y->getName())
        return false;
      if (auto concat = dyn_cast<ConcatOp>(x)) {
        Rotation p = *rotationOf(concat), q = *rotationOf(cast<ConcatOp>(y));
        if (same.lookupOrDefault(p.input) != q.input ||
            p.negatesFirst != q.negatesFirst ||
            p.negatesSecond != q.negatesSecond)
          return false;
      } else if (x->getAttrDictionary() != y->getAttrDictionary() ||
                 !llvm::equal(llvm::map_range(x->getOperands(),
                                              [&](Value v) {
                                                return same.lookupOrDefault(v);
                                              }),
                              y->getOperands())) {
        return false;
      }
      same.map(x->getResult(0), y->getResult(0));
    }
    return same.lookupOrDefault(a.result) == b.result;
  }

  /// -1 for negated halves of a vector, whose runs are in turn, else 1.
  static Value signsOf(OpBuilder &b, Location loc, const Rotation &rotation) {
    auto type = cast<RankedTensorType>(rotation.input.getType());
    int64_t width = *constantOf(getShape(rotation.input).back());
    auto element = cast<FloatType>(type.getElementType());
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
  /// that read it; times signs if there are such.
  Value inOrder(OpBuilder &outer, Value beside, Type vectors,
                const Rotation *signs = nullptr) {
    unsigned negated =
        signs ? 1 + 2 * signs->negatesFirst + 4 * signs->negatesSecond : 0;
    Value &turned = ordered[{beside, negated}];
    if (turned)
      return turned;
    OpBuilder b(outer);
    b.setInsertionPointAfterValue(beside);
    Location loc = beside.getLoc();
    Exprs shape = getShape(beside);
    AffineExpr width = getShape(vectors).back();
    turned = beside;
    if (!shape.empty() && shape.back() == width)
      turned = halvesInTurn(b, loc, turned, shape.size() - 1, /*groups=*/1,
                            /*stored=*/weightsOnly(beside));
    if (signs && (signs->negatesFirst || signs->negatesSecond))
      turned = MulOp::create(b, loc, turned, signsOf(b, loc, *signs));
    return turned;
  }

  /// The rotation of `input`, times what `factor` is if that is not null: its
  /// signs go there, which may be weights.
  Value rotated(OpBuilder &b, Location loc, const Rotation &rotation,
                Value input, Value columns, Value factor) {
    Value flat = input.getDefiningOp()->getOperand(0);
    if (flat != columns)
      flat = ReshapeOp::create(b, loc, columns.getType(), input);
    Value swapped = SwapHalvesOp::create(b, loc, flat, kColumnRun);
    swapped = ReshapeOp::create(b, loc, input.getType(), swapped);
    if (factor)
      factor = inOrder(b, factor, input.getType(), &rotation);
    else if (rotation.negatesFirst || rotation.negatesSecond)
      factor = signsOf(b, loc, rotation);
    return factor ? Value(MulOp::create(b, loc, swapped, factor)) : swapped;
  }

  /// What `alike` computes, of all heads.
  Value computeAll(OpBuilder &b, const Rotated &alike, Value heads,
                   Value columns) {
    IRMapping mapping;
    mapping.map(alike.heads, heads);
    for (Operation *op : alike.ops)
      for (Value operand : op->getOperands())
        if (operand != alike.heads && !isa<ConcatOp>(op) &&
            !alike.ops.contains(operand.getDefiningOp()) &&
            !mapping.contains(operand))
          mapping.map(operand, inOrder(b, operand, heads.getType()));
    for (Operation *op : alike.ops) {
      Value done;
      if (auto concat = dyn_cast<ConcatOp>(op)) {
        Rotation rotation = *rotationOf(concat);
        bool isScaled = llvm::all_of(op->getUsers(), [&](Operation *user) {
          Value factor =
              isa<MulOp>(user) ? factorBeside(user, op->getResult(0)) : Value();
          return factor && factor != alike.heads &&
                 !alike.ops.contains(factor.getDefiningOp());
        });
        if (isScaled)
          continue; // with what multiplies it
        done = rotated(b, op->getLoc(), rotation,
                       mapping.lookup(rotation.input), columns, {});
      } else if (auto concat = scaledRotation(op, mapping)) {
        done = rotated(b, op->getLoc(), *rotationOf(concat),
                       mapping.lookup(rotationOf(concat)->input), columns,
                       factorBeside(op, concat.getResult()));
      } else {
        Operation *copy = b.clone(*op, mapping);
        copy->getResult(0).setType(
            makeType(getShape(heads), getElementTypeOrSelf(op->getResult(0))));
        done = copy->getResult(0);
      }
      mapping.map(op->getResult(0), done);
    }
    return mapping.lookup(alike.result);
  }

  /// The other factor of a product of two; null where both are `value`.
  static Value factorBeside(Operation *mul, Value value) {
    Value other = mul->getOperand(mul->getOperand(0) == value ? 1 : 0);
    return other == value ? Value() : other;
  }
  /// The rotation that a product is of, which has been left for it.
  static ConcatOp scaledRotation(Operation *op, const IRMapping &mapping) {
    for (Value operand : op->getOperands())
      if (auto concat = operand.getDefiningOp<ConcatOp>();
          concat && isa<MulOp>(op) && !mapping.contains(operand) &&
          rotationOf(concat) && mapping.contains(rotationOf(concat)->input))
        return concat;
    return {};
  }

  void rewrite(GraphOpInterface product, Value columns,
               ArrayRef<Rotated> found) {
    OpBuilder b(columns.getContext());
    b.setInsertionPointAfterValue(columns);
    Location loc = columns.getLoc();
    Exprs shape = getShape(columns), all = shape;
    int64_t width = *constantOf(getShape(found.front().heads).back()),
            heads = *constantOf(shape.back()) / width;
    all.back() = b.getAffineConstantExpr(heads);
    all.push_back(b.getAffineConstantExpr(width));
    Type element = getElementTypeOrSelf(columns);
    putHalvesInTurn(product, heads, weightsOnly);
    SmallVector<OpOperand *> old;
    for (OpOperand &use : columns.getUses())
      old.push_back(&use);
    Value vectors = ReshapeOp::create(b, loc, makeType(all, element), columns),
          result = vectors;
    for (const Rotated &r : found)
      hoistOperands(r, vectors.getDefiningOp());
    SmallVector<bool> done(found.size(), false);
    for (size_t i = 0; i < found.size(); ++i) {
      if (done[i])
        continue;
      SmallVector<bool> chosen(heads, false);
      for (size_t j = i; j < found.size(); ++j)
        if (!done[j] && areAlike(found[i], found[j])) {
          done[j] = true;
          std::fill_n(chosen.begin() + found[j].first, found[j].count, true);
        }
      Value own = computeAll(b, found[i], vectors, columns);
      result = llvm::all_of(chosen, [](bool c) { return c; })
                   ? own
                   : select(b, loc, chosen, own, result);
    }
    result = halvesApart(b, loc, result, all.size() - 1, /*groups=*/1);
    replace(b, columns, found, result, old);
  }

  /// Moves what else is read in front of `before`.
  static void hoistOperands(const Rotated &rotated, Operation *before) {
    for (Operation *op : rotated.ops)
      for (Value operand : op->getOperands())
        if (operand != rotated.heads && !isa<ConcatOp>(op) &&
            !rotated.ops.contains(operand.getDefiningOp()))
          hoistWeights(operand, before);
  }

  static Value select(OpBuilder &b, Location loc, ArrayRef<bool> chosen,
                      Value own, Value other) {
    auto type =
        RankedTensorType::get({int64_t(chosen.size()), 1}, b.getI1Type());
    Value condition =
        ConstantOp::create(b, loc, DenseElementsAttr::get(type, chosen));
    return SelectOp::create(b, loc, condition, own, other);
  }

  /// Others read what is computed where they have read the columns.
  static void replace(OpBuilder &b, Value columns, ArrayRef<Rotated> found,
                      Value result, ArrayRef<OpOperand *> old) {
    Location loc = columns.getLoc();
    for (const Rotated &r : found) {
      SmallVector<AffineExpr> starts(getShape(result).size(),
                                     b.getAffineConstantExpr(0));
      starts[starts.size() - 2] = b.getAffineConstantExpr(r.first);
      Value own = result;
      if (r.heads.getType() != result.getType())
        own = SliceOp::create(b, loc, r.heads.getType(), result,
                              AffineMap::get(0, 0, starts, b.getContext()),
                              SmallVector<int64_t>(starts.size(), 1));
      Value end = r.result;
      end.replaceAllUsesWith(own);
    }
    Value flat = ReshapeOp::create(b, loc, columns.getType(), result);
    for (OpOperand *use : old)
      if (llvm::none_of(found, [&](const Rotated &r) {
            return use->getOwner() == r.reader;
          }))
        use->set(flat);
  }

  WeightsOnly weightsOnly;
  llvm::DenseMap<std::pair<Value, unsigned>, Value> ordered;
};

} // namespace
} // namespace charonia::graph
