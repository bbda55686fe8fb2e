// arith and math operators on pieces and scalars. f16, bf16 and floats of 8
// bits travel as their bits.
#include "codegen/cpu/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/PatternMatch.h"

using namespace charonia;
using namespace charonia::cpu;
using mlir::arith::CmpFPredicate;
using mlir::arith::CmpIPredicate;

static llvm::Type *withElement(Value *like, llvm::Type *element) {
  auto vector = llvm::dyn_cast<llvm::FixedVectorType>(like->getType());
  return vector ? llvm::FixedVectorType::get(element, vector->getNumElements())
                : element;
}

static llvm::Constant *constantLike(Value *like, int64_t value) {
  return llvm::ConstantInt::getSigned(like->getType(), value);
}

//===----------------------------------------------------------------------===//
// Floating-point formats
//===----------------------------------------------------------------------===//

/// Bits of f16 or bf16 to f32.
Value *KernelEmitter::toF32(Value *value, mlir::Type element) {
  if (element.isF16())
    return b.CreateFPExt(
        b.CreateBitCast(value, withElement(value, b.getHalfTy())),
        withElement(value, b.getFloatTy()));
  Value *bits =
      b.CreateShl(b.CreateZExt(value, withElement(value, b.getInt32Ty())), 16);
  return b.CreateBitCast(bits, withElement(value, b.getFloatTy()));
}

/// f32 to bits of f16 or bf16, to nearest even; NaN stays NaN.
Value *KernelEmitter::fromF32(Value *value, mlir::Type element) {
  llvm::Type *type = withElement(value, b.getInt16Ty());
  if (element.isF16())
    return b.CreateBitCast(
        b.CreateFPTrunc(value, withElement(value, b.getHalfTy())), type);
  Value *bits = b.CreateBitCast(value, withElement(value, b.getInt32Ty()));
  Value *high = b.CreateLShr(bits, 16);
  Value *odd = b.CreateAnd(high, constantLike(high, 1));
  Value *rounded = b.CreateLShr(
      b.CreateAdd(b.CreateAdd(bits, constantLike(bits, 0x7fff)), odd), 16);
  Value *quiet = b.CreateOr(high, constantLike(high, 0x40));
  return b.CreateTrunc(
      b.CreateSelect(b.CreateFCmpUNO(value, value), quiet, rounded), type);
}

/// f64 to f32 rounded to odd, so that rounding once more is as good as rounding
/// once.
Value *KernelEmitter::f64ToF32RoundOdd(Value *value) {
  llvm::Type *floats = withElement(value, b.getFloatTy());
  Value *nearest = b.CreateFPTrunc(value, floats);
  Value *back = b.CreateFPExt(nearest, value->getType());
  Value *bits = b.CreateBitCast(nearest, withElement(value, b.getInt32Ty()));
  // Inexact and even: one unit toward the value, which has the sign bit as its
  // side.
  Value *inexact = b.CreateFCmpONE(back, value);
  Value *even = b.CreateICmpEQ(b.CreateAnd(bits, constantLike(bits, 1)),
                               constantLike(bits, 0));
  auto magnitude = [&](Value *x) {
    return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  };
  Value *tooLarge = b.CreateFCmpOGT(magnitude(back), magnitude(value));
  Value *step =
      b.CreateSelect(tooLarge, constantLike(bits, -1), constantLike(bits, 1));
  Value *adjusted = b.CreateAdd(bits, step);
  return b.CreateBitCast(
      b.CreateSelect(b.CreateAnd(inexact, even), adjusted, bits), floats);
}

static bool isHalf(mlir::Type type) { return type.isF16() || type.isBF16(); }

Value *KernelEmitter::fpExtend(Value *value, mlir::Type from, mlir::Type to) {
  if (isHalf(from))
    value = toF32(value, from);
  return to.isF64() ? b.CreateFPExt(value, withElement(value, b.getDoubleTy()))
                    : value;
}

Value *KernelEmitter::fpTruncate(Value *value, mlir::Type from, mlir::Type to) {
  if (!isHalf(to))
    return b.CreateFPTrunc(value, withElement(value, elementType(to)));
  return fromF32(from.isF64() ? f64ToF32RoundOdd(value) : value, to);
}

//===----------------------------------------------------------------------===//
// Comparisons, minima
//===----------------------------------------------------------------------===//

