// Kernels on the devices of this machine, for the compiler's tuner.
#ifndef CHARONIA_TOOLS_CHARONIA_RUNTIMETIMER_H
#define CHARONIA_TOOLS_CHARONIA_RUNTIMETIMER_H

#include "codegen/driver/KernelTimer.h"

namespace charonia::tool {

/// Runs trial engines with the runtime, on the GPU of the target's compute
/// capability and on this CPU.
std::unique_ptr<driver::KernelTimer> makeRuntimeTimer();

} // namespace charonia::tool

#endif
