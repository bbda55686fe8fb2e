// The cost model: tile sizes from what the kernel's operators say of
// themselves.
#include "codegen/emit/Schedule.h"
#include "codegen/emit/GpuTiles.h"
#include "codegen/emit/TileEmitter.h"
#include "graph/analysis/CodeSize.h"
#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/Updates.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;
using graph::DimKind;
using graph::Exprs;
using graph::OpRole;

EmitTarget EmitTarget::x86v3() {
  EmitTarget t;
  t.vectorElements = 8;
  t.vectorRegisters = 16;
  return t;
}
EmitTarget EmitTarget::x86v4() { return EmitTarget(); }
EmitTarget EmitTarget::gpu(StringRef chip) {
  EmitTarget t;
  t.kind = Kind::Gpu;
  t.chip = GpuTarget::get(chip);
  assert(t.chip && "a chip that is not known");
  return t;
}

namespace {

/// Instructions that an elementwise tile may take: longer code helps no
/// machine, and register allocation takes time that is quadratic in it.
constexpr int64_t tileCode = 4096;

/// What the cost model looks at.
struct KernelShape {
  Exprs root;
  SmallVector<int64_t> sizes; // at the symbols' opt values
  SmallVector<DimKind> kinds;
  /// What the kernel is built around; Pointwise if nothing else.
  OpRole role = OpRole::Pointwise;
  /// A reduction runs along the memory of its input.
  bool alongRow = false;
  int64_t terms = 1; // of the reduction
  bool isDot = false;
  /// A contraction that gives all columns of a row at once (attention), even
  /// where there is just one.
  bool wholeRows = false;
  int64_t elementBits = 32;              // of what is multiplied or reduced
  int64_t rowBytes = 0, columnBytes = 0; // of the operands of a contraction
  /// Neighbouring columns of a contraction that share their rows; 0: all.
  int64_t columnRun = 0;
  /// Every input is read in the order of the result.
  bool linear = true;
  /// Columns of the stationary operand of a contraction are neighbours in
  /// memory.
  bool columnsInMemory = true;
  /// Instructions for a register of results.
  int64_t code = 0;
  /// Dimensions, before the last, along which a large input is dense that is
  /// not along the last: the last of them is, and those in front continue it.
  SmallVector<unsigned> crossing;
  /// Later rows take longer.
  bool growsByRow = false;
  /// Dimensions along which what a window slides over is dense in memory.
  SmallVector<bool> windowDense;
};

unsigned rankOf(OpRole role) {
  switch (role) {
  case OpRole::Ordered:
    return 5;
  case OpRole::Contraction:
    return 4;
  case OpRole::RowNormalization:
    return 3;
  case OpRole::Reduction:
    return 2;
  case OpRole::Window:
    return 1;
  default:
    return 0;
  }
}

int64_t sizeAt(AffineExpr expr, ArrayRef<int64_t> symbols) {
  return std::max<int64_t>(graph::evaluate(expr, symbols).value_or(1), 1);
}

SmallVector<int64_t> optimumOf(graph::KernelOp kernel) {
  SmallVector<int64_t> sizes;
  for (const graph::Symbol &s :
       graph::getSymbols(kernel->getParentOfType<ModuleOp>()))
    sizes.push_back(s.opt);
  return sizes;
}

/// Whether dimension `dim` of a value is innermost where it lies in memory,
/// behind the views of the kernel.
bool isInnermostInMemory(Value value, unsigned dim) {
  AffineMap map = AffineMap::getMultiDimIdentityMap(
      graph::getShape(value).size(), value.getContext());
  while (auto view = value.getDefiningOp<graph::GraphOpInterface>()) {
    AffineMap step =
        view.getRole() == OpRole::View ? view.getOperandMap(0) : AffineMap();
    if (!step)
      break;
    map = graph::composeMaps(step, map);
    value = view->getOperand(0);
  }
  Exprs memory = graph::getShape(value);
  int64_t last = memory.size() - 1;
  while (last > 0 && graph::constantOf(memory[last]) == 1)
    --last;
  return last >= 0 && map.getResult(last).isFunctionOfDim(dim);
}

/// A reduction that leaves the last dimension alone runs across rows.
bool runsAlongRow(graph::GraphOpInterface op) {
  Exprs in = graph::getShape(op->getOperand(0)),
        out = graph::getShape(op->getResult(0));
  return op.getRole() == OpRole::Reduction &&
         (out.empty() || in.back() != out.back());
}

/// What a contraction multiplies.
void readColumns(KernelShape &shape, graph::GraphOpInterface op,
                 const graph::Columns &columns, ArrayRef<int64_t> symbols) {
  auto bytesOf = [&](unsigned operand) {
    AffineExpr elements = graph::numElements(
        graph::getShape(op->getOperand(operand)), op->getContext());
    return sizeAt(elements, symbols) * shape.elementBits / 8;
  };
  shape.columnsInMemory =
      isInnermostInMemory(op->getOperand(columns.operand), columns.operandDim);
  shape.columnBytes = bytesOf(columns.operand);
  shape.rowBytes = bytesOf(columns.operand == 0 ? 1 : 0);
}

/// An operator that the kernel may be built around. `map` leads from the
/// kernel's result to its own.
void readAnchor(KernelShape &shape, graph::GraphOpInterface op, AffineMap map,
                ArrayRef<int64_t> symbols) {
  OpRole role = op.getRole();
  unsigned rank = shape.root.size();
  if (rankOf(role) > rankOf(shape.role)) {
    shape.role = role;
    shape.kinds.assign(rank, DimKind::Parallel);
  }
  if (role != shape.role)
    return;
  if (AffineExpr extent = op.getReductionExtent())
    shape.terms = sizeAt(extent, symbols);
  Type element = getElementTypeOrSelf(op->getOperand(0).getType());
  if (element.isIntOrFloat())
    shape.elementBits = std::max<int64_t>(8, element.getIntOrFloatBitWidth());
  if (std::optional<graph::Columns> columns = op.getColumns())
    readColumns(shape, op, *columns, symbols);
  if (auto emitting = dyn_cast<EmitOpInterface>(op.getOperation()))
    if (AffineExpr run = emitting.getColumnRun())
      shape.columnRun = graph::constantOf(graph::simplify(run)).value_or(1);
  SmallVector<DimKind> kinds = op.getResultDimKinds();
  shape.wholeRows =
      role == OpRole::Contraction && llvm::is_contained(kinds, DimKind::Whole);
  for (auto [kind, coordinate] : llvm::zip(kinds, map.getResults()))
    for (unsigned d = 0; d < rank; ++d)
      if (coordinate.isFunctionOfDim(d))
        shape.kinds[d] = std::max(shape.kinds[d], kind);
  shape.alongRow |= runsAlongRow(op);
  // Coordinates of a window's operand and result correspond.
  if (llvm::is_contained(kinds, DimKind::Window)) {
    shape.windowDense.assign(rank, false);
    unsigned shared = graph::getShape(op->getOperand(0)).size();
    for (auto [i, coordinate] :
         llvm::enumerate(map.getResults().take_front(shared)))
      if (isInnermostInMemory(op->getOperand(0), i))
        for (unsigned d = 0; d < rank; ++d)
          shape.windowDense[d] =
              shape.windowDense[d] || coordinate.isFunctionOfDim(d);
  }
}

/// Whatever reduces rows beside values of their full length needs them whole.
void findWholeRows(KernelShape &shape, graph::KernelOp kernel, Value root) {
  std::optional<graph::IterationSpace> space = graph::getIterationSpace(kernel);
  auto place = space ? space->lookup(root) : std::nullopt;
  if (!place || place->extent != graph::IterationSpace::Extent::Full)
    return;
  for (unsigned d = 0; d < shape.root.size(); ++d)
    for (unsigned reduced : space->getReduced().set_bits())
      if (place->map.getResult(d).isFunctionOfDim(reduced)) {
        shape.kinds[d] = DimKind::Whole;
        shape.role = OpRole::RowNormalization;
      }
}

/// Notes an input that is read across its memory. `map` leads from the kernel's
/// result to it.
void readInput(KernelShape &shape, Value input, AffineMap map,
               ArrayRef<int64_t> symbols) {
  Exprs extents = graph::getShape(input);
  AffineExpr offset = getAffineConstantExpr(0, map.getContext()),
             elements = getAffineConstantExpr(1, map.getContext());
  for (auto [extent, coordinate] : llvm::zip(extents, map.getResults())) {
    offset = offset * extent + coordinate;
    elements = elements * extent;
  }
  int64_t results = 1;
  for (int64_t size : shape.sizes)
    results *= size;
  if (sizeAt(elements, symbols) * 2 < results)
    return;
  graph::Sum sum(graph::simplify(graph::mapOf(shape.root.size(), {offset},
                                              map.getContext()),
                                 shape.root)
                     .getResult(0));
  unsigned last = shape.root.size();
  while (last > 0 && shape.sizes[last - 1] == 1)
    --last;
  if (last == 0)
    return;
  std::optional<int64_t> along = sum.coefficientOf(last - 1);
  if (along && (*along == 0 || *along == 1))
    return;
  int64_t stride = 1;
  for (unsigned d = last - 1; d-- > 0;) {
    if (shape.sizes[d] == 1)
      continue;
    auto extent = graph::constantOf(shape.root[d]);
    if (sum.coefficientOf(d) == stride) {
      shape.crossing.insert(shape.crossing.begin(), d);
      if (!extent)
        return;
      stride *= *extent;
    } else if (!shape.crossing.empty()) {
      return;
    }
  }
}

KernelShape inspect(graph::KernelOp kernel, const EmitTarget &target) {
  KernelShape shape;
  SmallVector<int64_t> symbols = optimumOf(kernel);
  Value root = graph::getWalked(kernel);
  MLIRContext *context = kernel.getContext();
  shape.root = graph::getShape(root);
  unsigned rank = shape.root.size();
  for (AffineExpr e : shape.root)
    shape.sizes.push_back(sizeAt(e, symbols));
  shape.kinds.assign(rank, DimKind::Parallel);
  shape.code = graph::estimateCode(kernel, tileCode);
  if (graph::getUpdatedInput(kernel)) {
    // What is walked is put anywhere.
    shape.role = OpRole::Indexing;
    shape.linear = false;
  }

  // Coordinates of every value reached from the root by maps.
  DenseMap<Value, AffineMap> reached;
  reached[root] = AffineMap::getMultiDimIdentityMap(rank, context);
  SmallVector<Value> work{root};
  AffineMap identity = reached[root];
  while (!work.empty()) {
    Value value = work.pop_back_val();
    AffineMap map = reached[value];
    auto op = value.getDefiningOp<graph::GraphOpInterface>();
    if (!op) {
      bool scalar = llvm::all_of(graph::getShape(value), [](AffineExpr e) {
        return graph::constantOf(e) == 1;
      });
      if (isa<BlockArgument>(value) && !scalar && map != identity)
        shape.linear = false;
      if (isa<BlockArgument>(value) && shape.crossing.empty())
        readInput(shape, value, map, symbols);
      continue;
    }
    OpRole role = op.getRole();
    if (role == OpRole::Indexing || role == OpRole::Ordered)
      shape.linear = false;
    if (rankOf(role))
      readAnchor(shape, op, map, symbols);
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      Value operand = op->getOperand(i);
      AffineMap step = op.getOperandMap(i);
      if (!step && role == OpRole::RowNormalization)
        step = AffineMap::getMultiDimIdentityMap(map.getNumResults(), context);
      if (!step || reached.contains(operand))
        continue;
      reached[operand] = graph::composeMaps(step, map);
      work.push_back(operand);
    }
  }
  findWholeRows(shape, kernel, root);
  shape.growsByRow = growsByRow(kernel);
  return shape;
}

