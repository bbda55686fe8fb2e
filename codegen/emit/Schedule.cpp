// The cost model: tile sizes from what the kernel's operators say of
// themselves.
#include "codegen/emit/Chooser.h"
#include "codegen/emit/TileEmitter.h"
#include "graph/analysis/SumsAgain.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;
using graph::DimKind;
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

Schedule Chooser::run() {
  if (k.role == OpRole::Ordered)
    ordered();
  else if (k.role == OpRole::Contraction &&
           (hasKind(DimKind::Column) || k.wholeRows))
    contraction();
  else if (k.role == OpRole::RowNormalization && hasKind(DimKind::Whole))
    rows();
  else if (k.role == OpRole::Reduction && k.alongRow)
    reductionAlong();
  else if (!cellsOfChannels() && !oneColumn())
    elementwise();
  for (unsigned i = 0; i < s.groups.size(); ++i)
    if (s.groups[i].tile > 1 && !llvm::is_contained(s.axes, i))
      s.axes.push_back(i);
  assert(llvm::all_of(
      s.groups, [](const Schedule::Group &g) { return g.problem().empty(); }));
  return s;
}

void Chooser::rows() {
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
    int64_t columns = std::min<int64_t>(k.sizes[all.back()],
                                        cpu ? 2 * t.vectorElements : 128);
    // Few and long: more instances, that take some elements of each at once.
    bool isFew = !cpu && columns == 128 &&
                 product(k, others) * (k.sizes[all.back()] / columns) <
                     t.chip->multiprocessors;
    add(last, isFew ? 32 : columns);
    add(whole, isFew ? std::min<int64_t>(n, 32) : 1, /*sequential=*/true);
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
  // Something differs from place to place of the first dimensions alone, as a
  // scale of each channel: each by itself, so that no element of a tile divides
  // to find its own.
  if (cpu && !fits && !isStatic(whole)) {
    SmallVector<unsigned> apart;
    while (k.run > 0 && whole.size() > 1 &&
           whole.front() + k.run < k.root.size()) {
      apart.push_back(whole.front());
      whole.erase(whole.begin());
    }
    if (!apart.empty())
      add(apart, 1, /*sequential=*/true);
  }
  add(whole,
      fits  ? n
      : cpu ? t.vectorElements * 4
            : std::min<int64_t>(llvm::bit_ceil<uint64_t>(n), 4096),
      /*sequential=*/true);
  // Long rows are kept in shared memory, which leaves a multiprocessor one or
  // two instances.
  if (!cpu && isStatic(whole) && !fits)
    s.warps = 16;
  if (!cpu && isStatic(whole) && !fits && k.rowsInF32)
    shareRows(product(k, others), n);
}

void Chooser::shareRows(int64_t rows, int64_t length) {
  // Few rows leave most of the chip idle: clusters of instances share each, of
  // which none should have less than two tiles.
  constexpr int64_t mostParts = 8, tile = 2048;
  int64_t parts =
      std::min({mostParts, t.chip->mostInCluster, length / (2 * tile),
                t.chip->multiprocessors / std::max<int64_t>(rows, 1)});
  parts = llvm::bit_floor<uint64_t>(std::max<int64_t>(parts, 1));
  if (parts == 1)
    return;
  s.rowParts = parts;
  s.groups.back().tile = tile;
  s.warps = 8;
}

void Chooser::ordered() {
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
    // What is copied goes in long runs of memory: short ones, a row apart, take
    // three times as long.
    int64_t n = product(k, inner),
            tile = cpu ? evenTile(n, (k.carries ? 4 : 64) * t.vectorElements)
                       : std::min<int64_t>(llvm::bit_ceil<uint64_t>(n),
                                           graph::Staging::columns);
    if (cpu && tile > t.vectorElements && tile < n)
      tile = llvm::alignTo(tile, t.vectorElements);
    // Of an open size, whatever is optimized for. Each pass over rows of which
    // a tile has a part visits all pages.
    constexpr int64_t registers = 128;
    bool isOpen = cpu && !k.carries && !isStatic(inner);
    if (isOpen)
      tile = registers * t.vectorElements;
    Schedule::Group &group = s.groups[add(inner, tile)];
    if (isOpen && mayBeFew(inner, tile)) {
      group.rest = tile / 2;
      group.shortest = t.vectorElements;
    }
    if (!cpu)
      s.warps = std::max<int64_t>(tile / 32, 1);
    return;
  }
  if (!cpu && k.oneByOne) {
    // A thread for each row, and as many rows in a warp as leave every
    // multiprocessor some warps: rows wait for memory, not for lanes.
    constexpr int64_t lanes = 32, warps = 4;
    int64_t rows = product(k, parallel);
    s.warps = 1;
    add(parallel,
        std::clamp<int64_t>(llvm::bit_floor<uint64_t>(
                                rows / (warps * t.chip->multiprocessors) + 1),
                            1, lanes));
    return;
  }
  int64_t length = llvm::bit_ceil<uint64_t>(product(k, ofKind(DimKind::Whole)));
  add(parallel,
      cpu ? 1
          : std::min<int64_t>(std::max<int64_t>(1024 / length, 1),
                              llvm::bit_ceil<uint64_t>(product(k, parallel))));
}

