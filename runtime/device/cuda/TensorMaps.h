//===- TensorMaps.h - Tensor maps as the driver encodes them ----*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_DEVICE_CUDA_TENSORMAPS_H
#define CHARONIA_RUNTIME_DEVICE_CUDA_TENSORMAPS_H

#include "runtime/device/cuda/Driver.h"
#include "runtime/exec/ExecutionPlan.h"

namespace charonia::cuda {

/// Of a tensor at `address`. The driver must have both functions.
CuResult encodeTensorMap(const Driver &driver, const exec::PlannedMap &planned,
                         DevicePtr address, EncodedTensorMap &out);

} // namespace charonia::cuda

#endif // CHARONIA_RUNTIME_DEVICE_CUDA_TENSORMAPS_H
