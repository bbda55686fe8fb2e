// Models that are damaged or contradict themselves: each gets its message, and
// nothing crashes.
#include "tests/frontends/onnx/Models.h"
#include <random>

using namespace charonia;
using namespace charonia::test;
using ::onnx::AttributeProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace {
const char *const simple =
    "graph (float[N, 4] x) => (float[N, 4] y) { h = Relu (x) y = Exp (h) }";

void addInput(ModelProto &model, const std::string &name,
              std::vector<int64_t> dims) {
  auto *input = model.mutable_graph()->add_input();
  input->set_name(name);
  auto *tensor = input->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(TensorProto::FLOAT);
  for (int64_t dim : dims)
    tensor->mutable_shape()->add_dim()->set_dim_value(dim);
}
TensorProto &addTensor(ModelProto &model, const std::string &name,
                       std::vector<int64_t> dims,
                       int type = TensorProto::FLOAT) {
  auto &tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (int64_t dim : dims)
    tensor.add_dims(dim);
  return tensor;
}
} // namespace

TEST(Malformed, DeepSubgraphs) {
  for (int depth : {40, 600}) {
    ::onnx::ModelProto model;
    model.set_ir_version(9);
    ::onnx::GraphProto *graph = model.mutable_graph();
    for (int i = 0; i < depth; ++i) {
      ::onnx::AttributeProto *branch = graph->add_node()->add_attribute();
      branch->set_name("then_branch");
      graph = branch->mutable_g();
    }
    std::string bytes = model.SerializeAsString();
    EXPECT_EQ(importBytes(bytes),
              "error: test.onnx: its subgraphs nest over 30 deep\n"
              "  remedy: export the model with fewer If, Loop and Scan nodes "
              "inside of one another\n");
    EXPECT_THAT(importBytes(bytes.substr(0, bytes.size() - 1)),
                HasSubstr("the file is damaged"));
  }
}

TEST(Malformed, MoreOutputsThanAnEngineHolds) {
  ::onnx::ModelProto model = parse(simple);
  std::string only = model.graph().output(0).name();
  auto &outputs = *model.mutable_graph()->mutable_output();
  for (int i = 1; i < 4097; ++i) {
    auto &node = *model.mutable_graph()->add_node();
    node.set_op_type("Relu");
    node.add_input(only);
    node.add_output("y" + std::to_string(i));
    *outputs.Add() = outputs[0];
    outputs[i].set_name(node.output(0));
  }
  EXPECT_EQ(importBytes(model.SerializeAsString()),
            "error: test.onnx: the model has 4097 outputs; up to 4096 are "
            "supported\n"
            "  remedy: export it with fewer outputs, for example joined by a "
            "Concat\n");
  outputs.RemoveLast();
  EXPECT_EQ(importBytes(model.SerializeAsString()), "");
}

/// y has as many elements as `size` says of s, the length of x.
std::string importRange(const std::string &size) {
  return importBytes(
      parse("graph (float[N] x) => (int64[] y)\n"
            "<int64 two = {2}, int64 zero = {0}, int64 one = {1}, float half "
            "= {0.5}> {\n"
            "shape = Shape (x) s = Squeeze (shape)\n" +
            size + "\n y = Range (zero, q, one) }")
          .SerializeAsString());
}

TEST(Malformed, SizesThatAreComputed) {
  EXPECT_EQ(importRange("q = Pow (s, two)"), "");
  EXPECT_EQ(importRange("p = Pow (s, two) q = Sub (p, s)"), "");
  EXPECT_EQ(importRange("p = Pow (two, two) r = Pow (p, half) q = Mul (s, r)"),
            "");
  EXPECT_EQ(importRange("f = Cast <to: int = 1> (s) g = Sqrt (f) q = Cast "
                        "<to: int = 7> (g)"),
            "");
  EXPECT_THAT(importRange("f = Cast <to: int = 1> (s) g = Log (f) h = Sqrt (g) "
                          "q = Cast <to: int = 7> (h)"),
              HasSubstr("input 1 ('q') follows from sizes, but Log 'g' "
                        "computes it in a way that is not supported for sizes "
                        "that are open\n"));
  EXPECT_THAT(importRange("m = ReduceMax (x) q = Cast <to: int = 7> (m)"),
              HasSubstr("shapes that depend on data are not supported"));
}

