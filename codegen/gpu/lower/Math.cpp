// Operators that the hardware has approximations for.
//
// Errors (PTX ISA): ex2.approx.ftz.f32 2 ulp, rsqrt.approx.ftz.f32 2 ulp on
// normal numbers, div.full.f32 2 ulp. Quotients that the model asks for are
// rounded correctly; only those that a rule marks as approximate (afn) are not.
// Everything else elementary was expanded before.
#include "mlir/Dialect/Math/IR/Math.h"
#include "codegen/gpu/lower/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

/// Bits of a tile's integers that are not zero or, of those with a sign, repeat
/// it; nothing where that is not known.
static std::optional<unsigned> bitsOfIntegers(Value tile, bool isSigned) {
  Operation *op = tile.getDefiningOp();
  auto widthOf = [](Value value) {
    return getElementTypeOrSelf(value).getIntOrFloatBitWidth();
  };
  if (isSigned)
    return isa_and_present<arith::ExtSIOp>(op)
               ? std::optional(widthOf(op->getOperand(0)))
               : std::nullopt;
  if (isa_and_present<arith::ExtUIOp>(op))
    return widthOf(op->getOperand(0));
  if (!isa_and_present<arith::AndIOp>(op))
    return std::nullopt;
  for (Value operand : op->getOperands()) {
    if (auto spread = operand.getDefiningOp<tile::BroadcastOp>())
      operand = spread.getInput();
    DenseIntElementsAttr mask;
    if (matchPattern(operand, m_Constant(&mask)) && mask.isSplat())
      return mask.getSplatValue<APInt>().getActiveBits();
  }
  return std::nullopt;
}

/// Integers of few bits as floats: they are the last bits of a float whose
/// other bits are known, which is taken away. A chip converts some at a time,
/// and adds many.
Value KernelLowering::floatOfFewBits(Operation *op, Value integer) {
  constexpr unsigned mostBits = 16;
  Type f32 = b.getF32Type();
  if (!isa<arith::SIToFPOp, arith::UIToFPOp>(op) ||
      !getElementTypeOrSelf(op->getResult(0)).isF32())
    return {};
  // Bytes are taken as what they are.
  Type wide = b.getI32Type();
  bool isByte = integer.getType().isInteger(8),
       isSigned = isa<arith::SIToFPOp>(op);
  if (!isByte && integer.getType() != wide)
    return {};
  auto isWithin = [&](bool isSigned) {
    return bitsOfIntegers(op->getOperand(0), isSigned).value_or(mostBits + 1) <=
           mostBits;
  };
  // 2^23, and half as much again for those below zero.
  bool noSign = isByte ? !isSigned : isWithin(false);
  if (!noSign && !isByte && !(isSigned && isWithin(true)))
    return {};
  if (isByte)
    integer = noSign ? Value(arith::ExtUIOp::create(b, loc, wide, integer))
                     : arith::ExtSIOp::create(b, loc, wide, integer);
  int32_t bits = noSign ? 0x4B000000 : 0x4B400000;
  float base = noSign ? 8388608.0f : 12582912.0f;
  Value known = arith::ConstantIntOp::create(b, loc, b.getI32Type(), bits);
  Value sum = noSign ? Value(arith::OrIOp::create(b, loc, integer, known))
                     : arith::AddIOp::create(b, loc, integer, known);
  Value number = LLVM::BitcastOp::create(b, loc, f32, sum);
  Value result = arith::SubFOp::create(
      b, loc, number,
      arith::ConstantFloatOp::create(b, loc, b.getF32Type(), APFloat(base)));
  fewBits[result] = {number, base};
  return result;
}

/// What is taken away from a float of few bits may as well take the number
/// along: integers of 24 bits are exact.
Value KernelLowering::shiftedFewBits(Operation *op, ValueRange operands) {
  constexpr float most = 1 << 16;
  APFloat shift(0.0f);
  if (!isa<arith::AddFOp>(op) || !operands[0].getType().isF32())
    return {};
  auto known = fewBits.find(operands[0]);
  if (known == fewBits.end() ||
      !matchPattern(operands[1], m_ConstantFloat(&shift)))
    return {};
  float number = shift.convertToFloat();
  if (!shift.isInteger() || std::fabs(number) > most)
    return {};
  return arith::SubFOp::create(
      b, loc, known->second.first,
      arith::ConstantFloatOp::create(b, loc, b.getF32Type(),
                                     APFloat(known->second.second - number)));
}

Value KernelLowering::mathOp(Operation *op, ValueRange operands) {
  if (operands.size() == 1)
    if (Value value = floatOfFewBits(op, operands[0]))
      return value;
  if (operands.size() == 2)
    if (Value value = shiftedFewBits(op, operands))
      return value;
  if (operands.empty() || !operands[0].getType().isF32())
    return {};
  auto call = [&](StringRef name) -> Value {
    return LLVM::CallIntrinsicOp::create(b, loc, b.getF32Type(),
                                         b.getStringAttr(name), operands)
        .getResult(0);
  };
  if (isa<math::Exp2Op>(op))
    return call("llvm.nvvm.ex2.approx.ftz.f");
  if (isa<math::RsqrtOp>(op))
    return call("llvm.nvvm.rsqrt.approx.ftz.f");
  auto quotient = dyn_cast<arith::DivFOp>(op);
  if (quotient &&
      bitEnumContainsAll(quotient.getFastmath(), arith::FastMathFlags::afn))
    return call("llvm.nvvm.div.full");
  return {};
}
