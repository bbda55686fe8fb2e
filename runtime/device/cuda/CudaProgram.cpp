//===- CudaProgram.cpp - A program's code and weights on a GPU ------------===//

#include "runtime/device/cuda/CudaProgram.h"
#include "runtime/device/cpu/CpuInfo.h"
#include "runtime/device/cuda/CudaExecutor.h"
#include "runtime/engine/Checksum.h"
#include "runtime/engine/Format.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

namespace charonia::cuda {

std::optional<Arch> Arch::parse(std::string_view text) {
  if (!text.starts_with("sm_"))
    return std::nullopt;
  text.remove_prefix(3);
  Arch arch;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), arch.capability);
  if (error != std::errc() || arch.capability < 10)
    return std::nullopt;
  std::string_view suffix(end, text.data() + text.size() - end);
  arch.specific = suffix == "a";
  arch.ofFamily = suffix == "f";
  if (!suffix.empty() && !arch.specific && !arch.ofFamily)
    return std::nullopt;
  return arch;
}

bool Arch::cubinRunsOn(int device) const {
  if (specific)
    return device == capability;
  return device / 10 == capability / 10 && device >= capability;
}

bool Arch::ptxRunsOn(int device) const {
  if (specific || ofFamily)
    return cubinRunsOn(device);
  return device >= capability;
}

CudaProgram::~CudaProgram() {
  if (device->inherited())
    return;
  CudaDevice::Scope scope(*device);
  for (CuModule module : modules)
    if (module)
      device->driver().moduleUnload(module);
}

Status CudaProgram::load() {
  CudaDevice::Scope scope(*device);
  CHARONIA_RETURN_IF_ERROR(loadModules());
  CHARONIA_RETURN_IF_ERROR(findFunctions());
  return uploadWeights();
}

Result<CudaProgram::Code> CudaProgram::readCode() const {
  Code copies(reader->sections().size());
  for (const engine::CodeModule &module : variant().modules)
    for (const engine::Range &range : {module.ptx, module.cubin}) {
      if (range.empty() || !copies[range.section].empty())
        continue;
      std::span<const std::byte> bytes = reader->section(range.section);
      std::vector<std::byte> &copy = copies[range.section];
      copy.assign(bytes.begin(), bytes.end());
      // What a damaged cubin does is anybody's guess.
      CHARONIA_RETURN_IF_ERROR(reader->checkSection(
          range.section, engine::checksum(copy.data(), copy.size())));
    }
  return copies;
}

Result<CuModule> CudaProgram::loadModule(const Code &sections,
                                         const engine::Range &range,
                                         bool cubin) {
  const Driver &api = device->driver();
  // The driver wants PTX terminated; a copy makes sure, whatever the file
  // holds.
  std::span<const std::byte> bytes =
      std::span(sections[range.section]).subspan(range.offset, range.size);
  std::string text;
  const void *image = bytes.data();
  if (!cubin) {
    text.assign(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    image = text.c_str();
  }
  char log[2048] = {};
  int options[] = {jitErrorLogBuffer, jitErrorLogBufferSize};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)};
  CuModule loaded = nullptr;
  CuResult result = api.moduleLoadDataEx(&loaded, image, 2, options, values);
  if (result == cudaSuccess)
    return loaded;
  Status status = api.check(result, cubin ? "loading machine code"
                                          : "compiling PTX for this GPU");
  std::string message = status.message();
  if (log[0] != 0)
    message += std::string(": ") + log;
  return Status(status.code(), message);
}

Status CudaProgram::loadModules() {
  const engine::Variant &chosen = variant();
  CHARONIA_ASSIGN_OR_RETURN(const Code sections, readCode());
  Arch arch = Arch::parse(chosen.arch).value_or(Arch());
  bool cubinFits = arch.cubinRunsOn(device->capability());
  modules.assign(chosen.modules.size(), nullptr);
  std::atomic<size_t> next{0};
  std::mutex mutex;
  Status failure;
  size_t failed = SIZE_MAX;
  auto work = [&] {
    CudaDevice::Scope scope(*device);
    for (size_t i; (i = next++) < modules.size();) {
      const engine::CodeModule &module = chosen.modules[i];
      Result<CuModule> loaded =
          Status(StatusCode::NotFound,
                 "the engine has neither PTX nor fitting machine code");
      if (cubinFits && !module.cubin.empty())
        loaded = loadModule(sections, module.cubin, /*cubin=*/true);
      // A driver may refuse machine code that it should take; PTX is the way
      // out.
      if (!loaded && !module.ptx.empty())
        loaded = loadModule(sections, module.ptx, /*cubin=*/false);
      if (loaded) {
        modules[i] = *loaded;
        continue;
      }
      std::lock_guard lock(mutex);
      if (i < failed) {
        failed = i;
        failure = loaded.status();
      }
    }
  };
  // The driver's compiler takes tens of milliseconds a module, so several
  // threads share the modules. Without more threads, this one does it all.
  size_t helpers = std::min<size_t>(cpu::availableCores(), modules.size());
  std::vector<std::thread> threads;
  try {
    while (threads.size() + 1 < helpers)
      threads.emplace_back(work);
  } catch (const std::system_error &) {
  }
  work();
  for (std::thread &thread : threads)
    thread.join();
  return failure;
}

