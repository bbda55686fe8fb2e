#include "codegen/driver/Program.h"
#include "codegen/driver/Convert.h"
#include "codegen/driver/InPlace.h"
#include "codegen/driver/JoinParts.h"
#include "codegen/driver/Runs.h"
#include "codegen/driver/StepResults.h"
#include "codegen/driver/Waves.h"
#include "codegen/driver/Work.h"
#include "graph/analysis/Computing.h"
#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/Updates.h"
#include "graph/analysis/Weights.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace charonia::driver {
namespace {

constexpr uint64_t weightAlignment = 256;

/// What kernels assume of the addresses they get. On a GPU it is their widest
/// access; on a CPU vectors may lie anywhere.
int64_t argumentAlignment(DeviceKind device) {
  return device == DeviceKind::Cpu ? 1 : 16;
}

class ProgramBuilder {
public:
  ProgramBuilder(func::FuncOp function, DeviceKind device, KernelSet &kernels)
      : function(function), kernels(kernels) {
    layout.program.device = device;
  }

  ProgramLayout run() {
    for (auto [i, argument] : llvm::enumerate(function.getArguments())) {
      uint32_t buffer =
          addBuffer(engine::Buffer::Kind::Input, argument, nameOf(i));
      program().buffers[buffer].index = i;
    }
    Block &body = function.getBody().front();
    findPlaces(body);
    nameOutputs(body.getTerminator());
    launched = 0;
    addSteps(body);
    addCopies(body.getTerminator());
    finishLifetimes();
    return std::move(layout);
  }

private:
  engine::Program &program() { return layout.program; }

  std::string nameOf(unsigned argument) {
    auto name = function.getArgAttrOfType<StringAttr>(argument, "graph.name");
    return name ? name.str() : std::string();
  }

  /// Where a value's bytes are: the value that has a buffer, whether they are a
  /// part of it, and at which byte they start.
  struct Place {
    Value root;
    bool isPart = false;
    ShapeExpr offset = 0;
  };
  Place placeOf(Value value) {
    auto it = places.find(value);
    return it == places.end() ? Place{value} : it->second;
  }
  Value root(Value value) { return placeOf(value).root; }

  /// The operator gives the same bytes as its operand, or a run of them.
  void place(Operation &op) {
    Place at = placeOf(op.getOperand(0));
    if (!graph::isSameBytes(&op)) {
      at.isPart = true;
      at.offset =
          at.offset +
          toShapeExpr(runOffset(cast<graph::GraphOpInterface>(op))) *
              graph::elementBytes(getElementTypeOrSelf(op.getResult(0)));
    }
    places[op.getResult(0)] = std::move(at);
  }

  uint32_t addBuffer(engine::Buffer::Kind kind, Type type, std::string name) {
    engine::Buffer buffer;
    buffer.kind = kind;
    buffer.name = std::move(name);
    buffer.size = sizeInBytes(type);
    buffer.alignment = bufferAlignment(program().device);
    buffer.firstStep = engine::noIndex;
    program().buffers.push_back(buffer);
    return program().buffers.size() - 1;
  }
  uint32_t addBuffer(engine::Buffer::Kind kind, Value value, std::string name) {
    uint32_t index = addBuffer(kind, value.getType(), std::move(name));
    numbers.try_emplace(value, index);
    return index;
  }

  /// The buffer of an operand; weights get theirs when they are first read.
  uint32_t bufferOf(Value value) {
    value = root(value);
    auto it = numbers.find(value);
    if (it != numbers.end())
      return it->second;
    Operation *op = value.getDefiningOp();
    // The first of its parts is about to be stored.
    if (isa_and_present<graph::JoinedOp>(op))
      return addResultBuffer(value, lastName(op->getLoc()));
    assert(graph::isWeight(op) && "a kernel's result has a buffer by now");
    std::string name = op->getAttrOfType<StringAttr>("name").str();
    if (auto known = weightBuffers.find(name); known != weightBuffers.end())
      return numbers[value] = known->second;
    uint32_t buffer = addBuffer(engine::Buffer::Kind::Weight, value, name);
    uint64_t size = graph::byteSize(cast<RankedTensorType>(value.getType()));
    layout.weightBytes = llvm::alignTo(layout.weightBytes, weightAlignment);
    program().buffers[buffer].weightOffset = layout.weightBytes;
    program().buffers[buffer].alignment = weightAlignment;
    layout.weights.push_back({name, layout.weightBytes, size});
    layout.weightBytes += size;
    weightBuffers[name] = buffer;
    return buffer;
  }

