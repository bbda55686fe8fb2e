// The place of a row's best element as a maximum of integers of 64 bits that
// hold an element's place behind its value: maxima are combined in steps,
// places are not.
#include "graph/ops/Common.h"

using namespace mlir;
using namespace charonia::graph;

static constexpr int64_t wordValues = int64_t(1) << 32;

namespace {

/// Writes the keys of one operator.
class PlaceKeys {
public:
  PlaceKeys(ArgReduceOp op, OpBuilder &b) : op(op), b(b) {}

  /// Null where values have no room beside their places.
  Value write() {
    int64_t axis = op.getAxis();
    Exprs shape = getShape(op.getInput());
    std::optional<int64_t> extent = constantOf(shape[axis]);
    unsigned bits = getElementTypeOrSelf(op.getInput()).getIntOrFloatBitWidth();
    if (!extent || *extent < 1 || *extent >= wordValues / 2 || bits > 32)
      return {};
    Value word = orderedWords(op.getInput(), op.getMin());
    Exprs along(shape.size(), getAffineConstantExpr(1, op.getContext()));
    along[axis] = shape[axis];
    Value place = make<IotaOp>(makeType(along, b.getI64Type()), uint64_t(axis));
    // Of equal elements the first has the largest key, or the last.
    Value mask = integer(wordValues - 1, b.getI64Type());
    auto turned = [&](Value value) -> Value {
      return op.getLast() ? value : make<XorOp>(value, mask);
    };
    Value high = make<MulOp>(word, integer(wordValues, b.getI64Type())),
          key = make<AddOp>(high, turned(place)),
          best = make<ReduceOp>(ReduceKind::max, key, ArrayRef{axis},
                                op.getKeepdims());
    return turned(make<AndOp>(best, mask));
  }

private:
  template <typename Op, typename... Args> Value make(Args &&...args) {
    return Op::create(b, op.getLoc(), std::forward<Args>(args)...)
        ->getResult(0);
  }
  Value constant(TypedAttr number) {
    return make<ConstantOp>(DenseElementsAttr::get(
        RankedTensorType::get({}, number.getType()), number));
  }
  Value integer(int64_t value, Type type) {
    return constant(IntegerAttr::get(type, value));
  }
  Value converted(Value x, Type to) {
    if (getElementTypeOrSelf(x) == to)
      return x;
    return make<CastOp>(withElement(x.getType(), to), x, TypeAttr::get(to));
  }

  /// Integers (i64) of 32 bits in the order of the elements, zeros of both
  /// signs equal; with `falling` in the opposite order. NaN comes last in both.
  Value orderedWords(Value x, bool falling) {
    Type element = getElementTypeOrSelf(x), i64 = b.getI64Type();
    if (isa<FloatType>(element))
      return converted(orderedFloats(x, falling), i64);
    bool noSign = element.isUnsignedInteger(32);
    Value word = converted(x, i64);
    if (noSign)
      word = make<AddOp>(word, integer(-wordValues / 2, i64));
    return falling ? make<NotOp>(word) : word;
  }

  /// Those of floats, as i32.
  Value orderedFloats(Value x, bool falling) {
    Type i32 = b.getI32Type(), f32 = b.getF32Type();
    x = converted(x, f32);
    Value zero = constant(FloatAttr::get(f32, 0)),
          isZero = make<CompareOp>(Predicate::eq, x, zero);
    x = make<SelectOp>(isZero, zero, x);
    Value word = make<BitcastOp>(x, TypeAttr::get(i32)),
          most = integer(std::numeric_limits<int32_t>::max(), i32);
    // The magnitude of negative numbers falls.
    Value isNegative = make<CompareOp>(Predicate::lt, word, integer(0, i32)),
          turned = make<XorOp>(word, most);
    word = make<SelectOp>(isNegative, turned, word);
    if (falling)
      word = make<NotOp>(word);
    return make<SelectOp>(make<IsNanOp>(x), most, word);
  }

  ArgReduceOp op;
  OpBuilder &b;
};

} // namespace

Value ArgReduceOp::writeOut(OpBuilder &builder) {
  return PlaceKeys(*this, builder).write();
}
