// Lowers one operator, graph.scatter_nd, where its indices are known: what an
// exporter writes for an assignment to a slice. The views and concatenations
// that it is replaced by, and looks through, are the dialect's structure.
#include "graph/analysis/IndexContent.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/Views.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/Support/Endian.h"

namespace charonia::graph {
#define GEN_PASS_DEF_RESOLVESCATTERS
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

/// Elements of an index tensor that are looked at one by one, and places of an
/// input that get an index each.
constexpr int64_t mostIndices = 1 << 16;

/// The integers of a weight.
SymbolicTensor contentsOf(WeightOp op) {
  auto *dialect = op.getContext()->getLoadedDialect<GraphDialect>();
  const Weight *weight = dialect->getWeights().lookup(op.getName());
  if (!weight || !weight->type.getElementType().isSignlessInteger())
    return {};
  SymbolicTensor contents;
  contents.elements.emplace();
  unsigned bits = weight->type.getElementType().getIntOrFloatBitWidth();
  size_t count = weight->type.getNumElements();
  if ((bits != 32 && bits != 64) || weight->bytes.size() != count * bits / 8)
    return {};
  for (size_t i = 0; i < count; ++i) {
    const char *at = weight->bytes.data() + i * (bits / 8);
    int64_t value = bits == 64 ? (int64_t)llvm::support::endian::read64le(at)
                               : (int32_t)llvm::support::endian::read32le(at);
    contents.elements->push_back(getAffineConstantExpr(value, op.getContext()));
  }
  return contents;
}

/// The integers of tensors that are made of constants and weights. Each is
/// told once, however many paths lead to it, until all together have `left`
/// elements.
class Contents {
public:
  const SymbolicTensor &of(Value value) {
    SmallVector<Value> work{value};
    while (!work.empty()) {
      Value next = work.back();
      if (!known.contains(next) && !isSmall(next))
        known.try_emplace(next);
      if (known.contains(next)) {
        work.pop_back();
        continue;
      }
      size_t before = work.size();
      for (Value operand : next.getDefiningOp()->getOperands())
        if (!known.contains(operand))
          work.push_back(operand);
      if (work.size() > before)
        continue;
      SymbolicTensor result = evaluate(next.getDefiningOp<GraphOpInterface>());
      known.try_emplace(next, std::move(result));
    }
    return known.find(value)->second;
  }

private:
  bool isSmall(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return value.getDefiningOp<GraphOpInterface>() && type.hasStaticShape() &&
           type.getElementType().isIntOrIndex() &&
           type.getNumElements() <= std::min(mostIndices, left);
  }

  SymbolicTensor evaluate(GraphOpInterface op) {
    int64_t count =
        cast<RankedTensorType>(op->getResult(0).getType()).getNumElements();
    left -= count;
    if (auto weight = dyn_cast<WeightOp>(op.getOperation()))
      return contentsOf(weight);
    SmallVector<SymbolicTensor> operands;
    for (Value operand : op->getOperands())
      operands.push_back(known.find(operand)->second);
    SymbolicTensor result = op.evaluateSymbolic(operands);
    if (result && (int64_t)result.elements->size() != count)
      return {};
    return result;
  }

