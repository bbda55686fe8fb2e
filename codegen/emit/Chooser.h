// Tiles for each form of kernel. Private to the cost model.
#ifndef CHARONIA_CODEGEN_EMIT_CHOOSER_H
#define CHARONIA_CODEGEN_EMIT_CHOOSER_H

#include "codegen/emit/GpuTiles.h"
#include "codegen/emit/KernelShape.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

namespace charonia::emit {

/// A tile of at most `most` that cuts `extent` into equal parts.
inline int64_t evenTile(int64_t extent, int64_t most) {
  if (extent <= most)
    return std::max<int64_t>(extent, 1);
  return llvm::divideCeil(extent, llvm::divideCeil(extent, most));
}

/// Tiles for each form of kernel.
class Chooser {
public:
  /// `alternative`: which of the tiles that the cost model ranks; 0: its
  /// choice.
  Chooser(const KernelShape &k, const EmitTarget &t, unsigned alternative = 0)
      : k(k), t(t), cpu(t.kind == EmitTarget::Kind::Cpu),
        alternative(alternative) {
    for (unsigned d = 0; d < k.root.size(); ++d)
      if (graph::constantOf(k.root[d]) != 1)
        all.push_back(d);
  }

  Schedule run();
  /// After run(): how many there are to choose from.
  unsigned alternatives() const { return numAlternatives; }

private:
  /// The one that is asked for. Once in a run.
  template <typename T> T choose(const std::vector<T> &ranked) {
    numAlternatives = ranked.size();
    return ranked[std::min<size_t>(alternative, ranked.size() - 1)];
  }
  bool hasKind(graph::DimKind kind) {
    return llvm::is_contained(k.kinds, kind);
  }
  llvm::SmallVector<unsigned> ofKind(graph::DimKind kind) {
    llvm::SmallVector<unsigned> dims;
    for (unsigned d : all)
      if (k.kinds[d] == kind)
        dims.push_back(d);
    return dims;
  }
  bool isStatic(llvm::ArrayRef<unsigned> dims) {
    return llvm::all_of(dims, [&](unsigned d) {
      return graph::constantOf(k.root[d]).has_value();
    });
  }
  unsigned add(llvm::ArrayRef<unsigned> dims, int64_t tile,
               bool sequential = false) {
    if (dims.empty()) // one element, which a longer tile would have many times
      tile = 1;
    s.groups.push_back({llvm::SmallVector<unsigned>(dims),
                        cpu ? tile : (int64_t)llvm::bit_ceil<uint64_t>(tile),
                        sequential});
    return s.groups.size() - 1;
  }
  /// Adds a group whose tiles, on a CPU and where the number of elements is
  /// open, are followed by shorter ones of `rest`.
  unsigned addOpen(llvm::ArrayRef<unsigned> dims, int64_t tile, int64_t rest) {
    unsigned group = add(dims, tile);
    if (cpu && !isStatic(dims) && rest < tile && mayBeFew(dims, tile))
      s.groups[group].rest = s.groups[group].shortest = rest;
    return group;
  }
  /// Whether there may be few tiles: of many whole ones another that is mostly
  /// empty costs little.
  bool mayBeFew(llvm::ArrayRef<unsigned> dims, int64_t tile) {
    constexpr int64_t manyTiles = 8;
    int64_t least = 1;
    for (unsigned d : dims)
      least *= k.least[d];
    return least < manyTiles * tile;
  }

  /// Elements of dimensions where they are most: an open size is long at times,
  /// whatever is optimized for. Past `limit` it doesn't matter how many.
  int64_t mostOf(llvm::ArrayRef<unsigned> dims) {
    constexpr int64_t limit = int64_t(1) << 24;
    int64_t n = 1;
    for (unsigned d : dims)
      n = std::min(n * std::min(std::max(k.sizes[d], k.most[d]), limit), limit);
    return n;
  }

  static int64_t product(const KernelShape &k, llvm::ArrayRef<unsigned> dims) {
    int64_t n = 1;
    for (unsigned d : dims)
      n *= k.sizes[d];
    return n;
  }
  llvm::SmallVector<unsigned> tiled(llvm::ArrayRef<unsigned> groups);

