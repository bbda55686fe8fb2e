// The text of a program, and expressions of sizes in it.
#include "frontends/pytorch/Program.h"
#include "frontends/common/Json.h"
#include "tests/frontends/pytorch/Import.h"
#include <sys/resource.h>

using namespace charonia;
using namespace charonia::test;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using ::testing::HasSubstr;

static std::string parsed(const std::string &text) {
  ExpressionParser parser;
  std::string problem;
  ExpressionPtr expression = parser.parse(text, problem);
  return expression ? expression->toString() : "problem: " + problem;
}

TEST(Expression, Forms) {
  EXPECT_EQ(parsed("Integer(-7)"), "-7");
  EXPECT_EQ(parsed("Symbol('s77', positive=True, integer=True)"), "s77");
  EXPECT_EQ(parsed("Mul(Float('1.5', precision=53), ToFloat(Symbol('s1')))"),
            "(1.5*ToFloat(s1))");
  EXPECT_EQ(parsed("Float('nan')"), "problem: has a float that is no number");
  EXPECT_EQ(parsed("Float('1e999')"), "problem: has a float that is no number");
  EXPECT_EQ(parsed("Add(Integer(1), Mul(Integer(2), Symbol('s1', "
                   "integer=True)))"),
            "(1 + (2*s1))");
  EXPECT_EQ(parsed(" FloorDiv( Symbol('s1') , Integer(3) ) "),
            "FloorDiv(s1, 3)");
  EXPECT_EQ(parsed("Pow(Symbol('a'), Integer(2))"), "Pow(a, 2)");
}

TEST(Expression, Damaged) {
  EXPECT_EQ(parsed(""), "problem: has no operator where one is expected");
  EXPECT_EQ(parsed("Add(Integer(1)"), "problem: lacks a closing parenthesis");
  EXPECT_EQ(parsed("Integer(1) x"), "problem: goes on behind its end");
  EXPECT_EQ(parsed("Symbol('s1"),
            "problem: has an operand that cannot be read");
  EXPECT_EQ(parsed("Integer(99999999999999999999)"),
            "problem: has an integer that is none of 64 bits");
  std::string deep;
  for (int i = 0; i < 10000; ++i)
    deep += "Add(";
  EXPECT_EQ(parsed(deep), "problem: nests too deep");
  EXPECT_EQ(parsed(std::string(100000, 'A')),
            "problem: is a text of 100000 bytes");
}

static std::string damage(const std::string &text) {
  frontend::Problem problem;
  EXPECT_FALSE(readProgram(text, problem));
  return problem.what;
}
static std::string replaced(std::string text, const std::string &from,
                            const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Program, Reads) {
  frontend::Problem problem;
  auto program = readProgram(simpleProgram().json(), problem);
  ASSERT_TRUE(program) << problem.what;
  ASSERT_EQ(program->graph.nodes.size(), 2u);
  const Node &node = program->graph.nodes[0];
  EXPECT_EQ(node.target, "torch.ops.aten.add.Tensor");
  EXPECT_EQ(node.module, "head");
  EXPECT_EQ(node.line, "m.py:7: return self.head(x)");
  EXPECT_EQ(node.inputs[1].name, "other");
  EXPECT_EQ(node.inputs[1].value.text, "p_w");
  EXPECT_EQ(program->inputs[0].target, "w");
  EXPECT_EQ(program->outputNames, std::vector<std::string>{"logits"});
  EXPECT_EQ(program->ranges["s0"].max, 8);
}

TEST(Program, NumbersThatJsonHasNot) {
  ProgramFile p = simpleProgram();
  p.nodes = node("aten.f.default",
                 {{"a", R"({"as_float": "-Infinity"})"},
                  {"b", R"({"as_floats": [1, "NaN"]})"},
                  {"c", R"({"as_float": 3})"}},
                 tensor("relu"));
  frontend::Problem problem;
  auto program = readProgram(p.json(), problem);
  ASSERT_TRUE(program) << problem.what;
  const auto &inputs = program->graph.nodes[0].inputs;
  EXPECT_EQ(inputs[0].value.number, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(inputs[1].value.items[1].number));
  EXPECT_EQ(inputs[2].value.number, 3);
}

