//===- DelayKernel.cpp - Keeping the GPU busy for a while -----------------===//

#include "runtime/device/cuda/DelayKernel.h"

#include <algorithm>

namespace charonia::cuda {

namespace {

/// Waits until the given number of nanoseconds has passed.
const char *const delaySource = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry charonia_delay(.param .u64 duration)
{
  .reg .pred %p<1>;
  .reg .u64 %t<3>;
  ld.param.u64 %t0, [duration];
  mov.u64 %t1, %globaltimer;
  add.u64 %t0, %t0, %t1;
again:
  mov.u64 %t1, %globaltimer;
  setp.lt.u64 %p0, %t1, %t0;
  @%p0 bra again;
  ret;
}
)";

} // namespace

DelayKernel::~DelayKernel() {
  if (!module || device->inherited())
    return;
  CudaDevice::Scope scope(*device);
  device->driver().moduleUnload(module);
}

void DelayKernel::enqueue(uint64_t nanoseconds, CuStream stream) {
  const Driver &api = device->driver();
  CudaDevice::Scope scope(*device);
  if (!tried) {
    tried = true;
    if (api.moduleLoadDataEx(&module, delaySource, 0, nullptr, nullptr) !=
            cudaSuccess ||
        api.moduleGetFunction(&function, module, "charonia_delay") !=
            cudaSuccess)
      function = nullptr;
  }
  if (!function)
    return;
  constexpr uint64_t longest = 20'000'000;
  nanoseconds = std::min(nanoseconds, longest);
  void *parameter = &nanoseconds;
  (void)api.launchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, &parameter,
                         nullptr);
}

} // namespace charonia::cuda
