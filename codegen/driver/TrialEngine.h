// A kernel alone in an engine, to be timed.
#ifndef CHARONIA_CODEGEN_DRIVER_TRIALENGINE_H
#define CHARONIA_CODEGEN_DRIVER_TRIALENGINE_H

#include "codegen/driver/Kernels.h"

namespace charonia::driver {

/// How many launches of `kernel`, one after the other, tell its time: enough
/// that their weights together leave the device's caches, that its clock and
/// what a run costs beside do not matter, and not more than take some
/// milliseconds.
unsigned trialLaunches(graph::KernelOp kernel, DeviceKind device);

/// An engine whose one program launches a kernel of a KernelSet so often at the
/// sizes to optimize for. All launches read the same activations, as what ran
/// before leaves them in caches, and each has weights of its own, as in a
/// model. Inputs: "x<operand>", of weights "w<operand>.<launch>";
/// "size<symbol>" gives a size. Outputs "y<result>": those of the last launch.
Result<std::vector<std::byte>> makeTrialEngine(graph::KernelOp kernel,
                                               const CompiledKernel &compiled,
                                               const Backend &backend,
                                               unsigned launches);

} // namespace charonia::driver

#endif