/// The node that stopped it is named, and not the last one, and why.
TEST(Malformed, SizesThatCannotBeComputed) {
  auto floats = [](const std::string &steps) {
    return importRange("f = Cast <to: int = 1> (s) " + steps +
                       " r = Floor (d) q = Cast <to: int = 7> (r)");
  };
  EXPECT_THAT(floats("h = Sub (f, half) g = Floor (h) d = Div (f, g)"),
              AllOf(HasSubstr("but Div 'd' divides by a number in 0..1048575, "
                              "which may be 0 (N in 1..1048576)"),
                    HasSubstr("fix these sizes with --shape, or narrow their "
                              "ranges")));
  EXPECT_THAT(floats("h = Neg (f) d = Sqrt (h)"),
              HasSubstr("but Sqrt 'd' takes the root of a number in "
                        "-1048576..-1, which may be negative"));
  EXPECT_THAT(floats("h = Mul (f, f) g = Mul (h, h) d = Sqrt (g)"),
              HasSubstr("but Mul 'g' may give numbers beyond 2^52"));
  EXPECT_THAT(importRange("h = Sub (s, two) q = Div (s, h)"),
              HasSubstr("but Div 'q' divides by N - 2, which may be 0 or less "
                        "(N in 1..1048576)"));
}

/// Types are shown as people write them.
TEST(Malformed, ShapesThatDoNotFit) {
  EXPECT_THAT(
      importBytes(parse("graph (float[N, M] x, float[2] z) => (float[] y) { y "
                        "= Concat <axis: int = 1> (x, z) }")
                      .SerializeAsString()),
      AllOf(HasSubstr("cannot concatenate float32[N, M] and float32[2] along "
                      "axis 1"),
            testing::Not(HasSubstr("tensor<"))));
}

TEST(Malformed, Garbage) {
  EXPECT_THAT(importBytes("this is no model"),
              StartsWith("error: test.onnx: not an ONNX model: the file is "
                         "damaged, cut short or of another format"));
  EXPECT_THAT(importBytes(""),
              StartsWith("error: test.onnx: not an ONNX model: it holds no "
                         "graph"));
  EXPECT_THAT(importBytes(std::string(1000, '\0')),
              StartsWith("error: test.onnx: not an ONNX model: "));
}

TEST(Malformed, EveryTruncation) {
  std::string bytes = parse(simple).SerializeAsString();
  EXPECT_EQ(importBytes(bytes), "");
  // The versions of operators come last: without them no prefix is a model.
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THAT(importBytes(bytes.substr(0, size)),
                StartsWith("error: test.onnx: "))
        << size << " bytes";
}

TEST(Malformed, FlippedBytes) {
  ModelProto model =
      parse("graph (float[N, 4, 6, 6] x, int64[2] i) => (float[N, 16] y)"
            "<int64[2] s = {0, -1}, float[4, 4, 3, 3] w = {}> {"
            "  c = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w)"
            "  p = MaxPool <kernel_shape = [2, 2]> (c)"
            "  r = Reshape (p, s)"
            "  t = Transpose <perm = [1, 0]> (r)"
            "  g = Gather <axis = 0> (t, i)"
            "  k = Transpose (g)"
            "  q = Concat <axis = 1> (k, k)"
            "  z = Softmax <axis = -1> (q)"
            "  y = MeanVarianceNormalization <axes = [0]> (z) }");
  auto &weight = *model.mutable_graph()->mutable_initializer(1);
  weight.clear_float_data();
  weight.set_raw_data(std::string(4 * 4 * 9 * 4, '\1'));
  model.mutable_graph()->mutable_output(0)->clear_type();
  std::string bytes = model.SerializeAsString();
  EXPECT_EQ(importBytes(bytes), "");
  size_t weightBytes = weight.raw_data().size();
  size_t weightBegin = bytes.find(std::string(weightBytes, '\1'));
  ASSERT_NE(weightBegin, std::string::npos);
  unsigned accepted = 0, refused = 0;
  std::mt19937 random(7);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i - weightBegin < weightBytes && random() % 16)
      continue;
    std::string damaged = bytes;
    damaged[i] ^= char(1 << random() % 8);
    SCOPED_TRACE("byte " + std::to_string(i));
    std::string text = importBytes(damaged);
    // A note says what is assumed of sizes.
    bool isError = text.find("error: test.onnx: ") != std::string::npos;
    ++(isError ? refused : accepted);
    if (!text.empty())
      EXPECT_THAT(text, AllOf(AnyOf(StartsWith("error: test.onnx: "),
                                    StartsWith("note: test.onnx: ")),
                              EndsWith("\n")));
    // A flip in the weight's own bytes is no business of the importer.
    size_t inWeight = i - weightBegin;
    if (inWeight < weightBytes)
      EXPECT_EQ(text, "");
  }
  // Names that nobody refers to may change; most of the rest may not.
  EXPECT_GT(refused, accepted);
}

