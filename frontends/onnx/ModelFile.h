// Reading an ONNX file and the data files beside it.
#ifndef CHARONIA_FRONTENDS_ONNX_MODELFILE_H
#define CHARONIA_FRONTENDS_ONNX_MODELFILE_H

#include "frontends/common/MappedFile.h"
#include "onnx/onnx_pb.h"

namespace charonia::frontend::onnx {

/// Parses the file at `path`: text syntax if its name ends in `.onnxtxt`, else
/// protobuf, streamed, so that the weights are in memory once.
std::optional<Problem> readModel(llvm::StringRef path,
                                 ::onnx::ModelProto &model);
/// The same for bytes in memory.
std::optional<Problem> parseModel(llvm::StringRef bytes,
                                  ::onnx::ModelProto &model);

/// Files that tensors of a model refer to.
class ExternalFiles {
public:
  /// As of FolderFiles.
  ExternalFiles(llvm::StringRef folder, llvm::StringRef model)
      : files("external data", folder, model) {}

  /// The bytes that `tensor`, which has `expected` bytes, refers to.
  std::optional<FileBytes> load(const ::onnx::TensorProto &tensor,
                                int64_t expected, Problem &problem);

private:
  FolderFiles files;
};

} // namespace charonia::frontend::onnx

#endif
