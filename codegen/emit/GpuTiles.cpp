#include "codegen/emit/GpuTiles.h"
#include "codegen/target/StepSums.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <limits>
#include <vector>

using namespace charonia;
using namespace charonia::emit;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

namespace {
// Fitted; microseconds, bytes and operations a microsecond.
struct Costs {
  double launch;  ///< Of a kernel, its first loads and its stores.
  double latency; ///< Of memory, seen by a ring of one stage.
  double intake;  ///< Of one multiprocessor from the L2 cache.
  double shared;  ///< Of its shared memory, what is written and what dots read.
  double step;    ///< Of a step, for each instance on the processor.
  double fill;    ///< Of a round: until the ring is full.
  double result;  ///< Of an element of the result.
  double cache;   ///< Of the L2 cache to all.
  int64_t held;   ///< Stages of the ring that products still read.
};
constexpr Costs kInOrder = {2.0, 0.40, 93.6e3, 1e9, 0.093, 0, 4.8e-5, 9.2e6, 1};
constexpr Costs kAsynchronous = {1.36, 0.69,   94.2e3, 185e3, 0.0107,
                                 0.40, 4.8e-5, 9.77e6, 2};
/// The same of operands of 8 bits, which let the chip run faster: 64 x 128, two
/// instances, took 137 us of 4096^3.
constexpr Costs kOfBytes = {1.36, 0.69,   104e3,  208e3, 0.0107,
                            0.40, 4.8e-5, 11.9e6, 2};
/// The same of operands that the copy engine brings. Fitted on an H100 to
/// products of BERT, GPT-2, ViT and a Llama at batch 1, as `--tune` measured
/// 200 tiles of them: the root of the mean squared logarithmic error is 0.14
/// (0.18 with those of copies by threads), the choices are 4 % slower than the
/// best in the mean (12).
constexpr Costs kBoxes = {0.8, 0.92, 109e3, 222e3, 0, 0.91, 5.8e-5, 13e6, 2};
/// Of the L2 cache to all that read the same pixels at other times.
constexpr double kWindows = 9.3e6;
/// Of long sums that are not split, what they take of what they say, where the
/// copy engine brings operands: `--tune` measured 0.7 to 0.94 of it for five
/// products and a convolution, and 1.04 in the mean for split ones beside them.
constexpr double kWholeSums = 0.83;
constexpr double kMeeting = 2.0; ///< of the parts of a split
/// The same in a cluster: of any, and of each.
constexpr double kMeetingInCluster = 1.0, kMeetingOfEach = 0.15;

constexpr int64_t kWarps = 64;
/// Terms of a sum that what begins and ends it hardly matters beside.
constexpr int64_t longSum = 2048;

const DotInstruction &instructionOf(const GpuDot &dot, const GpuTile &tile) {
  return dot.chip->dotFor(dot.tensorCores ? dot.elementBytes * 8 : 0, tile.m,
                          tile.n, tile.k, tile.warps, dot.alongTerms);
}

/// Whether rows share what they read, as those of a convolution do.
bool isWindow(const GpuDot &dot) {
  double apart = double(dot.m + dot.n) * dot.k * dot.batch * dot.elementBytes;
  return dot.operandBytes > 0 && apart > 1.5 * dot.operandBytes;
}

/// Whether the copy engine brings the operands of a tile of warpgroups, as far
/// as sizes tell: steps are whole, and nothing is computed of what is read.
bool copiesBoxes(const GpuDot &dot, const GpuTile &tile) {
  return dot.chip->copiesBoxes && dot.elementBytes == 2 && dot.widening == 0 &&
         dot.k % tile.k == 0 &&
         instructionOf(dot, tile).form == DotInstruction::Form::WarpgroupMma;
}

/// Where sums are those of a step: whether those of two steps take turns, so
/// that one is added under the products of the other (codegen/gpu).
bool takesTurns(const GpuDot &dot, const GpuTile &tile) {
  return instructionOf(dot, tile).shortSums &&
         ceilDiv(ceilDiv(dot.k, tile.k), tile.splits) > 1 &&
         SumsInTurns::registers(tile.m * tile.n / (tile.warps * 32)) <=
             registersOfThread(tile.warps * 32);
}

/// Accumulators of a thread: those of all, and of one step or two.
int64_t accumulatorsOf(const GpuDot &dot, const GpuTile &tile) {
  int64_t sets = takesTurns(dot, tile)                ? SumsInTurns::sets
                 : instructionOf(dot, tile).shortSums ? 2
                                                      : 1;
  return tile.m * tile.n / (tile.warps * 32) * sets;
}

/// Registers of a thread, about.
int64_t registersOf(const GpuDot &dot, const GpuTile &tile, bool isAsync) {
  if (isAsync)
    return std::min<int64_t>(255, accumulatorsOf(dot, tile) + 60);
  int64_t best = std::numeric_limits<int64_t>::max(), registers = 255;
  for (int64_t rows = 1; rows <= tile.warps; rows *= 2) {
    int64_t r = std::min(rows, std::max<int64_t>(tile.m / 16, 1)),
            c = std::min(tile.warps / rows, std::max<int64_t>(tile.n / 8, 1));
    int64_t cost = (tile.m / r + tile.n / c) * (tile.warps / (r * c));
    if (cost >= best)
      continue;
    best = cost;
    int64_t accumulators = tile.m * tile.n / (32 * r * c);
    int64_t fragments = 2 * (tile.m / r / 16 * 4 + tile.n / c / 8 * 2);
    registers = std::min<int64_t>(255, accumulators + fragments + 40);
  }
  return registers;
}
} // namespace