TEST(Malformed, Cycle) {
  ModelProto model = parse("graph (float[4] x) => (float[4] y) {"
                           " a = Add (x, c) b = Relu (a) c = Exp (b)"
                           " y = Neg (c) }");
  EXPECT_EQ(import(model),
            "error: test.onnx: the graph has a cycle: 'a' -> 'b' -> 'c' -> "
            "'a'\n  remedy: export the model again\n");
}

TEST(Malformed, UnsortedNodesAreSorted) {
  ModelProto model = parse("graph (float[4] x) => (float[4] y) {"
                           " y = Neg (b) b = Relu (a) a = Exp (x) }");
  EXPECT_EQ(import(model), "");
}

TEST(Malformed, DuplicateNames) {
  EXPECT_EQ(import(parse("graph (float[4] x) => (float[4] y) {"
                         " y = Neg (x) y = Exp (x) }")),
            "error: test.onnx: value 'y' is defined twice: by node 'y' (Neg) "
            "and by node 'y' (Exp)\n  remedy: export the model again\n");
  EXPECT_THAT(import(parse("graph (float[4] x) => (float[4] y) {"
                           " x = Neg (x) y = Exp (x) }")),
              HasSubstr("value 'x' is defined by node 'x' (Neg) and is an "
                        "input, an initializer or a value outside too"));
  ModelProto model = parse(simple);
  addInput(model, "x", {4});
  EXPECT_THAT(import(model), HasSubstr("input 'x' is defined twice"));
  model = parse(simple);
  addTensor(model, "w", {0});
  addTensor(model, "w", {0});
  EXPECT_THAT(import(model), HasSubstr("initializer 'w' is defined twice"));
  model = parse(simple);
  *model.mutable_graph()->add_output() = model.graph().output(0);
  EXPECT_THAT(import(model), HasSubstr("output 'y' is defined twice"));
}

TEST(Malformed, Undefined) {
  EXPECT_THAT(
      import(parse("graph (float[4] x) => (float[4] y) {"
                   " y = Add (x, lost) }")),
      HasSubstr(
          "error: test.onnx: node 'y' (Add, opset 18): input 'lost' is not "
          "defined anywhere\n  inputs: x: float32[4]\n  "
          "remedy: export the model again"));
  EXPECT_THAT(import(parse("graph (float[4] x) => (float[4] z) {"
                           " y = Neg (x) }")),
              HasSubstr("output 'z' is not computed by any node"));
  EXPECT_THAT(import(parse("graph (float[4] x) => () { y = Neg (x) }")),
              HasSubstr("the model has no outputs"));
}

