// The layouts that kernels use, as instances of LinearLayout.
//
// Register layouts go from (register, lane, warp) to the axes of a tile; shared
// layouts from the offset in elements to the axes. Extents are powers of two; a
// warp has 32 lanes, and the numbers of warps are powers of two.
#ifndef CHARONIA_CODEGEN_LAYOUT_LAYOUTS_H
#define CHARONIA_CODEGEN_LAYOUT_LAYOUTS_H

#include "codegen/layout/LinearLayout.h"

namespace charonia {

inline constexpr unsigned kLaneBits = 5;
inline constexpr unsigned kLanes = 1u << kLaneBits;
/// Of a warp's number: its place among the four of a warpgroup.
inline constexpr unsigned kWarpgroupBits = 2;

/// Threads are dealt out along the axes in `order` (first: fastest), each
/// holding `vector` neighbours along order[0] at a time; what is left repeats
/// in registers. A tile with fewer vectors than threads is held by several.
/// `neighbours`: so many along order[1] are the same thread's before others
/// have any.
LinearLayout blockedLayout(llvm::ArrayRef<int64_t> shape,
                           llvm::ArrayRef<unsigned> order, unsigned vector,
                           unsigned warps, unsigned neighbours = 1);

/// `layout` with its warpgroups where those of `other` are, if a bit of a
/// thread's or a warp's place can be exchanged for each of theirs.
LinearLayout withGroupsOf(const LinearLayout &layout,
                          const LinearLayout &other);

/// The layout of each half of a tile along `axis`, where a thread holds the
/// same of both.
std::optional<LinearLayout> halfOf(const LinearLayout &layout, unsigned axis);
/// `layout` with an axis of which a thread holds the same of both halves, where
/// it does so in `other` and a register's bit can be exchanged for that.
LinearLayout withHalvesOf(const LinearLayout &layout,
                          const LinearLayout &other);

/// The layout of a tile of which an axis is cut into runs of `inner` neighbours
/// (tile.split_axis), and back.
LinearLayout splitAxis(const LinearLayout &layout, unsigned axis,
                       int64_t inner);
LinearLayout joinAxes(const LinearLayout &layout, unsigned axis);

/// The layout of a tile without bit `bit` of the coordinates along an axis, and
/// of one that has such a bit more, whose elements a thread holds both of.
LinearLayout withoutBit(const LinearLayout &layout, unsigned axis,
                        unsigned bit);
LinearLayout withBit(const LinearLayout &layout, unsigned axis, unsigned bit);
/// `layout`, if a thread has both elements that differ in that bit alone, else
/// one of the kind.
LinearLayout holdingBit(const LinearLayout &layout, unsigned axis,
                        unsigned bit);

/// How the warps of a program instance share the rows and columns of a dot.
struct WarpGrid {
  unsigned rows = 1, columns = 1;
};

/// Accumulators of mma.sync (m16n8): [M, N].
LinearLayout mmaResultLayout(llvm::ArrayRef<int64_t> shape, WarpGrid warps);
/// Left operand [M, K] of mma.sync m16n8k16 (16-bit elements) or m16n8k8
/// (32-bit).
LinearLayout mmaLhsLayout(llvm::ArrayRef<int64_t> shape, unsigned elementBits,
                          WarpGrid warps);
/// Right operand [K, N].
LinearLayout mmaRhsLayout(llvm::ArrayRef<int64_t> shape, unsigned elementBits,
                          WarpGrid warps);

/// Accumulators of wgmma (m64): [M, N] with M and N / columns multiples of 64.
/// A grid of groups of four warps, each one behind another along 16 rows.
LinearLayout warpgroupResultLayout(llvm::ArrayRef<int64_t> shape,
                                   WarpGrid groups);
/// The left operand [M, K] of wgmma in registers, of 16-bit elements.
LinearLayout warpgroupLhsLayout(llvm::ArrayRef<int64_t> shape, WarpGrid groups);
/// An operand of wgmma in shared memory: rows of 128 bytes along axis
/// `contiguous`, their 16-byte chunks swizzled by the row's number modulo 8;
/// panels of such rows one behind another. Starts at a multiple of 1024 bytes.
LinearLayout warpgroupOperandLayout(llvm::ArrayRef<int64_t> shape,
                                    unsigned contiguous, unsigned elementBits);

/// Accumulators of a dot by scalar multiply-adds: blocks of up to 4x4 a thread.
LinearLayout fmaResultLayout(llvm::ArrayRef<int64_t> shape, WarpGrid warps);
/// Left ([M, K]: axis 0 follows the result) or right ([K, N]: axis 1) operand:
/// each thread holds all of K of the rows or columns of its results.
LinearLayout fmaOperandLayout(const LinearLayout &result, bool left, int64_t k);

/// The register bits that hold neighbours along `axis`, blocks aligned to their
/// own size: 2^n elements at most `limit` that one vector access may move.
llvm::SmallVector<unsigned> axisVector(const LinearLayout &layout,
                                       unsigned axis, unsigned limit);

/// What one access to shared memory touches at once: tile vectors of the bits
/// within a thread's vector and of the lanes that are served together.
using Wavefront = llvm::SmallVector<f2::Vector>;

/// The wavefront of a register layout that moves `vector` (images of the bits
/// of one thread's vector) at a time.
Wavefront wavefrontOf(const LinearLayout &layout,
                      llvm::ArrayRef<f2::Vector> vector, unsigned elementBits);

/// A layout of shared memory without bank conflicts for both wavefronts.
///
/// Offsets are [vector | banks | rows]. Two lanes conflict when they differ by
/// a combination of row vectors (same bank, other row). So the rows have to
/// meet the span of each wavefront in zero only; the largest such space is
/// spanned by the sums of what each wavefront has alone, pairwise, and what
/// neither has. `vector` are the tile vectors that stay contiguous; axes as in
/// `like`.
LinearLayout sharedLayout(llvm::ArrayRef<LinearLayout::Space> axes,
                          llvm::ArrayRef<f2::Vector> vector, const Wavefront &a,
                          const Wavefront &b);

/// Shared memory that carries a tile from one register layout to another.
LinearLayout conversionLayout(const LinearLayout &source,
                              const LinearLayout &destination,
                              unsigned elementBits);

/// Shared memory for a dot operand that is written in `vector` neighbours along
/// axis `contiguous` by `writer` and read by ldmatrix (8 rows of 16 bytes).
LinearLayout matrixLayout(const LinearLayout &writer, unsigned contiguous,
                          unsigned vector, unsigned elementBits);

/// The same for a reader that takes its fragment with plain loads. The fragment
/// may be a part of the tile.
LinearLayout operandLayout(const LinearLayout &writer, unsigned contiguous,
                           unsigned vector, const LinearLayout &fragment,
                           unsigned elementBits);

/// How registers and lanes address shared memory: (register, lane, warp) ->
/// offset.
LinearLayout sharedOffsets(const LinearLayout &registers,
                           const LinearLayout &shared);

/// The register bits that hold neighbouring offsets, as axisVector does.
llvm::SmallVector<unsigned> sharedVector(const LinearLayout &offsets,
                                         unsigned limit);

} // namespace charonia

#endif