/// Whether parts of a tile can meet in a cluster (codegen/emit/Kernel.cpp).
static bool meetsInCluster(const GpuDot &dot, const GpuTile &tile) {
  int64_t least = tile.splits * 8;
  return tile.splits > 1 && llvm::isPowerOf2_64(tile.splits) &&
         tile.splits <= dot.chip->mostInCluster &&
         ((llvm::isPowerOf2_64(tile.n) && tile.n >= least) || tile.m >= least);
}

/// Multiprocessors that work: clusters of four and more leave some free, as
/// all of their instances are near each other.
static int64_t multiprocessorsFor(const GpuDot &dot, const GpuTile &tile) {
  int64_t all = dot.chip->multiprocessors;
  return meetsInCluster(dot, tile) && tile.splits > 2 ? all * 10 / 11 : all;
}

/// Until what the parts of a tile have is added up: all by one of them, or by
/// each of a cluster its share.
static double meetingOf(const GpuDot &dot, const GpuTile &tile,
                        int64_t instances, const Costs &costs) {
  if (tile.splits == 1)
    return 0;
  double part = tile.m * llvm::bit_ceil<uint64_t>(tile.n) * sizeof(float);
  if (!meetsInCluster(dot, tile))
    return kMeeting + tile.splits * part / costs.intake;
  // All at once write all that they have, and read as much.
  return kMeetingInCluster + tile.splits * kMeetingOfEach +
         part / costs.intake + 2 * instances * part / costs.cache;
}

/// What is loaded in front of the loop, of operands the share `ahead`, and what
/// is stored behind it, while an instance multiplies nothing; `loops`: how long
/// the loops of all rounds take. The cache passes on half of itself in the
/// meantime, and memory goes on under the next round's loops, with what time
/// they leave it, since stores are not waited for.
static double exposedMemory(const GpuDot &dot, double ahead, int64_t rounds,
                            double loops) {
  double rate = dot.chip->memoryRate, read = std::min(ahead, 1.0);
  double bytes =
      dot.resultBytes + read * dot.operandBytes - 0.5 * dot.chip->cacheBytes;
  double left = loops - (1 - read) * dot.operandBytes / rate;
  double covered = std::max(left, 0.0) * (rounds - 1) / rounds;
  return std::max(bytes / rate - covered, 0.0);
}

/// Until the sums of a step are done and added, 128 of them in a cycle, and the
/// next products begin; where two steps take turns, once in many. Other
/// instances multiply in the meantime. As measured of 128 x 128 and 128 x 160.
static double additionOf(const GpuDot &dot, const GpuTile &tile) {
  constexpr double addsByMicrosecond = 128 * 1755, waiting = 0.055;
  double time = waiting + tile.m * tile.n / addsByMicrosecond;
  return takesTurns(dot, tile) ? time / SumsInTurns::mostSteps : time;
}

