#include "graph/analysis/Cells.h"
#include "graph/analysis/Weights.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"

namespace charonia::graph {
#define GEN_PASS_DEF_BEGINSUMS
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

/// What casts that nobody else reads are made of; else the value itself.
Value behindCasts(Value value) {
  while (auto cast = value.getDefiningOp<CastOp>()) {
    if (!value.hasOneUse())
      break;
    value = cast->getOperand(0);
  }
  return value;
}

/// The contraction whose tiles may be cells and from whose result `value` is
/// computed element by element; null where there is none or more than one, or
/// where what comes later is read as well, so that another kernel has `value`.
GraphOpInterface anchorOf(Value value, WeightsOnly &weightsOnly) {
  llvm::SmallSetVector<Value, 8> values;
  values.insert(value);
  GraphOpInterface anchor, last;
  for (size_t i = 0; i < values.size(); ++i) {
    auto op = values[i].getDefiningOp<GraphOpInterface>();
    if (!op || weightsOnly(values[i]))
      continue;
    if (op.getRole() == OpRole::Pointwise) {
      values.insert(op->operand_begin(), op->operand_end());
      continue;
    }
    if (hasTilesOfCells(op) || hasTilesOfRows(op)) {
      if (anchor)
        return {};
      anchor = op;
    }
    if (!last || last->isBeforeInBlock(op))
      last = op;
  }
  bool isLast = anchor && anchor == last &&
                getShape(anchor->getResult(0)) == getShape(value);
  return isLast ? anchor : GraphOpInterface();
}

class BeginSums : public charonia::graph::impl::BeginSumsBase<BeginSums> {
public:
  using BeginSumsBase::BeginSumsBase;

private:
  void runOnOperation() override {
    symbols = getOptimum(getOperation());
    SmallVector<ReduceOp> ops;
    getOperation().walk([&](ReduceOp op) { ops.push_back(op); });
    // A kernel begins one sum.
    llvm::SmallPtrSet<Operation *, 16> begun;
    for (ReduceOp op : ops) {
      Value read = behindCasts(op.getInput());
      GraphOpInterface anchor;
      // What nobody else reads would not be stored.
      if (!read.hasOneUse() && isOfImages(op))
        anchor = anchorOf(read, weightsOnly);
      if (anchor && begun.insert(anchor).second)
        begin(op, anchor);
    }
    eraseDead(getOperation());
  }

  /// Whether the sums are those of each channel of an image with channels last,
  /// of a known size.
  bool isOfImages(ReduceOp op) {
    Exprs shape = getShape(op.getInput());
    constexpr unsigned leastRank = 3, mostRank = 5;
    if (op.getKind() != ReduceKind::sum || shape.size() < leastRank ||
        shape.size() > mostRank ||
        !isa<FloatType>(getElementTypeOrSelf(op.getInput())))
      return false;
    for (auto [d, extent] : llvm::enumerate(shape)) {
      bool isSpatial = d > 0 && d + 1 < shape.size();
      std::optional<int64_t> known = constantOf(extent);
      if (isSpatial ? !known || *known < 1 ||
                          (*known > 1 && !llvm::is_contained(op.getAxes(), d))
                    : llvm::is_contained(op.getAxes(), d))
        return false;
    }
    return true;
  }