namespace {
/// Lanes that lie known distances from a scalar.
struct Positions {
  Value *scalar;
  llvm::SmallVector<int64_t> distances; ///< Empty: none.
};
} // namespace

static std::optional<Positions> positionsOf(llvm::IRBuilder<> &b,
                                            Value *vector) {
  if (Value *scalar = llvm::getSplatValue(vector))
    return Positions{scalar, {}};
  llvm::Constant *constants = llvm::dyn_cast<llvm::Constant>(vector);
  Value *scalar = b.getInt64(0), *splat;
  if (!constants) {
    if (!match(vector, llvm::PatternMatch::m_c_Add(
                           llvm::PatternMatch::m_Value(splat),
                           llvm::PatternMatch::m_Constant(constants))) ||
        !(scalar = llvm::getSplatValue(splat)))
      return std::nullopt;
  }
  Positions positions{scalar, {}};
  auto type = llvm::cast<llvm::FixedVectorType>(vector->getType());
  for (unsigned i = 0; i < type->getNumElements(); ++i) {
    auto *lane = llvm::dyn_cast_or_null<llvm::ConstantInt>(
        constants->getAggregateElement(i));
    if (!lane || !llvm::isInt<24>(lane->getSExtValue()))
      return std::nullopt;
    positions.distances.push_back(lane->getSExtValue());
  }
  return positions;
}

/// Which of positions of 64 bits is one of them: lanes of 32 bits can tell, as
/// they are few known steps apart. Null for all else.
Value *KernelEmitter::comparePositions(llvm::CmpInst::Predicate how, Value *a,
                                       Value *c) {
  auto type = llvm::dyn_cast<llvm::FixedVectorType>(a->getType());
  if (!type || !type->getElementType()->isIntegerTy(64) ||
      !llvm::ICmpInst::isEquality(how))
    return nullptr;
  std::optional<Positions> x = positionsOf(b, a), y = positionsOf(b, c);
  if (!x || !y || x->distances.empty() == y->distances.empty())
    return nullptr;
  if (x->distances.empty())
    std::swap(x, y);
  // What wraps around on the way is as far from every lane. One past the last
  // stands for all that are none of them.
  int64_t low = *llvm::min_element(x->distances),
          past = *llvm::max_element(x->distances) - low + 1;
  Value *from = b.CreateSub(b.CreateSub(y->scalar, x->scalar), i64(low));
  from = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, from, i64(past));
  llvm::SmallVector<llvm::Constant *> lanes;
  for (int64_t distance : x->distances)
    lanes.push_back(b.getInt32(distance - low));
  return b.CreateICmp(
      how, llvm::ConstantVector::get(lanes),
      splat(b.CreateTrunc(from, b.getInt32Ty()), type->getNumElements()));
}

