// The cost model of contractions: products and attention.
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

void Chooser::attention(ArrayRef<unsigned> row, ArrayRef<unsigned> column,
                        int64_t batch) {
  int64_t n = product(k, column), m = product(k, row),
          bm = cpu ? t.vectorElements : 64;
  int64_t columns = n;
  if (cpu) {
    // A vector of scores for each key stays in registers.
    s.keyTile = t.vectorRegisters >= 32 ? 16 : 12;
  } else {
    AttentionTile tile = choose(gpuAttention(m, n, batch));
    bm = tile.rows;
    s.keyTile = tile.keys;
    s.featureTile = tile.features;
    s.residents = tile.residents;
    s.warps = tile.warps;
    if (k.elementBits == 16)
      s.stages = 2;
    if (tile.columns)
      columns = tile.columns;
  }
  // A few rows have keys as lanes, each by itself, as in decoding; half of a
  // register of 512 bits takes half of the time on many machines.
  constexpr int64_t shortest = 8;
  int64_t half = std::max(bm / 2, shortest), fewest = t.vectorElements / 4;
  if (cpu && isStatic(row))
    bm = m <= fewest ? 1 : m <= half ? half : bm;
  unsigned c = add(column, columns), r = add(row, bm);
  if (cpu && !isStatic(row)) {
    s.groups[r].rest = bm;
    s.groups[r].shortest = half;
    s.groups[r].singles = fewest;
  }
  s.axes = tiled({r, c});
  if (!cpu && k.growsByRow)
    longestFirst(n, batch);
}

std::vector<Chooser::AttentionTile> Chooser::wideAttention(int64_t rows,
                                                           int64_t n) {
  std::vector<AttentionTile> ranked{fitted({64, 64}, rows, n)};
  // More warps hide each other's loads; short steps and few rows leave room for
  // more instances.
  for (int64_t warps : {8, 4})
    for (int64_t bm : {64, 32, 16})
      for (int64_t keys : {64, 32, 16}) {
        AttentionTile tile{bm, keys};
        tile.warps = warps;
        tile = fitted(tile, rows, n);
        bool isEmpty = bm > 16 && bm >= 2 * rows;
        if (!isEmpty && !llvm::is_contained(ranked, tile))
          ranked.push_back(tile);
      }
  return ranked;
}

std::vector<Chooser::AttentionTile>
Chooser::gpuAttention(int64_t rows, int64_t n, int64_t batch) {
  if (k.elementBits != 16)
    return wideAttention(rows, n);
  auto tiles = [&](int64_t bm) -> int64_t {
    return llvm::divideCeil(rows, bm) * batch;
  };
  int64_t chips = t.chip->multiprocessors;
  bool few = tiles(64) < chips / 2;
  // Of width n each, a key and a value have two terms.
  int64_t keys = k.terms / 2;
  int64_t width = llvm::bit_ceil<uint64_t>(n);
  bool isAsync = t.chip->dotFor(16, 64, width, width, 4, false).form ==
                 DotInstruction::Form::WarpgroupMma;
  AttentionTile chosen;
  if (!isAsync || (few && keys <= 256)) {
    // Few instances are better short, and long steps over the keys pay while
    // the scores fit into registers.
    chosen = {few ? 32 : tiles(64) > 8 * chips ? 128 : 64, n <= 128 ? 128 : 64};
  } else {
    // Instances of a multiprocessor run their products under each other's
    // arithmetic. Wide rows leave registers for two of 128 rows and steps of 64
    // keys, which read keys and values half as often as more of 64 rows would.
    bool tall = n > 64 && n <= 128 && tiles(128) >= chips;
    chosen = {tall ? 128 : 64,
              n > 64 || (k.growsByRow && keys <= 512) ? 64 : 128,
              n > 128 ? 1
              : tall  ? 2
                      : 3};
  }
  std::vector<AttentionTile> ranked;
  auto add = [&](AttentionTile tile) {
    tile.warps = tile.rows / 16;
    tile = fitted(tile, rows, n);
    if (!llvm::is_contained(ranked, tile))
      ranked.push_back(tile);
  };
  add(chosen);
  for (int64_t bm : {64, 128, 32})
    for (int64_t step : {64, 128}) {
      AttentionTile tile{bm, step};
      if (isAsync && bm >= 64 && n <= 128)
        tile.residents = bm == 64 ? 3 : 2;
      bool isEmpty = (bm > 32 && bm >= 2 * rows) || (step > 64 && step > keys);
      if (!isEmpty)
        add(tile);
    }
  return ranked;
}

