#include "graph/passes/LiftScales.h"
#include "graph/ir/Float8.h"
#include "graph/passes/Expression.h"

using namespace mlir;
using namespace charonia::graph;

namespace {

/// An operand of a product: floats of 8 bits times a scale, which broadcasts to
/// them from the right; the empty term where there is none.
struct Scaled {
  Term small, scale;
};

class Lifter {
public:
  static void lift(MatmulOp product) {
    if (!isa<FloatType>(getElementTypeOrSelf(product.getType())))
      return;
    OpBuilder builder(product);
    Term root(product.getResult(), builder, product.getLoc());
    std::optional<Scaled> a = peel(root.with(product.getLhs())),
                          b = peel(root.with(product.getRhs()));
    // The terms are the last dimension of `a` and the last but one of `b`.
    if (!a || !b || !isSameAlong(a->scale, 0) || !isSameAlong(b->scale, 1))
      return;
    if (!a->scale && !b->scale && a->small.get() == product.getLhs() &&
        b->small.get() == product.getRhs())
      return;
    Term result = root.make<MatmulOp>(a->small.get(), b->small.get());
    if (a->scale && b->scale && hasOneElement(a->scale) &&
        hasOneElement(b->scale)) {
      result = result * (a->scale * b->scale);
    } else {
      for (Term scale : {a->scale, b->scale})
        if (scale)
          result = result * scale;
    }
    if (result.element() != root.element())
      result = result.make<CastOp>(result.get(), root.element());
    if (result.get().getType() == product.getType())
      product.getResult().replaceAllUsesWith(result.get());
  }

private:
  /// Looks through conversions to larger floats, scales and transposes.
  static std::optional<Scaled> peel(Term x) {
    if (auto real = dyn_cast<FloatType>(x.element()); real && isFloat8(real))
      return Scaled{x, {}};
    if (auto cast = x.as<CastOp>())
      return isa<FloatType>(getElementTypeOrSelf(cast.getInput()))
                 ? peel(x.with(cast.getInput()))
                 : std::nullopt;
    if (auto product = x.as<MulOp>()) {
      for (unsigned side : {0, 1})
        if (auto found = peel(x.operand<MulOp>(side)))
          return times(*found, x.operand<MulOp>(1 - side), x);
      return std::nullopt;
    }
    if (auto quotient = x.as<DivOp>()) {
      auto divisor = x.operand<DivOp>(1).constant();
      auto found = divisor ? peel(x.operand<DivOp>(0)) : std::nullopt;
      Type wide = Float32Type::get(quotient.getContext());
      return found ? times(*found, x.scalar(wide, 1 / *divisor), x)
                   : std::nullopt;
    }
    if (auto view = x.as<TransposeOp>()) {
      auto found = peel(x.with(view.getInput()));
      if (!found)
        return std::nullopt;
      found->small = transposed(found->small, view.getPermutation());
      if (found->scale && !hasOneElement(found->scale))
        found->scale = transposed(found->scale, view.getPermutation());
      return found;
    }
    return std::nullopt;
  }

  /// With one more scale, where it does not make the operand larger.
  static std::optional<Scaled> times(Scaled x, Term scale, Term whole) {
    if (getShape(x.small.get()) != getShape(whole.get()))
      return std::nullopt;
    if (!scale.element().isF32())
      scale = scale.make<CastOp>(scale.get(),
                                 Float32Type::get(scale.get().getContext()));
    x.scale = x.scale ? x.scale * scale : scale;
    return x;
  }

  /// Dimensions that the value lacks have one element.
  static Term transposed(Term x, ArrayRef<int64_t> permutation) {
    Exprs shape = getShape(x.get());
    if (shape.size() < permutation.size()) {
      AffineExpr one = getAffineConstantExpr(1, x.get().getContext());
      shape.insert(shape.begin(), permutation.size() - shape.size(), one);
      x = x.make<ReshapeOp>(makeType(shape, x.element()), x.get());
    }
    return x.make<TransposeOp>(x.get(), permutation);
  }

  static bool isSameAlong(Term scale, unsigned fromLast) {
    if (!scale)
      return true;
    Exprs shape = getShape(scale.get());
    return shape.size() <= fromLast ||
           constantOf(shape[shape.size() - 1 - fromLast]) == 1;
  }

  static bool hasOneElement(Term x) {
    return llvm::all_of(getShape(x.get()),
                        [](AffineExpr d) { return constantOf(d) == 1; });
  }
};

} // namespace

void charonia::graph::liftScales(func::FuncOp function) {
  SmallVector<MatmulOp> products;
  function.walk([&](MatmulOp op) { products.push_back(op); });
  for (MatmulOp product : products)
    Lifter::lift(product);
}
