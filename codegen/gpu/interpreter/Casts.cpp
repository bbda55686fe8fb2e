// Between types: widths, numbers and integers, the same bits, vectors.
#include "codegen/gpu/interpreter/Decoder.h"
#include "codegen/gpu/interpreter/Formats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::interpreter;

namespace {

/// `bits`: of the operand; `flags`: of the result; `constant`: sign-extended.
template <typename From, typename To>
void resize(Warp &warp, const Instruction &i) {
  To *result = warp.lanes<To>(i.result);
  const From *a = warp.lanes<From>(i.a);
  unsigned shift = 64 - i.bits;
  uint64_t mask = i.flags >= 64 ? ~uint64_t(0) : (uint64_t(1) << i.flags) - 1;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    uint64_t value = a[lane];
    if (i.constant)
      value = uint64_t(int64_t(value << shift) >> shift);
    result[lane] = To(value & mask);
  }
}

template <bool isSigned> LogicalResult decodeResize(Decoder &d, Operation *op) {
  unsigned from = d.bitsOf(op->getOperand(0).getType()),
           to = d.bitsOf(op->getResult(0).getType());
  SmallVector<Slot> operands(d.slots(op->getOperand(0)));
  if (from == to) {
    d.alias(op->getResult(0), operands);
    return success();
  }
  SmallVector<Slot, 4> results = d.define(op->getResult(0));
  for (auto [operand, result] : llvm::zip(operands, results)) {
    Handler handler = from > 32 ? (to > 32 ? resize<uint64_t, uint64_t>
                                           : resize<uint64_t, uint32_t>)
                                : (to > 32 ? resize<uint32_t, uint64_t>
                                           : resize<uint32_t, uint32_t>);
    Instruction &i = d.emit(op, handler);
    i.result = result;
    i.a = operand;
    i.bits = from;
    i.flags = to;
    i.constant = isSigned;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

template <typename From, typename To>
void convert(Warp &warp, const Instruction &i) {
  auto *result = warp.lanes<typename To::Bits>(i.result);
  const auto *a = warp.lanes<typename From::Bits>(i.a);
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    result[lane] = To::round(From::read(a[lane]));
}

LogicalResult decodeConvert(Decoder &d, Operation *op) {
  Type from = Decoder::elementOf(op->getOperand(0).getType()),
       to = Decoder::elementOf(op->getResult(0).getType());
  Handler handler = withFormat(from, [&](auto source) -> Handler {
    return withFormat(to, [](auto target) -> Handler {
      return convert<decltype(source), decltype(target)>;
    });
  });
  if (!handler)
    return op->emitError("the interpreter does not know this type");
  SmallVector<Slot, 4> results = d.define(op->getResult(0));
  for (auto [i, result] : llvm::enumerate(results)) {
    Instruction &n = d.emit(op, handler);
    n.result = result;
    n.a = d.slots(op->getOperand(0))[i];
  }
  return success();
}

/// Two floats of 8 bits in a vector of bytes: of f32, the second operand first.
template <typename Format>
LogicalResult decodeToBytes(Decoder &d, Operation *op) {
  auto convertOp = cast<NVVM::ConvertF32x2ToF8x2Op>(op);
  if (!isa<VectorType>(op->getResult(0).getType()) ||
      convertOp.getRnd() != NVVM::FPRoundingMode::RN ||
      convertOp.getSat() != NVVM::SaturationMode::SATFINITE ||
      convertOp.getRelu())
    return op->emitError("the interpreter does not know this conversion");
  SmallVector<Slot, 4> results = d.define(op->getResult(0));
  for (unsigned i : {0, 1}) {
    Instruction &n = d.emit(op, convert<Single, Format>);
    n.result = results[i];
    n.a = d.slot(op->getOperand(1 - i));
  }
  return success();
}
LogicalResult decodeToFloat8(Decoder &d, Operation *op) {
  Type to = cast<NVVM::ConvertF32x2ToF8x2Op>(op).getDstTy();
  if (isa<Float8E4M3FNType>(to))
    return decodeToBytes<E4m3>(d, op);
  if (isa<Float8E5M2Type>(to))
    return decodeToBytes<E5m2>(d, op);
  return op->emitError("the interpreter does not know this type");
}
LogicalResult decodeFromFloat8(Decoder &d, Operation *op) {
  auto convertOp = cast<NVVM::ConvertF8x2ToF16x2Op>(op);
  Type from = convertOp.getSrcType();
  Handler handler = isa<Float8E4M3FNType>(from) ? convert<E4m3, Half>
                    : isa<Float8E5M2Type>(from) ? convert<E5m2, Half>
                                                : nullptr;
  if (!handler || convertOp.getRelu())
    return op->emitError("the interpreter does not know this conversion");
  SmallVector<Slot, 4> results = d.define(op->getResult(0));
  for (auto [i, result] : llvm::enumerate(results)) {
    Instruction &n = d.emit(op, handler);
    n.result = result;
    n.a = d.slots(op->getOperand(0))[i];
  }
  return success();
}

/// `bits`: of the integer.
template <typename Format, typename T, bool isSigned>
void fromInteger(Warp &warp, const Instruction &i) {
  auto *result = warp.lanes<typename Format::Bits>(i.result);
  const T *a = warp.lanes<T>(i.a);
  unsigned shift = 64 - i.bits;
  using Number = typename Format::Number;
  // A type of 16 bits is a float that is rounded again: through double, which
  // keeps what integers up to 53 bits have.
  using Exact =
      std::conditional_t<std::is_same_v<Format, Single>, float, double>;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    uint64_t value = a[lane];
    Exact number =
        isSigned ? Exact(int64_t(value << shift) >> shift) : Exact(value);
    if constexpr (std::is_same_v<Number, double>)
      result[lane] = Format::round(double(number));
    else
      result[lane] = Format::round(number);
  }
}

/// As cvt.rzi: out of range is the nearest end, NaN is 0.
template <typename Format, typename T, bool isSigned>
void toInteger(Warp &warp, const Instruction &i) {
  T *result = warp.lanes<T>(i.result);
  const auto *a = warp.lanes<typename Format::Bits>(i.a);
  uint64_t mask = i.bits >= 64 ? ~uint64_t(0) : (uint64_t(1) << i.bits) - 1;
  double low = isSigned ? -std::ldexp(1.0, i.bits - 1) : 0,
         high = std::ldexp(1.0, isSigned ? i.bits - 1 : i.bits);
  uint64_t largest = isSigned ? mask >> 1 : mask,
           smallest = isSigned ? (mask >> 1) + 1 : 0;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    double value = std::trunc(double(Format::read(a[lane])));
    uint64_t whole = std::isnan(value) ? 0
                     : value >= high   ? largest
                     : value < low     ? smallest
                     : isSigned        ? uint64_t(int64_t(value))
                                       : uint64_t(value);
    result[lane] = T(whole & mask);
  }
}

