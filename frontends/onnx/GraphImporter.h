// Importing the nodes of a graph, a function body or a branch.
#ifndef CHARONIA_FRONTENDS_ONNX_GRAPHIMPORTER_H
#define CHARONIA_FRONTENDS_ONNX_GRAPHIMPORTER_H

#include "frontends/common/Replacements.h"
#include "frontends/common/Steps.h"
#include "frontends/onnx/Node.h"
#include "frontends/onnx/Order.h"
#include "frontends/onnx/Schema.h"
#include "frontends/onnx/Tensors.h"
#include <map>
#include <memory>

namespace charonia::frontend::onnx {

/// What a name of the model stands for.
struct Binding {
  /// Null where the value could not be built, or is an optional input left out.
  mlir::Value value;
  /// A sequence of tensors, of this element type; there is no value then.
  std::optional<std::vector<mlir::Value>> sequence;
  mlir::Type element;
  /// Of a sequence as long as an open size says, behind what is in `sequence`:
  /// tensors of an element each, stacked along a first dimension, one after the
  /// other for each place of it.
  std::vector<mlir::Value> stacked;
  /// Of a sequence inside of steps that are repeated, to which each may only
  /// add: the state that it is.
  std::optional<size_t> growsAs;
  /// The TensorProto data type of elements of less than 8 bits, which are held
  /// in 8; 0 of others.
  int narrow = 0;
  /// What the ONNX library knows of a value that could not be built.
  ::onnx::TypeProto type;
  /// An optional input of a function that its caller leaves out.
  bool absent = false;
  /// Follows from a node that failed: further failures are no news.
  bool tainted = false;
  bool isBuilt() const { return value || sequence; }
};

/// Names in force. A branch of an If sees its surroundings, a function does
/// not.
struct Scope {
  Scope *parent = nullptr;
  std::map<std::string, int> opsets;
  std::unordered_map<std::string, Binding> values;
  /// Initializers become values when they are first used.
  std::unordered_map<std::string, ::onnx::TensorProto *> tensors;
  std::unordered_map<std::string, ::onnx::SparseTensorProto *> sparse;
  /// Whether tensors may be moved out of the messages.
  bool mayTake = false;

  /// An empty one inside of this, with the same versions of operators.
  Scope inner() {
    Scope scope;
    scope.parent = this;
    scope.opsets = opsets;
    return scope;
  }
};

/// A node being imported, and the nodes that it is in the body of.
struct Frame {
  const Frame *parent = nullptr;
  const ::onnx::NodeProto *node = nullptr;
  int version = 0;
  std::vector<std::string> inputs;
  unsigned depth() const { return parent ? parent->depth() + 1 : 1; }
};

class GraphImporter {
public:
  GraphImporter(Emitter &emitter, ExternalFiles &files, const std::string &file,
                std::vector<Diagnostic> &diagnostics)
      : emitter(emitter), files(files), file(file), diagnostics(diagnostics) {}

  /// Functions that the model defines. Reports what is wrong with the list.
  void
  addFunctions(const google::protobuf::RepeatedPtrField<::onnx::FunctionProto>
                   &functions);
  /// Makes the initializers of `graph` names of `scope`.
  void addInitializers(::onnx::GraphProto &graph, Scope &scope);
  /// Imports what `roots` need and binds it in `scope`. Nodes of a body
  /// (`frame` is not null) that they do not need are removed. False where the
  /// nodes cannot be ordered or a budget is exhausted.
  bool importNodes(Nodes &nodes, const std::vector<std::string> &roots,
                   Scope &scope, const Frame *frame);
  /// The binding of `name`, from `scope` or around it; null if there is none.
  const Binding *lookup(const std::string &name, Scope &scope,
                        const Frame *frame);

  /// Reports a problem of the model as a whole.
  void report(Problem problem);
  bool hasErrors() const;

  /// As of ImportOptions.
  std::function<void(const std::string &node, const std::string &op)> progress;
  Replacements *replacements = nullptr;
  /// Declared types by value, to be checked against what is found.
  std::unordered_map<std::string, const ::onnx::TypeProto *> declared;

private:
  struct Function;

