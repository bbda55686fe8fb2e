#include "codegen/driver/Kernels.h"
#include "codegen/driver/Convert.h"
#include "codegen/driver/CutWork.h"
#include "codegen/driver/IndexWidth.h"
#include "codegen/tile/ir/IndexAttributes.h"
#include "codegen/tile/ir/TileDialect.h"
#include "graph/analysis/IterationSpace.h"
#include "mlir/IR/Threading.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace charonia::driver {

static std::string print(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream, OpPrintingFlags().useLocalScope());
  return text;
}

/// The kernel's name without the number that tells it from others.
static StringRef baseName(StringRef name) {
  auto [stem, number] = name.rsplit('.');
  return llvm::all_of(number, llvm::isDigit) ? stem : name;
}

/// Positions of the shape symbols that a kernel's types and attributes have, in
/// the order in which they first occur.
static SmallVector<unsigned> usedSymbols(graph::KernelOp kernel) {
  llvm::SmallSetVector<unsigned, 8> found;
  AttrTypeWalker walker;
  walker.addWalk([&](AffineMapAttr attribute) {
    for (AffineExpr result : attribute.getValue().getResults())
      result.walk([&](AffineExpr e) {
        if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
          found.insert(symbol.getPosition());
      });
  });
  for (Type type : kernel->getOperandTypes())
    walker.walk(type);
  kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
    walker.walk(op->getAttrDictionary());
    for (Type type : op->getResultTypes())
      walker.walk(type);
  });
  return found.takeVector();
}

