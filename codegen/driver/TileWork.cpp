#include "codegen/driver/TileWork.h"
#include "codegen/driver/Work.h"
#include "codegen/tile/ir/TileDialect.h"
#include "graph/analysis/Updates.h"
#include "graph/analysis/Walked.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace charonia::driver {
namespace {

constexpr int64_t divisionWork = 4, functionWork = 16;

int64_t add(int64_t a, int64_t b) {
  int64_t sum;
  return llvm::AddOverflow(a, b, sum) ? std::numeric_limits<int64_t>::max()
                                      : sum;
}
int64_t multiply(int64_t a, int64_t b) {
  int64_t product;
  return llvm::MulOverflow(a, b, product) ? std::numeric_limits<int64_t>::max()
                                          : product;
}

/// Elements of a tile; of anything else one.
int64_t elementsOf(Value value) {
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  return tile ? tile.getNumElements() : 1;
}

/// What an elementwise operator does for an element; 0 for others.
int64_t workOf(Operation *op) {
  if (isa<arith::ConstantOp>(op))
    return 0;
  if (isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemFOp,
          arith::RemSIOp, arith::RemUIOp, math::SqrtOp, math::RsqrtOp>(op))
    return divisionWork;
  if (isa<math::AbsFOp, math::AbsIOp, math::CopySignOp, math::FloorOp,
          math::CeilOp, math::RoundEvenOp, math::TruncOp, math::FmaOp,
          math::IsNaNOp, math::IsInfOp>(op))
    return 1;
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect == math::MathDialect::getDialectNamespace())
    return functionWork;
  return dialect == arith::ArithDialect::getDialectNamespace();
}

int64_t workOf(Block &combiner) {
  int64_t work = 0;
  for (Operation &op : combiner)
    work += workOf(&op);
  return work;
}

class Counter {
public:
  explicit Counter(ArrayRef<int64_t> sizes) : sizes(sizes) {}

  TileWork count(func::FuncOp function) {
    int64_t instances = 1;
    if (auto grid = function->getAttrOfType<AffineMapAttr>(tile::kGridAttr))
      instances =
          graph::evaluate(grid.getValue().getResult(0), sizes).value_or(1);
    // The instance in the middle stands for all.
    programId = instances / 2;
    Block &body = function.getBody().front();
    unsigned first = body.getNumArguments() - sizes.size();
    for (auto [i, size] : llvm::enumerate(sizes))
      known[body.getArgument(first + i)] = size;
    countBlock(body, std::max<int64_t>(instances, 0));
    return work;
  }

private:
  void countBlock(Block &block, int64_t times) {
    for (Operation &op : block)
      countOp(&op, times);
  }

