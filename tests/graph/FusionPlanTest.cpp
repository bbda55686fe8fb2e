// What it takes to find that kernels would depend on each other in a cycle.
#include "graph/analysis/FusionPlan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace charonia::graph;

namespace {

/// A plan of a body over %x, %y and %w, which returns %h.
class FusionSearch : public testing::Test {
protected:
  FusionSearch() { context.loadDialect<GraphDialect, func::FuncDialect>(); }
  struct Plan {
    unsigned groups;
    uint64_t searched;
  };
  Plan plan(const std::string &body, FusionLimits limits = {}) {
    std::string text = "func.func @main(%x: " + type + ", %y: " + type +
                       ", %w: " + type + ") -> " + type + " {\n" + body +
                       "return %h : " + type + "\n}";
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    auto function = cast<func::FuncOp>(module->getBody()->front());
    FusionPlan plan(function.getBody().front(), {}, limits);
    return {unsigned(plan.order().size()), plan.getSearched()};
  }
  std::string binary(const std::string &result, const std::string &op,
                     const std::string &a, const std::string &b) {
    return result + " = graph." + op + " " + a + ", " + b + " : (" + type +
           ", " + type + ") -> " + type + "\n";
  }
  /// Steps of a recurrence that all read one mask, and the two steps before.
  std::string recurrence(unsigned steps) {
    std::string mask = "tensor<16x16xi1>";
    std::string body = "%mask = graph.compare lt %x, %y : (" + type + ", " +
                       type + ") -> " + mask + "\n",
                first = "%x", second = "%y";
    for (unsigned i = 0; i < steps; ++i) {
      std::string n = std::to_string(i),
                  after = i + 1 == steps ? "%h" : "%h" + n;
      body += binary("%m" + n, "matmul", second, "%w");
      body += "%s" + n + " = graph.select %mask, %m" + n + ", %y : (" + mask +
              ", " + type + ", " + type + ") -> " + type + "\n";
      body += binary(after, "add", "%s" + n, first);
      first = second;
      second = after;
    }
    return body;
  }
  /// A chain whose first half is read again, in reverse, by the second.
  std::string skips(unsigned depth) {
    std::string body, before = "%x";
    for (unsigned i = 0; i < 2 * depth; ++i) {
      std::string n = std::to_string(i),
                  skip = "%s" + std::to_string(std::min(i, 2 * depth - 1 - i)),
                  after = i + 1 == 2 * depth ? "%h" : "%h" + n;
      if (i < depth)
        body += binary(skip, "add", "%x", "%y");
      body += binary("%m" + n, "matmul", before, i < depth ? skip : "%w");
      body += binary(after, "add", "%m" + n, i < depth ? "%y" : skip);
      before = after;
    }
    return body;
  }

  std::string type = "tensor<16x16xf32>";
  MLIRContext context;
};

// Depth first, each step's search went through half of the steps before it.
TEST_F(FusionSearch, WhatAllStepsReadIsAStepAway) {
  Plan few = plan(recurrence(150)), many = plan(recurrence(300));
  EXPECT_EQ(many.groups, 300u); // the first has the mask as a result
  EXPECT_GT(few.searched, 0u);
  EXPECT_LE(many.searched, 2 * few.searched + 16);
  EXPECT_LE(many.searched, 10 * many.groups);
}

// Where paths are long, all searches together are bounded.
TEST_F(FusionSearch, AllSearchesTogetherAreBounded) {
  FusionLimits limits;
  limits.maxSearches = 1 << 20;
  Plan free = plan(skips(300), limits);
  EXPECT_GT(free.searched, 40 * free.groups);
  limits.maxSearches = 4;
  Plan bounded = plan(skips(300), limits);
  EXPECT_EQ(bounded.groups, free.groups);
  EXPECT_LE(bounded.searched, 40 * free.groups);
}

} // namespace
