// Conditions on sizes that a program's file states.
#include "frontends/pytorch/GuardText.h"
#include "tests/frontends/pytorch/Import.h"
#include <random>

using namespace charonia;
using namespace charonia::test;
using namespace charonia::frontend::pytorch;
using ::testing::AllOf;
using ::testing::AnyOf;
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
  EXPECT_EQ(parsed("L['d'][-1].size()[0] < L['d'][(2, 'a', -3)].shape[1]"),
            "StrictLessThan(d.-1.size0, d.(2, 'a', -3).size1)");
  EXPECT_EQ(parsed("L['d'][(2,)].shape[0]"), "d.(2,).size0");
  EXPECT_EQ(parsed("L['d'][((1, (2.5,)), True)].shape[0]"),
            "d.((1, (2.5,)), True).size0");
  EXPECT_EQ(parsed("L['d'][-1.5e-07].shape[0]"),
            "d.-1.4999999999999999e-07.size0");
  EXPECT_EQ(parsed(R"(L['d']['it\'s "it"'][None].shape[0])"),
            R"(d.it's "it".None.size0)");
  EXPECT_EQ(parsed("f(L['x']._base.size()[0])"), "Unknown(x._base.size0)");
}

TEST(Guard, Damaged) {
  EXPECT_EQ(parsed(""), "problem: has no operand where one is expected");
  EXPECT_EQ(parsed("1 =="), "problem: has no operand where one is expected");
  EXPECT_EQ(parsed("(1"), "problem: lacks a closing parenthesis");
  EXPECT_EQ(parsed("1 2"), "problem: goes on behind its end");
  EXPECT_EQ(parsed("L['x'"), "problem: has a source that cannot be read");
  EXPECT_EQ(parsed("L['x'][(1"), "problem: has a source that cannot be read");
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
  EXPECT_THAT(importGuarded({"(-(-L['x'].size()[0] // 5)) == 2"}),
              AllOf(HasSubstr("x_dim0 >= 6"), HasSubstr("x_dim0 <= 10")));
  EXPECT_THAT(importGuarded({"(-(-L['x'].size()[0] // 5)) < 3"}),
              HasSubstr("x_dim0 <= 10"));
  EXPECT_THAT(importGuarded({"(-(-L['x'].size()[0] // 5)) >= 3"}),
              HasSubstr("x_dim0 >= 11"));
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

/// A least size of 2 is what the exporter takes for granted of sizes that
/// nobody gave a range, also where a guard says the largest one.
TEST(Guard, LargestSizes) {
  std::string range = R"("s0": {"min_val": 2, "max_val": 8})";
  EXPECT_THAT(importGuarded({"2*L['x'].size()[0] <= 17"}, range),
              AllOf(HasSubstr("min = 1 : i64, name = \"x_dim0\""),
                    HasSubstr("max = 8 : i64"),
                    HasSubstr("size 1 of 'x_dim0' was not traced, as the file "
                              "says 2..8")));
  // Floats leave nothing behind.
  EXPECT_THAT(importGuarded({"int(0.3*L['x'].size()[0]) <= 2"}, range),
              AllOf(HasSubstr("min = 2 : i64, name = \"x_dim0\""),
                    Not(HasSubstr("size1"))));
  // Else it may be declared.
  for (const char *guard : {"L['x'].size()[0] <= 9", "L['x'].size()[1] == 4"})
    EXPECT_THAT(importGuarded({guard}, range),
                HasSubstr("min = 2 : i64, name = \"x_dim0\""));
}

/// A leaf and containers of a tree, as they stand in a text in JSON.
static const std::string leaf = R"({\"type\": null})";
static std::string container(const std::string &type,
                             const std::string &children,
                             const std::string &context = "null") {
  std::string module = type.find('.') == std::string::npos ? "builtins." : "";
  return R"({\"type\": \")" + module + type + R"(\", \"context\": \")" +
         context + R"(\", \"children_spec\": [)" + children + "]}";
}
static std::string keys(const std::string &names) {
  return R"([\\\")" + names + R"(\\\"])";
}

/// What a guard does to a program of two inputs, x[s0, 4] and the second's
/// name, that the function gets in this way.
static std::string
importPaths(const std::string &guard, const std::string &second,
            const std::string &names, const std::string &positional,
            const std::string &named = "", const std::string &namedKeys = "[]",
            const std::string &first = "x") {
  ProgramFile program = simpleProgram();
  size_t at;
  for (std::string *text :
       {&program.inputs, &program.nodes, &program.tensors, &program.inputSpecs})
    while (first != "x" && (at = text->find("\"x\"")) != std::string::npos)
      text->replace(at, 3, "\"" + first + "\"");
  program.inputs += ", " + tensor(second);
  program.inputSpecs += R"(, {"user_input": {"arg": {"as_tensor": {"name": ")" +
                        second + R"("}}}})";
  program.tensors +=
      ", \"" + second + "\": " + tensorMeta(7, symbol("s1"), fixed(1));
  program.ranges = "";
  program.argumentNames = names;
  if (!positional.empty())
    program.inSpec =
        "[1, " +
        container("tuple", container("tuple", positional) + ", " +
                               container("dict", named, namedKeys)) +
        "]";
  program.guards = {guard};
  return importPyTorch(program.file());
}

