// Graphs of TensorFlow: what is read, and what is refused in which words.
#include "tests/frontends/tensorflow/Import.h"
#include "frontends/tensorflow/Node.h"

using namespace charonia;
using namespace charonia::test;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tf::proto::Graph;

TEST(TensorFlowGraph, NamedInputsAndOutputs) {
  Graph graph;
  addInput(graph, "b", {2});
  addInput(graph, "a", {2});
  addInput(graph, "label", {2});
  addNode(graph, "Sub", "d", {"a", "b"});
  addNode(graph, "Sub", "loss", {"d", "label"});
  frontend::ImportOptions options;
  options.outputs = {"d:0"};
  std::string text = importTensorFlow({{"graph.pb", bytesOf(graph)}}, options);
  EXPECT_THAT(text,
              AllOf(HasSubstr("graph.name = \"d\""), Not(HasSubstr("label"))));
  EXPECT_LT(text.find("name = \"b\""), text.find("name = \"a\""));
  options.inputs = {"a", "b"};
  text = importTensorFlow({{"graph.pb", bytesOf(graph)}}, options);
  EXPECT_LT(text.find("name = \"a\""), text.find("name = \"b\""));
  options.inputs = {"a"};
  EXPECT_THAT(importTensorFlow({{"graph.pb", bytesOf(graph)}}, options),
              HasSubstr("'b' (Placeholder): is an input that the signature, or "
                        "--inputs, does not have"));
  options.inputs = {"d"};
  EXPECT_THAT(importTensorFlow({{"graph.pb", bytesOf(graph)}}, options),
              HasSubstr("input 'd' is a node Sub, not a placeholder"));
  options.inputs = {"a", "a"};
  EXPECT_THAT(importTensorFlow({{"graph.pb", bytesOf(graph)}}, options),
              HasSubstr("'a' is named twice"));
  options = {};
  options.outputs = {"e"};
  EXPECT_THAT(importTensorFlow({{"graph.pb", bytesOf(graph)}}, options),
              HasSubstr("output 'e' is not a node of the graph"));
  options = {};
  options.signature = "s";
  EXPECT_THAT(importTensorFlow({{"graph.pb", bytesOf(graph)}}, options),
              HasSubstr("is a graph, which has no signatures"));
}

/// A list along dimension 1 of [batch, length, 6], as recurrent layers have it,
/// is the tensor; but its last element cannot be taken off.
TEST(TensorFlowGraph, ListsOfOpenLength) {
  Graph graph;
  addInput(graph, "sequence", {-1, -1, 6});
  addInts(graph, "order", {1, 0, 2});
  addInts(graph, "shape", {-1, 6});
  addNode(graph, "Transpose", "steps", {"sequence", "order"});
  addNode(graph, "TensorListFromTensor", "list", {"steps", "shape"});
  addNode(graph, "TensorListStack", "y", {"list", "shape"});
  EXPECT_THAT(importGraph(graph), HasSubstr("return %0"));
  addInts(graph, "any", {-1}, true);
  addNode(graph, "TensorListPopBack", "y", {"list", "any"});
  graph.mutable_nodes()->DeleteSubrange(5, 1);
  EXPECT_THAT(importGraph(graph),
              AllOf(HasSubstr("does not take a list of size sequence_dim1, "
                              "which is open"),
                    HasSubstr("remedy: fix it: --shape sequence=?x32x6")));
}

TEST(TensorFlowGraph, AllResultsOfALeaf) {
  Graph graph;
  addInput(graph, "x", {2, 5});
  addInts(graph, "k", {2}, true);
  addNode(graph, "TopKV2", "top", {"x", "k"});
  EXPECT_THAT(importGraph(graph), AllOf(HasSubstr("graph.name = \"top\""),
                                        HasSubstr("graph.name = \"top:1\"")));
}

TEST(TensorFlowGraph, DefaultsAreNoted) {
  Graph graph;
  addInput(graph, "x", {2});
  addNode(graph, "PlaceholderWithDefault", "d", {"x"});
  addNode(graph, "Relu", "y", {"d"});
  EXPECT_THAT(importGraph(graph),
              HasSubstr("note: m: node 'd' (PlaceholderWithDefault): has its "
                        "default value, as it is no input"));
}

TEST(TensorFlowGraph, AttributesOfOtherKinds) {
  Graph graph;
  addInput(graph, "x", {2, 2});
  auto &product = addNode(graph, "MatMul", "y", {"x", "x"});
  (*product.mutable_attributes())["transpose_b"].set_placeholder("tb");
  EXPECT_THAT(importGraph(graph),
              HasSubstr("attribute 'transpose_b' is whatever the call of its "
                        "function says"));
  (*graph.mutable_nodes(1)->mutable_attributes())["transpose_b"].set_integer(1);
  EXPECT_THAT(importGraph(graph),
              HasSubstr("attribute 'transpose_b' is of another kind"));
}

