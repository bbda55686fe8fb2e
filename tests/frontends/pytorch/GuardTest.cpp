// Conditions on sizes that a program's file states.
#include "frontends/pytorch/GuardText.h"
#include "tests/frontends/pytorch/Import.h"
#include <random>

using namespace charonia;
using namespace charonia::test;
using namespace charonia::frontend::pytorch;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A source stands for a symbol that is named after it: "x.size1".
static ExpressionPtr symbolOf(const GuardSource &source) {
  auto symbol = std::make_shared<Expression>();
  symbol->head = "Symbol";
  for (const std::string &key : source.path)
    symbol->name += (symbol->name.empty() ? "" : ".") + key;
  symbol->name += "." + source.property;
  if (source.index)
    symbol->name += std::to_string(*source.index);
  return symbol;
}

static std::string parsed(const std::string &text) {
  GuardParser parser(symbolOf);
  std::string problem;
  ExpressionPtr guard = parser.parse(text, problem);
  EXPECT_EQ(guard == nullptr, !problem.empty());
  return guard ? guard->toString() : "problem: " + problem;
}

TEST(Guard, Forms) {
  EXPECT_EQ(parsed("(L['x'].size()[1] % 4) != 0"),
            "Unequality(PythonMod(x.size1, 4), 0)");
  EXPECT_EQ(parsed("1 + 2*L['x'].shape[0] // 3 - 4 >= -5"),
            "GreaterThan((1 + FloorDiv((2*x.size0), 3) + (-1*4)), -5)");
  EXPECT_EQ(parsed("L['d']['B c'].size()[0] == L['l'][1].stride()[2]"),
            "Equality(d.B c.size0, l.1.stride2)");
  EXPECT_EQ(parsed("not 1 < 2 <= 3 or True and 4 > 3"),
            "Or(Not(And(StrictLessThan(1, 2), LessThan(2, 3))), And(1, "
            "StrictGreaterThan(4, 3)))");
  EXPECT_EQ(parsed("torch.sym_max(1, min(2, 3)) == 2**2"),
            "Equality(Max(1, Min(2, 3)), Pow(2, 2))");
  EXPECT_EQ(parsed("10.5*torch.sym_float(L['n']) ** 0.145 > 1e-3"),
            "StrictGreaterThan((10.5*FloatPow(ToFloat(n.), 0.145)), 1e-3)");
  EXPECT_EQ(parsed("(1 if 2 > 1 else 3) == math.pi"),
            "Equality(Choice(StrictGreaterThan(2, 1), 1, 3), Unknown)");
  EXPECT_EQ(parsed("f(L['x']._base.size()[0])"), "Unknown(x._base.size0)");
}

TEST(Guard, Damaged) {
  EXPECT_EQ(parsed(""), "problem: has no operand where one is expected");
  EXPECT_EQ(parsed("1 =="), "problem: has no operand where one is expected");
  EXPECT_EQ(parsed("(1"), "problem: lacks a closing parenthesis");
  EXPECT_EQ(parsed("1 2"), "problem: goes on behind its end");
  EXPECT_EQ(parsed("L['x'"), "problem: has a source that cannot be read");
  EXPECT_EQ(parsed("99999999999999999999 > 1"),
            "problem: has a number that cannot be read");
  for (const char *repeated : {"(", "not ", "-", "f(", "2**", "1 if 1 else "}) {
    std::string deep;
    for (int i = 0; i < 10000; ++i)
      deep += repeated;
    EXPECT_EQ(parsed(deep + "1"), "problem: nests too deep") << repeated;
  }
  std::string row = "1";
  for (int i = 0; i < 10000; ++i)
    row += "//1";
  EXPECT_EQ(parsed(row), "problem: has too many divisions in a row");
  // A comparison of three looks at the middle one twice.
  std::string nested = "1";
  for (int i = 0; i < 26; ++i)
    nested = "(0 <= " + nested + " <= 9)";
  EXPECT_EQ(parsed(nested), "problem: has too many terms");
  EXPECT_EQ(parsed("9223372036854775807 > 1"),
            "StrictGreaterThan(9007199254740992, 1)");
}

