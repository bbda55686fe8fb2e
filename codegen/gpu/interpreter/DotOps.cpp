// wgmma: products of a warpgroup that read shared memory on their own.
//
// A warp computes its 16 rows when the product is issued; until it is waited
// for the results are kept apart (the registers hold NaN) and what is read may
// not be written. Writes of threads need a fence before: by the writer behind
// the write, or by the reader behind the barrier.
#include "codegen/gpu/interpreter/Decoder.h"
#include "codegen/gpu/interpreter/Formats.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include <cstring>

using namespace mlir;
using namespace charonia;
using namespace charonia::interpreter;

namespace {

constexpr unsigned kRows = 16, kChunkBytes = 16, kStepBytes = 32;
/// What a register holds while a product is to write it.
constexpr uint32_t kUnfinished = 0x7fffdead;

/// f32, of which the lowest 13 bits are not looked at.
struct Tf32 {
  static float read(uint32_t bits) {
    return std::bit_cast<float>(bits & 0xffffe000);
  }
};

/// An element in shared memory, how many of them a chunk has and how many terms
/// an instruction takes.
template <typename Format>
constexpr bool isByte =
    std::is_same_v<Format, E4m3> || std::is_same_v<Format, E5m2>;
template <typename Format>
using Element =
    std::conditional_t<std::is_same_v<Format, Tf32>, uint32_t,
                       std::conditional_t<isByte<Format>, uint8_t, uint16_t>>;
template <typename Format>
constexpr unsigned chunkOf = kChunkBytes / sizeof(Element<Format>);
template <typename Format>
constexpr unsigned depthOf = kStepBytes / sizeof(Element<Format>);
/// The terms of a row or column.
using Terms = std::array<float, 32>;

/// A matrix in shared memory as its descriptor tells.
struct Matrix {
  uint64_t start, panel, eightRows;
  bool isKMajor;

  Matrix(uint64_t bits, bool isKMajor)
      : start((bits & 0x3fff) << 4), panel((bits >> 16 & 0x3fff) << 4),
        eightRows((bits >> 32 & 0x3fff) << 4), isKMajor(isKMajor) {}
  static bool isKnown(uint64_t bits) {
    // A swizzle of 128 bytes that begins where its pattern does.
    return bits >> 62 == 1 && (bits >> 49 & 7) == 0;
  }
  /// Of the chunk of elements with (row or column, k).
  uint32_t addressOf(unsigned at, unsigned k, unsigned elementBytes) const {
    constexpr unsigned rowBytes = 128;
    uint64_t row = isKMajor ? at : k,
             inner = uint64_t(isKMajor ? k : at) * elementBytes;
    uint64_t linear = start + row / 8 * eightRows + row % 8 * rowBytes +
                      inner / rowBytes * panel + inner % rowBytes;
    return linear ^ ((linear >> 7 & 7) << 4);
  }
};

/// Reads `count` rows (or columns) from `first` on and all of K.
template <typename Format>
void readMatrix(Warp &warp, const Instruction &i, const Matrix &matrix,
                unsigned first, unsigned count, std::vector<Terms> &values) {
  values.resize(count);
  constexpr unsigned depth = depthOf<Format>, chunkSize = chunkOf<Format>;
  unsigned rows = matrix.isKMajor ? count : depth,
           inner = matrix.isKMajor ? depth : count;
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned chunk = 0; chunk < inner; chunk += chunkSize) {
      unsigned at = first + (matrix.isKMajor ? row : chunk),
               k = matrix.isKMajor ? chunk : row;
      Element<Format> elements[chunkSize] = {};
      uint32_t address = matrix.addressOf(at, k, sizeof(elements[0]));
      if (const uint8_t *place = warp.block.readByDot(warp, i, address))
        std::memcpy(elements, place, kChunkBytes);
      for (unsigned e = 0; e < chunkSize; ++e) {
        float value = Format::read(elements[e]);
        if (matrix.isKMajor)
          values[row][chunk + e] = value;
        else
          values[chunk + e][row] = value;
      }
    }
}

/// Of a warp's rows in registers: the words of four slots.
template <typename Format>
void readWords(Warp &warp, const uint32_t *slots, std::vector<Terms> &values) {
  values.resize(kRows);
  for (unsigned word = 0; word < 4; ++word) {
    const uint32_t *bits = warp.lanes<uint32_t>(slots[word]);
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      auto &row = values[lane / 4 + word % 2 * 8];
      unsigned k = lane % 4 * 2 + word / 2 * 8;
      row[k] = Format::read(bits[lane] & 0xffff);
      row[k + 1] = Format::read(bits[lane] >> 16);
    }
  }
}

