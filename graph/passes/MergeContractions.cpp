#include "graph/analysis/Weights.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_MERGECONTRACTIONS
#include "graph/passes/Passes.h.inc"

namespace {

/// Operators that become one. Operand i of the one is their common operand, or
/// theirs side by side along dimension joined[i], or, for i == input, `merged`.
/// Their results are side by side along dimension `dim`.
struct Siblings {
  SmallVector<Operation *> ops;
  unsigned dim;
  SmallVector<int64_t> joined;
  int64_t input = -1;
  Value merged;
};

/// Whether two operators compute the same but for operands.
bool areAlike(Operation *a, Operation *b) {
  return a->getName() == b->getName() &&
         a->getAttrDictionary() == b->getAttrDictionary() &&
         a->getNumOperands() == b->getNumOperands();
}

/// Whether two types differ in dimension `dim` alone.
bool sameExcept(Type a, Type b, unsigned dim) {
  auto s = cast<RankedTensorType>(a), t = cast<RankedTensorType>(b);
  if (s.getElementType() != t.getElementType() || s.getRank() != t.getRank() ||
      dim >= s.getRank())
    return false;
  Exprs x = getShape(s), y = getShape(t);
  x[dim] = y[dim] = {};
  return x == y;
}

struct MergeContractions : impl::MergeContractionsBase<MergeContractions> {
  using MergeContractionsBase::MergeContractionsBase;

  void runOnOperation() override {
    Block &block = getOperation().getBody().front();
    SmallVector<Value> values(block.getArguments());
    for (Operation &op : block)
      values.append(op.result_begin(), op.result_end());
    for (Value value : values)
      for (Siblings &siblings : findSiblings(value))
        mergeAll(std::move(siblings));
    eraseDead(getOperation());
  }

  /// Contractions that read `value` and differ in stationary weights alone.
  SmallVector<Siblings> findSiblings(Value value) {
    SmallVector<Siblings> found;
    for (OpOperand &use : value.getUses()) {
      auto op = dyn_cast<GraphOpInterface>(use.getOwner());
      std::optional<Columns> columns = op ? op.getColumns() : std::nullopt;
      if (!columns || columns->operand == use.getOperandNumber() ||
          op->use_empty() || isReadInCells(op) ||
          !weightsOnly(op->getOperand(columns->operand)))
        continue;
      auto it = llvm::find_if(found, [&](const Siblings &siblings) {
        return siblings.dim == columns->resultDim && fits(siblings, op) &&
               areApart(siblings, op, columns->operand);
      });
      if (it == found.end()) {
        SmallVector<int64_t> joined(op->getNumOperands(), -1);
        joined[columns->operand] = columns->operandDim;
        found.push_back({{}, columns->resultDim, joined, -1, {}});
        it = &found.back();
      }
      it->ops.push_back(op);
    }
    if (apartRows > 0)
      for (Siblings &siblings : found)
        keepApart(siblings);
    llvm::erase_if(found, [&](const Siblings &siblings) {
      return siblings.ops.size() < 2;
    });
    for (Siblings &siblings : found)
      llvm::sort(siblings.ops, [](Operation *a, Operation *b) {
        return a->isBeforeInBlock(b);
      });
    return found;
  }

  /// Whether tiles of a result have what reads their cells.
  static bool isReadInCells(Operation *op) {
    return llvm::any_of(op->getResult(0).getUsers(), [](Operation *user) {
      auto reader = dyn_cast<GraphOpInterface>(user);
      return reader && !reader.getCells().empty();
    });
  }

