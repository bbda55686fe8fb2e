// Reading an ONNX file and the data files beside it.
#ifndef CHARONIA_FRONTENDS_ONNX_MODELFILE_H
#define CHARONIA_FRONTENDS_ONNX_MODELFILE_H

#include "frontends/common/Emitter.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/StringMap.h"
#include <memory>

namespace charonia::frontend::onnx {

/// Parses the file at `path`: text syntax if its name ends in `.onnxtxt`, else
/// protobuf, streamed, so that the weights are in memory once.
std::optional<Problem> readModel(llvm::StringRef path,
                                 ::onnx::ModelProto &model);
/// The same for bytes in memory.
std::optional<Problem> parseModel(llvm::StringRef bytes,
                                  ::onnx::ModelProto &model);

/// Files that tensors of a model refer to, mapped read-only. After symbolic
/// links and `..` are followed they have to lie in the model's folder, or in
/// that of the file that the model is a link to: caches of models are trees of
/// such links.
class ExternalFiles {
public:
  /// `folder` is empty where the model came from memory: then no file may be
  /// used. `model` is its file.
  ExternalFiles(llvm::StringRef folder, llvm::StringRef model)
      : folder(folder.str()), model(model.str()) {}

  struct Bytes {
    llvm::ArrayRef<char> bytes;
    /// Keeps the mapping alive.
    std::shared_ptr<const void> owner;
  };
  /// The bytes that `tensor`, which has `expected` bytes, refers to.
  std::optional<Bytes> load(const ::onnx::TensorProto &tensor, int64_t expected,
                            Problem &problem);

private:
  struct File;
  std::shared_ptr<File> open(llvm::StringRef location, Problem &problem);

  std::string folder, model;
  llvm::StringMap<std::shared_ptr<File>> files;
};

} // namespace charonia::frontend::onnx

#endif