/// Whether the registers of an operand are to be written by a product.
bool isUnfinished(Warp &warp, const Instruction &i, const uint32_t *slots,
                  unsigned count) {
  for (unsigned word = 0; word < count; ++word)
    if (warp.unfinished.count(slots[word])) {
      warp.block.machine.report(FindingKind::Race, warp, i, 0,
                                "takes an operand from registers that a "
                                "product is still to write");
      return true;
    }
  return false;
}

enum : uint32_t {
  kLhsKMajor = 1,
  kRhsKMajor = 2,
  kLhsInRegisters = 4,
  kFromZero = 8
};

/// `a`, `b`: descriptors; `bits`: columns; the list: slots of the results, of
/// the left operand where it is in registers, then of the accumulators where
/// there are any.
template <typename Format> void startDot(Warp &warp, const Instruction &i) {
  Machine &machine = warp.block.machine;
  if (warp.mask != ~Mask(0))
    return machine.abort(FindingKind::InactiveLane, warp, i,
                         unsigned(__builtin_ctz(~warp.mask)),
                         "does not take part in what a whole warp does");
  if (!warp.dotsFenced)
    machine.report(FindingKind::MissingFence, warp, i, 0,
                   "begins a group of products without wgmma.fence");
  bool inRegisters = i.flags & kLhsInRegisters;
  uint64_t lhsBits = inRegisters ? 0 : warp.lanes<uint64_t>(i.a)[0],
           rhsBits = warp.lanes<uint64_t>(i.b)[0];
  if ((!inRegisters && !Matrix::isKnown(lhsBits)) || !Matrix::isKnown(rhsBits))
    return machine.abort(FindingKind::NotModelled, warp, i, 0,
                         "a descriptor of another kind of matrix");
  const std::vector<uint32_t> &list = machine.program.lists[i.list];
  unsigned count = i.bits / 2;
  const uint32_t *results = list.data(), *words = results + count,
                 *totals = words + (inRegisters ? 4 : 0);
  std::vector<Terms> lhs, rhs;
  if (!inRegisters)
    readMatrix<Format>(warp, i, {lhsBits, (i.flags & kLhsKMajor) != 0},
                       warp.number % 4 * kRows, kRows, lhs);
  else if (!isUnfinished(warp, i, words, 4))
    readWords<Format>(warp, words, lhs);
  else
    return;
  readMatrix<Format>(warp, i, {rhsBits, (i.flags & kRhsKMajor) != 0}, 0, i.bits,
                     rhs);
  static constexpr std::array<uint32_t, kWarpLanes> zeros{};
  for (unsigned r = 0; r < count; ++r) {
    auto known = i.flags & kFromZero ? warp.unfinished.end()
                                     : warp.unfinished.find(totals[r]);
    const uint32_t *from = i.flags & kFromZero ? zeros.data()
                           : known == warp.unfinished.end()
                               ? warp.lanes<uint32_t>(totals[r])
                               : known->second.values.data();
    Warp::Unfinished result{warp.openDots, {}};
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      const auto &x = lhs[lane / 4 + r / 2 % 2 * 8],
                 &y = rhs[r / 4 * 8 + lane % 4 * 2 + r % 2];
      float sum = std::bit_cast<float>(from[lane]);
      for (unsigned k = 0; k < depthOf<Format>; ++k)
        sum += x[k] * y[k];
      result.values[lane] = std::bit_cast<uint32_t>(sum);
    }
    if (known != warp.unfinished.end())
      warp.unfinished.erase(known);
    warp.unfinished[results[r]] = result;
    std::fill_n(warp.lanes<uint32_t>(results[r]), kWarpLanes, kUnfinished);
  }
}

void fenceRegisters(Warp &warp, const Instruction &) { warp.dotsFenced = true; }

void commitDots(Warp &warp, const Instruction &) {
  ++warp.openDots;
  warp.dotsFenced = false;
}

