// What a program has of its kernels' code: scratch memory, and each variant.
#include "codegen/driver/Convert.h"
#include "codegen/driver/Program.h"
#include "graph/analysis/StoredParts.h"

using namespace mlir;

namespace charonia::driver {

LogicalResult checkIndependent(const engine::Program &program,
                               ArrayRef<CompiledKernel> kernels,
                               Location location) {
  for (const engine::Step &step : program.steps) {
    if (step.kind != engine::Step::Kind::Launch)
      continue;
    for (unsigned i : kernels[step.kernel].independent) {
      const engine::Buffer &buffer = program.buffers[step.args[i].buffer];
      if (buffer.kind != engine::Buffer::Kind::Weight)
        return emitError(location)
               << "kernel '" << program.kernels[step.kernel].name
               << "' reads its argument " << i
               << " without waiting for the kernels before it, but '"
               << buffer.name
               << "', which a launch passes there, is no weight: this is a "
                  "mistake of the compiler, please report it";
    }
  }
  return success();
}

/// An expression over the symbols of a launch's kernel, over the signature's.
static AffineExpr inSignature(AffineExpr expr, const engine::Step &launch) {
  graph::Exprs symbols;
  for (uint32_t symbol : launch.symbols)
    symbols.push_back(getAffineSymbolExpr(symbol, expr.getContext()));
  return expr.replaceSymbols(symbols);
}

namespace {
/// What the launches of a wave use of a buffer and those that it is a part of.
struct WaveAccess {
  size_t step;
  const engine::Argument *argument;
  bool writes;
  /// Of what is stored as a part of a larger value: where in it, over the
  /// signature's symbols.
  std::optional<graph::StoredPart> part = {};

  /// Parts of one buffer, as the places of a state that steps use in turn, are
  /// taken to be apart where they begin at other expressions.
  bool meets(const WaveAccess &other) const {
    return step != other.step && (writes || other.writes) &&
           (argument->buffer != other.argument->buffer ||
            (argument->offset == other.argument->offset && !isApart(other)));
  }
  /// Whether both are parts of one value that certainly have nothing in common.
  bool isApart(const WaveAccess &other) const {
    return part && other.part && part->extent == other.part->extent &&
           (ends(*part, *other.part) || ends(*other.part, *part));
  }
  static bool ends(const graph::StoredPart &a, const graph::StoredPart &b) {
    return graph::isNonNegative(graph::simplify(b.offset - a.offset - a.count),
                                graph::Facts::ofCoordinates());
  }
};
} // namespace

LogicalResult checkWaves(const engine::Program &program,
                         const KernelSet &kernels, Location location) {
  auto rootOf = [&](uint32_t buffer) {
    while (program.buffers[buffer].alias != engine::noIndex)
      buffer = program.buffers[buffer].alias;
    return buffer;
  };
  llvm::DenseMap<uint32_t, SmallVector<WaveAccess, 4>> used;
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    if (!step.besidePrevious)
      used.clear();
    if (step.kind != engine::Step::Kind::Launch)
      continue;
    graph::KernelOp kernel = kernels.get(step.kernel);
    size_t inputs = step.args.size() - kernel.getNumResults();
    for (auto [number, argument] : llvm::enumerate(step.args)) {
      WaveAccess access{i, &argument, number >= inputs};
      if (access.writes)
        access.part = graph::getStoredPart(kernel, number - inputs);
      if (access.part)
        for (AffineExpr *e :
             {&access.part->offset, &access.part->count, &access.part->extent})
          *e = graph::simplify(inSignature(*e, step));
      auto &others = used[rootOf(argument.buffer)];
      for (const WaveAccess &other : others)
        if (access.meets(other))
          return emitError(location)
                 << "kernel '" << program.kernels[step.kernel].name
                 << "' (step " << i << ") would run beside that of step "
                 << other.step << ", which shares memory with it: this is a "
                 << "mistake of the compiler, please report it; remedy: "
                    "compile with --no-waves";
      others.push_back(access);
    }
  }
  return success();
}

