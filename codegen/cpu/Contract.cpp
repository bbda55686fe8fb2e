#include "codegen/cpu/Contract.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

static bool mayContract(const Instruction &i) {
  return isa<FPMathOperator>(i) && i.hasAllowContract();
}

/// The product that is part of `sum` if it is this operand: nothing else reads
/// it, and it is computed no less often.
static Instruction *productOf(BinaryOperator &sum, unsigned operand) {
  auto *product = dyn_cast<BinaryOperator>(sum.getOperand(operand));
  return product && product->getOpcode() == Instruction::FMul &&
                 mayContract(*product) && product->hasOneUse() &&
                 product->getParent() == sum.getParent()
             ? product
             : nullptr;
}

/// Makes the sum one operation with one of its products, if it has any.
static void fuse(BinaryOperator &sum) {
  for (unsigned operand : {0, 1}) {
    Instruction *product = productOf(sum, operand);
    if (!product)
      continue;
    IRBuilder<> b(&sum);
    Value *x = product->getOperand(0), *y = product->getOperand(1);
    Value *other = sum.getOperand(1 - operand);
    if (sum.getOpcode() == Instruction::FSub)
      (operand == 0 ? other : x) = b.CreateFNeg(operand == 0 ? other : x);
    Value *result =
        b.CreateIntrinsic(Intrinsic::fma, {sum.getType()}, {x, y, other});
    sum.replaceAllUsesWith(result);
    sum.eraseFromParent();
    product->eraseFromParent();
    return;
  }
}

PreservedAnalyses
charonia::cpu::ContractProducts::run(Function &function,
                                     FunctionAnalysisManager &) {
  for (Instruction &i : make_early_inc_range(instructions(function))) {
    unsigned opcode = i.getOpcode();
    if ((opcode == Instruction::FAdd || opcode == Instruction::FSub) &&
        mayContract(i))
      fuse(cast<BinaryOperator>(i));
  }
  for (Instruction &i : instructions(function))
    if (mayContract(i))
      i.setHasAllowContract(false);
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
