//===- TensorMaps.cpp - Tensor maps as the driver encodes them ------------===//

#include "runtime/device/cuda/TensorMaps.h"

#include <algorithm>
#include <array>

namespace charonia::cuda {

namespace {

/// Copies move bits, so that the size says all there is to say.
int elementType(uint32_t bytes) {
  return bytes == 1   ? tensorMapUint8
         : bytes == 2 ? tensorMapUint16
         : bytes == 4 ? tensorMapUint32
                      : tensorMapUint64;
}

/// As the driver takes them. Plans hold no more than 5.
std::array<uint64_t, 5> unsignedOnes(const std::vector<int64_t> &values) {
  std::array<uint64_t, 5> result = {};
  std::ranges::copy(values, result.begin());
  return result;
}

} // namespace

CuResult encodeTensorMap(const Driver &driver, const exec::PlannedMap &planned,
                         DevicePtr address, EncodedTensorMap &out) {
  const engine::TensorMap &map = *planned.map;
  std::array<uint64_t, 5> extents = unsignedOnes(planned.extents);
  std::array<uint64_t, 5> strides = unsignedOnes(planned.strides);
  auto rank = static_cast<uint32_t>(planned.extents.size());
  int type = elementType(map.elementBytes);
  int swizzle = map.swizzle == 0 ? tensorMapSwizzleNone : tensorMapSwizzle128;
  void *data = reinterpret_cast<void *>(address);
  if (map.isIm2col())
    return driver.tensorMapEncodeIm2col(
        &out, type, rank, data, extents.data(), strides.data(),
        map.lower.data(), map.upper.data(), map.box[0], map.box[1],
        map.steps.data(), tensorMapNotInterleaved, swizzle,
        tensorMapPromotion256, tensorMapFillZeros);
  return driver.tensorMapEncodeTiled(
      &out, type, rank, data, extents.data(), strides.data(), map.box.data(),
      map.steps.data(), tensorMapNotInterleaved, swizzle, tensorMapPromotion256,
      tensorMapFillZeros);
}

} // namespace charonia::cuda
