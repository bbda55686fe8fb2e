// Segments whose numbers a file says.
#include "tests/frontends/tensorflow/Import.h"

using namespace charonia::test;
using ::testing::AllOf;
using ::testing::HasSubstr;
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
