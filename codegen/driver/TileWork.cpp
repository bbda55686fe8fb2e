#include "codegen/driver/TileWork.h"
#include "codegen/tile/ir/TileDialect.h"
#include "graph/analysis/Updates.h"
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
    evaluate(op);
    if (auto load = dyn_cast<tile::LoadOp>(op)) {
      int64_t elements = multiply(times, elementsOf(load));
      work.operations = add(work.operations, elements);
      work.bytes = add(work.bytes, bytesOf(load.getType(), elements));
    } else if (auto store = dyn_cast<tile::StoreOp>(op)) {
      int64_t elements = multiply(times, elementsOf(store.getValue()));
      work.stored = add(work.stored, elements);
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

  /// Index arithmetic, as far as it bounds loops.
  void evaluate(Operation *op) {
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

TileWork neededWork(graph::KernelOp kernel, ArrayRef<int64_t> sizes) {
  TileWork work;
  auto at = [&](AffineExpr expr) {
    return std::max<int64_t>(graph::evaluate(expr, sizes).value_or(1), 0);
  };
  auto elements = [&](Value value) {
    return at(graph::numElements(graph::getShape(value), value.getContext()));
  };
  auto access = [&](Value value) {
    work.operations = add(work.operations, elements(value));
    work.bytes = add(
        work.bytes,
        multiply(elements(value),
                 graph::elementBytes(getElementTypeOrSelf(value.getType()))));
  };
  for (Operation &op : kernel.getBody().front()) {
    auto graphOp = dyn_cast<graph::GraphOpInterface>(&op);
    if (!graphOp)
      continue;
    int64_t results = elements(op.getResult(0));
    switch (graphOp.getRole()) {
    case graph::OpRole::Source:
    case graph::OpRole::View:
      break;
    case graph::OpRole::Pointwise:
      work.operations =
          add(work.operations, multiply(results, graphOp.getCodeSize()));
      break;
    case graph::OpRole::Indexing:
      // Each operand is asked whether it has the element, and for it.
      work.operations =
          add(work.operations, multiply(results, 4 * op.getNumOperands()));
      break;
    case graph::OpRole::Ordered:
      // Each element is taken, compared or combined, and put.
      work.operations =
          add(work.operations,
              multiply(at(graphOp.getFlops()),
                       multiply(4, graphOp.getPasses(
                                       at(graphOp.getReductionExtent())))));
      break;
    case graph::OpRole::RowNormalization:
      // Passes over the row, an elementary function in two of them.
      work.operations =
          add(work.operations,
              multiply(results, graphOp.getFlopsPerTerm() + 2 * functionWork));
      break;
    case graph::OpRole::Contraction:
    case graph::OpRole::Reduction:
      work.operations = add(work.operations, at(graphOp.getFlops()));
      break;
    case graph::OpRole::Window:
      // Each term is fetched and combined.
      work.operations =
          add(work.operations, multiply(at(graphOp.getFlops()), 2));
      break;
    }
  }
  std::optional<unsigned> updated = graph::getUpdatedInput(kernel);
  for (auto [i, operand] : llvm::enumerate(kernel.getInputs()))
    if (i != updated)
      access(operand);
  // Of memory that is updated, no more than what meets it.
  for (Value result : kernel.getResults()) {
    Value written = updated ? graph::getWalked(kernel) : result;
    access(written);
    work.stored = add(work.stored, elements(written));
  }
  return work;
}

} // namespace charonia::driver
