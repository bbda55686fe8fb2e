#include "codegen/gpu/Boxes.h"
#include "codegen/gpu/Overhang.h"
#include "codegen/layout/Layouts.h"
#include "codegen/tile/analysis/Access.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using graph::Sum;

/// Of rows of shared memory, after which 16-byte pieces trade places.
static constexpr int64_t kRowBytes = 128;
/// What a tensor map has room for.
static constexpr unsigned kMostDimensions = 5;
static constexpr int64_t kMostStep = 8;

static int64_t bytesOf(simt::TensorMapAttr tensor, int64_t count) {
  int64_t elements = count;
  for (int64_t extent : tensor.getBox().asArrayRef())
    elements *= extent;
  return elements * tensor.getElementBytes();
}

int64_t BoxCopy::allBytes() const { return bytesOf(tensor, count); }
int64_t BoxCopy::restBytes() const {
  return rest ? bytesOf(rest->tensor, rest->count) : allBytes();
}

namespace {

class BoxFinder {
public:
  explicit BoxFinder(simt::ToSharedOp op)
      : op(op), memory(op.getMemory().getType()),
        load(op.getInput().getDefiningOp<tile::LoadOp>()) {}

  std::optional<BoxCopy> find() {
    if (!load || !findShape())
      return std::nullopt;
    access = tile::AccessOp::get(load);
    facts = tile::factsOf(*access);
    for (AffineExpr result : load.getMap().getResults())
      coordinates.push_back(graph::simplify(result, facts));
    if (!isWhole() || !(isTiled() || isColumns()))
      return std::nullopt;
    if (outside)
      at.back() = graph::simplify(at.back() + outside, facts);
    return result();
  }

private:
  /// How the tile lies in shared memory, and what of it is read.
  bool findShape() {
    bits = simt::elementBits(memory.getElementType());
    panel = kRowBytes * 8 / bits;
    ArrayRef<int64_t> shape = memory.getShape();
    // Sums of bytes take turns, which LoopPipeline.h alone can.
    if (bits < 16 || !isa<BlockArgument>(load.getBuffer()) ||
        shape.size() != 2 ||
        !llvm::all_of(
            load.getSymbols(), [](Value s) { return s.getType().isIndex(); }))
      return false;
    const LinearLayout &layout = memory.getLayout().getLayout();
    inner = layout.basis(Dim::Offset, 0, axisDim(0)) != 0 ? 0 : 1;
    if (shape[inner] < panel || shape[1 - inner] < 8 ||
        layout != warpgroupOperandLayout(shape, inner, bits))
      return false;
    extents.assign(shape.begin(), shape.end());
    return findUsed();
  }

  /// Of a right operand dots may read the first columns alone.
  bool findUsed() {
    bool isLeft = false, isRight = false;
    for (OpOperand &use : op.getMemory().getUses()) {
      auto dot = dyn_cast<simt::WarpgroupDotOp>(use.getOwner());
      if (!dot)
        return false;
      bool right = use.getOperandNumber() == 1;
      isRight |= right;
      isLeft |= !right;
      columns = std::max(columns, right ? dot.getUsedColumns() : 0);
    }
    if (isLeft == isRight)
      return false;
    terms = isLeft ? 1 : 0;
    if (isRight)
      extents[1] = inner == 1 ? llvm::alignTo(columns, panel) : columns;
    return true;
  }

  /// Whether what the checks leave out is outside of the tensor as well, or
  /// never read, or a whole tile.
  bool isWhole() {
    for (int64_t check : load.getChecks()) {
      if (check < int64_t(load.getRank()))
        continue;
      AffineExpr guard = coordinates[check],
                 end = load.getShape().getResult(check);
      auto axis = dyn_cast<AffineDimExpr>(guard);
      auto limit = graph::constantOf(end);
      bool isUnread = axis && limit && columns && axis.getPosition() != terms &&
                      columns <= *limit;
      bool isAll = axis && limit && extents[axis.getPosition()] <= *limit;
      bool isCoordinate = false;
      for (int64_t i = 0; i < int64_t(load.getRank()); ++i)
        isCoordinate |=
            coordinates[i] == guard && load.getShape().getResult(i) == end;
      if (!isUnread && !isAll && !isCoordinate && !addOutside(guard, limit))
        return false;
    }
    return true;
  }

