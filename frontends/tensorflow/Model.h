// A TensorFlow model as its files have it: a SavedModel's folder or a frozen
// graph.
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_MODEL_H
#define CHARONIA_FRONTENDS_TENSORFLOW_MODEL_H

#include "frontends/common/Replacements.h"
#include "frontends/tensorflow/Bundle.h"

namespace charonia::frontend::tensorflow {

/// "node", "node:2", "node:output:2" or "^node".
struct Reference {
  llvm::StringRef node;
  /// The output's name, which functions use; may be empty.
  llvm::StringRef output;
  /// Of the node's outputs, or of those of that name.
  int index = 0;
  bool isControl = false;

  /// "node" for its first output, and "node:2".
  std::string key() const {
    return index == 0 ? node.str() : node.str() + ":" + std::to_string(index);
  }
};
Reference parseReference(llvm::StringRef text);

/// Nodes that see each other, by name: the graph's, or a function's.
struct Body {
  explicit Body(const google::protobuf::RepeatedPtrField<proto::Node> &nodes);
  const google::protobuf::RepeatedPtrField<proto::Node> &nodes;
  llvm::StringMap<int> byName;
  /// A name that two nodes have; empty where none has.
  std::string twice;
};

/// The name of the variable that a node holds: nodes that share it hold the
/// same one. Its own name where none is given.
std::string variableNameOf(const proto::Node &node);

/// Where the variable of a graph of TF1 is stored.
struct Stored {
  std::string key;
  /// Which part of the key's tensor it is, as TensorFlow writes it: "7 5
  /// 0,3:-"; empty for all of it.
  std::string part;
};

/// An input or output of the model and what it is in the graph.
struct Port {
  std::string name;
  /// "serving_default_x:0".
  std::string reference;
  int dtype = 0;
  /// Null where nothing is said of it.
  const proto::Shape *shape = nullptr;
};

/// Whether a file of this name is of a checkpoint.
bool isCheckpoint(llvm::StringRef file);

class Model {
public:
  /// Reads the model at `path`: a folder with a SavedModel, its file
  /// "saved_model.pb", or a frozen graph; either may be text (".pbtxt"). Null
  /// and a problem where there is none.
  static std::unique_ptr<Model>
  read(llvm::StringRef path, const ImportOptions &options, Problem &problem);
  /// The same of bytes: a SavedModel's, whose variables `openVariables` opens
  /// (null where there are none), or a frozen graph's.
  static std::unique_ptr<Model> readSavedModel(llvm::StringRef bytes,
                                               OpenFile openVariables,
                                               const ImportOptions &options,
                                               Problem &problem);
  static std::unique_ptr<Model> readGraph(llvm::StringRef bytes,
                                          const ImportOptions &options,
                                          Problem &problem);

  const Body &graph() const { return *main; }
  const std::vector<Port> &inputs() const { return inputPorts; }
  const std::vector<Port> &outputs() const { return outputPorts; }
  /// The function of a name; null where there is none.
  const proto::Function *function(llvm::StringRef name) const;
  /// Its nodes.
  const Body &bodyOf(const proto::Function &function);
  /// Keys of the variables that stand behind the last arguments of a function
  /// that the graph calls, in order; empty for those that are none.
  const std::vector<std::string> *captured(llvm::StringRef function) const;
  /// Where the variable is that a node of the graph holds; null where only the
  /// function that it is passed to knows.
  const Stored *storedOf(const proto::Node &node) const;
  /// What stands for the variable of a key, which is of that type, or for a
  /// constant of the graph; none where the model's own value does.
  std::optional<TensorData> replace(llvm::StringRef key,
                                    mlir::RankedTensorType type) const;
  std::optional<TensorData> replace(const proto::Node &constant,
                                    mlir::RankedTensorType type) const;
  /// Whether it is a SavedModel.
  bool isSaved() const { return saved; }
  /// Whether the graph has nodes that hold variables.
  bool holdsVariables() const;
  /// What the SavedModel says of an operator; null where it says nothing.
  const proto::FunctionSignature *definition(llvm::StringRef op) const;
  /// Where keys lead; null for frozen graphs.
  Bundle *bundle() { return variables.get(); }
  /// The value of a variable that has been read; null where it has not.
  mlir::Value loaded(llvm::StringRef key) const { return values.lookup(key); }
  void setLoaded(llvm::StringRef key, mlir::Value value) {
    values[key] = value;
  }
  /// Keeps what messages hold alive.
  std::shared_ptr<const void> owner() const { return message; }

private:
  std::optional<Problem> parseSavedModel(llvm::StringRef bytes,
                                         OpenFile openVariables,
                                         const ImportOptions &options);
  std::optional<Problem> parseGraph(llvm::StringRef bytes,
                                    const ImportOptions &options);
  std::optional<Problem> useGraph(const proto::Graph &graph);
  std::optional<Problem> useSignature(const proto::MetaGraph &graph,
                                      const ImportOptions &options);
  std::optional<Problem> findCaptured(const proto::ObjectGraph &objects);
  void nameVariables(const proto::ObjectGraph &objects,
                     const proto::TrackableGraph &trackable);
  std::optional<Problem> findRestored(llvm::StringRef restore);
  std::optional<Problem> findPorts(const ImportOptions &options);
  std::optional<Problem> addInput(const proto::Node &node);
  std::optional<Problem> addOutput(const std::string &name);

  std::shared_ptr<proto::SavedModel> message;
  bool saved = false;
  llvm::StringMap<const proto::FunctionSignature *> definitions;
  std::unique_ptr<Body> main;
  llvm::StringMap<const proto::Function *> functions;
  std::map<const proto::Function *, std::unique_ptr<Body>> bodies;
  llvm::StringMap<std::vector<std::string>> capturedBy;
  /// By the variable's name.
  llvm::StringMap<Stored> restored;
  std::unique_ptr<Bundle> variables;
  llvm::StringMap<mlir::Value> values;
  Replacements *replacements = nullptr;
  /// Under which name another file has the variable of a key.
  llvm::StringMap<std::string> weightNames;
  std::vector<Port> inputPorts, outputPorts;
};

} // namespace charonia::frontend::tensorflow

#endif