/// A step of `together` instances whose columns pass through registers: an
/// instance computes them between its products, and the instructions of all
/// share the multiprocessor, which few warps do not fill.
static double wideningOf(const GpuDot &dot, const GpuTile &tile,
                         int64_t together) {
  constexpr double lanesByMicrosecond = 128 * 1755, fillingWarps = 12,
                   stores = 2, around = 0.15;
  if (dot.widening == 0)
    return 0;
  double elements = double(tile.swap ? tile.m : tile.n) * tile.k,
         filled = std::min(1.0, together * tile.warps / fillingWarps),
         own =
             elements * (dot.widening + stores) / (lanesByMicrosecond * filled);
  return std::max(around + own, together * own);
}

/// Program instances that walk through tiles, each through those of one block
/// of columns.
namespace {
struct Walk {
  /// Of one multiprocessor.
  int64_t residents;
  /// Tiles of an instance.
  int64_t rounds;
  /// Of an operand: what a tile reads, and what an instance keeps.
  double read, kept;
};
} // namespace

/// Two instances have room beside each other, for all terms of both operands
/// and what goes through shared memory to be stored.
static std::optional<Walk> walkOf(const GpuDot &product, const GpuTile &tile) {
  constexpr int64_t residents = 2, fewestRounds = 3;
  GpuDot dot = tile.swap ? product.swapped() : product;
  int64_t steps = ceilDiv(dot.k, tile.k),
          wide = llvm::bit_ceil<uint64_t>(tile.n),
          terms = steps * tile.k * dot.elementBytes;
  if (instructionOf(dot, tile).form != DotInstruction::Form::WarpgroupMma ||
      tile.splits != 1 || dot.batch != 1 || dot.widening || dot.columnRun ||
      dot.elementBytes != 2 || steps < 2 || steps > tile.stages)
    return std::nullopt;
  int64_t bytes = (tile.m + wide) * terms + tile.m * wide * dot.elementBytes;
  if (bytes > dot.chip->sharedBytes / residents - 1024 ||
      registersOf(dot, tile, true) * tile.warps * 32 * residents > kRegisters)
    return std::nullopt;
  int64_t high = ceilDiv(dot.m, tile.m), across = ceilDiv(dot.n, tile.n),
          blocks = tile.swap ? high : across, tiles = tile.swap ? across : high,
          each = residents * dot.chip->multiprocessors / blocks;
  if (blocks < 2 || each == 0 || ceilDiv(tiles, each) < fewestRounds)
    return std::nullopt;
  return Walk{residents, ceilDiv(tiles, each),
              double((tile.swap ? tile.n : tile.m) * terms),
              double((tile.swap ? tile.m : wide) * terms)};
}

bool charonia::emit::staysInBlocks(const GpuDot &dot, const GpuTile &tile) {
  return walkOf(dot, tile).has_value();
}

/// The next tile's copies are under way while one is stored, and memory never
/// rests.
static double walkingTime(const GpuDot &dot, const GpuTile &tile,
                          const Walk &walk) {
  const Costs &costs = kAsynchronous;
  int64_t steps = ceilDiv(dot.k, tile.k);
  double together = walk.residents,
         arithmetic = together * 2.0 * tile.m * tile.n * steps * tile.k /
                      instructionOf(dot, tile).rate,
         round =
             std::max(costs.latency + together * walk.read / costs.intake,
                      arithmetic) +
             together * (costs.result * tile.m * tile.n + steps * costs.step),
         memory = (dot.operandBytes + dot.resultBytes) / dot.chip->memoryRate;
  return costs.launch + costs.fill + together * walk.kept / costs.intake +
         std::max(walk.rounds * round, memory);
}

/// 32-bit words of a thread's sums.
static int64_t wordsOfSums(const GpuDot &dot, const GpuTile &tile) {
  int64_t words = std::max<int64_t>(dot.elementBytes / 4, 1);
  return tile.m * tile.n * words / (tile.warps * 32);
}
/// With 64 of them threads keep some 250 registers.
static constexpr int64_t kMostWords = 64;

