#include "runtime/device/cpu/ThreadPool.h"
#include "runtime/device/cpu/CpuInfo.h"

#include <gtest/gtest.h>

#include <random>

using namespace charonia;
using namespace charonia::cpu;

namespace {

struct Counts {
  explicit Counts(int64_t n) : count(n) {}
  std::vector<std::atomic<int>> count;
  std::atomic<int> small{0};
  int64_t grain = 1;
  static void body(void *argument, int, int64_t begin, int64_t end) {
    auto *self = static_cast<Counts *>(argument);
    if (end - begin < self->grain)
      ++self->small;
    for (int64_t i = begin; i < end; ++i)
      ++self->count[i];
  }
};

TEST(ThreadPool, EveryInstanceRunsOnce) {
  std::mt19937 random(5);
  for (int threads : {1, 2, 3, 8}) {
    auto pool = ThreadPool::create(threads);
    ASSERT_TRUE(pool.isOk());
    for (int round = 0; round < 300; ++round) {
      int64_t grid = random() % 5 ? random() % 300 : random() % 3;
      Counts counts(grid);
      counts.grain = 1 + random() % 20;
      (*pool)->run(grid, counts.grain, Counts::body, &counts);
      for (int64_t i = 0; i < grid; ++i)
        ASSERT_EQ(counts.count[i], 1) << threads << " threads, grid " << grid;
      ASSERT_LE(counts.small, 1); // The last piece alone may be short.
    }
  }
}

TEST(ThreadPool, SleepsAndWakes) {
  auto pool = ThreadPool::create(4);
  ASSERT_TRUE(pool.isOk());
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(round % 4));
    if (round % 3 == 0)
      (*pool)->wake();
    Counts counts(64);
    (*pool)->run(64, 1, Counts::body, &counts);
    for (auto &count : counts.count)
      ASSERT_EQ(count, 1);
  }
}

TEST(ThreadPool, AllThreadsTakePart) {
  auto pool = ThreadPool::create(3);
  ASSERT_TRUE(pool.isOk());
  struct Seen {
    std::atomic<int> threads[3];
  } seen{};
  // An instance waits until others have begun, so one thread cannot run them
  // all.
  (*pool)->run(
      3, 1,
      [](void *argument, int thread, int64_t, int64_t) {
        auto *seen = static_cast<Seen *>(argument);
        seen->threads[thread] = 1;
        while (seen->threads[0] + seen->threads[1] + seen->threads[2] < 3)
          std::this_thread::yield();
      },
      &seen);
  EXPECT_EQ(seen.threads[0] + seen.threads[1] + seen.threads[2], 3);
}

TEST(ThreadPool, ManyPoolsAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int> bad{0};
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      auto pool = ThreadPool::create(3);
      for (int round = 0; round < 200; ++round) {
        Counts counts(100);
        (*pool)->run(100, 1, Counts::body, &counts);
        for (auto &count : counts.count)
          bad += count != 1;
      }
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(bad, 0);
}

class Environment {
public:
  Environment(const char *name, const char *value) : name(name) {
    setenv(name, value, 1);
  }
  ~Environment() { unsetenv(name); }

private:
  const char *name;
};

TEST(CpuInfo, Levels) {
  EXPECT_EQ(levelOfArch("x86-64-v3"), 3);
  EXPECT_EQ(levelOfArch("x86-64-v4"), 4);
  EXPECT_EQ(levelOfArch("x86-64-v4-vnni"), 5);
  for (int level : {1, 2, 3, 4, 5})
    EXPECT_EQ(levelOfArch(archOfLevel(level)), level < 3 ? 0 : level);
  for (const char *arch : {"x86-64", "x86-64-v2", "x86-64-v5", "x86-64-v34",
                           "x86-64-v3-vnni", "sm_80", ""})
    EXPECT_EQ(levelOfArch(arch), 0) << arch;
  EXPECT_EQ(detectLevel() >= 3, __builtin_cpu_supports("x86-64-v3") != 0);
  EXPECT_EQ(detectLevel() >= 4, __builtin_cpu_supports("x86-64-v4") != 0);
  EXPECT_EQ(detectLevel() >= 5, __builtin_cpu_supports("x86-64-v4") &&
                                    __builtin_cpu_supports("avx512vnni"));
}

TEST(CpuInfo, IsaOption) {
  EXPECT_EQ(*chooseLevel(""), detectLevel());
  EXPECT_EQ(chooseLevel("avx2").status().message(),
            "the option isa is 'avx2'; it takes x86-64-v3, x86-64-v4 or "
            "x86-64-v4-vnni");
  if (detectLevel() >= 3) {
    EXPECT_EQ(*chooseLevel("x86-64-v3"), 3);
    Environment variable("CHARONIA_CPU_ISA", "x86-64-v3");
    EXPECT_EQ(*chooseLevel(""), 3);
  }
  Environment variable("CHARONIA_CPU_ISA", "neon");
  EXPECT_EQ(chooseLevel("").status().message(),
            "the environment variable CHARONIA_CPU_ISA is 'neon'; it takes "
            "x86-64-v3, x86-64-v4 or x86-64-v4-vnni");
}

TEST(CpuInfo, ThreadsOption) {
  EXPECT_GE(availableCores(), 1);
  EXPECT_EQ(*chooseThreads(5), 5);
  EXPECT_EQ(chooseThreads(-1).status().message(),
            "the option threads takes a number from 0 (the default) to 1024");
  Environment variable("CHARONIA_THREADS", "3");
  EXPECT_EQ(*chooseThreads(0), 3);
  Environment wrong("CHARONIA_THREADS", "many");
  EXPECT_EQ(
      chooseThreads(0).status().message(),
      "the environment variable CHARONIA_THREADS takes a number from 1 to "
      "1024");
}

} // namespace
