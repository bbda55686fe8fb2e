// Models of TensorFlow: what is read, and what is refused in which words.
#include "tests/frontends/tensorflow/Import.h"
#include "frontends/tensorflow/Node.h"
#include "llvm/Support/Endian.h"

using namespace charonia;
using namespace charonia::test;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tf::proto::Graph;

// Tables.

static std::string problemOfTable(const std::string &bytes) {
  frontend::Problem problem;
  EXPECT_FALSE(tf::readTable(bytes, problem));
  return problem.what;
}

TEST(TensorFlowTable, KeysThatShareTheirBeginning) {
  std::map<std::string, std::string> entries;
  for (int i = 0; i < 300; ++i)
    entries["layer/" + std::to_string(i) + "/kernel"] =
        std::string(i, static_cast<char>(i));
  frontend::Problem problem;
  std::string file = tableFile(entries, 16);
  auto table = tf::readTable(file, problem);
  ASSERT_TRUE(table) << problem.what;
  ASSERT_EQ(table->size(), entries.size());
  for (const auto &[key, value] : entries)
    EXPECT_EQ(table->at(key), value);
}

TEST(TensorFlowTable, KnownChecksum) {
  // RFC 3720, B.4.
  EXPECT_EQ(tf::crc32c(std::string(32, 0)), 0x8a9136aau);
  EXPECT_EQ(tf::crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(tf::crc32c("56789", tf::crc32c("1234")), 0xe3069283u);
}

TEST(TensorFlowTable, CompressedBlocks) {
  std::string file = tableFile({{"a", "1"}, {"b", "2"}});
  // Behind the first block: two entries of 5 bytes, a restart and their number.
  constexpr size_t kind = 2 * 5 + 8;
  file[kind] = 1;
  EXPECT_THAT(problemOfTable(file), HasSubstr("checksum differs"));
  uint32_t crc = tf::maskCrc(tf::crc32c(file.substr(0, kind + 1)));
  llvm::support::endian::write32le(&file[kind + 1], crc);
  EXPECT_THAT(problemOfTable(file), HasSubstr("is compressed"));
}

TEST(TensorFlowTable, DamageIsFound) {
  std::string file = tableFile({{"a", "1"}, {"b", "2"}});
  EXPECT_THAT(problemOfTable(""), HasSubstr("does not end as one does"));
  EXPECT_THAT(problemOfTable(file.substr(0, file.size() - 1)),
              HasSubstr("does not end as one does"));
  std::string flipped = file;
  flipped[4] ^= 1;
  EXPECT_THAT(problemOfTable(flipped), HasSubstr("checksum differs"));
  std::string outside = file;
  // Behind the place of the block that nothing is read of.
  outside.replace(file.size() - 46, 2, "\xff\x7f");
  EXPECT_THAT(problemOfTable(outside), HasSubstr("outside of itself"));
  // Any one byte: an error or the same table, never a crash.
  for (size_t i = 0; i < file.size(); ++i)
    for (char bit : {1, 64, -128}) {
      std::string damaged = file;
      damaged[i] ^= bit;
      frontend::Problem problem;
      if (auto table = tf::readTable(damaged, problem))
        EXPECT_EQ(*table, *tf::readTable(file, problem)) << i;
      else
        EXPECT_FALSE(problem.what.empty()) << i;
    }
}

// SavedModels.

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

// Text.

static std::string importText(const std::string &text) {
  return importTensorFlow({{"graph.pbtxt", text}});
}

TEST(TensorFlowText, Graph) {
  std::string text = R"(
    # A comment.
    node { name: "x" op: "Placeholder"
           attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: -1 } dim < size: 2 > } } } }
    node { name: "c" op: 'Const';
      attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value", value { tensor {
        dtype: DT_FLOAT tensor_shape { dim { size: 2 } }
        tensor_content: "\000\000\200?" "\x00\x00\x00\x40" } } }
      experimental_debug_info { original_node_names: ["a", "b"] unknown: -1.5e3 [some.ext] { x: 1 } } }
    node { name: "y" op: "Mul" input: ["x", "c"] attr { key: "T" value { type: DT_FLOAT } } }
    versions { producer: 0x19 }
  )";
  EXPECT_THAT(importText(text),
              AllOf(HasSubstr("dense<[1.000000e+00, 2.000000e+00]>"),
                    HasSubstr("graph.name = \"y\""), HasSubstr("x_dim0"),
                    Not(HasSubstr("error"))));
  // Cut anywhere: a message or a module, never a crash.
  for (size_t size = 0; size < text.size(); size += 3)
    importText(text.substr(0, size));
}

