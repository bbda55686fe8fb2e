// What SavedModels hold beside the graph that is served, and what functions do
// to variables.
#include "tests/frontends/tensorflow/Import.h"

using namespace charonia;
using namespace charonia::test;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tf::proto::Graph;

TEST(TensorFlowSavedModel, VariableBehindACall) {
  std::string text = importTensorFlow(SavedFiles().files());
  EXPECT_THAT(text, AllOf(HasSubstr("graph.matmul"),
                          HasSubstr("1.000000e+00, 2.000000e+00"),
                          Not(HasSubstr("error"))));
}

TEST(TensorFlowSavedModel, VariablesThatAreNotThere) {
  SavedFiles missing;
  missing.trackable.mutable_nodes(0)->mutable_attributes(0)->set_key("gone");
  EXPECT_THAT(importTensorFlow(missing.files()),
              HasSubstr("variable 'gone' is not among the stored ones"));
  SavedFiles unbound;
  unbound.model.mutable_meta_graphs(0)
      ->mutable_objects()
      ->mutable_functions()
      ->clear();
  EXPECT_THAT(importTensorFlow(unbound.files()),
              HasSubstr("nothing in the model says where variable 'w' is "
                        "stored"));
  SavedFiles outside;
  (*outside.model.mutable_meta_graphs(0)
        ->mutable_objects()
        ->mutable_functions())["f"]
      .set_bound(0, 7);
  EXPECT_THAT(importTensorFlow(outside.files()),
              HasSubstr("captures an object that is not there"));
  SavedFiles shard;
  auto files = shard.files();
  files.erase("variables/variables.data-00000-of-00001");
  EXPECT_THAT(importTensorFlow(files),
              HasSubstr("variables.data-00000-of-00001' is not there"));
}

TEST(TensorFlowSavedModel, VariablesThatLie) {
  SavedFiles crc;
  crc.variable.set_crc(1);
  EXPECT_THAT(importTensorFlow(crc.files()),
              HasSubstr("variable 'w/value' has bytes whose checksum differs"));
  SavedFiles size;
  size.variable.set_size(20);
  EXPECT_THAT(importTensorFlow(size.files()),
              HasSubstr("has 20 bytes, but its shape and type take 24"));
  SavedFiles far;
  far.variable.set_offset(int64_t(1) << 62);
  EXPECT_THAT(importTensorFlow(far.files()),
              HasSubstr("lies outside of its file"));
  SavedFiles negative;
  negative.variable.mutable_shape()->mutable_dims(0)->set_size(-2);
  EXPECT_THAT(importTensorFlow(negative.files()),
              HasSubstr("has a negative dimension, -2"));
  SavedFiles text;
  text.variable.set_dtype(7);
  EXPECT_THAT(importTensorFlow(text.files()),
              HasSubstr("is of string, which is not supported"));
  SavedFiles slices;
  slices.variable.add_slices();
  EXPECT_THAT(importTensorFlow(slices.files()),
              HasSubstr("has parts of another rank"));
  slices.variable.mutable_slices(0)->add_extents()->set_start(3);
  slices.variable.mutable_slices(0)->add_extents();
  EXPECT_THAT(importTensorFlow(slices.files()),
              HasSubstr("has a part that lies outside of it"));
  slices.variable.clear_slices();
  slices.variable.add_slices()->add_extents()->set_length(1);
  slices.variable.mutable_slices(0)->add_extents();
  EXPECT_THAT(importTensorFlow(slices.files()),
              HasSubstr("is not among the stored ones"));
}

TEST(TensorFlowSavedModel, Signatures) {
  SavedFiles other;
  auto &signatures = *other.model.mutable_meta_graphs(0)->mutable_signatures();
  signatures["classify"] = signatures["serving_default"];
  signatures.erase("serving_default");
  signatures["__saved_model_init_op"] = signatures["classify"];
  // The only one is taken.
  EXPECT_THAT(importTensorFlow(other.files()), HasSubstr("graph.matmul"));
  frontend::ImportOptions wrong, right;
  wrong.signature = "classif";
  EXPECT_THAT(importTensorFlow(other.files(), wrong),
              HasSubstr("has no signature 'classif'; it has classify\n  "
                        "remedy: name one with --signature"));
  signatures["embed"] = signatures["classify"];
  EXPECT_THAT(
      importTensorFlow(other.files()),
      HasSubstr("has no signature 'serving_default'; it has classify, embed"));
  right.signature = "embed";
  EXPECT_THAT(importTensorFlow(other.files(), right),
              HasSubstr("graph.matmul"));
  right.outputs = {"call"};
  EXPECT_THAT(importTensorFlow(other.files(), right),
              HasSubstr("use --signature instead of --inputs and --outputs"));
  signatures.clear();
  EXPECT_THAT(importTensorFlow(other.files()),
              HasSubstr("has no signature 'serving_default', and no other"));
  SavedFiles untagged;
  untagged.model.mutable_meta_graphs(0)->mutable_info()->set_tags(0, "train");
  EXPECT_THAT(importTensorFlow(untagged.files()),
              HasSubstr("has no graph with the tag \"serve\""));
}

TEST(TensorFlowSavedModel, Functions) {
  SavedFiles recursive;
  auto &function = *recursive.graph().mutable_library()->mutable_functions(0);
  auto &call = *function.mutable_nodes(1);
  call.set_op("PartitionedCall");
  call.set_inputs(1, "w");
  (*call.mutable_attributes())["f"].mutable_function()->set_name("f");
  (*function.mutable_results())["y"] = "product:output:0";
  EXPECT_THAT(importTensorFlow(recursive.files()),
              HasSubstr("functions call each other over 64 deep"));
  SavedFiles unknown;
  (*unknown.graph().mutable_nodes(2)->mutable_attributes())["f"]
      .mutable_function()
      ->set_name("g");
  EXPECT_THAT(importTensorFlow(unknown.files()),
              HasSubstr("calls function 'g', which is not in the model"));
  SavedFiles fewer;
  fewer.graph().mutable_nodes(2)->mutable_inputs()->RemoveLast();
  EXPECT_THAT(importTensorFlow(fewer.files()),
              HasSubstr("gives 1 arguments to function 'f', which has 2"));
}

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