  // --- Rows: RowSchedule.cpp.
  void rows();
  /// Rows that lie across memory, with dimensions beside them of which the last
  /// is innermost.
  void rowsAcross(llvm::ArrayRef<unsigned> whole,
                  llvm::ArrayRef<unsigned> others);
  /// Schedules several instances for each of so many rows of a known length
  /// where they are few and long.
  void shareRows(int64_t rows, int64_t length);
  /// Whole dimensions are the operator's to walk. Beside them, neighbours in
  /// memory lie in one tile; rows do where they are short.
  void ordered();
  void reductionAlong();

  // --- Windows, blocks: WindowSchedule.cpp.
  /// Windows slide over a run of elements that all have the same channels:
  /// a tile of some neighbours by some channels reads what the windows share,
  /// and the filter, once.
  bool windows();
  /// Windows that slide along a last dimension of open size, on a CPU: rows in
  /// tiles of one register inside of an instance, so that few tiles look at
  /// what lies outside, and none divides to find its row.
  bool openWindows();
  /// The same of long rows that are padded: most tiles of two registers lie
  /// between the ends.
  bool rowsWithEnds();
  /// Rows of the last dimension, walked inside of instances in tiles of `tile`;
  /// false where there would be few instances.
  bool walkRows(int64_t tile);
  bool channelsAlone();
  /// On a GPU, where each tile is a cell that a further result adds up: some
  /// channels of it.
  bool cellsOfChannels();
  /// Inputs that are dense along another dimension than the result: blocks that
  /// are some registers long both ways, transposed in registers.
  bool blocks();
  /// The same on a GPU, turned in shared memory: runs of both are read and
  /// written whole. `crossing` lie in memory as the last dimension should.
  bool gpuBlocks(llvm::ArrayRef<unsigned> crossing, int64_t longest);

  // --- Element by element: ElementwiseSchedule.cpp.
  /// On a GPU: neighbours that are found by the same indices are one thread's,
  /// which reads those and works out the places once.
  bool sameIndices();
  /// On a GPU, where instances compute sums again: of dimensions along which
  /// these differ tiles have some of the last and one of others, and of those
  /// along which they are the same as much as leaves one round of instances.
  bool sumsAgain();
  /// The greatest tile of dimensions `inner` up to `most` that lies in one part
  /// of what is joined along them; 0: there is none, or nothing is joined.
  int64_t tileOfPart(llvm::ArrayRef<unsigned> inner, int64_t most);
  /// Elements of a tile of `inner` dimensions, about `most`, that begins with a
  /// short row and with a register at once, so that each register has the same
  /// parts of rows in every tile; 0: rows are long, or one run with the next.
  int64_t tileOfRows(llvm::ArrayRef<unsigned> inner, int64_t most);
  /// The same of one dimension along which an image is enlarged, so that each
  /// register has the same neighbours of every tile's first element; 0: tiles
  /// of whole registers do, or there is one of `tile` elements.
  int64_t tileOfPeriods(llvm::ArrayRef<unsigned> inner, int64_t tile,
                        int64_t most);
  int64_t mostInTile();
  /// Of long sums of some columns parts, in tiles of `most`: as many as the
  /// chip takes at once.
  void shareColumnSums(int64_t most);
  void elementwise();

