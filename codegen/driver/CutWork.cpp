#include "codegen/driver/CutWork.h"
#include "codegen/driver/Kernels.h"
#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/Weights.h"
#include <thread>

using namespace mlir;

namespace charonia::driver {

bool repeatsWork(const TileWork &done, const TileWork &needed) {
  // Less is done before anyone notices.
  constexpr int64_t leastOperations = 1 << 22, factor = 4;
  return done.operations >= leastOperations &&
         done.operations / factor >= std::max<int64_t>(needed.operations, 1);
}

namespace {

/// Keeps what this thread reports to itself: of a cut that is tried, an error
/// means that it is none.
class Silence {
public:
  explicit Silence(MLIRContext *context)
      : handler(context, [own = std::this_thread::get_id()](Diagnostic &) {
          return success(std::this_thread::get_id() == own);
        }) {}

private:
  ScopedDiagnosticHandler handler;
};

class Cutter {
public:
  Cutter(func::FuncOp function, ArrayRef<const Backend *> backends)
      : function(function), backends(backends) {
    for (const graph::Symbol &s :
         graph::getSymbols(function->getParentOfType<ModuleOp>()))
      sizes.push_back(s.opt);
  }

  void run() {
    SmallVector<graph::KernelOp> work(function.getOps<graph::KernelOp>());
    std::reverse(work.begin(), work.end());
    while (!work.empty()) {
      graph::KernelOp kernel = work.pop_back_val();
      std::optional<unsigned> place = placeOf(kernel);
      if (!place)
        continue;
      Halves halves = cut(kernel, *place);
      for (auto [result, value] :
           llvm::zip_equal(kernel.getResults(), halves.results))
        result.replaceAllUsesWith(value);
      kernel.erase();
      // What follows may repeat more than what it was cut from.
      work.push_back(halves.second);
      work.push_back(halves.first);
    }
  }

private:
  struct Halves {
    graph::KernelOp first, second;
    /// The results of the kernel that was cut.
    SmallVector<Value> results;
  };

  /// The number of the operator in the kernel's body after which it is cut;
  /// nothing where it stays. Equal kernels are looked at once.
  std::optional<unsigned> placeOf(graph::KernelOp kernel) {
    unsigned number = known
                          .add(kernel,
                               [](Value value) {
                                 return value.getDefiningOp() &&
                                        graph::isWeight(value.getDefiningOp());
                               })
                          .kernel;
    auto [it, isNew] = places.try_emplace(number);
    if (isNew)
      it->second = findPlace(kernel);
    return it->second;
  }

  std::optional<unsigned> findPlace(graph::KernelOp kernel) {
    if (kernel.getScheduleAttr()) // somebody knows better
      return std::nullopt;
    Silence silence(kernel.getContext());
    TileWork needed = neededWork(kernel, sizes);
    std::optional<int64_t> done = operationsOf(kernel);
    if (!done || !repeatsWork({*done, 0}, needed))
      return std::nullopt;
    // Half of it is worth a kernel.
    int64_t least = *done / 2;
    std::optional<unsigned> best;
    for (auto [i, op] : llvm::enumerate(kernel.getBody().front())) {
      if (!isPlace(kernel, &op))
        continue;
      Halves halves = cut(kernel, i);
      std::optional<int64_t> first = operationsOf(halves.first),
                             second = operationsOf(halves.second);
      if (first && second && *first < least && *second < least - *first) {
        least = *first + *second;
        best = i;
      }
      halves.second.erase();
      halves.first.erase();
    }
    return best;
  }

  /// Whether something is left to compute behind the operator.
  static bool isPlace(graph::KernelOp kernel, Operation *op) {
    auto asked = dyn_cast<graph::GraphOpInterface>(op);
    if (!asked || op->getNumResults() != 1 ||
        asked.getRole() == graph::OpRole::Source)
      return false;
    Operation *yield = kernel.getBody().front().getTerminator();
    return llvm::any_of(yield->getOperands(),
                        [&](Value v) { return v != op->getResult(0); });
  }