  /// Of terms that are left out, all of a tile or none: there the tile, whose
  /// outermost coordinate is never negative, lies behind the tensor's last
  /// outermost element.
  bool addOutside(AffineExpr guard, std::optional<int64_t> limit) {
    Sum sum(guard);
    AffineExpr start = first(guard);
    int64_t step = memory.getShape()[terms];
    bool isSame =
        !sum.usesDim(terms) ||
        (sum.coefficientOf(terms) == 1 && limit && *limit % step == 0 &&
         graph::divisorOf(start, facts) % step == 0);
    if (!limit || *limit < 1 || !isSame || sum.usesDim(1 - terms) ||
        !graph::isNonNegative(start, facts) ||
        !graph::isNonNegative(first(coordinates[0]), facts))
      return false;
    AffineExpr many = start.floorDiv(*limit) * load.getShape().getResult(0);
    outside = outside ? outside + many : many;
    return true;
  }

  void clear() {
    dimensions.clear();
    at.clear();
    offsets.clear();
    box.clear();
    steps.clear();
    lower.clear();
    upper.clear();
    rows = {};
  }

  /// Each axis of the tile moves one coordinate, in ones.
  bool isTiled() {
    constexpr int64_t mostBox = 256;
    unsigned rank = load.getRank();
    if (rank < 2 || rank > kMostDimensions)
      return false;
    SmallVector<int64_t, 2> found(2, -1);
    for (int64_t i = rank - 1; i >= 0; --i) {
      int64_t extent = 1;
      Sum sum(coordinates[i]);
      for (unsigned axis : {0u, 1u}) {
        std::optional<int64_t> step = sum.coefficientOf(axis);
        if (!step || (*step != 0 && (*step != 1 || extent != 1)))
          return false;
        if (*step == 0)
          continue;
        if (found[axis] >= 0)
          return false;
        found[axis] = i;
        extent = axis == inner ? panel : extents[axis];
        if (axis != terms) {
          rows = coordinates[i];
          rowsAt = box.size();
        }
      }
      if (extent > mostBox)
        return false;
      dimensions.push_back(load.getShape().getResult(i));
      box.push_back(extent);
      steps.push_back(1);
      at.push_back(first(coordinates[i]));
    }
    return found[inner] == rank - 1 && found[1 - inner] >= 0;
  }

  /// An expression at the first element of the tile.
  AffineExpr first(AffineExpr expr) {
    AffineExpr zero = getAffineConstantExpr(0, expr.getContext());
    return graph::simplify(expr.replaceDims(SmallVector<AffineExpr>(2, zero)),
                           facts);
  }

  /// One axis of the tile are channels, along the other pixels follow each
  /// other in rows of an image, rows, and images, each moved by the same places
  /// of a window (im2col).
  bool isColumns() {
    clear();
    unsigned rank = load.getRank(), pixels = 1 - inner;
    if (rank < 3 || rank > kMostDimensions || inner != terms)
      return false;
    Sum channel(coordinates[rank - 1]);
    if (channel.coefficientOf(inner) != 1 || channel.usesDim(pixels))
      return false;
    addDimension(rank - 1, coordinates[rank - 1]);
    // The number of a pixel in all images, once all coordinates are known.
    AffineExpr number = getAffineConstantExpr(0, op.getContext()),
               size = getAffineConstantExpr(1, op.getContext());
    bool isDone = false;
    for (unsigned i = rank - 2; i > 0; --i)
      if (!addSpace(i, number, size, isDone))
        return false;
    if (!addImages(number, size, isDone) ||
        Sum(graph::simplify(number, facts)).coefficientOf(pixels) != 1)
      return false;
    box = {panel, extents[pixels]};
    rows = graph::simplify(number, facts);
    rowsAt = 1;
    return fits();
  }

