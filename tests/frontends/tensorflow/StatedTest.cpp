// What files say of tensors beside what computes them, and what is fed.
#include "tests/frontends/tensorflow/Import.h"

using namespace charonia::test;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tf::proto::Graph;

/// The product of x and w, in its function.
static tf::proto::Node &productOf(SavedFiles &files) {
  return *files.graph().mutable_library()->mutable_functions(0)->mutable_nodes(
      1);
}
static void setShape(tf::proto::Shape &shape, std::vector<int64_t> sizes) {
  for (int64_t size : sizes)
    shape.add_dims()->set_size(size);
}
static void stateShape(tf::proto::Node &node, std::vector<int64_t> sizes) {
  setShape(*(*node.mutable_attributes())["_output_shapes"]
                .mutable_list()
                ->add_shapes(),
           std::move(sizes));
}
/// The definition of MatMul, whose result is of the type that T names.
static tf::proto::FunctionSignature &define(SavedFiles &files) {
  auto &definition = *files.model.mutable_meta_graphs(0)
                          ->mutable_info()
                          ->mutable_definitions()
                          ->add_operators();
  definition.set_name("MatMul");
  auto &result = *definition.add_outputs();
  result.set_name("product");
  result.set_type_attribute("T");
  return definition;
}

TEST(TensorFlowStated, Shapes) {
  SavedFiles fitting;
  stateShape(productOf(fitting), {-1, 3});
  EXPECT_THAT(importTensorFlow(fitting.files()), Not(HasSubstr("error")));
  SavedFiles size;
  stateShape(productOf(size), {-1, 4});
  EXPECT_THAT(
      importTensorFlow(size.files()),
      AllOf(HasSubstr("(MatMul)"),
            HasSubstr("its result 0 is float32[x_dim0, 3], but the file says "
                      "[?, 4]"),
            HasSubstr("a fault of charonia's row for the operator")));
  SavedFiles rank;
  stateShape(productOf(rank), {-1});
  EXPECT_THAT(importTensorFlow(rank.files()),
              HasSubstr("but the file says [?]"));
  SavedFiles any;
  (*productOf(any).mutable_attributes())["_output_shapes"]
      .mutable_list()
      ->add_shapes()
      ->set_unknown_rank(true);
  EXPECT_THAT(importTensorFlow(any.files()), Not(HasSubstr("error")));
}

TEST(TensorFlowStated, Types) {
  SavedFiles fitting;
  define(fitting);
  EXPECT_THAT(importTensorFlow(fitting.files()), Not(HasSubstr("error")));
  SavedFiles other;
  define(other);
  (*productOf(other).mutable_attributes())["T"].set_type(3);
  EXPECT_THAT(importTensorFlow(other.files()),
              HasSubstr("its result 0 is float32[x_dim0, 3], but the file says "
                        "int32"));
  // What is not there is as the definition says.
  SavedFiles byDefault;
  auto &attribute = *define(byDefault).add_defaults();
  attribute.set_name("T");
  attribute.mutable_value()->set_type(2);
  productOf(byDefault).mutable_attributes()->erase("T");
  EXPECT_THAT(importTensorFlow(byDefault.files()),
              HasSubstr("but the file says float64"));
  // As many as an attribute says; absurd numbers are no reason to fail.
  for (int64_t number : {int64_t(-7), int64_t(1) << 60}) {
    SavedFiles many;
    define(many).mutable_outputs(0)->set_number_attribute("N");
    (*productOf(many).mutable_attributes())["N"].set_integer(number);
    EXPECT_THAT(importTensorFlow(many.files()), Not(HasSubstr("error")));
  }
}

TEST(TensorFlowStated, DefaultsOfTheFile) {
  SavedFiles files;
  auto &attribute = *define(files).add_defaults();
  attribute.set_name("transpose_b");
  attribute.mutable_value()->set_flag(true);
  // Of x [?, 2] and w [2, 3] transposed.
  EXPECT_THAT(
      importTensorFlow(files.files()),
      AllOf(HasSubstr("(MatMul)"), HasSubstr("inner dimensions differ")));
  (*productOf(files).mutable_attributes())["transpose_b"].set_flag(false);
  EXPECT_THAT(importTensorFlow(files.files()), Not(HasSubstr("error")));
}

TEST(TensorFlowStated, VersionsOfGraphs) {
  SavedFiles files;
  // Field 1 of a graph's description, a text that nothing reads.
  files.model.mutable_meta_graphs(0)
      ->mutable_info()
      ->mutable_unknown_fields()
      ->append("\x0a\x04v1.0");
  EXPECT_THAT(importTensorFlow(files.files()), Not(HasSubstr("error")));
}

