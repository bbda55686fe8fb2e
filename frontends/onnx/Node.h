// One ONNX node as the rows of the operator table see it.
#ifndef CHARONIA_FRONTENDS_ONNX_NODE_H
#define CHARONIA_FRONTENDS_ONNX_NODE_H

#include "frontends/common/Operands.h"
#include "onnx/onnx_pb.h"

namespace charonia::frontend::onnx {

/// A node with its operands as values. The node's attributes have the types of
/// ONNX's schema and include the defaults, and the operands' element types are
/// among those that the schema allows; what else a model may get wrong is for
/// the row to check.
class Node : public Operands {
public:
  Node(Emitter &emitter, const ::onnx::NodeProto &proto, int sinceVersion,
       Values inputs, llvm::SmallVector<bool> wanted,
       llvm::SmallVector<int> narrow = {})
      : Operands(emitter, std::move(inputs)), proto(proto),
        version(sinceVersion), wanted(std::move(wanted)),
        narrow(std::move(narrow)), results(proto.output_size()) {}

  /// The version of the operator's definition that holds for the model.
  int sinceVersion() const { return version; }
  const std::string &opType() const { return proto.op_type(); }

  std::string inputName(unsigned i) const override { return proto.input(i); }
  std::string otherRemedy() const override {
    return ", or simplify the model (onnxsim)";
  }

  /// The narrowType of the elements of input i, which its value holds in 8
  /// bits; 0 of others.
  int narrowInput(unsigned i) const {
    return i < narrow.size() ? narrow[i] : 0;
  }

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
  /// Says that the first result holds elements of a narrowType in 8 bits.
  void setNarrowResult(int dataType) { narrowResult = dataType; }
  int getNarrowResult() const { return narrowResult; }
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

  using Operands::axis;
  /// Attribute `name` as a dimension index of `rank`.
  llvm::FailureOr<int64_t> axis(llvm::StringRef name, int64_t rank,
                                int64_t otherwise = 0);

private:
  const ::onnx::NodeProto &proto;
  int version;
  llvm::SmallVector<bool> wanted;
  llvm::SmallVector<int> narrow;
  Values results;
  int narrowResult = 0;
  bool expandBody = false;
};

} // namespace charonia::frontend::onnx

#endif
