// Integers, indices and what is chosen by them. Values are kept zero-extended
// from their width.
#include "codegen/gpu/interpreter/Decoder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::interpreter;

namespace {

template <typename T> T maskOf(unsigned bits) {
  return bits >= sizeof(T) * 8 ? ~T(0) : (T(1) << bits) - 1;
}
template <typename T> std::make_signed_t<T> extended(T value, unsigned bits) {
  unsigned shift = sizeof(T) * 8 - bits;
  return std::make_signed_t<T>(value << shift) >> shift;
}

template <typename T, auto F> void binary(Warp &warp, const Instruction &i) {
  T *result = warp.lanes<T>(i.result), mask = maskOf<T>(i.bits);
  const T *a = warp.lanes<T>(i.a), *b = warp.lanes<T>(i.b);
  unsigned bits = i.bits;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    result[lane] = T(F(a[lane], b[lane], bits)) & mask;
}

template <auto F> LogicalResult integer(Decoder &d, Operation *op) {
  unsigned bits = d.bitsOf(op->getResult(0).getType());
  SmallVector<Slot, 4> results = d.define(op->getResult(0));
  for (auto [i, result] : llvm::enumerate(results)) {
    Instruction &n =
        d.emit(op, bits > 32 ? binary<uint64_t, F> : binary<uint32_t, F>);
    n.result = result;
    n.a = d.slots(op->getOperand(0))[i];
    n.b = d.slots(op->getOperand(1))[i];
    n.bits = bits;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

template <typename T, auto F> void compare(Warp &warp, const Instruction &i) {
  uint32_t *result = warp.lanes<uint32_t>(i.result);
  const T *a = warp.lanes<T>(i.a), *b = warp.lanes<T>(i.b);
  unsigned bits = i.bits;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    result[lane] = F(a[lane], b[lane], bits);
}

template <auto F> Handler comparison(unsigned bits) {
  return bits > 32 ? compare<uint64_t, F> : compare<uint32_t, F>;
}

Handler comparisonOf(arith::CmpIPredicate predicate, unsigned bits) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return comparison<[](auto a, auto b, unsigned) { return a == b; }>(bits);
  case P::ne:
    return comparison<[](auto a, auto b, unsigned) { return a != b; }>(bits);
  case P::slt:
    return comparison<[](auto a, auto b, unsigned n) {
      return extended(a, n) < extended(b, n);
    }>(bits);
  case P::sle:
    return comparison<[](auto a, auto b, unsigned n) {
      return extended(a, n) <= extended(b, n);
    }>(bits);
  case P::sgt:
    return comparison<[](auto a, auto b, unsigned n) {
      return extended(a, n) > extended(b, n);
    }>(bits);
  case P::sge:
    return comparison<[](auto a, auto b, unsigned n) {
      return extended(a, n) >= extended(b, n);
    }>(bits);
  case P::ult:
    return comparison<[](auto a, auto b, unsigned) { return a < b; }>(bits);
  case P::ule:
    return comparison<[](auto a, auto b, unsigned) { return a <= b; }>(bits);
  case P::ugt:
    return comparison<[](auto a, auto b, unsigned) { return a > b; }>(bits);
  case P::uge:
    return comparison<[](auto a, auto b, unsigned) { return a >= b; }>(bits);
  }
  return nullptr;
}

LogicalResult decodeCompare(Decoder &d, Operation *op) {
  auto predicate =
      isa<arith::CmpIOp>(op)
          ? cast<arith::CmpIOp>(op).getPredicate()
          // The same order in both dialects.
          : arith::CmpIPredicate(cast<LLVM::ICmpOp>(op).getPredicate());
  unsigned bits = d.bitsOf(op->getOperand(0).getType());
  Slot result = d.define(op->getResult(0)).front();
  Instruction &i = d.emit(op, comparisonOf(predicate, bits));
  i.result = result;
  i.a = d.slot(op->getOperand(0));
  i.b = d.slot(op->getOperand(1));
  i.bits = bits;
  return success();
}

//===----------------------------------------------------------------------===//
// Choice and constants
//===----------------------------------------------------------------------===//

template <typename T> void choose(Warp &warp, const Instruction &i) {
  T *result = warp.lanes<T>(i.result);
  const uint32_t *condition = warp.lanes<uint32_t>(i.a);
  const T *yes = warp.lanes<T>(i.b), *no = warp.lanes<T>(i.c);
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    result[lane] = condition[lane] ? yes[lane] : no[lane];
}

LogicalResult decodeSelect(Decoder &d, Operation *op) {
  unsigned bits = d.bitsOf(op->getResult(0).getType());
  SmallVector<Slot, 4> results = d.define(op->getResult(0));
  for (auto [i, result] : llvm::enumerate(results)) {
    ArrayRef<Slot> conditions = d.slots(op->getOperand(0));
    Slot condition = conditions[conditions.size() == 1 ? 0 : i];
    Instruction &n =
        d.emit(op, bits > 32 ? choose<uint64_t> : choose<uint32_t>);
    n.result = result;
    n.a = condition;
    n.b = d.slots(op->getOperand(1))[i];
    n.c = d.slots(op->getOperand(2))[i];
  }
  return success();
}

LogicalResult decodeConstant(Decoder &d, Operation *op) {
  Attribute value = isa<arith::ConstantOp>(op)
                        ? Attribute(cast<arith::ConstantOp>(op).getValue())
                        : cast<LLVM::ConstantOp>(op).getValue();
  unsigned bits = d.bitsOf(op->getResult(0).getType());
  llvm::APInt number;
  if (auto integer = dyn_cast<IntegerAttr>(value))
    number = integer.getValue();
  else if (auto real = dyn_cast<FloatAttr>(value))
    number = real.getValue().bitcastToAPInt();
  else
    return op->emitError("the interpreter takes scalar constants");
  d.alias(op->getResult(0),
          d.constant(op, number.zextOrTrunc(bits).getZExtValue(), bits));
  return success();
}

LogicalResult decodePoison(Decoder &d, Operation *op) {
  // Slots of their own that nothing writes: zeros.
  d.define(op->getResult(0));
  return success();
}

} // namespace