/// Makes symbol `used[i]` symbol i in all types and attributes below `module`.
static void renumberSymbols(ModuleOp module, ArrayRef<unsigned> used) {
  if (used.empty())
    return;
  MLIRContext *context = module.getContext();
  graph::Exprs numbers(*llvm::max_element(used) + 1,
                       getAffineConstantExpr(0, context));
  for (auto [i, symbol] : llvm::enumerate(used))
    numbers[symbol] = getAffineSymbolExpr(i, context);
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](AffineMapAttr attribute) -> Attribute {
    AffineMap map = attribute.getValue();
    graph::Exprs results;
    for (AffineExpr result : map.getResults())
      results.push_back(graph::simplify(result.replaceSymbols(numbers)));
    return AffineMapAttr::get(graph::mapOf(map.getNumDims(), results, context));
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

SmallVector<StringRef, 2> takeMarks(graph::KernelOp kernel) {
  SmallVector<StringRef, 2> marks;
  for (StringRef mark : {graph::kBesidePreviousAttr, graph::kBesideNextAttr})
    if (kernel->removeAttr(mark))
      marks.push_back(mark);
  return marks;
}

KernelSet::Launch KernelSet::add(graph::KernelOp kernel,
                                 llvm::function_ref<bool(Value)> isWeight) {
  OpBuilder builder(kernel.getContext());
  Location unknown = builder.getUnknownLoc();
  Entry entry{ModuleOp::create(unknown), {}, {}};
  SmallVector<Type> arguments;
  for (Value input : kernel.getInputs())
    if (!isWeight(input))
      arguments.push_back(input.getType());
  builder.setInsertionPointToEnd(entry.module->getBody());
  auto function = func::FuncOp::create(
      builder, unknown, "main",
      builder.getFunctionType(arguments, kernel.getResultTypes()));
  builder.setInsertionPointToEnd(function.addEntryBlock());
  entry.kernel = cast<graph::KernelOp>(kernel->cloneWithoutRegions());
  kernel.getBody().cloneInto(&entry.kernel.getBody(),
                             *std::make_unique<IRMapping>());
  unsigned next = 0;
  for (OpOperand &operand : entry.kernel->getOpOperands())
    operand.set(isWeight(operand.get())
                    ? Value(graph::WeightOp::create(
                          builder, unknown, operand.get().getType(),
                          builder.getStringAttr("weight")))
                    : Value(function.getArgument(next++)));
  builder.insert(entry.kernel);
  func::ReturnOp::create(builder, unknown, entry.kernel.getResults());
  entry.kernel.setSymName(baseName(kernel.getSymName()));

  Launch launch;
  launch.symbols = usedSymbols(kernel);
  renumberSymbols(*entry.module, launch.symbols);
  auto module = kernel->getParentOfType<ModuleOp>();
  auto all = graph::getSymbols(module);
  graph::Facts facts = graph::getFacts(module);
  SmallVector<graph::Symbol> named, unnamed;
  for (unsigned symbol : launch.symbols) {
    named.push_back(all[symbol]);
    // Constraints of the model do not come along, but what they make of sizes.
    named.back().divisor = facts.symbolDivisors[symbol];
  }
  unnamed = named;
  for (graph::Symbol &symbol : unnamed)
    symbol.name.clear();
  graph::setSymbols(*entry.module, unnamed);
  SmallVector<StringRef, 2> marks = takeMarks(entry.kernel);
  std::string content = print(*entry.module);
  entry.alone = content.size();
  content += llvm::join(marks, " ");
  auto [it, isNew] = numbers.try_emplace(content, kernels.size());
  launch.kernel = it->second;
  if (isNew) {
    graph::setSymbols(*entry.module, named);
    for (StringRef mark : marks)
      entry.kernel->setAttr(mark, builder.getUnitAttr());
    entry.content = it->first();
    kernels.push_back(std::move(entry));
  }
  return launch;
}

/// Sizes to optimize for: those of the kernel's symbols.
static SmallVector<int64_t> sizesOf(graph::KernelOp kernel) {
  return graph::getOptimum(kernel);
}

/// Says how large a grid is that sizes decide, at those to optimize for.
static void noteInstances(func::FuncOp function, ArrayRef<int64_t> sizes) {
  auto grid = function->getAttrOfType<AffineMapAttr>(tile::kGridAttr);
  if (!grid || grid.getValue().getNumResults() != 1 ||
      grid.getValue().isSingleConstant())
    return;
  if (auto count = graph::evaluate(grid.getValue().getResult(0), sizes))
    function->setAttr(
        tile::kUsualInstancesAttr,
        IntegerAttr::get(IntegerType::get(function.getContext(), 64), *count));
}

/// Tells a GPU's program what its kernel may run beside.
static void noteWave(func::FuncOp function, graph::KernelOp kernel) {
  auto unit = UnitAttr::get(kernel.getContext());
  if (kernel->hasAttr(graph::kBesidePreviousAttr))
    function->setAttr(tile::kWaitsAtEndAttr, unit);
  if (kernel->hasAttr(graph::kBesideNextAttr))
    function->setAttr(tile::kStartsNextAttr, unit);
}

FailureOr<TileProgram> makeTileProgram(graph::KernelOp kernel,
                                       const Backend &backend) {
  FailureOr<emit::Schedule> schedule =
      emit::scheduleOf(kernel, backend.emitTarget());
  if (failed(schedule))
    return failure();
  TileProgram program{ModuleOp::create(kernel.getLoc()), *schedule, {}};
  auto symbols = graph::getSymbols(kernel->getParentOfType<ModuleOp>());
  graph::setSymbols(*program.module, symbols);
  OpBuilder builder = OpBuilder::atBlockEnd(program.module->getBody());
  FailureOr<func::FuncOp> function =
      emit::emitKernel(kernel, program.schedule, backend.emitTarget(), builder);
  while (succeeded(function) && !backend.fits(*function)) {
    std::optional<emit::Schedule> narrower = emit::narrower(program.schedule);
    if (!narrower)
      break; // compiling it says how much it lacks
    program.schedule = std::move(*narrower);
    function->erase();
    function = emit::emitKernel(kernel, program.schedule, backend.emitTarget(),
                                builder);
  }
  if (failed(function))
    return failure();
  if (backend.device() == DeviceKind::Cuda) {
    chooseIndexBits(kernel, *function);
    noteInstances(*function, sizesOf(kernel));
    noteWave(*function, kernel);
  }
  program.work = countWork(*function, sizesOf(kernel));
  return program;
}

static std::string keyOf(const KernelSet &kernels, unsigned number,
                         const Backend &backend) {
  return (Twine(backend.arch()) + "\n" + kernels.get(number).getSymName() +
          "\n" + kernels.contentAlone(number))
      .str();
}

void TilePrograms::add(const KernelSet &kernels, unsigned number,
                       const Backend &backend, TileProgram program) {
  std::string key = keyOf(kernels, number, backend);
  std::lock_guard lock(mutex);
  if (programs.size() < most)
    programs.try_emplace(key, std::move(program));
}

FailureOr<TileProgram> TilePrograms::take(const KernelSet &kernels,
                                          unsigned number,
                                          const Backend &backend) {
  {
    std::string key = keyOf(kernels, number, backend);
    std::lock_guard lock(mutex);
    if (auto it = programs.find(key); it != programs.end()) {
      TileProgram program = std::move(it->second);
      programs.erase(it);
      // It may have been written before it was known what runs beside it.
      if (backend.device() == DeviceKind::Cuda)
        noteWave(program.function(), kernels.get(number));
      return program;
    }
  }
  return makeTileProgram(kernels.get(number), backend);
}

void TilePrograms::forget(const KernelSet &kernels, unsigned number,
                          const Backend &backend) {
  std::string key = keyOf(kernels, number, backend);
  std::lock_guard lock(mutex);
  programs.erase(key);
}

std::string dumpFolder(StringRef folder, unsigned number,
                       graph::KernelOp kernel) {
  SmallString<128> path(folder);
  llvm::sys::path::append(path, Twine(number) + "-" + kernel.getSymName());
  return std::string(path);
}

static void writeFile(const std::string &path, StringRef text) {
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  if (!error)
    file << text;
}

/// Numbers of the arguments of which a load is marked `independent`.
static SmallVector<unsigned> independentArguments(func::FuncOp function) {
  llvm::SmallSetVector<unsigned, 4> found;
  function.walk([&](tile::LoadOp load) {
    if (load.getIndependent())
      found.insert(cast<BlockArgument>(load.getBuffer()).getArgNumber());
  });
  return found.takeVector();
}

FailureOr<CompiledKernel> compileProgram(graph::KernelOp kernel,
                                         const TileProgram &made,
                                         Backend &backend, KernelCache *cache,
                                         const std::string &dumpDir) {
  func::FuncOp function = made.function();
  std::string program = print(*made.module);
  if (!dumpDir.empty()) {
    llvm::sys::fs::create_directories(dumpDir);
    writeFile(dumpDir + "/graph.mlir",
              print(kernel->getParentOfType<ModuleOp>()));
    writeFile(dumpDir + "/" + backend.arch() + ".tile.mlir", program);
  }
  CompiledKernel compiled;
  auto expr = [&](StringRef name) -> AffineExpr {
    auto map = function->getAttrOfType<AffineMapAttr>(name);
    return map ? map.getValue().getResult(0) : AffineExpr();
  };
  compiled.grid = expr(tile::kGridAttr);
  compiled.scratch = expr(tile::kScratchAttr);
  compiled.counters = expr(tile::kCountersAttr);
  if (auto map = function->getAttrOfType<AffineMapAttr>(tile::kIndexedAttr))
    compiled.indexed.assign(map.getValue().getResults().begin(),
                            map.getValue().getResults().end());
  compiled.independent = independentArguments(function);
  compiled.sizes = sizesOf(kernel);
  compiled.work = made.work;
  compiled.needed = neededWork(kernel, compiled.sizes);
  compiled.tiled = tiledWork(kernel, compiled.sizes, made.schedule);
  std::string key;
  // Dumps are wanted of the whole way, so nothing is taken from the cache.
  if (cache && dumpDir.empty()) {
    key = cache->key(program, backend.fingerprint());
    if (std::optional<KernelBinary> known = cache->lookup(key)) {
      compiled.binary = std::move(*known);
      compiled.cached = true;
      return compiled;
    }
  }
  FailureOr<KernelBinary> binary = backend.compile(function, dumpDir);
  if (failed(binary))
    return failure();
  compiled.binary = std::move(*binary);
  if (!key.empty())
    cache->insert(key, compiled.binary);
  return compiled;
}

static FailureOr<CompiledKernel> compileKernel(const KernelSet &kernels,
                                               unsigned number,
                                               Backend &backend,
                                               const KernelOptions &options) {
  graph::KernelOp kernel = kernels.get(number);
  if (options.ofBase && !backend.gains(kernel))
    return (*options.ofBase)[number];
  Activity::Kernel working(options.activity,
                           kernel.getSymName().str() + " for " + backend.arch(),
                           nodeNames(kernel.getLoc()));
  FailureOr<TileProgram> made =
      options.programs ? options.programs->take(kernels, number, backend)
                       : makeTileProgram(kernel, backend);
  if (failed(made))
    return failure();
  std::string dumpDir = options.dumpDir.empty()
                            ? std::string()
                            : dumpFolder(options.dumpDir, number, kernel);
  return compileProgram(kernel, *made, backend, options.cache, dumpDir);
}

FailureOr<std::vector<CompiledKernel>>
compileKernels(const KernelSet &kernels, Backend &backend,
               const KernelOptions &options) {
  if (!options.dumpDir.empty())
    llvm::sys::fs::create_directories(options.dumpDir);
  std::vector<CompiledKernel> compiled(kernels.size());
  if (kernels.size() == 0)
    return compiled;
  std::mutex mutex;
  unsigned done = 0;
  LogicalResult result = failableParallelForEachN(
      kernels.get(0)->getContext(), 0, kernels.size(),
      [&](size_t i) -> LogicalResult {
        FailureOr<CompiledKernel> kernel =
            compileKernel(kernels, i, backend, options);
        std::lock_guard lock(mutex);
        if (options.progress)
          options.progress(++done, kernels.size());
        if (failed(kernel))
          return failure();
        compiled[i] = std::move(*kernel);
        return success();
      });
  if (failed(result))
    return failure();
  return compiled;
}

void warnOfRepeatedWork(const KernelSet &kernels,
                        ArrayRef<CompiledKernel> compiled,
                        const Backend &backend) {
  for (auto [i, kernel] : llvm::enumerate(compiled)) {
    // What a tile has past the end of the result is not done again, and nobody
    // can write the model without it.
    if (!repeatsWork(kernel.work, kernel.tiled,
                     graph::hasSumsAgain(kernels.get(i))))
      continue;
    int64_t done = kernel.work.operations,
            needed = std::max<int64_t>(kernel.needed.operations, 1);
    graph::KernelOp op = kernels.get(i);
    mlir::emitWarning(op.getLoc())
        << "kernel '" << op.getSymName() << "' does " << done / needed
        << " times the work of its operators on " << backend.arch() << " ("
        << done << " operations where they ask for " << needed
        << ", at the sizes to optimize for) and will be slow; other operators "
           "for the same result may avoid that";
  }
}

} // namespace charonia::driver
