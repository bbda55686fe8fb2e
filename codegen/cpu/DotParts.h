// What the two ways of computing products of tiles share (Dot.cpp,
// StagedDot.cpp).
#ifndef CHARONIA_CODEGEN_CPU_DOTPARTS_H
#define CHARONIA_CODEGEN_CPU_DOTPARTS_H

#include "codegen/cpu/KernelEmitter.h"

namespace charonia::cpu {

/// What the elements 0, 1, .. of an axis add to the offset, where that depends
/// on nothing else.
std::optional<llvm::SmallVector<int64_t>>
offsetsAlong(const graph::Sum &offset, unsigned axis, int64_t extent,
             mlir::MLIRContext *context);

/// Which term of a row comes at a place where bytes are multiplied as integers
/// of 16 bits: of four neighbours the first and the third, then the others.
/// Shifts make these pairs of weights that are packed four of a column side by
/// side. Where a term comes is the same function.
inline int64_t widenedTerm(int64_t place, int64_t depth) {
  constexpr int64_t quad = 4;
  int64_t i = place % quad;
  bool whole = place - i + quad <= depth;
  return whole && (i == 1 || i == 2) ? place - i + (quad - 1 - i) : place;
}

/// The left side of a product, element by element.
struct KernelEmitter::LeftSide {
  tile::LoadOp load; ///< Read in place, or
  const Staged *staged = nullptr;
  mlir::Type type;
  int64_t bytes;
  unsigned axis = 1;
  llvm::SmallVector<int64_t> offsets; ///< Of the elements along `axis`.
  llvm::SmallVector<Value *>
      starts; ///< Of each row or column, as they are wanted.
};

/// How a product of tiles takes its terms.
struct KernelEmitter::Product {
  mlir::Value rhs;
  bool signedLhs;
  LeftSide left;
  int64_t depth;    ///< Terms in all.
  int64_t terms;    ///< At a time, in 32 bits of each side where above 1.
  mlir::Type right; ///< Elements of the right side in the tile.
  mlir::Type sum;
  /// In memory, where each term of the left side begins, if the rows of one
  /// are at fixed distances and not the terms of a row.
  Value *starts = nullptr;
  bool isWidened() const { return right.isInteger(8) && terms == 2; }
  int64_t term(int64_t place) const {
    return isWidened() ? widenedTerm(place, depth) : place;
  }
  int64_t count(int64_t k) const { return std::min(terms, depth - k); }
  int64_t bits() const { return 32 / terms; }
};

} // namespace charonia::cpu

#endif
