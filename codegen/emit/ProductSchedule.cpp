// The cost model of products; of attention it is AttentionSchedule.cpp.
#include "codegen/emit/Chooser.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;
using graph::DimKind;

int64_t Chooser::rowTile(int64_t m, int64_t most, int64_t vectors) {
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

void Chooser::contraction() {
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
  else if (row.empty() || column.empty())
    gpuRow(row, column, product(k, others));
  else
    gpuProduct(row, column, product(k, others));
}

/// Those that CPUs multiply; narrower ones are widened.
static constexpr int64_t usualBits = 32;

int64_t Chooser::lanes() const {
  return t.vectorElements * usualBits / std::max(k.elementBits, usualBits);
}

std::vector<Chooser::CpuTile> Chooser::cpuTiles(ArrayRef<unsigned> row,
                                                ArrayRef<unsigned> column) {
  int64_t bits = std::max(k.elementBits, usualBits), m = product(k, row),
          n = product(k, column), v = lanes();
  // Of an open number there may be many, whatever is optimized for.
  if (!isStatic(column))
    n = std::max(n, v);
  // Of a single row as many columns as a cache gives in the time that a
  // multiplication takes: 32 bytes a cycle.
  constexpr int64_t fewestBits = 1024;
  int64_t bn = std::min(
      n, m == 1 && isStatic(row) ? std::max(2 * v, fewestBits / bits) : 2 * v);
  // Columns of one group only, if they fill a good part of a register: whole
  // registers, of which the last one's lanes may belong to none.
  if (k.columnRun > v) {
    bn = (llvm::divideCeil(k.columnRun, v) == 3 ? 3 : 2) * v;
  } else if (k.columnRun >= v / 4) {
    bn = std::min(bn, k.columnRun);
  }
  auto mostRows = [&](int64_t used) {
    int64_t most = std::max<int64_t>((t.vectorRegisters - used - 1) / used, 1);
    return std::min<int64_t>(most, t.vectorRegisters >= 32 ? 14 : 6);
  };
  int64_t used = llvm::divideCeil(bn, v), most = mostRows(used);
  int64_t bm = isStatic(row) || m > most ? rowTile(m, most, used)
                                         : std::min<int64_t>(most, 12);
  // What is reused should stay in the second-level cache: all columns for
  // each tile of rows where they fit, else all rows for each tile of columns,
  // or as many of them as fit.
  auto tileOf = [&](int64_t bm, int64_t bn, bool rowsFirst) {
    CpuTile tile{bm, bn, rowsFirst};
    // Rows come from the third level fast enough to take twice the cache;
    // columns are read once more for every part of them.
    int64_t parts = llvm::divideCeil(k.rowBytes, 2 * t.cacheBytes),
            tiles = llvm::divideCeil(m, bm);
    if (!rowsFirst && parts > 1 &&
        double(k.rowBytes) * double(llvm::divideCeil(n, bn)) >
            double(k.columnBytes) * double(parts))
      tile.run = llvm::divideCeil(tiles, std::min(parts, tiles));
    return tile;
  };
  bool rowsFirst = k.columnBytes <= t.cacheBytes;
  std::vector<CpuTile> ranked;
  auto add = [&](CpuTile tile) {
    if (!llvm::is_contained(ranked, tile))
      ranked.push_back(tile);
  };
  // Rows that are neighbours in the result are stored across the tile. With few
  // terms to a result its memory is what takes time: whole registers are
  // stored, one after the other along the rows.
  // Where they are one run in the operand, too, they are the lanes.
  constexpr int64_t fewTerms = 32, fewColumns = 4;
  bool across = k.terms <= fewTerms && !row.empty() && row.back() == all.back();
  if (across && k.rowsInMemory && k.elementBits >= 32 && k.columnRun == 0 &&
      n >= fewColumns && m >= v && m == k.sizes[all.back()]) {
    int64_t registers = (t.vectorRegisters - 2) / (fewColumns + 1);
    add({std::min(m, registers * v), fewColumns, /*rowsFirst=*/false, 0,
         /*swap=*/true});
  }
  if (across && n % v == 0 && bn % v == 0 && m >= v)
    add(tileOf(v, v, /*rowsFirst=*/false));
  // Columns that are computed are so once for many rows, some terms at a time
  // in the scratch, where enough instances are left.
  constexpr int64_t fewestInstances = 16, scratchTerms = 128;
  if (k.sharesColumns && isStatic(row) && m > most && bn % v == 0 &&
      k.terms >= scratchTerms / 2)
    for (int64_t rows = 128; rows > most; rows /= 2) {
      CpuTile tile = tileOf(evenTile(m, rows), bn, rowsFirst);
      tile.terms = scratchTerms;
      if (llvm::divideCeil(m, tile.rows) * llvm::divideCeil(n, bn) <
          fewestInstances)
        continue;
      add(tile);
      break;
    }
  add(tileOf(bm, bn, rowsFirst));
  add(tileOf(bm, bn, !rowsFirst));
  if (m > most)
    for (int64_t rows : {evenTile(m, most), most, most - 2, most / 2})
      add(tileOf(rows, bn, rowsFirst));
  if (bn > v)
    add(tileOf(std::min(m, mostRows(1)), v, rowsFirst));
  return ranked;
}

bool Chooser::hasLongRuns(int64_t run) {
  bool areWhole = run == k.terms || run % t.vectorElements == 0;
  return areWhole && run >= t.vectorElements &&
         k.terms >= 2 * t.vectorElements && k.elementBits >= usualBits;
}

bool Chooser::alongTerms(ArrayRef<unsigned> row, ArrayRef<unsigned> column) {
  constexpr int64_t sums = 8;
  // Always, not just at the sizes that are tuned for: what is no vector is
  // walked.
  auto isVector = [&](ArrayRef<unsigned> dims) {
    return product(k, dims) == 1 && isStatic(dims);
  };
  bool isShort = k.termRun == k.terms && k.terms >= t.vectorElements &&
                 k.elementBits >= usualBits;
  // Half of a register, as channels of one place, is a step as well.
  bool isHalf = 2 * k.termRun == t.vectorElements &&
                k.terms >= 2 * t.vectorElements && k.elementBits >= usualBits;
  if ((!isVector(row) && !isVector(column)) ||
      (!isShort && !isHalf && !hasLongRuns(k.termRun)))
    return false;
  ArrayRef<unsigned> many = isVector(row) ? column : row;
  // A step has terms of one place of a window.
  if (k.termRun != k.terms && product(k, many) < sums / 2)
    return false;
  // Of an open number there may be many, whatever is optimized for.
  if (!many.empty() && isStatic(many))
    s.axes = tiled({add(many, evenTile(product(k, many), sums))});
  else if (!many.empty())
    s.axes = tiled({addOpen(many, sums, sums / 2)});
  for (Schedule::Group &g : s.groups)
    if (g.rest)
      g.shortest = 1;
  s.alongTerms = true;
  return true;
}

bool Chooser::oneColumn() {
  if (!cpu || !k.isProduct)
    return false;
  SmallVector<unsigned> row = ofKind(DimKind::Row), others;
  for (unsigned d : all)
    if (!llvm::is_contained(row, d))
      others.push_back(d);
  if (!others.empty())
    add(others, 1);
  if (alongTerms(row, {}))
    return true;
  s = {};
  return false;
}

void Chooser::addRest(Schedule::Group &g, bool acrossLanes) {
  // Where rows are lanes, one register takes as long as a part of it.
  if (acrossLanes) {
    g.rest = g.shortest =
        std::min<int64_t>(lanes(), llvm::bit_floor<uint64_t>(g.tile));
    return;
  }
  if (g.tile == 1 || !mayBeFew(g.dims, g.tile))
    return;
  g.rest = llvm::bit_floor<uint64_t>(g.tile - 1);
  // Each length is a body of its own: of long ones there are three.
  if (k.code * g.tile > tileCode / 4) {
    g.rest = g.shortest = std::max<int64_t>(g.rest / 2, 1);
    g.singles = 1;
  }
}

void Chooser::addRestOfColumns(Schedule::Group &g) {
  int64_t half = lanes() / 2;
  if (half < 2 || g.tile % (2 * half) != 0 || !mayBeFew(g.dims, g.tile))
    return;
  // Rows that lie a multiple of 4 KB apart share lines of a cache, so that each
  // tile more reads them anew.
  constexpr int64_t apart = 4096;
  bool isApart = k.terms * k.elementBits / 8 % apart == 0;
  g.rest = g.tile <= lanes() ? half
           : isApart         ? llvm::bit_floor<uint64_t>(g.tile)
                             : lanes();
  g.shortest = half;
}

SmallVector<unsigned> Chooser::takeApart(SmallVector<unsigned> &row) {
  SmallVector<unsigned> inner, outer(row);
  while (!outer.empty()) {
    unsigned d = outer.back();
    bool joins = inner.empty() || isStatic(inner) ||
                 (d + 1 == inner.front() && k.rowsJoin[d]);
    if (!joins)
      break;
    inner.insert(inner.begin(), d);
    outer.pop_back();
  }
  row = inner;
  return outer;
}

void Chooser::cpuProduct(SmallVector<unsigned> row, ArrayRef<unsigned> column) {
  // Of one column a row's sums may be taken anywhere.
  if (alongTerms(row, column))
    return;
  SmallVector<unsigned> places = takeApart(row);
  auto addRows = [&](int64_t tile) {
    if (!places.empty())
      add(places, 1);
    return add(row, tile);
  };
  CpuTile tile = choose(cpuTiles(row, column));
  unsigned c, r;
  if (tile.rowsFirst) {
    r = addRows(tile.rows);
    c = add(column, tile.columns);
  } else {
    c = add(column, tile.columns);
    r = addRows(tile.rows);
    s.run = places.empty() ? tile.run : 0;
  }
  if (!isStatic(row))
    addRest(s.groups[r], tile.swap);
  else if (!isStatic(column) && !tile.swap)
    addRestOfColumns(s.groups[c]);
  // A sum for each row of a tile has to stay in a register.
  s.groups[c].vector =
      column.size() == 1 && isa<AffineSymbolExpr>(k.root[column[0]]) &&
      k.least[column[0]] == 1 && !tile.swap && hasLongRuns(k.vectorRun) &&
      tile.rows + 2 <= t.vectorRegisters;
  if (k.columnRun > lanes() && k.columnRun % tile.columns != 0)
    s.groups[c].within = k.columnRun;
  s.swap = tile.swap;
  s.axes = tile.swap ? tiled({c, r}) : tiled({r, c});
  s.kTile = tile.terms;
}

void Chooser::gpuRow(ArrayRef<unsigned> row, ArrayRef<unsigned> column,
                     int64_t batch) {
  ArrayRef<unsigned> many = row.empty() ? column : row;
  int64_t share = llvm::bit_floor<uint64_t>(std::max<int64_t>(
      1, product(k, many) * batch / (2 * t.chip->multiprocessors)));
  bool wide = row.empty() ? k.columnsInMemory : k.terms < 32 * s.warps;
  int64_t tile = wide ? std::clamp<int64_t>(share, 32, 128)
                      : std::clamp<int64_t>(share, 1, 8);
  add(many, tile);
  // What widens its weight takes many registers. All instances should run at
  // once where each thread keeps 128, which are enough where no run of terms
  // ends inside of a load.
  constexpr int64_t mostTogether = 4, wholeLoads = 32;
  int64_t together =
      llvm::divideCeil(llvm::divideCeil(product(k, many), tile) * batch,
                       t.chip->multiprocessors);
  if (k.columnWork > 0 && k.terms % wholeLoads == 0 && together <= mostTogether)
    s.residents = std::max<int64_t>(together, 1);
}

void Chooser::gpuProduct(ArrayRef<unsigned> row, ArrayRef<unsigned> column,
                         int64_t batch) {
  GpuDot dot{product(k, row), product(k, column), k.terms, batch,
             k.elementBits / 8};
  // Of 8 bits are floats alone, which take an instruction of their own where
  // their terms are neighbours.
  dot.tensorCores = k.elementBits <= 16 || (k.elementBits == 32 && t.tf32);
  bool hasBytes = llvm::any_of(t.chip->dots, [](const DotInstruction &own) {
    return own.elementBits == 8;
  });
  if (k.elementBits == 8 && (!hasBytes || k.columnsInMemory))
    dot.elementBytes = 2;
  dot.alongTerms = !k.columnsInMemory;
  // Fewer would leave most of an instruction empty.
  constexpr int64_t leastRun = 8;
  if (k.columnRun >= leastRun)
    dot.columnRun = k.columnRun;
  std::optional<int64_t> rowCell;
  for (const graph::CellSide &side : k.cells)
    if (side.dims == column)
      dot.columnCell = side.cell;
    else
      rowCell = side.cell;
  dot.chip = t.chip;
  // A window with steps reads a part of its rows.
  dot.operandBytes =
      std::min(double(k.rowBytes),
               double(dot.m) * dot.k * batch * double(dot.elementBytes)) +
      double(k.columnBytes);
  dot.resultBytes = double(k.resultBytes);
  dot.widening = k.columnWork;
  std::vector<GpuTile> ranked = rankGpuTiles(dot);
  if (rowCell) {
    // Whole cells of rows, wherever a tile begins.
    llvm::erase_if(ranked, [&](const GpuTile &tile) {
      int64_t rows = tile.swap ? tile.n : tile.m;
      return rows % *rowCell != 0 || !llvm::isPowerOf2_64(rows);
    });
    if (ranked.empty())
      ranked.push_back({*rowCell, 64, 32, 4, 3});
  }
  GpuTile chosen = choose(ranked);
  s.swap = chosen.swap;
  unsigned c = add(column, chosen.swap ? chosen.m : chosen.n),
           r = add(row, chosen.swap ? chosen.n : chosen.m),
           wide = chosen.swap ? r : c;
  if (s.groups[wide].tile != chosen.n)
    s.groups[wide].own = chosen.n;
  s.axes = tiled({r, c});
  s.kTile = chosen.k;
  s.warps = chosen.warps;
  s.stages = chosen.stages;
  s.splits = chosen.splits;
  if (chosen.splits == 1 && !staysInBlocks(dot, chosen))
    s.run = rowsTogether(dot, chosen);
}

int64_t Chooser::rowsTogether(const GpuDot &dot, const GpuTile &tile) {
  int64_t m = tile.swap ? tile.n : tile.m, n = tile.swap ? tile.m : tile.n,
          rows = llvm::divideCeil(dot.m, m),
          columns = llvm::divideCeil(dot.n, n),
          round = dot.chip->multiprocessors;
  if (rows * columns <= round)
    return 0;
  auto side = int64_t(std::sqrt(double(round) * n / m));
  return rows > side ? std::max<int64_t>(side, 1) : 0;
}
