// Switch, Merge and loops of them, and variables that are written.
#include "tests/frontends/tensorflow/Import.h"

using namespace charonia::test;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tf::proto::Graph;

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
  EXPECT_THAT(importGraph(loopGraph(1 << 20)), HasSubstr("graph.iterate"));
  EXPECT_THAT(importGraph(loopGraph((1 << 20) + 1)),
              HasSubstr("takes 1048577 steps; up to 2^20 are supported"));
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

TEST(TensorFlowVariables, WrittenByOperatorsOfOtherNames) {
  // What it takes is said by its definition; without one it may be a variable.
  auto import = [](int type) {
    SavedFiles files;
    auto &function = *files.graph().mutable_library()->mutable_functions(0);
    auto &node = *function.add_nodes();
    node.set_name("frob");
    node.set_op("Frobnicate");
    node.add_inputs("w");
    function.mutable_nodes(0)->add_inputs("^frob");
    if (type) {
      auto &definition = *files.model.mutable_meta_graphs(0)
                              ->mutable_info()
                              ->mutable_definitions()
                              ->add_operators();
      definition.set_name("Frobnicate");
      definition.add_inputs()->set_type(type);
    }
    return importTensorFlow(files.files());
  };
  const char *what = "writes variable 'w' before it is read";
  constexpr int float32 = 1, resource = 20;
  EXPECT_THAT(import(0), HasSubstr(what));
  EXPECT_THAT(import(resource), HasSubstr(what));
  EXPECT_THAT(import(float32), Not(HasSubstr("error")));
}

TEST(TensorFlowVariables, WhatIsNoneIsNotWritten) {
  // A function that gives its argument to an operator of no definition.
  Graph graph, body;
  addInput(graph, "x", {2});
  auto &function = *graph.mutable_library()->add_functions();
  function.mutable_signature()->set_name("f");
  function.mutable_signature()->add_inputs()->set_name("a");
  function.mutable_signature()->add_outputs()->set_name("b");
  (*function.mutable_results())["b"] = "r:0";
  addNode(body, "Assert", "check", {"a", "a"});
  addNode(body, "Relu", "r", {"a", "^check"});
  *function.mutable_nodes() = body.nodes();
  addNode(graph, "Neg", "n", {"x"});
  auto &call = addNode(graph, "PartitionedCall", "y", {"n"});
  (*call.mutable_attributes())["f"].mutable_function()->set_name("f");
  EXPECT_THAT(importGraph(graph),
              AllOf(HasSubstr("graph.max"), Not(HasSubstr("writes"))));
}
