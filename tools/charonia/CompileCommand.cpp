#include "codegen/driver/Backend.h"
#include "codegen/driver/Compiler.h"
#include "codegen/driver/KernelCache.h"
#include "codegen/driver/Watchdog.h"
#include "codegen/driver/WeightFile.h"
#include "frontends/Importer.h"
#include "graph/ir/Dialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "runtime/engine/Format.h"
#include "tools/charonia/Commands.h"
#include "tools/charonia/Console.h"
#include "tools/charonia/RuntimeTimer.h"
#include "tools/charonia/Targets.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/xxhash.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

using namespace mlir;

namespace charonia::tool {

/// Whether a file begins as engines do.
static bool isEngine(const std::string &path) {
  bool isFile = false;
  if (llvm::sys::fs::is_regular_file(path, isFile) || !isFile)
    return false;
  char magic[sizeof(engine::formatMagic)];
  return std::ifstream(path, std::ios::binary).read(magic, sizeof(magic)) &&
         std::ranges::equal(magic, engine::formatMagic);
}

/// Whether the file at `path` is the model, or may be one of its files: what
/// lies in the model's folder and is no engine.
static bool isOfModel(const std::string &path, const std::string &model) {
  namespace fs = llvm::sys::fs;
  bool same = false;
  if (!fs::equivalent(path, model, same) && same)
    return true;
  uint64_t bytes = 0;
  if (!fs::is_regular_file(path) || fs::file_size(path, bytes) || bytes == 0 ||
      isEngine(path))
    return false;
  llvm::SmallString<128> file, folder(model);
  if (!fs::is_directory(model))
    llvm::sys::path::remove_filename(folder);
  if (folder.empty())
    folder = ".";
  if (fs::real_path(path, file) || fs::real_path(folder, folder))
    return false;
  return file.starts_with(folder) &&
         llvm::sys::path::is_separator(file[folder.size()]);
}

namespace {

// What import lets through, an engine can hold.
static_assert(frontend::maxInputsAndOutputs <= engine::maxTensors);

/// The user's words for a place: the model's node, or a position in a file.
std::string describe(Location location) {
  std::string text;
  if (auto name = dyn_cast<NameLoc>(location))
    return "node '" + printable(name.getName().str()) + "'";
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location part : fused.getLocations())
      if (std::string words = describe(part);
          !words.empty() && text.find(words) == std::string::npos)
        text += (text.empty() ? "" : ", ") + words;
    return text;
  }
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return describe(call.getCaller());
  if (auto file = dyn_cast<FileLineColLoc>(location))
    return printable(file.getFilename().str()) + ":" +
           std::to_string(file.getLine()) + ":" +
           std::to_string(file.getColumn());
  return text;
}

class Session {
public:
  explicit Session(const CompileCommand &given)
      : command(given), line(!command.quiet) {
    // A folder's name, as shells complete it.
    StringRef model = command.model;
    if (size_t end = model.find_last_not_of('/'); end != StringRef::npos)
      command.model = model.take_front(end + 1).str();
  }

  int run() {
    if (int status = prepare())
      return status;
    watchdog.emplace(
        driver::Limits{command.timeLimit,
                       static_cast<uint64_t>(command.memoryLimit * 1e6)},
        [&](const std::string &limit) { giveUp(limit); });
    driver::registerCompiler(registry);
    context.emplace(registry, MLIRContext::Threading::DISABLED);
    // Messages name the model's node; the IR is in the dumps.
    context->printOpOnDiagnostic(false);
    if (command.threads != 1) {
      pool.emplace(llvm::hardware_concurrency(command.threads));
      context->setThreadPool(*pool);
    }
    driver::loadDialects(*context);
    ScopedDiagnosticHandler handler(&*context, [&](Diagnostic &diagnostic) {
      report(diagnostic);
      return success();
    });
    OwningOpRef<ModuleOp> module = import();
    if (!module)
      return Failed;
    symbols = graph::getSymbols(*module);
    return compile(*module);
  }

private:
  /// Ends the process from the watchdog's thread: the engine, still without a
  /// name, and the compiler's temporary files go with it.
  [[noreturn]] void giveUp(const std::string &limit) {
    std::string text = "error: " + printable(command.model) +
                       ": compiling is over " + limit +
                       "\n  at: " + activity.describe() +
                       "\n  remedy: raise the limit, or see with --verbose "
                       "what a compile without it spends its time on\n";
    if (!command.quiet && isatty(STDERR_FILENO))
      text = "\r\033[K" + text;
    if (write(STDERR_FILENO, text.data(), text.size()) < 0)
      _exit(Failed);
    llvm::sys::RunInterruptHandlers();
    _exit(Failed);
  }