void Chooser::reductionAlong() {
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
    s.splits = std::clamp<int64_t>(
        std::min(k.terms / partTerms, 2 * t.chip->multiprocessors / instances),
        1, mostParts);
}

bool Chooser::windows() {
  if (!cpu) {
    SmallVector<unsigned> dense;
    for (unsigned d : all)
      if (!k.windowDense.empty() && k.windowDense[d])
        dense.push_back(d);
    constexpr int64_t longest = 32;
    return dense.size() == 1 && dense[0] != all.back() &&
           gpuBlocks(dense, longest);
  }
  if (all.size() < 2)
    return false;
  // Channels are innermost in memory, or in front of the window's dimensions
  // where a transpose follows: then tiles are stored across.
  unsigned c = all.size() - 1, w = c;
  while (c > 0 && k.kinds[all[c]] == DimKind::Window)
    --c;
  if (c == w)
    --w;
  if (k.kinds[all[c]] == DimKind::Window || k.kinds[all[w]] != DimKind::Window)
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
  // Stored across, neighbours fill a register, each channel's one.
  bool isAcross = c + 1 < all.size();
  int64_t run = isAcross ? t.vectorElements : 14;
  int64_t most =
      isAcross || (isStatic(channel) && n % (2 * t.vectorElements) != 0 &&
                   n % t.vectorElements == 0)
          ? t.vectorElements
          : 2 * t.vectorElements;
  if (!others.empty())
    add(others, 1);
  addOpen(slide,
          isStatic(slide) ? evenTile(product(k, slide), run)
          : isAcross      ? run
                          : run / 2,
          4);
  add(channel, std::min(n, most));
  return true;
}

bool Chooser::walkRows(int64_t tile) {
  constexpr int64_t fewest = 16;
  SmallVector<unsigned> last{all.back()},
      others(ArrayRef<unsigned>(all).drop_back()), rows;
  // Rows of a plane follow each other in one instance, so that none divides to
  // find its place.
  if (others.size() > 1 &&
      product(k, others) >= fewest * k.sizes[others.back()])
    rows.push_back(others.pop_back_val());
  if (product(k, others) < fewest)
    return false;
  add(others, 1);
  if (!rows.empty())
    add(rows, 1, /*sequential=*/true);
  add(last, tile, /*sequential=*/true);
  return true;
}

bool Chooser::openWindows() {
  return cpu && k.role == OpRole::Window && k.windowRun == 0 &&
         !isStatic({all.back()}) && !k.windowDense.empty() &&
         k.windowDense[all.back()] && walkRows(t.vectorElements);
}

bool Chooser::rowsWithEnds() {
  int64_t tile = 2 * t.vectorElements;
  return cpu && k.role == OpRole::Pointwise && k.otherEnds &&
         mostOf({all.back()}) >= 2 * tile && walkRows(tile);
}