  /// Sums of cells, which the kernel in front gives as well, and the sums of
  /// these.
  void begin(ReduceOp op, GraphOpInterface anchor) {
    OpBuilder builder(op);
    Location location = op.getLoc();
    Type own = getElementTypeOrSelf(op.getInput()),
         wide = own.getIntOrFloatBitWidth() < 32 ? builder.getF32Type() : own;
    auto converted = [&](Value value, Type to) -> Value {
      if (getElementTypeOrSelf(value) == to)
        return value;
      return CastOp::create(builder, location, withElement(value.getType(), to),
                            value, TypeAttr::get(to));
    };
    auto reshaped = [&](Value value, Type type) -> Value {
      if (value.getType() == type)
        return value;
      return ReshapeOp::create(builder, location, type, value);
    };
    Value input = converted(op.getInput(), wide);
    Exprs shape = getShape(input);
    SmallVector<int64_t> cell;
    if (hasTilesOfRows(anchor)) {
      // Rows of a tile are places of the image in their order.
      AffineExpr rows = simplify(
          numElements(ArrayRef(shape).drop_front().drop_back(), &getContext()));
      shape = {shape.front(), rows, shape.back()};
      input = reshaped(input, makeType(shape, wide));
      // Products of few rows have small tiles, and many of them.
      constexpr int64_t least = 16;
      cell = {
          std::clamp<int64_t>(llvm::bit_ceil<uint64_t>(*constantOf(rows)) / 2,
                              least, mostRowsOfCell)};
    } else {
      cell = cellOf(
          shape, constantOf(anchor.getReductionExtent()).value_or(mostInCell));
    }
    unsigned sides = cell.size();
    SmallVector<int64_t> ones(sides, 1), pads(2 * sides, 0);
    Value cells = PoolOp::create(builder, location, PoolKind::sum, input, cell,
                                 cell, pads, ones, /*ceil_mode=*/true,
                                 /*count_include_pad=*/false,
                                 /*channels_last=*/true, FloatAttr());
    // Of a single cell, too: what reads it computes such a sum again.
    Value sum = op.reduceAlong(
        builder, cells, llvm::to_vector(llvm::seq<int64_t>(1, sides + 1)),
        /*keepDims=*/true);
    sum = reshaped(sum, withElement(op.getType(), wide));
    op->getResult(0).replaceAllUsesWith(converted(sum, own));
  }

  /// Extents of a cell along the dimensions of an image: as many elements as
  /// leave each multiprocessor an instance, that cover it with least waste and
  /// are as square as they can be. `terms`: of the anchor.
  SmallVector<int64_t> cellOf(ArrayRef<AffineExpr> shape, int64_t terms) {
    SmallVector<int64_t> image, best, cell;
    for (AffineExpr extent : shape.drop_front().drop_back())
      image.push_back(*constantOf(extent));
    int64_t all = evaluate(numElements(shape, &getContext()), symbols)
                      .value_or(1),
            width = channelsOfCells(*constantOf(shape.back()));
    constexpr int64_t least = 16;
    int64_t most = std::clamp<int64_t>(
        llvm::bit_ceil<uint64_t>(all / (instances * width) + 1), least,
        std::min(mostInCell, mostInTileOfCells(terms) / width));
    std::pair<int64_t, int64_t> cost;
    // Powers of two for each side, the product of all at most `most`.
    auto visit = [&](auto &&self, int64_t left) -> void {
      if (cell.size() == image.size()) {
        std::pair<int64_t, int64_t> own = costOf(image, cell);
        if (best.empty() || own < cost) {
          best = cell;
          cost = own;
        }
        return;
      }
      int64_t extent = image[cell.size()];
      for (int64_t side = 1; side <= left; side *= 2) {
        cell.push_back(side);
        self(self, left / side);
        cell.pop_back();
        if (side >= extent)
          break;
      }
    };
    visit(visit, most);
    return best;
  }

  /// How many cells there are, beside what they have in all; then how far they
  /// are from being square.
  static std::pair<int64_t, int64_t> costOf(ArrayRef<int64_t> image,
                                            ArrayRef<int64_t> cell) {
    constexpr int64_t ofCell = 32;
    int64_t count = 1, elements = 1;
    for (auto [extent, side] : llvm::zip_equal(image, cell)) {
      count *= llvm::divideCeil(extent, side);
      elements *= side;
    }
    return {count * (elements + ofCell),
            *llvm::max_element(cell) - *llvm::min_element(cell)};
  }

  SmallVector<int64_t> symbols;
  WeightsOnly weightsOnly;
};

} // namespace
