// ldmatrix and mma.sync: fragments as the PTX ISA's tables distribute them.
#include "codegen/gpu/interpreter/Decoder.h"
#include "codegen/gpu/interpreter/Formats.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include <cstring>

using namespace mlir;
using namespace charonia;
using namespace charonia::interpreter;

namespace {

bool isWhole(Warp &warp, const Instruction &i) {
  if (warp.mask == ~Mask(0))
    return true;
  warp.block.machine.abort(FindingKind::InactiveLane, warp, i,
                           unsigned(__builtin_ctz(~warp.mask)),
                           "does not take part in what a whole warp does");
  return false;
}

//===----------------------------------------------------------------------===//
// ldmatrix
//===----------------------------------------------------------------------===//

/// `a`: addresses of rows, 8 lanes for each matrix; the list: a slot for each
/// matrix; `flags`: whether a lane gets two of a column instead of a row.
void loadMatrices(Warp &warp, const Instruction &i) {
  if (!isWhole(warp, i))
    return;
  const std::vector<uint32_t> &list = warp.block.machine.program.lists[i.list];
  const uint32_t *addresses = warp.lanes<uint32_t>(i.a);
  for (unsigned m = 0; m < list.size(); ++m) {
    uint16_t rows[8][8] = {};
    for (unsigned row = 0; row < 8; ++row) {
      unsigned lane = m * 8 + row;
      if (uint8_t *place = warp.block.access(warp, i, lane, addresses[lane], 16,
                                             AccessKind::Read, 16))
        std::memcpy(rows[row], place, 16);
    }
    uint32_t *result = warp.lanes<uint32_t>(list[m]);
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      unsigned major = lane / 4, minor = lane % 4 * 2;
      uint32_t low = i.flags ? rows[minor][major] : rows[major][minor],
               high = i.flags ? rows[minor + 1][major] : rows[major][minor + 1];
      result[lane] = low | high << 16;
    }
  }
  Mask used = list.size() == 4 ? ~Mask(0) : (Mask(1) << list.size() * 8) - 1;
  warp.block.countBanks(i, used, addresses, 16);
}

LogicalResult decodeLoadMatrices(Decoder &d, Operation *op) {
  auto load = cast<NVVM::LdMatrixOp>(op);
  auto shape = load.getShape();
  if (shape.getM() != 8 || shape.getN() != 8 ||
      load.getEltType() != NVVM::LdStMatrixEltType::B16)
    return op->emitError("the interpreter loads matrices of 8x8 b16");
  d.noteAccess(load.getPtr(), 16, false);
  SmallVector<Slot, 4> results = d.define(load.getRes());
  if (results.size() != load.getNum())
    return op->emitError("has a result of another number of matrices");
  uint32_t list = d.addList({results.begin(), results.end()});
  Instruction &i = d.emit(op, loadMatrices);
  i.a = d.slot(load.getPtr());
  i.list = list;
  i.flags = load.getLayout() == NVVM::MMALayout::col;
  return success();
}

//===----------------------------------------------------------------------===//
// mma
//===----------------------------------------------------------------------===//

/// A matrix of 16 rows, and one of 8 columns.
struct Operands {
  float lhs[16][16], rhs[16][8], sum[16][8];
};

/// Sums in fp32 by ascending k, each rounded to nearest. Hardware adds several
/// products at once and cuts off, so its last bits are others.
void multiply(Operands &m, unsigned depth) {
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned k = 0; k < depth; ++k) {
      float x = m.lhs[row][k];
      for (unsigned column = 0; column < 8; ++column)
        m.sum[row][column] += x * m.rhs[k][column];
    }
}

