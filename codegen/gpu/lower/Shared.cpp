// Shared memory.
#include "codegen/gpu/StageLoads.h"
#include "codegen/gpu/lower/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using f2::Vector;

void KernelLowering::lowerOp(simt::AllocOp op) {
  memories[op.getMemory()] = {{}, int64_t(*op.getOffset())};
}

void KernelLowering::lowerOp(simt::SlotOp op) {
  int64_t bytes = op.getRing().getType().getBytes();
  memories[op.getMemory()] =
      index->add(sharedStart(op.getRing()),
                 index->multiply(sumOf(op.getIndex()), {{}, bytes}));
}

IndexSum KernelLowering::sharedStart(Value memory) {
  return memories.find(memory)->second;
}

Value KernelLowering::sharedPointer(Value memory, const LinearLayout &offsets,
                                    unsigned reg, uint64_t startOffset) {
  auto type = cast<simt::MemoryType>(memory.getType());
  int64_t bytes = simt::elementBits(type.getElementType()) / 8;
  // Bits that threads move are flipped (they hold the swizzle), others are
  // added.
  uint64_t own = offsets.apply(Dim::Register, reg) ^ startOffset, moved = 0;
  for (Dim dim : {Dim::Lane, Dim::Warp})
    for (Vector v : offsets.columnsOf(dim))
      moved |= v;
  IndexSum part = threadPart(offsets, Dim::Offset);
  if (own & moved)
    part.value = index->exclusiveOr(part.value, index->constant(own & moved));
  IndexSum at =
      index->multiply({part.value, int64_t(own & ~moved)}, {{}, bytes});
  IndexSum start = sharedStart(memory);
  IndexSum dynamic = index->add({start.value, 0}, {at.value, 0});
  int64_t constant = start.constant + at.constant;
  Value pointer = sharedBase;
  auto offset = [&](LLVM::GEPArg by) {
    return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(),
                               pointer, ArrayRef<LLVM::GEPArg>{by});
  };
  if (dynamic.value) {
    IndexBuilder::Key key{"shared address", {dynamic.value}, {}};
    pointer = index->cached(key, [&]() -> Value {
      return offset(toInteger(dynamic.value, indexInteger()));
    });
  }
  return constant ? offset(int32_t(constant)) : pointer;
}

namespace {
/// The registers of a layout that one access to shared memory moves.
struct SharedVector {
  SmallVector<unsigned> bits;
  unsigned mask = 0;
  SharedVector(const LinearLayout &offsets, unsigned elementBytes)
      : bits(sharedVector(offsets, 16 / elementBytes)) {
    for (unsigned bit : bits)
      mask |= 1u << bit;
  }
  unsigned member(unsigned reg, unsigned i) const {
    for (auto [j, bit] : llvm::enumerate(bits))
      reg |= (i >> j & 1) << bit;
    return reg;
  }
};
} // namespace

void KernelLowering::lowerOp(simt::StoreSharedOp op) {
  auto memory = cast<simt::MemoryType>(op.getMemory().getType());
  LinearLayout offsets = sharedOffsets(simt::layoutOf(op.getValue()),
                                       memory.getLayout().getLayout());
  unsigned bytes = simt::elementBits(memory.getElementType()) / 8;
  SharedVector vector(offsets, bytes);
  Values values = elements(op.getValue());
  for (unsigned reg = 0; reg < values.size(); ++reg) {
    if (reg & vector.mask)
      continue;
    Values group;
    for (unsigned i = 0; i < 1u << vector.bits.size(); ++i)
      group.push_back(values[vector.member(reg, i)]);
    Type element = group[0].getType();
    if (element.isIndex() || element.isInteger(1))
      for (Value &value : group)
        value = element.isIndex()
                    ? toInteger(value, b.getI64Type())
                    : Value(LLVM::ZExtOp::create(b, loc, b.getI8Type(), value));
    Value pointer = sharedPointer(op.getMemory(), offsets, reg);
    Value whole = group[0];
    if (group.size() > 1) {
      auto type = VectorType::get({int64_t(group.size())}, whole.getType());
      whole = LLVM::PoisonOp::create(b, loc, type);
      for (auto [i, part] : llvm::enumerate(group))
        whole =
            LLVM::InsertElementOp::create(b, loc, type, whole, part, i32(i));
    }
    LLVM::StoreOp::create(b, loc, whole, pointer, bytes * group.size());
  }
}

/// Axis bits of a shared tile.
static SmallVector<unsigned> bitsOf(simt::MemoryType memory) {
  SmallVector<unsigned> bits;
  for (int64_t extent : memory.getShape())
    bits.push_back(llvm::Log2_64(extent));
  return bits;
}

