#include "codegen/driver/Backend.h"
#include "codegen/cpu/CpuCodegen.h"
#include "codegen/gpu/GpuCodegen.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;

namespace charonia::driver {
namespace {

class CpuBackend : public Backend {
public:
  explicit CpuBackend(cpu::CpuIsa isa)
      : isa(isa), target(isa == cpu::CpuIsa::V4 ? emit::EmitTarget::x86v4()
                                                : emit::EmitTarget::x86v3()) {}
  DeviceKind device() const override { return DeviceKind::Cpu; }
  std::string arch() const override { return cpu::isaName(isa).str(); }
  const emit::EmitTarget &emitTarget() const override { return target; }

  FailureOr<KernelBinary> compile(func::FuncOp function,
                                  StringRef dumpDir) override {
    cpu::CpuOptions options;
    options.threads = 1; // kernels are compiled side by side
    options.dumpDir = dumpDir.str();
    FailureOr<cpu::CpuImage> image =
        cpu::compileCpuKernels({function}, isa, options);
    if (failed(image))
      return failure();
    KernelBinary binary;
    binary.image.assign(image->bytes.begin(), image->bytes.end());
    binary.entry = image->kernels[0].name;
    binary.entryOffset = image->kernels[0].entry;
    binary.scratchBytes = image->kernels[0].scratchBytes;
    return binary;
  }

private:
  cpu::CpuIsa isa;
  emit::EmitTarget target;
};

class GpuBackend : public Backend {
public:
  GpuBackend(StringRef chip, bool tf32) : target(emit::EmitTarget::gpu(chip)) {
    target.tf32 = tf32;
    options.ptxas = gpu::findPtxas();
    options.assemble = !options.ptxas.empty();
  }
  DeviceKind device() const override { return DeviceKind::Cuda; }
  std::string arch() const override { return target.chip->chip.str(); }
  std::string fingerprint() const override {
    return arch() + (options.assemble ? " cubin" : " ptx");
  }
  const emit::EmitTarget &emitTarget() const override { return target; }

  FailureOr<KernelBinary> compile(func::FuncOp function,
                                  StringRef dumpDir) override {
    gpu::GpuOptions own = options;
    if (!dumpDir.empty())
      own.dumpPrefix = (dumpDir + "/" + target.chip->chip + ".").str();
    FailureOr<gpu::GpuKernel> kernel =
        gpu::compileGpuKernel(function, *target.chip, own);
    if (failed(kernel))
      return failure();
    KernelBinary binary;
    binary.ptx = std::move(kernel->ptx);
    binary.cubin.assign(kernel->cubin.begin(), kernel->cubin.end());
    binary.entry = kernel->entry;
    binary.sharedBytes = kernel->sharedBytes;
    binary.blockThreads = kernel->blockThreads;
    binary.clusterSize = kernel->clusterSize;
    binary.waitsForPrevious = kernel->waitsForPrevious;
    binary.registers = std::max(kernel->registers, 0);
    binary.spillBytes =
        std::max(kernel->spillStores, 0) + std::max(kernel->spillLoads, 0);
    return binary;
  }

private:
  gpu::GpuOptions options;
  emit::EmitTarget target;
};

} // namespace

std::vector<std::unique_ptr<Backend>> createBackends(StringRef target,
                                                     StringRef precision) {
  std::vector<std::unique_ptr<Backend>> backends;
  if (target == "cpu" || target == "x86-64-v4")
    backends.push_back(std::make_unique<CpuBackend>(cpu::CpuIsa::V4));
  if (target == "cpu" || target == "x86-64-v3")
    backends.push_back(std::make_unique<CpuBackend>(cpu::CpuIsa::V3));
  if (GpuTarget::get(target))
    backends.push_back(
        std::make_unique<GpuBackend>(target, precision == "tf32"));
  return backends;
}

std::string listTargets() {
  std::string list = "cpu, x86-64-v3, x86-64-v4";
  for (StringRef chip : GpuTarget::known())
    list += ", " + chip.str();
  return list;
}

std::unique_ptr<Backend> createHostBackend() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  for (const char *feature :
       {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})
    if (!features.lookup(feature))
      return std::make_unique<CpuBackend>(cpu::CpuIsa::V3);
  return std::make_unique<CpuBackend>(cpu::CpuIsa::V4);
}

} // namespace charonia::driver
