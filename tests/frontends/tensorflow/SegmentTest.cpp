// Rows that numbers divide: segments, and parts that are joined again.
#include "tests/frontends/tensorflow/Import.h"

using namespace charonia::test;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tf::proto::Graph;

static std::string importSegments(const char *op,
                                  const std::vector<int32_t> &numbers) {
  Graph graph;
  addInput(graph, "x", {static_cast<int64_t>(numbers.size()), 3});
  addInts(graph, "ids", numbers);
  addNode(graph, op, "y", {"x", "ids"});
  return importGraph(graph);
}

TEST(TensorFlowSegments, TablesOfSizesAreBounded) {
  // The sizes of two thousand million segments took 16 GB.
  for (const char *op : {"SegmentMean", "SegmentMax"})
    EXPECT_THAT(importSegments(op, {0, 1, 2000000000}),
                AllOf(HasSubstr("'y'"), HasSubstr("2000000001")))
        << op;
}

TEST(TensorFlowSegments, NumbersRise) {
  EXPECT_THAT(importSegments("SegmentSum", {-1, 0, 1}),
              AllOf(HasSubstr("has a segment of number -1"),
                    HasSubstr("remedy: number the segments from 0 on")));
  EXPECT_THAT(importSegments("SegmentSum", {1, 0, 1}),
              AllOf(HasSubstr("has numbers of segments that are not sorted"),
                    HasSubstr("unsorted_segment_sum")));
}

/// Rows of a table that are looked up in two parts, and joined. Positions count
/// from `first`.
static Graph partitioned(int first) {
  Graph graph;
  addInput(graph, "x", {5, 3});
  addInput(graph, "which", {-1});
  auto &cast = *addNode(graph, "Cast", "parts", {"which"}).mutable_attributes();
  cast["SrcT"].set_type(1);
  cast["DstT"].set_type(3);
  addNode(graph, "Size", "size", {"which"});
  addInts(graph, "first", {first}, true);
  addInts(graph, "one", {1}, true);
  addNode(graph, "AddV2", "end", {"size", "first"});
  addNode(graph, "Range", "range", {"first", "end", "one"});
  for (const char *name : {"places", "rows"}) {
    auto &node = addNode(graph, "DynamicPartition", name,
                         {*name == 'p' ? "range" : "parts", "parts"});
    (*node.mutable_attributes())["num_partitions"].set_integer(2);
  }
  addNode(graph, "Gather", "a", {"x", "rows"});
  addNode(graph, "Gather", "b", {"x", "rows:1"});
  return graph;
}

TEST(TensorFlowParts, AreJoinedWhereTheyWere) {
  Graph graph = partitioned(0);
  addNode(graph, "DynamicStitch", "y", {"places", "places:1", "a", "b"});
  EXPECT_THAT(importGraph(graph),
              AllOf(HasSubstr("tensor<?x3xf32"), Not(HasSubstr("error"))));
}

TEST(TensorFlowParts, AreNoTensorsElse) {
  const char *const places = "joins rows at places that depend on data";
  Graph moved = partitioned(1);
  addNode(moved, "DynamicStitch", "y", {"places", "places:1", "a", "b"});
  EXPECT_THAT(importGraph(moved),
              AllOf(HasSubstr("'y' (DynamicStitch)"), HasSubstr(places)));
  for (std::vector<std::string> inputs :
       {std::vector<std::string>{"places:1", "places", "a", "b"},
        {"places", "a"},
        {"places", "places", "a", "a"}}) {
    Graph graph = partitioned(0);
    addNode(graph, "DynamicStitch", "y", inputs);
    EXPECT_THAT(importGraph(graph), HasSubstr(places));
  }
  Graph read = partitioned(0);
  addNode(read, "Relu", "y", {"a"});
  EXPECT_THAT(importGraph(read),
              AllOf(HasSubstr("inputs: a: rows of part 0"),
                    HasSubstr("is rows that data chooses (DynamicPartition)")));
}

TEST(TensorFlowParts, JoinedByConstants) {
  for (int last : {1, 2, -1}) {
    Graph graph;
    addInput(graph, "x", {2, 3});
    addInts(graph, "here", {0}, true);
    addInts(graph, "there", {last, 2});
    addInput(graph, "row", {3});
    addNode(graph, "DynamicStitch", "y", {"here", "there", "row", "x"});
    std::string text = importGraph(graph);
    if (last == 1)
      EXPECT_THAT(text, HasSubstr("tensor<3x3xf32"));
    else
      EXPECT_THAT(text, HasSubstr(last == 2 ? "leaves rows open"
                                            : "has a row at place -1"));
  }
}
