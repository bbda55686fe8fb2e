// The arena of a program: aliases share the memory of their roots.
#include "runtime/plan/ProgramArena.h"

#include <gtest/gtest.h>
#include <random>

using namespace charonia;
using namespace charonia::plan;
using charonia::engine::Buffer;
using charonia::engine::noIndex;

namespace {

Buffer buffer(int64_t size, uint32_t first, uint32_t last,
              uint32_t alignment = 64, uint32_t alias = noIndex,
              int64_t offset = 0) {
  Buffer result;
  result.size = size;
  result.firstStep = first;
  result.lastStep = last;
  result.alignment = alignment;
  result.alias = alias;
  result.aliasOffset = offset;
  return result;
}

ProgramArena planned(std::vector<Buffer> buffers) {
  engine::Program program;
  program.buffers = std::move(buffers);
  auto arena = planProgram(program, {});
  EXPECT_TRUE(arena.isOk()) << arena.status().message();
  return arena ? *std::move(arena) : ProgramArena();
}

TEST(ProgramArena, AliasesShareAndExtendLifetimes) {
  ProgramArena arena =
      planned({buffer(1024, 0, 1), buffer(512, 2, 5, 64, 0, 512),
               buffer(256, 5, 6, 256, 1, 256), buffer(1024, 6, 7)});
  EXPECT_EQ(arena.packed.peak, 2048u);
  EXPECT_EQ(arena.packed.lowerBound, 2048u);
  EXPECT_EQ(arena.packed.alignment, 256u);
  EXPECT_EQ(arena.offsetOf(2), arena.offsetOf(0) + 768);
  EXPECT_EQ(arena.roots[2].buffer, 0u);
}

TEST(ProgramArena, AliasesOfOtherMemoryTakeNone) {
  std::vector<Buffer> buffers = {
      buffer(1024, 0, 1), buffer(512, 0, 1, 64, 0, 512), buffer(64, 0, 1)};
  buffers[0].kind = Buffer::Kind::Input;
  ProgramArena arena = planned(buffers);
  EXPECT_FALSE(arena.contains(0));
  EXPECT_FALSE(arena.contains(1));
  EXPECT_EQ(arena.roots[1].offset, 512u);
  EXPECT_TRUE(arena.contains(2));
  EXPECT_EQ(arena.packed.peak, 64u);
}

TEST(ProgramArena, Errors) {
  auto message = [](std::vector<Buffer> buffers) {
    engine::Program program;
    program.buffers = std::move(buffers);
    return planProgram(program, {}).status().message();
  };
  std::string prefix = "the engine's program does not fit this shape: ";
  EXPECT_EQ(message({buffer(64, 0, 1), buffer(64, 0, 1, 64, 0, 32)}),
            prefix + "buffer 1 leaves the buffer that it is an alias of");
  EXPECT_EQ(message({buffer(64, 0, 1), buffer(16, 0, 1, 64, 0, 32)}),
            prefix + "buffer 1 is not aligned inside the buffer that it is an "
                     "alias of");
}

TEST(ProgramArena, RandomAliasesDoNotOverlapOthers) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    uint32_t n = 1 + random() % 120;
    std::vector<Buffer> buffers;
    std::vector<int64_t> sizes;
    for (uint32_t i = 0; i < n; ++i) {
      int64_t size = random() % 5 ? random() % 100'000 : 0;
      uint32_t first = random() % n, last = first + random() % 12;
      if (i && random() % 4 == 0) {
        uint32_t target = random() % i;
        int64_t room = sizes[target], offset = room ? random() % room : 0;
        size = room ? random() % (room - offset + 1) : 0;
        buffers.push_back(buffer(size, first, last, 1, target, offset));
      } else {
        buffers.push_back(buffer(size, first, last, 1u << random() % 9));
      }
      sizes.push_back(size);
    }
    ProgramArena arena = planned(buffers);
    for (uint32_t i = 0; i < n; ++i) {
      const Buffer &a = buffers[i];
      ASSERT_TRUE(arena.contains(i));
      if (a.alias != noIndex && sizes[i] && sizes[a.alias]) {
        ASSERT_EQ(arena.offsetOf(i),
                  arena.offsetOf(a.alias) + *a.aliasOffset.constantValue());
      }
      for (uint32_t j = 0; j < i; ++j) {
        const Buffer &b = buffers[j];
        if (!sizes[i] || !sizes[j] ||
            arena.roots[i].buffer == arena.roots[j].buffer)
          continue;
        bool together = a.firstStep <= b.lastStep && b.firstStep <= a.lastStep;
        bool apart = arena.offsetOf(i) + sizes[i] <= arena.offsetOf(j) ||
                     arena.offsetOf(j) + sizes[j] <= arena.offsetOf(i);
        ASSERT_TRUE(!together || apart)
            << "seed " << seed << ": " << i << " overlaps " << j;
      }
    }
  }
}

// As long as the list, in both directions.
TEST(ProgramArena, LongChainsOfAliases) {
  constexpr uint32_t n = 100'000;
  std::vector<Buffer> buffers(n, buffer(100, 0, 7, 4));
  for (uint32_t i = 0; i < n; ++i)
    buffers[i].alias = i == 0 ? noIndex : i - 1;
  EXPECT_EQ(planned(buffers).packed.peak, 100u);
  for (uint32_t i = 0; i < n; ++i)
    buffers[i].alias = i + 1 == n ? noIndex : i + 1;
  EXPECT_EQ(planned(buffers).packed.peak, 100u);
}

} // namespace