/// Texts that are near to guards neither crash the parser nor recurse.
TEST(Guard, RandomText) {
  const std::vector<std::string> parts = {
      "L['x']", ".size()", "[1]", "(",   ")",    "+",        "-",
      "*",      "//",      "%",   "==",  "!=",   "<=",       "or",
      "and",    "not ",    "1",   "2.5", "**",   ",",        "if",
      "else",   "L",       ".",   "'",   "max(", "\x01\xff", "9e9"};
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string text, problem;
    for (unsigned i = random() % 24; i > 0; --i)
      text += parts[random() % parts.size()] + (random() % 2 ? " " : "");
    GuardParser parser(symbolOf);
    ExpressionPtr guard = parser.parse(text, problem);
    EXPECT_EQ(guard == nullptr, !problem.empty()) << text;
    EXPECT_LE(guardToString(text).size(), 400u);
  }
}

/// The note and the module of a program whose input is x[s0, 4].
static std::string importGuarded(const std::vector<std::string> &guards,
                                 const std::string &ranges = "") {
  ProgramFile program = simpleProgram();
  program.guards = guards;
  program.ranges = ranges;
  return importPyTorch(program.file());
}

TEST(Guard, BecomesConstraints) {
  EXPECT_THAT(importGuarded({"(L['x'].size()[0] % 4) != 0"}),
              AllOf(HasSubstr("x_dim0 % 4 >= 1"),
                    HasSubstr("(guard '(x.size()[0] % 4) != 0' of the "
                              "program)")));
  EXPECT_THAT(importGuarded({"(L['x'].size()[0] % 2) != 1"}),
              HasSubstr("x_dim0 is a multiple of 2"));
  EXPECT_THAT(importGuarded({"(L['x'].size()[0] // 5) == 1"}),
              AllOf(HasSubstr("x_dim0 >= 5"), HasSubstr("x_dim0 <= 9")));
  EXPECT_THAT(importGuarded({"(4*L['x'].size()[0]) != 24"}),
              HasSubstr("x_dim0 != 6"));
  EXPECT_THAT(importGuarded({"not L['x'].size()[0] >= 10"}),
              HasSubstr("x_dim0 <= 9"));
  EXPECT_THAT(importGuarded({"L['x'].size()[0] == 3 or "
                             "(L['x'].size()[0] % 5) == 2"}),
              HasSubstr("guard 'x.size()[0] == 3 or (x.size()[0] % 5) == 2'"));
  // A range that the file declares stays; the guard is asked all the same.
  EXPECT_THAT(importGuarded({"L['x'].size()[0] > 2"},
                            R"("s0": {"min_val": 1, "max_val": 8})"),
              HasSubstr("x_dim0 >= 3"));
}

TEST(Guard, HoldsOrNot) {
  std::string plain = importGuarded({});
  EXPECT_THAT(plain, Not(HasSubstr("note")));
  for (const char *guard :
       {"L['x'].size()[1] == 4", "8*L['x'].size()[0] >= 2",
        "L['x'].size()[0] % L['x'].size()[1] <= 3 or L['x'].size()[0] == 3",
        "10.0*torch.sym_float(21*L['x'].size()[0]) ** 0.145 > 4.0"})
    EXPECT_EQ(importGuarded({guard}), plain) << guard;
  EXPECT_THAT(
      importGuarded({"L['x'].size()[1] != 4"}),
      HasSubstr("the program's guard 'x.size()[1] != 4' holds for none of "
                "the sizes"));
  EXPECT_THAT(importGuarded({"math.cos(L['x'].size()[0]) > 0"}),
              HasSubstr("cannot be computed from sizes"));
  EXPECT_THAT(importGuarded({"L['x'].size()[0] +"}),
              HasSubstr("cannot be read: it has no operand"));
  EXPECT_THAT(
      importGuarded({"L['x'].stride()[0] == 7"}),
      AllOf(HasSubstr("which are not checked"), Not(HasSubstr("error"))));
}
