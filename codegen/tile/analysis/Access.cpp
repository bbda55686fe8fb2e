#include "codegen/tile/analysis/Access.h"
#include "codegen/tile/analysis/Values.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace charonia;
using namespace charonia::tile;
using charonia::graph::Facts;
using charonia::graph::Interval;
using charonia::graph::Sum;

template <typename Op> static AccessOp getAccess(Op op, Type tile) {
  return {op,
          cast<RankedTensorType>(tile),
          op.getBuffer(),
          op.getSymbols(),
          op.getMap(),
          op.getShape(),
          (int64_t)op.getRank(),
          op.getChecks()};
}
AccessOp AccessOp::get(LoadOp op) { return getAccess(op, op.getType()); }
AccessOp AccessOp::get(StoreOp op) {
  return getAccess(op, op.getValue().getType());
}

AccessOp AccessOp::get(PrefetchOp op) {
  Type element = cast<BufferType>(op.getBuffer().getType()).getElementType();
  return {op,
          RankedTensorType::get({}, element),
          op.getBuffer(),
          op.getSymbols(),
          op.getMap(),
          op.getShape(),
          (int64_t)op.getRank(),
          {}};
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

/// Row-major offset; `dims` replaces the map's dims.
static AffineExpr offsetOf(const AccessOp &access, ArrayRef<AffineExpr> dims) {
  AffineExpr offset = getAffineConstantExpr(0, access.map.getContext());
  for (int64_t i = 0; i < access.rank; ++i)
    offset = offset * access.shape.getResult(i) +
             access.map.getResult(i).replaceDims(dims);
  return offset;
}

static SmallVector<AffineExpr> axesOf(const AccessOp &access) {
  SmallVector<AffineExpr> dims;
  for (int64_t i = 0; i < access.tile.getRank(); ++i)
    dims.push_back(getAffineDimExpr(i, access.map.getContext()));
  return dims;
}

Facts charonia::tile::factsOf(const AccessOp &access) {
  return factsOf(access.tile.getShape(), access.symbols);
}

AffineExpr charonia::tile::linearOffset(const AccessOp &access,
                                        const Facts &facts, AffineExpr inner) {
  SmallVector<AffineExpr> dims = axesOf(access);
  if (inner)
    dims.back() = inner;
  return graph::simplify(offsetOf(access, dims), facts);
}

/// Powers of two past this one help no memory instruction.
static constexpr int64_t largestPowerOfTwo = int64_t(1) << 20;

static int64_t powerOfTwo(int64_t divisor) {
  if (divisor == 0)
    return largestPowerOfTwo;
  return std::min(divisor & -divisor, largestPowerOfTwo);
}

namespace {
/// An access with the dim of one axis cut into blocks: d = block * q + r, where
/// q takes the place of d and r is a dim past the map's; `repeat`: of all
/// elements those at its multiples.
struct BlockedAxis {
  const AccessOp &access;
  Facts facts;
  SmallVector<AffineExpr> dims;
  SmallVector<unsigned> varyingSymbols;
  unsigned inner;

  BlockedAxis(const AccessOp &access, const Facts &known, unsigned axis,
              int64_t block, int64_t repeat = 1)
      : access(access), facts(known), dims(axesOf(access)),
        inner(access.tile.getRank()) {
    AffineExpr r = getAffineDimExpr(inner, access.map.getContext());
    dims[axis] = (dims[axis] * block + r) * repeat;
    int64_t extent = access.tile.getDimSize(axis) / repeat;
    facts.dims[axis].high = llvm::divideCeil(extent, block) - 1;
    facts.dims.push_back({0, std::min(block, extent) - 1});
    for (auto [i, symbol] : llvm::enumerate(access.symbols)) {
      auto type = dyn_cast<RankedTensorType>(symbol.getType());
      if (type && type.getDimSize(axis) != 1)
        varyingSymbols.push_back(i);
    }
  }

  bool varies(const Sum &sum) const {
    return llvm::any_of(varyingSymbols,
                        [&](unsigned s) { return sum.usesSymbol(s); });
  }
  Sum offset() const {
    return Sum(graph::simplify(offsetOf(access, dims), facts));
  }

  std::optional<int64_t> stride() const {
    Sum sum = offset();
    if (varies(sum))
      return std::nullopt;
    return sum.coefficientOf(inner);
  }

  /// Whether all elements of a block are one in memory.
  bool isOne() const {
    Sum sum = offset();
    return !varies(sum) && !sum.usesDim(inner);
  }

  /// What divides the offset of each block's first element.
  int64_t alignment() const {
    Sum first = offset();
    AffineExpr r = getAffineDimExpr(inner, access.map.getContext());
    llvm::erase_if(first.terms, [&](const Sum::Term &term) {
      return llvm::is_contained(term.atoms, r);
    });
    return powerOfTwo(divisorOf(first));
  }
  int64_t divisorOf(const Sum &sum) const {
    return graph::divisorOf(sum.toExpr(access.map.getContext()), facts);
  }

  /// Whether the coordinate of a check goes up by one within each block, and
  /// its extent is no shorter than that.
  bool checkIsStepped(int64_t result) const {
    AffineExpr moved = access.map.getResult(result).replaceDims(dims);
    Sum coordinate(graph::simplify(moved, facts)),
        extent(graph::simplify(access.shape.getResult(result), facts));
    if (varies(coordinate) || varies(extent) || extent.usesDim(inner) ||
        coordinate.coefficientOf(inner) != 1)
      return false;
    return graph::boundsOf(access.shape.getResult(result), facts).low >
           facts.dims[inner].high;
  }

  bool checkIsNeverNegative(int64_t result) const {
    AffineExpr moved = access.map.getResult(result).replaceDims(dims);
    return graph::boundsOf(graph::simplify(moved, facts), facts).low >= 0;
  }

  /// Whether 0 <= coordinate < extent agrees within each block.
  bool checkIsUniform(int64_t result) const {
    AffineExpr moved = access.map.getResult(result).replaceDims(dims);
    if (!moved.isFunctionOfDim(inner) && varyingSymbols.empty())
      return true;
    Sum coordinate(graph::simplify(moved, facts)),
        extent(graph::simplify(access.shape.getResult(result), facts));
    if (varies(coordinate) || varies(extent))
      return false;
    if (!coordinate.usesDim(inner))
      return true;
    // The coordinate is coarse + fine, 0 <= fine < g, where g divides coarse
    // and the extent: then coarse decides.
    Sum fine, coarse;
    for (const Sum::Term &term : coordinate.terms)
      (term.usesDim(inner) ? fine : coarse).terms.push_back(term);
    int64_t granule = std::gcd(divisorOf(coarse), divisorOf(extent));
    if (granule == 0)
      return false;
    int64_t constant = coordinate.constant % granule;
    fine.constant = constant < 0 ? constant + granule : constant;
    Interval range =
        graph::boundsOf(fine.toExpr(access.map.getContext()), facts);
    return range.low >= 0 && range.high < granule;
  }
};
} // namespace

/// The longest blocks of what every `repeat`th element along the axis reads
/// that are consecutive in memory.
static int64_t runAlong(const AccessOp &access, const Facts &facts,
                        unsigned axis, int64_t repeat) {
  uint64_t count = access.tile.getDimSize(axis) / repeat;
  for (int64_t block = llvm::bit_floor(count); block > 1; block /= 2)
    if (BlockedAxis(access, facts, axis, block, repeat).stride() == 1)
      return block;
  return 1;
}

/// The longest blocks along the axis that read one element.
static int64_t repeatAlong(const AccessOp &access, const Facts &facts,
                           unsigned axis) {
  uint64_t extent = access.tile.getDimSize(axis);
  int64_t repeat = 1;
  if (llvm::isPowerOf2_64(extent))
    while (repeat * 2 <= int64_t(extent) &&
           BlockedAxis(access, facts, axis, repeat * 2).isOne())
      repeat *= 2;
  return repeat;
}

AxisAccess charonia::tile::analyzeAxis(const AccessOp &access, unsigned axis) {
  AxisAccess result;
  Facts facts = factsOf(access);
  int64_t extent = access.tile.getDimSize(axis);
  // One block over the whole axis shows the stride between all neighbours.
  result.stride = BlockedAxis(access, facts, axis, extent).stride();
  if (extent == 1)
    result.stride = 0;

  // A stride between all neighbours is that of every block.
  if (result.stride == 1)
    result.contiguous = llvm::bit_floor((uint64_t)extent);
  else if (!result.stride)
    result.contiguous = runAlong(access, facts, axis, 1);
  if (!result.stride && result.contiguous == 1) {
    result.repeat = repeatAlong(access, facts, axis);
    if (result.repeat > 1)
      result.contiguous = runAlong(access, facts, axis, result.repeat);
  }
  result.alignment =
      BlockedAxis(access, facts, axis, result.contiguous, result.repeat)
          .alignment();

  for (int64_t block = llvm::bit_ceil((uint64_t)extent); block > 1;
       block /= 2) {
    BlockedAxis blocked(access, facts, axis, block);
    auto isUniform = [&](int64_t i) { return blocked.checkIsUniform(i); };
    auto varying = llvm::make_filter_range(
        access.checks, [&](int64_t i) { return !isUniform(i); });
    bool isStepped =
        varying.empty() || (llvm::hasSingleElement(varying) &&
                            blocked.checkIsStepped(*varying.begin()));
    if (result.steppedChecks == 1 && isStepped)
      result.steppedChecks = block;
    if (result.endingChecks == 1 && isStepped &&
        (varying.empty() || blocked.checkIsNeverNegative(*varying.begin())))
      result.endingChecks = block;
    if (llvm::all_of(access.checks, isUniform)) {
      result.uniformChecks = block;
      break;
    }
  }
  return result;
}

SmallVector<AxisAccess> charonia::tile::analyzeAxes(const AccessOp &access) {
  SmallVector<AxisAccess> axes;
  for (unsigned axis = 0; axis < access.tile.getRank(); ++axis)
    axes.push_back(analyzeAxis(access, axis));
  return axes;
}

bool charonia::tile::runsOverlap(const AccessOp &access, unsigned axis) {
  MLIRContext *context = access.map.getContext();
  AffineExpr offset = linearOffset(access, factsOf(access)),
             zero = getAffineConstantExpr(0, context);
  SmallVector<AffineExpr> dims(access.tile.getRank(), zero),
      symbols(access.symbols.size(), zero);
  auto offsetAt = [&]() -> int64_t {
    AffineExpr at =
        simplifyAffineExpr(offset.replaceDimsAndSymbols(dims, symbols), 0, 0);
    return graph::constantOf(at).value_or(0);
  };
  int64_t start = offsetAt(), run = analyzeAxis(access, axis).contiguous;
  for (unsigned other = 0; other < dims.size(); ++other) {
    if (other == axis || access.tile.getDimSize(other) == 1)
      continue;
    dims[other] = getAffineConstantExpr(1, context);
    int64_t distance = std::abs(offsetAt() - start);
    dims[other] = zero;
    if (distance > 0 && distance < run)
      return true;
  }
  return false;
}