Value *KernelEmitter::emitCompare(mlir::Operation *op, Value *a, Value *c) {
  if (auto compare = llvm::dyn_cast<mlir::arith::CmpIOp>(op)) {
    using P = llvm::CmpInst::Predicate;
    static const P table[] = {
        P::ICMP_EQ,  P::ICMP_NE,  P::ICMP_SLT, P::ICMP_SLE, P::ICMP_SGT,
        P::ICMP_SGE, P::ICMP_ULT, P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
    P how = table[unsigned(compare.getPredicate())];
    Value *positions = comparePositions(how, a, c);
    return positions ? positions : b.CreateICmp(how, a, c);
  }
  using P = llvm::CmpInst::Predicate;
  static const P table[] = {
      P::FCMP_FALSE, P::FCMP_OEQ, P::FCMP_OGT, P::FCMP_OGE,
      P::FCMP_OLT,   P::FCMP_OLE, P::FCMP_ONE, P::FCMP_ORD,
      P::FCMP_UEQ,   P::FCMP_UGT, P::FCMP_UGE, P::FCMP_ULT,
      P::FCMP_ULE,   P::FCMP_UNE, P::FCMP_UNO, P::FCMP_TRUE};
  return b.CreateFCmp(
      table[unsigned(llvm::cast<mlir::arith::CmpFOp>(op).getPredicate())], a,
      c);
}

static bool isNumber(Value *value) {
  auto constant = llvm::dyn_cast<llvm::Constant>(value);
  if (!constant)
    return false;
  if (constant->getType()->isVectorTy())
    constant = constant->getSplatValue();
  auto number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  return number && !number->isNaN();
}

/// The machine's max(a, c) gives c if either is NaN, so one NaN is for us to
/// see to: that of a, to be kept or passed over. Zeros of either sign count as
/// equal.
Value *KernelEmitter::emitMinMax(Value *a, Value *c, bool maximum,
                                 bool propagateNaN) {
  if (isNumber(propagateNaN ? c : a))
    std::swap(a, c);
  // One maximum, one comparison, one choice: of two choices LLVM would make
  // comparisons joined in mask registers.
  if (propagateNaN && !isNumber(a)) {
    llvm::Value *picked = b.CreateBinaryIntrinsic(
        maximum ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, a, c);
    llvm::cast<llvm::Instruction>(picked)->setHasNoSignedZeros(true);
    return picked;
  }
  auto pick = [&](Value *x, Value *y) {
    return b.CreateSelect(
        maximum ? b.CreateFCmpOGT(x, y) : b.CreateFCmpOLT(x, y), x, y);
  };
  Value *picked = pick(a, c);
  if (propagateNaN) // NaN of c comes out already
    return picked;
  return isNumber(c) ? picked
                     : b.CreateSelect(b.CreateFCmpUNO(c, c), a, picked);
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

static llvm::FastMathFlags fastMathFlags(mlir::Operation *op) {
  llvm::FastMathFlags flags;
  auto interface = llvm::dyn_cast<mlir::arith::ArithFastMathInterface>(op);
  auto given = interface ? interface.getFastMathFlagsAttr() : nullptr;
  if (!given)
    return flags;
  using mlir::arith::FastMathFlags;
  auto has = [&](FastMathFlags flag) {
    return mlir::arith::bitEnumContainsAll(given.getValue(), flag);
  };
  flags.setAllowContract(has(FastMathFlags::contract));
  flags.setAllowReassoc(has(FastMathFlags::reassoc));
  flags.setAllowReciprocal(has(FastMathFlags::arcp));
  flags.setApproxFunc(has(FastMathFlags::afn));
  flags.setNoNaNs(has(FastMathFlags::nnan));
  flags.setNoInfs(has(FastMathFlags::ninf));
  flags.setNoSignedZeros(has(FastMathFlags::nsz));
  return flags;
}

namespace {
/// Writes the operators of integers, and those that are one of LLVM's
/// intrinsics.
class PlainOperators {
public:
  PlainOperators(llvm::IRBuilder<> &b, llvm::ArrayRef<Value *> operands,
                 llvm::Type *type)
      : b(b), x(operands.size() > 0 ? operands[0] : nullptr),
        y(operands.size() > 1 ? operands[1] : nullptr),
        z(operands.size() > 2 ? operands[2] : nullptr), type(type) {}

  /// Null for any other operator.
  Value *emit(mlir::Operation *op) {
    if (Value *value = integer(op))
      return value;
    return intrinsic(op);
  }

private:
  Value *integer(mlir::Operation *op) {
    using namespace mlir::arith;
    return llvm::TypeSwitch<mlir::Operation *, Value *>(op)
        .Case<ExtSIOp, IndexCastOp>(
            [&](auto) { return b.CreateIntCast(x, type, true); })
        .Case<ExtUIOp, IndexCastUIOp>(
            [&](auto) { return b.CreateIntCast(x, type, false); })
        .Case<TruncIOp>([&](auto) { return b.CreateTrunc(x, type); })
        .Case<AddIOp>([&](auto) { return b.CreateAdd(x, y); })
        .Case<SubIOp>([&](auto) { return b.CreateSub(x, y); })
        .Case<MulIOp>([&](auto) { return b.CreateMul(x, y); })
        .Case<DivSIOp>([&](auto) { return b.CreateSDiv(x, divisor(true)); })
        .Case<DivUIOp>([&](auto) { return b.CreateUDiv(x, divisor(false)); })
        .Case<RemSIOp>([&](auto) { return b.CreateSRem(x, divisor(true)); })
        .Case<RemUIOp>([&](auto) { return b.CreateURem(x, divisor(false)); })
        .Case<CeilDivSIOp>([&](auto) { return roundedDivision(true, true); })
        .Case<CeilDivUIOp>([&](auto) { return roundedDivision(true, false); })
        .Case<FloorDivSIOp>([&](auto) { return roundedDivision(false, true); })
        .Case<AndIOp>([&](auto) { return b.CreateAnd(x, y); })
        .Case<OrIOp>([&](auto) { return b.CreateOr(x, y); })
        .Case<XOrIOp>([&](auto) { return b.CreateXor(x, y); })
        .Case<ShLIOp>([&](auto) { return b.CreateShl(x, y); })
        .Case<ShRSIOp>([&](auto) { return b.CreateAShr(x, y); })
        .Case<ShRUIOp>([&](auto) { return b.CreateLShr(x, y); })
        .Case<MaxSIOp>([&](auto) { return call(llvm::Intrinsic::smax); })
        .Case<MinSIOp>([&](auto) { return call(llvm::Intrinsic::smin); })
        .Case<MaxUIOp>([&](auto) { return call(llvm::Intrinsic::umax); })
        .Case<MinUIOp>([&](auto) { return call(llvm::Intrinsic::umin); })
        .Default([](mlir::Operation *) { return nullptr; });
  }

  Value *intrinsic(mlir::Operation *op) {
    using namespace mlir::math;
    // Zero and the least integer are no exceptions.
    auto total = [&](llvm::Intrinsic::ID id) -> Value * {
      return b.CreateBinaryIntrinsic(id, x, b.getFalse());
    };
    return llvm::TypeSwitch<mlir::Operation *, Value *>(op)
        .Case<AbsFOp>([&](auto) { return call(llvm::Intrinsic::fabs); })
        .Case<SqrtOp>([&](auto) { return call(llvm::Intrinsic::sqrt); })
        .Case<FloorOp>([&](auto) { return call(llvm::Intrinsic::floor); })
        .Case<CeilOp>([&](auto) { return call(llvm::Intrinsic::ceil); })
        .Case<TruncOp>([&](auto) { return call(llvm::Intrinsic::trunc); })
        .Case<RoundEvenOp>(
            [&](auto) { return call(llvm::Intrinsic::roundeven); })
        .Case<CopySignOp>([&](auto) { return call(llvm::Intrinsic::copysign); })
        .Case<CtPopOp>([&](auto) { return call(llvm::Intrinsic::ctpop); })
        .Case<AbsIOp>([&](auto) { return total(llvm::Intrinsic::abs); })
        .Case<CountLeadingZerosOp>(
            [&](auto) { return total(llvm::Intrinsic::ctlz); })
        .Case<CountTrailingZerosOp>(
            [&](auto) { return total(llvm::Intrinsic::cttz); })
        .Case<FmaOp>([&](auto) {
          return b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, y, z});
        })
        .Default([](mlir::Operation *) { return nullptr; });
  }

  Value *call(llvm::Intrinsic::ID id) {
    return y ? (Value *)b.CreateBinaryIntrinsic(id, x, y)
             : (Value *)b.CreateUnaryIntrinsic(id, x);
  }

  /// The machine traps on a division by zero, which lanes past the end of a
  /// tile may hold, and on the one quotient that overflows: both become
  /// divisions by one.
  Value *divisor(bool isSigned) {
    Value *bad = b.CreateICmpEQ(y, constantLike(y, 0));
    if (isSigned) {
      llvm::APInt least =
          llvm::APInt::getSignedMinValue(y->getType()->getScalarSizeInBits());
      Value *overflows = b.CreateAnd(
          b.CreateICmpEQ(y, constantLike(y, -1)),
          b.CreateICmpEQ(x, llvm::ConstantInt::get(x->getType(), least)));
      bad = b.CreateOr(bad, overflows);
    }
    return b.CreateSelect(bad, constantLike(y, 1), y);
  }

  Value *roundedDivision(bool up, bool isSigned) {
    Value *by = divisor(isSigned);
    Value *q = isSigned ? b.CreateSDiv(x, by) : b.CreateUDiv(x, by);
    Value *r = isSigned ? b.CreateSRem(x, by) : b.CreateURem(x, by);
    Value *inexact = b.CreateICmpNE(r, constantLike(r, 0));
    if (isSigned) {
      Value *negative = b.CreateICmpSLT(b.CreateXor(r, by), constantLike(r, 0));
      inexact = b.CreateAnd(inexact, up ? b.CreateNot(negative) : negative);
    }
    Value *step = b.CreateZExt(inexact, type);
    return up ? b.CreateAdd(q, step) : b.CreateSub(q, step);
  }

  llvm::IRBuilder<> &b;
  Value *x, *y, *z;
  llvm::Type *type;
};

llvm::Constant *scalarConstant(mlir::arith::ConstantOp op, llvm::Type *type) {
  if (auto value = llvm::dyn_cast<mlir::IntegerAttr>(op.getValue()))
    return llvm::ConstantInt::get(type, value.getValue());
  llvm::APFloat value = llvm::cast<mlir::FloatAttr>(op.getValue()).getValue();
  return type->isIntegerTy() // f16 and bf16 travel as their bits
             ? (llvm::Constant *)llvm::ConstantInt::get(type,
                                                        value.bitcastToAPInt())
             : llvm::ConstantFP::get(type->getContext(), value);
}
} // namespace