  /// The most that a backend's tile program of it does; nothing for what is no
  /// kernel.
  std::optional<int64_t> operationsOf(graph::KernelOp kernel) {
    std::optional<graph::IterationSpace> space =
        graph::getIterationSpace(kernel);
    if (!space || !graph::getResultMaps(*space, kernel))
      return std::nullopt;
    int64_t most = 0;
    for (const Backend *backend : backends) {
      FailureOr<OwningOpRef<ModuleOp>> program =
          emitTileProgram(kernel, *backend);
      if (failed(program))
        return std::nullopt;
      auto tiles = *(*program)->getOps<func::FuncOp>().begin();
      most = std::max(most, countWork(tiles, sizes).operations);
    }
    return most;
  }

  /// The kernel in two, in front of it; it is left as it is.
  Halves cut(graph::KernelOp kernel, unsigned place) {
    Block &body = kernel.getBody().front();
    Value value = std::next(body.begin(), place)->getResult(0);
    SmallVector<Value> yields(body.getTerminator()->getOperands()), rest;
    for (Value yielded : yields)
      if (yielded != value)
        rest.push_back(yielded);
    Halves halves;
    halves.first = build(kernel, value, {}, {});
    halves.second = build(kernel, rest, value, halves.first.getResult(0));
    unsigned next = 0;
    for (Value yielded : yields)
      halves.results.push_back(yielded == value
                                   ? halves.first.getResult(0)
                                   : halves.second.getResult(next++));
    return halves;
  }

  /// A kernel of what `results` need, in front of `from`; `given` is there.
  graph::KernelOp build(graph::KernelOp from, ValueRange results, Value given,
                        Value stored) {
    Block &body = from.getBody().front();
    llvm::DenseSet<Operation *> needed;
    SmallVector<Value> work(results);
    while (!work.empty()) {
      Value value = work.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (value != given && op && needed.insert(op).second)
        work.append(op->operand_begin(), op->operand_end());
    }
    auto *inside = new Block();
    SmallVector<Value> inputs;
    IRMapping mapping;
    auto take = [&](Value value, Value input) {
      inputs.push_back(input);
      mapping.map(value, inside->addArgument(value.getType(), value.getLoc()));
    };
    OpBuilder inner(from.getContext());
    inner.setInsertionPointToEnd(inside);
    SmallVector<Location> locations;
    std::string name;
    for (Operation &op : body.without_terminator()) {
      if (!needed.contains(&op))
        continue;
      for (Value operand : op.getOperands()) {
        if (mapping.contains(operand))
          continue;
        if (operand == given)
          take(operand, stored);
        else if (auto argument = dyn_cast<BlockArgument>(operand))
          take(argument, from.getInputs()[argument.getArgNumber()]);
      }
      inner.clone(op, mapping);
      locations.push_back(op.getLoc());
      auto asked = dyn_cast<graph::GraphOpInterface>(op);
      if (asked && asked.getRole() != graph::OpRole::View && name.size() < 64)
        name += (name.empty() ? "" : "_") + op.getName().stripDialect().str();
    }
    SmallVector<Value> yielded;
    for (Value result : results)
      yielded.push_back(mapping.lookup(result));
    OpBuilder builder(from);
    Location location = builder.getFusedLoc(locations);
    graph::YieldOp::create(inner, location, yielded);
    auto kernel = graph::KernelOp::create(
        builder, location, ValueRange(yielded).getTypes(), inputs,
        builder.getStringAttr(name.empty() ? from.getSymName().str() : name),
        DictionaryAttr());
    kernel.getBody().push_back(inside);
    return kernel;
  }

  func::FuncOp function;
  ArrayRef<const Backend *> backends;
  SmallVector<int64_t> sizes;
  KernelSet known;
  llvm::DenseMap<unsigned, std::optional<unsigned>> places;
};

} // namespace

void cutRepeatedWork(func::FuncOp function,
                     ArrayRef<const Backend *> backends) {
  Cutter(function, backends).run();
}

} // namespace charonia::driver
