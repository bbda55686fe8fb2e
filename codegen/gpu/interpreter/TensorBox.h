// The rows of a box that the copy engine takes out of a tensor.
#ifndef CHARONIA_CODEGEN_GPU_INTERPRETER_TENSORBOX_H
#define CHARONIA_CODEGEN_GPU_INTERPRETER_TENSORBOX_H

#include "codegen/gpu/interpreter/Machine.h"

namespace charonia::interpreter {

/// The copy engine moves shared memory by pieces; a row of them has as many as
/// trade places.
constexpr unsigned kPieceBytes = 16, kSwizzleBytes = 128;

/// Rows are neighbours along the innermost dimension, or what of them a box
/// has.
class Box {
public:
  explicit Box(const TensorMap &map) : map(map) {}

  bool isIm2col() const { return !map.lower.empty(); }
  size_t rank() const { return map.extents.size(); }
  int64_t rowBytes() const { return map.box[0] * map.elementBytes; }
  int64_t rows() const {
    int64_t count = 1;
    for (size_t d = 1; d < map.box.size(); ++d)
      count *= elements(d);
    return count;
  }
  int64_t bytes() const { return rows() * rowBytes(); }

  /// What hardware would do, or the driver refuse, in ways not known here;
  /// empty if nothing.
  const char *findUnknown() const {
    if (map.elementBytes == 0 || rank() == 0 || rank() > 5 ||
        map.strides.size() + 1 != rank() || map.steps.size() != rank() ||
        map.box.size() != (isIm2col() ? 2 : rank()) ||
        map.lower.size() != map.upper.size() ||
        (isIm2col() && map.lower.size() + 2 != rank()))
      return "a tensor map of numbers that do not go together";
    if (llvm::any_of(map.box, [](int64_t size) { return size < 1; }) ||
        llvm::any_of(map.steps, [](int64_t step) { return step < 1; }))
      return "a tensor map of empty boxes";
    if (llvm::any_of(map.strides,
                     [](int64_t stride) { return stride % kPieceBytes; }) ||
        rowBytes() % kPieceBytes)
      return "a tensor map of rows that are no multiples of 16 bytes";
    if (map.swizzle != 0 && (map.swizzle != 128 || rowBytes() != kSwizzleBytes))
      return "a tensor map of pieces that trade places in rows that have not "
             "128 bytes";
    return nullptr;
  }

  /// Calls `what` with the position of each row's first element.
  template <typename F>
  void eachRow(const Position &start, llvm::ArrayRef<int64_t> offsets,
               F what) const {
    if (isIm2col())
      eachPixel(start, offsets, what);
    else
      eachTiledRow(start, what);
  }

private:
  /// cuTensorMapEncodeTiled's box counts elements that are stepped over, too.
  int64_t elements(size_t d) const {
    return isIm2col() ? map.box[d]
                      : (map.box[d] + map.steps[d] - 1) / map.steps[d];
  }

  template <typename F> void eachTiledRow(const Position &start, F what) const {
    for (int64_t row = 0, count = rows(); row < count; ++row) {
      Position at = start;
      int64_t rest = row;
      for (size_t d = 1; d < rank(); ++d) {
        at[d] += rest % elements(d) * map.steps[d];
        rest /= elements(d);
      }
      what(at);
    }
  }

  /// Base pixels walk within the corners, along the inner dimensions first, and
  /// go on with the next image; the offsets are added to them.
  template <typename F>
  void eachPixel(const Position &start, llvm::ArrayRef<int64_t> offsets,
                 F what) const {
    Position base = start;
    for (int64_t pixel = 0; pixel < map.box[1]; ++pixel) {
      Position at = base;
      for (size_t d = 1; d + 1 < rank(); ++d)
        at[d] += offsets[d - 1];
      what(at);
      size_t d = 1;
      for (; d + 1 < rank(); ++d) {
        base[d] += map.steps[d];
        if (base[d] <= map.extents[d] - 1 + map.upper[d - 1])
          break;
        base[d] = map.lower[d - 1];
      }
      if (d + 1 == rank())
        ++base[d];
    }
  }

  const TensorMap &map;
};

} // namespace charonia::interpreter

#endif