bool Chooser::blocks() {
  if (k.role != OpRole::Pointwise || k.crossing.empty())
    return false;
  if (!cpu)
    return gpuBlocks(k.crossing, /*longest=*/64);
  if (k.code * t.vectorElements > tileCode)
    return false;
  // The last dimension with those in front of it, until registers are full:
  // where they are one run in all inputs, or so short that no register begins
  // in the middle.
  SmallVector<unsigned> last{all.back()}, others;
  // An open size is long at times, whatever is optimized for.
  auto longest = [&](ArrayRef<unsigned> dims) {
    return isStatic(dims) ? product(k, dims)
                          : std::max(product(k, dims), t.vectorElements);
  };
  int64_t across = longest(k.crossing);
  for (unsigned d : llvm::reverse(ArrayRef<unsigned>(all).drop_back())) {
    int64_t n = product(k, last);
    bool joins = isStatic(last) && n % t.vectorElements != 0 &&
                 (k.joins[d] || t.vectorElements % n == 0);
    if (!joins || llvm::is_contained(k.crossing, d))
      break;
    last.insert(last.begin(), d);
  }
  constexpr int64_t least = 4; // shorter rows are not transposed
  // A few are picked for one row of the result after the other, from lines of
  // memory that a tile has all of.
  bool isPicked = across < least && isStatic(k.crossing);
  if (longest(last) < (isPicked ? t.vectorElements : least) ||
      (across < least && !isPicked))
    return false;
  for (unsigned d : all)
    if (!llvm::is_contained(last, d) && !llvm::is_contained(k.crossing, d))
      others.push_back(d);
  if (!others.empty())
    add(others, 1);
  bool restOfLast = product(k, last) <= product(k, k.crossing);
  auto addBlock = [&](ArrayRef<unsigned> dims, int64_t tile, bool hasRest) {
    if (hasRest)
      addOpen(dims, tile, t.vectorElements / 4);
    else
      add(dims, tile);
  };
  addBlock(k.crossing, std::min(across, t.vectorElements), !restOfLast);
  addBlock(last, std::min(longest(last), (isPicked ? 4 : 1) * t.vectorElements),
           restOfLast);
  return true;
}

bool Chooser::gpuBlocks(ArrayRef<unsigned> crossing, int64_t longest) {
  constexpr int64_t threads = 128, least = 8, shortest = 32;
  // The last dimensions are one run in the result, up to those that cross it.
  SmallVector<unsigned> last, others;
  bool joins = true;
  for (unsigned d : llvm::reverse(all)) {
    bool crosses = llvm::is_contained(crossing, d);
    joins &= !crosses && product(k, last) < longest;
    if (!crosses)
      (joins ? last : others).insert((joins ? last : others).begin(), d);
  }
  int64_t across = product(k, crossing), along = product(k, last);
  if (across < least || along < least)
    return false;
  // Smaller ones where large ones would leave multiprocessors idle, or are
  // much code.
  int64_t side = longest, elements = product(k, all);
  while (side > shortest && (elements < side * side * t.chip->multiprocessors ||
                             k.code * (side * side / threads) > tileCode))
    side /= 2;
  if (!others.empty())
    add(others, 1);
  add(crossing, std::min(across, side));
  add(last, std::min(along, side));
  return true;
}

/// Neighbours along rows of `n` elements in a tile of `places`, a power of two:
/// of some, or as many as fill it with all `rows`, the longest of those that
/// waste least.
static int64_t gpuRun(int64_t n, int64_t rows, int64_t places) {
  constexpr int64_t shortest = 4, some = 16;
  int64_t most = std::min<int64_t>(
              places,
              std::max<int64_t>(some, places / llvm::bit_ceil<uint64_t>(rows))),
          best = std::max<int64_t>(std::min(shortest, most), 1);
  for (int64_t run = 2 * best; run <= most; run *= 2)
    if (llvm::alignTo(n, run) <= llvm::alignTo(n, best))
      best = run;
  return std::min<int64_t>(best, llvm::bit_ceil<uint64_t>(n));
}

/// On a GPU a thread has neighbouring channels, whole vectors of them where
/// there are enough for all multiprocessors, of one place.
bool Chooser::channelsAlone() {
  if (cpu || k.role != OpRole::Contraction || all.size() < 2 ||
      k.kinds[all.back()] == DimKind::Window)
    return false;
  SmallVector<unsigned> channel{all.back()},
      places(ArrayRef<unsigned>(all).drop_back()), slide;
  constexpr int64_t fewest = 8, most = 128, leastTile = 256, mostTile = 1024;
  int64_t n = product(k, channel), width = std::min(n & -n, most);
  if (!isStatic(channel) || width < fewest)
    return false;
  int64_t elements = product(k, all),
          tile = std::clamp<int64_t>(
              llvm::bit_floor<uint64_t>(
                  elements / (2 * t.chip->multiprocessors) + 1),
              leastTile, mostTile);
  // Neighbours of one row share what their windows have in common. A thread
  // that has few elements has no neighbours.
  int64_t row = std::max<int64_t>(k.sizes[places.back()], 1),
          run = gpuRun(row, std::max<int64_t>(elements / n / row, 1),
                       tile / width);
  if (k.kinds[places.back()] == DimKind::Window &&
      (tile == mostTile || row % run == 0))
    slide.push_back(places.pop_back_val());
  else
    run = 1;
  int64_t others = product(k, places);
  if (!places.empty())
    add(places, std::min<int64_t>(std::max<int64_t>(tile / width / run, 1),
                                  llvm::bit_ceil<uint64_t>(others)));
  if (!slide.empty())
    add(slide, run);
  add(channel, width);
  return true;
}