  void countOp(Operation *op, int64_t times) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return countLoop(loop, times);
    if (isa<tile::ProgramIdOp>(op)) {
      known[op->getResult(0)] = programId;
      return;
    }
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return countBranch(branch, times);
    evaluate(op);
    if (auto load = dyn_cast<tile::LoadOp>(op)) {
      int64_t elements = multiply(times, elementsOf(load));
      work.operations = add(work.operations, elements);
      work.bytes = add(work.bytes, bytesOf(load.getType(), elements));
    } else if (auto store = dyn_cast<tile::StoreOp>(op)) {
      int64_t elements = multiply(times, elementsOf(store.getValue()));
      work.operations = add(work.operations, elements);
      work.bytes =
          add(work.bytes, bytesOf(store.getValue().getType(), elements));
    } else if (auto dot = dyn_cast<tile::DotOp>(op)) {
      auto lhs = cast<RankedTensorType>(dot.getLhs().getType());
      addWork(times, lhs.getDimSize(0) * dot.getUsedColumns(),
              2 * lhs.getShape().back());
    } else if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
      addWork(times, elementsOf(reduce.getInputs().front()),
              workOf(reduce.getCombiner().front()));
    } else if (auto scan = dyn_cast<tile::ScanOp>(op)) {
      // Each with its predecessor in its run, and with what is carried.
      addWork(times, elementsOf(scan.getInput()),
              2 * workOf(scan.getCombiner().front()));
    } else if (auto sort = dyn_cast<tile::SortOp>(op)) {
      countSort(sort, times);
    } else if (isa<tile::InBoundsOp>(op)) {
      addWork(times, elementsOf(op->getResult(0)), 1);
    } else if (op->getNumResults() == 1 &&
               isa<RankedTensorType>(op->getResult(0).getType())) {
      addWork(times, elementsOf(op->getResult(0)), workOf(op));
    } else {
      for (Region &region : op->getRegions())
        for (Block &block : region)
          countBlock(block, times);
    }
  }

  /// As the side that is taken, or if that is not known the one that does more.
  void countBranch(scf::IfOp branch, int64_t times) {
    if (auto taken = lookup(branch.getCondition())) {
      for (Block &block :
           *taken ? branch.getThenRegion() : branch.getElseRegion())
        countBlock(block, times);
      return;
    }
    TileWork before = work, most = work;
    for (Region *side : {&branch.getThenRegion(), &branch.getElseRegion()}) {
      work = before;
      for (Block &block : *side)
        countBlock(block, times);
      most.operations = std::max(most.operations, work.operations);
      most.bytes = std::max(most.bytes, work.bytes);
    }
    work = most;
  }

  void countLoop(scf::ForOp loop, int64_t times) {
    auto low = lookup(loop.getLowerBound()),
         high = lookup(loop.getUpperBound()), step = lookup(loop.getStep());
    int64_t trips = 1;
    if (low && high && step && *step > 0)
      trips = *high > *low ? llvm::divideCeil(*high - *low, *step) : 0;
    // What bounds inner loops is taken from the middle.
    if (low && step)
      known[loop.getInductionVar()] = *low + trips / 2 * *step;
    countBlock(*loop.getBody(), multiply(times, trips));
  }

  /// Of a GPU, the network that it sorts by (codegen/gpu/lower/Sort.cpp): runs
  /// are doubled up to `kept`, then pairs of runs lose a half; else the levels
  /// of a sort by merging. An exchange reads two elements and writes two.
  void countSort(tile::SortOp sort, int64_t times) {
    int64_t n = lookup(sort.getCount()).value_or(1),
            kept = std::min(lookup(sort.getKept()).value_or(n), n);
    int64_t levels = llvm::Log2_64_Ceil(std::max<int64_t>(n, 1)),
            sorted = llvm::Log2_64_Ceil(std::max<int64_t>(kept, 1));
    bool isNetwork =
        sort->getParentOfType<func::FuncOp>()->hasAttr(tile::kWarpsAttr);
    int64_t steps = isNetwork ? sorted * (sorted + 1) / 2 +
                                    (sorted < levels ? 1 + sorted : 0)
                              : 2 * levels;
    int64_t accesses = multiply(multiply(n, steps), 2 * times);
    work.operations = add(work.operations, accesses);
    work.bytes = add(work.bytes, multiply(accesses, 8));
  }

  void addWork(int64_t times, int64_t elements, int64_t each) {
    work.operations =
        add(work.operations, multiply(times, multiply(elements, each)));
  }

  static int64_t bytesOf(Type tile, int64_t elements) {
    return multiply(elements, graph::elementBytes(getElementTypeOrSelf(tile)));
  }

  std::optional<int64_t> lookup(Value value) const {
    auto it = known.find(value);
    return it == known.end() ? std::nullopt : std::optional(it->second);
  }

  /// Index arithmetic, as far as it bounds loops and chooses branches.
  void evaluate(Operation *op) {
    if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
      auto x = lookup(compare.getLhs()), y = lookup(compare.getRhs());
      if (x && y)
        known[compare] = arith::applyCmpPredicate(
            compare.getPredicate(), APInt(64, *x, /*isSigned=*/true),
            APInt(64, *y, /*isSigned=*/true));
      return;
    }
    if (op->getNumResults() != 1 || !op->getResult(0).getType().isIndex())
      return;
    if (auto constant = dyn_cast<arith::ConstantIndexOp>(op)) {
      known[op->getResult(0)] = constant.value();
      return;
    }
    SmallVector<int64_t, 2> x;
    for (Value operand : op->getOperands()) {
      auto value = lookup(operand);
      if (!value)
        return;
      x.push_back(*value);
    }
    std::optional<int64_t> result;
    if (isa<arith::AddIOp>(op))
      result = add(x[0], x[1]);
    else if (isa<arith::SubIOp>(op))
      result = x[0] - x[1];
    else if (isa<arith::MulIOp>(op))
      result = multiply(x[0], x[1]);
    else if (isa<arith::MinSIOp, arith::MinUIOp>(op))
      result = std::min(x[0], x[1]);
    else if (isa<arith::MaxSIOp, arith::MaxUIOp>(op))
      result = std::max(x[0], x[1]);
    else if (x.size() == 2 && x[1] > 0 && x[0] >= 0) {
      if (isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp>(op))
        result = x[0] / x[1];
      else if (isa<arith::RemUIOp, arith::RemSIOp>(op))
        result = x[0] % x[1];
    }
    if (result)
      known[op->getResult(0)] = *result;
  }

  ArrayRef<int64_t> sizes;
  int64_t programId = 0;
  llvm::DenseMap<Value, int64_t> known;
  TileWork work;
};

} // namespace