  void touch(uint32_t buffer, uint32_t step) {
    engine::Buffer &b = program().buffers[buffer];
    b.firstStep = std::min(b.firstStep, step);
    b.lastStep = std::max(b.lastStep, step);
  }

  static Block &bodyOf(Operation *call) {
    return SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
               call, call->getAttrOfType<FlatSymbolRefAttr>("callee"))
        .getBody()
        .front();
  }

  /// The place of each value, and the last kernel that reads its buffer, by how
  /// many are launched before it.
  void findPlaces(Block &body) {
    for (Operation &op : body.without_terminator()) {
      if (auto kernel = dyn_cast<graph::KernelOp>(&op)) {
        for (Value input : kernel.getInputs())
          readAt(input, launched);
        if (auto updated = graph::getUpdatedInput(kernel))
          places[kernel.getResult(0)] = placeOf(kernel.getInputs()[*updated]);
        ++launched;
      } else if (auto call = dyn_cast<func::CallOp>(&op)) {
        Block &callee = bodyOf(call);
        for (auto [argument, operand] :
             llvm::zip_equal(callee.getArguments(), call.getOperands()))
          places[argument] = placeOf(operand);
        findPlaces(callee);
        for (auto [result, value] : llvm::zip_equal(
                 call.getResults(), callee.getTerminator()->getOperands()))
          places[result] = placeOf(value);
      } else if (auto repeat = dyn_cast<graph::RepeatOp>(&op)) {
        findPlacesOfSteps(repeat);
      } else if (isa<graph::JoinedOp>(op)) {
        for (Value part : op.getOperands())
          places[part] = {op.getResult(0), /*isPart=*/true, 0};
      } else if (!graph::isWeight(&op)) {
        place(op);
      }
    }
  }
  void readAt(Value value, uint32_t launch) {
    uint32_t &last = lastUse[root(value)];
    last = std::max(last, launch);
  }

  /// What steps carry lies in buffers of its own, and what they read of others
  /// is read until the last. Where a kernel gives an output it writes it to its
  /// place among those of all steps, and what it carries on to the place where
  /// the next step reads it.
  void findPlacesOfSteps(graph::RepeatOp repeat) {
    constexpr uint32_t never = engine::noIndex;
    Block &body = bodyOf(repeat);
    unsigned carried = repeat.getCarried();
    for (auto [i, argument] : llvm::enumerate(body.getArguments())) {
      // What a state starts from is copied in front of the first step.
      if (i < carried)
        readAt(repeat.getOperand(i), launched);
      else
        places[argument] = placeOf(repeat.getOperand(i));
      readAt(argument, never);
    }
    uint32_t before = launched;
    findPlaces(body);
    Operation *terminator = body.getTerminator();
    bool anyPlaced = false;
    for (unsigned i = 0; i < terminator->getNumOperands(); ++i) {
      Value source = root(terminator->getOperand(i));
      Operation *kernel = source.getDefiningOp();
      if (!kernel || kernel->getBlock() != &body ||
          !isa<graph::KernelOp>(kernel) || places.contains(source) ||
          (i >= carried && !mayLieAmongOthers(source.getType())))
        continue;
      places[source] =
          i < carried ? alternate(repeat, i) : placeAmongSteps(repeat, i);
      anyPlaced = true;
    }
    if (anyPlaced) {
      launched = before;
      findPlaces(body);
    }
    for (Value value : terminator->getOperands())
      readAt(value, never);
    for (auto [i, result] : llvm::enumerate(repeat.getResults()))
      if (i < carried)
        places[result] =
            alternating.contains(body.getArgument(i))
                ? inTurn(body.getArgument(i), repeat.getCount().getResult(0))
                : Place{body.getArgument(i)};
  }