void addScratch(engine::Program &program, ArrayRef<CompiledKernel> kernels) {
  constexpr int64_t counterBytes = 4;
  if (llvm::none_of(program.steps, [&](const engine::Step &step) {
        return step.kind == engine::Step::Kind::Launch &&
               kernels[step.kernel].scratch;
      }))
    return;
  auto add = [&](std::string name, ShapeExpr size, uint32_t first,
                 uint32_t last) -> uint32_t {
    engine::Buffer buffer;
    buffer.name = std::move(name);
    buffer.size = std::move(size);
    buffer.alignment = bufferAlignment(program.device);
    buffer.firstStep = first;
    buffer.lastStep = last;
    program.buffers.push_back(buffer);
    return program.buffers.size() - 1;
  };
  for (engine::Buffer &buffer : program.buffers) {
    if (buffer.kind != engine::Buffer::Kind::Input &&
        buffer.kind != engine::Buffer::Kind::Weight)
      ++buffer.firstStep;
    ++buffer.lastStep;
  }
  for (engine::Repeat &repeat : program.repeats)
    ++repeat.first, ++repeat.last;
  program.steps.insert(program.steps.begin(), engine::Step());
  uint32_t counters = add("counters", 0, 0, 0);
  // Simplified, so that equal counts of many launches are one term.
  AffineExpr bytes;
  for (const auto &[i, step] : llvm::enumerate(program.steps)) {
    if (i == 0 || step.kind != engine::Step::Kind::Launch ||
        !kernels[step.kernel].scratch)
      continue;
    const CompiledKernel &kernel = kernels[step.kernel];
    step.args.push_back(
        {add("scratch", toShapeExpr(inSignature(kernel.scratch, step)), i,
             engine::lastOfWave(program.steps, i)),
         0});
    AffineExpr own = inSignature(kernel.counters, step) * counterBytes;
    step.args.push_back({counters, bytes ? toShapeExpr(bytes) : ShapeExpr(0)});
    bytes = graph::simplify(bytes ? bytes + own : own);
    program.buffers[counters].lastStep = engine::lastOfWave(program.steps, i);
  }
  program.buffers[counters].size = toShapeExpr(bytes);
  engine::Step &clear = program.steps.front();
  clear.kind = engine::Step::Kind::Fill;
  clear.args = {{counters, 0}};
  clear.bytes = program.buffers[counters].size;
  clear.patternSize = counterBytes;
}

engine::Variant
makeVariant(const Backend &backend, const engine::Program &program,
            ArrayRef<CompiledKernel> kernels,
            llvm::function_ref<engine::Range(ArrayRef<char>)> addImage,
            llvm::function_ref<engine::Range(StringRef)> addText) {
  // Instances that are worth a thread's while: some tens of microseconds of
  // work.
  constexpr int64_t grainOperations = 1 << 17;
  engine::Variant variant;
  variant.arch = backend.arch();
  for (const auto &[i, compiled] : llvm::enumerate(kernels)) {
    const KernelBinary &binary = compiled.binary;
    engine::CodeModule module;
    if (!binary.image.empty())
      module.image = addImage(binary.image);
    if (!binary.ptx.empty())
      module.ptx = addText(binary.ptx);
    if (!binary.cubin.empty())
      module.cubin = addImage(binary.cubin);
    engine::KernelCode code;
    code.module = variant.modules.size();
    code.entry = binary.entry;
    code.entryOffset = binary.entryOffset;
    code.grid = binary.instances
                    ? toShapeExpr(getAffineConstantExpr(
                          binary.instances, compiled.grid.getContext()))
                    : toShapeExpr(compiled.grid);
    for (AffineExpr count : compiled.indexed)
      code.indexed = code.indexed == ShapeExpr()
                         ? toShapeExpr(count)
                         : max(code.indexed, toShapeExpr(count));
    code.blockThreads = binary.blockThreads;
    code.clusterSize = binary.clusterSize;
    code.waitsForPrevious = binary.waitsForPrevious;
    code.waitsAtEnd = binary.waitsAtEnd;
    code.maps = binary.maps;
    code.sharedBytes = binary.sharedBytes;
    code.scratchBytes = binary.scratchBytes;
    code.registers = binary.registers;
    code.spillBytes = binary.spillBytes;
    code.operations = compiled.work.operations;
    code.accessedBytes = compiled.work.bytes;
    code.neededOperations = compiled.needed.operations;
    code.neededBytes = compiled.needed.bytes;
    if (backend.device() == DeviceKind::Cpu) {
      std::span<const int64_t> symbols(compiled.sizes.data(),
                                       compiled.sizes.size());
      int64_t work = 0, instances = 0;
      if (auto flops = program.kernels[i].flops.evaluate(symbols))
        work = *flops;
      if (auto bytes = program.kernels[i].bytes.evaluate(symbols))
        work = std::max(work, *bytes);
      if (auto grid = code.grid.evaluate(symbols))
        instances = *grid;
      if (work > 0 && instances > 0)
        code.grain = std::clamp<int64_t>(
            grainOperations / std::max<int64_t>(1, work / instances), 1,
            std::max<int64_t>(1, instances));
    }
    variant.modules.push_back(module);
    variant.kernels.push_back(std::move(code));
  }
  return variant;
}

} // namespace charonia::driver
