// Floating-point arithmetic.
#include "codegen/gpu/interpreter/Decoder.h"
#include "codegen/gpu/interpreter/Formats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <limits>

using namespace mlir;
using namespace charonia;
using namespace charonia::interpreter;

namespace {

/// Results that are no number are one NaN, as on a GPU; CPUs give them the sign
/// and the digits of an operand. Threads that write what is the same write the
/// same bits then.
template <typename Format> typename Format::Bits rounded(auto value) {
  if (std::isnan(value))
    value = std::numeric_limits<decltype(value)>::quiet_NaN();
  return Format::round(value);
}

template <typename Format, unsigned N, auto F>
void apply(Warp &warp, const Instruction &i) {
  using Bits = typename Format::Bits;
  Bits *result = warp.lanes<Bits>(i.result);
  const Bits *a = warp.lanes<Bits>(i.a), *b = warp.lanes<Bits>(i.b),
             *c = warp.lanes<Bits>(i.c);
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    auto x = Format::read(a[lane]);
    if constexpr (N == 1)
      result[lane] = rounded<Format>(F(x));
    else if constexpr (N == 2)
      result[lane] = rounded<Format>(F(x, Format::read(b[lane])));
    else
      result[lane] =
          rounded<Format>(F(x, Format::read(b[lane]), Format::read(c[lane])));
  }
}

LogicalResult emitEach(Decoder &d, Operation *op, Handler handler) {
  if (!handler)
    return op->emitError("the interpreter does not know this type");
  SmallVector<Slot, 4> results = d.define(op->getResult(0));
  for (auto [i, result] : llvm::enumerate(results)) {
    Instruction &n = d.emit(op, handler);
    n.result = result;
    Slot *places[] = {&n.a, &n.b, &n.c};
    for (auto [place, operand] : llvm::zip(places, op->getOperands()))
      *place = d.slots(operand)[i];
  }
  return success();
}

/// An operation of N operands and a result of one type.
template <unsigned N, auto F> LogicalResult number(Decoder &d, Operation *op) {
  return emitEach(d, op,
                  withFormat(Decoder::elementOf(op->getResult(0).getType()),
                             [](auto format) -> Handler {
                               return apply<decltype(format), N, F>;
                             }));
}

//===----------------------------------------------------------------------===//
// Comparisons, signs
//===----------------------------------------------------------------------===//

/// `flags`: which of unordered, less, greater, equal (1, 2, 4, 8) are true.
template <typename Format> void compare(Warp &warp, const Instruction &i) {
  using Bits = typename Format::Bits;
  uint32_t *result = warp.lanes<uint32_t>(i.result);
  const Bits *a = warp.lanes<Bits>(i.a), *b = warp.lanes<Bits>(i.b);
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    auto x = Format::read(a[lane]), y = Format::read(b[lane]);
    unsigned relation = x < y ? 2 : x > y ? 4 : x == y ? 8 : 1;
    result[lane] = (i.flags & relation) != 0;
  }
}

LogicalResult decodeCompare(Decoder &d, Operation *op) {
  using P = arith::CmpFPredicate;
  auto predicate = isa<arith::CmpFOp>(op)
                       ? cast<arith::CmpFOp>(op).getPredicate()
                       // The same order in both dialects.
                       : P(cast<LLVM::FCmpOp>(op).getPredicate());
  constexpr unsigned unordered = 1, less = 2, greater = 4, equal = 8;
  unsigned when = 0;
  switch (predicate) {
  case P::AlwaysFalse:
    when = 0;
    break;
  case P::OEQ:
    when = equal;
    break;
  case P::OGT:
    when = greater;
    break;
  case P::OGE:
    when = greater | equal;
    break;
  case P::OLT:
    when = less;
    break;
  case P::OLE:
    when = less | equal;
    break;
  case P::ONE:
    when = less | greater;
    break;
  case P::ORD:
    when = less | greater | equal;
    break;
  case P::UEQ:
    when = unordered | equal;
    break;
  case P::UGT:
    when = unordered | greater;
    break;
  case P::UGE:
    when = unordered | greater | equal;
    break;
  case P::ULT:
    when = unordered | less;
    break;
  case P::ULE:
    when = unordered | less | equal;
    break;
  case P::UNE:
    when = unordered | less | greater;
    break;
  case P::UNO:
    when = unordered;
    break;
  case P::AlwaysTrue:
    when = unordered | less | greater | equal;
    break;
  }
  Handler handler =
      withFormat(op->getOperand(0).getType(), [](auto format) -> Handler {
        return compare<decltype(format)>;
      });
  if (failed(emitEach(d, op, handler)))
    return failure();
  d.program.code.back().flags = when;
  return success();
}

