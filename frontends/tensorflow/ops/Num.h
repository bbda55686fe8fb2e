// Arithmetic on tensors, for rows that compute places or weights.
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_OPS_NUM_H
#define CHARONIA_FRONTENDS_TENSORFLOW_OPS_NUM_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend::tensorflow {

/// A tensor and what builds more; operators broadcast, and numbers beside a
/// tensor are of its element type. Null where something failed.
struct Num {
  mlir::Value value;
  Emitter *e;
  Num of(mlir::Value other) const { return {other, e}; }
  Num of(double number) const {
    return of(e->scalar(number, elementOf(value)));
  }
};
inline Num operator+(Num a, Num b) { return a.of(a.e->add(a.value, b.value)); }
inline Num operator-(Num a, Num b) { return a.of(a.e->sub(a.value, b.value)); }
inline Num operator*(Num a, Num b) { return a.of(a.e->mul(a.value, b.value)); }
inline Num operator/(Num a, Num b) { return a.of(a.e->div(a.value, b.value)); }
inline Num operator+(Num a, double b) { return a + a.of(b); }
inline Num operator-(Num a, double b) { return a - a.of(b); }
inline Num operator*(Num a, double b) { return a * a.of(b); }
inline Num operator/(Num a, double b) { return a / a.of(b); }
inline Num max(Num a, Num b) { return a.of(a.e->max(a.value, b.value)); }
inline Num max(Num a, double b) { return max(a, a.of(b)); }
inline Num min(Num a, Num b) { return a.of(a.e->min(a.value, b.value)); }
inline Num min(Num a, double b) { return min(a, a.of(b)); }
template <typename Op> Num apply(Num a) { return a.of(a.e->op<Op>({a.value})); }

// Truth values.
inline mlir::Value compare(graph::Predicate predicate, Num a, Num b) {
  return a.e->compare(predicate, a.value, b.value);
}
inline mlir::Value operator<(Num a, Num b) {
  return compare(graph::Predicate::lt, a, b);
}
inline mlir::Value operator<(Num a, double b) { return a < a.of(b); }
/// a where the condition holds, else b.
inline Num select(mlir::Value condition, Num a, Num b) {
  return a.of(a.e->select(condition, a.value, b.value));
}
inline Num select(mlir::Value condition, Num a, double b) {
  return select(condition, a, a.of(b));
}

/// The largest finite number of a type of floats.
inline double largestOf(mlir::Type element) {
  llvm::APFloat largest = llvm::APFloat::getLargest(
      llvm::cast<mlir::FloatType>(element).getFloatSemantics());
  bool isInexact;
  largest.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &isInexact);
  return largest.convertToDouble();
}

/// 0, 1, 2, ... along dimension `axis` of `rank`, the others of which are 1.
inline Num countAlong(int64_t axis, int64_t rank, mlir::AffineExpr size,
                      mlir::Type element, Emitter &e) {
  Exprs dims(rank, e.number(1));
  dims[axis] = size;
  return {e.cast(e.iota(dims, axis, e.getBuilder().getI64Type()), element), &e};
}

} // namespace charonia::frontend::tensorflow

#endif