  /// What can be said before the model is read. Returns the exit status.
  int prepare() {
    for (const std::string &shape : command.shapes) {
      if (std::string error = frontend::parseShapeOption(shape, shapes);
          !error.empty())
        return fail(error), Usage;
    }
    for (const auto &[input, dims] : shapes)
      for (auto [i, dim] : llvm::enumerate(dims))
        if (dim.range && dim.range->max == 0)
          llvm::errs() << "warning: --shape: dimension " << i << " of '"
                       << printable(input)
                       << "' is fixed to 0, so the input holds no values\n";
    engine = command.engine;
    if (engine.empty() && command.stopAfter.empty() &&
        command.printKernel.empty()) {
      llvm::SmallString<128> path(command.model);
      llvm::sys::path::replace_extension(path, "engine");
      engine = path.str().str();
    }
    if (isEngine(command.model))
      return fail(printable(command.model) +
                  ": is an engine, not a model; charonia run, bench and "
                  "inspect take it");
    if (StringRef(command.model).ends_with(".mlir") &&
        (!command.weights.empty() || !command.program.empty()))
      return fail(printable(command.model) +
                  ": is a dumped module, which --weights and --program cannot "
                  "change: they are for models"),
             Usage;
    if (!engine.empty() && !command.weights.empty() &&
        isOfModel(engine, command.weights))
      return fail(printable(engine) + ": the engine would replace the weights; "
                                      "name another file with -o"),
             Usage;
    if (!engine.empty() && isOfModel(engine, command.model))
      return fail(printable(engine) + ": the engine would replace the model; "
                                      "name another file with -o"),
             Usage;
    Result<std::vector<std::string>> expanded =
        expandTargets(command.targets, driver::createHostBackend()->arch(),
                      compileTargetNames());
    if (!expanded)
      return fail(expanded.status());
    targets = *std::move(expanded);
    return Done;
  }

  std::string textOf(const Diagnostic &diagnostic) const {
    return printableLines(graph::nameSymbols(diagnostic.str(), symbols));
  }

