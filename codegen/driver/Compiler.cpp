#include "codegen/driver/Compiler.h"
#include "charonia/runtime.h"
#include "codegen/driver/Convert.h"
#include "codegen/driver/CutWork.h"
#include "codegen/driver/Pipeline.h"
#include "codegen/driver/Prepare.h"
#include "codegen/driver/PrintKernels.h"
#include "codegen/driver/Program.h"
#include "codegen/driver/Resume.h"
#include "codegen/driver/StageDump.h"
#include "codegen/driver/Work.h"
#include "codegen/gpu/GpuCodegen.h"
#include "codegen/tile/ir/TileDialect.h"
#include "graph/analysis/Computing.h"
#include "graph/analysis/Weights.h"
#include "graph/passes/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "runtime/engine/Writer.h"
#include "runtime/plan/ProgramArena.h"
#include "llvm/ADT/StringExtras.h"
#include <deque>

using namespace mlir;

namespace charonia::driver {

void registerCompiler(DialectRegistry &registry) {
  registry.insert<graph::GraphDialect, tile::TileDialect, func::FuncDialect,
                  arith::ArithDialect, math::MathDialect, scf::SCFDialect>();
  emit::registerEmitRules(registry);
  gpu::registerGpuCodegen(registry);
}

void loadDialects(MLIRContext &context) { context.loadAllAvailableDialects(); }

std::vector<std::string> stageNames() {
  std::vector<std::string> names{"import"};
  for (const Stage &stage : commonStages())
    names.push_back(stage.name);
  for (const Stage &stage : programStages({}))
    names.push_back(stage.name);
  names.push_back("tiles");
  return names;
}

namespace {

/// Backends that write the same tile programs: the variants of one program.
using Variants = std::vector<std::unique_ptr<Backend>>;

/// The targets of one device, whose programs begin as the same module. The
/// instruction sets of a CPU share a program; a GPU's tiles, cuts and splits
/// depend on the chip, so each has its own.
struct TargetGroup {
  DeviceKind device;
  std::vector<Variants> programs;
};

/// Weights that a section of the engine holds, for other programs to share.
struct WeightSection {
  std::vector<PlacedWeight> weights;
  uint32_t section;
};

class Compiler {
public:
  Compiler(ModuleOp module, const CompileOptions &options)
      : module(module), options(options), cache(options.cacheDir),
        dump(options.dumpDir), main(module.lookupSymbol<func::FuncOp>("main")),
        optimum(graph::getOptimum(module)) {}

  FailureOr<CompileReport> run(const std::string &path) {
    if (!main)
      return module.emitError("the module has no function 'main'"), failure();
    FailureOr<std::vector<TargetGroup>> groups = groupTargets();
    if (failed(groups) || failed(checkStage()))
      return failure();
    if (failed(readTuning()))
      return failure();
    FailureOr<Signature> signature = makeSignature(main);
    if (failed(signature))
      return failure();
    manifest.signature = std::move(*signature);
    // A dumped module goes on behind the stage that it names.
    std::vector<std::string> names = stageNames();
    std::string passed = passedStage(module).str();
    auto done = passed.empty() ? names.begin() : llvm::find(names, passed);
    if (done == names.end())
      return module.emitError("names an unknown stage '") << passed << "'",
             failure();
    stagesPassed = passed.empty() ? 0 : done - names.begin() + 1;
    if (stagesPassed == 0) {
      ++stagesPassed;
      markStage(module, "import", nullptr);
      if (failed(dump.write(module, "import")))
        return failure();
      if (stopsAfter("import", module))
        return report;
    }
    unsigned stageNumber = 1;
    for (const Stage &stage : commonStages()) {
      if (stageNumber++ < stagesPassed)
        continue;
      if (failed(runStage(stage, module, nullptr)))
        return failure();
      if (stopsAfter(stage.name, module))
        return report;
    }
    for (TargetGroup &group : *groups) {
      FailureOr<bool> stopped = addPrograms(group);
      if (failed(stopped))
        return failure();
      if (*stopped && options.printKernel.empty())
        return report;
    }
    return options.printKernel.empty() ? write(path)
                                       : FailureOr<CompileReport>(report);
  }

private:
  InFlightDiagnostic error() {
    return emitError(UnknownLoc::get(module.getContext()));
  }

