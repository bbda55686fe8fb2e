#include "codegen/driver/TrialEngine.h"
#include "codegen/driver/Convert.h"
#include "codegen/driver/Program.h"
#include "codegen/driver/Work.h"
#include "graph/analysis/StoredParts.h"
#include "graph/analysis/Weights.h"
#include "runtime/engine/Writer.h"
#include <numeric>

using namespace mlir;

namespace charonia::driver {
namespace {

bool isWeightOperand(Value value) {
  return value.getDefiningOp() && graph::isWeight(value.getDefiningOp());
}

class TrialBuilder {
public:
  TrialBuilder(graph::KernelOp kernel, const CompiledKernel &compiled,
               const Backend &backend, unsigned launches)
      : kernel(kernel), compiled(compiled), backend(backend),
        launches(launches), fills(countParts(kernel)),
        symbols(graph::getSymbols(kernel->getParentOfType<ModuleOp>())) {}

  Result<std::vector<std::byte>> run() {
    program.device = backend.device();
    describe();
    for (auto [i, size] : llvm::enumerate(compiled.sizes)) {
      std::string number = std::to_string(i);
      signature().symbols.push_back({"s" + number, size, size, size, 1});
      signature().inputs.push_back(
          {"size" + number, DType::UInt8, {ShapeExpr::symbol(i)}});
    }
    CHARONIA_RETURN_IF_ERROR(addInputs());
    for (unsigned launch = 0; launch < launches; ++launch)
      CHARONIA_RETURN_IF_ERROR(addLaunch(launch));
    return write();
  }

private:
  Signature &signature() { return manifest.signature; }

  /// Results that are stored as parts of something larger.
  static unsigned countParts(graph::KernelOp kernel) {
    return llvm::count_if(kernel.getResults(), [&](OpResult result) {
      return graph::getStoredPart(kernel, result.getResultNumber()).has_value();
    });
  }

  void describe() {
    engine::Kernel entry;
    entry.name = kernel.getSymName().str();
    entry.numSymbols = symbols.size();
    KernelWork work = measureWork(kernel, symbols);
    entry.flops = std::move(work.flops);
    entry.bytes = std::move(work.bytes);
    program.kernels.push_back(std::move(entry));
  }

  /// The type at the sizes to optimize for.
  Result<TensorSpec> specOf(std::string name, Type type) {
    std::optional<DType> dtype = toDType(getElementTypeOrSelf(type));
    if (!dtype)
      return Status(StatusCode::Unsupported, "no engine holds such elements");
    TensorSpec spec{std::move(name), *dtype, {}};
    for (AffineExpr dim : graph::getShape(type)) {
      CHARONIA_ASSIGN_OR_RETURN(int64_t size,
                                toShapeExpr(dim).evaluate(compiled.sizes));
      spec.dims.push_back(size);
    }
    return spec;
  }

  Result<uint32_t> addBuffer(engine::Buffer::Kind kind, Type type) {
    engine::Buffer buffer;
    buffer.kind = kind;
    CHARONIA_ASSIGN_OR_RETURN(int64_t size,
                              sizeInBytes(type).evaluate(compiled.sizes));
    buffer.size = size;
    buffer.alignment = backend.device() == DeviceKind::Cpu ? 64 : 256;
    buffer.lastStep = launches + fills - 1;
    program.buffers.push_back(std::move(buffer));
    return uint32_t(program.buffers.size() - 1);
  }

  Result<uint32_t> addInput(std::string name, Type type) {
    CHARONIA_ASSIGN_OR_RETURN(TensorSpec spec, specOf(std::move(name), type));
    CHARONIA_ASSIGN_OR_RETURN(uint32_t buffer,
                              addBuffer(engine::Buffer::Kind::Input, type));
    program.buffers[buffer].index = signature().inputs.size();
    signature().inputs.push_back(std::move(spec));
    return buffer;
  }

  Status addInputs() {
    for (auto [i, input] : llvm::enumerate(kernel.getInputs())) {
      bool isWeight = isWeightOperand(input);
      std::string name = (isWeight ? "w" : "x") + std::to_string(i);
      std::vector<uint32_t> &own = operands.emplace_back();
      for (unsigned launch = 0; launch < (isWeight ? launches : 1); ++launch) {
        CHARONIA_ASSIGN_OR_RETURN(
            uint32_t buffer,
            addInput(isWeight ? name + "." + std::to_string(launch) : name,
                     input.getType()));
        own.push_back(buffer);
      }
    }
    return Status::ok();
  }