/// Where the part of a shared tile that starts at `start` begins: xor is
/// addition there, since start is a multiple of the part's extents.
static uint64_t startOffset(simt::MemoryType memory, ArrayRef<int64_t> start) {
  LinearLayout offset = memory.getLayout().getLayout().inverse();
  uint64_t result = 0;
  for (auto [axis, at] : llvm::enumerate(start))
    result ^= offset.apply(axisDim(axis), at);
  return result;
}

/// The layout of a fragment in the axes of a memory; of one that is longer each
/// element of memory is several.
static LinearLayout layoutIn(simt::MemoryType memory, Value fragment) {
  LinearLayout layout = simt::layoutOf(fragment);
  for (auto [axis, extents] : llvm::enumerate(
           llvm::zip_equal(tile::shapeOf(fragment), memory.getShape())))
    if (auto [own, held] = extents; own > held)
      layout = withoutRepeats(layout, axis, own / held);
  return layout.withOutBits(bitsOf(memory));
}

void KernelLowering::lowerOp(simt::LoadSharedOp op) {
  if (lowerMatrixLoad(op))
    return;
  simt::MemoryType memory = op.getMemory().getType();
  LinearLayout registers = layoutIn(memory, op.getResult());
  LinearLayout offsets =
      sharedOffsets(registers, memory.getLayout().getLayout());
  uint64_t start = startOffset(memory, op.getStart());
  Type element = heldType(memory.getElementType());
  Type stored = element.isIndex()      ? b.getI64Type()
                : element.isInteger(1) ? Type(b.getI8Type())
                                       : element;
  unsigned bytes = simt::elementBits(element) / 8;
  SharedVector vector(offsets, bytes);
  Values values(registers.inSize(Dim::Register));
  // Register bits that stay at one place.
  unsigned copies = 0;
  for (auto [bit, image] : llvm::enumerate(offsets.columnsOf(Dim::Register)))
    copies |= image == 0 ? 1u << bit : 0;
  for (unsigned reg = 0; reg < values.size(); ++reg) {
    if (reg & vector.mask)
      continue;
    if (unsigned first = reg & ~copies; first != reg) {
      for (unsigned i = 0; i < 1u << vector.bits.size(); ++i)
        values[vector.member(reg, i)] = values[vector.member(first, i)];
      continue;
    }
    unsigned count = 1u << vector.bits.size();
    Type type = count == 1 ? stored : VectorType::get({int64_t(count)}, stored);
    Value pointer = sharedPointer(op.getMemory(), offsets, reg, start);
    Value whole = LLVM::LoadOp::create(b, loc, type, pointer, bytes * count);
    Values parts = unpackBits(whole, stored, count);
    for (unsigned i = 0; i < count; ++i) {
      Value part = parts[i];
      if (element.isIndex())
        part = toIndex(part);
      else if (element.isInteger(1))
        part = LLVM::TruncOp::create(b, loc, b.getI1Type(), part);
      values[vector.member(reg, i)] = part;
    }
  }
  bind(op.getResult(), values);
}