  /// A state that a kernel of each step writes has two places in its buffer: a
  /// step reads one and writes the other, where the next one reads. Gives the
  /// one that is written.
  Place alternate(graph::RepeatOp repeat, unsigned i) {
    Value state = bodyOf(repeat).getArgument(i);
    // One more than the step's number.
    AffineExpr counter = repeat.getCounter().getResult(0);
    alternating.insert(state);
    places[state] = inTurn(state, counter - 1);
    return inTurn(state, counter);
  }
  /// The place of a state that is read in step `number`.
  Place inTurn(Value state, AffineExpr number) {
    return {state, /*isPart=*/true,
            toShapeExpr(number % 2) * strideOf(state.getType())};
  }
  /// From one place of a state to the other, in bytes.
  ShapeExpr strideOf(Type type) {
    int64_t alignment = argumentAlignment(program().device);
    AffineExpr bytes =
        graph::numElements(graph::getShape(type), type.getContext()) *
        graph::elementBytes(getElementTypeOrSelf(type));
    return toShapeExpr(graph::simplify(bytes.ceilDiv(alignment) * alignment));
  }
  bool mayLieAmongOthers(Type type) {
    AffineExpr count = graph::numElements(
        graph::getShape(cast<RankedTensorType>(type)), type.getContext());
    return count.getLargestKnownDivisor() *
               graph::elementBytes(getElementTypeOrSelf(type)) %
               argumentAlignment(program().device) ==
           0;
  }
  /// Where the step that counts puts its value `i` that is carried or given.
  Place placeAmongSteps(graph::RepeatOp repeat, unsigned i) {
    ShapeExpr number =
        toShapeExpr(repeat.getPlaces().getResult(i - repeat.getCarried()));
    Value value = bodyOf(repeat).getTerminator()->getOperand(i);
    return {repeat.getResult(i), /*isPart=*/true,
            number * sizeInBytes(value.getType())};
  }

  /// A kernel's result that is returned is written to the output right away.
  void nameOutputs(Operation *terminator) {
    for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
      if (Value source = root(value); source.getDefiningOp<graph::KernelOp>() ||
                                      source.getDefiningOp<graph::RepeatOp>() ||
                                      source.getDefiningOp<graph::JoinedOp>())
        outputs.try_emplace(source, i);
  }

  void addSteps(Block &body) {
    for (Operation &op : body.without_terminator()) {
      if (auto kernel = dyn_cast<graph::KernelOp>(&op))
        addLaunch(kernel);
      else if (isa<func::CallOp>(op))
        addSteps(bodyOf(&op));
      else if (auto repeat = dyn_cast<graph::RepeatOp>(&op))
        addRepeat(repeat);
    }
  }

  void addRepeat(graph::RepeatOp repeat) {
    Block &body = bodyOf(repeat);
    unsigned carried = repeat.getCarried();
    for (unsigned i = 0; i < carried; ++i) {
      Value state = body.getArgument(i);
      uint32_t buffer = addBuffer(engine::Buffer::Kind::Arena, state, "");
      if (alternating.contains(state))
        program().buffers[buffer].size = strideOf(state.getType()) * 2;
      addCopy(buffer, 0, repeat.getOperand(i));
    }
    for (Value result : repeat.getResults().drop_front(carried))
      addResultBuffer(result, "");
    engine::Repeat entry;
    entry.first = program().steps.size();
    addSteps(body);
    endStep(repeat, body);
    entry.last = program().steps.size();
    entry.symbol =
        cast<AffineSymbolExpr>(repeat.getCounter().getResult(0)).getPosition();
    entry.count = toShapeExpr(repeat.getCount().getResult(0));
    if (entry.first < entry.last)
      program().repeats.push_back(std::move(entry));
  }

  /// Outputs that no kernel wrote to their places, and what is carried on: all
  /// of it is read before any of it is written.
  void endStep(graph::RepeatOp repeat, Block &body) {
    unsigned carried = repeat.getCarried();
    auto values = body.getTerminator()->getOperands();
    for (unsigned i = carried; i < values.size(); ++i) {
      Place to = placeAmongSteps(repeat, i), from = placeOf(values[i]);
      if (from.root != to.root)
        addCopy(bufferOf(to.root), to.offset, values[i]);
    }
    llvm::SmallDenseMap<unsigned, uint32_t, 4> kept;
    for (unsigned i = 0; i < carried; ++i) {
      auto state = dyn_cast<BlockArgument>(root(values[i]));
      if (!state || state.getOwner() != &body ||
          state.getArgNumber() >= carried || state.getArgNumber() == i)
        continue;
      uint32_t buffer =
          addBuffer(engine::Buffer::Kind::Arena, values[i].getType(), "");
      addCopy(buffer, 0, values[i]);
      kept[i] = buffer;
    }
    for (unsigned i = 0; i < carried; ++i) {
      uint32_t state = numbers.lookup(body.getArgument(i));
      if (auto moved = kept.find(i); moved != kept.end())
        addCopy(state, 0, moved->second, 0, sizeInBytes(values[i].getType()));
      else if (root(values[i]) != body.getArgument(i))
        addCopy(state, 0, values[i]);
    }
  }

