// Lowers operators that put elements among others where their places are known:
// what an exporter writes for an assignment to a slice. The views and
// concatenations that they are replaced by, and that it looks through, are the
// dialect's structure.
#include "graph/analysis/IndexContent.h"
#include "graph/ir/Elements.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/Views.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/SmallBitVector.h"

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
    if (auto stored = op.getStoredIntegers()) {
      SymbolicTensor contents;
      contents.elements.emplace();
      for (int64_t value : *stored)
        contents.elements->push_back(
            getAffineConstantExpr(value, op->getContext()));
      return contents;
    }
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
  /// Dimension of the updates along which the box goes there, if any.
  SmallVector<std::optional<unsigned>> along;
};

/// An operator that puts updates among the elements of its input.
struct Scatter {
  GraphOpInterface op;
  Placed placed;

  Value input() const { return op->getOperand(0); }
  Value updates() const { return op->getOperand(placed.updates); }
  Location location() const { return op->getLoc(); }
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
      auto asked = cast<GraphOpInterface>(op);
      std::optional<Placed> placed = asked.getPlaced();
      if (!placed || asked.getUpdatedOperand() || op->use_empty())
        continue;
      if (Value value = resolve({asked, *placed})) {
        op->getResult(0).replaceAllUsesWith(value);
        changed = true;
      }
    }
    eraseDead(getOperation());
  }

  Value resolve(const Scatter &scatter) {
    if (std::optional<Box> box = boxOf(scatter))
      return assigned(scatter, *box);
    return selected(scatter);
  }

  //===--- Which elements ------------------------------------------------===//

  /// The box that the updates fill, where each coordinate counts up along a
  /// dimension of the updates of its own, and no two updates meet.
  std::optional<Box> boxOf(const Scatter &scatter) {
    Exprs extents = getShape(scatter.updates()),
          shape = getShape(scatter.input());
    AffineMap map =
        GraphOpInterface(scatter.op)
            .getPlacedMap([&](unsigned operand, ArrayRef<AffineExpr> at) {
              return indexAt(scatter.op->getOperand(operand), at, extents);
            });
    if (!map)
      return std::nullopt;
    known.setExtents(extents);
    llvm::SmallBitVector used(extents.size());
    Box box;
    for (auto [index, size] : llvm::zip_equal(map.getResults(), shape)) {
      AffineExpr place = fromStart(index, size);
      if (!place)
        return std::nullopt;
      std::optional<unsigned> along;
      for (unsigned t = 0; t < extents.size(); ++t)
        if (place.isFunctionOfDim(t)) {
          if (along || used.test(t))
            return std::nullopt;
          along = t;
        }
      AffineExpr start =
          along ? simplify(place - builder->getAffineDimExpr(*along)) : place;
      if (!start.isSymbolicOrConstant())
        return std::nullopt;
      if (along)
        used.set(*along);
      box.along.push_back(along);
      box.starts.push_back(start);
      box.counts.push_back(along ? extents[*along]
                                 : builder->getAffineConstantExpr(1));
    }
    for (auto [t, extent] : llvm::enumerate(extents))
      if (!used.test(t) && constantOf(extent) != 1)
        return std::nullopt;
    return box;
  }

  /// A place counted from the start; null where it may leave the input.
  AffineExpr fromStart(AffineExpr index, AffineExpr size) {
    if (isWithin(index, size, known))
      return index;
    AffineExpr wrapped = simplify(index + size);
    return isWithin(wrapped, size, known) ? wrapped : AffineExpr();
  }

  /// The element of an index tensor at `coordinates` over dims that `extents`
  /// bound; null where it is no function of them.
  AffineExpr indexAt(Value indices, ArrayRef<AffineExpr> coordinates,
                     ArrayRef<AffineExpr> extents) {
    std::optional<SmallVector<int64_t>> constants =
        contents.of(indices).constants();
    return constants ? linearIn(*constants, indices, coordinates, extents)
                     : contentAt(indices, coordinates, extents);
  }

  /// Elements of `table`, which has the shape of `indices`, as a sum of
  /// multiples of dims; null where they are none.
  AffineExpr linearIn(ArrayRef<int64_t> table, Value indices,
                      ArrayRef<AffineExpr> coordinates,
                      ArrayRef<AffineExpr> extents) {
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(indices.getType()).getShape();
    SmallVector<int64_t> sizes;
    for (auto [t, extent] : llvm::enumerate(extents)) {
      bool isUsed = llvm::any_of(
          coordinates, [&](AffineExpr c) { return c.isFunctionOfDim(t); });
      auto size = isUsed ? constantOf(extent) : 1;
      if (!size)
        return {};
      sizes.push_back(*size);
    }
    auto elementAt = [&](ArrayRef<int64_t> dims) -> std::optional<int64_t> {
      SmallVector<int64_t> at;
      for (AffineExpr c : coordinates)
        at.push_back(evaluate(c, dims, {}).value_or(-1));
      auto place = charonia::graph::linearize(at, shape);
      return place ? std::optional(table[*place]) : std::nullopt;
    };
    SmallVector<int64_t> dims(sizes.size(), 0);
    auto first = elementAt(dims);
    if (!first)
      return {};
    AffineExpr sum = builder->getAffineConstantExpr(*first);
    for (auto [t, size] : llvm::enumerate(sizes))
      if (size > 1) {
        dims[t] = 1;
        auto next = elementAt(dims);
        int64_t step;
        if (!next || llvm::SubOverflow(*next, *first, step))
          return {};
        sum = sum + builder->getAffineDimExpr(t) * step;
        dims[t] = 0;
      }
    bool isLinear = true;
    forEachElement(RankedTensorType::get(sizes, builder->getI64Type()),
                   [&](ArrayRef<int64_t> at) {
                     isLinear =
                         isLinear && evaluate(sum, at, {}) == elementAt(at);
                   });
    return isLinear ? sum : AffineExpr();
  }

  //===--- Boxes: slices and concatenations -----------------------------===//

  Value assigned(const Scatter &scatter, Box box) {
    Value input = scatter.input(), updates = ordered(scatter, box);
    // A transposed input is assigned to as it lies.
    std::optional<SmallVector<int64_t>> permutation = permutationOf(input);
    if (permutation) {
      SmallVector<int64_t> inverse = invertPermutationVector(*permutation);
      input = input.getDefiningOp()->getOperand(0);
      box.starts = permuted(box.starts, inverse);
      box.counts = permuted(box.counts, inverse);
      updates = transposedBy(*builder, updates, inverse);
    }
    if (scatter.placed.reduction != ScatterReduction::none)
      updates = combined(scatter, part(input, box.starts, box.counts), updates);
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
  Value ordered(const Scatter &scatter, const Box &box) {
    Value value = scatter.updates();
    SmallVector<int64_t> permutation;
    for (std::optional<unsigned> t : box.along)
      if (t)
        permutation.push_back(*t);
    for (int64_t t = 0, rank = getShape(value).size(); t < rank; ++t)
      if (!llvm::is_contained(permutation, t)) // of one element
        permutation.push_back(t);
    if (!isIdentityPermutation(permutation))
      value =
          TransposeOp::create(*builder, scatter.location(), value, permutation);
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

  Value combined(const Scatter &scatter, Value old, Value update) {
    Location location = scatter.location();
    switch (scatter.placed.reduction) {
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
      std::optional<Exprs> found = startsOf(value);
      if (!found)
        return value;
      Value source = withoutDetour(op->getOperand(0));
      Exprs starts = *found, counts = getShape(value);
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
      if (!only && source == op->getOperand(0))
        return value;
      if (only && getShape(only) == counts)
        return only;
      value = SliceOp::create(*builder, value.getLoc(), value.getType(),
                              only ? only : source, startsMap(starts),
                              SmallVector<int64_t>(starts.size(), 1));
      if (!only)
        return value;
    }
    return value;
  }

  /// Where a view begins that takes a box of its operand's elements as they
  /// lie; nothing for other values.
  static std::optional<Exprs> startsOf(Value value) {
    auto view = value.getDefiningOp<GraphOpInterface>();
    AffineMap map = view && view.getRole() == OpRole::View
                        ? view.getOperandMap(0)
                        : AffineMap();
    if (!map || map.getNumDims() == 0 ||
        map.getNumDims() != map.getNumResults())
      return std::nullopt;
    Exprs starts;
    for (auto [d, coordinate] : llvm::enumerate(map.getResults())) {
      starts.push_back(
          simplify(coordinate - getAffineDimExpr(d, value.getContext())));
      if (!starts.back().isSymbolicOrConstant())
        return std::nullopt;
    }
    return starts;
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

  /// Where each update goes, of tensors that at the end have the same
  /// dimensions in the same places: rows.
  struct Places {
    int64_t rank = 0;  ///< Dimensions of a row.
    int64_t count = 1; ///< Rows of the input.
    /// Of each row of the updates, the row of the input.
    SmallVector<int64_t> rows;
  };

  /// Whether a table of these sizes has the same elements at each place along
  /// `axis`.
  static bool repeatsAlong(ArrayRef<int64_t> table, ArrayRef<int64_t> sizes,
                           unsigned axis) {
    int64_t inner = 1, n = sizes[axis];
    for (int64_t size : sizes.drop_front(axis + 1))
      inner *= size;
    for (int64_t i = inner, e = table.size(); i < e; ++i)
      if (i / inner % n > 0 && table[i] != table[i - inner])
        return false;
    return true;
  }

  /// Notes the dims that move an index from one element of its table to another
  /// that differs.
  static void noteDiffering(ArrayRef<AffineExpr> coordinates,
                            ArrayRef<int64_t> sizes, ArrayRef<int64_t> table,
                            llvm::SmallBitVector &differs) {
    for (auto [axis, c] : llvm::enumerate(coordinates))
      for (unsigned d = 0; d < differs.size(); ++d)
        if (c.isFunctionOfDim(d) &&
            !(isa<AffineDimExpr>(c) && repeatsAlong(table, sizes, axis)))
          differs.set(d);
  }

  /// The last dimensions that updates and input have in common, and along which
  /// no index differs.
  static int64_t sharedDims(AffineMap map, const Exprs &updates,
                            const Exprs &input,
                            const llvm::SmallBitVector &differs) {
    size_t rank = 0;
    while (rank < std::min(updates.size(), input.size())) {
      size_t from = updates.size() - 1 - rank, to = input.size() - 1 - rank;
      if (differs.test(from) || updates[from] != input[to] ||
          map.getResult(to) != getAffineDimExpr(from, map.getContext()))
        break;
      ++rank;
    }
    return rank;
  }

  /// Nothing where an index is not known or leaves the input.
  std::optional<Places> placesOf(const Scatter &scatter) {
    Exprs extents = getShape(scatter.updates()),
          shape = getShape(scatter.input());
    llvm::SmallDenseMap<unsigned, std::optional<SmallVector<int64_t>>> tables;
    SmallVector<int64_t> point(extents.size(), 0);
    // Of the updates, dimensions along which indices differ.
    llvm::SmallBitVector differs(extents.size());
    bool isNoted = false;
    auto placedMap = [&] {
      return GraphOpInterface(scatter.op)
          .getPlacedMap([&](unsigned operand,
                            ArrayRef<AffineExpr> coordinates) {
            Value indices = scatter.op->getOperand(operand);
            auto [it, isNew] = tables.try_emplace(operand);
            auto sizes = cast<RankedTensorType>(indices.getType()).getShape();
            if (isNew)
              it->second = contents.of(indices).constants();
            if (it->second && !isNoted)
              noteDiffering(coordinates, sizes, *it->second, differs);
            SmallVector<int64_t> at;
            for (AffineExpr c : coordinates)
              at.push_back(evaluate(c, point, {}).value_or(-1));
            auto place = charonia::graph::linearize(at, sizes);
            return it->second && place
                       ? builder->getAffineConstantExpr((*it->second)[*place])
                       : AffineExpr();
          });
    };
    AffineMap map = placedMap();
    isNoted = true;
    if (!map)
      return std::nullopt;
    Places places;
    places.rank = sharedDims(map, extents, shape, differs);
    SmallVector<int64_t> outer, sizes;
    for (AffineExpr extent : ArrayRef(extents).drop_back(places.rank))
      outer.push_back(constantOf(extent).value_or(-1));
    for (AffineExpr extent : ArrayRef(shape).drop_back(places.rank))
      sizes.push_back(constantOf(extent).value_or(-1));
    int64_t updates = 1;
    for (auto [dims, product] :
         {std::pair(&outer, &updates), std::pair(&sizes, &places.count)})
      for (int64_t size : *dims)
        if (size < 0 || llvm::MulOverflow(*product, size, *product) ||
            *product > mostIndices)
          return std::nullopt;
    bool isInside = true;
    forEachElement(RankedTensorType::get(outer, builder->getI64Type()),
                   [&](ArrayRef<int64_t> at) {
                     llvm::copy(at, point.begin());
                     AffineMap own = isInside ? placedMap() : AffineMap();
                     int64_t row = 0;
                     for (auto [d, size] : llvm::enumerate(sizes)) {
                       auto index = own ? evaluate(own.getResult(d), point, {})
                                        : std::nullopt;
                       int64_t place =
                           index ? *index + (*index < 0 ? size : 0) : -1;
                       isInside = isInside && place >= 0 && place < size;
                       row = isInside ? row * size + place : 0;
                     }
                     places.rows.push_back(row);
                   });
    return isInside ? std::optional(std::move(places)) : std::nullopt;
  }

  Value selected(const Scatter &scatter) {
    std::optional<Places> places = placesOf(scatter);
    if (!places || places->rows.empty())
      return {};
    bool combines = scatter.placed.reduction != ScatterReduction::none;
    // The last of several updates of a place stays.
    SmallVector<int64_t> updateOf(places->count, -1);
    for (auto [update, row] : llvm::enumerate(places->rows)) {
      if (updateOf[row] >= 0 && combines)
        return {};
      updateOf[row] = update;
    }
    Location location = scatter.location();
    Exprs shape = getShape(scatter.input()),
          rest(ArrayRef(shape).take_back(places->rank)), rows(rest),
          updates(rest),
          mask(rest.size() + 1, builder->getAffineConstantExpr(1));
    rows.insert(rows.begin(), builder->getAffineConstantExpr(places->count));
    updates.insert(updates.begin(),
                   builder->getAffineConstantExpr(places->rows.size()));
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
        RankedTensorType::get({places->count}, builder->getI64Type()),
        ArrayRef(updateOf)));
    Value condition = constant(DenseElementsAttr::get(
        cast<ShapedType>(makeType(mask, builder->getI1Type())),
        ArrayRef<bool>(has)));
    Value old = reshaped(scatter.input(), rows);
    Value chosen = GatherOp::create(*builder, location,
                                    reshaped(scatter.updates(), updates), which,
                                    /*axis=*/0);
    Value result = SelectOp::create(*builder, location, condition,
                                    combined(scatter, old, chosen), old);
    return reshaped(result, shape);
  }

  std::optional<OpBuilder> builder;
  Facts known;
  Contents contents;
};

} // namespace