int64_t product(const KernelShape &k, ArrayRef<unsigned> dims) {
  int64_t n = 1;
  for (unsigned d : dims)
    n *= k.sizes[d];
  return n;
}

/// A tile of at most `most` that cuts `extent` into equal parts.
int64_t evenTile(int64_t extent, int64_t most) {
  if (extent <= most)
    return std::max<int64_t>(extent, 1);
  return llvm::divideCeil(extent, llvm::divideCeil(extent, most));
}

/// Tiles for each form of kernel.
class Chooser {
public:
  Chooser(const KernelShape &k, const EmitTarget &t)
      : k(k), t(t), cpu(t.kind == EmitTarget::Kind::Cpu) {
    for (unsigned d = 0; d < k.root.size(); ++d)
      if (graph::constantOf(k.root[d]) != 1)
        all.push_back(d);
  }

  Schedule run() {
    if (k.role == OpRole::Ordered)
      ordered();
    else if (k.role == OpRole::Contraction &&
             (hasKind(DimKind::Column) || k.wholeRows))
      contraction();
    else if (k.role == OpRole::RowNormalization && hasKind(DimKind::Whole))
      rows();
    else if (k.role == OpRole::Reduction && k.alongRow)
      reductionAlong();
    else
      elementwise();
    for (unsigned i = 0; i < s.groups.size(); ++i)
      if (s.groups[i].tile > 1 && !llvm::is_contained(s.axes, i))
        s.axes.push_back(i);
    return s;
  }

private:
  bool hasKind(DimKind kind) { return llvm::is_contained(k.kinds, kind); }
  SmallVector<unsigned> ofKind(DimKind kind) {
    SmallVector<unsigned> dims;
    for (unsigned d : all)
      if (k.kinds[d] == kind)
        dims.push_back(d);
    return dims;
  }
  bool isStatic(ArrayRef<unsigned> dims) {
    return llvm::all_of(dims, [&](unsigned d) {
      return graph::constantOf(k.root[d]).has_value();
    });
  }
  unsigned add(ArrayRef<unsigned> dims, int64_t tile, bool sequential = false) {
    s.groups.push_back({SmallVector<unsigned>(dims),
                        cpu ? tile : (int64_t)llvm::bit_ceil<uint64_t>(tile),
                        sequential});
    return s.groups.size() - 1;
  }