/// Of multiply-adds. A warp by itself issues one in 1.3 cycles, or in 2 where
/// its 64 sums leave no registers to load operands far ahead; a scheduler with
/// several in 1.24. Fitted on an H200 to 93 kernels of five products in f32:
/// the root of the mean squared logarithmic error is 0.10.
static double multiplyingTime(const GpuDot &dot, const GpuTile &tile) {
  constexpr double cycles = 1755, alone = 1.284, aloneWithMany = 2.021,
                   ofMany = 1.239, step = 0.032, ofEach = 0.049, launch = 1.0,
                   fill = 1.617;
  constexpr int64_t lanes = 32, schedulers = 4;
  int64_t multiprocessors = dot.chip->multiprocessors,
          sums = wordsOfSums(dot, tile),
          steps = ceilDiv(ceilDiv(dot.k, tile.k), tile.splits),
          instances = ceilDiv(dot.m, tile.m) * ceilDiv(dot.n, tile.n) *
                      dot.batch * tile.splits;
  double stepBytes = double(tile.m + tile.n) * tile.k * dot.elementBytes,
         shared = double(std::min(tile.stages, steps + 1)) * stepBytes + 1024;
  // Sums, and two steps of both operands.
  int64_t registers = std::min<int64_t>(255, sums * 5 / 2 + 92);
  int64_t resident =
      std::min({int64_t(dot.chip->sharedBytes / shared),
                kRegisters / (registers * tile.warps * lanes), int64_t(32)});
  resident = std::max<int64_t>(resident, 1);
  int64_t rounds = ceilDiv(instances, multiprocessors * resident),
          together = std::min(ceilDiv(instances, multiprocessors), resident);
  double warps = std::max(1.0, double(together * tile.warps) / schedulers),
         issue = std::max(sums >= kMostWords ? aloneWithMany : alone,
                          ofMany * warps);
  double each = std::max(double(sums * tile.k) * issue / cycles,
                         wideningOf(dot, tile, together)) +
                step + double(together) * ofEach;
  double bytes = instances * steps * stepBytes,
         cache = isWindow(dot) ? std::min(kInOrder.cache, kWindows)
                               : kInOrder.cache;
  return launch +
         std::max(
             {rounds * (steps * each + fill), bytes / cache,
              (dot.operandBytes + dot.resultBytes) / dot.chip->memoryRate}) +
         meetingOf(dot, tile, instances, kInOrder);
}

/// `handicap`: how much longer than its parts say a tile takes, but for what it
/// waits for memory.
static double timeOf(const GpuDot &product, const GpuTile &tile,
                     double handicap) {
  if (std::optional<Walk> walk = walkOf(product, tile))
    return walkingTime(product, tile, *walk);
  GpuDot dot = tile.swap ? product.swapped() : product;
  if (instructionOf(dot, tile).form == DotInstruction::Form::MultiplyAdd)
    return multiplyingTime(dot, tile);
  int64_t instances =
      ceilDiv(dot.m, tile.m) * ceilDiv(dot.n, tile.n) * dot.batch * tile.splits;
  int64_t steps = ceilDiv(ceilDiv(dot.k, tile.k), tile.splits);
  double stepBytes = double(tile.m + tile.n) * tile.k * dot.elementBytes;
  double shared = std::min(tile.stages, steps + 1) *
                  double(tile.m + llvm::bit_ceil<uint64_t>(tile.n)) * tile.k *
                  dot.elementBytes;
  const DotInstruction &instruction = instructionOf(dot, tile);
  bool isAsync = instruction.form == DotInstruction::Form::WarpgroupMma;
  int64_t columns = isAsync ? tile.n : llvm::bit_ceil<uint64_t>(tile.n);
  const Costs &costs = !isAsync                 ? kInOrder
                       : dot.elementBytes == 1  ? kOfBytes
                       : copiesBoxes(dot, tile) ? kBoxes
                                                : kAsynchronous;
  int64_t resident = std::min(
      {int64_t(dot.chip->sharedBytes / (shared + 1024)),
       kRegisters / (registersOf(dot, tile, isAsync) * tile.warps * 32),
       kWarps / tile.warps, int64_t(32)});
  resident = std::max<int64_t>(resident, 1);
  int64_t multiprocessors = multiprocessorsFor(dot, tile),
          rounds = ceilDiv(instances, multiprocessors * resident),
          together = std::min(ceilDiv(instances, multiprocessors), resident);

  // Each instruction on 64 rows reads these and the columns of its group.
  int64_t blocks = ceilDiv(tile.m, instruction.rows),
          groups = ceilDiv(tile.warps, instruction.warps * blocks);
  double sharedBytes =
      stepBytes + double(blocks * (groups * instruction.rows + tile.n)) *
                      tile.k * dot.elementBytes;
  double step =
      std::max(
          {costs.latency / std::max<int64_t>(tile.stages - costs.held, 1),
           together * stepBytes / costs.intake,
           together * sharedBytes / costs.shared,
           together * 2.0 * tile.m * columns * tile.k / instruction.rate}) +
      together * costs.step;
  step = std::max(step, wideningOf(dot, tile, together));
  if (instruction.shortSums && together == 1)
    step += additionOf(dot, tile);
  double round =
      steps * step + costs.fill + together * costs.result * tile.m * tile.n;
  double cache =
      instances * steps * stepBytes /
      (isWindow(dot) ? std::min(costs.cache, kWindows) : costs.cache);
  double time = costs.launch + std::max(rounds * round, cache) +
                meetingOf(dot, tile, instances, costs);
  // A loop of few more steps than are loaded ahead waits for these.
  int64_t covering = steps >= 2 * tile.stages ? steps - tile.stages : 0;
  return handicap * time + exposedMemory(dot, double(tile.stages) / steps,
                                         rounds, rounds * covering * step) /
                               together;
}

