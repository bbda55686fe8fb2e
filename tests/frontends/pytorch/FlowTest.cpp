// Exported programs in which order matters: loops, and writes that are seen
// through other names.
#include "tests/frontends/pytorch/Import.h"

using namespace charonia;
using namespace charonia::test;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

static std::string import(const ProgramFile &program) {
  return importPyTorch(program.file());
}

/// i, h = 0, x; while i < limit: i, h = states, which `body` computes; y = h.
static ProgramFile loopProgram(const std::string &limit,
                               const std::string &body,
                               const std::string &states) {
  ProgramFile p = simpleProgram();
  auto graph = [&](const std::string &nodes, const std::string &outputs,
                   const std::string &more) {
    return R"({"as_graph": {"name": "g", "graph": {"inputs": [)" + tensor("i") +
           ", " + tensor("h") + R"(], "outputs": [)" + outputs +
           R"(], "nodes": [)" + nodes + R"(], "tensor_values": {"i": )" +
           tensorMeta(5, "", "") + R"(, "h": )" +
           tensorMeta(7, symbol("s0") + ", " + fixed(4),
                      fixed(4) + ", " + fixed(1)) +
           more + R"(}, "sym_int_values": {}}}})";
  };
  std::string condition =
      node("aten.lt.Scalar",
           {{"self", tensor("i")}, {"other", R"({"as_int": )" + limit + "}"}},
           tensor("c"));
  p.nodes = node("aten.full.default",
                 {{"size", R"({"as_ints": []})"},
                  {"fill_value", R"({"as_int": 0})"},
                  {"dtype", R"({"as_scalar_type": 5})"}},
                 tensor("zero")) +
            ", " +
            node("higher_order.while_loop",
                 {{"", graph(condition, tensor("c"),
                             R"(, "c": )" + tensorMeta(12, "", ""))},
                  {"", graph(body, states,
                             R"(, "next": )" + tensorMeta(5, "", "") +
                                 R"(, "changed": )" +
                                 tensorMeta(7, symbol("s0") + ", " + fixed(4),
                                            fixed(4) + ", " + fixed(1)))},
                  {"", R"({"as_tensors": [{"name": "zero"}, {"name": "x"}]})"},
                  {"", R"({"as_tensors": []})"}},
                 tensor("last") + ", " + tensor("relu"));
  p.tensors += R"(, "zero": )" + tensorMeta(5, "", "") + R"(, "last": )" +
               tensorMeta(5, "", "");
  return p;
}

TEST(PyTorch, LoopsThatDoNotFit) {
  std::string next =
                  node("aten.add.Tensor",
                       {{"self", tensor("i")}, {"other", R"({"as_int": 1})"}},
                       tensor("next")),
              both = tensor("next") + ", " + tensor("h");
  EXPECT_THAT(import(loopProgram("3", next, both)), Not(HasSubstr("error")));
  // A counter that stands still.
  EXPECT_THAT(import(loopProgram("3", next, tensor("i") + ", " + tensor("h"))),
              AllOf(HasSubstr("(higher_order.while_loop): takes over 8192 "
                              "steps"),
                    HasSubstr("with a loop of fewer steps")));
  EXPECT_THAT(import(loopProgram("3", next, tensor("next"))),
              HasSubstr("its body gives 1 results for 2 states"));
  EXPECT_THAT(import(loopProgram("3", next, tensor("h") + ", " + tensor("h"))),
              HasSubstr("state 0 is float32[x_dim0, 4], but the file says "
                        "int64[]"));
  EXPECT_THAT(import(loopProgram("3", next, both + ", " + tensor("nowhere"))),
              HasSubstr("tensor 'nowhere' is not defined before it is used"));
  // What fails in a step is told once, of its own node.
  std::string unknown =
      next + ", " +
      node("aten.renorm.default", {{"self", tensor("h")}}, tensor("spectrum"));
  std::string text = import(
      loopProgram("3", unknown, tensor("next") + ", " + tensor("spectrum")));
  EXPECT_THAT(text, AllOf(HasSubstr("operator aten.renorm.default is not "
                                    "supported"),
                          Not(HasSubstr("higher_order"))));
  EXPECT_EQ(text.find("error"), text.rfind("error"));
  // Steps may not write to what they are handed.
  std::string writes =
      next + ", " +
      node("aten.mul_.Tensor",
           {{"self", tensor("h")}, {"other", R"({"as_int": 2})"}},
           tensor("changed"));
  EXPECT_THAT(import(loopProgram("3", writes,
                                 tensor("next") + ", " + tensor("changed"))),
              HasSubstr("changes what is handed to each step of a loop"));
}

