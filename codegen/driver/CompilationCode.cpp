// The code of a compile's programs, and the schedules that are tuned for it.
#include "codegen/driver/Compilation.h"

using namespace mlir;

namespace charonia::driver {

bool Compilation::extends(const Backend &backend, const Variants &variants) {
  for (auto [base, extension] : llvm::zip(variants, llvm::drop_begin(variants)))
    if (extension.get() == &backend)
      return base->arch() == backend.base();
  return false;
}

bool Compilation::anyGains(const KernelSet &kernels, const Backend &backend) {
  for (unsigned i = 0; i < kernels.size(); ++i)
    if (backend.gains(kernels.get(i)))
      return true;
  return false;
}

LogicalResult Compilation::addCode(Variants &variants, KernelSet &kernels,
                                   TilePrograms &programs,
                                   engine::Program &program,
                                   ProgramReport &entry) {
  std::string device = codeName(variants, entry.device);
  KernelOptions kernelOptions;
  kernelOptions.cache = &cache;
  kernelOptions.activity = options.activity;
  kernelOptions.programs = &programs;
  kernelOptions.dumpDir = dump.takeFolder(device + "-code");
  codeSections.emplace_back(writer.nextSection());
  engine::CodeSection &code = codeSections.back();
  auto addImage = [&](ArrayRef<char> image) {
    return code.add(std::as_bytes(std::span(image.data(), image.size())));
  };
  auto addText = [&](StringRef text) {
    return code.addText({text.data(), text.size()});
  };
  std::vector<CompiledKernel> first, previous;
  for (auto &backend : variants) {
    bool extending = extends(*backend, variants);
    if (extending && !anyGains(kernels, *backend))
      continue;
    if (tunes() && !extending) {
      if (!entry.tuning.empty())
        forgetSchedules(kernels, entry.tuning.back());
      if (failed(tune(kernels, programs, *backend, program, entry)))
        return failure();
    }
    progress("kernels for " + backend->arch());
    kernelOptions.progress = [&](unsigned done, unsigned total) {
      progress("kernels for " + backend->arch(), done, total);
    };
    kernelOptions.ofBase = extending ? &previous : nullptr;
    FailureOr<std::vector<CompiledKernel>> compiled =
        compileKernels(kernels, *backend, kernelOptions);
    if (failed(compiled))
      return failure();
    if (failed(checkIndependent(program, *compiled,
                                UnknownLoc::get(module.getContext()))))
      return failure();
    for (const CompiledKernel &kernel : *compiled)
      entry.cachedKernels += kernel.cached;
    if (&backend == &variants.front()) {
      addScratch(program, *compiled);
      warnOfRepeatedWork(kernels, *compiled, *backend);
      first = *compiled;
    } else if (failed(checkSameLaunches(first, *compiled, *backend))) {
      return failure();
    }
    program.variants.push_back(
        makeVariant(*backend, program, *compiled, addImage, addText));
    entry.archs.push_back(backend->arch());
    previous = std::move(*compiled);
  }
  if (tunes() && !entry.tuning.empty())
    forgetSchedules(kernels, entry.tuning.back());
  writer.addSection(engine::SectionKind::Code, device + ".code", code.bytes());
  return success();
}

LogicalResult Compilation::tune(KernelSet &kernels, TilePrograms &programs,
                                Backend &backend,
                                const engine::Program &program,
                                ProgramReport &entry) {
  std::string doing = "tuning for " + backend.arch();
  progress(doing);
  TuningOptions own;
  own.timer = options.timer;
  own.seconds = options.tuningSeconds;
  own.kernelCache = &cache;
  own.activity = options.activity;
  own.keep = [&] {
    return options.tuningCache.empty() ? Status::ok()
                                       : tuning.write(options.tuningCache);
  };
  own.progress = [&](unsigned done, unsigned total) {
    progress(doing, done, total);
  };
  SmallVector<unsigned> launches(kernels.size());
  for (const engine::Step &step : program.steps)
    if (step.kind == engine::Step::Kind::Launch)
      ++launches[step.kernel];
  FailureOr<TuningReport> tuned =
      tuneKernels(kernels, launches, programs, backend, tuning, own);
  if (failed(tuned))
    return failure();
  for (auto [i, found] : llvm::enumerate(tuned->entries))
    if (found)
      manifest.build.notes.emplace_back(tuningNote(backend.arch(), i),
                                        describe(*found));
  entry.tuning.push_back(std::move(*tuned));
  return success();
}

void Compilation::forgetSchedules(KernelSet &kernels,
                                  const TuningReport &tuned) {
  for (auto [i, entry] : llvm::enumerate(tuned.entries))
    if (entry)
      kernels.get(i).removeScheduleAttr();
}

std::string Compilation::codeName(const Variants &variants, DeviceKind device) {
  std::string name(deviceKindName(device));
  return variants.size() == 1 ? variants.front()->arch() + "-" + name : name;
}

LogicalResult Compilation::checkSameLaunches(ArrayRef<CompiledKernel> first,
                                             ArrayRef<CompiledKernel> others,
                                             const Backend &backend) {
  for (auto [a, b] : llvm::zip_equal(first, others))
    if (a.scratch != b.scratch || a.counters != b.counters)
      return error() << "the kernel " << b.binary.entry << " for "
                     << backend.arch()
                     << " wants other scratch memory than that of the "
                        "program's first variant; internal error",
             failure();
  return success();
}

} // namespace charonia::driver
