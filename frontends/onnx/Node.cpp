#include "frontends/onnx/Node.h"
#include "frontends/common/Diagnostic.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Twine;

llvm::LogicalResult Node::yield(mlir::ValueRange values) {
  if (emitter.failed())
    return llvm::failure();
  for (unsigned i = 0; i < values.size() && i < results.size(); ++i)
    results[i] = values[i];
  for (unsigned i = 0; i < results.size(); ++i)
    if (!results[i] && wants(i))
      return emitter.fail(
          "output " + Twine(i) + " ('" + printable(proto.output(i)) +
              "') is not supported",
          "export the model so that it does not use this output");
  return llvm::success();
}

const ::onnx::AttributeProto *Node::find(StringRef name) const {
  for (const auto &attribute : proto.attribute())
    if (name == attribute.name())
      return &attribute;
  return nullptr;
}
int64_t Node::integer(StringRef name, int64_t otherwise) const {
  auto *attribute = find(name);
  return attribute ? attribute->i() : otherwise;
}
double Node::number(StringRef name, double otherwise) const {
  auto *attribute = find(name);
  return attribute ? attribute->f() : otherwise;
}
std::string Node::text(StringRef name, StringRef otherwise) const {
  auto *attribute = find(name);
  return attribute ? attribute->s() : otherwise.str();
}
std::optional<SmallVector<int64_t>> Node::integers(StringRef name) const {
  if (auto *attribute = find(name))
    return SmallVector<int64_t>(attribute->ints().begin(),
                                attribute->ints().end());
  return std::nullopt;
}
SmallVector<double> Node::numbersOf(StringRef name) const {
  auto *attribute = find(name);
  return attribute ? SmallVector<double>(attribute->floats().begin(),
                                         attribute->floats().end())
                   : SmallVector<double>();
}

llvm::FailureOr<int64_t> Node::axis(StringRef name, int64_t rank,
                                    int64_t otherwise) {
  return axis(integer(name, otherwise), rank);
}
