#include "codegen/gpu/GpuCodegen.h"
#include "codegen/gpu/AlignRows.h"
#include "codegen/gpu/AssignLayouts.h"
#include "codegen/gpu/DependentLaunch.h"
#include "codegen/gpu/EarlyLoads.h"
#include "codegen/gpu/InsideTiles.h"
#include "codegen/gpu/KeepRows.h"
#include "codegen/gpu/LoopPipeline.h"
#include "codegen/gpu/PersistTiles.h"
#include "codegen/gpu/Pipeline.h"
#include "codegen/gpu/Ptxas.h"
#include "codegen/gpu/SharedMemory.h"
#include "codegen/gpu/WholeTiles.h"
#include "codegen/gpu/ir/SimtDialect.h"
#include "codegen/gpu/lower/Lowering.h"
#include "codegen/gpu/lower/ToPtx.h"
#include "codegen/math/ExpandMath.h"
#include "codegen/math/Float8.h"
#include "codegen/target/StepSums.h"
#include "codegen/tile/ir/IndexAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Threading.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <mutex>

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

void charonia::gpu::registerGpuCodegen(DialectRegistry &registry) {
  registry.insert<tile::TileDialect, simt::SimtDialect, arith::ArithDialect,
                  math::MathDialect, scf::SCFDialect, cf::ControlFlowDialect,
                  func::FuncDialect, LLVM::LLVMDialect, NVVM::NVVMDialect>();
  registerPtxTranslation(registry);
}

void charonia::gpu::loadGpuDialects(MLIRContext &context) {
  context
      .loadDialect<tile::TileDialect, simt::SimtDialect, arith::ArithDialect,
                   math::MathDialect, scf::SCFDialect, cf::ControlFlowDialect,
                   func::FuncDialect, LLVM::LLVMDialect, NVVM::NVVMDialect>();
}