TEST(TensorFlowStated, VariablesAndInputsByTheirNodes) {
  for (int64_t rows : {2, 3}) {
    SavedFiles files;
    auto &holder = *files.graph().mutable_nodes(1);
    setShape(*(*holder.mutable_attributes())["shape"].mutable_shape(),
             {rows, -1});
    std::string text = importTensorFlow(files.files());
    if (rows == 2)
      EXPECT_THAT(text, Not(HasSubstr("error")));
    else
      EXPECT_THAT(text, HasSubstr("variable 'w' is float32[2, 3], but the node "
                                  "that holds it says [3, ?]"));
  }
  SavedFiles type;
  (*type.graph().mutable_nodes(1)->mutable_attributes())["dtype"].set_type(2);
  EXPECT_THAT(importTensorFlow(type.files()), HasSubstr("says float64"));
  SavedFiles input;
  auto &shape =
      (*input.graph().mutable_nodes(0)->mutable_attributes())["shape"];
  shape.Clear();
  setShape(*shape.mutable_shape(), {-1, 5});
  EXPECT_THAT(importTensorFlow(input.files()),
              HasSubstr("input 'x' is float32[x_dim0, 2], but its placeholder "
                        "says float32[?, 5]"));
}

TEST(TensorFlowStated, ConstantsOfAnotherType) {
  Graph graph;
  (*addInts(graph, "c", {1, 2}).mutable_attributes())["dtype"].set_type(1);
  addNode(graph, "Identity", "y", {"c"});
  EXPECT_THAT(importGraph(graph), HasSubstr("its value is of int32, but the "
                                            "node says float32"));
}

TEST(TensorFlowInputs, OfTextsThatNobodyReads) {
  for (bool isRead : {false, true}) {
    SavedFiles files;
    Graph &graph = files.graph();
    addNode(graph, "Placeholder", "s");
    auto &signature = (*files.model.mutable_meta_graphs(0)
                            ->mutable_signatures())["serving_default"];
    auto &text = (*signature.mutable_inputs())["text"];
    text.set_name("s:0");
    text.set_dtype(7);
    // In front of the variable, which is the last argument.
    auto &call = *graph.mutable_nodes(2);
    call.set_inputs(1, "s");
    call.add_inputs("w");
    auto &function = *graph.mutable_library()->mutable_functions(0);
    function.mutable_signature()->mutable_inputs(1)->set_name("s");
    function.mutable_signature()->add_inputs()->set_name("w");
    if (isRead)
      productOf(files).set_inputs(0, "s");
    std::string result = importTensorFlow(files.files());
    if (isRead)
      EXPECT_THAT(result, AllOf(HasSubstr("(MatMul)"),
                                HasSubstr("reads input 'text', which is of "
                                          "string, a type that is not")));
    else
      EXPECT_THAT(result, Not(HasSubstr("error")));
  }
}

TEST(TensorFlowStated, SignaturesOutputs) {
  for (int dtype : {0, 1, 3}) {
    SavedFiles files;
    auto &output = (*(*files.model.mutable_meta_graphs(0)
                           ->mutable_signatures())["serving_default"]
                         .mutable_outputs())["y"];
    output.set_dtype(dtype);
    setShape(*output.mutable_shape(), {-1, dtype ? 3 : 5});
    std::string text = importTensorFlow(files.files());
    if (dtype == 1)
      EXPECT_THAT(text, Not(HasSubstr("error")));
    else
      EXPECT_THAT(text,
                  HasSubstr("output 'y' is float32[x_dim0, 3], but the "
                            "signature says " +
                            std::string(dtype ? "int32[?, 3]" : "[?, 5]")));
  }
}

TEST(TensorFlowStated, FrozenGraphsMayBeChanged) {
  Graph graph;
  addInput(graph, "x", {2, 3});
  stateShape(addNode(graph, "Relu", "y", {"x"}), {9});
  EXPECT_THAT(importGraph(graph), Not(HasSubstr("error")));
}

