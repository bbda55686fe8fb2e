// Dots of warpgroups: wgmma on shared memory, or its left operand in registers.
//
// A tile is cut into instructions here: m64, as many columns as a group has, 32
// bytes of terms. The chip is told where a matrix lies by a descriptor: its
// start and the distances of neighbouring panels and of 8 rows, in units of 16
// bytes, and the swizzle.
#include "codegen/gpu/lower/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

static constexpr int64_t kGroupRows = 64, kRowBytes = 128, kStepBytes = 32;

/// An operand in shared memory: `free` is its axis of rows or columns.
struct KernelLowering::GroupOperand {
  Value memory;
  simt::MemoryType type;
  unsigned free, elementBytes;

  GroupOperand(Value memory, unsigned free)
      : memory(memory), type(cast<simt::MemoryType>(memory.getType())),
        free(free), elementBytes(simt::elementBits(type.getElementType()) / 8) {
  }

  /// K lies along the rows of the swizzle.
  bool isKMajor() const {
    const LinearLayout &layout = type.getLayout().getLayout();
    return layout.basis(Dim::Offset, 0, axisDim(1 - free)) != 0;
  }
  int64_t rowElements() const { return kRowBytes / elementBytes; }
  /// From a panel of rows to the next.
  int64_t panelBytes() const {
    return type.getShape()[isKMajor() ? free : 1 - free] * kRowBytes;
  }
  /// Where the instruction begins that takes the rows or columns from `at` on
  /// and the terms from `k` on, both known or multiples of a panel.
  int64_t offsetOf(int64_t at, int64_t k) const {
    int64_t row = isKMajor() ? at : k, inner = isKMajor() ? k : at;
    return row * kRowBytes + inner / rowElements() * panelBytes() +
           inner % rowElements() * elementBytes;
  }
  /// What does not depend on the address.
  uint64_t descriptorBits() const {
    constexpr uint64_t eightRows = 8 * kRowBytes / 16, swizzle128 = 1;
    uint64_t panel = isKMajor() ? 1 : panelBytes() / 16;
    return panel << 16 | eightRows << 32 | swizzle128 << 62;
  }
};

/// Through a shuffle, so that ptxas knows it to be the same for a warp.
void KernelLowering::findGroup() {
  Value group = index->binary("arith.shrui", warpId, index->constant(2));
  groupId = toIndex(NVVM::ShflOp::create(
      b, loc, b.getI32Type(), i32(-1), toInteger(group, b.getI32Type()), i32(0),
      i32(31), NVVM::ShflKind::idx, UnitAttr()));
}

/// The descriptor of what lies at `start`, in bytes.
Value KernelLowering::descriptorOf(IndexSum start, uint64_t bits) {
  Type i64 = b.getI64Type();
  Value base = index->cached({"shared base", {sharedBase}, {}}, [&]() -> Value {
    return LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), sharedBase);
  });
  Value address = base;
  if (start.value || start.constant) {
    Value offset = toInteger(index->materialize(start), indexInteger());
    if (options.indexBits != 32)
      offset = LLVM::TruncOp::create(b, loc, b.getI32Type(), offset);
    address = LLVM::AddOp::create(b, loc, base, offset);
  }
  address = LLVM::AndOp::create(b, loc, address, i32(0x3ffff));
  address = LLVM::LShrOp::create(b, loc, address, i32(4));
  Value wide = LLVM::ZExtOp::create(b, loc, i64, address);
  Value rest =
      LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(int64_t(bits)));
  return LLVM::OrOp::create(b, loc, wide, rest);
}

/// As wgmma takes accumulators.
Value KernelLowering::structure(ArrayRef<Value> values) {
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(values.size(), values[0].getType()));
  Value result = LLVM::PoisonOp::create(b, loc, type);
  for (auto [i, value] : llvm::enumerate(values))
    result = LLVM::InsertValueOp::create(b, loc, result, value,
                                         ArrayRef<int64_t>{int64_t(i)});
  return result;
}

/// Where a group's part of an operand begins, of which there are `parts`:
/// neighbouring groups share rows.
IndexSum KernelLowering::operandStart(const GroupOperand &operand,
                                      int64_t parts, int64_t shift) {
  IndexSum start = sharedStart(operand.memory);
  if (parts == 1)
    return start;
  Value part = groupId;
  if (shift)
    part = index->binary("arith.shrui", part, index->constant(shift));
  part = index->binary("arith.andi", part, index->constant(parts - 1));
  int64_t extent = operand.type.getShape()[operand.free] / parts;
  return index->add(
      start, index->multiply({part, 0}, {{}, operand.offsetOf(extent, 0)}));
}

static Value advance(OpBuilder &b, Location loc, Value descriptor,
                     int64_t bytes) {
  if (!bytes)
    return descriptor;
  Value by = LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(bytes / 16));
  return LLVM::AddOp::create(b, loc, descriptor, by);
}

