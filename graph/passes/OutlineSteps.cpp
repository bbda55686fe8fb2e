#include "graph/ir/Dialect.h"
#include "graph/passes/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_OUTLINESTEPS
#include "graph/passes/Passes.h.inc"

namespace {

bool mentions(Operation *op, unsigned symbol) {
  AttrTypeWalker walker;
  bool found = false;
  walker.addWalk([&](AffineMapAttr map) {
    for (AffineExpr expr : map.getValue().getResults())
      found |= expr.isFunctionOfSymbol(symbol);
  });
  walker.walk(op->getAttrDictionary());
  return found;
}

unsigned counterOf(AffineMap map) {
  return cast<AffineSymbolExpr>(map.getResult(0)).getPosition();
}

/// What becomes one function: operators between loops, or the steps of one.
struct Part {
  IterateOp iterate; ///< Null between loops.
  SmallVector<Operation *> ops;
};

class Outliner {
public:
  explicit Outliner(func::FuncOp main)
      : main(main), block(main.getBody().front()), builder(main.getContext()) {}

  LogicalResult run() {
    for (auto iterate : block.getOps<IterateOp>())
      loops.push_back(iterate);
    if (loops.empty())
      return success();
    if (failed(assignParts()))
      return failure();
    Operation *terminator = block.getTerminator();
    SmallVector<Operation *> old;
    for (Operation &op : block.without_terminator())
      old.push_back(&op);
    for (const Part &part : parts)
      part.iterate ? addLoop(part) : addCall(part);
    for (OpOperand &operand : terminator->getOpOperands())
      operand.set(outside.lookupOrDefault(operand.get()));
    for (Operation *op : llvm::reverse(old)) {
      if (!op->use_empty())
        return op->emitOpError("belongs to steps, and is read behind them");
      op->erase();
    }
    return success();
  }

private:
  /// The loop of a step's operator: it reads what is carried or the counter, or
  /// something that does.
  FailureOr<std::optional<unsigned>> loopOf(Operation *op) {
    llvm::SmallSetVector<unsigned, 2> found;
    for (auto [i, loop] : llvm::enumerate(loops))
      if (mentions(op, counterOf(loop.getCounter())))
        found.insert(i);
    for (Value operand : op->getOperands())
      if (Operation *from = operand.getDefiningOp())
        if (auto known = inLoop.find(from); known != inLoop.end())
          found.insert(known->second);
    if (found.size() > 1)
      return op->emitOpError("belongs to steps inside of steps");
    return found.empty() ? std::optional<unsigned>() : found.front();
  }

  /// Constants, weights and what is made of them alone are copied into each
  /// function that reads them: there they are folded, packed and prepared.
  bool isSource(Operation *op) {
    auto [known, isNew] = sources.try_emplace(op, false);
    if (!isNew)
      return known->second;
    auto source = dyn_cast<GraphOpInterface>(op);
    bool result =
        source &&
        (op->getNumOperands() > 0 || source.getRole() == OpRole::Source) &&
        llvm::all_of(op->getOperands(),
                     [&](Value operand) {
                       Operation *from = operand.getDefiningOp();
                       return from && isSource(from);
                     }) &&
        llvm::all_of(op->getUsers(), [](Operation *user) {
          return isa<GraphOpInterface>(user);
        });
    return sources[op] = result;
  }

  LogicalResult assignParts() {
    SmallVector<SmallVector<Operation *>> steps(loops.size());
    Part between;
    for (Operation &op : block.without_terminator()) {
      if (auto iterate = dyn_cast<IterateOp>(op)) {
        if (!between.ops.empty())
          parts.push_back(std::exchange(between, {}));
        unsigned number = llvm::find(loops, iterate) - loops.begin();
        parts.push_back({iterate, std::move(steps[number])});
        continue;
      }
      FailureOr<std::optional<unsigned>> loop = loopOf(&op);
      if (failed(loop))
        return failure();
      if (*loop)
        inLoop[&op] = **loop;
      if (isa<CarriedOp>(op) || (!*loop && isSource(&op)))
        continue;
      (*loop ? steps[**loop] : between.ops).push_back(&op);
    }
    if (!between.ops.empty())
      parts.push_back(std::move(between));
    return success();
  }

  /// Clones a part's operators to the end of the function's block.
  void fill(const Part &part, IRMapping &inside) {
    for (Operation *op : part.ops) {
      copySources(op, inside);
      builder.clone(*op, inside);
    }
  }
  void copySources(Operation *op, IRMapping &inside) {
    for (Value operand : op->getOperands())
      if (!inside.contains(operand)) {
        copySources(operand.getDefiningOp(), inside);
        builder.clone(*operand.getDefiningOp(), inside);
      }
  }

