// The order in which the nodes of a graph can be imported.
#ifndef CHARONIA_FRONTENDS_ONNX_ORDER_H
#define CHARONIA_FRONTENDS_ONNX_ORDER_H

#include "onnx/onnx_pb.h"
#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace charonia::frontend::onnx {

using Nodes = google::protobuf::RepeatedPtrField<::onnx::NodeProto>;

/// What a graph's results need.
struct Order {
  /// Indices of the needed nodes, each after those that it depends on; in the
  /// model's own order where that is one.
  std::vector<int> nodes;
  /// Names that needed nodes or the results refer to.
  std::set<std::string> used;
  /// What is wrong with the graph; empty if nothing is.
  std::string error;
};

/// Orders `nodes` for the results called `roots`. A value that two nodes
/// define, or a node and the surroundings (`isOuter`), is an error, and so is a
/// cycle.
Order orderNodes(const Nodes &nodes, const std::vector<std::string> &roots,
                 const std::function<bool(const std::string &)> &isOuter);

/// Leaves only the nodes of `order`, in that order, so that a body that is
/// imported many times is searched for them once. The indices follow.
void keepOrdered(Nodes &nodes, Order &order);

/// A node's name, or the name of its first output where it has none.
std::string displayName(const ::onnx::NodeProto &node);

} // namespace charonia::frontend::onnx

#endif