LogicalResult decodeDot(Decoder &d, Operation *op) {
  auto dot = cast<NVVM::WgmmaMmaAsyncOp>(op);
  auto shape = dot.getShape();
  bool isHalf = dot.getTypeA() == NVVM::WGMMATypes::f16,
       isBfloat = dot.getTypeA() == NVVM::WGMMATypes::bf16,
       isTf32 = dot.getTypeA() == NVVM::WGMMATypes::tf32,
       isE4m3 = dot.getTypeA() == NVVM::WGMMATypes::e4m3,
       isByte = isE4m3 || dot.getTypeA() == NVVM::WGMMATypes::e5m2;
  int depth = isTf32 ? depthOf<Tf32> : isByte ? depthOf<E4m3> : depthOf<Half>;
  if (shape.getM() != 64 || shape.getK() != depth ||
      !(isHalf || isBfloat || isTf32 || isByte) ||
      dot.getTypeB() != dot.getTypeA() ||
      dot.getTypeD() != NVVM::WGMMATypes::f32 ||
      dot.getScaleA() != NVVM::WGMMAScaleIn::one ||
      dot.getScaleB() != NVVM::WGMMAScaleIn::one)
    return op->emitError("the interpreter does not know this shape or type");
  std::vector<uint32_t> list;
  llvm::append_range(list, d.define(dot.getResults()));
  llvm::append_range(list, d.slots(dot.getInouts()));
  if (list.size() != size_t(shape.getN()))
    return op->emitError("has another number of accumulators than columns");
  uint32_t number = d.addList(std::move(list));
  bool isAlongTerms = dot.getLayoutA() == NVVM::MMALayout::row &&
                      dot.getLayoutB() == NVVM::MMALayout::col;
  if ((isTf32 || isByte) && !isAlongTerms)
    return op->emitError("only operands of 16 bits may lie across their terms");
  Instruction &i = d.emit(op, isHalf     ? startDot<Half>
                              : isBfloat ? startDot<Bfloat>
                              : isTf32   ? startDot<Tf32>
                              : isE4m3   ? startDot<E4m3>
                                         : startDot<E5m2>);
  i.a = d.slot(dot.getDescriptorA());
  i.b = d.slot(dot.getDescriptorB());
  i.bits = shape.getN();
  i.list = number;
  i.flags = (dot.getLayoutA() == NVVM::MMALayout::row ? kLhsKMajor : 0) |
            (dot.getLayoutB() == NVVM::MMALayout::col ? kRhsKMajor : 0) |
            (dot.getScaleD() == NVVM::WGMMAScaleOut::zero ? kFromZero : 0);
  return success();
}

template <Handler handler>
LogicalResult decodePlain(Decoder &d, Operation *op) {
  d.emit(op, handler);
  return success();
}

LogicalResult decodeWait(Decoder &d, Operation *op) {
  d.emit(op, handlers::waitForDots).constant =
      cast<NVVM::WgmmaWaitGroupSyncOp>(op).getGroup();
  return success();
}

void fenceShared(Warp &warp, const Instruction &) {
  warp.fenceTime = warp.block.time;
  warp.fenceNumber = ++warp.block.fences;
}

LogicalResult decodeFence(Decoder &d, Operation *op) {
  auto fence = cast<NVVM::FenceProxyOp>(op);
  if (fence.getKind() != NVVM::ProxyKind::async_shared)
    return op->emitError("the interpreter knows fences of shared memory alone");
  d.emit(op, fenceShared);
  return success();
}

} // namespace

void handlers::startRegisterDot(Decoder &d, Operation *op,
                                const RegisterDot &dot) {
  std::vector<uint32_t> list(dot.results.begin(), dot.results.end());
  llvm::append_range(list, dot.words);
  llvm::append_range(list, dot.totals);
  uint32_t number = d.addList(std::move(list));
  Instruction &i = d.emit(op, dot.isBfloat ? startDot<Bfloat> : startDot<Half>);
  i.b = dot.rhs;
  i.bits = 2 * dot.results.size();
  i.list = number;
  i.flags = kLhsInRegisters | (dot.isRhsKMajor ? kRhsKMajor : 0) |
            (dot.totals.empty() ? kFromZero : 0);
}

/// `constant`: how many of the last groups may still be under way.
void handlers::waitForDots(Warp &warp, const Instruction &i) {
  uint32_t done =
      warp.openDots > uint64_t(i.constant) ? warp.openDots - i.constant : 0;
  if (!warp.block.haveBegun(warp, done)) {
    warp.dotsAwaited = done;
    return warp.waitAt(i, Warp::State::AtProducts);
  }
  for (auto it = warp.unfinished.begin(); it != warp.unfinished.end();) {
    if (it->second.group >= done) {
      ++it;
      continue;
    }
    std::copy_n(it->second.values.data(), kWarpLanes,
                warp.lanes<uint32_t>(it->first));
    it = warp.unfinished.erase(it);
  }
  warp.block.finishDots(warp, done);
}

void charonia::interpreter::addDots(OperationTable &table) {
  table["nvvm.wgmma.mma_async"] = decodeDot;
  table["nvvm.wgmma.fence.aligned"] = decodePlain<fenceRegisters>;
  table["nvvm.wgmma.commit.group.sync.aligned"] = decodePlain<commitDots>;
  table["nvvm.wgmma.wait.group.sync.aligned"] = decodeWait;
  table["nvvm.fence.proxy"] = decodeFence;
}
