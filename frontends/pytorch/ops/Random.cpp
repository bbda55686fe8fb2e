// Random numbers; see builders/Random.h for what that means of an engine.
#include "frontends/common/builders/Random.h"
#include "frontends/pytorch/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::LogicalResult;
using mlir::Value;

/// What says where a tensor lies, and what has the shape of the result.
static void ignoreOptions(Call &c) {
  c.ignore({"self", "size", "generator", "dtype", "layout", "device",
            "pin_memory", "memory_format"});
}

/// An argument in float, a number or a tensor; `otherwise` where it is left
/// out.
static Value parameter(Call &c, llvm::StringRef name, double otherwise) {
  mlir::Type f32 = c.getEmitter().getBuilder().getF32Type();
  return c.has(name) ? c.operand(name, f32)
                     : c.getEmitter().scalar(otherwise, f32);
}

/// Of the bits that `element` holds.
static Value drawUniform(Call &c, mlir::Type element) {
  Emitter &e = c.getEmitter();
  auto type = llvm::dyn_cast_or_null<mlir::FloatType>(element);
  return buildUniform(c.resultShape(), drawStream({}, e),
                      type ? type : e.getBuilder().getF32Type(), e);
}

static LogicalResult uniform(Call &c) {
  Emitter &e = c.getEmitter();
  ignoreOptions(c);
  Value low = parameter(c, "from", 0), high = parameter(c, "to", 1),
        drawn = drawUniform(c, c.resultElement());
  return c.yield(
      e.cast(e.add(e.mul(drawn, e.sub(high, low)), low), c.resultElement()));
}
static LogicalResult normal(Call &c) {
  Emitter &e = c.getEmitter();
  ignoreOptions(c);
  Value mean = parameter(c, "mean", 0), deviation = parameter(c, "std", 1),
        drawn = buildNormal(c.resultShape(), drawStream({}, e), e);
  return c.yield(
      e.cast(e.add(e.mul(drawn, deviation), mean), c.resultElement()));
}
/// 1 with probability `p`, or that which `self` has for the element.
static LogicalResult bernoulli(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type f32 = e.getBuilder().getF32Type();
  Value p = c.operand(c.has("p") ? "p" : "self", f32);
  ignoreOptions(c);
  Value drawn = drawUniform(c, e.getBuilder().getF32Type());
  return c.yield(
      e.cast(e.compare(graph::Predicate::lt, drawn, p), c.resultElement()));
}
/// Integers from `low` to below `high`.
static LogicalResult integers(Call &c) {
  Emitter &e = c.getEmitter();
  ignoreOptions(c);
  int64_t low = c.integer("low", 0), high = c.integer("high");
  constexpr int64_t bits = 24, most = int64_t(1) << bits, farthest = 1LL << 40;
  if (e.failed())
    return c.yield(Value());
  if (low < -farthest || high > farthest || low >= high || high - low > most)
    return c.fail("random integers from " + llvm::Twine(low) + " to below " +
                      llvm::Twine(high) + " are not supported",
                  "draw from a range of 1 to 2^24 numbers");
  // In double the product is exact, and below the number of integers.
  mlir::Type f64 = e.getBuilder().getF64Type(),
             i64 = e.getBuilder().getI64Type();
  Value drawn = e.cast(drawUniform(c, e.getBuilder().getF32Type()), f64),
        scaled = e.mul(drawn, e.scalar(double(high - low), f64));
  return c.yield(e.cast(e.add(e.cast(scaled, i64), e.scalar(low, i64)),
                        c.resultElement()));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::randomRows() {
  static const Row rows[] = {
      {"aten.rand.default", uniform},
      {"aten.rand_like.default", uniform},
      {"aten.uniform.default", uniform},
      {"aten.randn.default", normal},
      {"aten.randn_like.default", normal},
      {"aten.normal.float_float", normal},
      {"aten.normal.Tensor_float", normal},
      {"aten.normal.float_Tensor", normal},
      {"aten.normal.Tensor_Tensor", normal},
      {"aten.normal_functional.default", normal},
      {"aten.bernoulli.default", bernoulli},
      {"aten.bernoulli.p", bernoulli},
      {"aten.randint.default", integers},
      {"aten.randint.low", integers},
      {"aten.randint_like.default", integers},
      {"aten.randint_like.low_dtype", integers},
  };
  return rows;
}
