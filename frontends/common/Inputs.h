// The inputs of a model: what its file says and what the user says.
#ifndef CHARONIA_FRONTENDS_COMMON_INPUTS_H
#define CHARONIA_FRONTENDS_COMMON_INPUTS_H

#include "frontends/common/ModuleBuilder.h"

namespace charonia::frontend {

/// One dimension as the file has it.
struct ModelDim {
  /// The size, where it is fixed.
  std::optional<int64_t> size;
  /// The size's name, where it has one: equal names are equal sizes.
  std::string name;
  /// Where the file declares a range, which --shape may narrow.
  std::optional<DimRange> range;
  /// What holds for a size that nobody declares a range of, where that is not
  /// defaultRange().
  std::optional<DimRange> assumed;
  /// Whether --shape may also name sizes from 1 on that are less than `range`.
  bool allowsOne = false;
};

struct ModelInput {
  std::string name;
  mlir::Type element;
  /// None where the file does not say how many there are.
  std::optional<std::vector<ModelDim>> dims;
  /// Why it cannot be an input, apart from its shape.
  std::optional<Problem> problem;
};

/// The inputs with their symbolic shapes. Everything wrong with them, or with
/// the options, is added to `problems`.
std::vector<Input> readInputs(llvm::ArrayRef<ModelInput> inputs,
                              const ImportOptions &options, Symbols &symbols,
                              mlir::MLIRContext *context,
                              std::vector<Problem> &problems);

} // namespace charonia::frontend

#endif