  void progress(StringRef what, unsigned done = 0, unsigned total = 0) {
    if (options.activity)
      options.activity->enter(what);
    if (options.progress)
      options.progress(what, done, total);
  }

  FailureOr<std::vector<TargetGroup>> groupTargets() {
    std::vector<TargetGroup> groups;
    for (const std::string &target : options.targets) {
      auto backends = createBackends(target, options.precision);
      if (backends.empty())
        return error() << "unknown target '" << target << "'; the targets are "
                       << listTargets(),
               failure();
      for (auto &backend : backends) {
        auto group = llvm::find_if(groups, [&](TargetGroup &g) {
          return g.device == backend->device();
        });
        if (group == groups.end())
          group = groups.insert(group, TargetGroup{backend->device(), {}});
        bool known = llvm::any_of(group->programs, [&](Variants &variants) {
          return llvm::any_of(
              variants, [&](auto &b) { return b->arch() == backend->arch(); });
        });
        if (known)
          continue;
        if (group->programs.empty() || backend->device() == DeviceKind::Cuda)
          group->programs.emplace_back();
        group->programs.back().push_back(std::move(backend));
      }
    }
    return groups;
  }

  LogicalResult checkStage() {
    std::vector<std::string> names = stageNames();
    if (options.stopAfter.empty() ||
        llvm::is_contained(names, options.stopAfter))
      return success();
    return error() << "unknown stage '" << options.stopAfter
                   << "'; the stages are " << llvm::join(names, ", ");
  }

  bool tunes() const { return options.timer || !options.tuningCache.empty(); }

  LogicalResult readTuning() {
    if (options.tuningCache.empty())
      return success();
    Result<TuningCache> read = TuningCache::read(options.tuningCache);
    if (!read) {
      InFlightDiagnostic diagnostic = error();
      diagnostic << "the tuning cache " << read.status().message();
      diagnostic.attachNote() << "remedy: name another file with "
                                 "--tuning-cache, or remove this one to "
                                 "measure anew";
      return failure();
    }
    tuning = *std::move(read);
    return success();
  }

  bool stopsAfter(StringRef stage, Operation *op) {
    if (options.stopAfter != stage)
      return false;
    op->print(*options.output);
    *options.output << "\n";
    return true;
  }

  /// `program` is null in stages that all programs share.
  LogicalResult runStage(const Stage &stage, ModuleOp on,
                         const PipelineOptions *program) {
    progress(stage.name);
    PassManager passes(on.getContext(), ModuleOp::getOperationName());
    stage.build(passes);
    if (options.activity)
      passes.addInstrumentation(
          std::make_unique<PassActivity>(*options.activity));
    if (failed(passes.run(on)))
      return failure();
    setPrepareAside(on);
    markStage(on, stage.name, program);
    std::string prefix =
        program ? std::string(deviceKindName(program->device)) + "-" : "";
    return dump.write(on, prefix + stage.name);
  }

  /// Compiles a device's programs; true where --stop-after or --print-kernel
  /// ended it.
  FailureOr<bool> addPrograms(TargetGroup &group) {
    ModuleOp staged = module.clone();
    programModules.push_back(staged);
    FailureOr<bool> stopped = runProgramStages(staged, group);
    if (failed(stopped) || *stopped)
      return stopped;
    Preparation *preparation = nullptr;
    if (options.stopAfter.empty() && options.printKernel.empty()) {
      FailureOr<Preparation *> made = prepare(staged);
      if (failed(made))
        return failure();
      preparation = *made;
    }
    for (func::FuncOp function : graph::getComputing(staged))
      warnOfRepeatedWork(function, graph::getSymbols(staged));
    std::vector<WeightSection> sections;
    for (auto [i, variants] : llvm::enumerate(group.programs)) {
      ModuleOp own = staged;
      if (i + 1 < group.programs.size()) {
        own = staged.clone();
        programModules.push_back(own);
      }
      stopped = addProgram(own, group.device, variants, preparation, sections);
      if (failed(stopped))
        return failure();
    }
    return stopped;
  }