  /// Rows of a product's tile, at most `most`: those that waste least, be it on
  /// rows that do not exist or on what a tile costs beside its multiplications.
  int64_t rowTile(int64_t m, int64_t most, int64_t vectors) {
    if (m <= most)
      return std::max<int64_t>(m, 1);
    int64_t best = most;
    double least = std::numeric_limits<double>::infinity();
    for (int64_t rows = most; rows >= std::max<int64_t>(most / 2, 1); --rows) {
      // Cycles: two multiplications each, and for each of the terms and for
      // each tile something that measurements show (docs/performance.md).
      double cycles = llvm::divideCeil(m, rows) *
                      ((rows * vectors / 2.0 + 0.6) * k.terms + 60);
      if (cycles < least) {
        least = cycles;
        best = rows;
      }
    }
    return best;
  }

  void contraction() {
    // Attention's columns belong together: it computes a row's scores once.
    SmallVector<unsigned> row = ofKind(DimKind::Row), others,
                          column = ofKind(k.wholeRows ? DimKind::Whole
                                                      : DimKind::Column);
    for (unsigned d : all)
      if (!llvm::is_contained(row, d) && !llvm::is_contained(column, d))
        others.push_back(d);
    if (!others.empty())
      add(others, 1);
    if (k.wholeRows)
      attention(row, column, product(k, others));
    else if (cpu)
      cpuProduct(row, column);
    else if (row.empty())
      gpuRow(column, product(k, others));
    else
      gpuProduct(row, column, product(k, others));
  }