/// One instruction on descriptors. The first of a sum takes no total.
Value KernelLowering::dotOfShared(const GroupOperand &lhs,
                                  const GroupOperand &rhs, Value left,
                                  Value right, Value total, bool isFirst) {
  auto structure = cast<LLVM::LLVMStructType>(total.getType());
  if (isFirst)
    total = LLVM::PoisonOp::create(b, loc, structure);
  NVVM::WGMMATypes type =
      llvm::TypeSwitch<Type, NVVM::WGMMATypes>(lhs.type.getElementType())
          .Case<Float32Type>([](auto) { return NVVM::WGMMATypes::tf32; })
          .Case<BFloat16Type>([](auto) { return NVVM::WGMMATypes::bf16; })
          .Case<Float8E4M3FNType>([](auto) { return NVVM::WGMMATypes::e4m3; })
          .Case<Float8E5M2Type>([](auto) { return NVVM::WGMMATypes::e5m2; })
          .Default([](auto) { return NVVM::WGMMATypes::f16; });
  auto major = [](bool plain) {
    return plain ? NVVM::MMALayout::row : NVVM::MMALayout::col;
  };
  return NVVM::WgmmaMmaAsyncOp::create(
      b, loc, structure, total, left, right,
      NVVM::MMAShapeAttr::get(b.getContext(), kGroupRows,
                              2 * structure.getBody().size(),
                              kStepBytes / lhs.elementBytes),
      type, type, NVVM::WGMMATypes::f32,
      isFirst ? NVVM::WGMMAScaleOut::zero : NVVM::WGMMAScaleOut::one,
      NVVM::WGMMAScaleIn::one, NVVM::WGMMAScaleIn::one, major(lhs.isKMajor()),
      major(!rhs.isKMajor()), NVVM::MMAIntOverflowAttr());
}

/// One instruction on the words of four registers and a descriptor, which NVVM
/// lacks.
Value KernelLowering::dotOfRegisters(const GroupOperand &rhs, ValueRange words,
                                     Value right, Value total, bool isFirst) {
  auto structure = cast<LLVM::LLVMStructType>(total.getType());
  unsigned count = structure.getBody().size();
  Values operands;
  std::string results, constraints;
  for (unsigned i = 0; i < count; ++i) {
    results += (i ? ", $" : "$") + std::to_string(i);
    constraints += i ? ",=&f" : "=&f";
  }
  if (!isFirst)
    for (unsigned i = 0; i < count; ++i) {
      operands.push_back(LLVM::ExtractValueOp::create(b, loc, total, i));
      constraints += "," + std::to_string(i);
    }
  unsigned next = count + operands.size();
  auto name = [&] { return "$" + std::to_string(next++); };
  std::string left = name();
  for (unsigned i = 1; i < 4; ++i)
    left += ", " + name();
  llvm::append_range(operands, words);
  operands.push_back(right);
  constraints += ",r,r,r,r,l";
  StringRef type = rhs.type.getElementType().isBF16() ? "bf16" : "f16";
  std::string text =
      "{ .reg .pred p; setp.ne.b32 p, " + std::string(isFirst ? "0" : "1") +
      ", 0; wgmma.mma_async.sync.aligned.m64n" + std::to_string(2 * count) +
      "k16.f32." + type.str() + "." + type.str() + " {" + results + "}, {" +
      left + "}, " + name() + ", p, 1, 1, " + (rhs.isKMajor() ? "0" : "1") +
      "; }";
  return LLVM::InlineAsmOp::create(b, loc, structure, operands, text,
                                   constraints, /*has_side_effects=*/true,
                                   /*is_align_stack=*/false,
                                   LLVM::TailCallKind::None, {}, {})
      .getRes();
}

