// Real forks of a process that has contexts with threads.

#include "CpuEngine.h"

#include <thread>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
extern "C" const char *__tsan_default_options() { return "die_after_fork=0"; }
#endif
#endif

using namespace charonia;
using namespace charonia::test;

namespace {

class Fork : public CpuEngine {
protected:
  /// Whether the context gives what it should.
  bool works(Context &c, int64_t batch = 64) {
    auto x = input(batch, 1);
    if (!c.setInput("x", {DType::Float32, {batch, 16}, x.data()}) || !c.run())
      return false;
    auto y = c.output("y");
    for (size_t i = 0; y && i < x.size(); ++i) {
      float v = x[i] * weights[i % 16] + weights[16 + i % 16];
      if (std::abs(floats(*y)[i] - std::max(v, 0.f)) > 1e-6f)
        return false;
    }
    return y.isOk();
  }
  static ContextOptions threads(int count) {
    ContextOptions options;
    options.threads = count;
    return options;
  }
};

TEST_F(Fork, AChildUsesDestroysAndCreatesContexts) {
  auto engine = charonia::Engine::load(write());
  ASSERT_TRUE(engine.isOk());
  for (int round = 0; round < 20; ++round) {
    auto used =
        std::make_unique<Context>(*engine->createContext({}, threads(4)));
    auto unused =
        std::make_unique<Context>(*engine->createContext({}, threads(3)));
    ASSERT_TRUE(works(*used) && works(*unused));
    // In every second round the workers have gone to sleep.
    if (round % 2)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_EQ(inChild([&] {
                unused.reset(); // Threads that do not exist are not awaited.
                if (!works(*used) || !works(*used, 37))
                  return 1;
                used.reset();
                auto made = engine->createContext({}, threads(4));
                if (!made || !works(*made))
                  return 2;
                auto again = charonia::Engine::load(dir / "test.engine");
                if (!again)
                  return 3;
                auto other = again->createContext({}, threads(2));
                return other && works(*other) ? 0 : 4;
              }),
              0);
    ASSERT_TRUE(works(*used) && works(*unused)); // The parent goes on.
  }
}

TEST_F(Fork, AGrandchild) {
  auto engine = charonia::Engine::load(write());
  Context c = *engine->createContext({}, threads(4));
  ASSERT_TRUE(works(c));
  EXPECT_EQ(inChild([&] {
              if (!works(c))
                return 1;
              return inChild([&] { return works(c) ? 0 : 2; });
            }),
            0);
}

} // namespace
