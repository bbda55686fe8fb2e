// Tiles of what is computed element by element, and of sums of columns.
#include "codegen/emit/Chooser.h"
#include "graph/analysis/SumsAgain.h"
#include <numeric>

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;
using graph::OpRole;

bool Chooser::sameIndices() {
  constexpr int64_t leastBytes = 8, most = 8, threads = 128, vector = 4,
                    leastTile = 1024, mostTile = 2048;
  if (k.repeatedIndices.empty())
    return false;
  std::optional<unsigned> shared;
  for (unsigned d : ArrayRef<unsigned>(all).drop_back())
    if (k.repeatedIndices[d] >= leastBytes &&
        (!shared || k.sizes[d] > k.sizes[*shared]))
      shared = d;
  if (!shared)
    return false;
  SmallVector<unsigned> front, behind, last{all.back()}, along{*shared};
  for (unsigned d : ArrayRef<unsigned>(all).drop_back())
    if (d != *shared)
      (d < *shared ? front : behind).push_back(d);
  // Each thread has a vector in memory of each of its neighbours.
  int64_t tile = std::clamp<int64_t>(
              llvm::bit_floor<uint64_t>(
                  product(k, all) / (2 * t.chip->multiprocessors) + 1),
              leastTile, mostTile),
          run = threads * vector,
          width = std::min<int64_t>(run,
                                    llvm::bit_ceil<uint64_t>(product(k, last)));
  if (!front.empty())
    add(front, 1);
  add(along, std::min({most, tile / run,
                       int64_t(llvm::bit_ceil<uint64_t>(k.sizes[*shared]))}));
  if (!behind.empty())
    add(behind, std::min<int64_t>(
                    run / width, llvm::bit_ceil<uint64_t>(product(k, behind))));
  add(last, width);
  return true;
}

bool Chooser::sumsAgain() {
  constexpr int64_t columns = graph::columnsAroundSums;
  if (cpu || k.role != OpRole::Pointwise || k.again.empty())
    return false;
  SmallVector<unsigned> last, front, others;
  for (unsigned d : llvm::reverse(all)) {
    bool joins = others.empty() && front.empty() && k.again[d] &&
                 product(k, last) < columns;
    SmallVector<unsigned> &dims = joins ? last : k.again[d] ? front : others;
    dims.insert(dims.begin(), d);
  }
  int64_t tile = graph::tileAroundSums(product(k, all), t.chip->multiprocessors,
                                       k.againBytes),
          width = std::min<int64_t>(columns,
                                    llvm::bit_ceil<uint64_t>(product(k, last)));
  if (!front.empty())
    add(front, 1);
  if (!others.empty())
    add(others, std::min<int64_t>(tile / width, llvm::bit_ceil<uint64_t>(
                                                    product(k, others))));
  if (!last.empty())
    add(last, width);
  return true;
}

int64_t Chooser::tileOfPart(ArrayRef<unsigned> inner, int64_t most) {
  int64_t step = 0, behind = 1;
  for (unsigned d : llvm::reverse(inner)) {
    step = std::gcd(step, k.partStep[d] * behind);
    if (!graph::constantOf(k.root[d]))
      return 0;
    behind *= k.sizes[d];
  }
  if (step == 0)
    return 0;
  // Of whole registers if possible, and one at least.
  for (int64_t unit : {t.vectorElements, int64_t(1)})
    for (int64_t tile = most / unit * unit; tile >= t.vectorElements;
         tile -= unit)
      if (step % tile == 0)
        return tile;
  return 0;
}

int64_t Chooser::tileOfRows(ArrayRef<unsigned> inner, int64_t most) {
  int64_t row = 1, best = 0, n = product(k, inner);
  for (unsigned i = inner.size(); i-- > 1 && isStatic({inner[i]});) {
    row *= k.sizes[inner[i]];
    int64_t step = std::lcm(row, t.vectorElements);
    if (step > 2 * most)
      break;
    if (k.joins[inner[i - 1]])
      continue;
    // Where tiles end with the last row none of them looks at its end.
    best = llvm::alignTo(evenTile(std::max(n, most), most), step);
    for (int64_t tile = best; tile >= most / 2; tile -= step)
      if (n % tile == 0) {
        best = tile;
        break;
      }
  }
  return best;
}

int64_t Chooser::tileOfPeriods(ArrayRef<unsigned> inner, int64_t tile,
                               int64_t most) {
  int64_t period = k.period[inner.back()],
          step = std::lcm(period, t.vectorElements);
  bool isOneTile = isStatic(inner) && tile >= product(k, inner);
  if (inner.size() != 1 || isOneTile || t.vectorElements % period == 0 ||
      step > 2 * most)
    return 0;
  return std::max(most / step, int64_t(1)) * step;
}

/// Whether a dimension is of the last ones that are one run of memory.
static bool isInRun(const KernelShape &k, unsigned d) {
  return d + k.run >= k.root.size();
}