  /// Leaves out of siblings of so many rows that memory counts those whose
  /// results meet element by element, as a gate and what passes it do: apart,
  /// the one that is computed last takes the others where it stores, while
  /// slices of one would be read by a kernel of their own.
  void keepApart(Siblings &siblings) {
    Operation *first = siblings.ops.front();
    Exprs rows = getShape(first->getResult(0));
    rows.erase(rows.begin() + siblings.dim);
    std::optional<int64_t> count =
        evaluate(numElements(rows, first->getContext()), getOptimum(first));
    if (!count || *count < apartRows)
      return;
    llvm::SmallDenseMap<Operation *, Operation *> reachedBy;
    llvm::SmallPtrSet<Operation *, 8> meeting;
    for (Operation *op : siblings.ops)
      for (Operation *reader : pointwiseReaders(op)) {
        auto [other, isFirst] = reachedBy.try_emplace(reader, op);
        if (!isFirst)
          meeting.insert({op, other->second});
      }
    llvm::erase_if(siblings.ops,
                   [&](Operation *op) { return meeting.contains(op); });
  }

  /// Pointwise operators behind `op` that compute results of its shape.
  static llvm::SetVector<Operation *> pointwiseReaders(Operation *op) {
    constexpr size_t most = 16;
    llvm::SetVector<Operation *> readers;
    Exprs shape = getShape(op->getResult(0));
    auto add = [&](Operation *from) {
      for (Operation *user : from->getResult(0).getUsers())
        if (auto reader = dyn_cast<GraphOpInterface>(user);
            reader && reader.getRole() == OpRole::Pointwise &&
            getShape(reader->getResult(0)) == shape)
          readers.insert(reader);
    };
    add(op);
    for (size_t i = 0; i < readers.size() && readers.size() < most; ++i)
      add(readers[i]);
    return readers;
  }

  static bool fits(const Siblings &siblings, Operation *op) {
    Operation *first = siblings.ops.front();
    if (!areAlike(first, op) ||
        !sameExcept(first->getResult(0).getType(), op->getResult(0).getType(),
                    siblings.dim))
      return false;
    for (auto [i, dim] : llvm::enumerate(siblings.joined)) {
      Value a = first->getOperand(i), b = op->getOperand(i);
      if ((int64_t)i == siblings.input)
        continue;
      if (dim < 0 ? a != b : !sameExcept(a.getType(), b.getType(), dim))
        return false;
    }
    return true;
  }

  /// Whether neither what `op` multiplies by nor what a sibling does is
  /// computed from the other one's result, as products of weights alone may be.
  static bool areApart(const Siblings &siblings, Operation *op,
                       unsigned operand) {
    return llvm::none_of(siblings.ops, [&](Operation *sibling) {
      return follows(op->getOperand(operand), sibling) ||
             follows(sibling->getOperand(operand), op);
    });
  }
  /// Whether a value is computed from a result of `source`, or from too much to
  /// tell.
  static bool follows(Value value, Operation *source) {
    constexpr size_t most = 64;
    llvm::SetVector<Operation *> behind;
    auto add = [&](Value operand) {
      Operation *op = operand.getDefiningOp();
      if (op && source->isBeforeInBlock(op))
        behind.insert(op);
      return op == source;
    };
    if (add(value))
      return true;
    for (size_t i = 0; i < behind.size(); ++i)
      if (behind.size() > most || llvm::any_of(behind[i]->getOperands(), add))
        return true;
    return false;
  }

  void mergeAll(Siblings siblings) {
    while (true) {
      SmallVector<Value> slices = merge(siblings);
      std::optional<Siblings> next =
          findFollowers(slices, siblings.merged, siblings.dim);
      if (!next)
        return;
      siblings = std::move(*next);
    }
  }

