// The cost model of attention.
#include "codegen/emit/Chooser.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

/// Keys of a step in 32 registers, so that few of its last are none (of 49).
static int64_t keysInRegisters(int64_t length) {
  constexpr int64_t fewest = 13, most = 17, usual = 16;
  constexpr double perStep = 2, worth = 0.9; // measured
  auto cost = [&](int64_t keys) {
    return llvm::divideCeil(length, keys) * (keys + perStep);
  };
  int64_t best = usual;
  for (int64_t keys = fewest; length > usual && keys <= most; ++keys)
    if (cost(keys) < std::min(worth * cost(usual), cost(best)))
      best = keys;
  return best;
}

/// Keys of a step whose scores lie in memory, in blocks of as many keys by two
/// vectors of queries as registers hold: those that leave out little of the
/// last step. With 16 registers blocks are of six. One step for all is no loop,
/// and what it computes is written out: more code, slower. `length` 0: open. A
/// step is for few then, too, and its code is there for each number of rows, so
/// that with 16 registers more keys are for those that are optimized for many.
static int64_t keysInScratch(int64_t registers, int64_t length,
                             int64_t optimum) {
  struct Steps {
    int64_t fewest, most, apart, open;
    double perStep; // measured
  };
  constexpr int64_t many = 256;
  constexpr double writtenOut = 1.4; // measured
  // Of 64 features the second cache would have to serve what is more.
  Steps of = registers >= 32 ? Steps{20, 33, 1, 32, 2}
                             : Steps{18, 60, 6, optimum < many ? 18 : 36, 8};
  if (length == 0)
    return of.open;
  int64_t best = of.most;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t keys = of.fewest; keys <= of.most; keys += of.apart) {
    int64_t steps = llvm::divideCeil(length, keys);
    double cost = steps * (std::min(keys, length) + of.perStep) *
                  (steps == 1 ? writtenOut : 1);
    if (cost < least)
      best = keys, least = cost;
  }
  return best;
}

/// A CPU's tiles of known rows behind the last whole one: few rows one by one,
/// or, where that is much of all, in a tile of half as many: 49 are three tiles
/// of 16 and one row, 197 six of 32 and one of 16. A single whole tile would be
/// computed in front of the branch between them, for both.
static void placeRest(Schedule::Group &rows, int64_t extent, int64_t half,
                      int64_t few) {
  constexpr int64_t mostTiles = 8;
  int64_t left = extent % rows.tile;
  if (left == 0 || extent < 2 * rows.tile)
    return;
  if (left <= few) {
    rows.rest = rows.shortest = rows.tile;
    rows.singles = few;
  } else if (half < rows.tile && left <= half + 1 &&
             extent < mostTiles * rows.tile) {
    rows.rest = rows.shortest = half;
    rows.singles = left > half;
  }
}