bool Chooser::cellsOfChannels() {
  constexpr int64_t manyInTile = 1024;
  if (k.cells.empty())
    return false;
  SmallVector<unsigned> others(all);
  int64_t cell = 1, width = 1;
  for (const graph::CellSide &side : k.cells) {
    cell *= side.cell;
    llvm::erase_if(
        others, [&](unsigned d) { return llvm::is_contained(side.dims, d); });
  }
  SmallVector<unsigned> channel;
  if (!others.empty() && isStatic({others.back()})) {
    channel.push_back(others.pop_back_val());
    width = std::max<int64_t>(graph::channelsOfCells(product(k, channel)), 1);
    while (width > 1 && width * cell > graph::mostInTileOfCells(k.terms))
      width /= 2;
  }
  if (!others.empty())
    add(others, 1);
  for (const graph::CellSide &side : k.cells)
    add(side.dims, side.cell);
  if (!channel.empty())
    add(channel, width);
  // Threads with few elements each load all rows of a window at once.
  if (cell * width >= manyInTile)
    s.warps = 8;
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
  // Long sums of some columns: parts, of which the chip takes as many at once.
  constexpr int64_t fewest = 8, longSum = 512, partTerms = 128, mostParts = 16;
  int64_t instances = product(k, all) / most;
  if (!cpu && k.role == OpRole::Reduction && isStatic(all) &&
      instances >= fewest && k.terms >= longSum)
    s.splits = std::clamp<int64_t>(
        std::min(k.terms / partTerms, 2 * t.chip->multiprocessors / instances),
        1, mostParts);
}

SmallVector<unsigned> Chooser::tiled(ArrayRef<unsigned> groups) {
  SmallVector<unsigned> axes;
  for (unsigned g : groups)
    if (s.groups[g].tile > 1)
      axes.push_back(g);
  return axes;
}

bool emit::growsByRow(graph::KernelOp kernel) {
  return llvm::any_of(kernel.getBody().front().getOps<EmitOpInterface>(),
                      [](EmitOpInterface op) { return op.growsByRow(); });
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

std::vector<Schedule> emit::candidateSchedules(graph::KernelOp kernel,
                                               const EmitTarget &target,
                                               unsigned most) {
  KernelShape shape = inspect(kernel, target);
  std::vector<Schedule> candidates;
  unsigned alternatives = 1;
  for (unsigned i = 0; i < std::min(alternatives, most); ++i) {
    Chooser chooser(shape, target, i);
    candidates.push_back(chooser.run());
    alternatives = chooser.alternatives();
  }
  return candidates;
}

std::optional<Schedule> emit::narrower(const Schedule &schedule) {
  constexpr int64_t least = 16, someFeatures = 256;
  Schedule s = schedule;
  if (s.featureTile == 0)
    s.featureTile = 2 * someFeatures;
  // Shorter steps read no more than long ones, smaller tiles do.
  for (int64_t *step : {&s.keyTile, &s.kTile, &s.featureTile})
    if (*step > least) {
      *step = llvm::bit_floor<uint64_t>(*step - 1);
      return s;
    }
  Schedule::Group *widest = nullptr;
  for (unsigned axis : s.axes)
    if (Schedule::Group &g = s.groups[axis];
        !g.sequential && g.tile > least && (!widest || g.tile > widest->tile))
      widest = &g;
  if (!widest)
    return std::nullopt;
  widest->tile = llvm::bit_floor<uint64_t>(widest->tile - 1);
  widest->own = 0;
  return s;
}

FailureOr<Schedule> emit::scheduleOf(graph::KernelOp kernel,
                                     const EmitTarget &target) {
  if (DictionaryAttr given = kernel.getScheduleAttr())
    return Schedule::fromAttribute(given, kernel.getLoc());
  return chooseSchedule(kernel, target);
}