  /// What a part reads of others.
  llvm::SetVector<Value> inputsOf(const Part &part, ValueRange results) {
    llvm::SmallPtrSet<Operation *, 16> own(part.ops.begin(), part.ops.end());
    llvm::SetVector<Value> inputs;
    auto add = [&](Value value) {
      Operation *op = value.getDefiningOp();
      bool isInside =
          op && (own.contains(op) || (part.iterate && isa<CarriedOp>(op)) ||
                 isSource(op));
      if (!isInside)
        inputs.insert(value);
    };
    for (Operation *op : part.ops)
      llvm::for_each(op->getOperands(), add);
    llvm::for_each(results, add);
    return inputs;
  }

  func::FuncOp addFunction(const Part &part, Location location,
                           ArrayRef<Value> arguments, ValueRange results) {
    builder.setInsertionPointToEnd(main->getParentOfType<ModuleOp>().getBody());
    std::string name = (main.getSymName() + "." + Twine(functions++)).str();
    auto function = func::FuncOp::create(
        builder, location, name,
        builder.getFunctionType(ValueRange(arguments).getTypes(),
                                results.getTypes()));
    function.setPrivate();
    Block *body = function.addEntryBlock();
    IRMapping inside;
    inside.map(arguments, body->getArguments());
    builder.setInsertionPointToEnd(body);
    fill(part, inside);
    SmallVector<Value> returned;
    for (Value result : results)
      returned.push_back(inside.lookup(result));
    func::ReturnOp::create(builder, location, returned);
    builder.setInsertionPoint(block.getTerminator());
    return function;
  }

  SmallVector<Value> mapped(ArrayRef<Value> values) {
    SmallVector<Value> results;
    for (Value value : values)
      results.push_back(outside.lookupOrDefault(value));
    return results;
  }

  void addCall(const Part &part) {
    llvm::SmallPtrSet<Operation *, 16> own(part.ops.begin(), part.ops.end());
    SmallVector<Value> results;
    for (Operation *op : part.ops)
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(),
                         [&](Operation *user) { return !own.contains(user); }))
          results.push_back(result);
    SmallVector<Value> inputs = inputsOf(part, {}).takeVector();
    Location location = part.ops.front()->getLoc();
    auto function = addFunction(part, location, inputs, results);
    auto call =
        func::CallOp::create(builder, location, function, mapped(inputs));
    outside.map(results, call.getResults());
  }

  void addLoop(const Part &part) {
    IterateOp iterate = part.iterate;
    SmallVector<Value> arguments(iterate.getCarried()), operands,
        results(iterate.getNext()), old, stacked(iterate.getResults());
    unsigned carried = arguments.size();
    for (Value value : iterate.getCarried())
      operands.push_back(value.getDefiningOp<CarriedOp>().getInit());
    old.append(stacked.begin(), stacked.begin() + carried);
    SmallVector<AffineExpr> places;
    for (auto [i, output] : llvm::enumerate(iterate.getOutputs())) {
      if (stacked[carried + i].use_empty())
        continue;
      results.push_back(output);
      old.push_back(stacked[carried + i]);
      places.push_back(iterate.getPlaces().getResult(i));
    }
    for (Value input : inputsOf(part, results)) {
      arguments.push_back(input);
      operands.push_back(input);
    }
    auto function = addFunction(part, iterate.getLoc(), arguments, results);
    AffineMap map = iterate.getPlaces();
    auto repeat = RepeatOp::create(
        builder, iterate.getLoc(), ValueRange(old).getTypes(),
        FlatSymbolRefAttr::get(function), mapped(operands),
        builder.getI64IntegerAttr(carried), iterate.getCounterAttr(),
        iterate.getCountAttr(),
        AffineMapAttr::get(AffineMap::get(0, map.getNumSymbols(), places,
                                          builder.getContext())));
    outside.map(old, repeat.getResults());
  }

  func::FuncOp main;
  Block &block;
  OpBuilder builder;
  SmallVector<IterateOp> loops;
  llvm::DenseMap<Operation *, unsigned> inLoop;
  llvm::DenseMap<Operation *, bool> sources;
  SmallVector<Part> parts;
  /// From what main had to what its calls give.
  IRMapping outside;
  unsigned functions = 0;
};

struct OutlineSteps : impl::OutlineStepsBase<OutlineSteps> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (main && failed(Outliner(main).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace charonia::graph