  void attention(ArrayRef<unsigned> row, ArrayRef<unsigned> column,
                 int64_t batch) {
    int64_t n = product(k, column), bm = cpu ? t.vectorElements : 64;
    if (!cpu && k.elementBits == 16) {
      bm = gpuAttention(product(k, row), n, batch);
      s.warps = bm / 16;
      s.stages = 2;
    } else {
      // A vector of scores for each key stays in registers.
      s.keyTile = !cpu ? 64 : t.vectorRegisters >= 32 ? 16 : 12;
    }
    unsigned c = add(column, n), r = add(row, row.empty() ? 1 : bm);
    s.axes = tiled({r, c});
    if (!cpu && k.growsByRow)
      longestFirst(n, batch);
  }

  /// Rows of a tile and keys of a step, as measured on an H200 (mma.sync:
  /// scripts/gpu_kernels.py --problems; wgmma: docs/performance.md).
  int64_t gpuAttention(int64_t rows, int64_t n, int64_t batch) {
    auto tiles = [&](int64_t bm) -> int64_t {
      return llvm::divideCeil(rows, bm) * batch;
    };
    int64_t chips = t.chip->multiprocessors;
    bool few = tiles(64) < chips / 2;
    // Of width n each, a key and a value have two terms.
    int64_t keys = k.terms / 2;
    int64_t width = llvm::bit_ceil<uint64_t>(n);
    bool isAsync = t.chip->dotFor(16, 64, width, width, 4).form ==
                   DotInstruction::Form::WarpgroupMma;
    if (!isAsync || (few && keys <= 256)) {
      // Few instances are better short, and long steps over the keys pay while
      // the scores fit into registers.
      s.keyTile = n <= 128 ? 128 : 64;
      return few ? 32 : tiles(64) > 8 * chips ? 128 : 64;
    }
    // Instances of a multiprocessor run their products under each other's
    // arithmetic. Wide rows leave registers for two of 128 rows and steps of 64
    // keys, which read keys and values half as often as more of 64 rows would.
    s.keyTile = n > 64 || (k.growsByRow && keys <= 512) ? 64 : 128;
    bool tall = n > 64 && n <= 128 && tiles(128) >= chips;
    s.residents = n > 128 ? 1 : tall ? 2 : 3;
    return tall ? 128 : 64;
  }