  /// Compiles one program; true where --stop-after or --print-kernel ended it.
  FailureOr<bool> addProgram(ModuleOp copy, DeviceKind device,
                             Variants &variants, Preparation *preparation,
                             std::vector<WeightSection> &sections) {
    KernelSet kernels;
    auto function = copy.lookupSymbol<func::FuncOp>("main");
    SmallVector<const Backend *> backends;
    for (auto &backend : variants)
      if (!extends(*backend, variants))
        backends.push_back(backend.get());
    progress("work of kernels for " + variants.front()->arch());
    TilePrograms programs;
    for (func::FuncOp computing : graph::getComputing(copy))
      cutRepeatedWork(computing, backends, programs, options.activity);
    PassManager verifier(copy.getContext(), ModuleOp::getOperationName());
    verifier.addPass(graph::createVerifyKernels());
    if (failed(verifier.run(copy)))
      return failure();
    // Where a kernel waits for others by itself, it may do so at its end.
    bool waves = options.waves && llvm::any_of(variants, [](auto &backend) {
                   return backend->device() == DeviceKind::Cuda &&
                          backend->emitTarget().chip->dependentLaunch;
                 });
    ProgramLayout layout = layOutProgram(function, device, kernels, waves);
    if (failed(checkWaves(layout.program, kernels,
                          UnknownLoc::get(copy.getContext()))))
      return failure();
    layout.program.precision = options.precision;
    if (options.stopAfter == "tiles" || !options.printKernel.empty()) {
      LogicalResult printed =
          options.stopAfter == "tiles"
              ? printTiles(kernels, *variants.front(), *options.output)
              : printKernel(kernels, options.printKernel, variants,
                            UnknownLoc::get(copy.getContext()),
                            *options.output);
      return failed(printed) ? FailureOr<bool>() : true;
    }
    ProgramReport entry;
    entry.device = device;
    entry.prepareKernels = preparation->numKernels();
    if (failed(addCode(variants, kernels, programs, layout.program, entry)))
      return failure();
    addWeights(layout, *preparation, sections, entry);
    if (failed(addArena(layout.program, codeName(variants, device), entry)))
      return failure();
    noteFusion(copy, codeName(variants, device), *variants.front());
    entry.launches =
        llvm::count_if(layout.program.steps, [](const engine::Step &step) {
          return step.kind == engine::Step::Kind::Launch;
        });
    entry.kernels = layout.program.kernels.size();
    report.programs.push_back(std::move(entry));
    manifest.programs.push_back(std::move(layout.program));
    return false;
  }

  /// True where --stop-after ended it.
  FailureOr<bool> runProgramStages(ModuleOp copy, const TargetGroup &group) {
    PipelineOptions pipeline;
    pipeline.device = group.device;
    pipeline.precision = options.precision;
    pipeline.panelColumns =
        group.programs.front().front()->emitTarget().panelColumns;
    if (group.device == DeviceKind::Cuda) {
      pipeline.multiprocessors = 0;
      for (const Variants &variants : group.programs)
        pipeline.multiprocessors =
            std::max(pipeline.multiprocessors,
                     variants.front()->emitTarget().chip->multiprocessors);
    }
    if (failed(checkProgram(copy, pipeline)))
      return failure();
    unsigned stageNumber = 1 + commonStages().size();
    for (const Stage &stage : programStages(pipeline)) {
      if (stageNumber++ < stagesPassed)
        continue;
      if (failed(runStage(stage, copy, &pipeline)))
        return failure();
      if (stopsAfter(stage.name, copy))
        return true;
    }
    return false;
  }

  /// Whether the program has the variant that a backend extends, right before
  /// its own.
  static bool extends(const Backend &backend, const Variants &variants) {
    for (auto [base, extension] :
         llvm::zip(variants, llvm::drop_begin(variants)))
      if (extension.get() == &backend)
        return base->arch() == backend.base();
    return false;
  }