  Status addLaunch(unsigned launch) {
    engine::Step step;
    step.symbols.resize(symbols.size());
    std::iota(step.symbols.begin(), step.symbols.end(), 0);
    for (const std::vector<uint32_t> &buffers : operands)
      step.args.push_back({buffers[launch % buffers.size()], 0});
    bool isLast = launch + 1 == launches;
    uint32_t own = isLast ? launch + fills : launch;
    for (unsigned i = 0; i < kernel.getNumResults(); ++i) {
      Type type = graph::getStoredType(kernel, i);
      CHARONIA_ASSIGN_OR_RETURN(uint32_t number,
                                addBuffer(isLast ? engine::Buffer::Kind::Output
                                                 : engine::Buffer::Kind::Arena,
                                          type));
      engine::Buffer &buffer = program.buffers[number];
      buffer.firstStep = buffer.lastStep = own;
      if (isLast && graph::getStoredPart(kernel, i))
        addFill(number);
      if (isLast) {
        buffer.index = signature().outputs.size();
        CHARONIA_ASSIGN_OR_RETURN(TensorSpec spec,
                                  specOf("y" + std::to_string(i), type));
        signature().outputs.push_back(std::move(spec));
      }
      step.args.push_back({number, 0});
    }
    program.steps.push_back(std::move(step));
    return Status::ok();
  }

  /// Of what the last launch stores a part of the rest is compared, too.
  void addFill(uint32_t number) {
    engine::Buffer &buffer = program.buffers[number];
    buffer.firstStep = program.steps.size();
    engine::Step fill;
    fill.kind = engine::Step::Kind::Fill;
    fill.args = {{number, 0}};
    fill.bytes = buffer.size;
    program.steps.push_back(std::move(fill));
  }

  Result<std::vector<std::byte>> write() {
    addScratch(program, {compiled});
    engine::Writer writer;
    engine::CodeSection code(writer.nextSection());
    program.variants.push_back(makeVariant(
        backend, program, {compiled},
        [&](ArrayRef<char> image) {
          return code.add(std::as_bytes(std::span(image.data(), image.size())));
        },
        [&](StringRef text) {
          return code.addText({text.data(), text.size()});
        }));
    writer.addSection(engine::SectionKind::Code, "code", code.bytes());
    manifest.programs.push_back(std::move(program));
    std::vector<std::byte> bytes;
    CHARONIA_RETURN_IF_ERROR(writer.write(manifest, bytes));
    return bytes;
  }

  graph::KernelOp kernel;
  const CompiledKernel &compiled;
  const Backend &backend;
  unsigned launches, fills;
  SmallVector<graph::Symbol> symbols;
  engine::Manifest manifest;
  engine::Program program;
  /// The buffers of each operand: one, or one a launch.
  std::vector<std::vector<uint32_t>> operands;
};

} // namespace

unsigned trialLaunches(graph::KernelOp kernel, DeviceKind device) {
  struct Limits {
    double flops, bytes; ///< A microsecond, at most.
    double least;        ///< Microseconds that a launch takes.
    double run;          ///< Microseconds of a run.
    unsigned most;
  };
  const Limits limits = device == DeviceKind::Cpu
                            ? Limits{100e3, 20e3, 1, 10e3, 8}
                            : Limits{700e6, 4e6, 2, 2e3, 48};
  constexpr unsigned least = 4;
  constexpr int64_t mostWeightBytes = int64_t(4) << 30;
  OptimalWork work = workAtOptimum(kernel);
  double time = std::max(
      {limits.least, work.flops / limits.flops, work.bytes / limits.bytes});
  int64_t weightBytes = 0;
  for (Value input : kernel.getInputs())
    if (isWeightOperand(input))
      weightBytes += graph::byteSize(cast<RankedTensorType>(input.getType()));
  auto launches = std::clamp(unsigned(limits.run / time), least, limits.most);
  while (launches > 1 && weightBytes > mostWeightBytes / launches)
    --launches;
  return launches;
}

Result<std::vector<std::byte>> makeTrialEngine(graph::KernelOp kernel,
                                               const CompiledKernel &compiled,
                                               const Backend &backend,
                                               unsigned launches) {
  return TrialBuilder(kernel, compiled, backend, launches).run();
}

} // namespace charonia::driver