TEST(Malformed, Attributes) {
  auto check = [](const char *node, const char *message) {
    std::string text = import(
        parse(std::string("graph (float[N, 4] x) => (float[N, 4] y) { ") +
              node + " }"));
    EXPECT_THAT(text, HasSubstr(message)) << node;
  };
  check("y = Softmax <axis = 1.5> (x)",
        "node 'y' (Softmax, opset 18): attribute 'axis' has to be of type INT, "
        "not FLOAT");
  check("y = Softmax <axis = 2> (x)",
        "axis 2 is out of range for 2 dimensions");
  check("y = Relu <slope = 1> (x)", "there is no attribute 'slope'");
  check("y = Cast (x)", "attribute 'to' is missing");
  check("y = Softmax <axis = 1, axis = 0> (x)",
        "attribute 'axis' appears twice");
  check("y = Transpose <perm = [0, 0]> (x)",
        "attribute 'perm' is not a permutation of the 2 dimensions");
  check("y = Cast <to = 8> (x)", "casts to string are not supported");
  check("y = Cast <to = 4294967297> (x)", "are not supported");
  check("y = Add (x)", "takes 2 inputs, not 1");
  check("y, z = Relu (x)", "has 1 outputs, not 2");
  check("y = Gelu <approximate = \"some\"> (x)", "there is no operator Gelu in "
                                                 "opset 18");
}

TEST(Malformed, Types) {
  EXPECT_THAT(import(parse("graph (float[4] x, double[4] z) => (float[4] y) {"
                           " y = Add (x, z) }")),
              HasSubstr("input 1 ('z') is tensor(double), input 0 ('x') is "
                        "tensor(float); they have to be of one type"));
  EXPECT_THAT(import(parse("graph (bool[4] x) => (bool[4] y) {"
                           " y = Exp (x) }")),
              HasSubstr("input 0 ('x') may not be tensor(bool)"));
}

TEST(Malformed, ContradictoryShapes) {
  EXPECT_EQ(
      import(parse("graph (float[2, 3] x, float[4, 5] z) => (float[2, 3] y) {"
                   " y = Add (x, z) }")),
      "error: test.onnx: node 'y' (Add, opset 18): shapes [2, 3] and [4, 5] do "
      "not broadcast\n  inputs: x: float32[2, 3]; z: float32[4, 5]\n"
      "  remedy: check the shapes and types of what the node is given\n");
  EXPECT_THAT(
      import(parse("graph (float[2, 3] x, float[4, 5] z) => (float[?, ?] y) {"
                   " y = MatMul (x, z) }")),
      HasSubstr("error: test.onnx: node 'y' (MatMul, opset 18):"));
  EXPECT_THAT(import(parse("graph (float[1, 3, 8, 8] x, float[4, 2, 3, 3] w) "
                           "=> (float[?, ?, ?, ?] y) { y = Conv (x, w) }")),
              HasSubstr("a filter of float32[4, 2, 3, 3] in 1 groups does not "
                        "fit the 3 channels of the input"));
  EXPECT_THAT(import(parse("graph (float[2, 3] x) => (float[7] y)"
                           " <int64[1] s = {7}> { y = Reshape (x, s) }")),
              HasSubstr("float32[2, 3] does not have as many elements as [7]"));
}

TEST(Malformed, Sizes) {
  ModelProto model = parse(simple);
  addInput(model, "n", {-7});
  EXPECT_THAT(import(model), HasSubstr("input 'n': dimension 0 is declared as "
                                       "-7"));
  model = parse(simple);
  addInput(model, "n", {int64_t(1) << 62, int64_t(1) << 62});
  EXPECT_THAT(import(model), HasSubstr("input 'n': dimension 0 is declared as "
                                       "4611686018427387904"));
  model = parse(simple);
  addInput(model, "n", std::vector<int64_t>(100, 1));
  EXPECT_THAT(import(model), HasSubstr("has 100 dimensions; 16 are supported"));
  // -1 is how old exporters say "any size".
  model = parse("graph (float[4] x) => (float[4] y) { y = Neg (x) }");
  model.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_value(-1);
  EXPECT_EQ(import(model), "");
  EXPECT_THAT(
      import(parse("graph (float[1] x) => (float[?] y) <int64[2] s = "
                   "{1099511627776, 1099511627776}> { y = Expand (x, s) }")),
      HasSubstr("a tensor is too large"));
  EXPECT_THAT(import(parse("graph (float[1] x) => (float[?] y) <int64[2] p = "
                           "{4611686018427387904, 4611686018427387904}> "
                           "{ y = Pad (x, p) }")),
              HasSubstr("a pad of 4611686018427387904 is absurdly large"));
  EXPECT_THAT(import(parse("graph (float[1] x) => (float[?] y) <int64[1] p = "
                           "{-1}> { y = ConstantOfShape (p) }")),
              HasSubstr("a size may not be -1"));
}

