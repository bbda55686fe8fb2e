// Operators that the hardware has approximations for.
//
// Errors (PTX ISA): ex2.approx.ftz.f32 2 ulp, rsqrt.approx.ftz.f32 2 ulp on
// normal numbers, div.full.f32 2 ulp. Quotients that the model asks for are
// rounded correctly; only those that a rule marks as approximate (afn) are not.
// Everything else elementary was expanded before.
#include "mlir/Dialect/Math/IR/Math.h"
#include "codegen/gpu/lower/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

Value KernelLowering::mathOp(Operation *op, ValueRange operands) {
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
