#include "codegen/driver/Backend.h"
#include "codegen/cpu/CpuCodegen.h"
#include "codegen/driver/Convert.h"
#include "codegen/driver/Silence.h"
#include "codegen/gpu/GpuCodegen.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;

namespace charonia::driver {
namespace {

class CpuBackend : public Backend {
public:
  explicit CpuBackend(cpu::CpuIsa isa)
      : isa(isa), target(cpu::hasAvx512(isa) ? emit::EmitTarget::x86v4()
                                             : emit::EmitTarget::x86v3()) {}
  DeviceKind device() const override { return DeviceKind::Cpu; }
  std::string arch() const override { return cpu::isaName(isa).str(); }
  std::string base() const override {
    return isa == cpu::CpuIsa::V4Vnni ? cpu::isaName(cpu::CpuIsa::V4).str()
                                      : std::string();
  }
  /// VNNI multiplies integers of 8 and 16 bits.
  bool gains(graph::KernelOp kernel) const override {
    return llvm::any_of(
        kernel.getBody().front().getOps<graph::GraphOpInterface>(),
        [](graph::GraphOpInterface op) {
          if (op.getRole() != graph::OpRole::Contraction)
            return false;
          Type element = getElementTypeOrSelf(op->getOperand(0).getType());
          return element.isInteger(8) || element.isInteger(16);
        });
  }
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

static engine::TensorMap toEngine(const gpu::TensorMap &map) {
  engine::TensorMap result;
  result.argument = map.argument;
  result.elementBytes = map.elementBytes;
  result.swizzle = map.swizzle;
  for (AffineExpr extent : map.extents)
    result.extents.push_back(toShapeExpr(extent));
  for (AffineExpr stride : map.strides)
    result.strides.push_back(toShapeExpr(stride));
  result.box.assign(map.box.begin(), map.box.end());
  result.steps.assign(map.steps.begin(), map.steps.end());
  result.lower.assign(map.lower.begin(), map.lower.end());
  result.upper.assign(map.upper.begin(), map.upper.end());
  return result;
}

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
  bool fits(func::FuncOp function) const override {
    Silence silence(function.getContext());
    return gpu::fitsSharedMemory(function, *target.chip);
  }

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
    binary.instances = kernel->instances.value_or(0);
    binary.waitsForPrevious = kernel->waitsForPrevious;
    binary.waitsAtEnd = kernel->waitsAtEnd;
    for (const gpu::TensorMap &map : kernel->maps)
      binary.maps.push_back(toEngine(map));
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
  for (cpu::CpuIsa isa :
       {cpu::CpuIsa::V4, cpu::CpuIsa::V4Vnni, cpu::CpuIsa::V3})
    if (target == "cpu" || target == cpu::isaName(isa))
      backends.push_back(std::make_unique<CpuBackend>(isa));
  if (GpuTarget::get(target))
    backends.push_back(
        std::make_unique<GpuBackend>(target, precision == "tf32"));
  return backends;
}

std::string listTargets() {
  std::string list = "cpu, x86-64-v3, x86-64-v4, x86-64-v4-vnni";
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
  return std::make_unique<CpuBackend>(
      features.lookup("avx512vnni") ? cpu::CpuIsa::V4Vnni : cpu::CpuIsa::V4);
}

} // namespace charonia::driver