void handlers::setConstant(Warp &warp, const Instruction &i) {
  if (i.bits > 32)
    std::fill_n(warp.lanes<uint64_t>(i.result), kWarpLanes,
                uint64_t(i.constant));
  else
    std::fill_n(warp.lanes<uint32_t>(i.result), kWarpLanes,
                uint32_t(i.constant));
}

// A GPU's quotient by zero is all ones; a shift by the width or more gives what
// is shifted in.
void charonia::interpreter::addIntegers(OperationTable &table) {
  auto both = [&](StringRef arith, StringRef llvm, DecodeFunction decode) {
    table[("arith." + arith).str()] = decode;
    table[("llvm." + llvm).str()] = decode;
  };
  both("addi", "add", integer<[](auto a, auto b, unsigned) { return a + b; }>);
  both("subi", "sub", integer<[](auto a, auto b, unsigned) { return a - b; }>);
  both("muli", "mul", integer<[](auto a, auto b, unsigned) { return a * b; }>);
  both("andi", "and", integer<[](auto a, auto b, unsigned) { return a & b; }>);
  both("ori", "or", integer<[](auto a, auto b, unsigned) { return a | b; }>);
  both("xori", "xor", integer<[](auto a, auto b, unsigned) { return a ^ b; }>);
  both("shli", "shl", integer<[](auto a, auto b, unsigned n) {
         return b < n ? a << b : decltype(a)(0);
       }>);
  both("shrui", "lshr", integer<[](auto a, auto b, unsigned n) {
         return b < n ? a >> b : decltype(a)(0);
       }>);
  both("shrsi", "ashr", integer<[](auto a, auto b, unsigned n) {
         return extended(a, n) >> (b < n ? b : n - 1);
       }>);
  both("divui", "udiv", integer<[](auto a, auto b, unsigned) {
         return b ? a / b : ~decltype(a)(0);
       }>);
  both("remui", "urem",
       integer<[](auto a, auto b, unsigned) { return b ? a % b : a; }>);
  // By -1 is a negation, which no division overflows at.
  both("divsi", "sdiv", integer<[](auto a, auto b, unsigned n) {
         auto x = extended(a, n), y = extended(b, n);
         return y == 0 ? ~decltype(a)(0) : y == -1 ? 0 - a : decltype(a)(x / y);
       }>);
  both("remsi", "srem", integer<[](auto a, auto b, unsigned n) {
         auto x = extended(a, n), y = extended(b, n);
         return y == 0 ? a : y == -1 ? decltype(a)(0) : decltype(a)(x % y);
       }>);
  both("maxsi", "intr.smax", integer<[](auto a, auto b, unsigned n) {
         return extended(a, n) < extended(b, n) ? b : a;
       }>);
  both("minsi", "intr.smin", integer<[](auto a, auto b, unsigned n) {
         return extended(a, n) < extended(b, n) ? a : b;
       }>);
  both("maxui", "intr.umax",
       integer<[](auto a, auto b, unsigned) { return a < b ? b : a; }>);
  both("minui", "intr.umin",
       integer<[](auto a, auto b, unsigned) { return a < b ? a : b; }>);
  both("cmpi", "icmp", decodeCompare);
  both("select", "select", decodeSelect);
  table["arith.constant"] = table["llvm.mlir.constant"] = decodeConstant;
  table["llvm.mlir.poison"] = table["llvm.mlir.undef"] = decodePoison;
}
