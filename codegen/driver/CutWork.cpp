#include "codegen/driver/CutWork.h"
#include "codegen/driver/Convert.h"
#include "codegen/driver/Silence.h"
#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/VerifyKernel.h"
#include "graph/analysis/Weights.h"
#include "mlir/IR/Threading.h"

using namespace mlir;

namespace charonia::driver {

bool repeatsWork(const TileWork &done, const TileWork &needed, bool again) {
  // Less is done before anyone notices; by all threads of a GPU more.
  constexpr int64_t least = 1 << 22, leastAgain = 1 << 26, factor = 4;
  int64_t leastOperations = again ? leastAgain : least;
  return done.operations >= leastOperations &&
         done.operations / factor >= std::max<int64_t>(needed.operations, 1);
}

namespace {

class Cutter {
public:
  Cutter(func::FuncOp function, ArrayRef<const Backend *> backends,
         TilePrograms &programs, Activity *activity)
      : function(function), backends(backends), programs(programs),
        activity(activity), sizes(graph::getOptimum(function)) {}

  void run() {
    SmallVector<graph::KernelOp> work(function.getOps<graph::KernelOp>());
    count(work);
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
      numbers.erase(kernel);
      kernel.erase();
      // What follows may repeat more than what it was cut from.
      work.push_back(halves.second);
      work.push_back(halves.first);
      count({halves.first, halves.second});
    }
    for (unsigned number = 0; number < known.size(); ++number)
      if (auto place = places.find(number);
          place != places.end() && !place->second)
        for (auto [backend, program] :
             llvm::zip_equal(backends, counted[number]))
          if (program)
            programs.add(known, number, *backend, std::move(*program));
  }

private:
  struct Halves {
    graph::KernelOp first, second;
    /// The results of the kernel that was cut.
    SmallVector<Value> results;
  };

  unsigned numberOf(graph::KernelOp kernel) {
    auto [it, isNew] = numbers.try_emplace(kernel);
    if (isNew)
      it->second = known
                       .add(kernel,
                            [](Value value) {
                              return value.getDefiningOp() &&
                                     graph::isWeight(value.getDefiningOp());
                            })
                       .kernel;
    return it->second;
  }

  /// Writes and counts the tile programs of kernels that are not known, on all
  /// threads. What fails is reported when the kernel is compiled.
  void count(ArrayRef<graph::KernelOp> kernels) {
    unsigned first = known.size();
    for (graph::KernelOp kernel : kernels)
      numberOf(kernel);
    counted.resize(known.size());
    parallelFor(function.getContext(), first, known.size(), [&](size_t i) {
      graph::KernelOp kernel = known.get(i);
      Activity::Kernel working(activity, kernel.getSymName().str(),
                               nodeNames(kernel.getLoc()));
      Silence silence(kernel.getContext());
      for (const Backend *backend : backends) {
        FailureOr<TileProgram> program = makeTileProgram(kernel, *backend);
        counted[i].push_back(succeeded(program)
                                 ? std::optional(std::move(*program))
                                 : std::nullopt);
      }
    });
  }

  /// The number of the operator in the kernel's body after which it is cut;
  /// nothing where it stays. Equal kernels are looked at once.
  std::optional<unsigned> placeOf(graph::KernelOp kernel) {
    unsigned number = numberOf(kernel);
    auto [it, isNew] = places.try_emplace(number);
    if (isNew)
      it->second = findPlace(kernel, number);
    return it->second;
  }

  std::optional<unsigned> findPlace(graph::KernelOp kernel, unsigned number) {
    if (kernel.getScheduleAttr()) // somebody knows better
      return std::nullopt;
    Silence silence(kernel.getContext());
    TileWork needed = neededWork(kernel, sizes);
    std::optional<int64_t> done = 0;
    for (const std::optional<TileProgram> &program : counted[number])
      done = done && program
                 ? std::optional(std::max(*done, program->work.operations))
                 : std::nullopt;
    if (!done || !repeatsWork({*done, 0}, needed, graph::hasSumsAgain(kernel)))
      return std::nullopt;
    // Half of it is worth a kernel.
    int64_t least = *done / 2;
    std::optional<unsigned> best;
    for (auto [i, op] : llvm::enumerate(kernel.getBody().front())) {
      if (!isPlace(kernel, &op))
        continue;
      Halves halves = cut(kernel, i);
      std::optional<int64_t> first = operationsOf(halves.first, kernel),
                             second = operationsOf(halves.second, kernel);
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

  /// The most that a backend's tile program of a part of `whole` does; nothing
  /// for what is no kernel.
  std::optional<int64_t> operationsOf(graph::KernelOp kernel,
                                      graph::KernelOp whole) {
    if (failed(graph::verifyKernel(kernel, /*replaced=*/whole)))
      return std::nullopt;
    int64_t most = 0;
    for (const Backend *backend : backends) {
      FailureOr<TileProgram> program = makeTileProgram(kernel, *backend);
      if (failed(program))
        return std::nullopt;
      most = std::max(most, program->work.operations);
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
  TilePrograms &programs;
  Activity *activity;
  SmallVector<int64_t> sizes;
  KernelSet known;
  llvm::DenseMap<Operation *, unsigned> numbers;
  /// Of each kernel that is known and each backend; null where there is none.
  std::vector<std::vector<std::optional<TileProgram>>> counted;
  llvm::DenseMap<unsigned, std::optional<unsigned>> places;
};

} // namespace

void cutRepeatedWork(func::FuncOp function, ArrayRef<const Backend *> backends,
                     TilePrograms &programs, Activity *activity) {
  Cutter(function, backends, programs, activity).run();
}

} // namespace charonia::driver
