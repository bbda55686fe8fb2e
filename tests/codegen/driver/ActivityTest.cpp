#include "codegen/driver/Activity.h"

#include "gmock/gmock.h"

using namespace charonia::driver;
using testing::HasSubstr;
using testing::Not;

TEST(Activity, NamesOfNodesAreMadePrintable) {
  Activity activity;
  Activity::Kernel kernel(&activity, "add",
                          {"a\x1b[31m\n", std::string(1000, 'b'), "c\xff"});
  std::string text = activity.describe();
  EXPECT_THAT(text, HasSubstr("kernel add (of nodes 'a\\x1b[31m\\x0a', '" +
                              std::string(200, 'b') + "...', 'c\\xff') for "));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}