TEST(TensorFlowGraph, RowsGoOnBehindABadAttribute) {
  // Nothing may be built of values that were not.
  Graph graph;
  addInput(graph, "x", {1, 6, 6, 4});
  addInput(graph, "filter", {3, 2, 4, 6});
  auto &conv = addNode(graph, "Conv2D", "y", {"x", "filter"});
  (*conv.mutable_attributes())["padding"].set_text("VALID");
  (*conv.mutable_attributes())["strides"].set_text("");
  EXPECT_THAT(importGraph(graph),
              HasSubstr("attribute 'strides' is of another kind"));
}

TEST(TensorFlowGraph, SizesAreIntegers) {
  // Sizes of one byte ran over what was allocated for their constant.
  for (auto [op, dtype] : std::vector<std::pair<const char *, int>>{
           {"Shape", 10}, {"ShapeN", 1}, {"Size", 10}, {"Shape", 6}}) {
    Graph graph;
    addInput(graph, "x", {2, 3});
    auto &node = addNode(graph, op, "y", {"x"});
    (*node.mutable_attributes())["out_type"].set_type(dtype);
    EXPECT_THAT(importGraph(graph),
                AllOf(HasSubstr("attribute 'out_type' is"),
                      HasSubstr("; sizes are int32 or int64")))
        << op << " of " << dtype;
  }
}

TEST(TensorFlowGraph, ListsAndVariablesWhereTensorsBelong) {
  // Each row with each operand in turn a list or a variable, others tensors.
  for (const tf::Row &row : tf::allRows())
    for (int count = 1; count <= 4; ++count)
      for (int other = 0; other < count; ++other)
        for (const char *what : {"list", "variable"}) {
          Graph graph;
          addInput(graph, "x", {2, 3});
          addInts(graph, "n", {1}, true);
          auto &list = addNode(graph, "TensorListReserve", "list", {"n", "n"});
          (*list.mutable_attributes())["element_dtype"].set_type(1);
          addNode(graph, "VarHandleOp", "variable");
          std::vector<std::string> inputs(count, count == 4 ? "x" : "n");
          inputs[0] = "x";
          inputs[other] = what;
          addNode(graph, row.op, "y", inputs);
          SCOPED_TRACE(std::string(row.op) + ", operand " +
                       std::to_string(other) + " of " + std::to_string(count));
          std::string text = importGraph(graph);
          EXPECT_FALSE(text.empty());
        }
  Graph graph;
  addInts(graph, "n", {1}, true);
  addNode(graph, "TensorListReserve", "list", {"n", "n"});
  addNode(graph, "TensorArrayV3", "y", {"list"});
  EXPECT_THAT(importGraph(graph),
              AllOf(HasSubstr("'y' (TensorArrayV3)"), HasSubstr("missing")));
}

TEST(TensorFlowGraph, FunctionsByTheirOwnNames) {
  Graph graph;
  addInput(graph, "x", {2});
  auto &function = *graph.mutable_library()->add_functions();
  function.mutable_signature()->set_name("two");
  function.mutable_signature()->add_inputs()->set_name("a");
  for (const char *name : {"p", "q"})
    function.mutable_signature()->add_outputs()->set_name(name);
  Graph body;
  addNode(body, "Neg", "n", {"a"});
  addNode(body, "Square", "s", {"a"});
  *function.mutable_nodes() = body.nodes();
  (*function.mutable_results())["p"] = "n:y:0";
  (*function.mutable_results())["q"] = "s:y:0";
  auto &outer = *graph.mutable_library()->add_functions();
  outer.mutable_signature()->set_name("outer");
  outer.mutable_signature()->add_inputs()->set_name("a");
  outer.mutable_signature()->add_outputs()->set_name("r");
  Graph calls;
  addNode(calls, "two", "c", {"a"});
  *outer.mutable_nodes() = calls.nodes();
  (*outer.mutable_results())["r"] = "c:q:0";
  addNode(graph, "outer", "y", {"x"});
  EXPECT_THAT(importGraph(graph),
              AllOf(HasSubstr("graph.mul"), Not(HasSubstr("graph.neg"))));
}

TEST(TensorFlowGraph, TwoEllipses) {
  Graph graph;
  addInput(graph, "x", {4});
  addInts(graph, "b", {0, 0});
  addInts(graph, "s", {1, 1});
  auto &slice = addNode(graph, "StridedSlice", "y", {"x", "b", "b", "s"});
  (*slice.mutable_attributes())["ellipsis_mask"].set_integer(3);
  EXPECT_THAT(importGraph(graph), HasSubstr("has more than one ellipsis"));
}