TEST(Program, Damaged) {
  std::string good = simpleProgram().json();
  EXPECT_THAT(damage("{"), HasSubstr("is no JSON"));
  EXPECT_EQ(damage(std::string(10000, '[')), "nests over 256 deep");
  EXPECT_EQ(damage("[1]"), " is no object");
  EXPECT_EQ(damage(replaced(good, "\"major\": 8", "\"major\": 9")),
            "schema_version has major version 9; 8 is supported");
  EXPECT_EQ(damage(replaced(good, "\"torch.ops.aten.add.Tensor\"", "7")),
            "graph_module.graph.nodes[0].target is no string");
  EXPECT_THAT(damage(replaced(good, "{\"as_tensor\": {\"name\": \"x\"}}",
                              "{\"as_tensor\": {\"name\": \"x\"}, \"b\": 1}")),
              HasSubstr("has to be an object of one field"));
  EXPECT_THAT(damage(replaced(good, "Symbol('s0'", "Symbol('s0")),
              HasSubstr("sizes[0].as_expr.expr_str cannot be read: the "
                        "expression has an operand that cannot be read"));
  EXPECT_EQ(damage(replaced(good, "\"min_val\": 1", "\"min_val\": 1e40")),
            "range_constraints.s0.min_val is no integer of 64 bits");
}

TEST(Json, Strings) {
  std::string problem, text = R"({"a\u0062": "\u00e9\ud83d\ude00\n\/\ud800"})";
  auto json = JsonText::parse(text, problem);
  ASSERT_TRUE(json) << problem;
  Json::Report report;
  EXPECT_EQ(Json(*json, "", report)["ab"].string(),
            "\xc3\xa9\xf0\x9f\x98\x80\n/\xef\xbf\xbd");
}

TEST(Json, Damaged) {
  for (const char *text :
       {"", "{", "[1,]", "{\"a\"}", "{1: 2}", "\"\\x\"", "\"\\u12\"", "01e",
        "-", "1.", "1e", "nul", "[1 2]", "\"a", "\"\xff\"", "1 2", "\"\t\""}) {
    std::string problem;
    EXPECT_FALSE(JsonText::parse(text, problem)) << text;
    EXPECT_THAT(problem, ::testing::HasSubstr("is no JSON: line 1, column"));
  }
}

TEST(Json, ValuesTakeAMultipleOfTheirText) {
  std::string text = "[{\"a\":0}", problem;
  while (text.size() < size_t(6) << 20)
    text += ",{\"a\":0}";
  text += "]";
  auto peak = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
  };
  long before = peak();
  auto json = JsonText::parse(text, problem);
  ASSERT_TRUE(json) << problem;
  // 16 bytes for each of 3 values of 9 bytes, in a vector that grows.
  EXPECT_LT(peak() - before, 128);
}

TEST(Program, DeepGraphs) {
  ProgramFile p = simpleProgram();
  std::string graph = "{}";
  for (int i = 0; i < 18; ++i)
    graph = R"({"nodes": [{"target": "t", "inputs": [{"name": "", "arg":
              {"as_graph": {"name": "g", "graph": )" +
            graph + "}}}]}]}";
  p.nodes = R"({"target": "t", "inputs": [{"name": "", "arg": {"as_graph":
             {"name": "g", "graph": )" +
            graph + "}}}]}";
  EXPECT_THAT(damage(p.json()), HasSubstr("is a graph over 16 deep in others"));
}

TEST(Program, CutShortAtEveryByte) {
  std::string good = simpleProgram().json();
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(damage(good.substr(0, size)).empty());
}
