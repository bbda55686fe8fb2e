// Parameters, buffers and constants of an exported program.
#ifndef CHARONIA_FRONTENDS_PYTORCH_WEIGHTS_H
#define CHARONIA_FRONTENDS_PYTORCH_WEIGHTS_H

#include "frontends/common/Replacements.h"
#include "frontends/pytorch/Archive.h"
#include "frontends/pytorch/Program.h"

namespace charonia::frontend::pytorch {

/// Tensors by name. A tensor is a view, of its sizes, strides and offset, of a
/// storage, which is an entry of the archive; several may share one.
class Weights {
public:
  /// `replacements`, if not null, go before the archive's contents.
  Weights(Archive &archive, Replacements *replacements)
      : archive(archive), replacements(replacements) {}

  /// Adds what a configuration lists, "data/weights/model_weights_config.json",
  /// with storages in the same folder.
  std::optional<Problem> addConfiguration(llvm::StringRef entry);
  bool has(llvm::StringRef name) const { return sources.count(name); }
  /// What the file says of a tensor; null where there is none of that name.
  const TensorMeta *metaOf(llvm::StringRef name) const;

  /// The tensor as a value: constants and weights map the file's bytes, also
  /// where dimensions are permuted or spread. Null and a problem where there is
  /// none, or it is not sound. Two names of one tensor are one value. Complex
  /// numbers are pairs in a last dimension of two.
  mlir::Value load(llvm::StringRef name, Emitter &emitter, Problem &problem);

private:
  struct Source {
    std::string entry;
    TensorMeta meta;
    bool pickled = false;
  };
  std::string replacedName(llvm::StringRef name, const std::string &place);

  llvm::StringMap<Source> sources;
  llvm::StringMap<mlir::Value> loaded;
  /// Bytes that were copied out of storages so far.
  int64_t copied = 0;
  Archive &archive;
  Replacements *replacements;
  /// The name whose replacement stands for a tensor, by its place in the file.
  llvm::StringMap<std::string> replacedAt;
  bool knowsPlaces = false;
};

} // namespace charonia::frontend::pytorch

#endif