/// Signs are bits: of NaN, too.
template <typename T, auto F> void onBits(Warp &warp, const Instruction &i) {
  T *result = warp.lanes<T>(i.result), sign = T(1) << (i.bits - 1);
  const T *a = warp.lanes<T>(i.a), *b = warp.lanes<T>(i.b);
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    result[lane] = F(a[lane], b[lane], sign);
}

template <auto F> LogicalResult signs(Decoder &d, Operation *op) {
  unsigned bits = d.bitsOf(op->getResult(0).getType());
  uint32_t first = d.position();
  if (failed(emitEach(d, op,
                      bits > 32 ? onBits<uint64_t, F> : onBits<uint32_t, F>)))
    return failure();
  for (uint32_t at = first; at < d.position(); ++at)
    d.program.code[at].bits = bits;
  return success();
}

//===----------------------------------------------------------------------===//
// Approximations of the hardware
//===----------------------------------------------------------------------===//

/// ".ftz": denormals are zero.
float flushed(float x) { return std::fabs(x) < 0x1p-126f ? x * 0.0f : x; }

LogicalResult decodeIntrinsic(Decoder &d, Operation *op) {
  StringRef name = cast<LLVM::CallIntrinsicOp>(op).getIntrin();
  if (name == "llvm.nvvm.ex2.approx.ftz.f")
    return number<1, [](auto x) {
      return flushed(float(std::exp2(double(flushed(x)))));
    }>(d, op);
  if (name == "llvm.nvvm.rsqrt.approx.ftz.f")
    return number<1, [](auto x) {
      return flushed(float(1 / std::sqrt(double(flushed(x)))));
    }>(d, op);
  if (name == "llvm.nvvm.div.full")
    return number<2, [](auto x, auto y) { return x / y; }>(d, op);
  return op->emitError("the interpreter does not know the intrinsic '")
         << name << "'";
}

template <typename T> T roundedEven(T x) {
  T down = std::floor(x), rest = x - down;
  T even =
      down + (rest > T(0.5) || (rest == T(0.5) && std::fmod(down, 2) != 0));
  return std::copysign(std::isfinite(x) ? even : x, x);
}

} // namespace

void charonia::interpreter::addFloats(OperationTable &table) {
  auto both = [&](StringRef arith, StringRef llvm, DecodeFunction decode) {
    table[arith] = decode;
    table[("llvm." + llvm).str()] = decode;
  };
  both("arith.addf", "fadd", number<2, [](auto x, auto y) { return x + y; }>);
  both("arith.subf", "fsub", number<2, [](auto x, auto y) { return x - y; }>);
  both("arith.mulf", "fmul", number<2, [](auto x, auto y) { return x * y; }>);
  both("arith.divf", "fdiv", number<2, [](auto x, auto y) { return x / y; }>);
  both("arith.remf", "frem",
       number<2, [](auto x, auto y) { return std::fmod(x, y); }>);
  both("arith.maximumf", "intr.maximum", number<2, [](auto x, auto y) {
         return std::isnan(x) || std::isnan(y) ? decltype(x)(NAN)
                : x == y                       ? (std::signbit(x) ? y : x)
                                               : (x < y ? y : x);
       }>);
  both("arith.minimumf", "intr.minimum", number<2, [](auto x, auto y) {
         return std::isnan(x) || std::isnan(y) ? decltype(x)(NAN)
                : x == y                       ? (std::signbit(x) ? x : y)
                                               : (x < y ? x : y);
       }>);
  both("arith.maxnumf", "intr.maxnum",
       number<2, [](auto x, auto y) { return std::fmax(x, y); }>);
  both("arith.minnumf", "intr.minnum",
       number<2, [](auto x, auto y) { return std::fmin(x, y); }>);
  both("arith.cmpf", "fcmp", decodeCompare);
  both("arith.negf", "fneg",
       signs<[](auto a, auto, auto sign) { return a ^ sign; }>);
  both("math.absf", "intr.fabs",
       signs<[](auto a, auto, auto sign) { return a & ~sign; }>);
  both("math.copysign", "intr.copysign", signs<[](auto a, auto b, auto sign) {
         return (a & ~sign) | (b & sign);
       }>);
  both("math.fma", "intr.fma",
       number<3, [](auto x, auto y, auto z) { return std::fma(x, y, z); }>);
  both("math.sqrt", "intr.sqrt",
       number<1, [](auto x) { return std::sqrt(x); }>);
  both("math.floor", "intr.floor",
       number<1, [](auto x) { return std::floor(x); }>);
  both("math.ceil", "intr.ceil",
       number<1, [](auto x) { return std::ceil(x); }>);
  both("math.trunc", "intr.trunc",
       number<1, [](auto x) { return std::trunc(x); }>);
  both("math.roundeven", "intr.roundeven",
       number<1, [](auto x) { return roundedEven(x); }>);
  both("math.round", "intr.round",
       number<1, [](auto x) { return std::round(x); }>);
  table["llvm.call_intrinsic"] = decodeIntrinsic;
}
