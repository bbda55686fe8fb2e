#include "codegen/tile/analysis/Access.h"
#include "codegen/tile/analysis/AffineForm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace charonia::tile;

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
AccessOp AccessOp::get(AtomicOp op) {
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
// Divisors
//===----------------------------------------------------------------------===//

/// Powers of two past this one help no memory instruction.
static constexpr int64_t kLargestPowerOfTwo = int64_t(1) << 20;

static int64_t powerOfTwo(int64_t divisor) {
  if (divisor == 0)
    return kLargestPowerOfTwo;
  return std::min(divisor & -divisor, kLargestPowerOfTwo);
}

static int64_t product(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result) || result > (int64_t(1) << 40))
    return a;
  return result;
}

int64_t charonia::tile::knownDivisor(Value symbol) {
  APInt constant;
  if (matchPattern(symbol, m_ConstantInt(&constant)))
    return std::abs(constant.getSExtValue());
  if (auto argument = dyn_cast<BlockArgument>(symbol)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent);
        loop && argument == loop.getInductionVar())
      return std::gcd(knownDivisor(loop.getLowerBound()),
                      knownDivisor(loop.getStep()));
    if (auto function = dyn_cast<func::FuncOp>(parent))
      if (auto divisor = function.getArgAttrOfType<IntegerAttr>(
              argument.getArgNumber(), kDivisorAttr))
        return std::max<int64_t>(divisor.getInt(), 1);
    return 1;
  }
  Operation *op = symbol.getDefiningOp();
  auto operand = [&](unsigned i) { return knownDivisor(op->getOperand(i)); };
  return TypeSwitch<Operation *, int64_t>(op)
      .Case<arith::MulIOp>([&](auto) {
        int64_t a = operand(0), b = operand(1);
        return a == 0 || b == 0 ? 0 : product(a, b);
      })
      .Case<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp,
            arith::MinUIOp, arith::MaxUIOp>(
          [&](auto) { return std::gcd(operand(0), operand(1)); })
      .Case<arith::RemSIOp, arith::RemUIOp>(
          [&](auto) { return std::gcd(operand(0), operand(1)); })
      .Case<arith::SelectOp>(
          [&](auto) { return std::gcd(operand(1), operand(2)); })
      .Case<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp,
            arith::CeilDivSIOp, arith::CeilDivUIOp>([&](auto) -> int64_t {
        APInt by;
        if (matchPattern(op->getOperand(1), m_ConstantInt(&by)) &&
            by.isStrictlyPositive())
          if (int64_t all = operand(0); all % by.getSExtValue() == 0)
            return all / by.getSExtValue();
        return 1;
      })
      .Case<SplatOp, BroadcastOp, TransposeOp>([&](auto) { return operand(0); })
      .Case<IndexOp>([&](IndexOp index) {
        AffineFacts facts;
        for (Value value : index.getSymbols())
          facts.divisors.push_back(knownDivisor(value));
        return knownDivisor(index.getMap().getResult(0), facts);
      })
      .Default([](Operation *) { return int64_t(1); });
}