Status CudaProgram::findFunctions() {
  const Driver &api = device->driver();
  for (size_t i = 0; i < variant().kernels.size(); ++i) {
    const engine::KernelCode &code = variant().kernels[i];
    CuFunction function = nullptr;
    std::string doing = "looking for the kernel '" + code.entry + "'";
    CHARONIA_RETURN_IF_ERROR(
        api.check(api.moduleGetFunction(&function, modules[code.module],
                                        code.entry.c_str()),
                  doing.c_str()));
    if (code.sharedBytes > static_cast<uint64_t>(device->sharedBytesPerBlock()))
      return Status(StatusCode::Unsupported,
                    "the kernel '" + code.entry + "' needs " +
                        std::to_string(code.sharedBytes) +
                        " bytes of shared memory, but " +
                        device->description() + " has " +
                        std::to_string(device->sharedBytesPerBlock()));
    constexpr uint64_t withoutAsking = 48 * 1024;
    doing = "preparing the kernel '" + code.entry + "'";
    if (code.sharedBytes > withoutAsking)
      CHARONIA_RETURN_IF_ERROR(
          api.check(api.funcSetAttribute(function, functionDynamicShared,
                                         static_cast<int>(code.sharedBytes)),
                    doing.c_str()));
    constexpr uint32_t portableCluster = 8;
    if (code.clusterSize > 1 && !api.launchKernelEx)
      return Status(StatusCode::Unsupported,
                    "the kernel '" + code.entry +
                        "' runs in clusters, for which this NVIDIA driver is "
                        "too old; CUDA 11.8 or newer is needed");
    if (code.clusterSize > portableCluster)
      CHARONIA_RETURN_IF_ERROR(api.check(
          api.funcSetAttribute(function, functionNonPortableCluster, 1),
          doing.c_str()));
    functions.push_back(function);
  }
  return Status::ok();
}

Status CudaProgram::uploadWeights() {
  if (program().weightsSection == engine::noIndex)
    return Status::ok();
  std::span<const std::byte> bytes = reader->section(program().weightsSection);
  CHARONIA_ASSIGN_OR_RETURN(
      weights, DeviceMemory::allocate(device, bytes.size(), "weights"));
  if (bytes.empty())
    return Status::ok();
  const Driver &api = device->driver();
  CHARONIA_ASSIGN_OR_RETURN(Stream stream, Stream::create(device));
  // Two pinned pieces: one is filled while the other is copied.
  constexpr size_t pieceBytes = size_t(8) << 20;
  size_t piece = std::min(pieceBytes, bytes.size());
  struct Half {
    PinnedMemory memory;
    Event done;
    bool busy = false;
  } halves[2];
  for (Half &half : halves) {
    CHARONIA_ASSIGN_OR_RETURN(
        half.memory, PinnedMemory::allocate(device, piece, "the upload"));
    CHARONIA_ASSIGN_OR_RETURN(half.done, Event::create(device, false));
  }
  // Whatever happens, no copy may still run when the pieces go away. The
  // checksum is of the pieces that are copied, taken while the others travel.
  Status status;
  engine::ChecksumStream sum;
  auto copied = [&](CuResult result) {
    status = api.check(result, "copying weights");
    return status.isOk();
  };
  for (size_t at = 0, turn = 0; at < bytes.size(); at += piece, turn ^= 1) {
    Half &half = halves[turn];
    size_t size = std::min(piece, bytes.size() - at);
    if (half.busy && !copied(api.eventSynchronize(half.done.get())))
      break;
    std::memcpy(half.memory.data(), bytes.data() + at, size);
    half.busy = true;
    if (!copied(api.memcpyHtoDAsync(weights.address() + at, half.memory.data(),
                                    size, stream.get())) ||
        !copied(api.eventRecord(half.done.get(), stream.get())))
      break;
    if (verifyWeights)
      sum.update(half.memory.data(), size);
  }
  CuResult last = api.streamSynchronize(stream.get());
  CHARONIA_RETURN_IF_ERROR(status);
  CHARONIA_RETURN_IF_ERROR(api.check(last, "copying weights"));
  return verifyWeights
             ? reader->checkSection(program().weightsSection, sum.digest())
             : Status::ok();
}

namespace {

class CudaBackend final : public exec::DeviceBackend {
public:
  explicit CudaBackend(DeviceRef device) : device(std::move(device)) {}

  int rank(const engine::Variant &variant) const override {
    auto arch = Arch::parse(variant.arch);
    if (!arch)
      return -1;
    int capability = device->capability();
    for (const engine::CodeModule &module : variant.modules)
      if (!(arch->ptxRunsOn(capability) && !module.ptx.empty()) &&
          !(arch->cubinRunsOn(capability) && !module.cubin.empty()))
        return -1;
    // The newest code, and of that the most special.
    return arch->capability * 4 + (arch->specific ? 2 : arch->ofFamily ? 1 : 0);
  }

  std::string description() const override { return device->description(); }

  Result<std::shared_ptr<exec::LoadedProgram>>
  load(exec::LoadRequest request) override {
    auto loaded = std::make_shared<CudaProgram>(device, std::move(request));
    CHARONIA_RETURN_IF_ERROR(loaded->load());
    return std::shared_ptr<exec::LoadedProgram>(std::move(loaded));
  }

private:
  DeviceRef device;
};

} // namespace
} // namespace charonia::cuda

namespace charonia::exec {

Result<std::shared_ptr<DeviceBackend>> openCuda(int index) {
  CHARONIA_ASSIGN_OR_RETURN(cuda::DeviceRef device,
                            cuda::CudaDevice::open(index));
  return std::shared_ptr<DeviceBackend>(
      std::make_shared<cuda::CudaBackend>(std::move(device)));
}

} // namespace charonia::exec