  llvm::DenseMap<Value, SymbolicTensor> known;
  int64_t left = 1 << 22;
};

/// A part of a tensor: along each dimension, where it starts and how long it
/// is.
struct Box {
  Exprs starts, counts;
  /// Dimension of the tuples along which the box goes there, if any.
  SmallVector<std::optional<unsigned>> along;
};

class ResolveScatters
    : public charonia::graph::impl::ResolveScattersBase<ResolveScatters> {
  void runOnOperation() override {
    builder.emplace(&getContext());
    contents = {};
    if (auto module = getOperation()->getParentOfType<ModuleOp>())
      known = getFacts(module);
    SmallVector<Operation *> ops;
    getOperation().walk([&](GraphOpInterface op) { ops.push_back(op); });
    bool changed = false;
    for (Operation *op : ops) {
      builder->setInsertionPoint(op);
      if (changed)
        for (OpOperand &operand : op->getOpOperands())
          operand.set(withoutDetour(operand.get()));
      auto scatter = dyn_cast<ScatterNDOp>(op);
      if (!scatter || scatter->use_empty())
        continue;
      if (Value value = resolve(scatter)) {
        scatter.getResult().replaceAllUsesWith(value);
        changed = true;
      }
    }
    eraseDead(getOperation());
  }

  Value resolve(ScatterNDOp op) {
    std::optional<SmallVector<int64_t>> constants =
        contents.of(op.getIndices()).constants();
    if (constants && !wrapped(op, *constants))
      return {};
    if (std::optional<Box> box = constants ? boxOf(op, *constants) : boxOf(op))
      return assigned(op, *box);
    return constants ? selected(op, *constants) : Value();
  }

  //===--- Which elements ------------------------------------------------===//

  static unsigned widthOf(ScatterNDOp op) {
    return *constantOf(getShape(op.getIndices()).back());
  }

  /// Makes indices count from the start. False where one leaves the input.
  static bool wrapped(ScatterNDOp op, SmallVectorImpl<int64_t> &indices) {
    Exprs shape = getShape(op.getInput());
    unsigned width = widthOf(op);
    for (auto [i, index] : llvm::enumerate(indices)) {
      auto size = constantOf(shape[i % width]);
      if (!size)
        return false;
      index += index < 0 ? *size : 0;
      if (index < 0 || index >= *size)
        return false;
    }
    return true;
  }

  /// The box that the tuples fill, where each coordinate counts up along a
  /// dimension of the tuples of its own.
  static std::optional<Box> boxOf(ScatterNDOp op, ArrayRef<int64_t> indices) {
    SmallVector<int64_t> extents(
        cast<RankedTensorType>(op.getIndices().getType()).getShape());
    unsigned width = extents.pop_back_val();
    if (indices.empty())
      return std::nullopt;
    SmallVector<int64_t> strides(extents.size(), width);
    for (unsigned t = extents.size(); t-- > 1;)
      strides[t - 1] = strides[t] * extents[t];
    MLIRContext *context = op.getContext();
    Box box;
    for (unsigned c = 0; c < width; ++c) {
      std::optional<unsigned> along;
      for (auto [t, extent] : llvm::enumerate(extents)) {
        int64_t step = extent > 1 ? indices[strides[t] + c] - indices[c] : 0;
        if (step == 0)
          continue;
        if (along || step != 1)
          return std::nullopt;
        along = t;
      }
      box.along.push_back(along);
      box.starts.push_back(getAffineConstantExpr(indices[c], context));
      box.counts.push_back(
          getAffineConstantExpr(along ? extents[*along] : 1, context));
    }
    for (size_t i = 0; i < indices.size(); ++i) {
      unsigned c = i % width;
      int64_t offset = box.along[c] ? int64_t(i) / strides[*box.along[c]] %
                                          extents[*box.along[c]]
                                    : 0;
      if (indices[i] != *constantOf(box.starts[c]) + offset)
        return std::nullopt;
    }
    Exprs tuples;
    for (int64_t extent : extents)
      tuples.push_back(getAffineConstantExpr(extent, context));
    return completed(op, std::move(box), tuples);
  }

  /// The same of indices that are functions of their coordinates.
  std::optional<Box> boxOf(ScatterNDOp op) {
    Exprs tuples = getShape(op.getIndices()), shape = getShape(op.getInput());
    unsigned width = widthOf(op);
    tuples.pop_back();
    known.setExtents(tuples);
    Box box;
    for (unsigned c = 0; c < width; ++c) {
      Exprs at;
      for (unsigned t = 0; t < tuples.size(); ++t)
        at.push_back(builder->getAffineDimExpr(t));
      at.push_back(builder->getAffineConstantExpr(c));
      AffineExpr index = contentAt(op.getIndices(), at, tuples);
      if (!index || !isWithin(index, shape[c], known))
        return std::nullopt;
      std::optional<unsigned> along;
      for (unsigned t = 0; t < tuples.size(); ++t)
        if (index.isFunctionOfDim(t)) {
          if (along)
            return std::nullopt;
          along = t;
        }
      AffineExpr start =
          along ? simplify(index - builder->getAffineDimExpr(*along)) : index;
      if (!start.isSymbolicOrConstant())
        return std::nullopt;
      box.along.push_back(along);
      box.starts.push_back(start);
      box.counts.push_back(along ? tuples[*along]
                                 : builder->getAffineConstantExpr(1));
    }
    return completed(op, std::move(box), tuples);
  }

  /// The other dimensions are in it as a whole. Nothing where tuples repeat.
  static std::optional<Box> completed(ScatterNDOp op, Box box,
                                      ArrayRef<AffineExpr> tuples) {
    llvm::SmallBitVector used(tuples.size());
    for (std::optional<unsigned> t : box.along)
      if (t) {
        if (used.test(*t))
          return std::nullopt;
        used.set(*t);
      }
    for (auto [t, extent] : llvm::enumerate(tuples))
      if (!used.test(t) && constantOf(extent) != 1)
        return std::nullopt;
    Exprs shape = getShape(op.getInput());
    for (size_t d = box.starts.size(); d < shape.size(); ++d) {
      box.starts.push_back(getAffineConstantExpr(0, op.getContext()));
      box.counts.push_back(shape[d]);
    }
    return box;
  }

  //===--- Boxes: slices and concatenations -----------------------------===//

  Value assigned(ScatterNDOp op, Box box) {
    Value input = op.getInput(), updates = ordered(op, box);
    // A transposed input is assigned to as it lies.
    std::optional<SmallVector<int64_t>> permutation = permutationOf(input);
    if (permutation) {
      SmallVector<int64_t> inverse = invertPermutationVector(*permutation);
      input = input.getDefiningOp()->getOperand(0);
      box.starts = permuted(box.starts, inverse);
      box.counts = permuted(box.counts, inverse);
      updates = transposedBy(*builder, updates, inverse);
    }
    if (op.getReduction() != ScatterReduction::none)
      updates = combined(op, part(input, box.starts, box.counts), updates);
    Value result = joined(input, box, updates, 0);
    return permutation ? transposedBy(*builder, result, *permutation) : result;
  }

  static Exprs permuted(ArrayRef<AffineExpr> dims,
                        ArrayRef<int64_t> permutation) {
    Exprs result;
    for (int64_t p : permutation)
      result.push_back(dims[p]);
    return result;
  }

  /// The updates with dimensions in the order of the input's.
  Value ordered(ScatterNDOp op, const Box &box) {
    unsigned tuples = getShape(op.getIndices()).size() - 1;
    SmallVector<int64_t> permutation;
    llvm::SmallBitVector used(tuples);
    for (std::optional<unsigned> t : box.along)
      if (t) {
        permutation.push_back(*t);
        used.set(*t);
      }
    for (unsigned t = 0; t < tuples; ++t)
      if (!used.test(t)) // of one element
        permutation.push_back(t);
    for (size_t d = tuples, e = getShape(op.getUpdates()).size(); d < e; ++d)
      permutation.push_back(d);
    Value value = op.getUpdates();
    if (!isIdentityPermutation(permutation))
      value = TransposeOp::create(*builder, op.getLoc(), value, permutation);
    return reshaped(value, box.counts);
  }

  Value reshaped(Value value, ArrayRef<AffineExpr> shape) {
    Type type = makeType(shape, getElementTypeOrSelf(value));
    if (value.getType() == type)
      return value;
    return ReshapeOp::create(*builder, value.getLoc(), type, value);
  }

  /// `value` with the box replaced, whose dimensions before `first` are whole.
  Value joined(Value value, const Box &box, Value updates, unsigned first) {
    Exprs shape = getShape(value);
    unsigned d = first;
    while (d < shape.size() && box.counts[d] == shape[d])
      ++d;
    if (d == shape.size())
      return updates;
    AffineExpr start = box.starts[d], count = box.counts[d],
               end = simplify(start + count);
    SmallVector<Value> parts;
    auto run = [&](AffineExpr from, AffineExpr to) {
      Exprs starts(shape.size(), builder->getAffineConstantExpr(0)),
          counts(shape);
      starts[d] = from;
      counts[d] = simplify(to - from);
      return part(value, starts, counts);
    };
    if (constantOf(start) != 0)
      parts.push_back(run(builder->getAffineConstantExpr(0), start));
    parts.push_back(joined(run(start, end), box, updates, d + 1));
    if (end != shape[d])
      parts.push_back(run(end, shape[d]));
    return ConcatOp::create(*builder, value.getLoc(), parts, d);
  }

  Value combined(ScatterNDOp op, Value old, Value update) {
    Location location = op.getLoc();
    switch (op.getReduction()) {
    case ScatterReduction::none:
      return update;
    case ScatterReduction::add:
      return AddOp::create(*builder, location, old, update);
    case ScatterReduction::mul:
      return MulOp::create(*builder, location, old, update);
    case ScatterReduction::max:
      return MaxOp::create(*builder, location, old, update);
    case ScatterReduction::min:
      return MinOp::create(*builder, location, old, update);
    }
    llvm_unreachable("a scatter combines by one of these");
  }

  //===--- Slices of what has been put together -------------------------===//

  Value part(Value value, ArrayRef<AffineExpr> starts,
             ArrayRef<AffineExpr> counts) {
    if (getShape(value) == Exprs(counts))
      return value;
    SliceOp slice = SliceOp::create(
        *builder, value.getLoc(), makeType(counts, getElementTypeOrSelf(value)),
        value, startsMap(starts), SmallVector<int64_t>(starts.size(), 1));
    return withoutDetour(slice.getResult());
  }

  static AffineMap startsMap(ArrayRef<AffineExpr> starts) {
    unsigned symbols = 0;
    for (AffineExpr start : starts)
      start.walk([&](AffineExpr e) {
        if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
          symbols = std::max(symbols, symbol.getPosition() + 1);
      });
    return AffineMap::get(0, symbols, starts, starts[0].getContext());
  }

  /// The value, less transposes that cancel, and read from the operand of a
  /// concatenation that alone has it.
  Value withoutDetour(Value value) {
    for (int step = 0; step < 16; ++step) {
      Operation *op = value.getDefiningOp();
      if (auto outer = permutationOf(value)) {
        Value inner = op->getOperand(0), short_ = withoutDetour(inner);
        if (short_ != inner || permutationOf(inner))
          value = transposedBy(*builder, short_, *outer);
        return value;
      }
      auto slice = dyn_cast_or_null<SliceOp>(op);
      if (!slice ||
          !llvm::all_of(slice.getSteps(), [](int64_t s) { return s == 1; }))
        return value;
      Value source = withoutDetour(slice.getInput());
      Exprs starts(slice.getStarts().getResults()), counts = getShape(value);
      std::optional<SmallVector<int64_t>> outer = permutationOf(source);
      if (outer) { // a slice of a transpose is a transpose of a slice
        SmallVector<int64_t> inverse = invertPermutationVector(*outer);
        Value inside =
            part(source.getDefiningOp()->getOperand(0),
                 permuted(starts, inverse), permuted(counts, inverse));
        return transposedBy(*builder, inside, *outer);
      }
      auto concat = source.getDefiningOp<ConcatOp>();
      Value only = concat ? onlyOperand(concat, starts, counts) : Value();
      if (!only) {
        if (source == slice.getInput())
          return value;
        return SliceOp::create(*builder, slice.getLoc(), value.getType(),
                               source, slice.getStarts(), slice.getSteps());
      }
      if (getShape(only) == counts)
        return only;
      value = SliceOp::create(*builder, slice.getLoc(), value.getType(), only,
                              startsMap(starts), slice.getSteps());
    }
    return value;
  }

  /// The operand that holds all of a slice; `starts` are made its own.
  static Value onlyOperand(ConcatOp concat, Exprs &starts,
                           const Exprs &counts) {
    unsigned axis = concat.getAxis();
    AffineExpr start = starts[axis], end = start + counts[axis],
               low = getAffineConstantExpr(0, concat.getContext());
    for (Value operand : concat.getInputs()) {
      AffineExpr high = simplify(low + getShape(operand)[axis]);
      if (isNonNegative(simplify(start - low)) &&
          isNonNegative(simplify(high - end))) {
        starts[axis] = simplify(start - low);
        return operand;
      }
      low = high;
    }
    return {};
  }

  //===--- Any constant indices: a choice for each place -----------------===//

  Value selected(ScatterNDOp op, ArrayRef<int64_t> indices) {
    Exprs shape = getShape(op.getInput());
    unsigned width = widthOf(op);
    int64_t places = 1;
    for (unsigned c = 0; c < width; ++c)
      if (llvm::MulOverflow(places, *constantOf(shape[c]), places) ||
          places > mostIndices)
        return {};
    if (indices.empty())
      return {};
    // The last of several updates of a place stays.
    SmallVector<int64_t> updateOf(places, -1);
    for (size_t tuple = 0; tuple < indices.size() / width; ++tuple) {
      int64_t place = 0;
      for (unsigned c = 0; c < width; ++c)
        place = place * *constantOf(shape[c]) + indices[tuple * width + c];
      if (updateOf[place] >= 0 && op.getReduction() != ScatterReduction::none)
        return {};
      updateOf[place] = tuple;
    }
    Location location = op.getLoc();
    Exprs rest(ArrayRef<AffineExpr>(shape).drop_front(width)), rows(rest),
        updates(rest), mask(rest.size() + 1, builder->getAffineConstantExpr(1));
    rows.insert(rows.begin(), builder->getAffineConstantExpr(places));
    updates.insert(updates.begin(),
                   builder->getAffineConstantExpr(indices.size() / width));
    mask[0] = rows[0];
    SmallVector<bool> has;
    for (int64_t &update : updateOf) {
      has.push_back(update >= 0);
      update = std::max<int64_t>(update, 0);
    }
    auto constant = [&](DenseElementsAttr value) -> Value {
      return ConstantOp::create(*builder, location, value);
    };
    Value which = constant(DenseElementsAttr::get(
        RankedTensorType::get({places}, builder->getI64Type()),
        ArrayRef(updateOf)));
    Value condition = constant(DenseElementsAttr::get(
        cast<ShapedType>(makeType(mask, builder->getI1Type())),
        ArrayRef<bool>(has)));
    Value old = reshaped(op.getInput(), rows);
    Value chosen = GatherOp::create(*builder, location,
                                    reshaped(op.getUpdates(), updates), which,
                                    /*axis=*/0);
    Value result = SelectOp::create(*builder, location, condition,
                                    combined(op, old, chosen), old);
    return reshaped(result, shape);
  }

  std::optional<OpBuilder> builder;
  Facts known;
  Contents contents;
};

} // namespace
