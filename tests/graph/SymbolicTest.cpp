#include "graph/ir/Dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace charonia::graph;

namespace {

/// The contents of the operands of the last operator (a return) of @main.
class Symbolic : public testing::Test {
protected:
  Symbolic() { context.loadDialect<GraphDialect, func::FuncDialect>(); }
  SmallVector<std::string> evaluate(StringRef body) {
    std::string text = ("func.func @main(%x: tensor<?x?x12xf32, "
                        "affine_map<()[s0, s1] -> (s0, s1, 12)>>) {\n" +
                        body + "\nreturn\n}")
                           .str();
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    SmallVector<std::string> result;
    if (!module)
      return result;
    auto function = cast<func::FuncOp>(module->getBody()->front());
    Operation *last = function.getBody().front().back().getPrevNode();
    SymbolicTensor contents = SymbolicEvaluator().evaluate(last->getResult(0));
    if (!contents)
      return {"unknown"};
    for (AffineExpr e : *contents.elements) {
      std::string element = "?";
      if (e) {
        element.clear();
        llvm::raw_string_ostream(element) << e;
      }
      result.push_back(element);
    }
    return result;
  }
  using List = SmallVector<std::string>;
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(Symbolic, HeadSplit) {
  EXPECT_EQ(evaluate(R"(
    %shape = graph.shape_of %x : (tensor<?x?x12xf32, affine_map<()[s0, s1] -> (s0, s1, 12)>>) -> tensor<3xi64>
    %i = graph.constant dense<[0, 1, -1]> : tensor<3xi64>
    %g = graph.gather %shape, %i {axis = 0 : i64} : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %f = graph.constant dense<[1, 1, 4]> : tensor<3xi64>
    %q = graph.div %g, %f : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %e = graph.constant dense<4> : tensor<1xi64>
    %c = graph.concat %q, %e {axis = 0 : i64} : (tensor<3xi64>, tensor<1xi64>) -> tensor<4xi64>)"),
            (List{"s0", "s1", "3", "4"}));
}

TEST_F(Symbolic, Products) {
  EXPECT_EQ(evaluate(R"(
    %shape = graph.shape_of %x : (tensor<?x?x12xf32, affine_map<()[s0, s1] -> (s0, s1, 12)>>) -> tensor<3xi64>
    %p = graph.reduce prod %shape {axes = array<i64: 0>} : (tensor<3xi64>) -> tensor<i64>)"),
            (List{"(s0 * s1) * 12"}));
}

TEST_F(Symbolic, ExpandIdiom) {
  // where(shape == -1, 1, shape), as exporters write Expand.
  EXPECT_EQ(evaluate(R"(
    %shape = graph.shape_of %x : (tensor<?x?x12xf32, affine_map<()[s0, s1] -> (s0, s1, 12)>>) -> tensor<3xi64>
    %m = graph.constant dense<-1> : tensor<1xi64>
    %one = graph.constant dense<1> : tensor<i64>
    %c = graph.compare eq %shape, %m : (tensor<3xi64>, tensor<1xi64>) -> tensor<3xi1>
    %w = graph.select %c, %one, %shape : (tensor<3xi1>, tensor<i64>, tensor<3xi64>) -> tensor<3xi64>)"),
            (List{"s0", "s1", "12"}));
}

/// Steps that each compute a size anew: %s0, %s1, ...
static std::string stepsOf(int count, StringRef format) {
  std::string body = R"(
    %shape = graph.shape_of %x : (tensor<?x?x12xf32, affine_map<()[s0, s1] -> (s0, s1, 12)>>) -> tensor<3xi64>
    %c = graph.constant dense<[3, 5, 7]> : tensor<3xi64>
    %s0 = graph.add %shape, %c : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>)";
  for (int i = 0; i < count; ++i) {
    std::string step = format.str();
    for (auto [name, number] : {std::pair("@", i), std::pair("#", i + 1)})
      for (size_t at; (at = step.find(name)) != std::string::npos;)
        step.replace(at, 1, std::to_string(number));
    body += step;
  }
  return body;
}

TEST_F(Symbolic, EffortIsBounded) {
  StringRef squares = R"(
    %t@ = graph.mul %s@, %s@ : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %s# = graph.mod %t@, %c : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>)",
            quotients = R"(
    %t@ = graph.div %s@, %c : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %s# = graph.add %t@, %c : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>)",
            sums = R"(
    %s# = graph.add %s@, %shape : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>)";
  EXPECT_NE(evaluate(stepsOf(3, squares))[0], "?");
  EXPECT_EQ(evaluate(stepsOf(1000, squares))[0], "?");
  EXPECT_NE(evaluate(stepsOf(20, quotients))[0], "?");
  EXPECT_EQ(evaluate(stepsOf(1000, quotients))[0], "?");
  EXPECT_EQ(evaluate(stepsOf(1000, sums))[0], "s0 * 1001 + 3");
}

TEST_F(Symbolic, ProductsThatLeave64Bits) {
  // 2^62 is 4 times 2^60; a remainder would hide that the product wraps.
  EXPECT_EQ(evaluate(R"(
    %shape = graph.shape_of %x : (tensor<?x?x12xf32, affine_map<()[s0, s1] -> (s0, s1, 12)>>) -> tensor<3xi64>
    %c = graph.constant dense<[4611686018427387904, 1048576, 4]> : tensor<3xi64>
    %p = graph.mul %shape, %c : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %d = graph.constant dense<4> : tensor<i64>
    %m = graph.mod %p, %d : (tensor<3xi64>, tensor<i64>) -> tensor<3xi64>)"),
            (List{"?", "0", "0"}));
}

TEST_F(Symbolic, WhatCannotBeTold) {
  EXPECT_EQ(evaluate(R"(
    %shape = graph.shape_of %x : (tensor<?x?x12xf32, affine_map<()[s0, s1] -> (s0, s1, 12)>>) -> tensor<3xi64>
    %r = graph.constant dense<[2, 0, 1]> : tensor<3xi64>
    %g = graph.gather %shape, %r {axis = 0 : i64} : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %m = graph.max %shape, %g : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>)"),
            (List{"?", "?", "?"}));
  EXPECT_EQ(evaluate(R"(
    %c = graph.cast %x {to = i64} : (tensor<?x?x12xf32, affine_map<()[s0, s1] -> (s0, s1, 12)>>) -> tensor<?x?x12xi64, affine_map<()[s0, s1] -> (s0, s1, 12)>>)"),
            (List{"unknown"}));
}

TEST_F(Symbolic, LongChains) {
  // Deeper than any call stack would like.
  std::string body = "%v0 = graph.constant dense<1> : tensor<i64>\n"
                     "%one = graph.constant dense<1> : tensor<i64>\n";
  for (int i = 0; i < 20000; ++i)
    body += "%v" + std::to_string(i + 1) + " = graph.add %v" +
            std::to_string(i) +
            ", %one : (tensor<i64>, tensor<i64>) -> tensor<i64>\n";
  EXPECT_EQ(evaluate(body), (List{"20001"}));
}

} // namespace
