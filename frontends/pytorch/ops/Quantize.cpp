// Values that are rounded as if they were quantized, of training for that.
#include "frontends/pytorch/ops/Rows.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using graph::Predicate;

/// A scale or zero point: a number, a tensor of one, or one a channel.
static Value parameter(Call &c, llvm::StringRef name, mlir::Type element,
                       int64_t axis, int64_t rank) {
  Emitter &e = c.getEmitter();
  Value value = c.operand(name, element);
  if (rankOf(value) == 0 || axis < 0)
    return value ? e.reshape(value, {}) : value;
  return e.asChannels(value, rank - 1 - axis);
}

/// The nearest of the numbers (q - zero point) * scale with q in quant_min ..
/// quant_max, and whether q was in there before it was cut. PyTorch multiplies
/// by 1 / scale, in float.
static LogicalResult fakeQuantize(Call &c) {
  Emitter &e = c.getEmitter();
  Value given = c.tensor("self"), x = e.widen(given);
  if (!x || !isFloat(x))
    return c.fail("is of floats");
  mlir::Type element = elementOf(x), f32 = e.getBuilder().getF32Type();
  int64_t rank = rankOf(x), axis = c.has("axis") ? c.axis("axis", rank) : -1;
  auto number = [&](llvm::StringRef name) {
    return e.scalar(c.integer(name), element);
  };
  Value scale = parameter(c, "scale", f32, axis, rank),
        zero = parameter(c, "zero_point", element, axis, rank),
        low = number("quant_min"), high = number("quant_max");
  Value inverse = e.cast(e.div(e.scalar(1.0, f32), scale), element);
  Value steps = e.mul(x, inverse);
  // Zero points that are floats are added before.
  bool isWhole = !c.metaOf("zero_point") || !isFloat(c.tensor("zero_point"));
  Value q = isWhole ? e.add(e.op<graph::RoundOp>({steps}), zero)
                    : e.op<graph::RoundOp>({e.add(zero, steps)});
  Value isInside = e.op<graph::AndOp>(
      {e.compare(Predicate::ge, q, low), e.compare(Predicate::le, q, high)});
  // Of one scale for all the result is one of float, whatever the operand is.
  mlir::Type exact = axis < 0 ? f32 : element;
  Value kept = e.sub(e.min(e.max(q, low), high), zero);
  Value y = e.cast(e.mul(e.cast(kept, exact), e.cast(scale, exact)), element);
  if (c.has("fake_quant_enabled")) {
    Value isOn = e.compare(
        Predicate::ne, e.reshape(c.operand("fake_quant_enabled", element), {}),
        e.scalar(0.0, element));
    y = e.select(isOn, y, x);
    isInside = e.op<graph::OrOp>({isInside, e.op<graph::NotOp>({isOn})});
  }
  y = e.cast(y, elementOf(given));
  return c.numResults() == 1 ? c.yield(y) : c.yield({y, isInside});
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::quantizeRows() {
  static const Row rows[] = {
      {"aten.fake_quantize_per_tensor_affine.default", fakeQuantize},
      {"aten.fake_quantize_per_tensor_affine.tensor_qparams", fakeQuantize},
      {"aten.fake_quantize_per_tensor_affine_cachemask.default", fakeQuantize},
      {"aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
       fakeQuantize},
      {"aten.fake_quantize_per_channel_affine.default", fakeQuantize},
      {"aten.fake_quantize_per_channel_affine_cachemask.default", fakeQuantize},
  };
  return rows;
}
