// What a user says about the shapes of a model's inputs.
#ifndef CHARONIA_FRONTENDS_COMMON_SHAPEOPTION_H
#define CHARONIA_FRONTENDS_COMMON_SHAPEOPTION_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace charonia::frontend {

/// Inclusive range of a dimension, in elements; every size is a multiple of
/// `divisor`; `opt` is the size to optimize for.
struct DimRange {
  int64_t min = 1, opt = 1, max = 1, divisor = 1;
  bool operator==(const DimRange &) const = default;
};

/// One dimension: a symbol's name, a range, both, or neither (`?`: as the model
/// has it). A fixed size is a range with min = max.
struct DimOption {
  std::string name;
  std::optional<DimRange> range;
};

/// Shapes by input name.
using ShapeOptions = std::map<std::string, std::vector<DimOption>>;

/// Largest size of a dimension that can be declared or imported.
constexpr int64_t maxDimension = int64_t(1) << 40;
/// Range of a dimension that nothing is said about: the leading one is taken
/// for a batch, others for lengths.
DimRange defaultRange(bool leading);

/// Adds the shapes of one `--shape` option to `shapes`. Returns what is wrong
/// with the text, or an empty string. The text names an input, then its
/// dimensions, separated by `x`, or in brackets and separated by commas:
///   x=1..8..64x3x224x224          min..opt..max; 1..64 has opt = 64
///   ids=[batch:1..8..64,seq]      names: equal names are equal sizes
///   ids=1..8..64x16..128..512%16  multiples of 16
///   x=?x3x224x224                 `?` leaves a dimension as the model has it
std::string parseShapeOption(llvm::StringRef text, ShapeOptions &shapes);

} // namespace charonia::frontend

#endif