  void addCopy(uint32_t to, ShapeExpr offset, Value from) {
    addCopy(to, std::move(offset), bufferOf(from), placeOf(from).offset,
            sizeInBytes(from.getType()));
  }
  void addCopy(uint32_t to, ShapeExpr offset, uint32_t from,
               ShapeExpr fromOffset, ShapeExpr bytes) {
    uint32_t step = program().steps.size();
    touch(to, step);
    touch(from, step);
    engine::Step copy;
    copy.kind = engine::Step::Kind::Copy;
    copy.args = {{to, std::move(offset)}, {from, std::move(fromOffset)}};
    copy.bytes = std::move(bytes);
    program().steps.push_back(std::move(copy));
  }

  /// The buffer of what steps or a kernel give: an output, or memory of the
  /// arena.
  uint32_t addResultBuffer(Value result, std::string name) {
    auto output = outputs.find(result);
    bool isOutput = output != outputs.end();
    uint32_t buffer = addBuffer(isOutput ? engine::Buffer::Kind::Output
                                         : engine::Buffer::Kind::Arena,
                                result, std::move(name));
    if (isOutput)
      nameOutput(buffer, output->second);
    return buffer;
  }
  void nameOutput(uint32_t buffer, uint32_t output) {
    program().buffers[buffer].index = output;
    if (auto given =
            function.getResultAttrOfType<StringAttr>(output, "graph.name"))
      program().buffers[buffer].name = given.str();
  }

  static std::string lastName(Location location) {
    std::vector<std::string> names = nodeNames(location);
    return names.empty() ? std::string() : names.back();
  }

  void addLaunch(graph::KernelOp kernel) {
    uint32_t step = program().steps.size();
    engine::Step launch;
    auto [number, symbols] = kernels.add(kernel, [&](Value input) {
      return graph::isWeight(root(input).getDefiningOp());
    });
    launch.kernel = number;
    launch.symbols.assign(symbols.begin(), symbols.end());
    launch.nodes = nodeNames(kernel.getLoc());
    launch.besidePrevious = kernel->hasAttr(graph::kBesidePreviousAttr);
    for (Value input : kernel.getInputs()) {
      uint32_t buffer = bufferOf(input);
      touch(buffer, step);
      launch.args.push_back({buffer, placeOf(input).offset});
    }
    llvm::SmallDenseSet<uint32_t, 4> taken;
    for (OpResult result : kernel.getResults()) {
      if (places.contains(result)) { // memory that is there
        uint32_t buffer = bufferOf(result);
        touch(buffer, step);
        launch.args.push_back({buffer, placeOf(result).offset});
        continue;
      }
      uint32_t buffer = addResultBuffer(result, lastName(kernel.getLoc()));
      // What runs beside the kernel may read the operand, too.
      bool isAlone =
          !launch.besidePrevious && !kernel->hasAttr(graph::kBesideNextAttr);
      if (isAlone &&
          program().buffers[buffer].kind == engine::Buffer::Kind::Arena)
        aliasOperand(kernel, result, buffer, launched, taken);
      touch(buffer, step);
      launch.args.push_back({buffer, 0});
    }
    if (launch.kernel == program().kernels.size())
      program().kernels.push_back(describe());
    program().steps.push_back(std::move(launch));
    ++launched;
  }

  /// Lets a result take the place of an operand that nothing reads any more.
  void aliasOperand(graph::KernelOp kernel, OpResult result, uint32_t buffer,
                    uint32_t launch, llvm::SmallDenseSet<uint32_t, 4> &taken) {
    for (auto [i, input] : llvm::enumerate(kernel.getInputs())) {
      auto [source, isPart, offset] = placeOf(input);
      auto it = numbers.find(source);
      if (it == numbers.end() || isPart || lastUse.lookup(source) != launch ||
          taken.contains(it->second))
        continue;
      const engine::Buffer &operand = program().buffers[it->second];
      if (operand.kind != engine::Buffer::Kind::Arena ||
          !(operand.size == program().buffers[buffer].size) ||
          isReadTwice(kernel, i, source) ||
          !canRunInPlace(kernel, i, result.getResultNumber()))
        continue;
      program().buffers[buffer].alias = it->second;
      taken.insert(it->second);
      return;
    }
  }

