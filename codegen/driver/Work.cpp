#include "codegen/driver/Work.h"
#include "codegen/driver/Convert.h"
#include "graph/analysis/Updates.h"
#include "graph/analysis/Walked.h"
#include "graph/analysis/Weights.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace charonia::driver {
namespace {

/// Nodes of an expression, written out; not more than `most` are counted.
unsigned countNodes(AffineExpr expr, unsigned most) {
  unsigned count = 0;
  SmallVector<AffineExpr> work{expr};
  while (!work.empty() && count < most) {
    ++count;
    if (auto binary = dyn_cast<AffineBinaryOpExpr>(work.pop_back_val()))
      work.append({binary.getLHS(), binary.getRHS()});
  }
  return count;
}

/// A sum in which equal terms are counted and not repeated: a kernel may have
/// hundreds of operands of one size.
class CountedSum {
public:
  explicit CountedSum(ArrayRef<graph::Symbol> symbols)
      : optimum(graph::getOptimum(symbols)), numSymbols(symbols.size()) {}

  void add(AffineExpr term) { ++terms[{term, term}]; }
  /// The smaller one of two.
  void addSmaller(AffineExpr a, AffineExpr b) { ++terms[{a, b}]; }

  ShapeExpr total() const {
    ShapeExpr sum = 0;
    for (const auto &[term, count] : terms) {
      auto [a, b] = term;
      if (countNodes(a, longest) + countNodes(b, longest) > longest)
        return atOptimum();
      sum = sum + charonia::min(toShapeExpr(a), toShapeExpr(b)) * count;
      if (sum.terms().size() > longest)
        return atOptimum();
    }
    return sum.check(numSymbols) ? sum : atOptimum();
  }

private:
  /// Of expressions that are worth their room in an engine.
  static constexpr unsigned longest = 1024;

  ShapeExpr atOptimum() const {
    int64_t sum = 0;
    for (const auto &[term, count] : terms) {
      auto a = graph::evaluate(term.first, optimum),
           b = graph::evaluate(term.second, optimum);
      int64_t product;
      if (!a || !b || llvm::MulOverflow(std::min(*a, *b), count, product) ||
          llvm::AddOverflow(sum, product, sum))
        return std::numeric_limits<int64_t>::max();
    }
    return sum;
  }

  llvm::MapVector<std::pair<AffineExpr, AffineExpr>, int64_t> terms;
  SmallVector<int64_t> optimum;
  size_t numSymbols;
};

AffineExpr elementsOf(Value value) {
  return graph::numElements(graph::getShape(value), value.getContext());
}

/// Of an operand that indexing reads, not more than it takes out of it.
KernelAccess readOf(BlockArgument argument,
                    llvm::DenseMap<Value, AffineExpr> &results) {
  KernelAccess access{
      getElementTypeOrSelf(argument.getType()), elementsOf(argument), {}};
  for (Operation *user : argument.getUsers()) {
    auto graphOp = dyn_cast<graph::GraphOpInterface>(user);
    if (!graphOp || graphOp.getRole() != graph::OpRole::Indexing) {
      access.taken = {};
      break;
    }
    AffineExpr &elements = results[user->getResult(0)];
    if (!elements)
      elements = elementsOf(user->getResult(0));
    access.taken = access.taken ? access.taken + elements : elements;
  }
  return access;
}

} // namespace

SmallVector<KernelAccess> accessesOf(graph::KernelOp kernel) {
  SmallVector<KernelAccess> accesses;
  llvm::DenseMap<Value, AffineExpr> results;
  std::optional<unsigned> updated = graph::getUpdatedInput(kernel);
  for (BlockArgument argument : kernel.getBody().getArguments())
    if (argument.getArgNumber() != updated)
      accesses.push_back(readOf(argument, results));
  for (Value result : kernel.getResults())
    accesses.push_back({getElementTypeOrSelf(result.getType()),
                        elementsOf(updated ? graph::getWalked(kernel) : result),
                        {}});
  return accesses;
}

KernelWork measureWork(graph::KernelOp kernel,
                       ArrayRef<graph::Symbol> symbols) {
  CountedSum flops(symbols), bytes(symbols);
  for (Operation &op : kernel.getBody().front())
    if (auto graphOp = dyn_cast<graph::GraphOpInterface>(&op))
      if (graphOp.getRole() != graph::OpRole::Source)
        flops.add(graphOp.getFlops());
  for (const KernelAccess &access : accessesOf(kernel)) {
    int64_t each = graph::elementBytes(access.element);
    if (access.taken)
      bytes.addSmaller(access.all * each, access.taken * each);
    else
      bytes.add(access.all * each);
  }
  return {flops.total(), bytes.total()};
}

OptimalWork workAtOptimum(graph::KernelOp kernel) {
  auto symbols = graph::getSymbols(kernel->getParentOfType<ModuleOp>());
  SmallVector<int64_t> optimum = graph::getOptimum(symbols);
  KernelWork work = measureWork(kernel, symbols);
  auto valueOf = [&](const ShapeExpr &expr) {
    auto value = expr.evaluate(optimum);
    return value ? double(*value) : 0.0;
  };
  return {valueOf(work.flops), valueOf(work.bytes)};
}

double costOf(graph::KernelOp kernel) {
  constexpr double flopsForByte = 100;
  OptimalWork work = workAtOptimum(kernel);
  return work.flops + flopsForByte * work.bytes;
}

void warnOfRepeatedWork(func::FuncOp function,
                        ArrayRef<graph::Symbol> symbols) {
  SmallVector<int64_t> optimum = graph::getOptimum(symbols);
  llvm::DenseSet<Value> fixed;
  double total = 0;
  int64_t most = 0;
  std::optional<Location> where;
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (!graph::isWeight(&op) && !llvm::all_of(op.getOperands(), [&](Value v) {
          return fixed.contains(v);
        }))
      continue;
    auto kernel = dyn_cast<graph::KernelOp>(op);
    bool isStatic = llvm::all_of(op.getResultTypes(), [](Type type) {
      return cast<RankedTensorType>(type).hasStaticShape();
    });
    if (kernel && !isStatic)
      continue;
    fixed.insert(op.result_begin(), op.result_end());
    if (!kernel)
      continue;
    auto flops = measureWork(kernel, symbols).flops.evaluate(optimum);
    if (!flops)
      continue;
    total += double(*flops);
    if (*flops > most)
      most = *flops, where = op.getLoc();
  }
  if (total <= graph::WeightsOnly::smallWork)
    return;
  char text[32];
  std::snprintf(text, sizeof(text), "%.2g", total);
  InFlightDiagnostic warning = emitWarning(*where);
  warning << "every run does " << text
          << " operations on weights alone, too many to be done once while "
             "the engine is built";
  warning.attachNote() << "remedy: compute what follows from constants before "
                          "the model is exported";
}

} // namespace charonia::driver
