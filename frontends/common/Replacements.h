// Weights that stand for those of a model's file.
#ifndef CHARONIA_FRONTENDS_COMMON_REPLACEMENTS_H
#define CHARONIA_FRONTENDS_COMMON_REPLACEMENTS_H

#include "frontends/Importer.h"
#include "frontends/common/SafeTensors.h"
#include "frontends/common/Tensors.h"
#include "llvm/ADT/StringSet.h"
#include <set>

namespace charonia::frontend {

/// Tensors of another file, by the names that weights have in the model's. An
/// importer tells what the model has and asks for each weight before it takes
/// the model's own contents; what does not fit is kept until all is known.
class Replacements {
public:
  /// `file` is the tensors' in messages.
  Replacements(SafeTensors tensors, std::string file)
      : tensors(std::move(tensors)), file(std::move(file)) {}

  /// The model has a weight of that name, needed or not.
  void know(llvm::StringRef name) { known.insert(name); }
  bool has(llvm::StringRef name) const { return tensors.find(name); }
  /// The contents that stand for a weight of that type; none where the model's
  /// own stay.
  std::optional<TensorData> find(llvm::StringRef name,
                                 mlir::RankedTensorType type);

  /// Adds what there is to say once a model is imported: all that does not fit
  /// as one error, without a module then, else which weights are the model's.
  void finish(ImportResult &result) const;

private:
  SafeTensors tensors;
  std::string file;
  llvm::StringSet<> known;
  /// Names by what is said of them; sorted, without repetition.
  std::map<std::string, std::string> mismatches;
  std::set<std::string> kept;
};

} // namespace charonia::frontend

#endif