  /// The longest rows of as many heads as have their keys and values in the
  /// second-level cache together. Measured on an H200: 2048 keys of 32 heads
  /// 42 us, head after head 56.
  void longestFirst(int64_t n, int64_t batch) {
    constexpr int64_t cacheBytes = 16 << 20;
    // A term is a feature of a key or a value, for each of n columns.
    int64_t headBytes = std::max<int64_t>(1, k.terms * n * k.elementBits / 8);
    s.run = 1;
    int64_t heads = std::max<int64_t>(1, cacheBytes / headBytes);
    s.section = heads < batch ? heads : 0;
  }

  /// As many accumulators as registers allow beside a row of the right operand
  /// and the broadcast element.
  void cpuProduct(ArrayRef<unsigned> row, ArrayRef<unsigned> column) {
    int64_t m = product(k, row), n = product(k, column), v = t.vectorElements;
    int64_t bn = std::min(n, 2 * v);
    // Columns of one group only, if they fill a good part of a register.
    if (k.columnRun >= v / 4)
      for (bn = std::min(bn, k.columnRun); k.columnRun % bn != 0;)
        --bn;
    int64_t used = llvm::divideCeil(bn, v);
    int64_t most = (t.vectorRegisters - used - 1) / used;
    most = std::min<int64_t>(most, t.vectorRegisters >= 32 ? 14 : 6);
    int64_t bm = isStatic(row) || m > most ? rowTile(m, most, used)
                                           : std::min<int64_t>(most, 12);
    // What is reused should stay in the second-level cache: all columns for
    // each tile of rows where they fit, else all rows for each tile of columns,
    // or as many of them as fit.
    unsigned c, r;
    if (k.columnBytes <= t.cacheBytes) {
      r = add(row, bm);
      c = add(column, bn);
    } else {
      c = add(column, bn);
      r = add(row, bm);
      // Rows come from the third level fast enough to take twice the cache;
      // columns are read once more for every part of them.
      int64_t parts = llvm::divideCeil(k.rowBytes, 2 * t.cacheBytes),
              tiles = llvm::divideCeil(m, bm);
      if (parts > 1 &&
          k.rowBytes * int64_t(llvm::divideCeil(n, bn)) > k.columnBytes * parts)
        s.run = llvm::divideCeil(tiles, std::min(parts, tiles));
    }
    s.axes = tiled({r, c});
    s.kTile = 8;
  }

