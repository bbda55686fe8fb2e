#include "graph/passes/PlaceKeys.h"
#include "graph/passes/Expression.h"

using namespace mlir;
using namespace charonia::graph;

static constexpr double wordValues = double(int64_t(1) << 32);

static Term converted(Term x, Type to) {
  if (x.element() == to)
    return x;
  return x.make<CastOp>(withElement(x.get().getType(), to), x.get(),
                        TypeAttr::get(to));
}

/// Integers (i64) of 32 bits in the order of the elements, zeros of both signs
/// equal; with `falling` in the opposite order. NaN comes last in both. Empty
/// for elements of more bits.
static Term orderedWords(Term x, bool falling, OpBuilder &b) {
  Type i32 = b.getI32Type(), i64 = b.getI64Type(), f32 = b.getF32Type();
  constexpr double most = std::numeric_limits<int32_t>::max();
  unsigned bits = x.element().getIntOrFloatBitWidth();
  if (bits > 32)
    return {};
  if (!x.isReal()) {
    bool noSign = x.element().isUnsignedInteger() && bits == 32;
    Term word = converted(x, i64);
    if (noSign)
      word = word + -wordValues / 2;
    return falling ? word.make<NotOp>(word.get()) : word;
  }
  x = converted(x, f32);
  Term zero = x.scalar(0),
       isZero = x.make<CompareOp>(Predicate::eq, x.get(), zero.get());
  x = x.make<SelectOp>(isZero.get(), zero.get(), x.get());
  Term word = x.make<BitcastOp>(x.get(), TypeAttr::get(i32));
  // The magnitude of negative numbers falls.
  Term isNegative = word.make<CompareOp>(Predicate::lt, word.get(),
                                         word.scalar(0).get()),
       turned = word.make<XorOp>(word.get(), word.scalar(most).get());
  word = word.make<SelectOp>(isNegative.get(), turned.get(), word.get());
  if (falling)
    word = word.make<NotOp>(word.get());
  Term isNan = x.make<IsNanOp>(x.get());
  word = word.make<SelectOp>(isNan.get(), word.scalar(most).get(), word.get());
  return converted(word, i64);
}

Value charonia::graph::writePlaceByKeys(OpBuilder &builder, ArgReduceOp op) {
  Type i64 = builder.getI64Type();
  int64_t axis = op.getAxis();
  Exprs shape = getShape(op.getInput());
  std::optional<int64_t> extent = constantOf(shape[axis]);
  if (!extent || *extent < 1 || double(*extent) >= wordValues / 2)
    return {};
  Term x(op.getInput(), builder, op.getLoc());
  Term word = orderedWords(x, op.getMin(), builder);
  if (!word)
    return {};
  Exprs along(shape.size(), getAffineConstantExpr(1, op.getContext()));
  along[axis] = shape[axis];
  Term place = x.make<IotaOp>(makeType(along, i64), uint64_t(axis));
  // Of equal elements the first has the largest key, or the last.
  Term mask = place.scalar(wordValues - 1);
  auto turned = [&](Term value) {
    return op.getLast() ? value : value.make<XorOp>(value.get(), mask.get());
  };
  Term key = word * wordValues + turned(place);
  Term best = key.make<ReduceOp>(ReduceKind::max, key.get(), ArrayRef{axis},
                                 op.getKeepdims());
  return turned(best.make<AndOp>(best.get(), mask.get())).get();
}
