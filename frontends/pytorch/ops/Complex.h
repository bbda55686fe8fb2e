// What operators are of complex numbers, for the rows of their families.
#ifndef CHARONIA_FRONTENDS_PYTORCH_OPS_COMPLEX_H
#define CHARONIA_FRONTENDS_PYTORCH_OPS_COMPLEX_H

#include "frontends/common/builders/Complex.h"
#include "frontends/pytorch/ops/Rows.h"

namespace charonia::frontend::pytorch {

// Arguments and results.
Complex readComplex(Call &call, llvm::StringRef name);
LogicalResult yieldComplex(Call &call, Complex z);
/// Where complex numbers become truth values, whether either part is not 0;
/// null elsewhere. Other real types lose the imaginary part.
Value truthOfComplex(Call &call, llvm::StringRef name);

/// `function` of `self`.
template <Complex (*function)(Complex, Emitter &)>
LogicalResult complexUnary(Call &call) {
  return yieldComplex(call,
                      function(readComplex(call, "self"), call.getEmitter()));
}
/// -i function(i self), or function(i self).
template <Complex (*function)(Complex, Emitter &), bool back>
LogicalResult complexTurned(Call &call) {
  Emitter &e = call.getEmitter();
  Complex z = turnComplex(readComplex(call, "self"), false, e);
  z = function(z, e);
  return yieldComplex(call, back ? turnComplex(z, true, e) : z);
}

// Forms of operators; each yields.
LogicalResult complexAdd(Call &call);
LogicalResult complexSub(Call &call);
/// other - self.
LogicalResult complexRsub(Call &call);
LogicalResult complexMul(Call &call);
LogicalResult complexDiv(Call &call);
LogicalResult complexReciprocal(Call &call);
LogicalResult complexRsqrt(Call &call);
LogicalResult complexPow(Call &call);
LogicalResult complexSquare(Call &call);
LogicalResult complexSigmoid(Call &call);
LogicalResult complexAbs(Call &call);
/// Of both parts, or of either one.
LogicalResult complexEqual(Call &call);
LogicalResult complexNotEqual(Call &call);
LogicalResult complexIsFinite(Call &call);
LogicalResult complexIsNan(Call &call);
LogicalResult complexIsInf(Call &call);
/// A real result, as complex numbers.
template <ImportFunction function> LogicalResult complexOfReal(Call &call) {
  if (failed(function(call)))
    return llvm::failure();
  Value real = call.getResults().front();
  Emitter &e = call.getEmitter();
  return call.yieldComplex(
      real, e.broadcast(e.scalar(0.0, elementOf(real)), graph::getShape(real)));
}

} // namespace charonia::frontend::pytorch

#endif