/// ldmatrix: matrices of 8 rows of 16 bytes. A thread gets 4 bytes of row lane
/// / 4 at position lane % 4, or, transposed, two neighbours of a column.
bool KernelLowering::lowerMatrixLoad(simt::LoadSharedOp op) {
  simt::MemoryType memory = op.getMemory().getType();
  unsigned bits = simt::elementBits(memory.getElementType());
  if ((bits != 16 && bits != 32) || memory.getShape().size() != 2)
    return false;
  LinearLayout registers = layoutIn(memory, op.getResult());
  LinearLayout offsets =
      sharedOffsets(registers, memory.getLayout().getLayout());
  SmallVector<Vector> regs(offsets.columnsOf(Dim::Register)),
      lanes(offsets.columnsOf(Dim::Lane));
  unsigned pair = bits == 16 ? 1 : 0; // register bits within 4 bytes
  if (regs.size() < pair || lanes.size() != kLaneBits)
    return false;
  SmallVector<Vector> row(ArrayRef<Vector>(regs).take_front(pair)), column;
  row.append({lanes[0], lanes[1]});
  column.append({lanes[2], lanes[3], lanes[4]});
  auto isChunk = [&](ArrayRef<Vector> vectors) {
    for (auto [i, v] : llvm::enumerate(vectors))
      if (v != Vector(1) << i)
        return false;
    return true;
  };
  bool transposed = false;
  if (!isChunk(row)) {
    if (bits != 16 || !isChunk(column))
      return false;
    transposed = true;
  }
  Vector within = 128 / bits - 1;
  ArrayRef<Vector> rows = transposed ? row : column;
  ArrayRef<Vector> rest = ArrayRef<Vector>(regs).drop_front(pair);
  for (ArrayRef<Vector> list : {rows, rest, offsets.columnsOf(Dim::Warp)})
    for (Vector v : list)
      if (v & within)
        return false;
  uint64_t start = startOffset(memory, op.getStart());
  if (start & within)
    return false;

  // Lanes give the addresses of rows: 8 of each matrix, up to 4 matrices.
  unsigned select = std::min<size_t>(2, rest.size());
  SmallVector<Vector> images(rest.drop_front(select));
  llvm::append_range(images, rows);
  llvm::append_range(images, rest.take_front(select));
  images.append(2 - select, 0);
  llvm::append_range(images, offsets.columnsOf(Dim::Warp));
  LinearLayout addresses({{Dim::Register, unsigned(rest.size() - select)},
                          {Dim::Lane, kLaneBits},
                          {Dim::Warp, offsets.inBits(Dim::Warp)}},
                         offsets.outs(), images);
  unsigned count = 1u << select;
  Type type = b.getI32Type();
  if (count > 1)
    type = LLVM::LLVMStructType::getLiteral(
        b.getContext(), SmallVector<Type>(count, b.getI32Type()));
  MLIRContext *context = b.getContext();
  ThreadTile tile;
  tile.packed = true;
  for (unsigned reg = 0; reg < addresses.inSize(Dim::Register); ++reg) {
    Value pointer = sharedPointer(op.getMemory(), addresses, reg, start);
    Value matrices = NVVM::LdMatrixOp::create(
        b, loc, type, pointer, count,
        transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
        NVVM::LdStMatrixShapeAttr::get(context, 8, 8),
        NVVM::LdStMatrixEltType::B16);
    for (unsigned i = 0; i < count; ++i)
      tile.values.push_back(count == 1 ? matrices
                                       : Value(LLVM::ExtractValueOp::create(
                                             b, loc, matrices, i)));
  }
  tiles[op.getResult()] = tile;
  return true;
}

/// The columns of a tile in shared memory that anything reads: all, unless it
/// is a right operand of dots of warpgroups alone.
static int64_t columnsRead(Value memory) {
  while (auto slot = memory.getDefiningOp<simt::SlotOp>())
    memory = slot.getRing();
  int64_t all = cast<simt::MemoryType>(memory.getType()).getShape().back(),
          most = 0;
  SmallVector<Value> views{memory};
  while (!views.empty()) {
    Value view = views.pop_back_val();
    for (OpOperand &use : view.getUses()) {
      Operation *user = use.getOwner();
      if (auto slot = dyn_cast<simt::SlotOp>(user))
        views.push_back(slot.getMemory());
      else if (auto dot = dyn_cast<simt::WarpgroupDotOp>(user);
               dot && use.getOperandNumber() == 1)
        most = std::max(most, dot.getUsedColumns());
      else if (!isa<simt::CopyAsyncOp, simt::StoreSharedOp>(user))
        return all;
    }
  }
  return most;
}

Value KernelLowering::bytesWhere(Value inside, unsigned bytes) {
  if (!inside)
    return {};
  IndexBuilder::Key key{"copied bytes", {inside}, {bytes}};
  return index->cached(key, [&]() -> Value {
    return LLVM::SelectOp::create(b, loc, inside, i32(bytes), i32(0));
  });
}

Value KernelLowering::bytesInside(const AddressPlan &plan,
                                  const LinearLayout &layout,
                                  ArrayRef<unsigned> registers, unsigned part,
                                  unsigned bytes) {
  unsigned each = bytes * part / registers.size(), certain = 0;
  Value sum;
  for (unsigned i = 0; i < registers.size(); i += part) {
    Value inside = insideOf(plan, layout, registers[i], false).all,
          size = bytesWhere(inside, each);
    if (!size)
      certain += each;
    else
      sum = sum ? LLVM::AddOp::create(b, loc, sum, size) : size;
  }
  return sum && certain ? LLVM::AddOp::create(b, loc, sum, i32(certain)) : sum;
}