double charonia::emit::estimate(const GpuDot &dot, const GpuTile &tile) {
  return timeOf(dot, tile, 1);
}

/// Tiles of warpgroups that have columns of the product on the side of 64 rows
/// and its rows, in any multiple of 8, on the other: of 25088 pixels and 128
/// filters 131 tiles of 128 filters x 192 pixels are one round, 196 of 128 x
/// 128 one and a half. Small ones leave memory for the next kernel's first
/// instances, which beats a deeper ring but in long sums.
static std::vector<GpuTile> tilesAcross(const GpuDot &dot) {
  constexpr int64_t terms = 64, slotBytes = terms * 2;
  constexpr int64_t narrow = 64;
  // Products of bytes have no other instruction for few rows.
  const int64_t least = dot.elementBytes == 1 ? 16 : 40;
  // A group alone with more columns loses to two that share them.
  constexpr struct {
    int64_t rows, warps, leastWidth, mostWidth, residents, leastTerms;
  } heights[] = {{64, 4, 0, 128, 2, 0},
                 {128, 8, 0, 256, 1, 0},
                 {64, 4, 0, 128, 1, 4096},
                 {64, 4, 160, 160, 1, 2048}};
  std::vector<GpuTile> tiles;
  for (auto [rows, warps, leastWidth, mostWidth, residents, leastTerms] :
       heights)
    for (int64_t width = std::max(least, leastWidth); width <= mostWidth;
         width += 8) {
      // 64 x 104 took 20 % longer than 64 x 112, of three products, however
      // they are copied.
      if (rows == narrow && width > narrow && width % 16 != 0)
        continue;
      int64_t columns = llvm::bit_ceil<uint64_t>(width),
              bytes = dot.chip->sharedBytes / residents - 1024,
              stages =
                  std::min<int64_t>(7, bytes / ((rows + columns) * slotBytes));
      if (stages >= 3 && dot.k >= leastTerms)
        tiles.push_back({rows, width, terms, warps, stages, 1, true});
    }
  return tiles;
}

/// By how much the model is too fond of a tile, as measured. Widths that are no
/// power of two take 8 to 10 % longer than it says, more where large parts meet
/// (those of one group of 64 rows take what others do, and in long sums with
/// deep rings too), and win where they fill the chip, not in long queues:
/// 8192^3 was 1.4 % slower in 224 columns than in 256. One group of 64 rows by
/// 256 columns took 15 % longer than two of 128 by 128. Of `boxes` widths
/// matter less.
static double handicapOf(const GpuTile &tile, bool isQueue, bool boxes,
                         int64_t terms) {
  constexpr int64_t narrow = 128, narrowest = 64, deep = 7;
  bool isDeep = tile.stages >= deep, isLong = terms >= longSum;
  // 2048 x 11008 x 4096 took 296 us in tiles of 128 x 128, estimated 265, and
  // 270 in 128 x 256.
  constexpr int64_t largest = 128 * 256;
  if (boxes && isQueue && isLong && tile.m * tile.n < largest)
    return 1.15;
  // Its shared memory is what bounds it, in fact by so much.
  if (tile.m == 256 && tile.n < 128)
    return 1.2;
  if (tile.m == 64 && tile.n == 256)
    return 1.1;
  // Large tiles across begin and end sooner, with one number of a bias for each
  // row of theirs: of seven products of 2048 to 4096 rows and 768 or 1024 terms
  // they took .88 to .99 of what tiles along rows did. In long sums smaller
  // ones do, which keep more stages: 2048 x 768 x 3072 15.7 us of 17.8.
  constexpr int64_t high = 128, large = 160, shortSum = 512;
  if (boxes && !isQueue && tile.swap && tile.m == high && tile.n > narrowest &&
      terms >= shortSum && isLong == (tile.n < large))
    return isLong ? 1.01 : 0.97;
  if (llvm::isPowerOf2_64(tile.n))
    return tile.swap ? 1.02 : 1;
  if (!tile.swap)
    return 1.02;
  if (tile.m == 64 && tile.n > narrowest && (tile.splits > 1 || isDeep))
    return 1.02;
  if (boxes)
    return isQueue ? 1.05 : 1.02;
  if (isQueue || tile.splits > 1)
    return 1.12;
  return tile.n < narrow ? 1.1 : 1.08;
}