template <bool isSigned, bool toFloat>
LogicalResult decodeNumber(Decoder &d, Operation *op) {
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  unsigned bits = d.bitsOf(toFloat ? from : to);
  Handler handler =
      withFormat(toFloat ? to : from, [&](auto format) -> Handler {
        using Format = decltype(format);
        if constexpr (toFloat)
          return bits > 32 ? fromInteger<Format, uint64_t, isSigned>
                           : fromInteger<Format, uint32_t, isSigned>;
        else
          return bits > 32 ? toInteger<Format, uint64_t, isSigned>
                           : toInteger<Format, uint32_t, isSigned>;
      });
  if (!handler)
    return op->emitError("the interpreter does not know this type");
  Slot result = d.define(op->getResult(0)).front();
  Instruction &i = d.emit(op, handler);
  i.result = result;
  i.a = d.slot(op->getOperand(0));
  i.bits = bits;
  return success();
}

//===----------------------------------------------------------------------===//
// The same bits
//===----------------------------------------------------------------------===//

/// The list: slots of the operand's elements; then of the result's. `bits` and
/// `flags`: the widths of their elements; `constant`: how many the first are.
void regroup(Warp &warp, const Instruction &i) {
  const std::vector<uint32_t> &list = warp.block.machine.program.lists[i.list];
  unsigned from = i.bits, to = i.flags;
  uint64_t bytes[kWarpLanes][2] = {};
  for (int64_t e = 0; e < i.constant; ++e)
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      uint64_t value = from > 32 ? warp.lanes<uint64_t>(list[e])[lane]
                                 : warp.lanes<uint32_t>(list[e])[lane];
      bytes[lane][e * from / 64] |= value << (e * from % 64);
    }
  uint64_t mask = to >= 64 ? ~uint64_t(0) : (uint64_t(1) << to) - 1;
  for (size_t e = 0; e + i.constant < list.size(); ++e)
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      uint64_t value = bytes[lane][e * to / 64] >> (e * to % 64) & mask;
      if (to > 32)
        warp.lanes<uint64_t>(list[e + i.constant])[lane] = value;
      else
        warp.lanes<uint32_t>(list[e + i.constant])[lane] = value;
    }
}

/// One word to its halves and back, the common case.
void splitWord(Warp &warp, const Instruction &i) {
  const uint32_t *word = warp.lanes<uint32_t>(i.a);
  uint32_t *low = warp.lanes<uint32_t>(i.result),
           *high = warp.lanes<uint32_t>(i.b);
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    low[lane] = word[lane] & 0xffff;
    high[lane] = word[lane] >> 16;
  }
}
void joinHalves(Warp &warp, const Instruction &i) {
  const uint32_t *low = warp.lanes<uint32_t>(i.a),
                 *high = warp.lanes<uint32_t>(i.b);
  uint32_t *word = warp.lanes<uint32_t>(i.result);
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    word[lane] = low[lane] | high[lane] << 16;
}