TileWork countWork(func::FuncOp function, ArrayRef<int64_t> sizes) {
  return Counter(sizes).count(function);
}

namespace {

/// How much larger values are where the first result ends with whole tiles.
class Rounding {
public:
  Rounding(graph::KernelOp kernel, ArrayRef<int64_t> sizes,
           const emit::Schedule &schedule) {
    Block &body = kernel.getBody().front();
    Value root = graph::getWalked(kernel);
    graph::Exprs shape = graph::getShape(root);
    unsigned groups = schedule.groups.size();
    SmallVector<llvm::SmallBitVector> dims(shape.size(),
                                           llvm::SmallBitVector(groups));
    for (auto [g, group] : llvm::enumerate(schedule.groups)) {
      int64_t extent = 1;
      for (unsigned d : group.dims) {
        extent = multiply(extent, graph::evaluate(shape[d], sizes).value_or(1));
        dims[d].set(g);
      }
      extent = std::max<int64_t>(extent, 1);
      factors.push_back(double(group.covered(extent)) / double(extent));
    }
    // Of other results it is not told which of their dimensions are tiled.
    for (Value result : body.getTerminator()->getOperands())
      add(result, result == root ? dims : everywhere(result, dims));
    add(root, dims);
    for (Operation &op : llvm::reverse(body.without_terminator()))
      if (auto asked = dyn_cast<graph::GraphOpInterface>(&op))
        pass(asked);
  }

  double of(Value value) const {
    llvm::SmallBitVector along(factors.size());
    auto it = tiled.find(value);
    if (it != tiled.end())
      for (const llvm::SmallBitVector &dim : it->second)
        along |= dim;
    double factor = 1;
    for (unsigned g : along.set_bits())
      factor *= factors[g];
    return factor;
  }

private:
  /// For each dimension of a value, the groups of the schedule it goes along.
  using Dims = SmallVector<llvm::SmallBitVector>;

  llvm::SmallBitVector none() const {
    return llvm::SmallBitVector(factors.size());
  }
  Dims everywhere(Value value, const Dims &dims) const {
    llvm::SmallBitVector all = none();
    for (const llvm::SmallBitVector &dim : dims)
      all |= dim;
    return Dims(graph::getShape(value).size(), all);
  }
  void add(Value value, const Dims &dims) {
    auto [it, isNew] = tiled.try_emplace(value, dims);
    if (!isNew)
      for (auto [known, dim] : llvm::zip_equal(it->second, dims))
        known |= dim;
  }

  /// What the result of an operator says of its operands.
  void pass(graph::GraphOpInterface op) {
    auto it = tiled.find(op->getResult(0));
    if (it == tiled.end())
      return;
    Dims result = it->second;
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      add(op->getOperand(i), operandDims(op, i, result));
  }

