//===- Select.cpp - Which program of an engine runs here ------------------===//

#include "runtime/exec/Executor.h"

namespace charonia::exec {

Allocation::~Allocation() = default;
Executor::~Executor() = default;
LoadedProgram::~LoadedProgram() = default;
DeviceBackend::~DeviceBackend() = default;

std::string listPrograms(const engine::Manifest &manifest) {
  std::string text;
  for (const engine::Program &program : manifest.programs) {
    text += text.empty() ? "" : "; ";
    text += deviceKindName(program.device);
    text += " " + program.precision + " (";
    for (size_t i = 0; i < program.variants.size(); ++i)
      text += (i ? ", " : "") + program.variants[i].arch;
    text += ")";
  }
  return text.empty() ? "no programs" : text;
}

Status checkHolds(const engine::Manifest &manifest, DeviceKind kind,
                  const std::string &precision) {
  bool anyOfKind = false;
  for (const engine::Program &program : manifest.programs) {
    if (program.device != kind)
      continue;
    anyOfKind = true;
    if (precision.empty() || program.precision == precision)
      return Status::ok();
  }
  return Status(StatusCode::NotFound,
                "the engine has no " +
                    (anyOfKind ? precision + " program for " : "program for ") +
                    std::string(deviceKindName(kind)) + "; the file holds " +
                    listPrograms(manifest));
}

Result<Choice> chooseProgram(const engine::Manifest &manifest, DeviceKind kind,
                             const DeviceBackend &backend,
                             const std::string &precision) {
  Choice best;
  int bestRank = -1;
  for (size_t p = 0; p < manifest.programs.size(); ++p) {
    const engine::Program &program = manifest.programs[p];
    if (program.device != kind ||
        (!precision.empty() && program.precision != precision))
      continue;
    for (size_t v = 0; v < program.variants.size(); ++v)
      if (int rank = backend.rank(program.variants[v]); rank > bestRank) {
        bestRank = rank;
        best = {p, v};
      }
  }
  if (bestRank >= 0)
    return best;
  return Status(StatusCode::NotFound,
                "no program of the engine runs on " + backend.description() +
                    "; the file holds " + listPrograms(manifest));
}

} // namespace charonia::exec