  void report(Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error &&
        diagnostic.getSeverity() != DiagnosticSeverity::Warning)
      return;
    line.clear();
    bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
    std::string place = describe(diagnostic.getLocation());
    llvm::errs() << (isError ? "error: " : "warning: ")
                 << printable(command.model) << ": "
                 << (place.empty() ? "" : place + ": ") << textOf(diagnostic)
                 << "\n";
    for (Diagnostic &note : diagnostic.getNotes())
      llvm::errs() << "  " << textOf(note) << "\n";
  }

  OwningOpRef<ModuleOp> import() {
    line.show("reading the model", 0, 0);
    activity.enter("reading the model");
    frontend::ImportOptions options;
    options.shapes = shapes;
    options.program = command.program;
    options.signature = command.signature;
    options.inputs = command.inputs;
    options.outputs = command.outputs;
    options.weights = command.weights;
    options.progress = [&](const std::string &node, const std::string &) {
      activity.note("node '" + printable(node) + "'");
    };
    if (StringRef(command.model).ends_with(".mlir"))
      return parse();
    frontend::ImportResult result =
        frontend::importModel(command.model, options, *context);
    line.clear();
    if (!command.quiet || !result.module)
      llvm::errs() << result.toString();
    return std::move(result.module);
  }

  /// A dumped module, and the weights that were dumped beside it.
  OwningOpRef<ModuleOp> parse() {
    llvm::sys::fs::file_status status;
    if (!llvm::sys::fs::status(command.model, status) &&
        status.type() != llvm::sys::fs::file_type::regular_file) {
      line.clear();
      return fail(printable(command.model) + ": is not a regular file"),
             nullptr;
    }
    OwningOpRef<ModuleOp> module =
        parseSourceFile<ModuleOp>(command.model, ParserConfig(&*context));
    if (!module)
      return nullptr;
    StringRef folder = llvm::sys::path::parent_path(command.model);
    std::string error =
        driver::readWeightFiles(*module, folder.empty() ? "." : folder.str());
    if (error.empty())
      return module;
    line.clear();
    return fail(error), nullptr;
  }

  /// Of the module and of all weights that it names.
  std::string hashOf(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream, OpPrintingFlags().enableDebugInfo());
    uint64_t hash = llvm::xxh3_64bits(text);
    graph::WeightStore &store =
        context->getLoadedDialect<graph::GraphDialect>()->getWeights();
    module.walk([&](graph::WeightOp op) {
      if (const graph::Weight *weight = store.lookup(op.getName())) {
        uint64_t parts[] = {hash,
                            llvm::xxh3_64bits(StringRef(weight->bytes.data(),
                                                        weight->bytes.size()))};
        hash = llvm::xxh3_64bits(
            StringRef(reinterpret_cast<char *>(parts), sizeof(parts)));
      }
    });
    return llvm::utohexstr(hash, /*LowerCase=*/true, /*Width=*/16);
  }

  int compile(ModuleOp module) {
    driver::CompileOptions options;
    options.targets = targets;
    options.precision = command.precision;
    options.waves = !command.noWaves;
    options.dumpDir = command.dumpDir;
    options.stopAfter = command.stopAfter;
    options.printKernel = command.printKernel;
    options.output = &llvm::outs();
    if (!command.noCache)
      options.cacheDir = command.cacheDir.empty()
                             ? driver::KernelCache::defaultFolder()
                             : command.cacheDir;
    options.progress = [&](StringRef what, unsigned done, unsigned total) {
      line.show({what.data(), what.size()}, done, total);
    };
    options.activity = &activity;
    options.tuningCache = command.tuningCache;
    std::unique_ptr<driver::KernelTimer> timer;
    if (!command.tune.empty()) {
      timer = makeRuntimeTimer();
      options.timer = timer.get();
      if (command.tune != "all")
        options.tuningSeconds = std::strtod(command.tune.c_str(), nullptr);
    }
    options.beforeCommit = [&] { watchdog->disarm(); };
    activity.enter("hashing the model");
    options.record.modelName = llvm::sys::path::filename(command.model).str();
    options.record.sourceHash = hashOf(module);
    options.record.options = {{"target", llvm::join(targets, ",")},
                              {"precision", command.precision}};
    if (command.noWaves)
      options.record.options.emplace_back("waves", "no");
    for (const std::string &shape : command.shapes)
      options.record.options.emplace_back("shape", shape);
    if (!command.weights.empty())
      options.record.options.emplace_back("weights", command.weights);
    if (!command.program.empty())
      options.record.options.emplace_back("program", command.program);
    if (!command.signature.empty())
      options.record.options.emplace_back("signature", command.signature);
    if (!command.inputs.empty())
      options.record.options.emplace_back("inputs",
                                          llvm::join(command.inputs, ","));
    if (!command.outputs.empty())
      options.record.options.emplace_back("outputs",
                                          llvm::join(command.outputs, ","));

    FailureOr<driver::CompileReport> report =
        driver::compile(module, options, engine);
    line.clear();
    if (command.verbose)
      printCost();
    if (failed(report))
      return Failed;
    if (command.verbose)
      printMeasured(*report);
    if (report->written && !command.quiet)
      print(*report);
    return Done;
  }

  void printCost() {
    auto list = [](const char *what,
                   const std::vector<driver::Activity::Cost> &costs) {
      Table table({what, "seconds"});
      for (const driver::Activity::Cost &cost : costs)
        table.add({cost.name, formatNumber(cost.seconds)});
      llvm::errs() << table.str();
    };
    list("stage", activity.stages());
    list("slowest kernels", activity.slowestKernels());
  }

  /// Every candidate of every kernel that was measured.
  static void printMeasured(const driver::CompileReport &report) {
    Table table({"us", "rank", "kernel", "schedule"});
    bool any = false;
    for (const driver::ProgramReport &program : report.programs)
      for (const driver::TuningReport &tuning : program.tuning)
        for (const driver::MeasuredKernel &kernel : tuning.measured)
          for (const auto &candidate : kernel.candidates) {
            any = true;
            table.add({formatNumber(candidate.seconds * 1e6, 2),
                       std::to_string(candidate.rank), printable(kernel.name),
                       candidate.schedule});
          }
    if (any)
      llvm::errs() << table.str();
  }

  static void printTuning(const std::string &arch,
                          const driver::TuningReport &tuning) {
    double gain = 0;
    unsigned entries = 0, candidates = 0;
    for (const auto &entry : tuning.entries)
      if (entry) {
        ++entries;
        gain += std::log(double(entry->untunedNanoseconds) /
                         double(entry->nanoseconds));
      }
    for (const driver::MeasuredKernel &kernel : tuning.measured)
      candidates += kernel.candidates.size();
    llvm::outs() << "tuned for " << arch << ": " << tuning.measured.size()
                 << " kernels measured with " << candidates << " candidates in "
                 << formatNumber(tuning.seconds, 1) << " s, " << tuning.known
                 << " from the tuning cache, " << tuning.left
                 << " left to the cost model";
    if (entries)
      llvm::outs() << "; they are " << formatNumber(std::exp(gain / entries), 3)
                   << "x as fast as by the cost model (geometric mean)";
    llvm::outs() << "\n";
  }

  void print(const driver::CompileReport &report) {
    for (const driver::ProgramReport &program : report.programs) {
      llvm::outs() << deviceKindName(program.device) << " ("
                   << llvm::join(program.archs, ", ") << "), "
                   << command.precision << ": " << program.launches
                   << " launches of " << program.kernels << " kernels ("
                   << program.cachedKernels << " from the cache), weights "
                   << formatBytes(program.weightBytes) << ", arena "
                   << formatBytes(program.arenaPeak) << " (at least "
                   << formatBytes(program.arenaLowerBound) << ")\n";
      for (auto [arch, tuning] : llvm::zip(program.archs, program.tuning))
        printTuning(arch, tuning);
    }
    uint64_t size = 0;
    if (!llvm::sys::fs::file_size(engine, size))
      llvm::outs() << "wrote " << printable(engine) << ", " << formatBytes(size)
                   << "\n";
  }

  CompileCommand command;
  std::string engine; ///< Empty: none is written.
  std::vector<std::string> targets;
  frontend::ShapeOptions shapes;
  ProgressLine line;
  driver::Activity activity;
  DialectRegistry registry;
  llvm::SmallVector<graph::Symbol> symbols; ///< Of the imported module.
  std::optional<llvm::DefaultThreadPool> pool;
  std::optional<MLIRContext> context;
  std::optional<driver::Watchdog> watchdog; ///< Ends before what it looks at.
};

} // namespace

int run(const CompileCommand &command) {
  int status = Session(command).run();
  llvm::outs().flush();
  if (std::error_code error = llvm::outs().error()) {
    llvm::outs().clear_error();
    return fail("standard output cannot be written: " + error.message());
  }
  return status;
}

std::vector<std::string> compileTargetNames() {
  llvm::SmallVector<StringRef> names;
  std::string list = driver::listTargets();
  StringRef(list).split(names, ", ");
  return {names.begin(), names.end()};
}

std::vector<std::string> compileStageNames() { return driver::stageNames(); }

std::string checkShapeRange(const std::string &text) {
  frontend::ShapeOptions shapes;
  std::string error = frontend::parseShapeOption(text, shapes);
  // The parser of the command line names the option.
  StringRef rest = error;
  rest.consume_front("--shape ");
  return rest.str();
}

} // namespace charonia::tool