  static bool anyGains(const KernelSet &kernels, const Backend &backend) {
    for (unsigned i = 0; i < kernels.size(); ++i)
      if (backend.gains(kernels.get(i)))
        return true;
    return false;
  }

  /// Compiles the kernels for all variants into a section. A variant in which
  /// nothing would be other code than in the one it extends is left out.
  LogicalResult addCode(Variants &variants, KernelSet &kernels,
                        TilePrograms &programs, engine::Program &program,
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
    writer.addSection(engine::SectionKind::Code, device + ".code",
                      code.bytes());
    return success();
  }

  /// Chooses the schedules of the kernels by the tuning cache and measurements,
  /// and notes them in the engine.
  LogicalResult tune(KernelSet &kernels, TilePrograms &programs,
                     Backend &backend, const engine::Program &program,
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

  /// Those of one variant are not those of the next.
  static void forgetSchedules(KernelSet &kernels, const TuningReport &tuned) {
    for (auto [i, entry] : llvm::enumerate(tuned.entries))
      if (entry)
        kernels.get(i).removeScheduleAttr();
  }

  /// "cpu", "sm_90a-cuda".
  static std::string codeName(const Variants &variants, DeviceKind device) {
    std::string name(deviceKindName(device));
    return variants.size() == 1 ? variants.front()->arch() + "-" + name : name;
  }

  /// A program's steps give all its variants the same arguments.
  LogicalResult checkSameLaunches(ArrayRef<CompiledKernel> first,
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

  /// What computes weights when the engine is written.
  FailureOr<Preparation *> prepare(ModuleOp staged) {
    std::unique_ptr<Backend> host = createHostBackend();
    KernelOptions prepareOptions;
    prepareOptions.cache = &cache;
    prepareOptions.activity = options.activity;
    progress("preparation of weights");
    prepareOptions.progress = [&](unsigned done, unsigned total) {
      progress("preparation of weights", done, total);
    };
    FailureOr<std::unique_ptr<Preparation>> preparation =
        Preparation::create(findPrepare(staged), *host, prepareOptions);
    if (failed(preparation))
      return failure();
    preparations.push_back(std::move(*preparation));
    return preparations.back().get();
  }

  /// The program's section of weights: one that holds the same at the same
  /// places already, or a new one.
  void addWeights(ProgramLayout &layout, Preparation &preparation,
                  std::vector<WeightSection> &sections, ProgramReport &entry) {
    entry.weightBytes = layout.weightBytes;
    if (layout.weights.empty())
      return;
    auto shared = llvm::find_if(sections, [&](const WeightSection &section) {
      return section.weights == layout.weights;
    });
    if (shared == sections.end()) {
      sections.push_back({layout.weights, 0});
      shared = std::prev(sections.end());
      shared->section =
          writeWeights(layout, preparation, deviceKindName(entry.device));
    }
    layout.program.weightsSection = shared->section;
  }

  /// Notes what was decided of kernels, with the microseconds that one kernel
  /// is estimated to save on a GPU: a step of a chain of launches takes one,
  /// and what is not stored nor read has memory's rate.
  void noteFusion(ModuleOp program, const std::string &name,
                  const Backend &backend) {
    SmallVector<StringAttr> lines;
    for (func::FuncOp function : graph::getComputing(program))
      if (auto list = function->getAttrOfType<ArrayAttr>("graph.fusion"))
        llvm::append_range(lines, list.getAsRange<StringAttr>());
    constexpr double step = 1;
    for (auto [i, line] : llvm::enumerate(lines)) {
      SmallVector<StringRef> fields;
      line.getValue().split(fields, '\t');
      int64_t count = 0, bytes = 0;
      std::string saved;
      if (fields.size() == 5 && !fields[2].getAsInteger(10, count) &&
          !fields[3].getAsInteger(10, bytes) &&
          backend.device() == DeviceKind::Cuda)
        saved = llvm::formatv("{0:F1}",
                              count * step +
                                  bytes / backend.emitTarget().chip->memoryRate)
                    .str();
      manifest.build.notes.emplace_back(name + ".fusion." + std::to_string(i),
                                        (line.getValue() + "\t" + saved).str());
    }
  }

  /// Plans the arena of the program of that name (see codeName) at the sizes to
  /// optimize for, for the reports.
  LogicalResult addArena(const engine::Program &program,
                         const std::string &name, ProgramReport &entry) {
    auto arena = plan::planProgram(program, {optimum.data(), optimum.size()});
    if (!arena)
      return error() << arena.status().message(), failure();
    entry.arenaPeak = arena->packed.peak;
    entry.arenaLowerBound = arena->packed.lowerBound;
    auto &notes = manifest.build.notes;
    notes.emplace_back(name + ".arena.peak",
                       std::to_string(arena->packed.peak));
    notes.emplace_back(name + ".arena.lowerBound",
                       std::to_string(arena->packed.lowerBound));
    return success();
  }

  /// The weights stream to the file: those of the model from where they are
  /// mapped, prepared ones one at a time.
  uint32_t writeWeights(const ProgramLayout &layout, Preparation &preparation,
                        StringRef device) {
    auto weights = std::make_shared<std::vector<PlacedWeight>>(layout.weights);
    return writer.addSection(
        engine::SectionKind::Weights, (device + ".weights").str(),
        layout.weightBytes,
        [this, weights, &preparation](engine::SectionSink &sink) -> Status {
          graph::WeightStore &store =
              module.getContext()
                  ->getLoadedDialect<graph::GraphDialect>()
                  ->getWeights();
          static const char zeros[4096] = {};
          uint64_t position = 0;
          for (const auto &[i, weight] : llvm::enumerate(*weights)) {
            progress("weights", i, weights->size());
            CHARONIA_RETURN_IF_ERROR(
                sink.write(zeros, weight.offset - position));
            position = weight.offset + weight.size;
            if (preparation.contains(weight.name)) {
              CHARONIA_RETURN_IF_ERROR(preparation.compute(
                  weight.name, [&](std::span<const std::byte> bytes) {
                    return sink.write(bytes);
                  }));
              continue;
            }
            const graph::Weight *stored = store.lookup(weight.name);
            if (!stored)
              return Status(StatusCode::Internal,
                            "there is no weight '" + weight.name + "'");
            CHARONIA_RETURN_IF_ERROR(
                sink.write(stored->bytes.data(), stored->bytes.size()));
          }
          return Status::ok();
        });
  }

  FailureOr<CompileReport> write(const std::string &path) {
    manifest.build.compiler = "charonia " + std::string(version());
    manifest.build.modelName = options.record.modelName;
    manifest.build.sourceHash = options.record.sourceHash;
    manifest.build.options = options.record.options;
    progress("writing");
    if (Status status = writer.write(manifest, path, options.beforeCommit);
        !status)
      return error() << status.message(), failure();
    report.written = true;
    if (std::string why = cache.problem(); !why.empty()) {
      InFlightDiagnostic warning =
          emitWarning(UnknownLoc::get(module.getContext()));
      warning << "compiled kernels cannot be kept for the next compile: "
              << why;
      warning.attachNote() << "remedy: name a folder that can be written with "
                              "--cache-dir, or do without by --no-cache";
    }
    return report;
  }

  ModuleOp module;
  const CompileOptions &options;
  KernelCache cache;
  TuningCache tuning;
  StageDump dump;
  func::FuncOp main;
  SmallVector<int64_t> optimum;
  engine::Manifest manifest;
  engine::Writer writer;
  CompileReport report;
  /// Leading stages of stageNames() that the module has behind it.
  unsigned stagesPassed = 0;
  std::deque<engine::CodeSection> codeSections;
  std::vector<std::unique_ptr<Preparation>> preparations;
  std::vector<OwningOpRef<ModuleOp>> programModules;
};

} // namespace

FailureOr<CompileReport> compile(ModuleOp module, const CompileOptions &options,
                                 const std::string &path) {
  return Compiler(module, options).run(path);
}

} // namespace charonia::driver
