// What the program instances of a cluster give each other.
//
// Each thread leaves its registers in shared memory in places of its own, that
// of a register beside those of the other threads: whatever the layout is, no
// access has a conflict. As all instances have one layout, what a thread needs
// of another part was left there by the thread of its own number.
//
// The cluster meets, and every thread reads its places of all parts, its own
// included: one path for all is shorter than a choice. It arrives once more
// behind its reads, and waits for that before the kernel ends, since memory of
// an instance that has ended is gone.
#include "codegen/gpu/lower/Lowering.h"
#include "codegen/tile/ir/IndexAttributes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

static constexpr unsigned kPlaceBytes = 4;

void KernelLowering::arriveAtCluster() {
  if (hasArrived)
    waitForCluster();
  NVVM::ClusterArriveOp::create(b, loc, b.getUnitAttr());
  hasArrived = true;
}

void KernelLowering::waitForCluster() {
  NVVM::ClusterWaitOp::create(b, loc, b.getUnitAttr());
  hasArrived = false;
}

/// `pointer`, in either view of shared memory, and `bytes`.
static Value advance(OpBuilder &b, Location loc, Value pointer,
                     LLVM::GEPArg bytes) {
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{bytes});
}

KernelLowering::Values KernelLowering::readPart(Value own, int64_t part,
                                                int64_t slots,
                                                int64_t slotBytes) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), 7);
  Value first = NVVM::MapaOp::create(b, loc, pointer, own, i32(part));
  Values values;
  for (int64_t slot = 0; slot < slots; ++slot)
    values.push_back(LLVM::LoadOp::create(
        b, loc, b.getF32Type(),
        advance(b, loc, first, int32_t(slot * slotBytes)), kPlaceBytes));
  return values;
}

LogicalResult KernelLowering::checkCluster(Operation *op, int64_t parts) {
  auto cluster = function->getAttrOfType<IntegerAttr>(tile::kClusterAttr);
  int64_t known = cluster ? cluster.getInt() : 1;
  if (known == parts)
    return success();
  return op->emitOpError("is of clusters of ")
         << parts << " instances in a kernel that has clusters of " << known;
}

LogicalResult KernelLowering::lowerOp(simt::ExchangeOp op) {
  if (failed(checkCluster(op, op.getParts())))
    return failure();
  // Arrivals and waits are counted in the order of the text.
  if (!isa<func::FuncOp>(op->getParentOp()))
    return op.emitOpError("stands at the top of a kernel");
  SmallVector<unsigned> held = heldElements(simt::layoutOf(op.getInputs()[0]));
  int64_t count = *llvm::max_element(held) + 1,
          slotBytes = op.getMemory().getType().getBytes();
  Values left;
  for (Value input : op.getInputs()) {
    left.resize(left.size() + count);
    for (auto [number, value] : llvm::zip(held, elements(input)))
      left[left.size() - count + number] = value;
  }
  Value own = sharedPointer(op.getMemory());
  own = LLVM::GEPOp::create(b, loc, own.getType(), b.getF32Type(), own,
                            ArrayRef<LLVM::GEPArg>{threadId});
  for (auto [slot, value] : llvm::enumerate(left))
    LLVM::StoreOp::create(b, loc, value,
                          advance(b, loc, own, int32_t(slot * slotBytes)),
                          kPlaceBytes);
  arriveAtCluster();
  waitForCluster();
  size_t operands = op.getInputs().size();
  for (size_t part = 0; part < op.getParts(); ++part) {
    Values values = readPart(own, part, left.size(), slotBytes);
    for (size_t i = 0; i < operands; ++i) {
      Values registers;
      for (unsigned number : held)
        registers.push_back(values[i * count + number]);
      bind(op.getResult(part * operands + i), registers);
    }
  }
  arriveAtCluster();
  return success();
}