TEST(TensorFlowText, WhatIsWrongAndWhere) {
  EXPECT_THAT(importText("node {\n name: x\n}"),
              HasSubstr("line 2: field 'name' has a value of another kind"));
  EXPECT_THAT(importText("node { name: \"x"), HasSubstr("a text does not end"));
  EXPECT_THAT(importText("node {"), HasSubstr("it ends early"));
  EXPECT_THAT(importText("node"), HasSubstr("field 'node' has no value"));
  EXPECT_THAT(importText("node { attr { value { i: 7x } } }"),
              HasSubstr("'7x' is no value of field 'i'"));
  std::string deep;
  for (int i = 0; i < 100; ++i)
    deep += "a {";
  EXPECT_THAT(importText(deep), HasSubstr("over 64 deep"));
}

// Switch, Merge and loops of them.

TEST(TensorFlowControlFlow, ManyMerges) {
  // Each imports a part of the graph: what was imported is not looked at again.
  Graph graph;
  addInput(graph, "x", {2});
  addInts(graph, "n", {1}, true);
  auto &test = addNode(graph, "Equal", "p", {"n", "n"});
  (*test.mutable_attributes())["T"].set_type(3);
  std::vector<std::string> merges;
  for (int i = 0; i < 6000; ++i) {
    std::string number = std::to_string(i);
    addNode(graph, "Switch", "s" + number, {"x", "p"});
    addNode(graph, "Neg", "f" + number, {"s" + number});
    addNode(graph, "Abs", "t" + number, {"s" + number + ":1"});
    merges.push_back("m" + number);
    addNode(graph, "Merge", merges.back(), {"f" + number, "t" + number});
  }
  addNode(graph, "AddN", "y", merges);
  EXPECT_THAT(importGraph(graph), Not(HasSubstr("error")));
}

TEST(TensorFlowControlFlow, MergesOfNothing) {
  Graph graph;
  addInput(graph, "x", {2});
  addNode(graph, "Relu", "a", {"x"});
  addNode(graph, "Merge", "y", {"a", "x"});
  EXPECT_THAT(importGraph(graph),
              HasSubstr("nothing in the graph says which of them there is"));
}

/// A loop that adds 1 to variable "x" as often as variable "i" is below the
/// limit.
static Graph loopGraph(int limit) {
  Graph graph;
  addInput(graph, "in", {2});
  addInts(graph, "zero", {0}, true);
  addInts(graph, "one", {1}, true);
  addInts(graph, "limit", {limit}, true);
  for (auto [name, source] : {std::pair("i", "zero"), {"x", "in"}}) {
    std::string n = name;
    addNode(graph, "Enter", n + "/enter", {source});
    addNode(graph, "Merge", n + "/merge", {n + "/enter", n + "/next"});
    addNode(graph, "Switch", n + "/switch", {n + "/merge", "go"});
    addNode(graph, "Exit", n + "/exit", {n + "/switch"});
  }
  addNode(graph, "Less", "less", {"i/merge", "limit/enter"});
  for (const char *name : {"one", "limit"})
    addNode(graph, "Enter", std::string(name) + "/enter", {name});
  addNode(graph, "LoopCond", "go", {"less"});
  addNode(graph, "Add", "i/add", {"i/switch:1", "one/enter"});
  auto &cast = addNode(graph, "Cast", "f", {"i/switch:1"});
  (*cast.mutable_attributes())["DstT"].set_type(1);
  addNode(graph, "Add", "x/add", {"x/switch:1", "f"});
  addNode(graph, "NextIteration", "i/next", {"i/add"});
  addNode(graph, "NextIteration", "x/next", {"x/add"});
  addNode(graph, "Identity", "y", {"x/exit"});
  return graph;
}