/// The list: slots of the accumulators (4), the results (4), A, B. With `flags`
/// a word of A and B is two slots of 16 bits, otherwise one of 32.
template <typename Format, bool isTf32>
void multiplyMatrices(Warp &warp, const Instruction &i) {
  if (!isWhole(warp, i))
    return;
  const std::vector<uint32_t> &list = warp.block.machine.program.lists[i.list];
  Operands m;
  auto half = [&](unsigned first, unsigned word, unsigned part,
                  unsigned lane) -> float {
    if (i.flags)
      return Format::read(
          warp.lanes<uint32_t>(list[first + word * 2 + part])[lane] & 0xffff);
    uint32_t bits = warp.lanes<uint32_t>(list[first + word])[lane];
    return Format::read(part ? bits >> 16 : bits & 0xffff);
  };
  unsigned lhs = 8, rhs = lhs + (i.flags ? 8 : 4);
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    unsigned group = lane / 4, member = lane % 4;
    if constexpr (isTf32) {
      // The lowest 13 bits of a word are not looked at.
      auto number = [&](unsigned at) {
        return std::bit_cast<float>(warp.lanes<uint32_t>(list[at])[lane] &
                                    0xffffe000);
      };
      for (unsigned word = 0; word < 4; ++word)
        m.lhs[group + word % 2 * 8][member + word / 2 * 4] = number(lhs + word);
      for (unsigned word = 0; word < 2; ++word)
        m.rhs[member + word * 4][group] = number(rhs + word);
    } else {
      for (unsigned word = 0; word < 4; ++word)
        for (unsigned part = 0; part < 2; ++part)
          m.lhs[group + word % 2 * 8][member * 2 + word / 2 * 8 + part] =
              half(lhs, word, part, lane);
      for (unsigned word = 0; word < 2; ++word)
        for (unsigned part = 0; part < 2; ++part)
          m.rhs[member * 2 + word * 8 + part][group] =
              half(rhs, word, part, lane);
    }
    for (unsigned c = 0; c < 4; ++c)
      m.sum[group + c / 2 * 8][member * 2 + c % 2] =
          std::bit_cast<float>(warp.lanes<uint32_t>(list[c])[lane]);
  }
  multiply(m, isTf32 ? 8 : 16);
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    for (unsigned c = 0; c < 4; ++c)
      warp.lanes<uint32_t>(list[4 + c])[lane] = std::bit_cast<uint32_t>(
          m.sum[lane / 4 + c / 2 * 8][lane % 4 * 2 + c % 2]);
}

LogicalResult decodeMultiply(Decoder &d, Operation *op) {
  auto mma = cast<NVVM::MmaOp>(op);
  auto shape = mma.getShape();
  auto isA = [&](NVVM::MMATypes type) {
    return mma.getMultiplicandAPtxType() == type &&
           mma.getMultiplicandBPtxType() == type;
  };
  auto halves = [](ValueRange words) {
    auto vector = dyn_cast<VectorType>(words.front().getType());
    return vector && vector.getNumElements() == 2 &&
           vector.getElementType().isF16();
  };
  Handler handler = nullptr;
  bool isSplit = halves(mma.getOperandA()) && halves(mma.getOperandB());
  if (isA(NVVM::MMATypes::tf32) && shape.getK() == 8)
    handler = multiplyMatrices<Single, true>;
  else if (isA(NVVM::MMATypes::bf16) && shape.getK() == 16)
    handler = multiplyMatrices<Bfloat, false>;
  else if (shape.getK() == 16 && isSplit)
    handler = multiplyMatrices<Half, false>;
  if (!handler || shape.getM() != 16 || shape.getN() != 8 ||
      mma.getOperandA().size() != 4 || mma.getOperandB().size() != 2 ||
      mma.getOperandC().size() != 4 ||
      mma.getLayoutA() != NVVM::MMALayout::row ||
      mma.getLayoutB() != NVVM::MMALayout::col)
    return op->emitError("the interpreter does not know this shape or type");
  std::vector<uint32_t> list;
  auto add = [&](ValueRange values) {
    for (Value value : values)
      llvm::append_range(list, d.slots(value));
  };
  add(mma.getOperandC());
  llvm::append_range(list, d.define(mma.getRes()));
  add(mma.getOperandA());
  add(mma.getOperandB());
  uint32_t number = d.addList(std::move(list));
  Instruction &i = d.emit(op, handler);
  i.list = number;
  i.flags = isSplit;
  return success();
}

} // namespace

void charonia::interpreter::addMatrices(OperationTable &table) {
  table["nvvm.ldmatrix"] = decodeLoadMatrices;
  table["nvvm.mma.sync"] = decodeMultiply;
}