TEST(Malformed, Windows) {
  auto check = [](const char *attributes, const char *message) {
    std::string text =
        import(parse("graph (float[1, 2, 8] x) => (float[?, ?, ?] y) {"
                     " y = MaxPool <" +
                     std::string(attributes) + "> (x) }"));
    EXPECT_THAT(text, HasSubstr(message)) << attributes;
  };
  check("kernel_shape = [0]", "a kernel cannot have a size of 0");
  check("kernel_shape = [3, 3]", "needs a kernel of 1 dimensions");
  check("kernel_shape = [3], strides = [0]",
        "attribute 'strides' may not hold 0, but 1..");
  check("kernel_shape = [3], strides = [1, 1]",
        "attribute 'strides' has 2 entries, but needs 1");
  check("kernel_shape = [3], pads = [-1, 0]",
        "attribute 'pads' may not hold -1");
  check("kernel_shape = [9]",
        "a window of 9 does not fit into the padded size 8 of dimension 2");
  check("kernel_shape = [10], strides = [2], ceil_mode = 1",
        "a window of 10 does not fit into the padded size 8");
  check("kernel_shape = [3], dilations = [2147483648]",
        "the dilated kernel is absurdly large");
  check("kernel_shape = [3], auto_pad = \"SOME\"",
        "attribute 'auto_pad' may not be 'SOME'");
}

TEST(Malformed, Slices) {
  auto check = [](const char *lists, const char *message) {
    std::string text =
        import(parse("graph (float[8] x) => (float[?] y) <" +
                     std::string(lists) + "> { y = Slice (x, s, e, a, k) }"));
    if (message[0])
      EXPECT_THAT(text, HasSubstr(message));
    else
      EXPECT_EQ(text, "");
  };
  check("int64[1] s = {0}, int64[1] e = {4}, int64[1] a = {0}, "
        "int64[1] k = {0}",
        "a step is 0");
  check("int64[1] s = {0}, int64[2] e = {4, 4}, int64[1] a = {0}, "
        "int64[1] k = {1}",
        "starts, ends, axes and steps differ in length");
  check("int64[2] s = {0, 0}, int64[2] e = {4, 4}, int64[2] a = {0, -1}, "
        "int64[2] k = {1, 1}",
        "axis -1 appears twice");
  check("int64[1] s = {-9223372036854775808}, int64[1] e = "
        "{9223372036854775807}, int64[1] a = {0}, int64[1] k = "
        "{9223372036854775807}",
        "");
  check("int64[1] s = {9223372036854775807}, int64[1] e = "
        "{-9223372036854775808}, int64[1] a = {0}, int64[1] k = "
        "{-9223372036854775808}",
        "");
}

TEST(Malformed, DeepNesting) {
  // Ifs inside of Ifs, as deep as bytes allow.
  ModelProto model =
      parse("graph (float[4] x, bool c) => (float[4] y) { y = Neg (x) }");
  auto *graph = model.mutable_graph();
  for (int depth = 0; depth < 200; ++depth) {
    NodeProto &node = *graph->mutable_node(0);
    node.clear_input();
    node.set_op_type("If");
    node.add_input("c");
    for (const char *name : {"then_branch", "else_branch"}) {
      AttributeProto &branch = *node.add_attribute();
      branch.set_name(name);
      branch.set_type(AttributeProto::GRAPH);
      branch.mutable_g()->add_output()->set_name("y");
    }
    graph = node.mutable_attribute(0)->mutable_g();
    graph->add_node()->add_output("y");
  }
  EXPECT_THAT(import(model), HasSubstr("its subgraphs nest over 30 deep"));
}