void KernelLowering::lowerOp(simt::CopyAsyncOp op) {
  simt::MemoryType memory = op.getMemory().getType();
  const LinearLayout &layout = op.getCopies().getLayout();
  LinearLayout offsets = sharedOffsets(layout, memory.getLayout().getLayout());
  auto tile = RankedTensorType::get(memory.getShape(), memory.getElementType());
  AddressPlan plan =
      planAddresses({op, tile, op.getBuffer(), op.getSymbols(), op.getMap(),
                     op.getShape(), int64_t(op.getRank()), op.getChecks()});
  unsigned bytes =
      simt::elementBits(memory.getElementType()) / 8 * op.getVector();
  tile::AxisAccess along = tile::analyzeAxis(plan.access, op.getAxis());
  int64_t vector = op.getVector();
  bool isPrefix = vector <= along.endingChecks;
  unsigned part = std::min(vector, along.uniformChecks);
  // What several threads read comes from the first-level cache. Copies of fewer
  // bytes always pass it.
  bool isCached = bytes < 16 || tile::runsOverlap(plan.access, op.getAxis());
  SmallVector<unsigned> bits = axisVector(layout, op.getAxis(), op.getVector());
  unsigned mask = 0;
  for (unsigned bit : bits)
    mask |= 1u << bit;
  unsigned last = memory.getShape().size() - 1;
  AffineExpr column = b.getAffineDimExpr(last),
             read = b.getAffineConstantExpr(columnsRead(op.getMemory()));
  auto copyAt = [&](unsigned reg) {
    if (reg & mask || decide(column, read, layout, reg) == false)
      return;
    SmallVector<unsigned> members(1u << bits.size(), reg);
    for (auto [i, member] : llvm::enumerate(members))
      for (auto [j, bit] : llvm::enumerate(bits))
        member |= (i >> j & 1) << bit;
    Inside inside;
    if (!isPrefix)
      inside = insideOf(plan, layout, members, /*mayEnd=*/true);
    Value to = sharedPointer(op.getMemory(), offsets, reg);
    // Where a check fails nothing is read and zeros are written.
    auto copy = [&] {
      Value from = pointerOf(addressOf(plan, coordinates(layout, reg),
                                       symbolsOf(plan.access, layout, reg)));
      Value size = isPrefix ? bytesInside(plan, layout, members, part, bytes)
                            : bytesWhere(inside.all, bytes);
      NVVM::CpAsyncOp::create(b, loc, to, from, bytes,
                              isCached ? NVVM::LoadCacheModifierKind::CA
                                       : NVVM::LoadCacheModifierKind::CG,
                              size);
    };
    if (!inside.some)
      return copy();
    doWhere(
        inside.some,
        [&] {
          Values words = packWords(
              loadElements(plan, layout, members, op.getIndependent()));
          // Of 32 bits, or of what an element has beyond.
          auto type =
              VectorType::get({int64_t(words.size())}, words[0].getType());
          Value whole = LLVM::PoisonOp::create(b, loc, type);
          for (auto [i, word] : llvm::enumerate(words))
            whole = LLVM::InsertElementOp::create(b, loc, type, whole, word,
                                                  i32(i));
          LLVM::StoreOp::create(b, loc, whole, to, bytes);
        },
        copy);
  };
  auto copyAll = [&] {
    for (unsigned reg = 0; reg < layout.inSize(Dim::Register); ++reg)
      copyAt(reg);
  };
  // Of threads that hold the same one copies.
  if (Value first = firstHolder(layout))
    doWhere(first, copyAll);
  else
    copyAll();
}

void KernelLowering::lowerOp(simt::CommitAsyncOp) {
  NVVM::CpAsyncCommitGroupOp::create(b, loc);
}

void KernelLowering::lowerOp(simt::WaitAsyncOp op) {
  NVVM::CpAsyncWaitGroupOp::create(b, loc, op.getPending());
}

void KernelLowering::lowerOp(simt::BarrierOp op) {
  if (op.getWarpgroup()) {
    constexpr int32_t threads = kLanes << kWarpgroupBits;
    Value number =
        LLVM::LShrOp::create(b, loc, threadId, i32(llvm::Log2_32(threads)));
    number = LLVM::AddOp::create(b, loc, number, i32(kBarrierOfComputing + 1));
    NVVM::BarrierOp::create(b, loc, TypeRange(), number, i32(threads), {},
                            Value());
    return;
  }
  if (op.getAll() || !copyWarps) {
    NVVM::Barrier0Op::create(b, loc);
    return;
  }
  NVVM::BarrierOp::create(b, loc, TypeRange(), i32(kBarrierOfComputing),
                          i32(options.warps * kLanes), {}, Value());
}

void KernelLowering::lowerOp(simt::LaunchDependentsOp) {
  NVVM::GriddepcontrolOp::create(b, loc,
                                 NVVM::GridDepActionKind::launch_dependents);
}

void KernelLowering::lowerOp(simt::FenceDeviceOp) {
  StringRef fence = kernel.getOps<simt::CopyWarpOp>().empty()
                        ? "fence.acq_rel.gpu;"
                        : "fence.acq_rel.gpu;\nfence.proxy.async.global;";
  LLVM::InlineAsmOp::create(
      b, loc, TypeRange(), ValueRange(), fence, "~{memory}",
      /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::TailCallKind::None, {}, {});
}

void KernelLowering::lowerOp(simt::WaitDependenciesOp) {
  NVVM::GriddepcontrolOp::create(b, loc, NVVM::GridDepActionKind::wait);
}
