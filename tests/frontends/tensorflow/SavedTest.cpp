// What SavedModels hold beside the graph that is served, and what functions do
// to variables.
#include "tests/frontends/tensorflow/Import.h"

using namespace charonia::test;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tf::proto::Graph;

TEST(TensorFlowSavedModel, GraphsByTheirTags) {
  // The first one, with a tag more, has another product.
  auto import = [](bool hasPlain) {
    SavedFiles files;
    auto &metas = *files.model.mutable_meta_graphs();
    auto plain = metas[0];
    auto &other = *metas.Mutable(0);
    other.mutable_info()->add_tags("tpu");
    other.mutable_graph()
        ->mutable_library()
        ->mutable_functions(0)
        ->mutable_nodes(1)
        ->set_op("Nobodys");
    auto copy = other;
    *metas.Add() = hasPlain ? plain : copy;
    return importTensorFlow(files.files());
  };
  EXPECT_THAT(import(true), HasSubstr("graph.matmul"));
  EXPECT_THAT(import(false),
              AllOf(HasSubstr("has graphs with the tags {serve, tpu}, {serve, "
                              "tpu}"),
                    HasSubstr("export one graph with the tag")));
  SavedFiles only;
  only.model.mutable_meta_graphs(0)->mutable_info()->add_tags("gpu");
  EXPECT_THAT(importTensorFlow(only.files()), HasSubstr("graph.matmul"));
}

/// A graph of TF1 whose variable two savers restore, the second under a key
/// that is not stored.
static std::string importSavers(const std::string &restore,
                                const std::string &secondKey) {
  SavedFiles files;
  files.model.mutable_meta_graphs(0)->clear_objects();
  Graph &graph = files.graph();
  for (std::string name : {"save", "save_1"}) {
    auto &keys = addNode(graph, "Const", name + "/names");
    auto *tensor = (*keys.mutable_attributes())["value"].mutable_tensor();
    tensor->set_dtype(7);
    tensor->mutable_shape()->add_dims()->set_size(1);
    tensor->add_texts(name == "save" ? "w/value" : secondKey);
    addNode(graph, "RestoreV2", name + "/RestoreV2",
            {name + "/names", name + "/names", name + "/names"});
    addNode(graph, "Identity", name + "/Identity", {name + "/RestoreV2"});
    addNode(graph, "AssignVariableOp", name + "/Assign",
            {"w", name + "/Identity"});
    addNode(graph, "NoOp", name + "/restore_all", {"^" + name + "/Assign"});
    auto &parts = addNode(graph, "Const", name + "/parts");
    *(*parts.mutable_attributes())["value"].mutable_tensor() = *tensor;
    (*parts.mutable_attributes())["value"].mutable_tensor()->set_texts(0, "");
    for (auto &node : *graph.mutable_nodes())
      if (node.name() == name + "/RestoreV2")
        node.set_inputs(2, name + "/parts");
  }
  if (!restore.empty())
    files.model.mutable_meta_graphs(0)->mutable_saver()->set_restore(restore);
  return importTensorFlow(files.files());
}

TEST(TensorFlowSavedModel, SaversByTheirNames) {
  EXPECT_THAT(importSavers("save/restore_all", "gone"),
              AllOf(HasSubstr("graph.matmul"), Not(HasSubstr("error"))));
  EXPECT_THAT(importSavers("save_1/restore_all", "gone"),
              HasSubstr("variable 'gone' is not among the stored ones"));
  EXPECT_THAT(importSavers("", "gone"),
              HasSubstr("restores variable 'w' as 'w/value' and as 'gone'"));
  EXPECT_THAT(importSavers("", "w/value"), HasSubstr("graph.matmul"));
}

TEST(TensorFlowSavedModel, NodesWithoutNames) {
  Graph graph;
  addInput(graph, "x", {2});
  addNode(graph, "Relu", "", {"x"});
  EXPECT_THAT(importGraph(graph), HasSubstr("has a node Relu without a name"));
}

// Variables that functions write.

