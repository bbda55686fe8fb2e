#include "runtime/exec/Executor.h"
namespace charonia::exec {
Result<std::shared_ptr<DeviceBackend>> openCuda(int) {
  return Status(StatusCode::Unavailable, "this build has no CUDA backend");
}
} // namespace charonia::exec
