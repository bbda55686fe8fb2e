#include "tools/charonia/Targets.h"
#include "runtime/device/cuda/Driver.h"

#include <algorithm>

namespace charonia::tool {
namespace {

/// Compute capabilities of the GPUs that are here: 90 for 9.0.
Result<std::vector<int>> gpuCapabilities() {
  CHARONIA_ASSIGN_OR_RETURN(const cuda::Driver *driver, cuda::Driver::get());
  int count = 0;
  CHARONIA_RETURN_IF_ERROR(
      driver->check(driver->deviceGetCount(&count), "counting the GPUs"));
  std::vector<int> capabilities;
  for (int i = 0; i < count; ++i) {
    cuda::CuDevice device;
    int major = 0, minor = 0;
    CHARONIA_RETURN_IF_ERROR(
        driver->check(driver->deviceGet(&device, i), "opening the GPU"));
    for (auto [attribute, value] : {std::pair(cuda::attributeMajor, &major),
                                    std::pair(cuda::attributeMinor, &minor)})
      CHARONIA_RETURN_IF_ERROR(
          driver->check(driver->deviceGetAttribute(value, attribute, device),
                        "asking for the GPU's attributes"));
    capabilities.push_back(major * 10 + minor);
  }
  if (capabilities.empty())
    return Status(StatusCode::Unavailable,
                  "there is no NVIDIA GPU on this machine");
  return capabilities;
}

/// The newest target whose code runs on a GPU of this capability; of a chip's
/// own, with what later ones do not have.
Result<std::string> targetFor(int capability,
                              const std::vector<std::string> &known) {
  int best = 0;
  for (const std::string &name : known)
    if (name.starts_with("sm_") &&
        name.find_first_not_of("0123456789", 3) == std::string::npos)
      if (int number = std::stoi(name.substr(3)); number <= capability)
        best = std::max(best, number);
  std::string target = "sm_" + std::to_string(best), own = target + "a";
  if (best == capability &&
      std::find(known.begin(), known.end(), own) != known.end())
    return own;
  if (best)
    return target;
  return Status(StatusCode::Unsupported,
                "the GPU of this machine has the compute capability " +
                    std::to_string(capability / 10) + "." +
                    std::to_string(capability % 10) + "; 8.0 is the least");
}

} // namespace

Result<std::vector<std::string>>
expandTargets(const std::vector<std::string> &names, const std::string &hostCpu,
              const std::vector<std::string> &known) {
  std::vector<std::string> targets;
  auto add = [&](const std::string &name) {
    if (std::find(targets.begin(), targets.end(), name) == targets.end())
      targets.push_back(name);
  };
  for (const std::string &name : names) {
    if (name == "native")
      add(hostCpu);
    if (name != "native" && name != "cuda") {
      add(name);
      continue;
    }
    Result<std::vector<int>> capabilities = gpuCapabilities();
    if (!capabilities) {
      // To be without a GPU is no failure for "native".
      if (name == "native" &&
          capabilities.status().code() == StatusCode::Unavailable)
        continue;
      return Status(capabilities.status().code(),
                    "--target " + name + ": " +
                        capabilities.status().message() +
                        "; name the GPU's target, such as sm_90");
    }
    for (int capability : *capabilities) {
      CHARONIA_ASSIGN_OR_RETURN(std::string target,
                                targetFor(capability, known));
      add(target);
    }
  }
  return targets;
}

} // namespace charonia::tool
