// Weights in files of the safetensors format.
#ifndef CHARONIA_FRONTENDS_COMMON_SAFETENSORS_H
#define CHARONIA_FRONTENDS_COMMON_SAFETENSORS_H

#include "frontends/common/MappedFile.h"
#include "llvm/ADT/StringSet.h"

namespace charonia::frontend {

/// Tensors by name, of one file or of several that an index lists. Bytes stay
/// in the files, which are mapped.
class SafeTensors {
public:
  struct Tensor {
    /// The format's word: "F32".
    std::string dtype;
    llvm::SmallVector<int64_t> shape;
    /// Dense, row-major, little-endian: as many bytes as shape and type take.
    FileBytes data;
  };

  /// What `path` names: a file, an index (`*.index.json`) of files beside it,
  /// or a folder with one index or else one file. None and a problem where it
  /// cannot be read, or is not sound.
  static std::optional<SafeTensors> open(llvm::StringRef path,
                                         Problem &problem);
  /// Adds the tensors of a file's bytes; of all, or of those that `wanted`
  /// names. What is wrong with the file, which messages call `shown`.
  std::optional<Problem> addFile(const FileBytes &file,
                                 const std::string &shown,
                                 const llvm::StringSet<> *wanted = nullptr);

  /// Null where there is none of that name.
  const Tensor *find(llvm::StringRef name) const;
  /// Sorted.
  std::vector<std::string> names() const;

private:
  std::optional<Problem> addIndex(const std::string &path);

  llvm::StringMap<Tensor> tensors;
};

/// The type of a tensor of the format; null where it is not supported.
mlir::Type elementType(const SafeTensors::Tensor &tensor,
                       mlir::MLIRContext *context);

} // namespace charonia::frontend

#endif
