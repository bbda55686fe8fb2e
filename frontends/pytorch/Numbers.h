// Numbers of an exported program that the program computes from sizes.
#ifndef CHARONIA_FRONTENDS_PYTORCH_NUMBERS_H
#define CHARONIA_FRONTENDS_PYTORCH_NUMBERS_H

#include "frontends/pytorch/Sizes.h"

namespace charonia::frontend::pytorch {

/// The expression as a scalar, of float64 or of 64-bit integers, computed when
/// the program runs; null where it depends on data, or is of a kind that is not
/// known.
mlir::Value buildNumber(const ExpressionPtr &expression, Sizes &sizes,
                        Emitter &emitter);

} // namespace charonia::frontend::pytorch

#endif
