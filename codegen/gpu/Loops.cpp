#include "codegen/gpu/Loops.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace charonia;

std::optional<int64_t> charonia::gpu::tripCount(scf::ForOp loop) {
  APInt low, high, step;
  if (matchPattern(loop.getLowerBound(), m_ConstantInt(&low)) &&
      matchPattern(loop.getUpperBound(), m_ConstantInt(&high)) &&
      matchPattern(loop.getStep(), m_ConstantInt(&step)) &&
      step.isStrictlyPositive())
    return llvm::divideCeil((high - low).getSExtValue(), step.getSExtValue());
  return std::nullopt;
}

std::optional<int64_t> charonia::gpu::countOf(scf::ForOp loop) {
  bool fromZero = matchPattern(loop.getLowerBound(), m_Zero()),
       inOnes = matchPattern(loop.getStep(), m_One());
  APInt end;
  if (!fromZero || !inOnes ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&end)))
    return std::nullopt;
  return end.getSExtValue();
}