void Chooser::attention(ArrayRef<unsigned> row, ArrayRef<unsigned> column,
                        int64_t batch) {
  int64_t n = product(k, column), m = product(k, row),
          bm = cpu ? t.vectorElements : 64;
  int64_t columns = n;
  bool isWide = false;
  if (cpu) {
    // With 16 registers a vector of scores for each key would be too few
    // multiplications for what a step costs besides; with 32 two vectors of
    // queries pass over many keys and values half as often.
    constexpr int64_t manyRows = 4, manyKeys = 64;
    int64_t keys = k.terms / 2;
    isWide = t.vectorRegisters < 32 || (m >= manyRows * bm && keys >= manyKeys);
    s.keyTile = isWide ? keysInScratch(t.vectorRegisters, k.rowFactors, keys)
                       : keysInRegisters(k.rowFactors);
    if (isWide)
      bm *= 2;
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
  if (cpu && isStatic(row)) {
    placeRest(s.groups[r], m, half, fewest);
  } else if (cpu) {
    s.groups[r].rest = bm;
    s.groups[r].shortest = half;
    s.groups[r].singles = fewest;
  }
  s.axes = tiled({r, c});
  if (!cpu && k.growsByRow)
    longestFirst(n, batch);
}

/// What an attention takes in tiles of this form beside others, by the work of
/// the multiprocessor that has most. Fitted to 400 kernels of 15 shapes on an
/// H200 (docs/performance.md "Attention in float32"), of which it chose none
/// that was less than .91 of the fastest.
double Chooser::multiplyingTime(const AttentionTile &tile, int64_t rows,
                                int64_t n, int64_t batch) const {
  constexpr int64_t lanes = 32, mostThreads = 2048, registers = 65536;
  // Instructions of a step, unrolled, that the caches of instructions hold.
  constexpr double mostCode = 6144, withoutCache = 2.1;
  int64_t keys = std::max<int64_t>(1, k.terms / 2),
          threads = tile.warps * lanes,
          all = llvm::bit_ceil<uint64_t>(std::max<int64_t>(n, 16)),
          columns = tile.columns ? tile.columns : all,
          features =
              llvm::bit_ceil<uint64_t>(std::max<int64_t>(k.rowTerms, 16));
  double sums = double(tile.rows * columns) / threads,
         scores = double(tile.rows * tile.keys) / threads;
  int64_t steps = llvm::divideCeil(keys, tile.keys),
          instances = llvm::divideCeil(rows, tile.rows) *
                      llvm::divideCeil(all, columns) * batch,
          each = llvm::divideCeil(instances, int64_t(t.chip->multiprocessors));
  int64_t bytes = sharedBytesOf(tile, n, std::min<int64_t>(steps, s.stages));
  if (bytes > t.chip->sharedBytes)
    bytes = sharedBytesOf(tile, n);
  double held = std::min(255.0, 48 + 1.3 * (sums + scores));
  int64_t together = std::max<int64_t>(
      1, std::min({t.chip->sharedBytes / bytes, mostThreads / threads,
                   int64_t(registers / (threads * held))}));
  // A warp that has its scheduler to itself waits for its own results, the
  // longer the more it has to do.
  double alone = std::clamp(0.25 * std::log2(sums * scores / 64), 0.0, 0.9);
  double work = 0;
  for (int64_t left = each; left > 0; left -= together) {
    int64_t now = std::min(left, together);
    work += now * (now * tile.warps < 8 ? 1 + alone : 1);
  }
  // Operands are loaded for squares of sums.
  work *= 0.69 + 3.98 / std::sqrt(sums) + 2.82 / std::sqrt(scores);
  if (scores * features + sums * tile.keys > mostCode)
    work *= withoutCache;
  double reached =
      k.growsByRow ? 0.5 + tile.rows / (2.0 * std::max<int64_t>(rows, 1)) : 1;
  return work * tile.rows * steps * tile.keys * (features + columns) * reached;
}

std::vector<Chooser::AttentionTile>
Chooser::wideAttention(int64_t rows, int64_t n, int64_t batch) {
  std::vector<AttentionTile> ranked;
  auto add = [&](AttentionTile tile) {
    tile = fitted(tile, rows, n);
    if (!llvm::is_contained(ranked, tile))
      ranked.push_back(tile);
  };
  bool tensorCores = k.elementBits == 32 && t.tf32;
  if (tensorCores) {
    auto eachOf = [&](int64_t bm) -> int64_t {
      return llvm::divideCeil(llvm::divideCeil(rows, bm) * batch,
                              int64_t(t.chip->multiprocessors));
    };
    // Few instances are better short; over many keys tall ones read keys and
    // values half as often, if they leave no multiprocessor behind.
    constexpr int64_t manyKeys = 1024;
    bool few = llvm::divideCeil(rows, 16) * batch <= t.chip->multiprocessors,
         tall = k.terms / 2 >= manyKeys && 2 * eachOf(128) <= eachOf(64);
    AttentionTile chosen{few ? 16 : tall ? 128 : 64, 64};
    chosen.warps = tall && n > 64 ? 8 : 4;
    add(chosen);
    add({64, 64});
  }
  // More warps hide each other's loads; short steps and few rows leave room for
  // more instances.
  for (int64_t warps : {8, 4})
    for (int64_t bm : {128, 64, 32, 16})
      for (int64_t keys : {64, 32, 16})
        if (bm == 16 || bm < 2 * rows) {
          AttentionTile tile{bm, keys};
          tile.warps = warps;
          add(tile);
        }
  if (!tensorCores)
    llvm::stable_sort(ranked,
                      [&](const AttentionTile &a, const AttentionTile &b) {
                        return multiplyingTime(a, rows, n, batch) <
                               multiplyingTime(b, rows, n, batch);
                      });
  return ranked;
}

/// Microseconds that an attention of 65 to 128 columns takes whose keys and
/// values the copy engine brings. Fitted to ten shapes, full and causal, on an
/// H200 (docs/performance.md "The last product under the next iteration").
/// Infinite of what the engine does not bring, or has no room.
double Chooser::streamingTime(const AttentionTile &tile, int64_t rows,
                              int64_t n, int64_t batch) const {
  // A tile's start and end; a step of an instance beside another of its
  // multiprocessor, and alone; rows of a step that the tensor does not have.
  struct Costs {
    double around, beside, alone, outside;
  };
  bool tall = tile.rows > 64, both = tile.residents > 1;
  // Instances of tall tiles stay where all take as long.
  Costs costs = both   ? Costs{4.8, 0.94, 0.62, 1.3}
                : tall ? Costs{k.growsByRow ? 6.1 : 5.3, 1.62, 1.62, 2.6}
                       : Costs{4.8, 1.14, 1.14, 2.6};
  int64_t keys = std::max<int64_t>(1, k.terms / 2),
          steps = llvm::divideCeil(keys, tile.keys),
          chips = t.chip->multiprocessors,
          tiles = llvm::divideCeil<uint64_t>(rows, tile.rows) * batch;
  costs.around +=
      costs.outside * double(steps * tile.keys - keys) / double(tile.keys);
  // Too few steps are not brought by the engine; of more features than columns
  // two instances may not have room.
  constexpr int64_t fewest = 3;
  if (steps < fewest ||
      (both && tile.residents * sharedBytesOf(tile, n) > t.chip->sharedBytes))
    return std::numeric_limits<double>::infinity();
  int64_t slots = chips * tile.residents;
  double each = costs.beside;
  if (!k.growsByRow)
    return llvm::divideCeil(tiles, slots) *
           (costs.around + steps * (tiles <= chips ? costs.alone : each));
  // The longest tiles come first, beside short ones, and half of all steps are
  // left out.
  double shared = both ? std::max(0.0, 1 - double(chips) / double(tiles)) : 0,
         longest = costs.around +
                   steps * (shared * each + (1 - shared) * costs.alone),
         mean = costs.around + (steps + 1) / 2.0 * each;
  return std::max(longest, mean * double(tiles) / double(slots));
}

std::optional<Chooser::AttentionTile>
Chooser::streamingTile(int64_t rows, int64_t n, int64_t batch) const {
  if (n <= 64 || n > 128 || !k.streamsRuns || !t.chip->copiesBoxes)
    return std::nullopt;
  std::optional<AttentionTile> best;
  double least = std::numeric_limits<double>::infinity();
  for (AttentionTile tile : {AttentionTile{64, 64, 2}, AttentionTile{128, 128},
                             AttentionTile{64, 128}})
    if (double time = streamingTime(tile, rows, n, batch); time < least)
      least = time, best = tile;
  return best;
}

std::vector<Chooser::AttentionTile>
Chooser::gpuAttention(int64_t rows, int64_t n, int64_t batch) {
  if (k.elementBits != 16)
    return wideAttention(rows, n, batch);
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
    bool tall = rows > 64 && tiles(64) > 8 * chips;
    chosen = {few ? 32 : tall ? 128 : 64, n <= 128 ? 128 : 64};
  } else if (auto streaming = streamingTile(rows, n, batch)) {
    chosen = *streaming;
  } else {
    // Instances of a multiprocessor run their products under each other's
    // arithmetic. Wide rows leave registers for two of 128 rows and steps of 64
    // keys, which read keys and values half as often as more of 64 rows would.
    // Long steps leave a causal tile with more that is masked, which counts
    // where there are many tiles of few keys.
    bool tall = n > 64 && n <= 128 && tiles(128) >= chips,
         isShort = n > 64 || (k.growsByRow && keys <= 512 &&
                              (tiles(64) > chips || keys <= 256));
    chosen = {tall ? 128 : 64, isShort ? 64 : 128, n > 128 ? 1 : tall ? 2 : 3};
  }
  // No step has more keys than there are: 49 of a window are one of 64.
  constexpr int64_t fewestKeys = 16;
  if (k.rowFactors > 0)
    chosen.keys = std::min<int64_t>(
        chosen.keys, llvm::bit_ceil<uint64_t>(std::max(keys, fewestKeys)));
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
      if (isAsync && bm == 64 && n <= 128)
        tile.residents = n > 64 ? (step > 64 ? 1 : 2) : 3;
      bool isEmpty = (bm > 32 && bm >= 2 * rows) || (step > 64 && step > keys);
      if (!isEmpty)
        add(tile);
    }
  return ranked;
}

int64_t Chooser::sharedBytesOf(const AttentionTile &tile, int64_t n,
                               int64_t most) const {
  constexpr int64_t tensorRows = 16;
  // A single step has nothing ahead.
  bool isOne = k.rowFactors > 0 && k.rowFactors <= tile.keys;
  int64_t slots = isOne ? 1 : most;
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
