// Expressions as code: one walk for every kind of code.
//
// Quotients round down and remainders are not negative whatever the signs; the
// facts say where the cheap unsigned forms do.
#ifndef CHARONIA_GRAPH_IR_MATERIALIZE_H
#define CHARONIA_GRAPH_IR_MATERIALIZE_H

#include "graph/ir/Algebra.h"

namespace charonia::graph {

/// Writes expressions through `Backend`, which has
///
///   using Value = ...;                  what stands for an integer
///   Value constant(int64_t);
///   Value variable(AffineExpr e);       a dim or symbol
///   Value add(Value, Value), multiply(Value, Value);
///   Value floorDivide(Value a, Value b, bool nonNegative);
///   Value modulo(Value a, Value b, bool nonNegative);
///
/// where b > 0, and a >= 0 if `nonNegative`; without it, a may have any sign. A
/// backend may have `ceilDivide(a, b)` too; `place(expr, write)`, which chooses
/// where the code of `expr` goes and calls `write` for it; and
/// `atLeastOne(b)`, the greater of b and 1, for code that a processor runs: a
/// divisor is the size of something, and where that may be empty nobody uses
/// the quotient, but a division by zero ends the process. Equal parts of the
/// expressions that one materializer writes are written once. Backend and facts
/// must live as long.
template <typename Backend> class Materializer {
public:
  using Value = typename Backend::Value;

  Materializer(Backend &backend, const Facts &facts)
      : backend(backend), bounds(facts) {}

  Value operator()(mlir::AffineExpr expr) {
    if (auto it = memo.find(expr); it != memo.end())
      return it->second;
    auto here = [&] { return write(expr); };
    Value value;
    if constexpr (requires { backend.place(expr, here); })
      value = backend.place(expr, here);
    else
      value = here();
    memo.try_emplace(expr, value);
    return value;
  }

private:
  Value write(mlir::AffineExpr expr) {
    if (auto constant = constantOf(expr))
      return backend.constant(*constant);
    auto binary = llvm::dyn_cast<mlir::AffineBinaryOpExpr>(expr);
    if (!binary)
      return backend.variable(expr);
    Value a = (*this)(binary.getLHS()), b = (*this)(binary.getRHS());
    switch (expr.getKind()) {
    case mlir::AffineExprKind::Add:
      return backend.add(a, b);
    case mlir::AffineExprKind::Mul:
      return backend.multiply(a, b);
    default:
      break;
    }
    if constexpr (requires { backend.atLeastOne(b); })
      if (bounds(binary.getRHS()).low < 1)
        b = backend.atLeastOne(b);
    bool nonNegative = bounds(binary.getLHS()).low >= 0;
    switch (expr.getKind()) {
    case mlir::AffineExprKind::FloorDiv:
      return backend.floorDivide(a, b, nonNegative);
    case mlir::AffineExprKind::Mod:
      return backend.modulo(a, b, nonNegative);
    default:
      break;
    }
    if constexpr (requires { backend.ceilDivide(a, b); })
      return backend.ceilDivide(a, b);
    // ceil(a / b) = floor((a - 1) / b) + 1, which does not overflow; for a >= 0
    // the sum a + b - 1 fits an unsigned number.
    Value less = backend.constant(-1);
    if (nonNegative)
      return backend.floorDivide(backend.add(a, backend.add(b, less)), b, true);
    return backend.add(backend.floorDivide(backend.add(a, less), b, false),
                       backend.constant(1));
  }

  Backend &backend;
  BoundsFinder bounds;
  llvm::DenseMap<mlir::AffineExpr, Value> memo;
};

} // namespace charonia::graph

#endif
