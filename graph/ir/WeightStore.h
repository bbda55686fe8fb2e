// Weights by name, outside the IR.
#ifndef CHARONIA_GRAPH_IR_WEIGHTSTORE_H
#define CHARONIA_GRAPH_IR_WEIGHTSTORE_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include <memory>

namespace charonia::graph {

/// One weight. The bytes are little-endian, row-major and dense; bool takes one
/// byte an element, types under 8 bits are unpacked to one byte an element.
struct Weight {
  mlir::RankedTensorType type;
  llvm::ArrayRef<char> bytes;
  /// Keeps `bytes` alive: a mapped file, a model, a buffer.
  std::shared_ptr<const void> owner;
};

/// Weights of a module, referred to by `graph.weight "name"`. Lives in the
/// graph dialect of the context. Not thread-safe while weights are added.
class WeightStore {
public:
  /// Adds a weight, or replaces the one of that name.
  void add(llvm::StringRef name, Weight weight);
  /// Adds a weight whose bytes the store takes over.
  void add(llvm::StringRef name, mlir::RankedTensorType type,
           std::vector<char> bytes);
  /// Null where there is none of that name.
  const Weight *lookup(llvm::StringRef name) const;
  /// A name not in use that starts with `stem`.
  std::string uniqueName(llvm::StringRef stem) const;
  void erase(llvm::StringRef name) { weights.erase(name); }
  size_t size() const { return weights.size(); }

private:
  llvm::StringMap<Weight> weights;
};

/// Bytes that a static tensor type takes in a weight store or an engine buffer.
int64_t byteSize(mlir::RankedTensorType type);
/// Bytes of one element: i1 takes one.
int64_t elementBytes(mlir::Type element);

} // namespace charonia::graph

#endif
