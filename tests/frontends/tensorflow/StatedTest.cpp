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
