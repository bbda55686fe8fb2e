//===- Driver.cpp - The CUDA driver, opened at run time -------------------===//

#include "runtime/device/cuda/Driver.h"
#include "runtime/device/Fork.h"

#include <cstdlib>
#include <mutex>
#include <optional>
#include <type_traits>

#include <dlfcn.h>

namespace charonia::cuda {

namespace {

Status openDriver(Driver &driver) {
  const char *path = std::getenv("CHARONIA_CUDA_DRIVER");
  std::string name = path && *path ? path : "libcuda.so.1";
  void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    return Status(StatusCode::Unavailable,
                  "there is no NVIDIA driver on this machine: " +
                      std::string(reason ? reason : name.c_str()));
  }
  std::string missing;
  auto resolve = [&](auto &function, const char *symbol, bool required) {
    void *address = dlsym(library, symbol);
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
    if (!address && required && missing.empty())
      missing = symbol;
  };
#define CHARONIA_RESOLVE(name, symbol, ...) resolve(driver.name, #symbol, true);
  CHARONIA_CUDA_FUNCTIONS(CHARONIA_RESOLVE)
#undef CHARONIA_RESOLVE
#define CHARONIA_RESOLVE(name, symbol, ...)                                    \
  resolve(driver.name, #symbol, false);
  CHARONIA_CUDA_OPTIONAL_FUNCTIONS(CHARONIA_RESOLVE)
#undef CHARONIA_RESOLVE
  if (missing.empty())
    return Status::ok();
  dlclose(library);
  return Status(StatusCode::Unavailable,
                "the NVIDIA driver is too old: it has no " + missing +
                    "; a driver for CUDA 11.4 or newer is needed");
}

} // namespace

Result<const Driver *> Driver::get() {
  static std::mutex mutex;
  static Driver driver;
  static std::optional<ProcessMark> opened;
  std::lock_guard lock(mutex);
  if (!opened) {
    CHARONIA_RETURN_IF_ERROR(openDriver(driver));
    opened.emplace();
  }
  if (opened->inherited())
    return Status(
        StatusCode::FailedPrecondition,
        "CUDA was opened before fork(), which it does not survive; "
        "fork before the first context on a GPU is made, or start the "
        "child with exec()");
  CuResult result = driver.init(0);
  if (result == cudaNoDevice)
    return Status(StatusCode::Unavailable,
                  "there is no NVIDIA GPU on this machine");
  if (Status status = driver.check(result, "initializing the driver"); !status)
    return Status(StatusCode::Unavailable, status.message());
  return &driver;
}

Status Driver::check(CuResult result, const char *doing) const {
  if (result == cudaSuccess)
    return Status::ok();
  const char *name = nullptr, *text = nullptr;
  if (getErrorName)
    getErrorName(result, &name);
  if (getErrorString)
    getErrorString(result, &text);
  std::string message =
      std::string("CUDA failed while ") + doing + ": " +
      (text ? text : "unknown error") + " (" +
      (name ? std::string(name) : "error " + std::to_string(result)) + ")";
  return Status(result == cudaOutOfMemory ? StatusCode::OutOfMemory
                                          : StatusCode::DeviceError,
                message);
}

} // namespace charonia::cuda
