// Misuse of a Result ends the process in every build, with asserts or without.

#include "charonia/runtime.h"

#include <gtest/gtest.h>

using namespace charonia;

namespace {

class ResultDeathTest : public ::testing::Test {
protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ResultDeathTest, TheValueOfAnError) {
  const char *message = "charonia: the value of a Result was taken that is an "
                        "error: no such file";
  Result<std::string> result = Status(StatusCode::NotFound, "no such file");
  EXPECT_DEATH(*result, message);
  EXPECT_DEATH((void)result->size(), message);
  EXPECT_DEATH((void)result.value(), message);
  EXPECT_DEATH((void)std::move(result).value(), message);
  const auto &constant = result;
  EXPECT_DEATH((void)*constant, message);
}

TEST_F(ResultDeathTest, AnErrorThatIsNone) {
  EXPECT_DEATH((void)Result<int>(Status::ok()),
               "charonia: a Result was made of a Status without an error");
}

TEST_F(ResultDeathTest, TheReadmesExampleWithoutItsTests) {
  EXPECT_DEATH((void)Engine::load("/no/such.engine")->createContext(),
               "cannot open the engine '/no/such.engine': No such file");
}

// What the headers promise.
static_assert(noexcept(Engine::load(std::string())));
static_assert(noexcept(std::declval<Engine &>().createContext()));
static_assert(noexcept(std::declval<Engine &>().digest()));
static_assert(noexcept(std::declval<Context &>().setInput(0, Tensor())));
static_assert(noexcept(std::declval<Context &>().setOutput(0, nullptr, 0)));
static_assert(noexcept(std::declval<Context &>().run()));
static_assert(noexcept(std::declval<Context &>().output(0)));
static_assert(noexcept(std::declval<Context &>().profile()));

} // namespace
