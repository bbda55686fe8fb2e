#include "codegen/driver/Kernels.h"
#include "codegen/driver/Convert.h"
#include "codegen/driver/CutWork.h"
#include "codegen/driver/IndexWidth.h"
#include "codegen/tile/ir/IndexAttributes.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/IR/Threading.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <mutex>

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

KernelSet::Launch KernelSet::add(graph::KernelOp kernel,
                                 llvm::function_ref<bool(Value)> isWeight) {
  OpBuilder builder(kernel.getContext());
  Location unknown = builder.getUnknownLoc();
  Entry entry{ModuleOp::create(unknown), {}};
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
  auto all = graph::getSymbols(kernel->getParentOfType<ModuleOp>());
  SmallVector<graph::Symbol> named, unnamed;
  for (unsigned symbol : launch.symbols)
    named.push_back(all[symbol]);
  unnamed = named;
  for (graph::Symbol &symbol : unnamed)
    symbol.name.clear();
  graph::setSymbols(*entry.module, unnamed);
  auto [it, isNew] = numbers.try_emplace(print(*entry.module), kernels.size());
  launch.kernel = it->second;
  if (isNew) {
    graph::setSymbols(*entry.module, named);
    kernels.push_back(std::move(entry));
  }
  return launch;
}

FailureOr<OwningOpRef<ModuleOp>> emitTileProgram(graph::KernelOp kernel,
                                                 const Backend &backend) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  auto symbols = graph::getSymbols(kernel->getParentOfType<ModuleOp>());
  graph::setSymbols(*module, symbols);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  FailureOr<func::FuncOp> function =
      emit::emitKernel(kernel, backend.emitTarget(), builder);
  if (failed(function))
    return failure();
  if (backend.device() == DeviceKind::Cuda)
    chooseIndexBits(kernel, *function);
  return module;
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

static FailureOr<CompiledKernel> compileKernel(graph::KernelOp kernel,
                                               unsigned number,
                                               Backend &backend,
                                               const KernelOptions &options) {
  Activity::Kernel working(options.activity,
                           kernel.getSymName().str() + " for " + backend.arch(),
                           nodeNames(kernel.getLoc()));
  FailureOr<OwningOpRef<ModuleOp>> module = emitTileProgram(kernel, backend);
  if (failed(module))
    return failure();
  auto function = *(*module)->getOps<func::FuncOp>().begin();
  std::string program = print(**module);
  std::string dumpDir;
  if (!options.dumpDir.empty()) {
    dumpDir = dumpFolder(options.dumpDir, number, kernel);
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
  for (const graph::Symbol &s :
       graph::getSymbols(kernel->getParentOfType<ModuleOp>()))
    compiled.sizes.push_back(s.opt);
  compiled.work = countWork(function, compiled.sizes);
  compiled.needed = neededWork(kernel, compiled.sizes);
  std::string key;
  // Dumps are wanted of the whole way, so nothing is taken from the cache.
  if (options.cache && dumpDir.empty()) {
    key = options.cache->key(program, backend.fingerprint());
    if (std::optional<KernelBinary> known = options.cache->lookup(key)) {
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
    options.cache->insert(key, compiled.binary);
  return compiled;
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
            compileKernel(kernels.get(i), i, backend, options);
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
    int64_t done = kernel.work.operations,
            needed = std::max<int64_t>(kernel.needed.operations, 1);
    // What a tile has past the end of the result is not done again, and nobody
    // can write the model without it.
    int64_t padding = std::max<int64_t>(
        kernel.work.stored / std::max<int64_t>(kernel.needed.stored, 1), 1);
    if (!repeatsWork({kernel.work.operations / padding, 0}, kernel.needed))
      continue;
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
