#include "codegen/emit/GpuTiles.h"
#include <algorithm>
#include <limits>

using namespace charonia::emit;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

namespace {
// Fitted; microseconds, bytes and operations a microsecond.
constexpr double kLaunch = 2.0; ///< of a kernel, its first loads and its stores
constexpr double kLatency = 0.40;  ///< of memory, seen by a ring of one stage
constexpr double kIntake = 93.6e3; ///< of one multiprocessor from the L2 cache
constexpr double kTensorRate = 3.2e6;    ///< of one multiprocessor's mma.sync
constexpr double kMultiplyRate = 0.25e6; ///< of its multiply-adds
constexpr double kStep =
    0.093; ///< of a step, for each instance on the processor
constexpr double kCache = 9.2e6; ///< of the L2 cache to all
constexpr double kMeeting = 2.0; ///< of the parts of a split

constexpr int64_t kSharedBytes = 227 * 1024, kRegisters = 65536, kWarps = 64;

/// Registers of a thread, about.
int64_t registersOf(const GpuTile &tile) {
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

double charonia::emit::estimate(const GpuDot &dot, const GpuTile &tile) {
  int64_t instances =
      ceilDiv(dot.m, tile.m) * ceilDiv(dot.n, tile.n) * dot.batch * tile.splits;
  int64_t steps = ceilDiv(ceilDiv(dot.k, tile.k), tile.splits);
  double stepBytes = double(tile.m + tile.n) * tile.k * dot.elementBytes;
  double shared = std::min(tile.stages, steps + 1) * stepBytes;
  int64_t resident =
      std::min({int64_t(kSharedBytes / (shared + 1024)),
                kRegisters / (registersOf(tile) * tile.warps * 32),
                kWarps / tile.warps, int64_t(32)});
  resident = std::max<int64_t>(resident, 1);
  int64_t rounds = ceilDiv(instances, dot.multiprocessors * resident);
  int64_t together =
      std::min(ceilDiv(instances, dot.multiprocessors), resident);

  double rate = !dot.tensorCores        ? kMultiplyRate
                : dot.elementBytes == 4 ? kTensorRate / 2
                                        : kTensorRate;
  double step =
      std::max({kLatency / (tile.stages - 1), together * stepBytes / kIntake,
                together * 2.0 * tile.m * tile.n * tile.k / rate}) +
      together * kStep;
  double cache = instances * steps * stepBytes / kCache;
  double time = kLaunch + std::max(rounds * steps * step, cache);
  if (tile.splits > 1)
    time += kMeeting + tile.splits * tile.m * tile.n * sizeof(float) / kIntake;
  return time;
}

GpuTile charonia::emit::chooseGpuTile(const GpuDot &dot) {
  // K is for 16-bit elements; longer ones take as many bytes.
  static constexpr GpuTile tensor[] = {
      {16, 32, 64, 2, 4},   {16, 64, 64, 4, 4},  {16, 32, 128, 2, 4},
      {16, 32, 128, 4, 6},  {32, 32, 64, 2, 4},  {32, 32, 64, 4, 4},
      {32, 32, 128, 4, 4},  {32, 64, 64, 4, 4},  {32, 64, 64, 4, 6},
      {32, 64, 128, 4, 3},  {64, 32, 64, 4, 4},  {64, 32, 128, 4, 3},
      {64, 64, 32, 4, 4},   {64, 64, 64, 4, 4},  {64, 64, 64, 4, 6},
      {64, 64, 128, 4, 3},  {64, 128, 64, 4, 4}, {128, 64, 64, 4, 4},
      {128, 128, 64, 8, 3}, {128, 256, 32, 8, 4}};
  static constexpr GpuTile multiply[] = {
      {16, 32, 32, 1, 3},  {32, 32, 32, 2, 3},  {32, 64, 32, 2, 3},
      {64, 32, 32, 2, 3},  {64, 64, 32, 4, 3},  {64, 128, 32, 4, 3},
      {128, 64, 32, 4, 3}, {128, 128, 32, 8, 3}};
  GpuTile best{};
  double least = std::numeric_limits<double>::infinity();
  auto consider = [&](GpuTile tile) {
    tile.k = std::max<int64_t>(16, tile.k * 2 / dot.elementBytes);
    // A step twice as long as K, or a tile twice as high or wide as the
    // problem, is mostly empty.
    while (tile.k > 16 && tile.k >= 2 * dot.k)
      tile.k /= 2;
    bool first = best.m == 0;
    if (!first && ((tile.m > 16 && tile.m >= 2 * dot.m) ||
                   (tile.n > 32 && tile.n >= 2 * dot.n)))
      return;
    // Where tiles are fewer than multiprocessors, several share one, with two
    // steps each at least.
    int64_t tiles = ceilDiv(dot.m, tile.m) * ceilDiv(dot.n, tile.n) * dot.batch,
            steps = ceilDiv(dot.k, tile.k);
    for (int64_t splits : {1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 24, 32}) {
      if (splits > 1 && (tiles > dot.multiprocessors || steps < 2 * splits ||
                         tiles * splits > 4 * dot.multiprocessors))
        break;
      tile.splits = splits;
      double time = estimate(dot, tile);
      if (time < least) {
        least = time;
        best = tile;
      }
    }
  };
  if (dot.tensorCores)
    for (const GpuTile &tile : tensor)
      consider(tile);
  else
    for (const GpuTile &tile : multiply)
      consider(tile);
  return best;
}
