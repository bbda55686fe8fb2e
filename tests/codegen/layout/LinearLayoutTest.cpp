#include "codegen/layout/Layouts.h"
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

using namespace charonia;
using f2::Vector;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {

/// Element (flattened image) of a hardware point, by brute force.
Vector elementAt(const LinearLayout &layout, unsigned reg, unsigned lane,
                 unsigned warp) {
  return layout.apply(Dim::Register, reg) ^ layout.apply(Dim::Lane, lane) ^
         layout.apply(Dim::Warp, warp);
}

/// Holders of each element; fails unless the whole tile is held.
std::map<Vector, std::set<std::array<unsigned, 3>>>
holders(const LinearLayout &layout) {
  std::map<Vector, std::set<std::array<unsigned, 3>>> result;
  for (unsigned w = 0; w < layout.inSize(Dim::Warp); ++w)
    for (unsigned l = 0; l < layout.inSize(Dim::Lane); ++l)
      for (unsigned r = 0; r < layout.inSize(Dim::Register); ++r)
        result[elementAt(layout, r, l, w)].insert({r, l, w});
  EXPECT_EQ(result.size(), size_t(1) << layout.totalOutBits()) << layout.str();
  return result;
}

LinearLayout randomLayout(std::mt19937 &random, ArrayRef<int64_t> shape) {
  // A random invertible map, with some bits that hold copies.
  unsigned bits = 0;
  SmallVector<LinearLayout::Space> outs;
  for (auto [i, extent] : llvm::enumerate(shape)) {
    outs.push_back({axisDim(i), llvm::Log2_64(extent)});
    bits += outs.back().bits;
  }
  SmallVector<Vector> columns;
  f2::Span span;
  while (columns.size() < bits) {
    Vector v = random() & ((Vector(1) << bits) - 1);
    if (span.add(v))
      columns.push_back(v);
  }
  for (unsigned copies = random() % 3; copies; --copies)
    columns.insert(columns.begin() + random() % (columns.size() + 1), 0);
  unsigned lanes = std::min<unsigned>(5, columns.size()), warps = random() % 3;
  warps = std::min<unsigned>(warps, columns.size() - lanes);
  unsigned registers = columns.size() - lanes - warps;
  return LinearLayout(
      {{Dim::Register, registers}, {Dim::Lane, lanes}, {Dim::Warp, warps}},
      outs, columns);
}

TEST(F2, SolvesAndIntersects) {
  f2::Span span({0b0011, 0b0110});
  EXPECT_EQ(span.rank(), 2u);
  EXPECT_FALSE(span.add(0b0101));
  EXPECT_EQ(*span.solve(0b0101), Vector(0b11));
  EXPECT_FALSE(span.solve(0b1000));
  SmallVector<Vector> common =
      f2::intersect({0b0001, 0b0010, 0b0100}, {0b0110, 0b1000});
  ASSERT_EQ(common.size(), 1u);
  EXPECT_EQ(common[0], Vector(0b0110));
}

TEST(LinearLayout, ExampleOfTheHeader) {
  LinearLayout acc = mmaResultLayout({16, 8}, {});
  EXPECT_EQ(
      acc.str(),
      "register=[[0,1],[8,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[] "
      "-> [16,8]");
  Vector element = elementAt(acc, 3, 6, 0);
  EXPECT_EQ(acc.coordinate(element, axisDim(0)), 9u);
  EXPECT_EQ(acc.coordinate(element, axisDim(1)), 5u);
}

TEST(LinearLayout, ProductAndDivision) {
  LinearLayout fragment = mmaResultLayout({16, 8}, {});
  LinearLayout tile = mmaResultLayout({64, 32}, {2, 2});
  std::optional<LinearLayout> repeats = tile.divide(fragment);
  ASSERT_TRUE(repeats);
  EXPECT_EQ(fragment * *repeats, tile);
  EXPECT_EQ(repeats->inBits(Dim::Register), 2u);
  EXPECT_FALSE(tile.divide(mmaRhsLayout({16, 8}, 16, {})));
  LinearLayout lanes = LinearLayout::identity(Dim::Lane, axisDim(0), 5);
  EXPECT_EQ((LinearLayout::broadcast(Dim::Lane, 2) * lanes).str(),
            "lane=[[0],[0],[1],[2],[4],[8],[16]] -> [32]");
}

TEST(LinearLayout, InverseOfRandomLayouts) {
  std::mt19937 random(7);
  for (int i = 0; i < 100; ++i) {
    LinearLayout layout = randomLayout(random, {16, 32});
    EXPECT_TRUE(layout.isSurjective());
    LinearLayout round = layout.inverse().then(layout);
    for (unsigned axis = 0; axis < 2; ++axis)
      for (unsigned bit = 0; bit < round.inBits(axisDim(axis)); ++bit)
        EXPECT_EQ(round.basis(axisDim(axis), bit, axisDim(axis)), 1u << bit);
    if (layout.isInjective())
      EXPECT_EQ(layout.then(layout.inverse()).allColumns(),
                ArrayRef<Vector>(f2::unitVectors(layout.totalInBits())));
  }
}

TEST(LinearLayout, ConversionsMoveTheRightElements) {
  std::mt19937 random(11);
  for (int i = 0; i < 100; ++i) {
    LinearLayout from = randomLayout(random, {32, 16}),
                 to = randomLayout(random, {32, 16});
    LinearLayout move = from.conversionTo(to);
    for (unsigned w = 0; w < to.inSize(Dim::Warp); ++w)
      for (unsigned l = 0; l < to.inSize(Dim::Lane); ++l)
        for (unsigned r = 0; r < to.inSize(Dim::Register); ++r) {
          Vector source = elementAt(move, r, l, w);
          EXPECT_EQ(elementAt(from, move.coordinate(source, Dim::Register),
                              move.coordinate(source, Dim::Lane),
                              move.coordinate(source, Dim::Warp)),
                    elementAt(to, r, l, w));
        }
  }
}

TEST(LinearLayout, AccumulatorsBecomeLeftOperandsInRegisters) {
  // Attention: probabilities, the result of one dot, feed the next; all warps
  // on rows.
  LinearLayout result = mmaResultLayout({64, 32}, {4, 1});
  LinearLayout operand = mmaLhsLayout({64, 32}, 16, {4, 1});
  LinearLayout move = result.conversionTo(operand);
  for (Vector v : move.columnsOf(Dim::Register)) {
    EXPECT_EQ(move.coordinate(v, Dim::Lane), 0u);
    EXPECT_EQ(move.coordinate(v, Dim::Warp), 0u);
  }
  for (Dim dim : {Dim::Lane, Dim::Warp})
    for (unsigned bit = 0; bit < move.inBits(dim); ++bit) {
      EXPECT_EQ(move.basis(dim, bit, dim), 1u << bit);
      EXPECT_EQ(move.basis(dim, bit, Dim::Register), 0u);
    }
  // Of warpgroups they are the same registers.
  for (unsigned groups : {1, 2, 4})
    for (int64_t rows : {64, 128})
      EXPECT_EQ(warpgroupResultLayout({rows * groups, 128}, {groups, 1}),
                warpgroupLhsLayout({rows * groups, 128}, {groups, 1}));
}

TEST(LinearLayout, CopiesStayInTheirLane) {
  // Row sums are held by all lanes of a quad: giving them back to the
  // accumulators' rows moves nothing.
  LinearLayout rows = mmaResultLayout({16, 8}, {}).withoutAxis(1);
  EXPECT_EQ(rows.inBits(Dim::Register), 1u);
  EXPECT_EQ(holders(rows).begin()->second.size(), 4u);
  LinearLayout move = rows.conversionTo(rows);
  EXPECT_EQ(move.allColumns(),
            ArrayRef<Vector>(f2::unitVectors(move.totalInBits())));
}

TEST(Layouts, BlockedHoldsTheTileOnce) {
  for (auto shape :
       {SmallVector<int64_t>{128, 64}, {1, 4096}, {256, 8}, {16, 16, 32}}) {
    LinearLayout layout =
        blockedLayout(shape,
                      shape.size() == 2 ? ArrayRef<unsigned>{1, 0}
                                        : ArrayRef<unsigned>{2, 1, 0},
                      8, 4);
    for (auto &[element, at] : holders(layout))
      EXPECT_EQ(at.size(), 1u);
    EXPECT_EQ(axisVector(layout, shape.size() - 1, 8).size(), 3u);
    EXPECT_EQ(axisVector(layout, 0, 8).size(), 0u);
  }
  // 16 elements and 128 threads: two vectors, each held 64 times.
  for (auto &[element, at] : holders(blockedLayout({16}, {0}, 8, 4)))
    EXPECT_EQ(at.size(), 64u);
}

TEST(Layouts, WarpgroupsAndHalvesOfAccumulators) {
  // Two groups have 64 of 128 rows each, and a thread has columns of both
  // halves. Of a layout for memory, a row a warp, they become the same.
  const WarpGrid grid{2, 1};
  LinearLayout sums = warpgroupResultLayout({128, 256}, grid),
               stored = blockedLayout({128, 256}, {1, 0}, 8, 8),
               grouped = withGroupsOf(stored, sums),
               halved = withHalvesOf(grouped, sums);
  EXPECT_NE(stored.columnsOf(Dim::Warp)[2], sums.columnsOf(Dim::Warp)[2]);
  EXPECT_EQ(grouped.columnsOf(Dim::Warp)[2], sums.columnsOf(Dim::Warp)[2]);
  EXPECT_FALSE(halfOf(grouped, 1));
  for (const LinearLayout &layout : {grouped, halved}) {
    for (auto &[element, at] : holders(layout))
      EXPECT_EQ(at.size(), 1u);
    EXPECT_EQ(axisVector(layout, 1, 8).size(), 3u);
  }
  // Each half is where the first one is, 128 columns on.
  std::optional<LinearLayout> half = halfOf(halved, 1);
  ASSERT_TRUE(half);
  EXPECT_EQ(half->outSize(axisDim(1)), 128u);
  auto all = holders(halved);
  for (auto &[element, at] : holders(*half)) {
    auto thread = *at.begin();
    EXPECT_EQ((*all[element].begin())[1], thread[1]);
    EXPECT_EQ((*all[element].begin())[2], thread[2]);
    auto other = *all[element + (Vector(128) << 7)].begin();
    EXPECT_EQ(other[1], thread[1]);
    EXPECT_EQ(other[2], thread[2]);
  }
  // Rows are those of groups, and halves of theirs nobody has alone.
  EXPECT_FALSE(halfOf(sums, 0));
  // Another tile's groups tell nothing.
  EXPECT_EQ(withGroupsOf(stored, warpgroupResultLayout({128, 128}, grid)),
            stored);
}

TEST(Layouts, FragmentsOfMma) {
  // PTX ISA, m16n8k16, 16-bit elements: row and column of a register of a
  // thread.
  LinearLayout a = mmaLhsLayout({16, 16}, 16, {}),
               b = mmaRhsLayout({16, 8}, 16, {});
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned group = lane / 4, quad = lane % 4;
    for (unsigned i = 0; i < 8; ++i) {
      Vector v = elementAt(a, i, lane, 0);
      EXPECT_EQ(a.coordinate(v, axisDim(0)), group + ((i & 2) ? 8 : 0));
      EXPECT_EQ(a.coordinate(v, axisDim(1)),
                quad * 2 + (i & 1) + (i >= 4 ? 8 : 0));
    }
    for (unsigned i = 0; i < 4; ++i) {
      Vector v = elementAt(b, i, lane, 0);
      EXPECT_EQ(b.coordinate(v, axisDim(0)),
                quad * 2 + (i & 1) + (i >= 2 ? 8 : 0));
      EXPECT_EQ(b.coordinate(v, axisDim(1)), group);
    }
  }
  // m16n8k8, tf32.
  LinearLayout a32 = mmaLhsLayout({16, 8}, 32, {}),
               b32 = mmaRhsLayout({8, 8}, 32, {});
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned group = lane / 4, quad = lane % 4;
    for (unsigned i = 0; i < 4; ++i) {
      Vector v = elementAt(a32, i, lane, 0);
      EXPECT_EQ(a32.coordinate(v, axisDim(0)), group + ((i & 1) ? 8 : 0));
      EXPECT_EQ(a32.coordinate(v, axisDim(1)), quad + (i >= 2 ? 4 : 0));
    }
    for (unsigned i = 0; i < 2; ++i) {
      Vector v = elementAt(b32, i, lane, 0);
      EXPECT_EQ(b32.coordinate(v, axisDim(0)), quad + 4 * i);
      EXPECT_EQ(b32.coordinate(v, axisDim(1)), group);
    }
  }
}