  Dims operandDims(graph::GraphOpInterface op, unsigned operand,
                   const Dims &result) const {
    Value value = op->getOperand(operand);
    Dims dims(graph::getShape(value).size(), none());
    if (AffineMap map = op.getOperandMap(operand)) {
      for (auto [dim, expr] : llvm::zip_equal(dims, map.getResults()))
        for (auto [d, groups] : llvm::enumerate(result))
          if (expr.isFunctionOfDim(d))
            dim |= groups;
      return dims;
    }
    auto columns = op.getColumns();
    if (op.getRole() != graph::OpRole::Contraction || !columns)
      return everywhere(value, result);
    // Rows are those of the one operand, columns those of the other.
    bool isColumns = columns->operand == operand;
    for (auto [kind, groups] : llvm::zip_equal(op.getResultDimKinds(), result))
      if (kind != (isColumns ? graph::DimKind::Row : graph::DimKind::Column))
        for (llvm::SmallBitVector &dim : dims)
          dim |= groups;
    return dims;
  }

  SmallVector<double> factors;
  llvm::DenseMap<Value, Dims> tiled;
};

/// What an operator does for all elements of its result, each once.
int64_t workOf(graph::GraphOpInterface op, int64_t results,
               ArrayRef<int64_t> sizes) {
  auto at = [&](AffineExpr expr) {
    return std::max<int64_t>(graph::evaluate(expr, sizes).value_or(1), 0);
  };
  switch (op.getRole()) {
  case graph::OpRole::Source:
  case graph::OpRole::View:
    return 0;
  case graph::OpRole::Pointwise:
    return multiply(results, op.getCodeSize());
  case graph::OpRole::Indexing:
    // Each operand is asked whether it has the element, and for it.
    return std::max(multiply(results, 4 * op->getNumOperands()),
                    at(op.getFlops()));
  case graph::OpRole::Ordered:
    // Each element is taken, compared or combined, and put.
    return multiply(at(op.getFlops()),
                    multiply(4, op.getPasses(at(op.getReductionExtent()))));
  case graph::OpRole::RowNormalization:
    // Passes over the row, an elementary function in two of them.
    return multiply(results, op.getFlopsPerTerm() + 2 * functionWork);
  case graph::OpRole::Contraction:
  case graph::OpRole::Reduction:
    return at(op.getFlops());
  case graph::OpRole::Window:
    // Each term is fetched and combined.
    return multiply(at(op.getFlops()), 2);
  }
  llvm_unreachable("an operator has one of these roles");
}

TileWork workOf(graph::KernelOp kernel, ArrayRef<int64_t> sizes,
                const Rounding *rounding) {
  TileWork work;
  auto at = [&](AffineExpr expr) {
    return std::max<int64_t>(graph::evaluate(expr, sizes).value_or(1), 0);
  };
  auto rounded = [&](int64_t count, Value value) {
    double factor = rounding ? rounding->of(value) : 1;
    return factor == 1 ? count : int64_t(std::min(count * factor, 9e18));
  };
  for (Operation &op : kernel.getBody().front())
    if (auto graphOp = dyn_cast<graph::GraphOpInterface>(&op)) {
      Value result = op.getResult(0);
      int64_t results =
          at(graph::numElements(graph::getShape(result), result.getContext()));
      work.operations = add(work.operations,
                            rounded(workOf(graphOp, results, sizes), result));
    }
  SmallVector<KernelAccess> accesses = accessesOf(kernel);
  std::optional<unsigned> updated = graph::getUpdatedInput(kernel);
  SmallVector<Value> values;
  for (BlockArgument argument : kernel.getBody().getArguments())
    if (argument.getArgNumber() != updated)
      values.push_back(argument);
  llvm::append_range(values,
                     kernel.getBody().front().getTerminator()->getOperands());
  for (auto [access, value] : llvm::zip_equal(accesses, values)) {
    int64_t elements = at(access.all);
    if (access.taken)
      elements = std::min(elements, at(access.taken));
    elements = rounded(elements, value);
    work.operations = add(work.operations, elements);
    work.bytes = add(work.bytes,
                     multiply(elements, graph::elementBytes(access.element)));
  }
  return work;
}

} // namespace

TileWork neededWork(graph::KernelOp kernel, ArrayRef<int64_t> sizes) {
  return workOf(kernel, sizes, nullptr);
}

TileWork tiledWork(graph::KernelOp kernel, ArrayRef<int64_t> sizes,
                   const emit::Schedule &schedule) {
  Rounding rounding(kernel, sizes, schedule);
  return workOf(kernel, sizes, &rounding);
}

} // namespace charonia::driver