namespace {

/// Stages of one kernel, in their order: a kernel may be laid out twice, and a
/// dump has the number of its stage, whoever wrote it.
enum class Stage { Tile, Layouts, Simt, Thread, Llvm, Code };

/// Writes what a kernel is behind each stage; files are described at
/// GpuOptions::dumpPrefix.
class Dumper {
public:
  Dumper(StringRef prefix, StringRef kernel) : prefix(prefix), kernel(kernel) {}
  void dump(Operation *op, Stage stage) const {
    if (prefix.empty())
      return;
    std::string text;
    llvm::raw_string_ostream os(text);
    op->print(os);
    dump(text, stage);
  }
  void dump(StringRef text, Stage stage) const {
    static constexpr std::array<StringLiteral, 6> names = {
        "tile.mlir",   "layouts.mlir", "simt.mlir",
        "thread.mlir", "llvm.ll",      "code.ptx"};
    if (prefix.empty())
      return;
    auto number = unsigned(stage);
    std::error_code code;
    llvm::raw_fd_ostream file(
        (prefix + kernel + "." + Twine(number) + "-" + names[number]).str(),
        code);
    file << text;
  }

private:
  StringRef prefix, kernel;
};

int64_t integerAttr(func::FuncOp kernel, StringRef name, int64_t otherwise) {
  auto attr = kernel->getAttrOfType<IntegerAttr>(name);
  return attr ? attr.getInt() : otherwise;
}

/// Instances that shared memory and registers leave room for where a loop is
/// written out: ptxas would take more registers than it needs.
int64_t residentsOf(func::FuncOp function, unsigned warps, int64_t bytes,
                    int64_t sharedBytes) {
  constexpr int64_t reserved = 1024, granule = 8;
  int64_t residents = 1;
  function.walk([&](scf::ForOp loop) {
    if (auto needed = loop->getAttrOfType<IntegerAttr>(kWrittenOutAttr))
      residents = std::min(sharedBytes / (bytes + reserved),
                           kRegisters /
                               int64_t(llvm::alignTo(needed.getInt(), granule) *
                                       warps * kLanes));
  });
  return std::max<int64_t>(residents, 1);
}

/// A name that PTX allows.
std::string entryName(StringRef name) {
  std::string entry = name.str();
  for (char &c : entry)
    if (!llvm::isAlnum(c) && c != '_')
      c = '_';
  if (entry.empty() || !llvm::isAlpha(entry[0]))
    entry.insert(0, "k");
  return entry;
}

TensorMap toTensorMap(const TensorMapArgument &argument) {
  simt::TensorMapAttr tensor = argument.tensor;
  TensorMap map;
  map.argument = argument.argument;
  map.elementBytes = tensor.getElementBytes();
  map.swizzle = tensor.getSwizzle();
  auto extents = tensor.getExtents().getValue().getResults(),
       strides = tensor.getStrides().getValue().getResults();
  map.extents.assign(extents.begin(), extents.end());
  map.strides.assign(strides.begin(), strides.end());
  auto copy = [](std::vector<int64_t> &to, ArrayRef<int64_t> from) {
    to.assign(from.begin(), from.end());
  };
  copy(map.box, tensor.getBox());
  copy(map.steps, tensor.getSteps());
  ArrayRef<int64_t> corners = tensor.getCorners();
  copy(map.lower, corners.take_front(corners.size() / 2));
  copy(map.upper, corners.drop_front(corners.size() / 2));
  return map;
}

/// Instances of a multiprocessor for which rows stay in shared memory, once
/// every tile of the function has a layout. `stays`: see assignLayouts.
FailureOr<int64_t> layOut(func::FuncOp function, unsigned warps,
                          const GpuTarget &target, bool stays) {
  ExpandMathOptions math;
  math.exp2 = math.rsqrt = true;
  expandMath(function, math);
  bool multipliesFloat8 =
      llvm::any_of(target.dots, [](const DotInstruction &dot) {
        return dot.elementBits == 8;
      });
  if (!multipliesFloat8)
    widenFloat8Dots(function, [](tile::DotOp) { return true; });
  // What multiplies them converts them, too.
  expandFloat8(function, /*hardware=*/multipliesFloat8);
  sinkBehindProducts(function);
  branchAroundBounds(function);
  alignRows(function);
  if (failed(assignLayouts(function, warps, target, stays)))
    return failure();
  int64_t instances = keepRows(function, target.sharedBytes);
  dropCertainBounds(function);
  issueLoadsEarly(function);
  return instances;
}

/// Brings operands to shared memory and says how much of it is needed. What
/// does not fit with as many stages as are asked for has fewer: how much there
/// is beside a loop's own rings is known when all have a place.
int64_t arrange(func::FuncOp &function, PipelineOptions options) {
  for (;; --options.stages) {
    func::FuncOp before = options.stages > 1 ? function.clone() : nullptr;
    pipelineSharedOperands(function, options);
    if (options.overlaps)
      overlapLaunches(function);
    readTogether(function);
    int64_t bytes = allocateShared(function);
    if (!before || bytes <= options.sharedBytes) {
      if (before)
        before->erase();
      return bytes;
    }
    function->getBlock()->getOperations().insert(function->getIterator(),
                                                 before);
    function.erase();
    function = before;
  }
}

/// Of the tiles that dots read and of the largest one, which may go through
/// shared memory to another layout: more than that no kernel needs at a time
/// that just has dots. Floats of 8 bits may become some of 16.
int64_t mostShared(func::FuncOp function) {
  constexpr int64_t leastBits = 16;
  auto bytesOf = [&](Value tile) -> int64_t {
    auto type = dyn_cast<RankedTensorType>(tile.getType());
    if (!type)
      return 0;
    int64_t bits = simt::elementBits(type.getElementType());
    return type.getNumElements() * std::max(bits, leastBits) / 8;
  };
  SmallPtrSet<Value, 8> staged;
  int64_t bytes = 0, largest = 0;
  function.walk([&](Operation *op) {
    for (Value result : op->getResults())
      largest = std::max(largest, bytesOf(result));
    if (auto dot = dyn_cast<tile::DotOp>(op))
      for (Value operand : {dot.getLhs(), dot.getRhs()})
        bytes += staged.insert(operand).second ? bytesOf(operand) : 0;
  });
  return bytes + largest;
}

unsigned stagesOf(func::FuncOp function) {
  return std::max<int64_t>(integerAttr(function, tile::kStagesAttr, 3), 2);
}

PipelineOptions pipelineOf(func::FuncOp function, const GpuTarget &target,
                           const GpuOptions &options, unsigned warps) {
  PipelineOptions pipeline;
  pipeline.stages = stagesOf(function);
  pipeline.sharedBytes = target.sharedBytes;
  pipeline.warps = warps;
  pipeline.boxes = target.copiesBoxes && options.boxes;
  pipeline.multiprocessors = target.multiprocessors;
  pipeline.overlaps = target.dependentLaunch;
  pipeline.registers = registersOfThread(
      warps * kLanes * integerAttr(function, tile::kResidentsAttr, 1));
  return pipeline;
}

/// `instances`: for which rows stay in shared memory.
LoweringOptions loweringOf(func::FuncOp function, const GpuTarget &target,
                           unsigned warps, int64_t sharedBytes,
                           int64_t instances) {
  LoweringOptions lowering;
  lowering.warps = warps;
  lowering.indexBits = integerAttr(function, tile::kIndexBitsAttr, 32);
  lowering.sharedBytes = sharedBytes;
  lowering.residents = integerAttr(function, tile::kResidentsAttr, 1);
  if (sharedBytes <= sharedBytesOf(target.sharedBytes, instances))
    lowering.residents = std::max<int64_t>(lowering.residents, instances);
  lowering.residents = std::max<int64_t>(
      lowering.residents,
      residentsOf(function, warps, sharedBytes, target.sharedBytes));
  // A warpgroup that gives its registers away counts on all of them.
  for (auto op : function.getOps<simt::CopyWarpOp>())
    if (op.getRegisters())
      lowering.residents = 1;
  return lowering;
}

/// A kernel whose operands have their places in shared memory.
struct Arranged {
  func::FuncOp function;
  /// Of a multiprocessor, for which rows stay in shared memory.
  int64_t instances;
  int64_t sharedBytes;
};

FailureOr<Arranged> arrangeOnce(func::FuncOp kernel, OpBuilder &b,
                                const GpuTarget &target,
                                const GpuOptions &options, const Dumper &dumper,
                                bool stays) {
  unsigned warps = integerAttr(kernel, tile::kWarpsAttr, 4);
  auto function = cast<func::FuncOp>(b.clone(*kernel));
  function.setName(entryName(kernel.getName()));
  dumper.dump(function, Stage::Tile);
  FailureOr<int64_t> instances = layOut(function, warps, target, stays);
  if (failed(instances))
    return failure();
  dumper.dump(function, Stage::Layouts);
  persistTiles(function, target, warps, stagesOf(function));
  int64_t bytes =
      arrange(function, pipelineOf(function, target, options, warps));
  return Arranged{function, *instances, bytes};
}

/// Whether there may be instances of large tiles that stay: more than one round
/// of tiles whose operands the copy engine brings.
bool mayStay(func::FuncOp kernel, const GpuTarget &target,
             const GpuOptions &options) {
  auto grid = kernel->getAttrOfType<AffineMapAttr>(tile::kGridAttr);
  return target.copiesBoxes && options.boxes && grid &&
         grid.getValue().isSingleConstant() &&
         grid.getValue().getSingleConstantResult() > target.multiprocessors;
}

/// Laid out for instances that stay where they do (BoxPlan.h tells): to others
/// it costs barriers.
FailureOr<Arranged> arrangeKernel(func::FuncOp kernel, OpBuilder &b,
                                  const GpuTarget &target,
                                  const GpuOptions &options,
                                  const Dumper &dumper) {
  if (mayStay(kernel, target, options)) {
    FailureOr<Arranged> staying =
        arrangeOnce(kernel, b, target, options, dumper, /*stays=*/true);
    if (failed(staying))
      return failure();
    func::FuncOp function = staying->function;
    bool walks =
        llvm::any_of(function.getOps<scf::ForOp>(),
                     [](scf::ForOp loop) { return loop->hasAttr(kTilesAttr); });
    if (walks && !function.getOps<simt::CopyWarpOp>().empty())
      return staying;
    function.erase();
  }
  return arrangeOnce(kernel, b, target, options, dumper, /*stays=*/false);
}

FailureOr<GpuKernel> compileKernel(func::FuncOp kernel, const GpuTarget &target,
                                   const GpuOptions &options, StringRef ptxas) {
  MLIRContext *context = kernel.getContext();
  std::string entry = entryName(kernel.getName());
  const Dumper dumper(options.dumpPrefix, entry);
  unsigned warps = integerAttr(kernel, tile::kWarpsAttr, 4);
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  OpBuilder b(context);
  b.setInsertionPointToEnd(module->getBody());
  FailureOr<Arranged> arranged =
      arrangeKernel(kernel, b, target, options, dumper);
  if (failed(arranged))
    return failure();
  func::FuncOp function = arranged->function;
  GpuKernel result;
  result.sharedBytes = arranged->sharedBytes;
  result.entry = entry;
  if (auto fewer = function->getAttrOfType<AffineMapAttr>(tile::kGridAttr);
      fewer != kernel->getAttr(tile::kGridAttr))
    result.instances = fewer.getValue().getSingleConstantResult();
  unsigned copyWarps = 0;
  for (auto op : function.getOps<simt::CopyWarpOp>())
    copyWarps = op.getWarps();
  result.blockThreads = (warps + copyWarps) * kLanes;
  result.waitsForPrevious = target.dependentLaunch;
  result.waitsAtEnd =
      target.dependentLaunch && kernel->hasAttr(tile::kWaitsAtEndAttr);
  if (result.sharedBytes > target.sharedBytes)
    return kernel.emitError()
               << "needs " << result.sharedBytes << " bytes of shared memory, "
               << target.chip << " has " << target.sharedBytes
               << "; use smaller tiles",
           failure();
  insertBarriers(function);
  dumper.dump(function, Stage::Simt);

  LoweringOptions lowering = loweringOf(
      function, target, warps, result.sharedBytes, arranged->instances);
  KernelLowering lower(function, b, lowering);
  FailureOr<LLVM::LLVMFuncOp> thread = lower.run();
  if (failed(thread))
    return failure();
  for (const TensorMapArgument &map : lower.tensorMaps())
    result.maps.push_back(toTensorMap(map));
  if (auto cluster = (*thread)->getAttrOfType<IntegerAttr>(tile::kClusterAttr))
    result.clusterSize = cluster.getInt();
  function.erase();
  // Addresses and coordinates that a loop does not change.
  thread->walk([](LoopLikeOpInterface loop) { moveLoopInvariantCode(loop); });
  dumper.dump(*module, Stage::Thread);

  FailureOr<PtxCode> code =
      translateToPtx(*module, target.chip, lowering.indexBits);
  if (failed(code))
    return failure();
  dumper.dump(code->llvm, Stage::Llvm);
  dumper.dump(code->ptx, Stage::Code);
  result.ptx = std::move(code->ptx);
  if (!ptxas.empty())
    if (llvm::Error error = assemble(result, target.chip, ptxas))
      return kernel.emitError() << llvm::toString(std::move(error)), failure();
  return result;
}

} // namespace