void KernelLowering::lowerOp(simt::WarpgroupDotOp op) {
  int64_t rows = op.getRows(), columns = op.getColumns();
  GroupOperand rhs(op.getRhs(), 1);
  std::optional<GroupOperand> lhs;
  Values words;
  Value left,
      right = descriptorOf(operandStart(rhs, columns, 0), rhs.descriptorBits());
  if (isa<simt::MemoryType>(op.getLhs().getType())) {
    lhs.emplace(op.getLhs(), 0);
    left = descriptorOf(operandStart(*lhs, rows, llvm::Log2_64(columns)),
                        lhs->descriptorBits());
  } else {
    words = packed(op.getLhs());
  }
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getType()).getShape();
  int64_t blocks = shape[0] / rows / kGroupRows,
          held = shape[1] / columns / 2, // accumulators of a block
      count = op.getUsedColumns() / columns / 2, k = rhs.type.getShape()[0],
          depth = kStepBytes / rhs.elementBytes;
  DenseElementsAttr start;
  bool startsAtZero = matchPattern(op.getAccumulator(), m_Constant(&start)) &&
                      start.isSplat() &&
                      start.getSplatValue<APFloat>().isPosZero();

  // The first registers of a block are its first columns.
  Values results = elements(op.getAccumulator()), totals;
  for (int64_t i = 0; i < blocks; ++i)
    totals.push_back(
        structure(ArrayRef<Value>(results).slice(i * held, count)));
  NVVM::WgmmaFenceAlignedOp::create(b, loc);
  for (int64_t step = 0; step < k; step += depth)
    for (int64_t i = 0; i < blocks; ++i) {
      bool isFirst = startsAtZero && step == 0;
      Value second = advance(b, loc, right, rhs.offsetOf(0, step));
      if (lhs)
        totals[i] = dotOfShared(
            *lhs, rhs,
            advance(b, loc, left, lhs->offsetOf(i * kGroupRows, step)), second,
            totals[i], isFirst);
      else
        totals[i] = dotOfRegisters(
            rhs, ArrayRef<Value>(words).slice((i * k + step) / depth * 4, 4),
            second, totals[i], isFirst);
    }
  NVVM::WgmmaGroupSyncAlignedOp::create(b, loc);
  for (auto [i, total] : llvm::enumerate(totals))
    for (int64_t j = 0; j < count; ++j)
      results[i * held + j] = LLVM::ExtractValueOp::create(b, loc, total, j);
  bind(op.getResult(), results);
}

/// The dot whose columns a value has: what waits and loops pass on.
static simt::WarpgroupDotOp dotOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto dot = dyn_cast<simt::WarpgroupDotOp>(op))
      return dot;
    unsigned number = cast<OpResult>(value).getResultNumber();
    if (auto wait = dyn_cast<simt::WaitDotsOp>(op))
      value = wait.getValues()[number];
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      value = loop.getBody()->getTerminator()->getOperand(number);
    else
      break;
  }
  return nullptr;
}

/// Registers of a value that a dot left as they were.
static llvm::SmallBitVector untouched(Value value) {
  unsigned registers = simt::layoutOf(value).inSize(Dim::Register);
  llvm::SmallBitVector result(registers);
  // A loop begins with what its dots begin with.
  if (auto carried = dyn_cast<BlockArgument>(value))
    if (auto loop = dyn_cast<scf::ForOp>(carried.getOwner()->getParentOp()))
      if (OpOperand *yielded = loop.getTiedLoopYieldedValue(carried))
        value = yielded->get();
  simt::WarpgroupDotOp dot = dotOf(value);
  if (!dot)
    return result;
  int64_t held = cast<RankedTensorType>(dot.getType()).getDimSize(1) /
                 dot.getColumns() / 2,
          count = dot.getUsedColumns() / dot.getColumns() / 2;
  for (unsigned i = 0; i < registers; ++i)
    if (i % held >= count)
      result.set(i);
  return result;
}

/// The values pass through the wait, so that nothing that uses them comes
/// before it.
void KernelLowering::lowerOp(simt::WaitDotsOp op) {
  SmallVector<Values> results;
  Values values;
  SmallVector<Value *> places; // of the values, in the results
  for (Value value : op.getValues())
    results.push_back(elements(value));
  for (auto [value, parts] : llvm::zip(op.getValues(), results)) {
    llvm::SmallBitVector passes = untouched(value).flip();
    for (unsigned i : passes.set_bits()) {
      values.push_back(parts[i]);
      places.push_back(&parts[i]);
    }
  }
  if (values.empty()) {
    NVVM::WgmmaWaitGroupSyncOp::create(b, loc, op.getPending());
    return;
  }
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(values.size(), b.getF32Type()));
  std::string constraints;
  for (size_t i = 0; i < values.size(); ++i)
    constraints += i ? ",=f" : "=f";
  for (size_t i = 0; i < values.size(); ++i)
    constraints += "," + std::to_string(i);
  constraints += ",~{memory}";
  std::string text =
      "wgmma.wait_group.sync.aligned " + std::to_string(op.getPending()) + ";";
  Value waited = LLVM::InlineAsmOp::create(
                     b, loc, type, values, text, constraints,
                     /*has_side_effects=*/true,
                     /*is_align_stack=*/false, LLVM::TailCallKind::None, {}, {})
                     .getRes();
  for (auto [i, place] : llvm::enumerate(places))
    *place = LLVM::ExtractValueOp::create(b, loc, waited, i);
  for (auto [result, parts] : llvm::zip(op.getResults(), results))
    bind(result, parts);
}

void KernelLowering::lowerOp(simt::FenceSharedOp) {
  MLIRContext *context = b.getContext();
  NVVM::FenceProxyOp::create(
      b, loc, NVVM::ProxyKindAttr::get(context, NVVM::ProxyKind::async_shared),
      NVVM::SharedSpaceAttr::get(context, NVVM::SharedSpace::shared_cta));
}
