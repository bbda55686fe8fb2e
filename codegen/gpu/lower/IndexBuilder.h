// Arithmetic on indices, simplified and shared as it is built.
//
// Most of a kernel's integer code computes coordinates and addresses, the same
// again and again for the registers of a tile with other constants. So values
// are kept as `value + constant`, constants move outward, and every operation
// is built once in the blocks that it dominates. What is left is what a thread
// has to compute.
#ifndef CHARONIA_CODEGEN_GPU_LOWER_INDEXBUILDER_H
#define CHARONIA_CODEGEN_GPU_LOWER_INDEXBUILDER_H

#include "codegen/layout/LinearLayout.h"
#include "graph/ir/Algebra.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace charonia::gpu {

/// value + constant; a null value is zero.
struct IndexSum {
  mlir::Value value;
  int64_t constant = 0;
  bool isConstant() const { return !value; }
  auto operator<=>(const IndexSum &o) const {
    return std::pair(value.getAsOpaquePointer(), constant) <=>
           std::pair(o.value.getAsOpaquePointer(), o.constant);
  }
  bool operator==(const IndexSum &o) const = default;
};

class IndexBuilder {
public:
  /// Constants go to the start of `entry`.
  IndexBuilder(mlir::OpBuilder &b, mlir::Location loc, mlir::Block *entry)
      : b(b), loc(loc), entry(entry) {
    scopes.emplace_back();
  }

  /// What is built between enterScope and leaveScope is not known after it.
  void enterScope() { scopes.emplace_back(); }
  void leaveScope() { scopes.pop_back(); }

  mlir::Value constant(int64_t value);
  mlir::Value materialize(IndexSum sum);

  IndexSum add(IndexSum a, IndexSum b);
  IndexSum multiply(IndexSum a, IndexSum b);
  /// The greater of `a` and 1.
  IndexSum atLeastOne(IndexSum a);
  /// b > 0; a >= 0 if `notNegative`, else of any sign.
  IndexSum floorDivide(IndexSum a, IndexSum b, bool notNegative);
  IndexSum modulo(IndexSum a, IndexSum b, bool notNegative);
  mlir::Value exclusiveOr(mlir::Value a, mlir::Value b);

  /// a op b as one operation on index, or its known result.
  mlir::Value binary(llvm::StringLiteral op, mlir::Value a, mlir::Value b);
  /// (a <u b) as i1.
  mlir::Value lessUnsigned(IndexSum a, IndexSum b);
  /// a & b of i1, null being true.
  mlir::Value both(mlir::Value a, mlir::Value b);

  /// An expression over sums for dims and symbols.
  IndexSum evaluate(mlir::AffineExpr expr, llvm::ArrayRef<IndexSum> dims,
                    llvm::ArrayRef<IndexSum> symbols,
                    const graph::Facts &facts);

  /// A linear function of the bits of hardware coordinates: `images` of the
  /// bits of each value, as numbers. Images of one value's bits may share bits
  /// (xor).
  mlir::Value
  linear(llvm::ArrayRef<std::pair<mlir::Value, llvm::SmallVector<uint64_t>>>
             inputs);

  /// What a value is computed from. `what` is a literal: an operation's name or
  /// a word of the caller.
  struct Key {
    llvm::StringRef what;
    llvm::SmallVector<mlir::Value, 2> operands;
    llvm::SmallVector<uint64_t, 2> numbers;
  };
  /// The value of a key, built once in the blocks that it dominates.
  mlir::Value cached(const Key &key, llvm::function_ref<mlir::Value()> build);

private:
  struct KeyInfo {
    static Key getEmptyKey() {
      return {llvm::DenseMapInfo<llvm::StringRef>::getEmptyKey(), {}, {}};
    }
    static Key getTombstoneKey() {
      return {llvm::DenseMapInfo<llvm::StringRef>::getTombstoneKey(), {}, {}};
    }
    static unsigned getHashValue(const Key &key) {
      return llvm::hash_combine(
          key.what,
          llvm::hash_combine_range(key.operands.begin(), key.operands.end()),
          llvm::hash_combine_range(key.numbers.begin(), key.numbers.end()));
    }
    static bool isEqual(const Key &a, const Key &b) {
      return llvm::DenseMapInfo<llvm::StringRef>::isEqual(a.what, b.what) &&
             a.operands == b.operands && a.numbers == b.numbers;
    }
  };

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Block *entry;
  std::vector<llvm::DenseMap<Key, mlir::Value, KeyInfo>> scopes;
  llvm::DenseMap<int64_t, mlir::Value> constants;
};

} // namespace charonia::gpu

#endif