TEST(Layouts, OperandsGoWithTheResult) {
  // Every thread's operand rows (columns) are those of its results, all of K.
  for (WarpGrid warps : {WarpGrid{1, 1}, {2, 4}, {8, 1}}) {
    LinearLayout result = mmaResultLayout({128, 64}, warps);
    LinearLayout lhs = mmaLhsLayout({128, 32}, 16, warps),
                 rhs = mmaRhsLayout({32, 64}, 16, warps);
    holders(lhs), holders(rhs);
    for (unsigned warp = 0; warp < warps.rows * warps.columns; ++warp) {
      std::set<unsigned> rows, operandRows, columns, operandColumns;
      auto collect = [&](const LinearLayout &layout, unsigned axis,
                         std::set<unsigned> &into) {
        for (unsigned l = 0; l < 32; ++l)
          for (unsigned r = 0; r < layout.inSize(Dim::Register); ++r)
            into.insert(layout.coordinate(elementAt(layout, r, l, warp),
                                          axisDim(axis)));
      };
      collect(result, 0, rows), collect(lhs, 0, operandRows);
      collect(result, 1, columns), collect(rhs, 1, operandColumns);
      EXPECT_EQ(rows, operandRows);
      EXPECT_EQ(columns, operandColumns);
    }
    LinearLayout fma = fmaResultLayout({128, 64}, warps);
    holders(fma);
    LinearLayout left = fmaOperandLayout(fma, true, 4),
                 right = fmaOperandLayout(fma, false, 4);
    holders(left), holders(right);
    for (unsigned lane = 0; lane < 32; ++lane) {
      std::set<unsigned> rows, operandRows;
      for (unsigned r = 0; r < fma.inSize(Dim::Register); ++r)
        rows.insert(fma.coordinate(elementAt(fma, r, lane, 0), axisDim(0)));
      for (unsigned r = 0; r < left.inSize(Dim::Register); ++r)
        operandRows.insert(
            left.coordinate(elementAt(left, r, lane, 0), axisDim(0)));
      EXPECT_EQ(rows, operandRows);
    }
  }
  EXPECT_EQ(fmaResultLayout({16, 1}, {1, 1}).inBits(Dim::Lane), 5u);
}