  void addDimension(unsigned i, AffineExpr coordinate, int64_t step = 1) {
    dimensions.push_back(load.getShape().getResult(i));
    steps.push_back(step);
    at.push_back(first(coordinate));
  }

  /// The term of a sum that moves with `dim`, alone in it, and what is left.
  std::optional<Sum::Term> takeTerm(Sum &sum, unsigned dim) {
    std::optional<Sum::Term> found;
    SmallVector<Sum::Term, 4> rest;
    for (const Sum::Term &term : sum.terms) {
      if (!term.usesDim(dim)) {
        rest.push_back(term);
        continue;
      }
      if (found || term.atoms.size() != 1)
        return std::nullopt;
      found = term;
    }
    sum.terms = rest;
    return found;
  }

  /// A dimension of the image: an index, of which there are so many and then
  /// one more of the next dimension (`isDone`: there is none), times a step,
  /// and a place in the window, which is split into the least one and an
  /// offset.
  bool addSpace(unsigned i, AffineExpr &number, AffineExpr &size,
                bool &isDone) {
    Sum rest(coordinates[i]);
    if (isDone || rest.usesDim(inner))
      return false;
    std::optional<Sum::Term> term = takeTerm(rest, 1 - inner);
    if (!term || term->coefficient < 1 || term->coefficient > kMostStep)
      return false;
    AffineExpr index = term->atoms[0], count,
               place = rest.toExpr(op.getContext());
    auto binary = dyn_cast<AffineBinaryOpExpr>(index);
    isDone = !binary || binary.getKind() != AffineExprKind::Mod;
    if (isDone) {
      // The only image: as many rows as tiles reach.
      graph::Interval range = graph::boundsOf(index, facts);
      if (!range.isBounded() || range.low < 0)
        return false;
      count = getAffineConstantExpr(range.high + 1, op.getContext());
    } else {
      count = binary.getRHS();
    }
    number = number + index * size;
    size = size * count;
    return addWindow(i, index, count, *term, place);
  }

  bool addWindow(unsigned i, AffineExpr index, AffineExpr count,
                 const Sum::Term &term, AffineExpr place) {
    graph::Interval places = graph::boundsOf(place, facts);
    if (!places.isBounded())
      return false;
    // The last pixel lies `end` behind the last element.
    AffineExpr least = getAffineConstantExpr(places.low, op.getContext()),
               one = getAffineConstantExpr(1, op.getContext()),
               extent = load.getShape().getResult(i);
    std::optional<int64_t> end = graph::constantOf(graph::simplify(
        (count - one) * term.coefficient + least - (extent - one), facts));
    if (!end)
      return false;
    addDimension(i, index * term.coefficient + least, term.coefficient);
    offsets.push_back(graph::simplify(place - least, facts));
    mostOffset = std::max(mostOffset, places.high - places.low);
    lower.push_back(places.low);
    upper.push_back(*end);
    return true;
  }

  bool addImages(AffineExpr &number, AffineExpr size, bool isDone) {
    Sum image(coordinates[0]);
    if (image.usesDim(inner) || (isDone && image.usesDim(1 - inner)))
      return false;
    if (!isDone)
      number = number + coordinates[0] * size;
    addDimension(0, coordinates[0]);
    return true;
  }

  /// In what an instruction and a map have room for.
  bool fits() {
    constexpr int64_t mostPixels = 1024;
    int64_t corner = lower.size() == 1   ? 1 << 15
                     : lower.size() == 2 ? 1 << 7
                                         : 1 << 4,
            offset = lower.size() == 1   ? 1 << 16
                     : lower.size() == 2 ? 1 << 8
                                         : 1 << 5;
    for (int64_t place : llvm::concat<int64_t>(lower, upper))
      if (place < -corner || place >= corner)
        return false;
    return mostOffset < offset && box[1] <= mostPixels;
  }