TEST(PyTorch, BuffersThatChange) {
  ProgramFile p = simpleProgram();
  p.nodes = node("aten.add_.Tensor",
                 {{"self", tensor("p_w")}, {"other", R"({"as_int": 1})"}},
                 tensor("changed")) +
            ", " + p.nodes;
  p.tensors += R"(, "changed": )" + tensorMeta(7, fixed(4), fixed(1));
  EXPECT_THAT(importPyTorch(p.file()),
              HasSubstr("changes 'w' of the model, which an engine "
                        "keeps as it is"));
  // After run_decompositions() its new value is another output.
  p = simpleProgram();
  auto mutation = [](const char *kind, const char *what, const char *target) {
    return std::string(R"(, {")") + kind + R"(": {"arg": {"name": "add"}, ")" +
           what + R"(": ")" + target + R"("}})";
  };
  p.outputSpecs += mutation("buffer_mutation", "buffer_name", "w");
  EXPECT_THAT(importPyTorch(p.file()),
              AllOf(HasSubstr("error: m.pt2: the program changes 'w' of the "
                              "model, which its results follow from and an "
                              "engine keeps as it is"),
                    HasSubstr("remedy: make it an input of the exported "
                              "function, and its new value an output")));
  p = simpleProgram();
  p.outputSpecs += mutation("user_input_mutation", "user_input_name", "x");
  EXPECT_THAT(importPyTorch(p.file()),
              AllOf(HasSubstr("note: m.pt2: the program changes its "
                              "input 'x': its results see that"),
                    Not(HasSubstr("error"))));
  p = simpleProgram();
  p.outputSpecs += mutation("buffer_mutation", "buffer_name", "unread");
  EXPECT_THAT(importPyTorch(p.file()), Not(HasSubstr("error")));
  // Where nobody reads it, nothing is lost.
  p = simpleProgram();
  p.nodes = node("aten.relu.default", {{"self", tensor("x")}}, tensor("relu")) +
            ", " +
            node("aten.add_.Tensor",
                 {{"self", tensor("p_w")}, {"other", R"({"as_int": 1})"}},
                 tensor("changed"));
  EXPECT_THAT(importPyTorch(p.file()), Not(HasSubstr("error")));
}

/// y = relu(v), v a view of t = relu(x) that is written to in between.
static ProgramFile writeThrough(const std::string &writer,
                                const std::string &view) {
  ProgramFile p = simpleProgram();
  std::string meta =
      tensorMeta(7, symbol("s0") + ", " + fixed(4), fixed(4) + ", " + fixed(1));
  p.nodes = node("aten.relu.default", {{"self", tensor("x")}}, tensor("t")) +
            ", " + node(view, {{"self", tensor("t")}}, tensor("v")) + ", " +
            node(writer, {{"self", tensor("v")}}, tensor("written")) + ", " +
            node("aten.relu.default", {{"self", tensor("t")}}, tensor("relu"));
  for (const char *name : {"t", "v", "written"})
    p.tensors += std::string(", \"") + name + "\": " + meta;
  return p;
}