TEST(TensorFlowVariables, WritesThatAreLeftOut) {
  SavedFiles files;
  auto &function = *files.graph().mutable_library()->mutable_functions(0);
  Graph body;
  addNode(body, "AssignAddVariableOp", "write", {"w", "read:value:0", "^read"});
  *function.add_nodes() = body.nodes(0);
  EXPECT_THAT(importTensorFlow(files.files()),
              AllOf(HasSubstr("writes to variables are left out, so that every "
                              "run begins with what is stored: 'w'"),
                    HasSubstr("graph.matmul")));
  EXPECT_THAT(importTensorFlow(SavedFiles().files()),
              Not(HasSubstr("left out")));
}

TEST(TensorFlowVariables, OfOneCallUnderTwoNames) {
  SavedFiles files;
  Graph &graph = files.graph();
  auto &function = *graph.mutable_library()->mutable_functions(0);
  function.mutable_signature()->add_inputs()->set_name("again");
  Graph body;
  addNode(body, "AssignAddVariableOp", "write", {"again", "x"});
  *function.add_nodes() = body.nodes(0);
  for (auto &node : *graph.mutable_nodes())
    if (node.name() == "call")
      node.add_inputs("w");
  auto &bound = (*files.model.mutable_meta_graphs(0)
                      ->mutable_objects()
                      ->mutable_functions())["f"];
  bound.add_bound(0);
  EXPECT_THAT(importTensorFlow(files.files()),
              HasSubstr("writes variable 'w' before it is read"));
}

TEST(TensorFlowVariables, WrittenOnASideThatIsNotTaken) {
  auto import = [](bool isTraining) {
    Graph graph;
    addInput(graph, "x", {2});
    auto &decider = addInts(graph, "training", {isTraining}, true);
    auto *tensor = (*decider.mutable_attributes())["value"].mutable_tensor();
    tensor->set_dtype(10);
    tensor->clear_ints();
    tensor->add_bools(isTraining);
    auto &variable = addNode(graph, "VarHandleOp", "v");
    (*variable.mutable_attributes())["dtype"].set_type(1);
    addNode(graph, "Switch", "sides", {"x", "training"});
    addNode(graph, "Identity", "side", {"sides:1"});
    addNode(graph, "AssignAddVariableOp", "write", {"v", "side"});
    addNode(graph, "Identity", "written", {"side", "^write"});
    addNode(graph, "Merge", "y", {"sides", "written"});
    addNode(graph, "ReadVariableOp", "read", {"v"});
    addNode(graph, "AddN", "sum", {"y", "read"});
    return importGraph(graph);
  };
  const char *what = "writes variable 'v' before it is read";
  EXPECT_THAT(import(true), HasSubstr(what));
  EXPECT_THAT(import(false), Not(HasSubstr(what)));
}

// Results by the names that functions give them.

TEST(TensorFlowFunctions, SidesOfASwitch) {
  for (bool isTaken : {false, true}) {
    SavedFiles files;
    auto &function = *files.graph().mutable_library()->mutable_functions(0);
    Graph body;
    auto &test = addNode(body, "Const", "p");
    auto *tensor = (*test.mutable_attributes())["value"].mutable_tensor();
    tensor->set_dtype(10);
    tensor->mutable_shape();
    tensor->add_bools(isTaken);
    addNode(body, "Switch", "sides", {"x", "p:output:0"});
    addNode(body, "Relu", "relu", {"sides:output_true:0"});
    addNode(body, "Tanh", "tanh", {"sides:output_false:0"});
    addNode(body, "Merge", "merged", {"tanh:y:0", "relu:activations:0"});
    for (const auto &node : body.nodes())
      *function.add_nodes() = node;
    function.mutable_nodes(1)->set_inputs(0, "merged:output:0");
    std::string text = importTensorFlow(files.files());
    EXPECT_EQ(text.find("graph.tanh") == std::string::npos, isTaken) << text;
    EXPECT_THAT(text, HasSubstr("graph.matmul"));
  }
}