static std::string ptxasOf(const GpuOptions &options) {
  if (!options.assemble)
    return "";
  return options.ptxas.empty() ? findPtxas() : options.ptxas;
}

FailureOr<GpuKernel>
charonia::gpu::compileGpuKernel(func::FuncOp kernel, const GpuTarget &target,
                                const GpuOptions &options) {
  return compileKernel(kernel, target, options, ptxasOf(options));
}

bool charonia::gpu::fitsSharedMemory(func::FuncOp kernel,
                                     const GpuTarget &target) {
  bool exchanges = !kernel.getOps<tile::ExchangeOp>().empty();
  if (!exchanges && mostShared(kernel) <= target.sharedBytes)
    return true;
  loadGpuDialects(*kernel.getContext());
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
  auto function = cast<func::FuncOp>(b.clone(*kernel));
  unsigned warps = integerAttr(kernel, tile::kWarpsAttr, 4);
  if (failed(layOut(function, warps, target, /*stays=*/false)))
    return true; // not for its size
  PipelineOptions options;
  options.stages = 1;
  options.sharedBytes = target.sharedBytes;
  options.warps = warps;
  return arrange(function, options) <= target.sharedBytes;
}

FailureOr<std::vector<GpuKernel>>
charonia::gpu::compileGpuKernels(ModuleOp kernels, const GpuTarget &target,
                                 const GpuOptions &options) {
  MLIRContext *context = kernels.getContext();
  loadGpuDialects(*context);
  SmallVector<func::FuncOp> functions;
  for (auto function : kernels.getOps<func::FuncOp>())
    if (function->hasAttr(tile::kKernelAttr))
      functions.push_back(function);
  std::string ptxas = ptxasOf(options);
  std::vector<GpuKernel> results(functions.size());
  auto compile = [&](size_t i) -> LogicalResult {
    FailureOr<GpuKernel> kernel =
        compileKernel(functions[i], target, options, ptxas);
    if (failed(kernel))
      return failure();
    results[i] = std::move(*kernel);
    return success();
  };
  // All kernels are tried, so that one run reports all errors.
  bool failedAny = false;
  if (options.threads == 1 || !context->isMultithreadingEnabled()) {
    for (size_t i = 0; i < functions.size(); ++i)
      failedAny |= failed(compile(i));
  } else {
    std::mutex mutex;
    ParallelDiagnosticHandler diagnostics(context);
    parallelFor(context, 0, functions.size(), [&](size_t i) {
      diagnostics.setOrderIDForThread(i);
      bool bad = failed(compile(i));
      diagnostics.eraseOrderIDForThread();
      if (bad) {
        std::lock_guard<std::mutex> lock(mutex);
        failedAny = true;
      }
    });
  }
  if (failedAny)
    return failure();
  return results;
}
