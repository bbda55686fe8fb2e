//===- Engine.cpp - Loading engines and making contexts -------------------===//

#include "runtime/engine/Guard.h"
#include "runtime/exec/ContextImpl.h"

#include <map>
#include <mutex>

#ifndef CHARONIA_VERSION
#error "CHARONIA_VERSION comes from CMake"
#endif

namespace charonia {

std::string_view version() { return CHARONIA_VERSION; }

struct Engine::Impl {
  std::shared_ptr<const engine::Reader> reader;
  LoadOptions options;

  /// Programs that are loaded to devices. They live as long as a context uses
  /// them.
  struct Key {
    DeviceKind kind;
    int index;
    size_t program;
    size_t variant;
    auto operator<=>(const Key &) const = default;
  };
  std::mutex mutex;
  std::map<Key, std::weak_ptr<exec::LoadedProgram>> loaded;

  Result<std::shared_ptr<exec::LoadedProgram>>
  load(Device device, const ContextOptions &contextOptions) {
    if (device.kind != DeviceKind::Cpu && device.kind != DeviceKind::Cuda)
      return Status(StatusCode::InvalidArgument,
                    "there is no kind of device with the number " +
                        std::to_string(static_cast<int>(device.kind)));
    if (device.kind == DeviceKind::Cpu && device.index != 0)
      return Status(StatusCode::InvalidArgument,
                    "there is no CPU " + std::to_string(device.index) +
                        ": all processors are one device, of index 0");
    if (device.kind == DeviceKind::Cpu && !options.allowHostCode)
      return Status(
          StatusCode::FailedPrecondition,
          "the engine was loaded with LoadOptions::allowHostCode = "
          "false, so its code is not run on the CPU; load it without, "
          "or make the context on a GPU");
    // Before the device is opened: what the file lacks is the better message.
    CHARONIA_RETURN_IF_ERROR(exec::checkHolds(reader->manifest(), device.kind,
                                              contextOptions.precision));
    auto backend = device.kind == DeviceKind::Cpu
                       ? exec::openCpu(contextOptions)
                       : exec::openCuda(device.index);
    if (!backend)
      return backend.status();
    CHARONIA_ASSIGN_OR_RETURN(exec::Choice choice,
                              exec::chooseProgram(reader->manifest(),
                                                  device.kind, **backend,
                                                  contextOptions.precision));
    // The lock is held while loading, so that contexts that are made at the
    // same time upload the weights once.
    std::lock_guard lock(mutex);
    auto &slot =
        loaded[{device.kind, device.index, choice.program, choice.variant}];
    if (auto known = slot.lock())
      return known;
    CHARONIA_ASSIGN_OR_RETURN(
        std::shared_ptr<exec::LoadedProgram> program,
        (*backend)->load({reader, choice, options.verifyWeights}));
    slot = program;
    return program;
  }
};

Engine::Engine(std::shared_ptr<Impl> impl) : impl(std::move(impl)) {}

Result<Engine> Engine::load(const std::string &path,
                            const LoadOptions &options) noexcept {
  return guarded([&]() -> Result<Engine> {
    auto impl = std::make_shared<Impl>();
    impl->options = options;
    CHARONIA_ASSIGN_OR_RETURN(impl->reader,
                              engine::Reader::open(path, options.digest));
    return Engine(std::move(impl));
  });
}

Result<Engine> Engine::load(std::span<const std::byte> bytes,
                            const LoadOptions &options) noexcept {
  return guarded([&]() -> Result<Engine> {
    auto impl = std::make_shared<Impl>();
    impl->options = options;
    CHARONIA_ASSIGN_OR_RETURN(
        impl->reader, engine::Reader::fromMemory(bytes, options.borrowMemory,
                                                 options.digest));
    return Engine(std::move(impl));
  });
}

Engine::Impl &Engine::self() const noexcept {
  if (!impl) [[unlikely]]
    detail::movedFromUsed("Engine");
  return *impl;
}

const Signature &Engine::signature() const noexcept {
  return self().reader->manifest().signature;
}

Result<std::string> Engine::digest() const noexcept {
  return guarded(
      [&]() -> Result<std::string> { return self().reader->digest(); });
}

std::vector<ProgramInfo> Engine::programs() const {
  std::vector<ProgramInfo> infos;
  for (const engine::Program &program : self().reader->manifest().programs) {
    ProgramInfo info{program.device, program.precision, {}, 0};
    for (const engine::Variant &variant : program.variants)
      info.archs.push_back(variant.arch);
    for (const engine::Step &step : program.steps)
      info.kernels += step.kind == engine::Step::Kind::Launch;
    infos.push_back(std::move(info));
  }
  return infos;
}

Result<Context>
Engine::createContext(Device device,
                      const ContextOptions &options) const noexcept {
  return guarded([&]() -> Result<Context> {
    CHARONIA_ASSIGN_OR_RETURN(auto program, self().load(device, options));
    CHARONIA_ASSIGN_OR_RETURN(auto executor,
                              program->createExecutor(program, options));
    return Context(std::make_unique<Context::Impl>(
        self().reader, device, std::move(program), std::move(executor)));
  });
}

} // namespace charonia