  /// Pointwise operators of which each reads one of the slices, in the same
  /// way, and beside it the same value or weights of its columns.
  std::optional<Siblings> findFollowers(ArrayRef<Value> slices, Value merged,
                                        unsigned dim) {
    if (!llvm::all_of(slices, [](Value slice) { return slice.hasOneUse(); }))
      return std::nullopt;
    OpOperand &use = *slices[0].getUses().begin();
    auto first = dyn_cast<GraphOpInterface>(use.getOwner());
    if (!first || first.getRole() != OpRole::Pointwise ||
        getShape(first->getResult(0)) != getShape(slices[0]))
      return std::nullopt;
    Siblings next{{first},
                  dim,
                  SmallVector<int64_t>(first->getNumOperands(), -1),
                  use.getOperandNumber(),
                  merged};
    AffineExpr extent = getShape(slices[0])[dim];
    for (auto [i, operand] : llvm::enumerate(first->getOperands())) {
      Exprs shape = getShape(operand);
      int64_t operandDim =
          (int64_t)dim - (int64_t)getShape(slices[0]).size() + shape.size();
      if ((int64_t)i == next.input || operandDim < 0 ||
          constantOf(shape[operandDim]) == 1)
        continue;
      if (shape[operandDim] != extent || !weightsOnly(operand))
        return std::nullopt;
      next.joined[i] = operandDim;
    }
    for (Value slice : slices.drop_front()) {
      OpOperand &other = *slice.getUses().begin();
      Operation *op = other.getOwner();
      if (other.getOperandNumber() != next.input ||
          llvm::is_contained(next.ops, op) || !fits(next, op))
        return std::nullopt;
      for (auto [i, operandDim] : llvm::enumerate(next.joined))
        if (operandDim >= 0 &&
            (!weightsOnly(op->getOperand(i)) ||
             getShape(op->getOperand(i))[operandDim] != getShape(slice)[dim]))
          return std::nullopt;
      next.ops.push_back(op);
    }
    return next;
  }

  /// Replaces the siblings by one operator (siblings.merged); gives the slices
  /// that stand for their results, in order.
  SmallVector<Value> merge(Siblings &siblings) {
    Operation *first = siblings.ops.front();
    for (Operation *op : siblings.ops)
      if (op->isBeforeInBlock(first))
        first = op;
    OpBuilder builder(first);
    SmallVector<Location> locations;
    for (Operation *op : siblings.ops)
      locations.push_back(op->getLoc());
    Location location = builder.getFusedLoc(locations);

    SmallVector<Value> operands(first->getOperands());
    for (auto [i, dim] : llvm::enumerate(siblings.joined)) {
      if ((int64_t)i == siblings.input) {
        operands[i] = siblings.merged;
      } else if (dim >= 0) {
        SmallVector<Value> parts;
        for (Operation *op : siblings.ops) {
          hoist(op->getOperand(i), first);
          parts.push_back(op->getOperand(i));
        }
        operands[i] = sideBySide(builder, location, parts, dim);
      }
    }
    Operation *merged = builder.clone(*first);
    merged->setOperands(operands);
    merged->setLoc(location);
    SmallVector<Value> results;
    for (Operation *op : siblings.ops)
      results.push_back(op->getResult(0));
    merged->getResult(0).setType(joinedType(results, siblings.dim));
    siblings.merged = merged->getResult(0);

    unsigned rank = getShape(siblings.merged).size();
    SmallVector<AffineExpr> starts(rank, builder.getAffineConstantExpr(0));
    SmallVector<int64_t> steps(rank, 1);
    SmallVector<Value> slices;
    for (Value result : results) {
      Value slice = SliceOp::create(
          builder, result.getLoc(), result.getType(), siblings.merged,
          AffineMap::get(0, 0, starts, builder.getContext()), steps);
      starts[siblings.dim] =
          simplify(starts[siblings.dim] + getShape(result)[siblings.dim]);
      result.replaceAllUsesWith(slice);
      slices.push_back(slice);
    }
    return slices;
  }

  static Type joinedType(ArrayRef<Value> parts, unsigned dim) {
    Exprs shape = getShape(parts[0]);
    for (Value part : parts.drop_front())
      shape[dim] = shape[dim] + getShape(part)[dim];
    shape[dim] = simplify(shape[dim]);
    return makeType(
        shape, cast<RankedTensorType>(parts[0].getType()).getElementType());
  }

  static Value sideBySide(OpBuilder &builder, Location location,
                          ArrayRef<Value> parts, unsigned dim) {
    return ConcatOp::create(builder, location, joinedType(parts, dim), parts,
                            builder.getI64IntegerAttr(dim));
  }

  WeightsOnly weightsOnly;
};

} // namespace
} // namespace charonia::graph