int64_t Chooser::mostInTile() {
  int64_t most = cpu ? 8 * t.vectorElements : 1024;
  // Columns of rows that are summed side by side: runs of twice as many are
  // read faster out of long rows, and hold a short one as a whole.
  constexpr int64_t longRow = 512;
  int64_t run = 1;
  for (unsigned d : all)
    if (isInRun(k, d))
      run *= k.sizes[d];
  bool sumsColumns = cpu && k.role == OpRole::Reduction && isStatic(all) &&
                     (run <= most || run >= longRow);
  if (k.role != OpRole::Pointwise && !sumsColumns)
    most = cpu ? 4 * t.vectorElements : 256;
  // A register has a row of a window, which is combined with other rows before
  // its elements are with each other.
  constexpr int64_t shortestRow = 4, rows = 16;
  if (cpu && k.role == OpRole::Window && k.windowRun >= shortestRow &&
      k.windowRun <= t.vectorElements) {
    s.alongTerms = true;
    most = rows;
  }
  // Where a register takes much code a tile has fewer, but one at least.
  int64_t registers = s.alongTerms ? rows
                      : cpu        ? most / t.vectorElements
                                   : most / 128;
  most /= llvm::divideCeil(registers,
                           llvm::bit_floor<uint64_t>(std::max<int64_t>(
                               tileCode / std::max<int64_t>(k.code, 1), 1)));
  // Few long sums: the fewer of them an instance has, the more instances
  // there are.
  if (!cpu && k.role == OpRole::Reduction)
    most =
        std::clamp<int64_t>(llvm::bit_floor<uint64_t>(
                                product(k, all) / t.chip->multiprocessors + 1),
                            32, most);
  return most;
}

/// Elements of a GPU's tile along rows of `n`, a power of two of at most `most`
/// unless `n` is shorter: the longest of those that leave few threads idle.
static int64_t gpuTile(int64_t n, int64_t most) {
  constexpr int64_t shortest = 256, fewest = 16;
  int64_t best = std::min<int64_t>(llvm::bit_ceil<uint64_t>(n), most);
  for (int64_t tile = best / 2; tile >= shortest; tile /= 2) {
    int64_t idle = llvm::alignTo(n, best) - llvm::alignTo(n, tile);
    if (idle * fewest > n)
      best = tile;
  }
  return best;
}

void Chooser::shareColumnSums(int64_t most) {
  constexpr int64_t fewest = 8, longSum = 512, partTerms = 128, mostParts = 16;
  int64_t instances = product(k, all) / most;
  if (!cpu && k.role == OpRole::Reduction && isStatic(all) &&
      instances >= fewest && k.terms >= longSum)
    s.splits = std::clamp<int64_t>(
        std::min(k.terms / partTerms, 2 * t.chip->multiprocessors / instances),
        1, mostParts);
}

void Chooser::elementwise() {
  if (all.empty() || windows() || openWindows() || channelsAlone() ||
      sumsAgain() || blocks() || sameIndices() || rowsWithEnds())
    return;
  int64_t most = mostInTile();
  // Inner dimensions are one run as long as they are short, or lie so in
  // memory; the rest are rows.
  SmallVector<unsigned> inner{all.back()},
      outer(ArrayRef<unsigned>(all).drop_back());
  int64_t least = cpu ? t.vectorElements : 64;
  bool linear = k.linear && (!cpu || k.windowDense.empty());
  auto areShort = [&](ArrayRef<unsigned> dims) {
    return (cpu ? mostOf(dims) : product(k, dims)) < least;
  };
  // What a reduction sums for neighbouring results may lie apart: a register
  // that begins in one row and ends in another is gathered, unless it has half
  // of each.
  auto isInOrder = [&] {
    if (!linear || !cpu || k.role != OpRole::Reduction)
      return linear;
    int64_t row = product(k, inner);
    return isStatic(inner) &&
           (row % least == 0 || (row < 2 * least && 2 * row % least == 0));
  };
  while (!outer.empty() &&
         (isInOrder() || areShort(inner) || isInRun(k, outer.back()))) {
    inner.insert(inner.begin(), outer.back());
    outer.pop_back();
  }
  int64_t n = product(k, inner);
  // Short rows are what is left behind long tiles. Of several of them a tile of
  // those that are optimized for finds its elements without division.
  bool isRun = linear || inner.size() == 1 || isInRun(k, inner.front());
  if (cpu && n < (isRun ? most / 2 : least) && !isStatic(inner))
    n = mostOf(inner);
  int64_t tile = !isStatic(inner) ? std::min(most, std::max(n, least))
                 : cpu            ? evenTile(n, most)
                                  : gpuTile(n, most);
  if (cpu && tile > t.vectorElements && tile < n)
    tile = llvm::alignTo(tile, t.vectorElements);
  if (int64_t part = cpu ? tileOfPart(inner, most) : 0)
    tile = part;
  else if (int64_t whole = cpu ? tileOfRows(inner, most) : 0; tile < n && whole)
    tile = whole;
  // Shorter tiles behind them would begin anywhere.
  int64_t rest = t.vectorElements;
  if (int64_t alike = cpu ? tileOfPeriods(inner, tile, most) : 0)
    rest = tile = alike;
  if (!outer.empty())
    add(outer,
        cpu ? 1
            : std::max<int64_t>(
                  1, std::min<int64_t>(
                         product(k, outer),
                         most / (int64_t)llvm::bit_ceil<uint64_t>(tile))));
  addOpen(inner, tile, rest);
  shareColumnSums(most);
}
