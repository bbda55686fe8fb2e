// Values that a step both carries on and gives.
#ifndef CHARONIA_CODEGEN_DRIVER_STEPRESULTS_H
#define CHARONIA_CODEGEN_DRIVER_STEPRESULTS_H

#include "graph/ir/Dialect.h"

namespace charonia::driver {

/// A kernel's result that steps of `repeat` carry on, and give as an output,
/// too, becomes two results of the kernel: each goes to its own place, and none
/// is copied.
void storeTwice(graph::RepeatOp repeat);

} // namespace charonia::driver

#endif
