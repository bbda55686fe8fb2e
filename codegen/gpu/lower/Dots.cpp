// Dots of warpgroups: wgmma on shared memory.
//
// A tile is cut into instructions here: m64, as many columns as a group has, 16
// terms. The chip is told where a matrix lies by a descriptor: its start and
// the distances of neighbouring panels and of 8 rows, in units of 16 bytes, and
// the swizzle.
#include "codegen/gpu/lower/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

static constexpr int64_t kGroupRows = 64, kRowBytes = 128, kStepBytes = 32;

namespace {
/// One operand: `free` is its axis of rows or columns.
struct Operand {
  simt::MemoryType type;
  unsigned free, elementBytes;

  Operand(Value memory, unsigned free)
      : type(cast<simt::MemoryType>(memory.getType())), free(free),
        elementBytes(simt::elementBits(type.getElementType()) / 8) {}

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
} // namespace

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

/// As wgmma takes accumulators: so many in each.
KernelLowering::Values KernelLowering::structures(ArrayRef<Value> values,
                                                  unsigned count) {
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(count, values[0].getType()));
  Values result;
  for (; !values.empty(); values = values.drop_front(count)) {
    Value structure = LLVM::PoisonOp::create(b, loc, type);
    for (unsigned i = 0; i < count; ++i)
      structure = LLVM::InsertValueOp::create(b, loc, structure, values[i],
                                              ArrayRef<int64_t>{i});
    result.push_back(structure);
  }
  return result;
}

void KernelLowering::lowerOp(simt::WarpgroupDotOp op) {
  Operand lhs(op.getLhs(), 0), rhs(op.getRhs(), 1);
  int64_t rows = op.getRows(), columns = op.getColumns();
  int64_t m = lhs.type.getShape()[0], k = lhs.type.getShape()[1],
          n = rhs.type.getShape()[1] / columns;
  int64_t blocks = m / rows / kGroupRows, count = n / 2;
  int64_t depth = kStepBytes / lhs.elementBytes;

  // Neighbouring groups share rows.
  auto startOf = [&](Value memory, const Operand &operand, int64_t parts,
                     int64_t shift, int64_t extent) {
    IndexSum start = sharedStart(memory);
    if (parts == 1)
      return start;
    Value part = groupId;
    if (shift)
      part = index->binary("arith.shrui", part, index->constant(shift));
    part = index->binary("arith.andi", part, index->constant(parts - 1));
    return index->add(
        start, index->multiply({part, 0}, {{}, operand.offsetOf(extent, 0)}));
  };
  Value left = descriptorOf(
            startOf(op.getLhs(), lhs, rows, llvm::Log2_64(columns), m / rows),
            lhs.descriptorBits()),
        right = descriptorOf(startOf(op.getRhs(), rhs, columns, 0, n),
                             rhs.descriptorBits());
  auto advance = [&](Value descriptor, int64_t bytes) -> Value {
    if (!bytes)
      return descriptor;
    Value by =
        LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(bytes / 16));
    return LLVM::AddOp::create(b, loc, descriptor, by);
  };

  MLIRContext *context = b.getContext();
  Values totals = structures(elements(op.getAccumulator()), count);
  NVVM::WGMMATypes type = lhs.type.getElementType().isBF16()
                              ? NVVM::WGMMATypes::bf16
                              : NVVM::WGMMATypes::f16;
  auto major = [](bool plain) {
    return plain ? NVVM::MMALayout::row : NVVM::MMALayout::col;
  };
  NVVM::WgmmaFenceAlignedOp::create(b, loc);
  for (int64_t step = 0; step < k; step += depth)
    for (int64_t i = 0; i < blocks; ++i)
      totals[i] = NVVM::WgmmaMmaAsyncOp::create(
          b, loc, totals[i].getType(), totals[i],
          advance(left, lhs.offsetOf(i * kGroupRows, step)),
          advance(right, rhs.offsetOf(0, step)),
          NVVM::MMAShapeAttr::get(context, kGroupRows, n, depth), type, type,
          NVVM::WGMMATypes::f32, NVVM::WGMMAScaleOut::one,
          NVVM::WGMMAScaleIn::one, NVVM::WGMMAScaleIn::one,
          major(lhs.isKMajor()), major(!rhs.isKMajor()),
          NVVM::MMAIntOverflowAttr());
  NVVM::WgmmaGroupSyncAlignedOp::create(b, loc);
  Values results;
  for (Value total : totals)
    for (int64_t j = 0; j < count; ++j)
      results.push_back(LLVM::ExtractValueOp::create(b, loc, total, j));
  bind(op.getResult(), results);
}

/// The values pass through the wait, so that nothing that uses them comes
/// before it.
void KernelLowering::lowerOp(simt::WaitDotsOp op) {
  Values values;
  for (Value value : op.getValues())
    llvm::append_range(values, elements(value));
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
  unsigned next = 0;
  for (Value result : op.getResults()) {
    Values parts(simt::layoutOf(result).inSize(Dim::Register));
    for (Value &part : parts)
      part = values.size() == 1
                 ? waited
                 : Value(LLVM::ExtractValueOp::create(b, loc, waited, next++));
    bind(result, parts);
  }
}

void KernelLowering::lowerOp(simt::FenceSharedOp) {
  MLIRContext *context = b.getContext();
  NVVM::FenceProxyOp::create(
      b, loc, NVVM::ProxyKindAttr::get(context, NVVM::ProxyKind::async_shared),
      NVVM::SharedSpaceAttr::get(context, NVVM::SharedSpace::shared_cta));
}