TEST(PyTorch, WritersThatAreNotInTheTable) {
  // Nobody reads what they give, but what they write to.
  EXPECT_THAT(
      import(writeThrough("aten.renorm_.default", "aten.alias.default")),
      HasSubstr("operator aten.renorm_.default is not supported"));
  EXPECT_THAT(import(writeThrough("aten.zero_.default", "aten.renorm.default")),
              HasSubstr("operator aten.renorm.default is not supported"));
  // Also where it reads a list of tensors, of which it may be a view of any.
  ProgramFile p = writeThrough("aten.zero_.default", "aten.alias.default");
  p.nodes =
      node("aten.relu.default", {{"self", tensor("x")}}, tensor("t")) + ", " +
      node("aten.unheard_of.default",
           {{"tensors", R"({"as_tensors": [{"name": "x"}, {"name": "t"}]})"}},
           tensor("v")) +
      ", " +
      node("aten.zero_.default", {{"self", tensor("v")}}, tensor("written")) +
      ", " + node("aten.relu.default", {{"self", tensor("t")}}, tensor("relu"));
  EXPECT_THAT(importPyTorch(p.file()),
              HasSubstr("operator aten.unheard_of.default is not supported"));
  EXPECT_THAT(import(writeThrough("mine.fill.default", "aten.alias.default")),
              HasSubstr("operator mine.fill.default is not supported: it is of "
                        "namespace 'mine'"));
  EXPECT_THAT(import(writeThrough("aten.zero_.default", "aten.alias.default")),
              Not(HasSubstr("error")));
}

TEST(PyTorch, ViewsOrCopies) {
  // A view of one row is also contiguous, one of more rows is a copy then.
  auto reshaped = [](const char *reader) {
    ProgramFile p = simpleProgram();
    std::string size = R"({"as_ints": [-1]})";
    p.nodes = node("aten.relu.default", {{"self", tensor("x")}}, tensor("t")) +
              ", " +
              node("aten.slice.Tensor",
                   {{"self", tensor("t")},
                    {"dim", R"({"as_int": 1})"},
                    {"start", R"({"as_int": 0})"},
                    {"end", R"({"as_int": 3})"}},
                   tensor("cut")) +
              ", " +
              node("aten.reshape.default",
                   {{"self", tensor("cut")}, {"shape", size}}, tensor("flat")) +
              ", " +
              node("aten.zero_.default", {{"self", tensor("t")}}, tensor("z")) +
              ", " +
              node("aten.add.Tensor",
                   {{"self", tensor("t")}, {"other", tensor(reader)}},
                   tensor("relu"));
    std::string rows = symbol("s0");
    p.tensors +=
        R"(, "t": )" +
        tensorMeta(7, rows + ", " + fixed(4), fixed(4) + ", " + fixed(1)) +
        R"(, "z": )" +
        tensorMeta(7, rows + ", " + fixed(4), fixed(4) + ", " + fixed(1)) +
        R"(, "cut": )" +
        tensorMeta(7, rows + ", " + fixed(3), fixed(4) + ", " + fixed(1)) +
        R"(, "flat": )" +
        tensorMeta(
            7,
            R"x({"as_expr": {"expr_str": "Mul(Integer(3), Symbol('s0', positive=True, integer=True))"}})x",
            fixed(1));
    return importPyTorch(p.file());
  };
  EXPECT_THAT(
      reshaped("flat"),
      HasSubstr("writes in place to memory of which 'flat' is a view or "
                "a copy, depending on strides"));
  // Only where it is read.
  EXPECT_THAT(reshaped("t"), Not(HasSubstr("error")));
}

TEST(PyTorch, ManyViewsOfViews) {
  ProgramFile p = simpleProgram();
  std::string before = "x";
  p.nodes = "";
  for (int i = 0; i < 300; ++i) {
    std::string name = "v" + std::to_string(i);
    p.nodes +=
        node("aten.alias.default", {{"self", tensor(before)}}, tensor(name)) +
        ", ";
    before = name;
  }
  p.nodes +=
      node("aten.relu.default", {{"self", tensor(before)}}, tensor("relu"));
  EXPECT_THAT(importPyTorch(p.file()),
              HasSubstr("tensor 'v255' is the last of 256 views of "
                        "views"));
}