  /// One row is no product of tiles: each instance adds up a few columns. More
  /// where they lie side by side, as memory is read in runs of 32 bytes and
  /// more.
  void gpuRow(ArrayRef<unsigned> column, int64_t batch) {
    int64_t share = llvm::bit_floor<uint64_t>(std::max<int64_t>(
        1, product(k, column) * batch / (2 * t.chip->multiprocessors)));
    add(column, k.columnsInMemory ? std::clamp<int64_t>(share, 32, 128)
                                  : std::clamp<int64_t>(share, 1, 8));
  }

  void gpuProduct(ArrayRef<unsigned> row, ArrayRef<unsigned> column,
                  int64_t batch) {
    GpuDot dot{product(k, row), product(k, column), k.terms, batch,
               k.elementBits / 8};
    dot.tensorCores = k.elementBits == 16 || (k.elementBits == 32 && t.tf32);
    dot.chip = t.chip;
    GpuTile chosen = chooseGpuTile(dot);
    unsigned c = add(column, chosen.n), r = add(row, chosen.m);
    if (s.groups[c].tile != chosen.n)
      s.groups[c].own = chosen.n;
    s.axes = tiled({r, c});
    s.kTile = chosen.k;
    s.warps = chosen.warps;
    s.stages = chosen.stages;
    s.splits = chosen.splits;
    if (chosen.splits == 1)
      s.run = rowsTogether(dot, chosen);
  }

  /// Tiles of rows that are computed with all columns before others are, where
  /// there are several rounds of instances: those of a round then lie in a
  /// square, which takes the least from memory.
  static int64_t rowsTogether(const GpuDot &dot, const GpuTile &tile) {
    int64_t rows = llvm::divideCeil(dot.m, tile.m),
            columns = llvm::divideCeil(dot.n, tile.n),
            round = dot.chip->multiprocessors;
    if (rows * columns <= round)
      return 0;
    auto side = int64_t(std::sqrt(double(round) * tile.n / tile.m));
    return rows > side ? std::max<int64_t>(side, 1) : 0;
  }

  void rows() {
    SmallVector<unsigned> whole = ofKind(DimKind::Whole), others;
    for (unsigned d : all)
      if (!llvm::is_contained(whole, d))
        others.push_back(d);
    // Rows of one element leave nothing to walk along.
    if (whole.empty())
      return elementwise();
    int64_t n = product(k, whole);
    bool innermost = whole.back() == all.back();
    if (!innermost) {
      // Rows lie across memory: many of them side by side, their elements one
      // by one.
      SmallVector<unsigned> last{all.back()};
      others.pop_back();
      if (!others.empty())
        add(others, 1);
      add(last, std::min<int64_t>(k.sizes[all.back()],
                                  cpu ? 2 * t.vectorElements : 128));
      add(whole, 1, /*sequential=*/true);
      return;
    }
    int64_t most = cpu ? t.vectorElements * 8 : 8192;
    if (!others.empty())
      add(others, cpu || n > 512
                      ? 1
                      : std::min<int64_t>(
                            std::max<int64_t>(
                                1024 / (int64_t)llvm::bit_ceil<uint64_t>(n), 1),
                            product(k, others)));
    bool fits = isStatic(whole) && n <= most;
    add(whole,
        fits  ? n
        : cpu ? t.vectorElements * 4
              : std::min<int64_t>(llvm::bit_ceil<uint64_t>(n), 4096),
        /*sequential=*/true);
  }