TEST(TensorFlowInputs, OfOneNode) {
  SavedFiles files;
  auto &meta = *files.model.mutable_meta_graphs(0);
  Graph &graph = files.graph();
  graph.Clear();
  addNode(graph, "IdentityN", "pair");
  addNode(graph, "Sub", "y", {"pair:1", "pair"});
  auto &signature = (*meta.mutable_signatures())["serving_default"];
  signature.Clear();
  for (const char *name : {"a", "b"}) {
    auto &input = (*signature.mutable_inputs())[name];
    input.set_name(*name == 'a' ? "pair:0" : "pair:1");
    input.set_dtype(1);
    setShape(*input.mutable_shape(), {*name == 'a' ? 1 : 4});
  }
  (*signature.mutable_outputs())["y"].set_name("y:0");
  EXPECT_THAT(importTensorFlow(files.files()),
              HasSubstr("graph.sub %arg1, %arg0"));
}

TEST(TensorFlowInputs, WithoutAShape) {
  SavedFiles files;
  auto &meta = *files.model.mutable_meta_graphs(0);
  auto &signature = (*meta.mutable_signatures())["serving_default"];
  (*signature.mutable_inputs())["x"].clear_shape();
  EXPECT_THAT(importTensorFlow(files.files()),
              AllOf(HasSubstr("'x'"), HasSubstr("--shape")));
  // Graphs of old producers say nothing by a shape without dimensions.
  for (int producer : {23, 24}) {
    Graph graph;
    graph.mutable_versions()->set_producer(producer);
    addInput(graph, "x", {});
    addNode(graph, "Relu", "y", {"x"});
    std::string text = importGraph(graph);
    if (producer == 24)
      EXPECT_THAT(text, HasSubstr("tensor<f32>"));
    else
      EXPECT_THAT(text, AllOf(HasSubstr("'x'"), HasSubstr("--shape")));
  }
}

TEST(TensorFlowOutputs, ThatANodeHasNot) {
  Graph graph;
  addInput(graph, "x", {2});
  addNode(graph, "Relu", "y", {"x"});
  charonia::frontend::ImportOptions options;
  options.outputs = {"y:2"};
  EXPECT_THAT(importTensorFlow({{"graph.pb", bytesOf(graph)}}, options),
              AllOf(HasSubstr("output 'y:2' is not among the results of its "
                              "node"),
                    HasSubstr("name others with --outputs")));
}

TEST(TensorFlowRows, WhatOpenSizesCannotTell) {
  Graph graph;
  addInput(graph, "x", {-1, -1});
  addNode(graph, "MatrixDiagPart", "y", {"x"});
  EXPECT_THAT(importGraph(graph),
              AllOf(HasSubstr("cannot tell which is less, x_dim0 or x_dim1"),
                    HasSubstr("fix these sizes with --shape")));
  Graph outside;
  addInput(outside, "x", {2, 3});
  addInts(outside, "k", {5}, true);
  addInts(outside, "fill", {0}, true);
  addNode(outside, "MatrixDiagPartV3", "y", {"x", "k", "fill"});
  EXPECT_THAT(importGraph(outside),
              HasSubstr("diagonals 5 to 5 do not lie in a matrix of [2, 3]"));
}

TEST(TensorFlowRows, InputsAsManyAsTheNodeSays) {
  for (const char *op : {"AddN", "Pack"})
    for (int count : {2, 3}) {
      Graph graph;
      addInput(graph, "x", {2});
      auto &node = addNode(graph, op, "y", {"x", "x"});
      (*node.mutable_attributes())["N"].set_integer(count);
      std::string text = importGraph(graph);
      if (count == 2)
        EXPECT_THAT(text, Not(HasSubstr("error")));
      else
        EXPECT_THAT(text, HasSubstr("has 2 inputs, but its attribute N says "
                                    "3\n"));
    }
  Graph many;
  addInput(many, "x", {2});
  addNode(many, "AddN", "y", std::vector<std::string>(70000, "x"));
  EXPECT_THAT(importGraph(many),
              AllOf(HasSubstr("has 70000 inputs; up to 65536 are supported"),
                    HasSubstr("split it into several")));
  Graph none;
  addInput(none, "x", {2});
  addNode(none, "Identity", "y", {"^x"});
  EXPECT_THAT(importGraph(none), HasSubstr("'y' (Identity): has no input"));
}

TEST(TensorFlowRows, ErrorsAreToldOnceAndWithARemedy) {
  Graph graph;
  addInput(graph, "x", {2});
  addInput(graph, "z", {3});
  addNode(graph, "AddV2", "y", {"x", "z"});
  EXPECT_THAT(importGraph(graph), HasSubstr("remedy: "));
  Graph missing;
  addInput(missing, "x", {2});
  addNode(missing, "Pack", "y", {"x", "nobody", "nobody"});
  std::string text = importGraph(missing), what = "'nobody' is not defined";
  EXPECT_EQ(text.find(what), text.rfind(what)) << text;
}