/// torch numbers names of inputs that it has given already, so that a name
/// does not tell which argument it is of.
TEST(Guard, NamesInputsByTheirPlace) {
  std::string inDict = container("dict", leaf, keys("a"));
  // forward(d, d_a), d = {'a': ...}
  auto ofD = [&](const std::string &guard) {
    return importPaths(guard, "d_a_1", R"("d", "d_a")", inDict + ", " + leaf,
                       "", "[]", "d_a");
  };
  EXPECT_THAT(ofD("L['d_a'].size()[0] % 3 != 2"), HasSubstr("d_a_1_dim0"));
  EXPECT_THAT(ofD("L['d']['a'].size()[0] % 3 != 2"),
              AllOf(HasSubstr("d_a_dim0"), Not(HasSubstr("(d_a_1_dim0"))));
  // forward(A, a)
  std::string both = leaf + ", " + leaf;
  EXPECT_THAT(importPaths("L['a'].size()[0] > 2", "a_1", R"("A", "a")", both,
                          "", "[]", "a"),
              HasSubstr("a_1_dim0 >= 3"));
  EXPECT_THAT(importPaths("L['A'].size()[0] > 2", "a_1", R"("A", "a")", both,
                          "", "[]", "a"),
              HasSubstr("a_dim0 >= 3"));
  // forward(args_1, *args)
  EXPECT_THAT(importPaths("L['args'][0].size()[0] > 2", "args_0",
                          R"("args_1", "args_0")", both, "", "[]", "args_1"),
              HasSubstr("args_0_dim0 >= 3"));
  // forward(x, **kw), and a tree without names.
  EXPECT_THAT(importPaths("L['kw']['b'].size()[0] > 2", "b", R"("x", "b")",
                          leaf, leaf, keys("b")),
              HasSubstr("b_dim0 >= 3"));
  EXPECT_THAT(importPaths("L['b'].size()[0] > 2", "b", "", both),
              HasSubstr("b_dim0 >= 3"));
}

TEST(Guard, NamesInputsByTheirKeys) {
  std::string both = leaf + ", " + leaf;
  // forward(d), d = {1: ..., -1: ...} or {(0, 1): ..., (2, 3): ...}
  EXPECT_THAT(importPaths("L['d'][-1].size()[0] > 2", "d__1", R"("d")",
                          container("dict", both, "[1, -1]"), "", "[]", "d_1"),
              HasSubstr("d__1_dim0 >= 3"));
  for (const char *key : {"(2, 3)", "(0, 1)"})
    EXPECT_THAT(
        importPaths("L['d'][" + std::string(key) + "].size()[0] > 2",
                    "d__2__3_", R"("d")",
                    container("dict", both, "[[0, 1], [2, 3]]"), "", "[]",
                    "d__0__1_"),
        HasSubstr(key[1] == '2' ? "d__2__3__dim0 >= 3" : "d__0__1__dim0 >= 3"));
  // Two keys of two parts are no fields of a data class, whatever holds them.
  EXPECT_THAT(importPaths("L['d'][(2, 3)].size()[0] > 2", "b", R"("d")",
                          container("collections.OrderedDict", both,
                                    "[[0, 1], [2, 3]]"),
                          "", "[]", "a"),
              HasSubstr("b_dim0 >= 3"));
  std::string lines =
      R"({\"type\": \"collections.defaultdict\", \"context\": {)"
      R"(\"default_factory_name\": \"list\", \"dict_context\": )"
      R"([[0, 1], [2, 3]]}, \"children_spec\": [)" +
      both + "]}";
  EXPECT_THAT(importPaths("L['d'][(2, 3)].size()[0] > 2", "b", R"("d")", lines,
                          "", "[]", "a"),
              HasSubstr("b_dim0 >= 3"));
  EXPECT_THAT(
      importPaths("L['d'].v.size()[0] > 2", "b", R"("d")",
                  container("a.Pair", both, R"([[\\\"u\\\", \\\"v\\\"], []])"),
                  "", "[]", "a"),
      HasSubstr("b_dim0 >= 3"));
  // Keys of any of Python's literals.
  for (auto [keys, key] :
       {std::pair("[[[0, 1], 2], [[3]]]", "((3,),)"),
        std::pair("[1.5, 2.5]", "2.5"), std::pair("[1e+16, -1e-07]", "-1e-07"),
        std::pair("[false, true]", "True"), std::pair("[0, null]", "None")})
    EXPECT_THAT(importPaths("L['d'][" + std::string(key) + "].size()[0] > 2",
                            "b", R"("d")", container("dict", both, keys), "",
                            "[]", "a"),
                HasSubstr("b_dim0 >= 3"))
        << keys;
  // forward(*, d, **kw), d = {'a': ...}, kw = {'a': ...}
  auto ofNamed = [&](const std::string &guard) {
    return importPaths(guard, "a", R"("d", "a")", " ",
                       container("dict", leaf, keys("a")) + ", " + leaf,
                       R"([\\\"d\\\", \\\"a\\\"])", "d_a");
  };
  EXPECT_THAT(ofNamed("L['d']['a'].size()[0] > 2"), HasSubstr("d_a_dim0 >= 3"));
  EXPECT_THAT(ofNamed("L['kw']['a'].size()[0] > 2"),
              AllOf(HasSubstr("a_dim0 >= 3"), Not(HasSubstr("d_a_dim0 >= 3"))));
}

