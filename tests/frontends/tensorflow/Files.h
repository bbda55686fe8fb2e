// Small models of TensorFlow in memory.
#ifndef CHARONIA_TESTS_FRONTENDS_TENSORFLOW_FILES_H
#define CHARONIA_TESTS_FRONTENDS_TENSORFLOW_FILES_H

#include "frontends/tensorflow/Model.h"
#include <map>

namespace charonia::test {

namespace tf = frontend::tensorflow;

/// A node of this operator and inputs, with attribute T of float32.
tf::proto::Node &addNode(tf::proto::Graph &graph, const std::string &op,
                         const std::string &name,
                         const std::vector<std::string> &inputs = {});
/// A placeholder of float32; -1 is an open size.
void addInput(tf::proto::Graph &graph, const std::string &name,
              const std::vector<int64_t> &shape);
/// A constant of int32 values; a scalar without a shape.
tf::proto::Node &addInts(tf::proto::Graph &graph, const std::string &name,
                         const std::vector<int> &values, bool isScalar = false);
std::string bytesOf(const google::protobuf::MessageLite &message);

/// A table with these entries, in blocks of up to `perBlock`.
std::string tableFile(const std::map<std::string, std::string> &entries,
                      size_t perBlock = 100);

/// A SavedModel with one variable, "w" of float32[2, 3], that is multiplied by
/// input x of [batch, 2].
struct SavedFiles {
  SavedFiles();
  /// What the files hold, to be changed before files() is called.
  tf::proto::SavedModel model;
  tf::proto::BundleHeader header;
  tf::proto::BundleEntry variable, objects;
  tf::proto::TrackableGraph trackable;
  std::vector<float> weights = {1, 2, 3, 4, 5, 6};
  tf::proto::Graph &graph() {
    return *model.mutable_meta_graphs(0)->mutable_graph();
  }
  std::map<std::string, std::string> files();
};

} // namespace charonia::test

#endif