/// e^x of f32 as 2^n e^r, which AVX-512 scales and rounds in one instruction,
/// infinity included: to 1.5 units of the last place. As in ExpandMath.h,
/// results below the smallest normal number are 0.
Value *KernelEmitter::emitExp(Value *x) {
  using namespace llvm::Intrinsic;
  auto *given = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  int64_t width = given ? given->getNumElements() : 1,
          wide = std::max<int64_t>(width, 4);
  auto *type = llvm::FixedVectorType::get(b.getFloatTy(), wide);
  if (!given) {
    x = b.CreateInsertElement(llvm::Constant::getNullValue(type), x,
                              uint64_t(0));
  } else if (width < wide) {
    x = b.CreateShuffleVector(x, {0, 1, 0, 1});
  }
  auto constant = [&](double value) {
    return llvm::ConstantFP::get(type, value);
  };
  auto fma = [&](Value *a, Value *c, Value *d) {
    return b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {a, c, d});
  };
  // NaN stays. Above, all is infinite, and the rest would be no number.
  Value *top = constant(89), *bottom = constant(-0x1.5d589ep+6);
  Value *normal = b.CreateFCmpUGE(x, bottom);
  x = b.CreateSelect(b.CreateFCmpOLT(top, x), top, x);
  // Adding 1.5 * 2^23 rounds; ln 2 in two parts, the first of which times n is
  // exact.
  Value *shift = constant(0x1.8p23);
  Value *n = b.CreateFSub(fma(x, constant(0x1.715476p+0), shift), shift);
  Value *r = fma(n, constant(-0x1.62e400p-1), x);
  r = fma(n, constant(-0x1.7f7d1cp-20), r);
  Value *sum = constant(1.39507017302658148e-3);
  for (double c : {8.36895388003079284e-3, 4.16662024384420366e-2,
                   1.66665183034943713e-1, 5.00000009630694696e-1, 1.0, 1.0})
    sum = fma(sum, r, constant(c));
  Value *zero = llvm::Constant::getNullValue(type);
  Value *result;
  if (wide == 16) {
    Value *mask = b.CreateBitCast(normal, b.getInt16Ty());
    constexpr int current = 4; // rounding
    result = b.CreateIntrinsic(type, x86_avx512_mask_scalef_ps_512,
                               {sum, n, zero, mask, b.getInt32(current)});
  } else {
    if (wide == 4)
      normal = b.CreateShuffleVector(
          normal, llvm::Constant::getNullValue(normal->getType()),
          {0, 1, 2, 3, 4, 5, 6, 7});
    Value *mask = b.CreateBitCast(normal, b.getInt8Ty());
    result = b.CreateIntrinsic(type,
                               wide == 8 ? x86_avx512_mask_scalef_ps_256
                                         : x86_avx512_mask_scalef_ps_128,
                               {sum, n, zero, mask});
  }
  return given ? lanesOf(result, 0, width) : lane(result, 0);
}