  void report(const Frame &frame, const Problem &problem);
  /// Whether the operator is one that can be imported, of some attributes.
  bool isKnown(const ::onnx::NodeProto &node, const Operator &op) const;
  /// Reports operators that are not supported at all and that a node which
  /// failed needs in its bodies, or the functions that it calls: whatever else
  /// is wrong, these are listed at once. `branch` is the one that an If takes,
  /// if that is known.
  void reportInside(const Frame &frame,
                    const std::map<std::string, int> &opsets,
                    std::optional<bool> branch);
  /// The same of these nodes, as far as `roots` need them.
  void reportUnknown(const Frame &frame, const Nodes &nodes,
                     const std::vector<std::string> &roots,
                     const std::map<std::string, int> &opsets);
  /// Counts bytes of bodies, as Emitter::writeOut counts their nodes.
  llvm::LogicalResult countExpandedBytes(int64_t bytes);
  void importNode(::onnx::NodeProto &node, const std::set<std::string> &used,
                  Scope &scope, const Frame *parent);
  /// Results of a node, or failure with the emitter's problem set.
  llvm::LogicalResult importResults(::onnx::NodeProto &node,
                                    const std::vector<Binding> &inputs,
                                    const llvm::SmallVector<bool> &wanted,
                                    Scope &scope, const Frame &frame,
                                    std::vector<Binding> &results);
  llvm::LogicalResult importRow(const struct Row &row, const Operator &op,
                                ::onnx::NodeProto &node,
                                const std::vector<Binding> &inputs,
                                const llvm::SmallVector<bool> &wanted,
                                const Frame &frame,
                                std::vector<Binding> &results, bool &expand);
  /// The function of the model that the node calls, in a scope of these opsets;
  /// null for operators.
  const ::onnx::FunctionProto *
  calledFunction(const ::onnx::NodeProto &node,
                 const std::map<std::string, int> &opsets) const;
  /// No more nodes than what these outputs of a function need, functions in it
  /// and theirs included.
  int64_t leastNodes(const ::onnx::FunctionProto &function,
                     const llvm::SmallVector<bool> &wanted);
  llvm::LogicalResult importFunction(const ::onnx::FunctionProto &function,
                                     const ::onnx::NodeProto &call,
                                     const std::vector<Binding> &inputs,
                                     const llvm::SmallVector<bool> &wanted,
                                     const Frame &frame,
                                     std::vector<Binding> &results);
  llvm::LogicalResult importConstant(::onnx::NodeProto &node, Scope &scope,
                                     std::vector<Binding> &results);
  llvm::LogicalResult importIf(::onnx::NodeProto &node,
                               const std::vector<Binding> &inputs, Scope &scope,
                               const Frame &frame,
                               std::vector<Binding> &results);
  llvm::LogicalResult importBranch(::onnx::NodeProto &node,
                                   const std::string &name, Scope &scope,
                                   const Frame &frame,
                                   std::vector<Binding> &results);
  struct Scan;
  llvm::LogicalResult readScan(Node &n, ::onnx::NodeProto &node,
                               const std::vector<Binding> &inputs, Scan &scan);
  std::vector<mlir::Value> argumentsOf(const Scan &scan, mlir::AffineExpr step);
  std::optional<std::vector<mlir::Value>>
  repeatScan(Node &n, Scan scan, Scope &around, const Frame &frame);
  std::optional<std::vector<mlir::Value>> writeOutScan(Node &n, Scan scan,
                                                       int64_t steps,
                                                       Scope &around,
                                                       const Frame &frame);
  llvm::LogicalResult importScan(::onnx::NodeProto &node,
                                 const std::vector<Binding> &inputs,
                                 Scope &scope, const Frame &frame,
                                 std::vector<Binding> &results);
  struct Loop;
  llvm::LogicalResult importLoop(::onnx::NodeProto &node,
                                 const std::vector<Binding> &inputs,
                                 Scope &scope, const Frame &frame,
                                 std::vector<Binding> &results);
  llvm::LogicalResult writeOutLoop(Loop &loop, Scope &around,
                                   const Frame &frame,
                                   std::optional<StepCount> count,
                                   std::vector<Binding> &results);
  class RepeatedLoop;
  llvm::LogicalResult importOpenSequence(const ::onnx::NodeProto &node,
                                         const std::vector<Binding> &inputs,
                                         Binding &result);
  llvm::LogicalResult importSequence(const ::onnx::NodeProto &node,
                                     const std::vector<Binding> &inputs,
                                     std::vector<Binding> &results);
  llvm::LogicalResult importOptional(const ::onnx::NodeProto &node,
                                     const std::vector<Binding> &inputs,
                                     std::vector<Binding> &results);
  /// Fails where an operator takes sequences, or elements of less than 8 bits,
  /// that it is not known to take.
  llvm::LogicalResult checkInputs(const ::onnx::NodeProto &node,
                                  const std::string &domain,
                                  const std::vector<Binding> &inputs);
  /// Binds the body's inputs in a scope of their own, imports `nodes` of it as
  /// far as these outputs need, and finds these.
  llvm::LogicalResult importStep(const ::onnx::GraphProto &body, Nodes &nodes,
                                 const std::vector<Binding> &inputs,
                                 llvm::ArrayRef<std::string> roots,
                                 Scope &around, const Frame &frame,
                                 std::vector<Binding> &outputs);
  /// All outputs of the body, which are tensors.
  llvm::LogicalResult importStep(::onnx::GraphProto &body,
                                 const std::vector<mlir::Value> &inputs,
                                 Scope &around, const Frame &frame,
                                 std::vector<mlir::Value> &outputs);
  /// Values to go on with behind a node that failed, of their declared types.
  std::vector<Binding> placeholders(const ::onnx::NodeProto &node,
                                    const Frame *parent);
  std::optional<TensorData> replaced(const std::string &name,
                                     mlir::RankedTensorType type);
  Binding toBinding(const std::optional<TensorData> &data,
                    const std::string &name, const Problem &problem);
  void checkDeclared(const ::onnx::NodeProto &node, const Frame &frame,
                     Scope &scope);
  std::vector<::onnx::TypeProto> typesOf(const std::vector<Binding> &inputs);
  mlir::Location locate(const Frame &frame);