/// An image of a tile of 32 rows and 16 columns without bit `bit` along an
/// axis.
Vector without(Vector image, unsigned axis, unsigned bit) {
  unsigned below = bit + (axis ? 5 : 0);
  return (image & ((Vector(1) << below) - 1)) | (image >> (below + 1) << below);
}

TEST(Layouts, WithoutABitEachHolderKeepsItsElement) {
  std::mt19937 random(13);
  for (int i = 0; i < 200; ++i) {
    LinearLayout layout = randomLayout(random, {32, 16});
    unsigned axis = random() % 2, bit = random() % (axis ? 4 : 5);
    LinearLayout less = withoutBit(layout, axis, bit);
    EXPECT_EQ(less.outBits(axisDim(axis)), layout.outBits(axisDim(axis)) - 1);
    EXPECT_EQ(less.outBits(axisDim(1 - axis)),
              layout.outBits(axisDim(1 - axis)));
    holders(less); // all of the tile
    for (unsigned w = 0; w < layout.inSize(Dim::Warp); ++w)
      for (unsigned l = 0; l < layout.inSize(Dim::Lane); ++l) {
        std::set<Vector> had, has;
        for (unsigned r = 0; r < layout.inSize(Dim::Register); ++r)
          had.insert(without(elementAt(layout, r, l, w), axis, bit));
        for (unsigned r = 0; r < less.inSize(Dim::Register); ++r)
          has.insert(elementAt(less, r, l, w));
        EXPECT_EQ(had, has);
      }
  }
}

