//===- TensorMaps.cpp - What tensor maps must satisfy ---------------------===//
//
// The ranges are those of the driver's documentation of both functions, for
// tensors that are not interleaved.
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/TensorMaps.h"

#include <algorithm>

namespace charonia::engine {

namespace {

constexpr uint32_t maxBox = 256; // Also the channels of im2col.
constexpr uint32_t maxPixels = 1024;
constexpr uint32_t maxStep = 8;

Status bad(std::string message) {
  return Status(StatusCode::Corrupt, std::move(message));
}

std::string count(size_t number, const char *what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

/// As many entries as the dimensions ask for.
Status checkCounts(const TensorMap &map) {
  size_t rank = map.extents.size();
  bool im2col = map.isIm2col();
  if (rank < 1 || rank > 5)
    return bad("it has " + count(rank, "dimension"));
  if (im2col && rank < 3)
    return bad("it is one for im2col and has " + count(rank, "dimension"));
  auto check = [&](size_t entries, size_t expected, const char *what) {
    return entries == expected ? Status::ok()
                               : bad("it has " + count(entries, what) +
                                     " for " + count(rank, "dimension"));
  };
  CHARONIA_RETURN_IF_ERROR(check(map.strides.size(), rank - 1, "stride"));
  CHARONIA_RETURN_IF_ERROR(check(map.steps.size(), rank, "step"));
  CHARONIA_RETURN_IF_ERROR(
      check(map.box.size(), im2col ? 2 : rank, "box size"));
  if (!im2col)
    return Status::ok();
  CHARONIA_RETURN_IF_ERROR(check(map.lower.size(), rank - 2, "lower corner"));
  return check(map.upper.size(), rank - 2, "upper corner");
}

Status checkBox(const TensorMap &map) {
  for (size_t i = 0; i < map.box.size(); ++i) {
    uint32_t most = map.isIm2col() && i == 1 ? maxPixels : maxBox;
    if (map.box[i] < 1 || map.box[i] > most)
      return bad("its box has " + count(map.box[i], "element") +
                 " along dimension " + std::to_string(i) + ", not 1 to " +
                 std::to_string(most));
  }
  uint32_t inner = map.box[0] * map.elementBytes;
  if (inner % 16 != 0)
    return bad("a row of its box has " + count(inner, "byte") +
               ", not a multiple of 16");
  if (map.swizzle != 0 && inner > map.swizzle)
    return bad("a row of its box has " + count(inner, "byte") + ", more than " +
               std::to_string(map.swizzle) +
               ", after which pieces trade "
               "places");
  for (uint32_t step : map.steps)
    if (step < 1 || step > maxStep)
      return bad("it has a step of " + std::to_string(step) + ", not 1 to " +
                 std::to_string(maxStep));
  return Status::ok();
}

/// The fewer dimensions, the more bits an offset has.
Status checkCorners(const TensorMap &map) {
  size_t rank = map.extents.size();
  int32_t end = rank == 3 ? 1 << 15 : rank == 4 ? 1 << 7 : 1 << 4;
  for (const std::vector<int32_t> *corner : {&map.lower, &map.upper})
    for (int32_t offset : *corner)
      if (offset < -end || offset >= end)
        return bad("it has a corner at " + std::to_string(offset) + ", not " +
                   std::to_string(-end) + " to " + std::to_string(end - 1));
  return Status::ok();
}

} // namespace

Status checkTensorMap(const TensorMap &map, size_t numSymbols) {
  CHARONIA_RETURN_IF_ERROR(checkCounts(map));
  for (const std::vector<ShapeExpr> *sizes : {&map.extents, &map.strides})
    for (const ShapeExpr &size : *sizes)
      CHARONIA_RETURN_IF_ERROR(size.check(numSymbols));
  constexpr uint32_t elements[] = {1, 2, 4, 8};
  if (!std::ranges::count(elements, map.elementBytes))
    return bad("its elements have " + count(map.elementBytes, "byte"));
  if (map.swizzle != 0 && map.swizzle != 128)
    return bad("its pieces trade places after " + count(map.swizzle, "byte"));
  CHARONIA_RETURN_IF_ERROR(checkBox(map));
  return checkCorners(map);
}

uint64_t countTerms(const TensorMap &map) {
  uint64_t terms = 0;
  for (const auto *sizes : {&map.extents, &map.strides})
    for (const ShapeExpr &size : *sizes)
      terms += size.terms().size();
  return terms;
}

} // namespace charonia::engine