Value *KernelEmitter::emitElementwise(mlir::Operation *op,
                                      llvm::ArrayRef<Value *> operands,
                                      int64_t width) {
  using namespace mlir::arith;
  mlir::Type from =
      op->getNumOperands()
          ? mlir::getElementTypeOrSelf(op->getOperand(0).getType())
          : mlir::Type();
  mlir::Type to = mlir::getElementTypeOrSelf(op->getResult(0).getType());
  llvm::Type *type = pieceType(elementType(to), width);
  Value *x = operands.size() > 0 ? operands[0] : nullptr;
  Value *y = operands.size() > 1 ? operands[1] : nullptr;

  llvm::IRBuilderBase::FastMathFlagGuard restored(b);
  b.setFastMathFlags(fastMathFlags(op));

  bool conversion = llvm::isa<ExtFOp, TruncFOp, BitcastOp, SelectOp, ConstantOp,
                              FPToSIOp, FPToUIOp, SIToFPOp, UIToFPOp>(op);
  if (!conversion && from && llvm::isa<mlir::FloatType>(from) &&
      from.getIntOrFloatBitWidth() < 32)
    return fail(op,
                "arithmetic on floats of 16 bits or less: extend to f32 first",
                type);

  /// Floats to narrow integers by way of wider ones: out of range, they wrap.
  auto toInteger = [&](bool isSigned) -> Value * {
    Value *value = isHalf(from) ? toF32(x, from) : x;
    unsigned bits = to.isIndex() ? 64 : to.getIntOrFloatBitWidth();
    if (bits >= 64 || (isSigned && bits == 32))
      return isSigned ? b.CreateFPToSI(value, type)
                      : b.CreateFPToUI(value, type);
    llvm::Type *wide =
        withElement(value, bits < 32 ? b.getInt32Ty() : b.getInt64Ty());
    return b.CreateTrunc(b.CreateFPToSI(value, wide), type);
  };
  auto toFloat = [&](bool isSigned) -> Value * {
    llvm::Type *wide = isHalf(to) ? withElement(x, b.getFloatTy()) : type;
    Value *value = isSigned ? b.CreateSIToFP(x, wide) : b.CreateUIToFP(x, wide);
    if (!isSigned && x->getType()->isIntOrIntVectorTy(1)) // a mask in use
      value = b.CreateSelect(x, llvm::ConstantFP::get(wide, 1),
                             llvm::ConstantFP::get(wide, 0));
    return isHalf(to) ? fromF32(value, to) : value;
  };

  return llvm::TypeSwitch<mlir::Operation *, Value *>(op)
      .Case<ConstantOp>([&](ConstantOp op) {
        return splat(scalarConstant(op, elementType(to)), width);
      })
      .Case<AddFOp>([&](auto) { return b.CreateFAdd(x, y); })
      .Case<SubFOp>([&](auto) { return b.CreateFSub(x, y); })
      .Case<MulFOp>([&](auto) { return b.CreateFMul(x, y); })
      .Case<DivFOp>([&](auto) { return b.CreateFDiv(x, y); })
      .Case<NegFOp>([&](auto) { return b.CreateFNeg(x); })
      .Case<MaximumFOp>([&](auto) { return emitMinMax(x, y, true, true); })
      .Case<MinimumFOp>([&](auto) { return emitMinMax(x, y, false, true); })
      .Case<MaxNumFOp>([&](auto) { return emitMinMax(x, y, true, false); })
      .Case<MinNumFOp>([&](auto) { return emitMinMax(x, y, false, false); })
      .Case<CmpFOp, CmpIOp>([&](auto op) { return emitCompare(op, x, y); })
      .Case<SelectOp>([&](auto) { return b.CreateSelect(x, y, operands[2]); })
      .Case<ExtFOp>([&](auto) { return fpExtend(x, from, to); })
      .Case<TruncFOp>([&](auto) { return fpTruncate(x, from, to); })
      .Case<SIToFPOp>([&](auto) { return toFloat(true); })
      .Case<UIToFPOp>([&](auto) { return toFloat(false); })
      .Case<FPToSIOp>([&](auto) { return toInteger(true); })
      .Case<FPToUIOp>([&](auto) { return toInteger(false); })
      .Case<BitcastOp>([&](auto) { return b.CreateBitCast(x, type); })
      .Case<mlir::math::ExpOp>([&](auto) { return emitExp(x); })
      .Default([&](mlir::Operation *op) {
        Value *value = PlainOperators(b, operands, type).emit(op);
        return value ? value
                     : fail(op, "no machine code for this operator on the CPU",
                            type);
      });
}