  /// Whole dimensions are the operator's to walk. Beside them, neighbours in
  /// memory lie in one tile; rows do where they are short.
  void ordered() {
    SmallVector<unsigned> batch = ofKind(DimKind::Batch),
                          parallel = ofKind(DimKind::Parallel);
    if (!batch.empty())
      add(batch, 1);
    if (!cpu)
      s.warps = 8;
    if (parallel.empty())
      return;
    if (parallel.back() == all.back()) {
      SmallVector<unsigned> inner{parallel.pop_back_val()};
      if (!parallel.empty())
        add(parallel, 1);
      int64_t n = product(k, inner);
      int64_t tile = cpu ? std::min(n, 4 * t.vectorElements)
                         : std::min<int64_t>(llvm::bit_ceil<uint64_t>(n), 256);
      add(inner, tile);
      if (!cpu)
        s.warps = std::max<int64_t>(tile / 32, 1);
      return;
    }
    int64_t length =
        llvm::bit_ceil<uint64_t>(product(k, ofKind(DimKind::Whole)));
    add(parallel, cpu ? 1
                      : std::min<int64_t>(
                            std::max<int64_t>(1024 / length, 1),
                            llvm::bit_ceil<uint64_t>(product(k, parallel))));
  }

  void reductionAlong() {
    int64_t n = product(k, all);
    int64_t rows =
        cpu ? 1
            : std::min<int64_t>(
                  std::max<int64_t>(
                      1024 / (int64_t)llvm::bit_ceil<uint64_t>(k.terms), 1),
                  64);
    rows = std::max<int64_t>(std::min(rows, n), 1);
    if (!all.empty())
      add(all, rows);
    // Few long sums: parts of some blocks each, as many as the chip takes.
    constexpr int64_t partTerms = 16384, mostParts = 32;
    int64_t instances = std::max<int64_t>(llvm::divideCeil(n, rows), 1);
    if (!cpu && isStatic(all))
      s.splits =
          std::clamp<int64_t>(std::min(k.terms / partTerms,
                                       2 * t.chip->multiprocessors / instances),
                              1, mostParts);
  }

  /// Windows slide over a run of elements that all have the same channels:
  /// a tile of some neighbours by some channels reads what the windows share,
  /// and the filter, once.
  bool windows() {
    if (!cpu || all.size() < 2)
      return false;
    // Channels are innermost in memory, or in front of the window's dimensions
    // where a transpose follows: then tiles are stored across.
    unsigned c = all.size() - 1, w = c;
    while (c > 0 && k.kinds[all[c]] == DimKind::Window)
      --c;
    if (c == w)
      --w;
    if (k.kinds[all[c]] == DimKind::Window ||
        k.kinds[all[w]] != DimKind::Window)
      return false;
    if (k.windowDense.empty() || !k.windowDense[all[c]])
      return false;
    SmallVector<unsigned> channel{all[c]}, slide{all[w]}, others;
    for (unsigned d : all)
      if (d != channel[0] && d != slide[0])
        others.push_back(d);
    int64_t n = product(k, channel);
    if (n < t.vectorElements)
      return false;
    int64_t most = isStatic(channel) && n % (2 * t.vectorElements) != 0 &&
                           n % t.vectorElements == 0
                       ? t.vectorElements
                       : 2 * t.vectorElements;
    if (!others.empty())
      add(others, 1);
    add(slide, evenTile(product(k, slide), isStatic(slide) ? 14 : 7));
    add(channel, std::min(n, most));
    return true;
  }

