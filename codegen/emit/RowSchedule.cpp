// Tiles of rows that are needed as wholes: normalized, in an order, or summed
// along memory.
#include "codegen/emit/Chooser.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;
using graph::DimKind;

void Chooser::rowsAcross(ArrayRef<unsigned> whole, ArrayRef<unsigned> others) {
  // Rows lie across memory: many of them side by side, their elements one
  // by one.
  SmallVector<unsigned> last{all.back()};
  others = others.drop_back();
  if (!others.empty())
    add(others, 1);
  int64_t columns =
      std::min<int64_t>(k.sizes[all.back()], cpu ? 2 * t.vectorElements : 128);
  // Few and long: more instances, that take some elements of each at once.
  bool isFew = !cpu && columns == 128 &&
               product(k, others) * (k.sizes[all.back()] / columns) <
                   t.chip->multiprocessors;
  add(last, isFew ? 32 : columns);
  add(whole, isFew ? std::min<int64_t>(product(k, whole), 32) : 1,
      /*sequential=*/true);
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
  if (whole.back() != all.back())
    return rowsAcross(whole, others);
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
