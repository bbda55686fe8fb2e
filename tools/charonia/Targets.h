// The names of --target that stand for this machine.
#ifndef CHARONIA_TOOLS_CHARONIA_TARGETS_H
#define CHARONIA_TOOLS_CHARONIA_TARGETS_H

#include "charonia/status.h"

#include <string>
#include <vector>

namespace charonia::tool {

/// The targets that `names` stand for, each once: "native" is `hostCpu` and the
/// GPUs that are here, "cuda" these GPUs, of which there must be one. `known`:
/// all targets. Other names stay as they are.
Result<std::vector<std::string>>
expandTargets(const std::vector<std::string> &names, const std::string &hostCpu,
              const std::vector<std::string> &known);

} // namespace charonia::tool

#endif
