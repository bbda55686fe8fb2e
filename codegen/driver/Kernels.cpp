#include "codegen/driver/Kernels.h"
#include "codegen/driver/Convert.h"
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

unsigned KernelSet::add(graph::KernelOp kernel,
                        llvm::function_ref<bool(Value)> isWeight) {
  OpBuilder builder(kernel.getContext());
  Location unknown = builder.getUnknownLoc();
  Entry entry{ModuleOp::create(unknown), {}};
  auto symbols = graph::getSymbols(kernel->getParentOfType<ModuleOp>());
  graph::setSymbols(*entry.module, symbols);

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

  auto [it, isNew] = numbers.try_emplace(print(*entry.module), kernels.size());
  if (isNew)
    kernels.push_back(std::move(entry));
  return it->second;
}

FailureOr<OwningOpRef<ModuleOp>> emitTileProgram(graph::KernelOp kernel,
                                                 const Backend &backend) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  auto symbols = graph::getSymbols(kernel->getParentOfType<ModuleOp>());
  graph::setSymbols(*module, symbols);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  if (failed(emit::emitKernel(kernel, backend.emitTarget(), builder)))
    return failure();
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
  compiled.independent = independentArguments(function);
  SmallVector<int64_t> sizes;
  for (const graph::Symbol &s :
       graph::getSymbols(kernel->getParentOfType<ModuleOp>()))
    sizes.push_back(s.opt);
  compiled.work = countWork(function, sizes);
  compiled.needed = neededWork(kernel, sizes);
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
                        ArrayRef<CompiledKernel> compiled) {
  // Less is done before anyone notices.
  constexpr int64_t leastOperations = 1 << 22, factor = 4;
  for (auto [i, kernel] : llvm::enumerate(compiled)) {
    int64_t done = kernel.work.operations,
            needed = std::max<int64_t>(kernel.needed.operations, 1);
    if (done < leastOperations || done / factor < needed)
      continue;
    graph::KernelOp op = kernels.get(i);
    mlir::emitWarning(op.getLoc())
        << "kernel '" << op.getSymName() << "' does " << done / needed
        << " times the work of its operators (" << done
        << " operations where they ask for " << needed
        << ", at the sizes to optimize for) and will be slow; other operators "
           "for the same result may avoid that";
  }
}

} // namespace charonia::driver
