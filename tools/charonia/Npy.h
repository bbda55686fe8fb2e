// NumPy's .npy files.
#ifndef CHARONIA_TOOLS_CHARONIA_NPY_H
#define CHARONIA_TOOLS_CHARONIA_NPY_H

#include "charonia/types.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace charonia::tool {

/// An array in C order. The data is aligned to 64 bytes.
struct Array {
  DType dtype = DType::Float32;
  std::vector<int64_t> shape;
  std::shared_ptr<std::byte> data;
  uint64_t size = 0;

  static Result<Array> allocate(DType dtype, std::vector<int64_t> shape);
};

/// Reads a file. Types that NumPy has no code for are raw bytes there ("V2"):
/// such data is taken to be of type `wanted` if the size fits. Files in Fortran
/// order are brought to C order.
Result<Array> readNpy(const std::string &path, DType wanted);

/// Writes a file as a whole or not at all.
Status writeNpy(const std::string &path, DType dtype,
                std::span<const int64_t> shape, const void *data);

} // namespace charonia::tool

#endif