  /// An expression over the load's symbols as one over the kernel's; null where
  /// it takes others.
  AffineExpr ofKernel(AffineExpr expr) {
    bool known = true;
    SmallVector<AffineExpr> symbols;
    for (Value symbol : load.getSymbols())
      symbols.push_back(symbolOfKernel(symbol));
    expr.walk([&](AffineExpr e) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
        known &= bool(symbols[symbol.getPosition()]);
    });
    if (!known)
      return {};
    for (AffineExpr &symbol : symbols)
      if (!symbol)
        symbol = getAffineConstantExpr(0, expr.getContext());
    return expr.replaceSymbols(symbols);
  }
  static AffineExpr symbolOfKernel(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || !isa<func::FuncOp>(argument.getOwner()->getParentOp()))
      return {};
    unsigned number = 0;
    for (BlockArgument other : argument.getOwner()->getArguments()) {
      if (other == argument)
        break;
      number += other.getType().isIndex();
    }
    return getAffineSymbolExpr(number, value.getContext());
  }

  std::optional<BoxCopy> result() {
    constexpr int64_t alignment = 16;
    MLIRContext *context = op.getContext();
    int64_t bytes = bits / 8;
    SmallVector<AffineExpr> sizes, strides;
    AffineExpr stride = getAffineConstantExpr(bytes, context);
    for (auto [i, extent] : llvm::enumerate(dimensions)) {
      if (i) {
        if (graph::divisorOf(stride, facts) % alignment != 0)
          return std::nullopt;
        strides.push_back(ofKernel(stride));
      }
      // A map has no room for a tensor without elements. Of a kernel's sizes,
      // which are at least 1, others may be made.
      if (!graph::isNonNegative(extent - 1))
        return std::nullopt;
      stride = graph::simplify(stride * extent, facts);
      sizes.push_back(ofKernel(extent));
    }
    auto isNone = [](AffineExpr expr) { return !expr; };
    if (llvm::any_of(sizes, isNone) || llvm::any_of(strides, isNone))
      return std::nullopt;
    unsigned symbols = 0;
    for (Value argument : op->getParentOfType<func::FuncOp>().getArguments())
      symbols += argument.getType().isIndex();
    auto mapOf = [&](ArrayRef<AffineExpr> exprs) {
      return AffineMapAttr::get(AffineMap::get(0, symbols, exprs, context));
    };
    auto numbers = [&](ArrayRef<int64_t> list) {
      return DenseI64ArrayAttr::get(context, list);
    };
    SmallVector<int64_t> corners(lower);
    llvm::append_range(corners, upper);
    BoxCopy copy;
    copy.load = load;
    auto tensorOf = [&](ArrayRef<int64_t> box) {
      return simt::TensorMapAttr::get(context, bytes, kRowBytes, mapOf(sizes),
                                      mapOf(strides), numbers(box),
                                      numbers(steps), numbers(corners));
    };
    copy.tensor = tensorOf(box);
    copy.at = AffineMap::get(0, load.getSymbols().size(), at, context);
    copy.offsets =
        AffineMap::get(0, load.getSymbols().size(), offsets, context);
    copy.count = extents[inner] / panel;
    copy.advance = panel;
    // From a panel of shared memory to the next, whatever of it is read.
    copy.bytes = memory.getShape()[1 - inner] * kRowBytes;
    if (std::optional<int64_t> all = lastIsShort()) {
      int64_t tile = extents[1 - terms], left = *all % tile;
      SmallVector<int64_t> smaller(box);
      int64_t panels = copy.count;
      if (terms == inner)
        smaller[rowsAt] = left;
      else
        panels = llvm::divideCeil(left, panel);
      copy.rest = {AffineMap::get(0, load.getSymbols().size(), first(rows)),
                   *all - tile, tensorOf(smaller), panels};
    }
    return copy;
  }

  /// How many rows matter, where the last tile along them has clearly fewer
  /// than others.
  std::optional<int64_t> lastIsShort() {
    constexpr int64_t fewest = 8;
    int64_t tile = extents[1 - terms], step = terms == inner ? 1 : panel;
    AffineExpr start = first(rows);
    auto varies = [&](Value symbol) {
      return op->getParentOp()->isAncestor(
          symbol.getParentBlock()->getParentOp());
    };
    for (auto [i, symbol] : llvm::enumerate(load.getSymbols()))
      if (start.isFunctionOfSymbol(i) && varies(symbol))
        return std::nullopt;
    if (graph::divisorOf(start, facts) % tile != 0)
      return std::nullopt;
    std::optional<int64_t> all =
        storedRows(op, {rows, 1 - terms, load.getSymbols()});
    int64_t left = all ? *all % tile : 0;
    bool isShort =
        left != 0 && int64_t(llvm::alignTo(left, step)) + fewest <= tile;
    return isShort ? all : std::nullopt;
  }

  simt::ToSharedOp op;
  simt::MemoryType memory;
  tile::LoadOp load;
  std::optional<tile::AccessOp> access;
  graph::Facts facts;
  /// Of the map, simplified.
  SmallVector<AffineExpr> coordinates;
  unsigned bits = 0, inner = 0;
  /// The axis that products sum over.
  unsigned terms = 0;
  int64_t columns = 0; ///< That dots read of a right operand; 0: a left one.
  int64_t panel = 0;   ///< Elements of a row of shared memory.
  SmallVector<int64_t, 2> extents; ///< What is copied.
  /// The innermost first.
  SmallVector<AffineExpr> dimensions, at, offsets;
  SmallVector<int64_t> box, steps, lower, upper;
  int64_t mostOffset = 0;
  /// What moves boxes out of the tensor; null: nothing does.
  AffineExpr outside;
  /// The number of a row, which is no term, and where the box has rows.
  AffineExpr rows;
  unsigned rowsAt = 0;
};

} // namespace