TEST(Guard, OfMoreThanOneInput) {
  std::string words = "guard 'a.size()[0] > 2' may be of input 'a' or 'a_1'";
  EXPECT_THAT(importPaths("L['a'].size()[0] > 2", "a_1", "", "", "", "", "a"),
              HasSubstr(words));
  // Names are no way to what the tree does not have.
  EXPECT_THAT(importPaths("L['self'].b.size()[0] > 2", "b", R"("x", "b")",
                          leaf + ", " + leaf),
              HasSubstr("cannot be computed from sizes"));
}

/// What a program says of itself that asserts conditions by nodes: pairs of a
/// number's name and its expression, and the nodes.
static std::string importAsserted(const std::string &name,
                                  const std::string &expression,
                                  const std::string &asserting) {
  ProgramFile program = simpleProgram();
  program.ranges = "";
  (name == "n" ? program.integers : program.conditions) =
      "\"" + name + R"(": {"as_expr": {"expr_str": ")" + expression +
      R"(", "hint": null}})";
  program.nodes += ", " + asserting;
  return importPyTorch(program.file());
}

TEST(Guard, NodesThatAssert) {
  std::string s0 = "Symbol('s0', positive=True, integer=True)",
              condition = R"({"as_sym_bool": {"as_name": "c"}})",
              size = R"({"as_sym_int": {"as_name": "n"}})",
              twice = "Mul(Integer(2), " + s0 + ")";
  auto scalar = [&](const std::string &op, const std::string &expression) {
    return importAsserted(
        "c", expression,
        node(
            op,
            {{"self", condition},
             {"assert_msg",
              R"({"as_string": "Runtime assertion failed for expression s0 > 4 on node 'c'"})"}},
            ""));
  };
  std::string more = "StrictGreaterThan(" + s0 + ", Integer(4))";
  for (const char *op : {"aten._assert_scalar.default",
                         "aten._functional_assert_scalar.default"})
    EXPECT_THAT(scalar(op, more),
                AllOf(HasSubstr("x_dim0 >= 5"),
                      HasSubstr("(check 'x_dim0 > 4' of the program)")));
  std::string assert = "aten._assert_scalar.default";
  EXPECT_THAT(scalar(assert, "StrictGreaterThan(Integer(1), " + s0 + ")"),
              AllOf(HasSubstr("aten._assert_scalar.default"),
                    HasSubstr("holds for none of the sizes")));
  EXPECT_THAT(scalar(assert, "Equality(cos(" + s0 + "), Integer(1))"),
              HasSubstr("cannot be computed from sizes"));
  // A divisor is at least 1, as Python would raise an error.
  EXPECT_THAT(scalar(assert, "Equality(Mod(" + s0 + ", FloorDiv(" + s0 +
                                 ", Integer(4))), Integer(0))"),
              AllOf(HasSubstr("x_dim0 / 4 >= 1"), Not(HasSubstr("error"))));
  // Data is not looked at.
  EXPECT_THAT(
      scalar(assert, "Equality(Symbol('u0', integer=True), " + s0 + ")"),
      Not(AnyOf(HasSubstr("error"), HasSubstr("note"))));
  std::string most = R"({"as_int": 10})";
  EXPECT_THAT(importAsserted(
                  "n", twice,
                  node("aten.sym_constrain_range.default",
                       {{"size", size}, {"min", fixed(6)}, {"max", most}}, "")),
              AllOf(HasSubstr("x_dim0 >= 3"), HasSubstr("x_dim0 <= 5")));
  EXPECT_THAT(importAsserted("n", "Add(Integer(-7), " + s0 + ")",
                             node("aten.sym_constrain_range_for_size.default",
                                  {{"size", size}}, "")),
              HasSubstr("x_dim0 >= 7"));
  EXPECT_THAT(
      importAsserted(
          "n", twice,
          node("aten._assert_tensor_metadata.default",
               {{"a", tensor("x")},
                {"size", R"({"as_sym_ints": [{"as_int": 6}, {"as_int": 4}]})"}},
               "")),
      HasSubstr("x_dim0 = 6"));
}
