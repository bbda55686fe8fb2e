// The containers that arguments and results of an exported function are in.
#ifndef CHARONIA_FRONTENDS_PYTORCH_TREES_H
#define CHARONIA_FRONTENDS_PYTORCH_TREES_H

#include "frontends/common/Json.h"

namespace charonia::frontend::pytorch {

/// Keys, fields and positions on the way from the function to one of its
/// inputs, the argument's name first: d, a of d['a']. Empty where the file does
/// not say which.
using InputPath = std::vector<std::string>;

/// The ways to one input.
struct InputPaths {
  InputPath direct;
  /// As what "*args" or "**kwargs" gather; none where that cannot be.
  std::optional<InputPath> gathered;
  /// Passed by position, not by name.
  bool isPositional = false;
};

/// Of each input in their order, as the signature of a call says; none where it
/// does not.
std::vector<InputPaths> readInputPaths(const Json &signature);

/// Names of the leaves of what is returned: the keys on the way to each. Empty
/// for those that no key leads to.
std::vector<std::string> readOutputNames(const Json &signature);

} // namespace charonia::frontend::pytorch

#endif
