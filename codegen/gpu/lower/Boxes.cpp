// The copy engine of sm_90 and later: boxes of buffers that one thread asks
// for, and the mbarriers that tell when they are there.
#include "codegen/gpu/lower/Lowering.h"
#include "codegen/target/StepSums.h"
#include "codegen/tile/analysis/Values.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

static constexpr int64_t kBarrierBytes = 8;

void KernelLowering::findTensorMaps() {
  kernel.walk([&](simt::CopyWarpOp op) { copyWarps = op.getWarps(); });
  kernel.walk([&](simt::CopyBoxOp op) {
    unsigned argument = cast<BlockArgument>(op.getBuffer()).getArgNumber();
    TensorMapArgument map{argument, op.getTensor()};
    if (!llvm::is_contained(maps, map))
      maps.push_back(map);
  });
}

/// By value, where it is used in place.
void KernelLowering::annotateTensorMaps() {
  constexpr int64_t mapBytes = 128, mapAlignment = 64;
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), mapBytes);
  unsigned first = kernel.getNumArguments();
  for (unsigned i = first; i < first + maps.size(); ++i) {
    function.setArgAttr(i, LLVM::LLVMDialect::getByValAttrName(),
                        TypeAttr::get(type));
    function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                        b.getI64IntegerAttr(mapAlignment));
    function.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(),
                        b.getUnitAttr());
  }
}

/// By the warp that needs them, while others prepare the barriers.
void KernelLowering::prefetchTensorMaps() {
  if (maps.empty())
    return;
  doWhere(isThread(options.warps * kLanes), [&] {
    for (unsigned i = 0; i < maps.size(); ++i)
      NVVM::PrefetchOp::create(
          b, loc, NVVM::PrefetchCacheLevelAttr(),
          NVVM::CacheEvictionPriorityAttr(),
          function.getArgument(kernel.getNumArguments() + i), Value(),
          /*tensormap=*/true, /*uniform=*/false, /*in_param_space=*/false);
  });
}

Value KernelLowering::sharedPointer(Value memory, int64_t bytes) {
  IndexSum start = sharedStart(memory);
  auto offset = [&](Value from, LLVM::GEPArg by) -> Value {
    return LLVM::GEPOp::create(b, loc, sharedBase.getType(), b.getI8Type(),
                               from, ArrayRef<LLVM::GEPArg>{by});
  };
  Value pointer = sharedBase;
  if (start.value)
    pointer = offset(pointer, toInteger(start.value, indexInteger()));
  int64_t constant = start.constant + bytes;
  return constant ? offset(pointer, int32_t(constant)) : pointer;
}

Value KernelLowering::isThread(unsigned number) {
  return LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, threadId,
                              i32(number));
}

void KernelLowering::lowerOp(simt::InitBarriersOp op) {
  int64_t slots = op.getRing().getDefiningOp<simt::AllocOp>().getSlots();
  doWhere(isThread(0), [&] {
    for (int64_t slot = 0; slot < slots; ++slot)
      NVVM::MBarrierInitOp::create(
          b, loc, sharedPointer(op.getRing(), slot * kBarrierBytes),
          i32(op.getArrivals()), Value());
  });
  NVVM::FenceMbarrierInitOp::create(b, loc);
}

void KernelLowering::lowerOp(simt::ExpectBytesOp op) {
  NVVM::MBarrierArriveExpectTxOp::create(
      b, loc, TypeRange(), sharedPointer(op.getBarrier()),
      integersOf(op.getBytes(), 32)[0], NVVM::MemScopeKind::CTA,
      /*relaxed=*/false, Value());
}

/// Predicated, since a branch beside dots of warpgroups makes ptxas serialize
/// them.
void KernelLowering::lowerOp(simt::ArriveOp op) {
  Value lane = toInteger(laneId, b.getI32Type());
  Value isFirst =
      LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, lane, i32(0));
  if (Value when = op.getWhen())
    isFirst =
        LLVM::AndOp::create(b, loc, isFirst, scalars.lookupOrDefault(when));
  LLVM::InlineAsmOp::create(
      b, loc, TypeRange(), {isFirst, sharedPointer(op.getBarrier())},
      "@$0 mbarrier.arrive.shared::cta.b64 _, [$1];", "b,r,~{memory}",
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None, {}, {});
}

