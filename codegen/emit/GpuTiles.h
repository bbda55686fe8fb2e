// Tile shapes of dots on a GPU.
//
// The model counts, for a kernel that keeps its operands in a ring of shared
// memory slots, what a step of the K loop waits for: memory latency spread over
// the ring's stages, the bytes that a multiprocessor takes in, its arithmetic,
// and a cost of every step; times the steps and the rounds of program
// instances; or the bytes that all of them take from the L2 cache. Its
// constants were fitted on an H200 to 650 kernels of the products of BERT, ViT,
// GPT-2, ResNet-50 and MobileNetV2 at batch 1 (scripts/gpu_kernels.py
// --problems --time): the root of the mean squared logarithmic error is 0.11,
// and its choices are 2 % slower than the best tile in the mean, 11 % at most.
// Those of warpgroups were fitted to half of 28 problems (--products, and small
// ones of the models above, 312 kernels); on the other half the error is 0.13,
// and its choices, be they of warpgroups or not, are 0.2 % slower than the best
// tile in the mean, 1.3 % at most. Traffic of shared memory counts since tiles
// of 256 x 96 were found 20 % slower than their arithmetic, and memory that no
// other instance covers since one-step products of 130 MB and more were found
// five times slower than estimated.
#ifndef CHARONIA_CODEGEN_EMIT_GPUTILES_H
#define CHARONIA_CODEGEN_EMIT_GPUTILES_H

#include "codegen/target/GpuTarget.h"
#include <optional>
#include <utility>
#include <vector>

namespace charonia::emit {

/// A program instance computes m x n elements, k terms a step. `splits` of them
/// share the terms of a tile. Where n is no power of two, the slots of the ring
/// are those of the next one.
struct GpuTile {
  int64_t m, n, k, warps, stages, splits = 1;
  /// m are columns of the product and n its rows (Schedule::swap).
  bool swap = false;
  bool operator==(const GpuTile &) const = default;
};

struct GpuDot {
  int64_t m, n, k, batch = 1;
  /// The same with rows and columns exchanged.
  GpuDot swapped() const {
    GpuDot dot = *this;
    std::swap(dot.m, dot.n);
    return dot;
  }
  int64_t elementBytes = 2;
  /// Products on tensor cores (16-bit types, f32 as tf32).
  bool tensorCores = true;
  /// The terms of both operands are neighbours in memory.
  bool alongTerms = false;
  const GpuTarget *chip = GpuTarget::get("sm_90");
  /// Of both operands as they lie in memory, and of the results with what is
  /// read to be added to them or the like.
  double operandBytes = 0, resultBytes = 0;
  /// Instructions for an element of the columns, which each instance computes
  /// from what it reads; 0: they are copied.
  int64_t widening = 0;
  /// A tile, and each part's share of it, has a multiple of so many columns; 0:
  /// any number.
  int64_t columnCell = 0;
  /// So many neighbouring columns share their rows, and a tile has columns of
  /// one run alone; 0: all.
  int64_t columnRun = 0;
};

/// Whether program instances should walk through the tiles of one block of
/// columns each, whose part of the right operand stays in shared memory
/// (codegen/gpu/PersistTiles.h), if the product has several such blocks.
bool staysInBlocks(const GpuDot &dot, const GpuTile &tile);

/// Expected microseconds.
double estimate(const GpuDot &dot, const GpuTile &tile);

/// The tiles for a product, with each number of parts: first what takes least
/// by the estimate and by how far it errs for such tiles, as measured. Of
/// neighbouring widths across that make as many tiles just the best is there.
std::vector<GpuTile> rankGpuTiles(const GpuDot &dot);
/// The first of them.
GpuTile chooseGpuTile(const GpuDot &dot);

} // namespace charonia::emit

#endif