std::optional<BoxCopy> charonia::gpu::asBoxCopy(simt::ToSharedOp op) {
  return BoxFinder(op).find();
}

SmallVector<Value> charonia::gpu::placeBoxes(OpBuilder &b, const BoxCopy &copy,
                                             ValueRange symbols) {
  SmallVector<AffineExpr> exprs(copy.at.getResults());
  llvm::append_range(exprs, copy.offsets.getResults());
  auto map = AffineMap::get(0, copy.at.getNumSymbols(), exprs, b.getContext());
  auto place = simt::CoordinatesOp::create(
      b, tile::LoadOp(copy.load).getLoc(),
      SmallVector<Type>(exprs.size(), b.getIndexType()), symbols, map);
  return SmallVector<Value>(place.getResults());
}

Value charonia::gpu::createIsLast(OpBuilder &b, const BoxCopy &copy,
                                  const IRMapping &mapping) {
  if (!copy.rest)
    return {};
  tile::LoadOp load = copy.load;
  Location loc = load.getLoc();
  SmallVector<Value> symbols;
  for (auto [i, symbol] : llvm::enumerate(load.getSymbols())) {
    // What varies in the loop takes no part.
    bool isUsed = copy.rest->row.getResult(0).isFunctionOfSymbol(i);
    symbols.push_back(isUsed ? mapping.lookupOrDefault(symbol)
                             : arith::ConstantIndexOp::create(b, loc, 0));
  }
  Value row = simt::CoordinatesOp::create(b, loc, b.getIndexType(), symbols,
                                          copy.rest->row)
                  .getResult(0);
  return arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::sgt, row,
      arith::ConstantIndexOp::create(b, loc, copy.rest->mostWhole));
}

void charonia::gpu::createBoxes(OpBuilder &b, const BoxCopy &copy,
                                ValueRange place, Value memory, Value barrier,
                                Value isLast) {
  tile::LoadOp load = copy.load;
  unsigned rank = copy.at.getNumResults();
  auto create = [&](simt::TensorMapAttr tensor, int64_t count) {
    simt::CopyBoxOp::create(b, load.getLoc(), load.getBuffer(),
                            place.take_front(rank), place.drop_front(rank),
                            memory, barrier, tensor, count, copy.advance,
                            copy.bytes, load.getIndependent());
  };
  if (!isLast)
    return create(copy.tensor, copy.count);
  auto branch = scf::IfOp::create(b, load.getLoc(), isLast,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  create(copy.rest->tensor, copy.rest->count);
  b.setInsertionPointToStart(&branch.getElseRegion().front());
  create(copy.tensor, copy.count);
}
