#include "codegen/driver/Prepare.h"
#include "codegen/driver/Convert.h"
#include "codegen/driver/CutWork.h"
#include "codegen/driver/Program.h"
#include "graph/analysis/Weights.h"
#include "graph/passes/Passes.h"
#include "mlir/IR/Threading.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "runtime/engine/Writer.h"

using namespace mlir;

namespace charonia::driver {

/// An engine in memory that computes one prepared weight.
struct Preparation::Code {
  OwningOpRef<ModuleOp> module;
  std::vector<std::byte> bytes;
  std::optional<Engine> engine;

  LogicalResult compile(Backend &host, const KernelOptions &options,
                        unsigned &numKernels) {
    auto function = module->lookupSymbol<func::FuncOp>("main");
    FailureOr<Signature> signature = makeSignature(function);
    if (failed(signature))
      return failure();
    TilePrograms programs;
    cutRepeatedWork(function, {&host}, programs, options.activity);
    KernelOptions own = options;
    own.programs = &programs;
    KernelSet kernels;
    ProgramLayout layout = layOutProgram(function, DeviceKind::Cpu, kernels);
    FailureOr<std::vector<CompiledKernel>> compiled =
        compileKernels(kernels, host, own);
    if (failed(compiled))
      return failure();
    numKernels = kernels.size();

    engine::Writer writer;
    engine::CodeSection code(writer.nextSection());
    auto addImage = [&](ArrayRef<char> image) {
      return code.add(std::as_bytes(std::span(image.data(), image.size())));
    };
    auto addText = [&](StringRef text) {
      return code.addText({text.data(), text.size()});
    };
    engine::Program program = std::move(layout.program);
    program.variants.push_back(
        makeVariant(host, program, *compiled, addImage, addText));
    writer.addSection(engine::SectionKind::Code, "code", code.bytes());
    engine::Manifest manifest;
    manifest.signature = std::move(*signature);
    manifest.programs.push_back(std::move(program));
    if (Status status = writer.write(manifest, bytes); !status)
      return function.emitError() << "in @prepare: " << status.message();
    // Only the code is needed from here on.
    module = {};
    return success();
  }
};

/// The function that computes one result of @prepare from weights as arguments;
/// `names` are theirs.
static OwningOpRef<ModuleOp> isolate(func::FuncOp prepare, unsigned result,
                                     std::vector<std::string> &names) {
  Operation *terminator = prepare.getBody().front().getTerminator();
  Value value = terminator->getOperand(result);
  OpBuilder builder(prepare.getContext());
  OwningOpRef<ModuleOp> module = ModuleOp::create(prepare.getLoc());
  builder.setInsertionPointToEnd(module->getBody());
  auto function =
      func::FuncOp::create(builder, prepare.getLoc(), "main",
                           builder.getFunctionType({}, {value.getType()}));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  IRMapping mapping;
  SmallVector<Type> types;
  auto copy = [&](auto &&self, Value v) -> Value {
    if (Value known = mapping.lookupOrNull(v))
      return known;
    Operation *op = v.getDefiningOp();
    if (graph::isWeight(op)) {
      names.push_back(op->getAttrOfType<StringAttr>("name").str());
      types.push_back(v.getType());
      mapping.map(v, body->addArgument(v.getType(), builder.getUnknownLoc()));
      return mapping.lookup(v);
    }
    for (Value operand : op->getOperands())
      self(self, operand);
    builder.clone(*op, mapping);
    return mapping.lookup(v);
  };
  func::ReturnOp::create(builder, prepare.getLoc(), copy(copy, value));
  function.setType(builder.getFunctionType(types, {value.getType()}));
  return module;
}

LogicalResult
Preparation::addUnit(func::FuncOp prepare, unsigned result,
                     llvm::StringMap<std::shared_ptr<Code>> &known) {
  Unit unit;
  OwningOpRef<ModuleOp> module = isolate(prepare, result, unit.weights);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, OpPrintingFlags().useLocalScope());
  std::shared_ptr<Code> &code = known[text];
  if (!code) {
    PassManager passes(context, ModuleOp::getOperationName());
    passes.addPass(createCSEPass());
    passes.addNestedPass<func::FuncOp>(graph::createSplitConcats());
    passes.addNestedPass<func::FuncOp>(graph::createFormKernels());
    passes.addPass(graph::createVerifyKernels());
    if (failed(passes.run(*module)))
      return failure();
    code = std::make_shared<Code>();
    code->module = std::move(module);
  }
  unit.code = code;
  StringRef name =
      prepare.getResultAttrOfType<StringAttr>(result, "graph.name").getValue();
  units[name] = std::move(unit);
  return success();
}

FailureOr<std::unique_ptr<Preparation>>
Preparation::create(func::FuncOp prepare, Backend &host,
                    const KernelOptions &options) {
  MLIRContext *context = prepare ? prepare.getContext() : nullptr;
  std::unique_ptr<Preparation> preparation(new Preparation(context));
  if (!prepare)
    return preparation;
  llvm::StringMap<std::shared_ptr<Code>> known;
  for (unsigned i = 0; i < prepare.getNumResults(); ++i)
    if (failed(preparation->addUnit(prepare, i, known)))
      return failure();
  SmallVector<Code *> codes;
  for (auto &entry : known)
    codes.push_back(entry.second.get());
  std::atomic<unsigned> kernels = 0, done = 0;
  KernelOptions quiet = options;
  quiet.progress = nullptr;
  std::mutex mutex;
  LogicalResult result = failableParallelForEachN(
      context, 0, codes.size(), [&](size_t i) -> LogicalResult {
        unsigned count = 0;
        LogicalResult compiled = codes[i]->compile(host, quiet, count);
        kernels += count;
        std::lock_guard lock(mutex);
        if (options.progress)
          options.progress(++done, codes.size());
        return compiled;
      });
  if (failed(result))
    return failure();
  preparation->kernels = kernels;
  return preparation;
}

Status Preparation::compute(
    StringRef name,
    llvm::function_ref<Status(std::span<const std::byte>)> consume) {
  const Unit &unit = units.find(name)->second;
  Code &code = *unit.code;
  if (!code.engine) {
    CHARONIA_ASSIGN_OR_RETURN(
        code.engine, Engine::load(std::span<const std::byte>(code.bytes)));
    code.bytes = {};
  }
  CHARONIA_ASSIGN_OR_RETURN(Context run, code.engine->createContext());
  graph::WeightStore &store =
      context->getLoadedDialect<graph::GraphDialect>()->getWeights();
  for (size_t i = 0; i < unit.weights.size(); ++i) {
    const graph::Weight *weight = store.lookup(unit.weights[i]);
    if (!weight)
      return Status(StatusCode::Internal,
                    "there is no weight '" + unit.weights[i] + "'");
    Tensor tensor;
    tensor.dtype = *toDType(weight->type.getElementType());
    tensor.shape.assign(weight->type.getShape().begin(),
                        weight->type.getShape().end());
    tensor.data = weight->bytes.data();
    CHARONIA_RETURN_IF_ERROR(run.setInput(i, tensor));
  }
  CHARONIA_RETURN_IF_ERROR(run.run());
  CHARONIA_ASSIGN_OR_RETURN(Tensor result, run.output(size_t(0)));
  CHARONIA_ASSIGN_OR_RETURN(uint64_t size,
                            tensorBytes(result.dtype, result.shape));
  return consume({static_cast<const std::byte *>(result.data), size});
}

} // namespace charonia::driver