  Emitter &emitter;
  ExternalFiles &files;
  const std::string &file;
  std::vector<Diagnostic> &diagnostics;
  std::map<std::string, const ::onnx::FunctionProto *> functions;
  /// Arguments of it stand for values that could not be built.
  mlir::Block scratch;
  /// The outermost node that was reported last: one report each is enough.
  const ::onnx::NodeProto *lastReported = nullptr;
  int64_t expandedBytes = 0;
  /// Of the node that reportInside() looks into: what was reported before, and
  /// the operators, each of which is reported once.
  std::string toldInside;
  std::set<std::string> listed;
  /// Functions that reportInside() has looked into.
  std::set<const ::onnx::FunctionProto *> lookedInto;
  /// What leastNodes has found; 0 while it looks.
  std::map<std::pair<const ::onnx::FunctionProto *, std::vector<bool>>, int64_t>
      leastKnown;
};

/// What is wrong with a node of an operator that `version` of its domain (0 if
/// the model imports none) does not have; none where it has.
std::optional<Problem> unknownOperator(const ::onnx::NodeProto &node,
                                       const Operator &op, int version);
/// "operator Foo is not supported", and `why`.
Problem unsupportedOperator(const ::onnx::NodeProto &node,
                            const std::string &why);

/// What is wrong between a declared type and that of a value; false where
/// nothing is.
struct Contradiction {
  std::string text;
  /// Of a size, not of the kind or number of dimensions.
  bool ofSize = false;
  explicit operator bool() const { return !text.empty(); }
};
Contradiction contradiction(const ::onnx::TypeProto &declared, mlir::Type type,
                            Emitter &emitter);

} // namespace charonia::frontend::onnx

#endif
