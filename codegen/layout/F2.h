// Linear algebra over the two-element field, on vectors of at most 64 bits.
#ifndef CHARONIA_CODEGEN_LAYOUT_F2_H
#define CHARONIA_CODEGEN_LAYOUT_F2_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <bit>
#include <cstdint>
#include <optional>

namespace charonia::f2 {

using Vector = uint64_t;

/// Vectors added one after another, kept reduced, with the combination of added
/// vectors that each reduced one is.
class Span {
public:
  Span() = default;
  explicit Span(llvm::ArrayRef<Vector> vectors) {
    for (Vector v : vectors)
      add(v);
  }

  /// False if `v` was in the span already.
  bool add(Vector v) {
    Vector combination = Vector(1) << added++;
    reduce(v, combination);
    if (!v)
      return false;
    rows.push_back({v, combination});
    return true;
  }
  bool contains(Vector v) const {
    Vector combination = 0;
    reduce(v, combination);
    return v == 0;
  }
  /// Which of the added vectors sum up to `v` (bit i: the i-th added).
  std::optional<Vector> solve(Vector v) const {
    Vector combination = 0;
    reduce(v, combination);
    if (v)
      return std::nullopt;
    return combination;
  }
  unsigned rank() const { return rows.size(); }

private:
  struct Row {
    Vector vector, combination;
  };
  void reduce(Vector &v, Vector &combination) const {
    for (const Row &row : rows)
      if (v & std::bit_floor(row.vector)) {
        v ^= row.vector;
        combination ^= row.combination;
      }
  }

  llvm::SmallVector<Row, 16> rows;
  unsigned added = 0;
};

/// A basis of the intersection of two spans, each given by independent vectors.
inline llvm::SmallVector<Vector> intersect(llvm::ArrayRef<Vector> a,
                                           llvm::ArrayRef<Vector> b) {
  llvm::SmallVector<Vector> result;
  Span span(a);
  Vector fromA = a.size() == 64 ? ~Vector(0) : (Vector(1) << a.size()) - 1;
  // A vector of b that depends on a and earlier ones of b gives one of both
  // spans.
  for (Vector v : b) {
    std::optional<Vector> combination = span.solve(v);
    span.add(v);
    if (!combination)
      continue;
    Vector sum = 0;
    for (unsigned i = 0; i < a.size(); ++i)
      if ((*combination & fromA) >> i & 1)
        sum ^= a[i];
    result.push_back(sum);
  }
  return result;
}

/// Those of `candidates` that extend the span of `base` one after another.
inline llvm::SmallVector<Vector> extend(llvm::ArrayRef<Vector> base,
                                        llvm::ArrayRef<Vector> candidates) {
  Span span(base);
  llvm::SmallVector<Vector> result;
  for (Vector v : candidates)
    if (span.add(v))
      result.push_back(v);
  return result;
}

inline llvm::SmallVector<Vector> unitVectors(unsigned n) {
  llvm::SmallVector<Vector> result;
  for (unsigned i = 0; i < n; ++i)
    result.push_back(Vector(1) << i);
  return result;
}

} // namespace charonia::f2

#endif
