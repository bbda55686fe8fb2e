// A compile's stages, and the programs that come of them.
#include "codegen/driver/Compiler.h"
#include "charonia/runtime.h"
#include "codegen/driver/Compilation.h"
#include "codegen/driver/Convert.h"
#include "codegen/driver/CutWork.h"
#include "codegen/driver/PrintKernels.h"
#include "codegen/driver/Resume.h"
#include "codegen/driver/Work.h"
#include "codegen/gpu/GpuCodegen.h"
#include "codegen/tile/ir/TileDialect.h"
#include "graph/analysis/Computing.h"
#include "graph/passes/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"

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

FailureOr<CompileReport> Compilation::run(const std::string &path) {
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

void Compilation::progress(StringRef what, unsigned done, unsigned total) {
  if (options.activity)
    options.activity->enter(what);
  if (options.progress)
    options.progress(what, done, total);
}

FailureOr<std::vector<TargetGroup>> Compilation::groupTargets() {
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

LogicalResult Compilation::checkStage() {
  std::vector<std::string> names = stageNames();
  if (options.stopAfter.empty() || llvm::is_contained(names, options.stopAfter))
    return success();
  return error() << "unknown stage '" << options.stopAfter
                 << "'; the stages are " << llvm::join(names, ", ");
}

LogicalResult Compilation::readTuning() {
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

bool Compilation::stopsAfter(StringRef stage, Operation *op) {
  if (options.stopAfter != stage)
    return false;
  op->print(*options.output);
  *options.output << "\n";
  return true;
}

LogicalResult Compilation::runStage(const Stage &stage, ModuleOp on,
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

FailureOr<bool> Compilation::addPrograms(TargetGroup &group) {
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

FailureOr<bool> Compilation::addProgram(ModuleOp copy, DeviceKind device,
                                        Variants &variants,
                                        Preparation *preparation,
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
                          UnknownLoc::get(copy.getContext()), *options.output);
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

FailureOr<bool> Compilation::runProgramStages(ModuleOp copy,
                                              const TargetGroup &group) {
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

FailureOr<CompileReport> Compilation::write(const std::string &path) {
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
    warning << "compiled kernels cannot be kept for the next compile: " << why;
    warning.attachNote() << "remedy: name a folder that can be written with "
                            "--cache-dir, or do without by --no-cache";
  }
  return report;
}

FailureOr<CompileReport> compile(ModuleOp module, const CompileOptions &options,
                                 const std::string &path) {
  return Compilation(module, options).run(path);
}

} // namespace charonia::driver
