// Which values may lack an axis that they are declared with.
#ifndef CHARONIA_FRONTENDS_ONNX_DROPPEDAXES_H
#define CHARONIA_FRONTENDS_ONNX_DROPPEDAXES_H

#include "onnx/onnx_pb.h"
#include <set>
#include <string>

namespace charonia::frontend::onnx {

/// Where a model splits a tensor into parts of a size that is given, and drops
/// the axis: onnx.shape_inference keeps it, and so do the types behind that it
/// wrote into the file. In the graph, in graphs of its nodes and in functions
/// that they call.
class DroppedAxes {
public:
  explicit DroppedAxes(const ::onnx::ModelProto &model);

  /// Whether an output of the model's graph may follow from such parts.
  bool reach(const std::string &output) const;

private:
  bool isDropping(const ::onnx::NodeProto &node) const;
  template <typename Nodes> bool anyDrops(const Nodes &nodes) const;

  const ::onnx::ModelProto &model;
  /// Domains and names of those in which there are some.
  std::set<std::pair<std::string, std::string>> functions;
};

} // namespace charonia::frontend::onnx

#endif