TEST(TensorFlowGraph, EnsuredShapes) {
  auto ensured = [](std::vector<int64_t> given, std::vector<int64_t> wanted) {
    Graph graph;
    addInput(graph, "x", given);
    auto &node = addNode(graph, "EnsureShape", "e", {"x"});
    for (int64_t size : wanted)
      (*node.mutable_attributes())["shape"]
          .mutable_shape()
          ->add_dims()
          ->set_size(size);
    addNode(graph, "Relu", "y", {"e"});
    return importGraph(graph);
  };
  EXPECT_THAT(ensured({-1, 3}, {4, 3}), HasSubstr("4"));
  EXPECT_THAT(ensured({-1, 3}, {-1, 3}), Not(HasSubstr("error")));
  EXPECT_THAT(ensured({2, 3}, {4, 3}),
              HasSubstr("size 2 is not the 4 that the model says"));
}

TEST(TensorFlowGraph, WhatIsNotSupportedAndWhy) {
  auto with = [](const char *op) {
    Graph graph;
    addInput(graph, "x", {2});
    addNode(graph, op, "y", {"x"});
    return importGraph(graph);
  };
  EXPECT_THAT(with("RandomUniform"), HasSubstr("draws random numbers"));
  EXPECT_THAT(with("StatelessTruncatedNormal"),
              HasSubstr("draws random numbers"));
  EXPECT_THAT(with("LookupTableFindV2"), HasSubstr("in a table"));
  EXPECT_THAT(with("Where"), HasSubstr("whose size depends on data"));
  EXPECT_THAT(with("StringSplit"), HasSubstr("on texts or files"));
  EXPECT_THAT(with("StringToHashBucketFast"), HasSubstr("on texts or files"));
  EXPECT_THAT(with("SparseTensorDenseMatMul"), HasSubstr("sparse or ragged"));
  EXPECT_THAT(with("CombinedNonMaxSuppression"),
              HasSubstr("CombinedNonMaxSuppression is not supported"));
  EXPECT_THAT(with("SparseSoftmaxCrossEntropyWithLogits"),
              HasSubstr("WithLogits is not supported"));
  EXPECT_THAT(with("IteratorGetNext"), HasSubstr("reads data by itself"));
}

TEST(TensorFlowGraph, InputsAndOutputsWithoutASignature) {
  Graph graph;
  addInput(graph, "x", {-1, 3});
  addNode(graph, "Relu", "r", {"x"});
  addNode(graph, "NoOp", "nothing", {"^r"});
  EXPECT_THAT(importGraph(graph),
              AllOf(HasSubstr("graph.name = \"x\""),
                    HasSubstr("graph.name = \"r\""), HasSubstr("x_dim0")));
}

TEST(TensorFlowGraph, AllUnsupportedNodesAtOnce) {
  Graph graph;
  addInput(graph, "x", {2});
  addNode(graph, "Frob", "a", {"x"});
  addNode(graph, "Relu", "b", {"a"});
  addNode(graph, "Grob", "c", {"b"});
  EXPECT_THAT(
      importGraph(graph),
      AllOf(HasSubstr("node 'a' (Frob): operator Frob is not supported"),
            HasSubstr("node 'c' (Grob): operator Grob"),
            HasSubstr("x: float32[2]"), Not(HasSubstr("node 'b'"))));
}

TEST(TensorFlowGraph, CyclesAndNamesOfNothing) {
  Graph cycle;
  addNode(cycle, "Relu", "a", {"b"});
  addNode(cycle, "Relu", "b", {"a"});
  addNode(cycle, "Relu", "y", {"b"});
  EXPECT_THAT(importGraph(cycle), HasSubstr("depends on itself"));
  Graph missing;
  addNode(missing, "Relu", "y", {"nobody:0"});
  EXPECT_THAT(importGraph(missing),
              HasSubstr("input 'nobody:0' is not defined anywhere"));
  Graph twice;
  addInput(twice, "x", {1});
  addInput(twice, "x", {1});
  EXPECT_THAT(importGraph(twice), HasSubstr("has two nodes of the name 'x'"));
}

TEST(TensorFlowGraph, OutputsThatANodeHasNot) {
  Graph graph;
  addInput(graph, "x", {2});
  addNode(graph, "Relu", "a", {"x"});
  addNode(graph, "Relu", "y", {"a:2000000000"});
  EXPECT_THAT(importGraph(graph),
              HasSubstr("input 'a:2000000000' is not defined anywhere"));
}

