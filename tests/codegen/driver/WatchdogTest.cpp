#include "codegen/driver/Watchdog.h"

#include "gtest/gtest.h"
#include <future>

using namespace charonia::driver;

// A limit that is exceeded from the start.
static constexpr Limits exceededAtOnce{0, 1};

TEST(Watchdog, SaysWhichLimit) {
  std::promise<std::string> which;
  Watchdog watchdog(exceededAtOnce,
                    [&](const std::string &limit) { which.set_value(limit); });
  EXPECT_EQ(which.get_future().get().find("the memory limit of 0 MB ("), 0u);
}

// What comes after disarm(), such as the engine's new name, is not undone.
TEST(Watchdog, DisarmWaitsForAnEndThatHasBegun) {
  std::promise<void> begun, goOn;
  bool ended = false;
  Watchdog watchdog(exceededAtOnce, [&](const std::string &) {
    begun.set_value();
    goOn.get_future().wait();
    ended = true;
  });
  begun.get_future().wait();
  std::thread other([&] { goOn.set_value(); });
  watchdog.disarm();
  EXPECT_TRUE(ended);
  other.join();
}

TEST(Watchdog, NothingIsExceededOnceItIsDisarmed) {
  for (int i = 0; i < 200; ++i) {
    bool disarmed = false, late = false;
    {
      Watchdog watchdog(exceededAtOnce,
                        [&](const std::string &) { late = disarmed; });
      watchdog.disarm();
      disarmed = true;
    }
    ASSERT_FALSE(late);
  }
}

TEST(Watchdog, WithoutLimits) {
  Watchdog watchdog({}, [](const std::string &) { FAIL(); });
  watchdog.disarm();
}
