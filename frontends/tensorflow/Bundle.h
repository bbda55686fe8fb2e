// The variables of a SavedModel: a table of what there is, and shards of bytes.
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_BUNDLE_H
#define CHARONIA_FRONTENDS_TENSORFLOW_BUNDLE_H

#include "frontends/common/MappedFile.h"
#include "frontends/common/Tensors.h"
#include "frontends/tensorflow/Table.h"
#include "frontends/tensorflow/model.pb.h"

namespace charonia::frontend::tensorflow {

/// Opens a file of the folder "variables" by its name.
using OpenFile = std::function<std::optional<FileBytes>(const std::string &name,
                                                        Problem &problem)>;

/// The files "variables.index" and "variables.data-?????-of-?????".
class Bundle {
public:
  /// Reads the table.
  static std::unique_ptr<Bundle> open(OpenFile openFile, Problem &problem);

  bool has(llvm::StringRef key) const { return table.find(key) != table.end(); }
  /// The tensor of a key, in place: bytes of any alignment.
  std::optional<TensorData> load(llvm::StringRef key,
                                 mlir::MLIRContext *context, Problem &problem);
  /// The type of a tensor, whose bytes are not looked at; null where the table
  /// has no sound one.
  mlir::RankedTensorType typeOf(llvm::StringRef key,
                                mlir::MLIRContext *context) const;
  /// The text of a key whose tensor is a single one.
  std::optional<llvm::StringRef> loadText(llvm::StringRef key,
                                          Problem &problem);

private:
  std::optional<Problem> readHeader();
  /// The tensor of an entry whose bytes are in the shards.
  std::optional<TensorData>
  loadWhole(llvm::StringRef key, mlir::MLIRContext *context, Problem &problem);
  /// ... of one that is stored in parts.
  std::optional<TensorData> loadParts(llvm::StringRef key,
                                      const proto::BundleEntry &entry,
                                      mlir::MLIRContext *context,
                                      Problem &problem);
  /// The entry of a key and its bytes.
  std::optional<FileBytes> bytesOf(llvm::StringRef key,
                                   proto::BundleEntry &entry, Problem &problem);
  const FileBytes *shard(int index, Problem &problem);

  OpenFile openFile;
  FileBytes index;
  Table table;
  std::map<int, FileBytes> shards;
  int numShards = 0;
};

/// The element type of a number of TensorFlow's DataType; null for those that
/// are not supported.
mlir::Type elementType(int dtype, mlir::MLIRContext *context);
/// "float32"; "type 99" for what is none.
std::string dtypeName(int dtype);
/// What to do about a type that is not supported.
extern const char *const elementTypeRemedy;

/// The contents of a tensor of a message, which `owner` keeps alive.
std::optional<TensorData> readTensor(const proto::Tensor &tensor,
                                     std::shared_ptr<const void> owner,
                                     mlir::MLIRContext *context,
                                     Problem &problem);

} // namespace charonia::frontend::tensorflow

#endif