/// Each function calls the one before twice: refused before it is built.
TEST(Malformed, DoublingFunctions) {
  ModelProto model = parse(simple);
  auto &opset = *model.add_opset_import();
  opset.set_domain("local");
  opset.set_version(1);
  auto call = [](NodeProto &node, const std::string &name,
                 const std::string &from, const std::string &to) {
    node.set_op_type(name);
    if (name != "Relu")
      node.set_domain("local");
    node.add_input(from);
    node.add_output(to);
  };
  for (int i = 0; i < 40; ++i) {
    auto &function = *model.add_functions();
    function.set_name("f" + std::to_string(i));
    function.set_domain("local");
    *function.add_opset_import() = model.opset_import(0);
    *function.add_opset_import() = opset;
    function.add_input("x");
    function.add_output("y");
    std::string inner = i ? "f" + std::to_string(i - 1) : "Relu";
    call(*function.add_node(), inner, "x", "t");
    call(*function.add_node(), inner, "t", "y");
    // Not needed, so not counted.
    call(*function.add_node(), inner, "t", "dead");
  }
  auto &node = *model.mutable_graph()->mutable_node(0);
  node.set_op_type("f39");
  node.set_domain("local");
  node.set_name("doubling");
  EXPECT_THAT(
      import(model),
      AllOf(HasSubstr("error: test.onnx: node 'doubling' (local.f39, opset 1): "
                      "functions, loops and tables written out are over 131072 "
                      "nodes with these "),
            HasSubstr("\n  inputs: x: float32[N, 4]\n"
                      "  remedy: export the model without nested functions, "
                      "with loops of fewer steps, and with shorter transforms "
                      "and windows\n")));
  node.set_op_type("f8");
  EXPECT_EQ(import(model), "");
}

TEST(Malformed, ManyFunctions) {
  // Each calls the next twice: 2^40 nodes.
  ModelProto model =
      parse("graph (float[4] x) => (float[4] y) { y = Neg (x) }");
  auto *opset = model.add_opset_import();
  opset->set_domain("f");
  opset->set_version(1);
  NodeProto &call = *model.mutable_graph()->mutable_node(0);
  call.set_op_type("F0");
  call.set_domain("f");
  for (int i = 0; i < 40; ++i) {
    auto &function = *model.add_functions();
    function.set_name("F" + std::to_string(i));
    function.set_domain("f");
    *function.add_opset_import() = *opset;
    *function.add_opset_import() = model.opset_import(0);
    function.add_input("a");
    function.add_output("c");
    bool last = i == 39;
    for (const char *names : {"ab", "bc"}) {
      NodeProto &node = *function.add_node();
      node.set_op_type(last ? "Neg" : "F" + std::to_string(i + 1));
      node.set_domain(last ? "" : "f");
      node.add_input(std::string(1, names[0]));
      node.add_output(std::string(1, names[1]));
    }
  }
  EXPECT_THAT(import(model),
              HasSubstr("functions, loops and tables written out are over"));
}

TEST(Malformed, LongChains) {
  // Deep graphs are walked without recursion.
  ModelProto model = parse("graph (int64[n] x) => (float[m] y) {"
                           " s0 = Shape (x) y = ConstantOfShape (s100000) }");
  NodeProto *node = nullptr;
  for (int i = 0; i < 100000; ++i) {
    node = model.mutable_graph()->add_node();
    node->set_op_type("Sign");
    node->add_input("s" + std::to_string(i));
    node->add_output("s" + std::to_string(i + 1));
  }
  EXPECT_EQ(import(model), "");
}

// Compared with one another they would take some 10^11 steps.
TEST(Malformed, ManyOutputs) {
  ModelProto model = parse(simple);
  auto add = [&](const std::string &name) {
    model.mutable_graph()->add_output()->set_name(name);
  };
  for (int i = 0; i < 500'000; ++i)
    add("output_" + std::to_string(1'000'000 + i));
  add("output_1000000");
  EXPECT_THAT(import(model), StartsWith("error: test.onnx: output "
                                        "'output_1000000' is defined twice"));
}