  /// Inputs that are dense along another dimension than the result: blocks that
  /// are some registers long both ways, transposed in registers.
  bool blocks() {
    if (!cpu || k.role != OpRole::Pointwise || k.crossing.empty() ||
        k.code * t.vectorElements > tileCode)
      return false;
    unsigned last = all.back();
    int64_t across = product(k, k.crossing);
    constexpr int64_t least = 4; // shorter rows are not transposed
    if (across < least || k.sizes[last] < least)
      return false;
    SmallVector<unsigned> others;
    for (unsigned d : all)
      if (d != last && !llvm::is_contained(k.crossing, d))
        others.push_back(d);
    if (!others.empty())
      add(others, 1);
    add(k.crossing, std::min(across, t.vectorElements));
    add(last, std::min(k.sizes[last], t.vectorElements));
    return true;
  }

  void elementwise() {
    if (all.empty() || windows() || blocks())
      return;
    int64_t most = cpu ? 8 * t.vectorElements : 1024;
    if (k.role != OpRole::Pointwise)
      most = cpu ? 4 * t.vectorElements : 256;
    // Where a register takes much code a tile has fewer, but one at least.
    int64_t registers = cpu ? most / t.vectorElements : most / 128;
    most /= llvm::divideCeil(registers,
                             llvm::bit_floor<uint64_t>(std::max<int64_t>(
                                 tileCode / std::max<int64_t>(k.code, 1), 1)));
    // Few long sums: the fewer of them an instance has, the more instances
    // there are.
    if (!cpu && k.role == OpRole::Reduction)
      most = std::clamp<int64_t>(
          llvm::bit_floor<uint64_t>(product(k, all) / t.chip->multiprocessors +
                                    1),
          32, most);
    // Inner dimensions are one run as long as they are short; the rest are
    // rows.
    SmallVector<unsigned> inner{all.back()},
        outer(ArrayRef<unsigned>(all).drop_back());
    int64_t least = cpu ? t.vectorElements : 64;
    bool linear = k.linear && (!cpu || k.windowDense.empty());
    while (!outer.empty() && (linear || product(k, inner) < least)) {
      inner.insert(inner.begin(), outer.back());
      outer.pop_back();
    }
    int64_t n = product(k, inner),
            tile = isStatic(inner) ? evenTile(n, most)
                                   : std::min(most, std::max(n, least));
    if (cpu && tile > t.vectorElements && tile < n)
      tile = llvm::alignTo(tile, t.vectorElements);
    if (!outer.empty())
      add(outer,
          cpu ? 1
              : std::max<int64_t>(
                    1, std::min<int64_t>(
                           product(k, outer),
                           most / (int64_t)llvm::bit_ceil<uint64_t>(tile))));
    add(inner, tile);
  }

  SmallVector<unsigned> tiled(ArrayRef<unsigned> groups) {
    SmallVector<unsigned> axes;
    for (unsigned g : groups)
      if (s.groups[g].tile > 1)
        axes.push_back(g);
    return axes;
  }

  const KernelShape &k;
  const EmitTarget &t;
  bool cpu;
  SmallVector<unsigned> all; // dimensions of extent other than 1
  Schedule s;
};

} // namespace

bool emit::growsByRow(graph::KernelOp kernel) {
  return llvm::any_of(kernel.getBody().front().getOps<graph::AttentionOp>(),
                      [](graph::AttentionOp op) { return op.getCausal(); });
}

graph::GraphOpInterface emit::orderedOf(graph::KernelOp kernel) {
  Operation *op =
      kernel.getBody().front().getTerminator()->getOperand(0).getDefiningOp();
  auto asked = dyn_cast_or_null<graph::GraphOpInterface>(op);
  return asked && asked.getRole() == OpRole::Ordered
             ? asked
             : graph::GraphOpInterface();
}

Schedule emit::chooseSchedule(graph::KernelOp kernel,
                              const EmitTarget &target) {
  return Chooser(inspect(kernel, target), target).run();
}