int64_t Chooser::sharedBytesOf(const AttentionTile &tile, int64_t n) const {
  constexpr int64_t tensorRows = 16;
  // A single step has nothing ahead.
  bool isOne = k.rowFactors > 0 && k.rowFactors <= tile.keys;
  int64_t slots = isOne ? 1 : 2;
  int64_t bytes = k.elementBits / 8, least = 16,
          all = llvm::bit_ceil<uint64_t>(std::max(k.rowTerms, least)),
          features = tile.features ? tile.features : all,
          columns = tile.columns
                        ? tile.columns
                        : (int64_t)llvm::bit_ceil<uint64_t>(std::max(n, least)),
          parts = features < all ? 2 : slots,
          scores = features * (tile.keys * parts +
                               tile.rows * (features < all ? parts : 1)),
          values = columns * tile.keys * slots;
  // Probabilities stay in registers where a warp has all of a row and what it
  // multiplies are halves of registers.
  bool stay = k.elementBits == 16 && tile.warps * tensorRows <= tile.rows;
  int64_t probabilities = stay ? 0 : tile.rows * tile.keys;
  // What is stored goes through memory that nothing else needs then.
  int64_t stored =
      tile.rows * columns * std::max<int64_t>(bytes, sizeof(float));
  return std::max(bytes * (scores + values + probabilities), stored);
}

Chooser::AttentionTile Chooser::fitted(AttentionTile tile, int64_t m,
                                       int64_t n) const {
  constexpr int64_t mostWarps = 8, mostWords = 128, lanes = 32;
  constexpr int64_t least = 16, leastFeatures = 64;
  int64_t words = std::max<int64_t>(k.elementBits / 32, 1),
          columns = llvm::bit_ceil<uint64_t>(std::max(n, least)),
          features = llvm::bit_ceil<uint64_t>(std::max(k.rowTerms, least));
  auto areTooMany = [&] {
    return tile.rows * columns * words > mostWords * tile.warps * lanes;
  };
  while (areTooMany() && tile.rows > least && tile.rows >= 2 * m)
    tile.rows /= 2;
  while (areTooMany() && tile.warps < mostWarps)
    tile.warps *= 2;
  while (areTooMany() && tile.rows > least)
    tile.rows /= 2;
  while (areTooMany())
    tile.columns = columns /= 2;
  while (sharedBytesOf(tile, n) > t.chip->sharedBytes) {
    if (tile.rows > least && tile.rows >= 2 * m)
      tile.rows /= 2;
    else if (tile.keys > least)
      tile.keys /= 2;
    else if (tile.rows > 2 * least)
      tile.rows /= 2;
    else if (features > leastFeatures)
      tile.features = features /= 2;
    else if (tile.rows > least)
      tile.rows /= 2;
    else if (columns > least)
      tile.columns = columns /= 2;
    else
      break;
  }
  return tile;
}

void Chooser::longestFirst(int64_t n, int64_t batch) {
  constexpr int64_t cacheBytes = 16 << 20;
  // A term is a feature of a key or a value, for each of n columns.
  int64_t headBytes = std::max<int64_t>(1, k.terms * n * k.elementBits / 8);
  s.run = 1;
  int64_t heads = std::max<int64_t>(1, cacheBytes / headBytes);
  s.section = heads < batch ? heads : 0;
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
  // Columns of one group only, if they fill a good part of a register.
  if (k.columnRun >= v / 4)
    for (bn = std::min(bn, k.columnRun); k.columnRun % bn != 0;)
      --bn;
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
  if (bn > v && (k.columnRun == 0 || k.columnRun % v == 0))
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
  dot.chip = t.chip;
  // A window with steps reads a part of its rows.
  dot.operandBytes =
      std::min(double(k.rowBytes),
               double(dot.m) * dot.k * batch * double(dot.elementBytes)) +
      double(k.columnBytes);
  dot.resultBytes = double(k.resultBytes);
  dot.widening = k.columnWork;
  GpuTile chosen = choose(rankGpuTiles(dot));
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