/// Cuts a tile's columns so that those of a run are whole tiles; false where
/// that leaves too few.
static bool fitsRun(GpuTile &tile, int64_t run) {
  constexpr int64_t fewest = 8;
  if (run == 0)
    return true;
  if (tile.swap)
    return run % tile.m == 0;
  tile.n = std::min(tile.n, run);
  while (run % tile.n != 0)
    --tile.n;
  return tile.n >= fewest;
}

/// Whether two tiles are one (short sums make long steps short), or are across
/// and cut the rows into as many, in another width.
static bool isRepeated(const GpuDot &dot, const GpuTile &a, const GpuTile &b) {
  bool isNeighbour = a.swap && b.swap && a.m == b.m && a.splits == b.splits &&
                     ceilDiv(dot.m, a.n) == ceilDiv(dot.m, b.n);
  return a == b || isNeighbour;
}

std::vector<GpuTile> charonia::emit::rankGpuTiles(const GpuDot &dot) {
  // K is for 16-bit elements; longer ones take as many bytes. Of equal
  // estimates the first counts: 128 x 256 took 12 % less than 128 x 128.
  static constexpr GpuTile tensor[] = {
      {16, 32, 64, 2, 4},   {16, 64, 64, 4, 4},  {16, 32, 128, 2, 4},
      {16, 32, 128, 4, 6},  {32, 32, 64, 2, 4},  {32, 32, 64, 4, 4},
      {32, 32, 128, 4, 4},  {32, 64, 64, 4, 4},  {32, 64, 64, 4, 6},
      {32, 64, 128, 4, 3},  {64, 32, 64, 4, 4},  {64, 32, 128, 4, 3},
      {64, 64, 32, 4, 4},   {64, 64, 64, 4, 4},  {64, 64, 64, 4, 6},
      {64, 64, 128, 4, 3},  {64, 128, 64, 4, 4}, {128, 64, 64, 4, 4},
      {128, 256, 32, 8, 4}, {128, 128, 64, 8, 3}};
  // Of warpgroups alone. 128 x 128 of eight warps, six stages, takes what 64 x
  // 256 does by the estimate, and was 15 % faster.
  static constexpr GpuTile warpgroup[] = {
      {64, 64, 64, 4, 8},   {64, 128, 64, 4, 6},  {128, 128, 64, 8, 6},
      {64, 256, 64, 4, 4},  {128, 128, 64, 8, 3}, {128, 128, 64, 4, 3},
      {128, 256, 64, 8, 4}, {256, 128, 64, 8, 4}, {64, 96, 64, 4, 6},
      {128, 96, 64, 8, 6},  {128, 160, 64, 8, 4}, {128, 192, 64, 8, 4},
      {128, 224, 64, 8, 4}, {256, 96, 64, 8, 4}};
  static constexpr GpuTile multiply[] = {
      {16, 32, 64, 1, 3},  {16, 64, 64, 2, 3},   {32, 32, 64, 1, 3},
      {32, 32, 64, 2, 3},  {32, 64, 64, 2, 3},   {64, 32, 64, 2, 3},
      {64, 64, 64, 2, 2},  {64, 64, 64, 4, 3},   {64, 128, 64, 4, 2},
      {128, 64, 64, 4, 2}, {128, 128, 128, 8, 2}};
  std::vector<std::pair<double, GpuTile>> ranked;
  auto stepOf = [&](const GpuTile &tile) {
    return std::max<int64_t>(16, tile.k * 2 / dot.elementBytes);
  };
  auto consider = [&](GpuTile tile) {
    // More do not stay in registers.
    constexpr int64_t mostAccumulators = 176;
    if (!fitsRun(tile, dot.columnRun) ||
        (dot.columnCell && (tile.swap ? tile.m : tile.n) % dot.columnCell != 0))
      return;
    GpuDot sides = tile.swap ? dot.swapped() : dot;
    tile.k = stepOf(tile);
    const DotInstruction &instruction = instructionOf(dot, tile);
    if (instruction.shortSums && !takesTurns(dot, tile) &&
        accumulatorsOf(dot, tile) > mostAccumulators)
      return;
    bool multiplies = instruction.form == DotInstruction::Form::MultiplyAdd;
    if (multiplies && wordsOfSums(dot, tile) > kMostWords)
      return;
    // A step twice as long as K, or a tile twice as high or wide as the
    // problem, is mostly empty.
    while (tile.k > 16 && tile.k >= 2 * dot.k)
      tile.k /= 2;
    if (!ranked.empty() && ((tile.m > 16 && tile.m >= 2 * sides.m) ||
                            (tile.n > 32 && tile.n >= 2 * sides.n)))
      return;
    // Where tiles are fewer than multiprocessors, several share one, with two
    // steps each at least. Multiply-adds take so long that what is left of a
    // last round counts beside meeting in a cluster.
    int64_t tiles =
                ceilDiv(sides.m, tile.m) * ceilDiv(sides.n, tile.n) * dot.batch,
            steps = ceilDiv(dot.k, tile.k);
    for (int64_t splits : {1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 24, 32}) {
      tile.splits = splits;
      int64_t most = dot.chip->multiprocessors *
                     (multiplies && meetsInCluster(sides, tile) ? 8 : 1);
      // What parts leave behind are floats of 32 bits.
      if (splits > 1 &&
          (dot.elementBytes > 4 || tiles > most || steps < 2 * splits ||
           tiles * splits > std::max(most, 4 * dot.chip->multiprocessors) ||
           (!tile.swap && !llvm::isPowerOf2_64(tile.n))))
        break;
      // Elsewhere the sums of all parts are in registers at once, and fewer
      // instances beside each other widen more slowly.
      if (dot.widening && !llvm::isPowerOf2_64(splits))
        continue;
      bool boxes = copiesBoxes(dot, tile);
      double handicap =
          handicapOf(tile, /*isQueue=*/tiles > 3 * dot.chip->multiprocessors,
                     boxes, dot.k) *
          (boxes && splits == 1 && dot.k >= longSum ? kWholeSums : 1);
      ranked.push_back({timeOf(dot, tile, handicap), tile});
    }
  };
  if (!dot.tensorCores) {
    for (const GpuTile &tile : multiply)
      consider(tile);
  } else {
    for (const GpuTile &tile : tensor)
      consider(tile);
    auto ofWarpgroups = [&](GpuTile tile) {
      // Of bytes a step is longer in elements.
      tile.k = std::max(tile.k, stepOf(tile));
      return instructionOf(dot, tile).form ==
             DotInstruction::Form::WarpgroupMma;
    };
    for (const GpuTile &tile : warpgroup)
      if (ofWarpgroups(tile))
        consider(tile);
    for (const GpuTile &tile : tilesAcross(dot))
      if (ofWarpgroups(tile))
        consider(tile);
    // Of long sums as much as possible is under way where an instance has a
    // multiprocessor for itself: 512 x 768 x 3072 took 9.9 us with 6 stages of
    // 64 x 64, 8.6 with 8, 7.7 with 12.
    static constexpr GpuTile deep[] = {{64, 64, 64, 4, 12},
                                       {64, 128, 64, 4, 9},
                                       {128, 64, 64, 4, 9},
                                       {64, 64, 64, 4, 12, 1, true},
                                       {64, 128, 64, 4, 9, 1, true}};
    for (const GpuTile &tile : deep)
      if (dot.k >= longSum && ofWarpgroups(tile) && copiesBoxes(dot, tile))
        consider(tile);
  }
  if (ranked.empty()) {
    GpuDot all = dot;
    all.columnRun = 0;
    return rankGpuTiles(all);
  }
  llvm::stable_sort(ranked, llvm::less_first());
  std::vector<GpuTile> tiles;
  for (const auto &[time, tile] : ranked)
    if (llvm::none_of(tiles, [&, tile = tile](const GpuTile &better) {
          return isRepeated(dot, better, tile);
        }))
      tiles.push_back(tile);
  return tiles;
}

GpuTile charonia::emit::chooseGpuTile(const GpuDot &dot) {
  return rankGpuTiles(dot).front();
}