TEST(TensorFlowGraph, WhatWaitsForItself) {
  // Also where it is not needed, and is no operand.
  auto import = [](const char *waitsFor) {
    Graph graph;
    addInput(graph, "x", {2});
    addNode(graph, "Relu", "a", {"x", waitsFor});
    addNode(graph, "Relu", "b", {"a"});
    addNode(graph, "Relu", "y", {"a", "^b"});
    return importGraph(graph);
  };
  EXPECT_THAT(import("^x"), Not(HasSubstr("error")));
  EXPECT_THAT(import("^b"), HasSubstr("waits for itself"));
  EXPECT_THAT(import("^y"), HasSubstr("waits for itself"));
}

TEST(TensorFlowGraph, TypesThatNoOperandHas) {
  Graph graph;
  addInput(graph, "x", {2});
  auto &node = addNode(graph, "Relu", "y", {"x"});
  (*node.mutable_attributes())["T"].set_type(1);
  EXPECT_THAT(importGraph(graph), Not(HasSubstr("error")));
  (*graph.mutable_nodes(1)->mutable_attributes())["T"].set_type(19);
  EXPECT_THAT(importGraph(graph),
              HasSubstr("attribute 'T' is float16, a type that none of its "
                        "operands has"));
}

TEST(TensorFlowGraph, StridesOfOneElement) {
  auto import = [](int stride) {
    Graph graph;
    addInput(graph, "x", {4, 2});
    addInts(graph, "begin", {1});
    addInts(graph, "end", {2});
    addInts(graph, "stride", {stride});
    auto &node =
        addNode(graph, "StridedSlice", "y", {"x", "begin", "end", "stride"});
    (*node.mutable_attributes())["shrink_axis_mask"].set_integer(1);
    return importGraph(graph);
  };
  EXPECT_THAT(import(1), Not(HasSubstr("error")));
  EXPECT_THAT(import(0), HasSubstr("a stride is 0"));
  EXPECT_THAT(import(-1), HasSubstr("a stride of -1; it has to be above 0"));
}

TEST(TensorFlowGraph, SecondResultsOfInputs) {
  Graph graph;
  addInput(graph, "x", {2});
  addNode(graph, "Relu", "y", {"x:1"});
  EXPECT_THAT(importGraph(graph),
              HasSubstr("input 'x:1' is not defined anywhere"));
}

TEST(TensorFlowGraph, PartsAreCounted) {
  Graph graph;
  addInput(graph, "x", {65536});
  for (int i = 0; i < 3; ++i) {
    auto &node = addNode(graph, "Unpack", "u" + std::to_string(i), {"x"});
    (*node.mutable_attributes())["num"].set_integer(65536);
  }
  EXPECT_THAT(importGraph(graph), HasSubstr("are over 131072 nodes"));
}

TEST(TensorFlowGraph, LongChainsTakeNoStack) {
  Graph graph;
  addInput(graph, "x", {2});
  std::string last = "x";
  for (int i = 0; i < 50000; ++i) {
    std::string name = "n" + std::to_string(i);
    addNode(graph, "Identity", name, {last});
    last = name;
  }
  addNode(graph, "Relu", "y", {last});
  EXPECT_THAT(importGraph(graph), HasSubstr("graph.max"));
}

TEST(TensorFlowGraph, ConstantsThatLie) {
  auto withConstant = [](auto change) {
    Graph graph;
    addInput(graph, "x", {2});
    auto &constant = addInts(graph, "c", {1, 2});
    change(*(*constant.mutable_attributes())["value"].mutable_tensor());
    addNode(graph, "Cast", "f", {"c"});
    addNode(graph, "Add", "y", {"x", "f"});
    return importGraph(graph);
  };
  EXPECT_THAT(withConstant([](auto &t) { t.add_ints(3); }),
              HasSubstr("lists 3 values, but its shape has 2"));
  EXPECT_THAT(withConstant([](auto &t) { t.set_content("abc"); }),
              HasSubstr("holds 3 bytes, but its shape and type take 8"));
  EXPECT_THAT(withConstant([](auto &t) {
                t.mutable_shape()->mutable_dims(0)->set_size(-1);
              }),
              HasSubstr("has a shape that is absurd"));
  EXPECT_THAT(withConstant([](auto &t) {
                t.mutable_shape()->mutable_dims(0)->set_size(int64_t(1) << 40);
              }),
              HasSubstr("error"));
  // The last value repeats.
  EXPECT_THAT(withConstant([](auto &t) {
                t.clear_ints();
                t.add_ints(5);
              }),
              HasSubstr("dense<5>"));
}

TEST(TensorFlowGraph, FilesOfOtherKinds) {
  EXPECT_THAT(importTensorFlow({{"graph.pb", "no graph"}}),
              HasSubstr("is not a graph of TensorFlow"));
  EXPECT_THAT(importTensorFlow({{"saved_model.pb", ""}}),
              HasSubstr("is not a SavedModel"));
}
