// Whether a kernel may write a result over one of its operands.
#ifndef CHARONIA_CODEGEN_DRIVER_INPLACE_H
#define CHARONIA_CODEGEN_DRIVER_INPLACE_H

#include "graph/ir/Dialect.h"

namespace charonia::driver {

/// True only if the kernel, whichever tiles it is cut into, reads each element
/// of the operand in just the program instance that then writes the result's
/// element at the same byte. Sizes in bytes are the caller's to compare.
bool canRunInPlace(graph::KernelOp kernel, unsigned operand, unsigned result);

} // namespace charonia::driver

#endif
