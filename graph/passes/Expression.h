// Values as terms, so that rewrites of the graph read as equations.
#ifndef CHARONIA_GRAPH_PASSES_EXPRESSION_H
#define CHARONIA_GRAPH_PASSES_EXPRESSION_H

#include "graph/ir/Dialect.h"
#include "mlir/IR/PatternMatch.h"
#include <optional>

namespace charonia::graph {

/// The one value of all elements of a constant, seen through broadcasts and
/// other views; nothing where there is none. Integers as double, exactly.
std::optional<double> splatOf(mlir::Value value);
/// A scalar constant (rank 0) of an element type, rounded to it.
mlir::Value scalarConstant(mlir::OpBuilder &builder, mlir::Location location,
                           mlir::Type element, double value);

/// A term: a value and where terms made from it are inserted. The empty term
/// says that a rule does not apply.
class Term {
public:
  Term() = default;
  Term(mlir::Value value, mlir::OpBuilder &builder, mlir::Location location)
      : value(value), builder(&builder), location(location) {}
  explicit operator bool() const { return static_cast<bool>(value); }
  mlir::Value get() const { return value; }
  mlir::Type element() const { return mlir::getElementTypeOrSelf(value); }
  bool isReal() const { return mlir::isa<mlir::FloatType>(element()); }
  bool operator==(const Term &other) const { return value == other.value; }

  /// Whether all elements are this constant.
  bool is(double constant) const { return splatOf(value) == constant; }
  std::optional<double> constant() const { return splatOf(value); }
  /// Operand `i` of the operator that makes this value, if it is an `Op`; else
  /// the empty term.
  template <typename Op> Term operand(unsigned i = 0) const {
    auto op = value ? value.getDefiningOp<Op>() : Op();
    return op ? with(op->getOperand(i)) : Term();
  }
  template <typename Op> Op as() const {
    return value ? value.getDefiningOp<Op>() : Op();
  }
  /// Another value, at the same place.
  Term with(mlir::Value other) const {
    return other ? Term(other, *builder, *location) : Term();
  }
  /// A scalar of this term's element type.
  Term scalar(double constant) const { return scalar(element(), constant); }
  Term scalar(mlir::Type element, double constant) const {
    return with(scalarConstant(*builder, *location, element, constant));
  }
  /// This term under a copy of `view`, whatever that reads.
  Term under(GraphOpInterface view) const;
  template <typename Op, typename... Args> Term make(Args &&...args) const {
    return with(Op::create(*builder, *location, std::forward<Args>(args)...)
                    ->getResult(0));
  }

private:
  mlir::Value value;
  mlir::OpBuilder *builder = nullptr;
  std::optional<mlir::Location> location;
};

inline Term operator+(Term x, Term y) {
  return x.make<AddOp>(x.get(), y.get());
}
inline Term operator-(Term x, Term y) {
  return x.make<SubOp>(x.get(), y.get());
}
inline Term operator*(Term x, Term y) {
  return x.make<MulOp>(x.get(), y.get());
}
inline Term operator/(Term x, Term y) {
  return x.make<DivOp>(x.get(), y.get());
}
inline Term operator*(Term x, double c) { return x * x.scalar(c); }
inline Term operator+(Term x, double c) { return x + x.scalar(c); }
inline Term operator-(Term x) { return x.make<NegOp>(x.get()); }
inline Term sqrt(Term x) { return x.make<SqrtOp>(x.get()); }
inline Term rsqrt(Term x) { return x.make<RsqrtOp>(x.get()); }
inline Term reciprocal(Term x) { return x.make<ReciprocalOp>(x.get()); }
inline Term abs(Term x) { return x.make<AbsOp>(x.get()); }
inline Term max(Term x, double c) {
  return x.make<MaxOp>(x.get(), x.scalar(c).get());
}
inline Term min(Term x, double c) {
  return x.make<MinOp>(x.get(), x.scalar(c).get());
}

/// `value` among zeros: `lows` of them in front of each dimension, and behind
/// as many as `shape` has room for.
mlir::Value zeroPadded(mlir::OpBuilder &builder, mlir::Location location,
                       mlir::Value value,
                       llvm::ArrayRef<mlir::AffineExpr> shape,
                       llvm::ArrayRef<int64_t> lows);
/// Moves what computes a value in front of `before`, on whose results it does
/// not depend, in its block.
void hoist(mlir::Value value, mlir::Operation *before);
/// Erases operators below `root` that nothing reads, and what only they read.
void eraseDead(mlir::Operation *root);

/// `value` broadcast to `type`, or itself; null where it does not broadcast.
mlir::Value broadcastTo(mlir::OpBuilder &builder, mlir::Location location,
                        mlir::Value value, mlir::Type type);

} // namespace charonia::graph

#endif