  /// Whether another operand of the kernel lies in the same buffer.
  bool isReadTwice(graph::KernelOp kernel, unsigned operand, Value source) {
    for (auto [i, input] : llvm::enumerate(kernel.getInputs()))
      if (i != operand && root(input) == source)
        return true;
    return false;
  }

  /// The last kernel of the set. What it does is told with the names of its
  /// first launch.
  engine::Kernel describe() {
    graph::KernelOp kernel = kernels.get(program().kernels.size());
    auto symbols = graph::getSymbols(kernel->getParentOfType<ModuleOp>());
    engine::Kernel entry;
    entry.name = kernel.getSymName().str();
    entry.numSymbols = symbols.size();
    for (Operation &op : kernel.getBody().front())
      if (auto graphOp = dyn_cast<graph::GraphOpInterface>(&op);
          graphOp && graphOp.getRole() != graph::OpRole::Source)
        entry.ops.push_back(
            op.getName().stripDialect().str() + " " +
            graph::typeToString(op.getResult(0).getType(), symbols));
    KernelWork work = measureWork(kernel, symbols);
    entry.flops = std::move(work.flops);
    entry.bytes = std::move(work.bytes);
    return entry;
  }

  /// Results that no kernel writes to the output itself: arguments, weights,
  /// values that are returned twice.
  void addCopies(Operation *terminator) {
    for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
      auto written = outputs.find(root(value));
      if (written != outputs.end() && written->second == i)
        continue;
      uint32_t output =
          addBuffer(engine::Buffer::Kind::Output, value.getType(), "");
      nameOutput(output, i);
      addCopy(output, 0, value);
    }
  }

  /// Inputs and weights are there from the start, outputs and weights to the
  /// end.
  void finishLifetimes() {
    uint32_t last = program().steps.empty() ? 0 : program().steps.size() - 1;
    for (engine::Buffer &buffer : program().buffers) {
      bool isArena = buffer.kind == engine::Buffer::Kind::Arena;
      if (buffer.kind == engine::Buffer::Kind::Input ||
          buffer.kind == engine::Buffer::Kind::Weight)
        buffer.firstStep = 0;
      if (!isArena && buffer.kind != engine::Buffer::Kind::Input)
        buffer.lastStep = last;
      if (buffer.firstStep == engine::noIndex)
        buffer.firstStep = 0;
      buffer.lastStep = engine::lastOfWave(program().steps, buffer.lastStep);
      for (const engine::Repeat &repeat : program().repeats)
        outlastSteps(buffer, repeat);
    }
  }
  /// What is there before or behind all steps is there in each of them.
  static void outlastSteps(engine::Buffer &buffer,
                           const engine::Repeat &repeat) {
    bool startsBefore = buffer.firstStep < repeat.first,
         endsBehind = buffer.lastStep >= repeat.last;
    if (startsBefore && buffer.lastStep >= repeat.first && !endsBehind)
      buffer.lastStep = repeat.last - 1;
    if (endsBehind && buffer.firstStep < repeat.last && !startsBefore)
      buffer.firstStep = repeat.first;
  }

  func::FuncOp function;
  KernelSet &kernels;
  ProgramLayout layout;
  /// Of what is no kernel's result, argument or weight itself.
  llvm::DenseMap<Value, Place> places;
  llvm::DenseMap<Value, uint32_t> numbers, lastUse;
  llvm::DenseMap<Value, size_t> outputs;
  /// States of steps with two places.
  llvm::DenseSet<Value> alternating;
  llvm::StringMap<uint32_t> weightBuffers;
  /// Kernels so far.
  uint32_t launched = 0;
};

} // namespace

ProgramLayout layOutProgram(func::FuncOp function, DeviceKind device,
                            KernelSet &kernels, bool waves) {
  auto computing = graph::getComputing(function->getParentOfType<ModuleOp>());
  for (func::FuncOp one : computing) {
    joinParts(one, /*isWhole=*/one == function);
    passRuns(one, argumentAlignment(device));
  }
  function->getParentOfType<ModuleOp>().walk(storeTwice);
  if (waves)
    for (func::FuncOp one : computing)
      formWaves(one, /*isWhole=*/one == function);
  return ProgramBuilder(function, device, kernels).run();
}

} // namespace charonia::driver
