// One ONNX node as the rows of the operator table see it.
#ifndef CHARONIA_FRONTENDS_ONNX_NODE_H
#define CHARONIA_FRONTENDS_ONNX_NODE_H

#include "frontends/common/Emitter.h"
#include "onnx/onnx_pb.h"

namespace charonia::frontend::onnx {

/// A node with its operands as values. The node's attributes have the types of
/// ONNX's schema and include the defaults, and the operands' element types are
/// among those that the schema allows; what else a model may get wrong is for
/// the row to check.
class Node {
public:
  Node(Emitter &emitter, const ::onnx::NodeProto &proto, int sinceVersion,
       Values inputs, llvm::SmallVector<bool> wanted)
      : emitter(emitter), proto(proto), version(sinceVersion),
        inputs(std::move(inputs)), wanted(std::move(wanted)),
        results(proto.output_size()) {}

  /// The version of the operator's definition that holds for the model.
  int sinceVersion() const { return version; }
  const std::string &opType() const { return proto.op_type(); }

  // Operands. An absent optional one is null.
  unsigned numInputs() const { return inputs.size(); }
  bool has(unsigned i) const { return i < inputs.size() && inputs[i]; }
  mlir::Value input(unsigned i) const {
    return i < inputs.size() ? inputs[i] : mlir::Value();
  }
  mlir::ValueRange allInputs() const { return inputs; }
  std::string inputName(unsigned i) const { return proto.input(i); }

  // Results.
  unsigned numOutputs() const { return proto.output_size(); }
  /// Whether anybody uses output i.
  bool wants(unsigned i) const { return i < wanted.size() && wanted[i]; }
  /// Gives the results in order; null for outputs that nobody wants.
  llvm::LogicalResult yield(mlir::ValueRange values);
  llvm::LogicalResult yield(mlir::Value value) {
    return yield(mlir::ValueRange(value));
  }
  llvm::ArrayRef<mlir::Value> getResults() const { return results; }
  /// Asks for the operator's function body instead of this row.
  llvm::LogicalResult expand() {
    expandBody = true;
    return llvm::failure();
  }
  bool wantsExpansion() const { return expandBody; }

  // Attributes.
  const ::onnx::AttributeProto *find(llvm::StringRef name) const;
  bool hasAttribute(llvm::StringRef name) const { return find(name); }
  int64_t integer(llvm::StringRef name, int64_t otherwise = 0) const;
  bool flag(llvm::StringRef name) const { return integer(name) != 0; }
  double number(llvm::StringRef name, double otherwise = 0) const;
  std::string text(llvm::StringRef name, llvm::StringRef otherwise = "") const;
  /// None where the attribute is absent.
  std::optional<llvm::SmallVector<int64_t>>
  integers(llvm::StringRef name) const;
  llvm::SmallVector<double> numbersOf(llvm::StringRef name) const;

  // Checked readings; each fails the node with a message.
  /// `value`, in [-rank, rank), as a dimension index.
  llvm::FailureOr<int64_t> axis(int64_t value, int64_t rank);
  /// Attribute `name` as a dimension index of `rank`.
  llvm::FailureOr<int64_t> axis(llvm::StringRef name, int64_t rank,
                                int64_t otherwise = 0);
  /// Distinct dimension indices, in the order given.
  llvm::FailureOr<llvm::SmallVector<int64_t>>
  axes(llvm::ArrayRef<int64_t> values, int64_t rank);
  /// Elements of operand i, sizes computed from shapes; entries may be null.
  llvm::FailureOr<Exprs> partlyKnown(unsigned i);
  /// ... all known.
  llvm::FailureOr<Exprs> known(unsigned i);
  /// Elements of operand i as integers known now.
  llvm::FailureOr<llvm::SmallVector<int64_t>> constants(unsigned i);
  /// ... of any numeric type.
  llvm::FailureOr<llvm::SmallVector<double>> constantNumbers(unsigned i);
  /// One such element.
  llvm::FailureOr<int64_t> constantInteger(unsigned i);
  llvm::FailureOr<double> constantNumber(unsigned i);
  /// Fails because operand i has to be known and is not.
  llvm::LogicalResult dependsOnData(unsigned i);
  /// Fails unless operand i has this rank.
  llvm::LogicalResult needsRank(unsigned i, int64_t low, int64_t high);

private:
  Emitter &emitter;
  const ::onnx::NodeProto &proto;
  int version;
  Values inputs;
  llvm::SmallVector<bool> wanted;
  Values results;
  bool expandBody = false;
};

} // namespace charonia::frontend::onnx

#endif