  // --- Contractions: ProductSchedule.cpp, AttentionSchedule.cpp.
  /// Rows of a product's tile, at most `most`: those that waste least, be it on
  /// rows that do not exist or on what a tile costs beside its multiplications.
  int64_t rowTile(int64_t m, int64_t most, int64_t vectors);
  void contraction();
  void attention(llvm::ArrayRef<unsigned> row, llvm::ArrayRef<unsigned> column,
                 int64_t batch);
  /// Rows of a tile and keys of a step, as measured on an H200 (mma.sync:
  /// scripts/gpu_kernels.py --problems; wgmma: docs/performance.md).
  struct AttentionTile {
    int64_t rows, keys, residents = 1, warps = 4;
    /// Columns of the result, and features that are multiplied at once, powers
    /// of two; 0: all.
    int64_t columns = 0, features = 0;
    bool operator==(const AttentionTile &) const = default;
  };
  /// Bytes of shared memory that a tile takes with so many steps under way.
  int64_t sharedBytesOf(const AttentionTile &tile, int64_t n,
                        int64_t most = 2) const;
  double multiplyingTime(const AttentionTile &tile, int64_t rows, int64_t n,
                         int64_t batch) const;
  double streamingTime(const AttentionTile &tile, int64_t rows, int64_t n,
                       int64_t batch) const;
  /// The fastest of these tiles, if there is one.
  std::optional<AttentionTile> streamingTile(int64_t rows, int64_t n,
                                             int64_t batch) const;
  /// The tile, or what is left of it where registers or shared memory of the
  /// chip are too few for `n` columns: no more than the `m` rows that there
  /// are, fewer keys of a step, then fewer rows, which read keys and values
  /// more often. Where even few rows are too wide, queries come in parts with
  /// each step, and columns are those of several instances, which compute the
  /// scores again.
  AttentionTile fitted(AttentionTile tile, int64_t m, int64_t n) const;
  /// Of types that tensor cores do not take, and of f32 as tf32.
  std::vector<AttentionTile> wideAttention(int64_t rows, int64_t n,
                                           int64_t batch);
  std::vector<AttentionTile> gpuAttention(int64_t rows, int64_t n,
                                          int64_t batch);
  /// The longest rows of as many heads as have their keys and values in the
  /// second-level cache together. Measured on an H200: 2048 keys of 32 heads
  /// 42 us, head after head 56.
  void longestFirst(int64_t n, int64_t batch);
  struct CpuTile {
    int64_t rows, columns;
    /// All columns for each tile of rows, else all rows for each of columns, or
    /// as many of their tiles as `run` says.
    bool rowsFirst;
    int64_t run = 0;
    /// Rows are lanes (Schedule::swap).
    bool swap = false;
    /// Of a step.
    int64_t terms = 8;
    bool operator==(const CpuTile &) const = default;
  };
  /// As many accumulators as registers allow beside a row of the right operand
  /// and the broadcast element.
  std::vector<CpuTile> cpuTiles(llvm::ArrayRef<unsigned> row,
                                llvm::ArrayRef<unsigned> column);
  /// Whether terms that are `run` neighbours each fill registers.
  bool hasLongRuns(int64_t run);
  /// A matrix by a vector, where the matrix lies along the terms: some sums of
  /// whole registers side by side.
  bool alongTerms(llvm::ArrayRef<unsigned> row,
                  llvm::ArrayRef<unsigned> column);
  /// The same of a single column that no dimension stands for.
  bool oneColumn();
  /// Tiles for what is left behind whole ones of an open number of rows, which
  /// a batch of one never fills. `acrossLanes`: rows are lanes.
  void addRest(Schedule::Group &g, bool acrossLanes);
  /// The same of an open number of columns, which are lanes: one register, or
  /// half of it.
  void addRestOfColumns(Schedule::Group &g);
  /// Elements of a register: of 64 bits half as many as of 32.
  int64_t lanes() const;
  /// Takes from `row` the dimensions in front that are no run with the others,
  /// which are open: rows of a tile would each be found by divisions, and lie
  /// anywhere.
  llvm::SmallVector<unsigned> takeApart(llvm::SmallVector<unsigned> &row);
  void cpuProduct(llvm::SmallVector<unsigned> row,
                  llvm::ArrayRef<unsigned> column);
  /// One row, or one column, is no product of tiles: each instance adds up a
  /// few of the others. More where they lie side by side, as memory is read in
  /// runs of 32 bytes and more, and of sums that are shorter than its threads.
  void gpuRow(llvm::ArrayRef<unsigned> row, llvm::ArrayRef<unsigned> column,
              int64_t batch);
  void gpuProduct(llvm::ArrayRef<unsigned> row, llvm::ArrayRef<unsigned> column,
                  int64_t batch);
  /// Tiles of rows that are computed with all columns before others are, where
  /// there are several rounds of instances: those of a round then lie in a
  /// square, which takes the least from memory.
  static int64_t rowsTogether(const GpuDot &dot, const GpuTile &tile);

  const KernelShape &k;
  const EmitTarget &t;
  bool cpu;
  unsigned alternative, numAlternatives = 1;
  llvm::SmallVector<unsigned> all; // dimensions of extent other than 1
  Schedule s;
};

} // namespace charonia::emit

#endif