LogicalResult decodeBitcast(Decoder &d, Operation *op) {
  unsigned from = d.bitsOf(op->getOperand(0).getType()),
           to = d.bitsOf(op->getResult(0).getType());
  SmallVector<Slot> operands(d.slots(op->getOperand(0)));
  if (from == to) {
    d.alias(op->getResult(0), operands);
    return success();
  }
  SmallVector<Slot, 4> results = d.define(op->getResult(0));
  if (operands.size() * from > 128)
    return op->emitError("the interpreter takes vectors of up to 128 bits");
  if (from == 32 && to == 16 && operands.size() == 1) {
    Instruction &i = d.emit(op, splitWord);
    i.a = operands[0];
    i.result = results[0];
    i.b = results[1];
    return success();
  }
  if (from == 16 && to == 32 && operands.size() == 2) {
    Instruction &i = d.emit(op, joinHalves);
    i.a = operands[0];
    i.b = operands[1];
    i.result = results[0];
    return success();
  }
  std::vector<uint32_t> list(operands.begin(), operands.end());
  list.insert(list.end(), results.begin(), results.end());
  uint32_t number = d.addList(std::move(list));
  Instruction &i = d.emit(op, regroup);
  i.list = number;
  i.bits = from;
  i.flags = to;
  i.constant = operands.size();
  return success();
}

//===----------------------------------------------------------------------===//
// Elements: nothing moves, values only get other names
//===----------------------------------------------------------------------===//

std::optional<int64_t> positionOf(Value index) {
  llvm::APInt value;
  if (!matchPattern(index, m_ConstantInt(&value)))
    return std::nullopt;
  return value.getSExtValue();
}

LogicalResult decodeExtractElement(Decoder &d, Operation *op) {
  auto extract = cast<LLVM::ExtractElementOp>(op);
  std::optional<int64_t> at = positionOf(extract.getPosition());
  if (!at)
    return op->emitError("the interpreter takes constant positions");
  d.alias(extract.getResult(), Slot(d.slots(extract.getVector())[*at]));
  return success();
}

LogicalResult decodeInsertElement(Decoder &d, Operation *op) {
  auto insert = cast<LLVM::InsertElementOp>(op);
  std::optional<int64_t> at = positionOf(insert.getPosition());
  if (!at)
    return op->emitError("the interpreter takes constant positions");
  SmallVector<Slot> slots(d.slots(insert.getVector()));
  slots[*at] = d.slot(insert.getValue());
  d.alias(insert.getResult(), slots);
  return success();
}

LogicalResult decodeExtractValue(Decoder &d, Operation *op) {
  auto extract = cast<LLVM::ExtractValueOp>(op);
  if (extract.getPosition().size() != 1)
    return op->emitError("the interpreter takes flat structures");
  d.alias(extract.getResult(),
          Slot(d.slots(extract.getContainer())[extract.getPosition()[0]]));
  return success();
}

/// The structure with another member; registers stay where they are.
LogicalResult decodeInsertValue(Decoder &d, Operation *op) {
  auto insert = cast<LLVM::InsertValueOp>(op);
  if (insert.getPosition().size() != 1)
    return op->emitError("the interpreter takes flat structures");
  SmallVector<Slot> members(d.slots(insert.getContainer()));
  members[insert.getPosition()[0]] = d.slot(insert.getValue());
  d.alias(insert.getResult(), members);
  return success();
}

/// The block's own shared memory as that of its cluster.
LogicalResult decodeSpace(Decoder &d, Operation *op) {
  auto cast = mlir::cast<LLVM::AddrSpaceCastOp>(op);
  auto spaceOf = [](Value pointer) {
    auto type = dyn_cast<LLVM::LLVMPointerType>(pointer.getType());
    return type ? type.getAddressSpace() : 0;
  };
  if (spaceOf(cast.getArg()) != 3 || spaceOf(cast.getRes()) != 7)
    return op->emitError(
        "the interpreter casts pointers to shared memory to the cluster's");
  d.alias(cast.getRes(), Slot(d.slot(cast.getArg())));
  return success();
}

} // namespace

void charonia::interpreter::addCasts(OperationTable &table) {
  table["arith.extui"] = table["arith.trunci"] = table["llvm.zext"] =
      table["llvm.trunc"] = table["arith.index_castui"] = decodeResize<false>;
  table["arith.extsi"] = table["llvm.sext"] = table["arith.index_cast"] =
      decodeResize<true>;
  table["arith.extf"] = table["arith.truncf"] = table["llvm.fpext"] =
      table["llvm.fptrunc"] = decodeConvert;
  table["nvvm.convert.f32x2.to.f8x2"] = decodeToFloat8;
  table["nvvm.convert.f8x2.to.f16x2"] = decodeFromFloat8;
  table["arith.sitofp"] = table["llvm.sitofp"] = decodeNumber<true, true>;
  table["arith.uitofp"] = table["llvm.uitofp"] = decodeNumber<false, true>;
  table["arith.fptosi"] = table["llvm.fptosi"] = decodeNumber<true, false>;
  table["arith.fptoui"] = table["llvm.fptoui"] = decodeNumber<false, false>;
  table["arith.bitcast"] = table["llvm.bitcast"] = decodeBitcast;
  table["llvm.addrspacecast"] = decodeSpace;
  table["llvm.extractelement"] = decodeExtractElement;
  table["llvm.insertelement"] = decodeInsertElement;
  table["llvm.extractvalue"] = decodeExtractValue;
  table["llvm.insertvalue"] = decodeInsertValue;
}