int64_t charonia::tile::knownPowerOfTwo(AffineExpr expr,
                                        ArrayRef<int64_t> symbolDivisors) {
  AffineFacts facts;
  facts.divisors.assign(symbolDivisors.begin(), symbolDivisors.end());
  return powerOfTwo(AffineForm::get(expr, facts).divisor(facts));
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

static AffineFacts factsOf(const AccessOp &access) {
  AffineFacts facts;
  facts.extents.assign(access.tile.getShape().begin(),
                       access.tile.getShape().end());
  for (Value symbol : access.symbols)
    facts.divisors.push_back(knownDivisor(symbol));
  return facts;
}

/// Row-major offset; `dims` replaces the map's dims.
static AffineForm offsetForm(const AccessOp &access, ArrayRef<AffineExpr> dims,
                             const AffineFacts &facts) {
  AffineForm offset;
  for (int64_t i = 0; i < access.rank; ++i) {
    offset = offset * AffineForm::get(access.shape.getResult(i), facts);
    offset += AffineForm::get(access.map.getResult(i).replaceDims(dims), facts);
  }
  return offset;
}

AffineExpr charonia::tile::linearOffset(const AccessOp &access) {
  MLIRContext *context = access.map.getContext();
  SmallVector<AffineExpr> dims;
  for (int64_t i = 0; i < access.tile.getRank(); ++i)
    dims.push_back(getAffineDimExpr(i, context));
  return offsetForm(access, dims, factsOf(access)).toExpr(context);
}

namespace {
/// An access with the dim of one axis cut into blocks: d = block * q + r, where
/// q takes the place of d and r is a dim past the map's.
struct BlockedAxis {
  const AccessOp &access;
  AffineFacts facts;
  SmallVector<AffineExpr> dims;
  SmallVector<unsigned> varyingSymbols;
  unsigned inner;

  BlockedAxis(const AccessOp &access, unsigned axis, int64_t block)
      : access(access), facts(factsOf(access)), inner(access.tile.getRank()) {
    MLIRContext *context = access.map.getContext();
    for (unsigned i = 0; i < inner; ++i)
      dims.push_back(getAffineDimExpr(i, context));
    AffineExpr r = getAffineDimExpr(inner, context);
    dims[axis] = dims[axis] * block + r;
    facts.extents[axis] = llvm::divideCeil(facts.extents[axis], block);
    facts.extents.push_back(std::min(block, access.tile.getDimSize(axis)));
    for (auto [i, symbol] : llvm::enumerate(access.symbols)) {
      auto type = dyn_cast<RankedTensorType>(symbol.getType());
      if (type && type.getDimSize(axis) != 1)
        varyingSymbols.push_back(i);
    }
  }

  bool varies(const AffineForm &form) const {
    return llvm::any_of(varyingSymbols,
                        [&](unsigned s) { return form.usesSymbol(s); });
  }

  std::optional<int64_t> stride() const {
    AffineForm offset = offsetForm(access, dims, facts);
    if (varies(offset))
      return std::nullopt;
    return offset.coefficientOf(inner);
  }

  /// What divides the offset of each block's first element.
  int64_t alignment() const {
    AffineForm offset = offsetForm(access, dims, facts), first;
    AffineExpr r = getAffineDimExpr(inner, access.map.getContext());
    first.addConstant(offset.getConstant());
    for (const AffineForm::Term &term : offset.getTerms())
      if (!llvm::is_contained(term.atoms, r))
        first.addTerm(term);
    return powerOfTwo(first.divisor(facts));
  }

  /// Whether 0 <= coordinate < extent agrees within each block.
  bool checkIsUniform(int64_t result) const {
    AffineForm coordinate =
        AffineForm::get(access.map.getResult(result).replaceDims(dims), facts);
    AffineForm extent = AffineForm::get(access.shape.getResult(result), facts);
    if (varies(coordinate) || varies(extent))
      return false;
    if (!coordinate.usesDim(inner))
      return true;
    // The coordinate is coarse + fine, 0 <= fine < g, where g divides coarse
    // and the extent: then coarse decides.
    AffineForm fine, coarse;
    for (const AffineForm::Term &term : coordinate.getTerms()) {
      AffineForm single;
      single.addTerm(term);
      (single.usesDim(inner) ? fine : coarse).addTerm(term);
    }
    int64_t granule = std::gcd(coarse.divisor(facts), extent.divisor(facts));
    if (granule == 0)
      return false;
    int64_t constant = coordinate.getConstant();
    fine.addConstant(constant -
                     granule * llvm::divideFloorSigned(constant, granule));
    auto range = fine.range(facts);
    return range && range->first >= 0 && range->second < granule;
  }
};
} // namespace

AxisAccess charonia::tile::analyzeAxis(const AccessOp &access, unsigned axis) {
  AxisAccess result;
  int64_t extent = access.tile.getDimSize(axis);
  // One block over the whole axis shows the stride between all neighbours.
  result.stride = BlockedAxis(access, axis, extent).stride();
  if (extent == 1)
    result.stride = 0;

  for (int64_t block = llvm::bit_floor((uint64_t)extent); block > 1; block /= 2)
    if (BlockedAxis(access, axis, block).stride() == 1) {
      result.contiguous = block;
      break;
    }
  result.alignment = BlockedAxis(access, axis, result.contiguous).alignment();

  for (int64_t block = llvm::bit_ceil((uint64_t)extent); block > 1;
       block /= 2) {
    BlockedAxis blocked(access, axis, block);
    if (llvm::all_of(access.checks,
                     [&](int64_t i) { return blocked.checkIsUniform(i); })) {
      result.uniformChecks = block;
      break;
    }
  }
  return result;
}