TEST(TensorFlowControlFlow, Loops) {
  std::string three = importGraph(loopGraph(3));
  EXPECT_EQ(llvm::StringRef(three).count("graph.add "), 2u + 3u) << three;
  EXPECT_THAT(importGraph(loopGraph(1 << 20)), HasSubstr("takes over"));
  Graph broken = loopGraph(3);
  for (auto &node : *broken.mutable_nodes())
    if (node.name() == "x/enter")
      node.set_op("Identity");
  EXPECT_THAT(importGraph(broken),
              HasSubstr("ends a loop whose parts do not fit together"));
}

// Variables that are written.

/// The function of SavedFiles with a node that adds to the variable: before it
/// is read, behind it, or in no order.
static std::string importWriting(const std::string &readWaitsFor,
                                 const std::string &writeWaitsFor) {
  SavedFiles files;
  auto &function = *files.graph().mutable_library()->mutable_functions(0);
  auto &write = *function.add_nodes();
  write.set_name("write");
  write.set_op("AssignAddVariableOp");
  for (const std::string &input : {std::string("w"), std::string("x")})
    write.add_inputs(input);
  if (!writeWaitsFor.empty())
    write.add_inputs(writeWaitsFor);
  if (!readWaitsFor.empty())
    function.mutable_nodes(0)->add_inputs(readWaitsFor);
  return importTensorFlow(files.files());
}

TEST(TensorFlowVariables, WrittenBeforeTheyAreRead) {
  const char *what = "writes variable 'w' before it is read";
  EXPECT_THAT(importWriting("^write", ""), HasSubstr(what));
  EXPECT_THAT(importWriting("", ""), HasSubstr(what));
  EXPECT_THAT(importWriting("", "^read"), HasSubstr("graph.matmul"));
  EXPECT_THAT(importWriting("", "^product"), HasSubstr("graph.matmul"));
}

TEST(TensorFlowVariables, WrittenByAStepBeforeTheNext) {
  // Each step reads first, but for what the step before has written.
  for (bool isWritten : {false, true}) {
    Graph graph = loopGraph(3);
    addNode(graph, "VarHandleOp", "v");
    auto &enter = addNode(graph, "Enter", "v/enter", {"v"});
    (*enter.mutable_attributes())["is_constant"].set_flag(true);
    addNode(graph, "ReadVariableOp", "read", {"v/enter"});
    addNode(graph, "AssignAddVariableOp", "write", {"v/enter", "f", "^read"});
    for (auto &node : *graph.mutable_nodes())
      if (node.name() == "x/add") {
        node.set_inputs(1, "read");
        if (isWritten)
          node.add_inputs("^write");
      }
    std::string text = importGraph(graph);
    const char *what = "writes variable 'v' before it is read";
    EXPECT_EQ(text.find(what) != std::string::npos, isWritten) << text;
  }
}

/// Variables that are read and written one after the other; of the one of
/// number `late` nothing says that it is read first.
static std::string importWriters(int count, int late) {
  Graph graph;
  addInput(graph, "x", {4});
  std::string last;
  for (int i = 0; i < count; ++i) {
    std::string number = std::to_string(i);
    auto &variable = addNode(graph, "VarHandleOp", "v" + number);
    (*variable.mutable_attributes())["dtype"].set_type(1);
    auto &read = addNode(graph, "ReadVariableOp", "r" + number, {"v" + number});
    auto &write = addNode(graph, "AssignAddVariableOp", "w" + number,
                          {"v" + number, "x"});
    if (!last.empty()) {
      write.add_inputs(last);
      read.add_inputs(last);
    }
    if (i != late)
      write.add_inputs("^r" + number);
    last = "^w" + number;
  }
  auto &sum = addNode(graph, "AddN", "y", {last});
  for (int i = 0; i < count; ++i)
    sum.add_inputs("r" + std::to_string(i));
  return importGraph(graph);
}

