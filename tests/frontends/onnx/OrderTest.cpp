// The order of a graph's nodes, and bodies that are put in it.
#include "frontends/onnx/Order.h"
#include "tests/frontends/onnx/Models.h"

using namespace charonia;
using namespace charonia::frontend::onnx;
using namespace charonia::test;
using ::testing::ElementsAre;

static std::vector<std::string> outputsOf(const Nodes &nodes) {
  std::vector<std::string> names;
  for (const auto &node : nodes)
    names.push_back(node.output(0));
  return names;
}

static Order orderFor(const Nodes &nodes, const std::string &root) {
  return orderNodes(nodes, {root}, [](const std::string &) { return false; });
}

TEST(Order, OnlyWhatIsNeededIsKept) {
  auto model = parse("graph (float[4] x) => (float[4] y) {"
                     " d = Exp (x) h = Relu (x) e = Exp (d) y = Exp (h) }");
  Nodes &nodes = *model.mutable_graph()->mutable_node();
  Order order = orderFor(nodes, "y");
  EXPECT_THAT(order.nodes, ElementsAre(1, 3));
  keepOrdered(nodes, order);
  EXPECT_THAT(order.nodes, ElementsAre(0, 1));
  EXPECT_THAT(outputsOf(nodes), ElementsAre("h", "y"));
}

TEST(Order, NodesBehindTheirReadersArePutInOrder) {
  auto model = parse("graph (float[4] x) => (float[4] y) {"
                     " y = Add (b, a) d = Exp (a) b = Exp (a) e = Exp (d)"
                     " a = Relu (x) }");
  Nodes &nodes = *model.mutable_graph()->mutable_node();
  Order order = orderFor(nodes, "y");
  EXPECT_THAT(order.nodes, ElementsAre(4, 2, 0));
  keepOrdered(nodes, order);
  EXPECT_THAT(order.nodes, ElementsAre(0, 1, 2));
  EXPECT_THAT(outputsOf(nodes), ElementsAre("a", "b", "y"));
  EXPECT_THAT(orderFor(nodes, "y").nodes, ElementsAre(0, 1, 2));
}