TEST(Layouts, WithABitThreadsHoldBothElements) {
  std::mt19937 random(17);
  for (int i = 0; i < 200; ++i) {
    LinearLayout layout = randomLayout(random, {32, 8});
    unsigned bit = random() % 4; // of 16 columns then
    LinearLayout more = withBit(layout, 1, bit);
    EXPECT_EQ(more.inBits(Dim::Register), layout.inBits(Dim::Register) + 1);
    EXPECT_EQ(more.outBits(axisDim(1)), 4u);
    holders(more);
    unsigned other = layout.inSize(Dim::Register);
    for (unsigned w = 0; w < layout.inSize(Dim::Warp); ++w)
      for (unsigned l = 0; l < layout.inSize(Dim::Lane); ++l)
        for (unsigned r = 0; r < other; ++r) {
          Vector own = elementAt(more, r, l, w);
          EXPECT_EQ(without(own, 1, bit), elementAt(layout, r, l, w));
          EXPECT_EQ(elementAt(more, r | other, l, w),
                    own ^ (Vector(1) << (5 + bit)));
        }
    // What is added is what is taken away again.
    EXPECT_EQ(withoutBit(more, 1, bit), layout);
  }
}

TEST(Layouts, HoldingABitKeepsWhatThreadsHold) {
  std::mt19937 random(19);
  unsigned kept = 0;
  for (int i = 0; i < 400; ++i) {
    LinearLayout layout = randomLayout(random, {32, 16});
    unsigned axis = random() % 2, bit = random() % (axis ? 4 : 5);
    LinearLayout held = holdingBit(layout, axis, bit);
    Vector step = Vector(1) << (bit + (axis ? 5 : 0));
    EXPECT_EQ(held.outs(), layout.outs());
    holders(held);
    f2::Span registers(held.columnsOf(Dim::Register));
    EXPECT_TRUE(registers.solve(step)) << held.str();
    // No thread has lost anything.
    for (unsigned w = 0; w < layout.inSize(Dim::Warp); ++w)
      for (unsigned l = 0; l < layout.inSize(Dim::Lane); ++l)
        for (unsigned r = 0; r < layout.inSize(Dim::Register); ++r)
          EXPECT_TRUE(registers.solve(elementAt(layout, r, l, w) ^
                                      elementAt(held, 0, l, w)));
    EXPECT_EQ(holdingBit(held, axis, bit), held);
    kept += held == layout;
  }
  EXPECT_LT(kept, 400u);
  // Columns eight apart are one thread's of an accumulator; rows next to each
  // other are not.
  LinearLayout sums = mmaResultLayout({64, 32}, {2, 2});
  EXPECT_EQ(holdingBit(sums, 1, 3), sums);
  EXPECT_NE(holdingBit(sums, 0, 0), sums);
  EXPECT_EQ(holdingBit(warpgroupResultLayout({64, 64}, {1, 1}), 1, 3),
            warpgroupResultLayout({64, 64}, {1, 1}));
}

} // namespace