TEST(TensorFlowVariables, ManyWriters) {
  // More than are looked at in one walk, which none of takes long.
  for (int late : {0, 63, 64, 199})
    EXPECT_THAT(importWriters(200, late),
                HasSubstr("writes variable 'v" + std::to_string(late) +
                          "' before it is read"));
  EXPECT_THAT(importWriters(20000, -1), Not(HasSubstr("before it is read")));
}

TEST(TensorFlowVariables, ManyReadersBehindMerges) {
  // Each Merge brings a read of its own, of a variable that is written at last,
  // or (`late`) before one of the reads.
  auto import = [](int count, int late) {
    Graph graph;
    addInput(graph, "x", {2});
    addInts(graph, "n", {1}, true);
    auto &test = addNode(graph, "Equal", "p", {"n", "n"});
    (*test.mutable_attributes())["T"].set_type(3);
    addNode(graph, "VarHandleOp", "v");
    std::vector<std::string> merges, writer = {"v", "x"};
    for (int i = 0; i < count; ++i) {
      std::string number = std::to_string(i), read = "r" + number;
      addNode(graph, "Switch", "s" + number, {"x", "p"});
      addNode(graph, "ReadVariableOp", read, {"v", "^s" + number});
      addNode(graph, "Add", "t" + number, {"s" + number + ":1", read});
      merges.push_back("m" + number);
      addNode(graph, "Merge", merges.back(), {"s" + number, "t" + number});
      if (i != late)
        writer.push_back("^" + read);
    }
    addNode(graph, "AssignAddVariableOp", "write", writer);
    merges.push_back("^write");
    addNode(graph, "AddN", "y", merges);
    return importGraph(graph);
  };
  const char *what = "writes variable 'v' before it is read";
  for (int late : {0, 199})
    EXPECT_THAT(import(200, late), HasSubstr(what));
  EXPECT_THAT(import(20000, -1), Not(HasSubstr(what)));
}

TEST(TensorFlowVariables, WrittenBehindACall) {
  SavedFiles files;
  Graph &graph = files.graph();
  auto &outer = *graph.mutable_library()->mutable_functions(0);
  auto &inner = *graph.mutable_library()->add_functions();
  inner.mutable_signature()->set_name("writer");
  inner.mutable_signature()->add_inputs()->set_name("v");
  Graph body;
  addNode(body, "AssignVariableOp", "write", {"v", "v"});
  *inner.mutable_nodes() = body.nodes();
  Graph around;
  auto &call = addNode(around, "StatefulPartitionedCall", "call", {"w"});
  (*call.mutable_attributes())["f"].mutable_function()->set_name("writer");
  *outer.add_nodes() = call;
  outer.mutable_nodes(0)->add_inputs("^call");
  EXPECT_THAT(importTensorFlow(files.files()),
              HasSubstr("writes variable 'w' before it is read"));
}

// Graphs.

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

/// A list along dimension 1 of [batch, length, 6], as recurrent layers have it.
TEST(TensorFlowGraph, ListsOfOpenLength) {
  Graph graph;
  addInput(graph, "sequence", {-1, -1, 6});
  addInts(graph, "order", {1, 0, 2});
  addInts(graph, "shape", {-1, 6});
  addNode(graph, "Transpose", "steps", {"sequence", "order"});
  addNode(graph, "TensorListFromTensor", "list", {"steps", "shape"});
  addNode(graph, "TensorListStack", "y", {"list", "shape"});
  EXPECT_THAT(importGraph(graph),
              AllOf(HasSubstr("makes a list along size sequence_dim1, which is "
                              "open"),
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