void KernelLowering::lowerOp(simt::WaitBarrierOp op) {
  constexpr int64_t ticks = 10000000; // how long the chip may sleep, a hint
  Value parity =
      toInteger(scalars.lookupOrDefault(op.getParity()), indexInteger());
  if (options.indexBits != 32)
    parity = LLVM::TruncOp::create(b, loc, b.getI32Type(), parity);
  NVVM::MBarrierTryWaitParityOp::create(b, loc, sharedPointer(op.getBarrier()),
                                        parity, i32(ticks));
}

LogicalResult KernelLowering::lowerOp(simt::CopyWarpOp op) {
  Value copies = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge,
                                       warpId, index->constant(options.warps));
  LogicalResult result = success();
  auto lowerPart = [&](unsigned part) {
    doWhere(isThread((options.warps + part) * kLanes), [&] {
      if (succeeded(result))
        result = lowerBlock(op.getParts()[part].front());
    });
  };
  doWhere(copies, [&] {
    if (op.getRegisters())
      NVVM::SetMaxRegisterOp::create(b, loc, GivenRegisters::kept,
                                     NVVM::SetMaxRegisterAction::decrease);
    for (unsigned part = 0; part < op.getParts().size(); ++part)
      lowerPart(part);
    // Whoever ends has waited for the kernels before.
    simt::WaitDependenciesOp wait;
    kernel.walk([&](simt::WaitDependenciesOp any) { wait = any; });
    if (wait)
      lowerOp(wait);
    LLVM::InlineAsmOp::create(b, loc, TypeRange(), ValueRange(), "exit;", "",
                              /*has_side_effects=*/true,
                              /*is_align_stack=*/false,
                              LLVM::TailCallKind::None, {}, {});
  });
  if (op.getRegisters())
    NVVM::SetMaxRegisterOp::create(b, loc, op.getRegisters(),
                                   NVVM::SetMaxRegisterAction::increase);
  return result;
}

void KernelLowering::lowerOp(simt::CoordinatesOp op) {
  SmallVector<IndexSum> symbols;
  for (Value symbol : op.getSymbols())
    symbols.push_back(sumOf(symbol));
  graph::Facts facts = tile::factsOf({}, op.getSymbols());
  for (auto [expr, result] :
       llvm::zip(op.getMap().getResults(), op.getResults()))
    scalars.map(result,
                index->materialize(index->evaluate(expr, {}, symbols, facts)));
}

KernelLowering::Values KernelLowering::integersOf(ValueRange indices,
                                                  unsigned bits) {
  Values result;
  for (Value value : indices) {
    value = toInteger(scalars.lookupOrDefault(value), indexInteger());
    if (bits < options.indexBits)
      value = LLVM::TruncOp::create(b, loc, b.getIntegerType(bits), value);
    result.push_back(value);
  }
  return result;
}

void KernelLowering::lowerOp(simt::CopyBoxOp op) {
  unsigned argument = cast<BlockArgument>(op.getBuffer()).getArgNumber();
  const auto *found =
      llvm::find(maps, TensorMapArgument{argument, op.getTensor()});
  Value map =
      function.getArgument(kernel.getNumArguments() + (found - maps.begin()));
  Values at = integersOf(op.getAt(), 32),
         offsets = integersOf(op.getOffsets(), 16);
  Value barrier = sharedPointer(op.getBarrier());
  auto cluster = LLVM::LLVMPointerType::get(b.getContext(), 7);
  auto mode =
      offsets.empty() ? NVVM::TMALoadMode::TILE : NVVM::TMALoadMode::IM2COL;
  for (int64_t i = 0; i < int64_t(op.getCount()); ++i) {
    Values place = at;
    if (i)
      place[0] = LLVM::AddOp::create(b, loc, at[0], i32(i * op.getAdvance()));
    Value to = LLVM::AddrSpaceCastOp::create(
        b, loc, cluster, sharedPointer(op.getMemory(), i * op.getBytes()));
    NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
        b, loc, to, map, place, barrier, offsets, Value(), Value(), mode,
        /*isCTAOnly=*/false, NVVM::CTAGroupKindAttr(), Value());
  }
}
