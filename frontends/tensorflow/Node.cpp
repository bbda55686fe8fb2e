#include "frontends/tensorflow/Node.h"
#include "frontends/common/Diagnostic.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::StringRef;
using llvm::Twine;

TensorList::TensorList(int64_t count)
    : chunks((count + chunkSize - 1) / chunkSize), count(count) {}

TensorList TensorList::with(int64_t i, mlir::Value value) const {
  TensorList changed = *this;
  changed.count = std::max(count, i + 1);
  changed.chunks.resize((changed.count + chunkSize - 1) / chunkSize);
  auto &chunk = changed.chunks[i / chunkSize];
  auto own =
      chunk ? std::make_shared<Chunk>(*chunk) : std::make_shared<Chunk>();
  (*own)[i % chunkSize] = value;
  chunk = std::move(own);
  return changed;
}

Values Node::tensorsOf(llvm::ArrayRef<Item> items) {
  Values values;
  for (const Item &item : items)
    values.push_back(item.value);
  return values;
}

Node::Node(Emitter &emitter, Model &model, const proto::Node &proto,
           Items items, std::vector<std::string> names)
    : Operands(emitter, tensorsOf(items)), model(model), proto(proto),
      items(std::move(items)), names(std::move(names)) {}

/// Of operators that take as many tensors as their attribute N says, beside
/// others.
llvm::LogicalResult Node::checkCount(unsigned low) const {
  if (items.size() > manyInputs)
    return emitter.fail("has " + Twine(items.size()) + " inputs; up to " +
                            Twine(manyInputs) + " are supported",
                        "split it into several");
  int64_t count = integer("N", items.size() + 1 - low);
  if (count + low - 1 == int64_t(items.size()))
    return llvm::success();
  return emitter.fail("has " + Twine(items.size()) +
                          " inputs, but its attribute N says " + Twine(count),
                      "the file is damaged: export the model again");
}

llvm::LogicalResult Node::needsTensors(unsigned low, unsigned high) {
  if (high == manyInputs && failed(checkCount(low)))
    return llvm::failure();
  if (items.size() < low || items.size() > high)
    return emitter.fail("has " + Twine(items.size()) + " inputs instead of " +
                            Twine(low) +
                            (low == high ? "" : " to " + std::to_string(high)),
                        "the file is damaged: export the model again");
  for (auto [i, value] : llvm::enumerate(inputs))
    if (items[i].part && !value)
      return emitter.fail(
          "input " + Twine(i) + " ('" + printable(inputName(i)) +
              "') is rows that data chooses (DynamicPartition), which are "
              "supported as positions of lookups alone, joined by a "
              "DynamicStitch of all parts",
          "export the model without it, and divide after the engine");
    else if (items[i].complex && !value)
      return emitter.fail("input " + Twine(i) + " ('" +
                              printable(inputName(i)) +
                              "') is of complex numbers, which this operator "
                              "takes only in TensorFlow",
                          "compute real and imaginary parts by themselves");
    else if (!value)
      return emitter.fail("input " + Twine(i) + " ('" +
                              printable(inputName(i)) + "') is not a tensor",
                          "export the model again");
  return llvm::success();
}

void Node::usePart(mlir::Value Complex::*part) {
  for (auto [i, item] : llvm::enumerate(items))
    if (item.complex)
      inputs[i] = (*item.complex).*part;
}

bool Node::layOut(unsigned i) {
  if (blocks(i))
    items[i].value = inputs[i] =
        charonia::frontend::tensorflow::layOut(*items[i].blocks, emitter);
  return i < inputs.size() && inputs[i];
}

const proto::Attribute *Node::find(StringRef name) const {
  auto it = proto.attributes().find(name.str());
  if (it != proto.attributes().end())
    return &it->second;
  // A SavedModel leaves out what its own list of operators says.
  if (auto *definition = model.definition(proto.op()))
    for (const auto &attribute : definition->defaults())
      if (attribute.name() == name && attribute.has_value())
        return &attribute.value();
  return nullptr;
}
const proto::Attribute *Node::find(StringRef name,
                                   proto::Attribute::ValueCase kind) const {
  auto *attribute = find(name);
  if (!attribute || attribute->value_case() == kind)
    return attribute;
  if (attribute->value_case() == proto::Attribute::kPlaceholder)
    emitter.fail("attribute '" + name + "' is whatever the call of its " +
                     "function says, which is not supported",
                 "export the model with functions of their own for each value");
  else
    emitter.fail("attribute '" + name + "' is of another kind",
                 "the file is damaged: export the model again");
  return nullptr;
}
int64_t Node::integer(StringRef name, int64_t otherwise) const {
  auto *attribute = find(name, proto::Attribute::kInteger);
  return attribute ? attribute->integer() : otherwise;
}
bool Node::flag(StringRef name, bool otherwise) const {
  auto *attribute = find(name, proto::Attribute::kFlag);
  return attribute ? attribute->flag() : otherwise;
}
double Node::number(StringRef name, double otherwise) const {
  auto *attribute = find(name, proto::Attribute::kNumber);
  return attribute ? attribute->number() : otherwise;
}
std::string Node::text(StringRef name, StringRef otherwise) const {
  auto *attribute = find(name, proto::Attribute::kText);
  return attribute ? attribute->text() : otherwise.str();
}
llvm::SmallVector<int64_t> Node::integers(StringRef name) const {
  auto *attribute = find(name, proto::Attribute::kList);
  if (!attribute)
    return {};
  const auto &list = attribute->list().integers();
  return llvm::SmallVector<int64_t>(list.begin(), list.end());
}
mlir::Type Node::type(StringRef name, int otherwise) {
  auto *attribute = find(name, proto::Attribute::kType);
  int number = attribute ? attribute->type() : otherwise;
  mlir::Type element = elementType(number, emitter.getContext());
  if (!element)
    emitter.fail("attribute '" + name + "' is " + dtypeName(number) +
                     ", which is not supported",
                 elementTypeRemedy);
  return element;
}

mlir::Type Node::sizeType(StringRef name) {
  constexpr int int32 = 3;
  mlir::Type element = type(name, int32);
  if (!element || element.isSignlessInteger(32) ||
      element.isSignlessInteger(64))
    return element;
  emitter.fail("attribute '" + name + "' is " +
               dtypeName(find(name, proto::Attribute::kType)->type()) +
               "; sizes are int32 or int64");
  return {};
}

llvm::LogicalResult Node::yield(mlir::ValueRange values) {
  for (mlir::Value value : values)
    results.push_back(value);
  return llvm::failure(emitter.failed() ||
                       !llvm::all_of(values, [](auto v) { return bool(v); }));
}
llvm::LogicalResult Node::yieldComplex(const Complex &z) {
  results.emplace_back().complex = std::make_shared<Complex>(z);
  return llvm::failure(emitter.failed() || !z.real || !z.imaginary);
}
llvm::LogicalResult Node::yieldItem(Item item) {
  results.push_back(std::move(item));
  return llvm::failure(emitter.failed());
}
