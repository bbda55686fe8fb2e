// Shared layouts, by simulating banks: what the layouts promise is counted.
#include "codegen/layout/Layouts.h"
#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace charonia;
using f2::Vector;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {

/// Most 4-byte rows that one bank serves while one group of lanes moves its
/// vectors (1: no conflict). `offsets`: (register, lane, warp) -> element
/// offset.
unsigned conflicts(const LinearLayout &offsets, ArrayRef<unsigned> vectorBits,
                   unsigned elementBytes) {
  unsigned vectorBytes = elementBytes << vectorBits.size();
  unsigned together = std::min(32u, 128 / vectorBytes), worst = 0;
  unsigned mask = 0;
  for (unsigned bit : vectorBits)
    mask |= 1u << bit;
  for (unsigned warp = 0; warp < offsets.inSize(Dim::Warp); ++warp)
    for (unsigned reg = 0; reg < offsets.inSize(Dim::Register); ++reg) {
      if (reg & mask)
        continue;
      for (unsigned first = 0; first < 32; first += together) {
        std::map<unsigned, std::set<Vector>> banks;
        for (unsigned lane = first; lane < first + together; ++lane) {
          Vector start = (offsets.apply(Dim::Register, reg) ^
                          offsets.apply(Dim::Lane, lane) ^
                          offsets.apply(Dim::Warp, warp)) *
                         elementBytes;
          EXPECT_EQ(start % vectorBytes, 0u);
          for (unsigned byte = 0; byte < vectorBytes; ++byte)
            banks[(start + byte) / 4 % 32].insert((start + byte) / 4);
        }
        for (auto &[bank, rows] : banks)
          worst = std::max<unsigned>(worst, rows.size());
      }
    }
  return worst;
}

unsigned conflictsOf(const LinearLayout &registers, const LinearLayout &shared,
                     unsigned elementBytes, unsigned *vector = nullptr) {
  LinearLayout offsets = sharedOffsets(registers, shared);
  SmallVector<unsigned> bits = sharedVector(offsets, 16 / elementBytes);
  if (vector)
    *vector = elementBytes << bits.size();
  return conflicts(offsets, bits, elementBytes);
}

TEST(SharedLayout, ConversionsOfAccumulators) {
  for (auto [m, n, rows, columns] : {std::array<unsigned, 4>{128, 128, 2, 4},
                                     {64, 64, 2, 2},
                                     {128, 256, 2, 4},
                                     {16, 64, 1, 4},
                                     {32, 8, 2, 1}})
    for (unsigned bytes : {2u, 4u}) {
      SmallVector<int64_t> shape{m, n};
      LinearLayout acc = mmaResultLayout(shape, {rows, columns});
      LinearLayout blocked =
          blockedLayout(shape, {1, 0}, 16 / bytes, rows * columns);
      LinearLayout shared = conversionLayout(acc, blocked, bytes * 8);
      EXPECT_TRUE(shared.isInjective() && shared.isSurjective());
      EXPECT_EQ(conflictsOf(acc, shared, bytes), 1u)
          << shape[0] << "x" << shape[1];
      EXPECT_EQ(conflictsOf(blocked, shared, bytes), 1u)
          << shape[0] << "x" << shape[1];
    }
}

TEST(SharedLayout, ConversionMovesLongVectorsWhereItCan) {
  LinearLayout acc = mmaResultLayout({128, 128}, {2, 4});
  LinearLayout blocked = blockedLayout({128, 128}, {1, 0}, 8, 8);
  LinearLayout shared = conversionLayout(acc, blocked, 16);
  unsigned store, load;
  conflictsOf(acc, shared, 2, &store);
  conflictsOf(blocked, shared, 2, &load);
  EXPECT_EQ(store, 16u);
  EXPECT_EQ(load, 16u);
}

TEST(SharedLayout, WhatIsWrittenInPartsIsReadAtOnce) {
  // A warpgroup's result, of which a thread has two neighbours, to rows.
  for (unsigned groups : {1u, 2u})
    for (int64_t columns : {64, 128}) {
      LinearLayout acc =
          warpgroupResultLayout({64 * groups, columns}, {groups, 1});
      LinearLayout blocked =
          blockedLayout({64 * groups, columns}, {1, 0}, 8, 4 * groups);
      LinearLayout shared = conversionLayout(acc, blocked, 16);
      unsigned load;
      EXPECT_EQ(conflictsOf(acc, shared, 2), 1u);
      EXPECT_EQ(conflictsOf(blocked, shared, 2, &load), 1u);
      EXPECT_EQ(load, 16u);
    }
}

TEST(SharedLayout, Transposition) {
  LinearLayout rows = blockedLayout({64, 64}, {1, 0}, 4, 4);
  LinearLayout columns = blockedLayout({64, 64}, {0, 1}, 4, 4);
  LinearLayout shared = conversionLayout(rows, columns, 32);
  EXPECT_EQ(conflictsOf(rows, shared, 4), 1u);
  EXPECT_EQ(conflictsOf(columns, shared, 4), 1u);
}

TEST(SharedLayout, OperandsOfDots) {
  // Rows of 32 to 256 bytes, either axis contiguous, copied in 16 or 4 bytes.
  for (auto shape : {SmallVector<int64_t>{128, 16},
                     {128, 32},
                     {128, 64},
                     {64, 128},
                     {16, 64}})
    for (unsigned contiguous : {0u, 1u})
      for (unsigned vector : {8u, 2u}) {
        SmallVector<int64_t> extents(shape);
        if (!contiguous)
          std::swap(extents[0], extents[1]);
        LinearLayout copy =
            blockedLayout(extents, {contiguous, 1 - contiguous}, vector, 4);
        LinearLayout shared = matrixLayout(copy, contiguous, vector, 16);
        EXPECT_TRUE(shared.isInjective());
        unsigned written;
        EXPECT_EQ(conflictsOf(copy, shared, 2, &written), 1u);
        EXPECT_EQ(written, vector * 2);
        // ldmatrix: 8 lanes give the addresses of 8 neighbouring rows.
        LinearLayout offset = shared.inverse();
        std::set<Vector> banks;
        for (unsigned row = 0; row < 8; ++row) {
          Vector start = offset.apply(axisDim(1 - contiguous), row);
          EXPECT_EQ(start % 8, 0u);
          banks.insert(start * 2 / 16 % 8);
          for (unsigned i = 0; i < 8; ++i)
            EXPECT_EQ(start ^ offset.apply(axisDim(contiguous), i), start + i);
        }
        EXPECT_EQ(banks.size(), 8u);
      }
}

} // namespace
