// Tiles of windows, and of what is read across memory: blocks that are
// transposed.
#include "codegen/emit/Chooser.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;
using graph::DimKind;
using graph::OpRole;

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
