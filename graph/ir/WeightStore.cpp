#include "graph/ir/WeightStore.h"

using namespace charonia::graph;

void WeightStore::add(llvm::StringRef name, Weight weight) {
  assert((int64_t)weight.bytes.size() == byteSize(weight.type) &&
         "a weight's bytes must fit its type");
  weights[name] = std::move(weight);
}

void WeightStore::add(llvm::StringRef name, mlir::RankedTensorType type,
                      std::vector<char> bytes) {
  auto owner = std::make_shared<std::vector<char>>(std::move(bytes));
  add(name, Weight{type, llvm::ArrayRef<char>(*owner), owner});
}

const Weight *WeightStore::lookup(llvm::StringRef name) const {
  auto it = weights.find(name);
  return it == weights.end() ? nullptr : &it->second;
}

std::string WeightStore::uniqueName(llvm::StringRef stem) const {
  std::string name = stem.str();
  for (unsigned i = 1; weights.contains(name); ++i)
    name = (stem + "." + llvm::Twine(i)).str();
  return name;
}

int64_t charonia::graph::elementBytes(mlir::Type element) {
  if (element.isIndex())
    return 8;
  return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

int64_t charonia::graph::byteSize(mlir::RankedTensorType type) {
  return type.getNumElements() * elementBytes(type.getElementType());
}
