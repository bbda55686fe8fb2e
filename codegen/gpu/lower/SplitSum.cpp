// The sum over the program instances that share a tile.
//
// Each part leaves its registers in scratch memory, every thread in places of
// its own, so that all accesses are 16 bytes wide and coalesced whatever the
// layout is. Then it counts itself; whoever completes the count adds up the
// parts in their order, which makes the result the same in every run.
#include "codegen/gpu/lower/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

LogicalResult KernelLowering::lowerOp(tile::SplitSumOp op) {
  Values values = elements(op.getValue());
  int64_t parts = op.getParts(), threads = int64_t(options.warps) * kLanes;
  int64_t count = values.size(), vector = std::min<int64_t>(count, 4);
  int64_t partBytes = count * threads * 4;
  // What the kernel's scratch memory is sized for (codegen/emit/Kernel.cpp).
  if (count * threads > std::max(op.getType().getNumElements(), threads * 16))
    return op.emitOpError("has a tile that threads hold too many times over");
  Type i64 = b.getI64Type();
  auto constant = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  };
  auto wide = [&](Value index) -> Value {
    return arith::IndexCastOp::create(b, loc, i64, index);
  };
  auto advance = [&](Value pointer, Value bytes) -> Value {
    return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(),
                               pointer, ArrayRef<LLVM::GEPArg>{bytes});
  };
  Value tile = wide(scalars.lookupOrDefault(op.getTile())),
        part = wide(scalars.lookupOrDefault(op.getPart()));
  Value thread = LLVM::ZExtOp::create(b, loc, i64, threadId);

  Value first = scalars.lookup(op.getScratch());
  first = advance(
      first, LLVM::MulOp::create(b, loc, tile, constant(parts * partBytes)));
  first =
      advance(first, LLVM::MulOp::create(b, loc, thread, constant(vector * 4)));
  Value own =
      advance(first, LLVM::MulOp::create(b, loc, part, constant(partBytes)));
  for (int64_t i = 0; i < count; i += vector)
    storeVector({own, i * threads * 4}, {},
                ArrayRef<Value>(values).slice(i, vector));

  // The fence orders every thread's stores before the count that follows the
  // barrier, and the one behind it the loads after. The count wraps to zero for
  // the next run.
  Value counter = advance(scalars.lookup(op.getCounters()),
                          LLVM::MulOp::create(b, loc, tile, constant(4)));
  std::string last = std::to_string(parts - 1);
  std::string text = "{\n"
                     ".reg .pred first, last;\n"
                     ".reg .u32 arrived;\n"
                     "fence.acq_rel.gpu;\n"
                     "barrier.sync 0;\n"
                     "setp.eq.u32 first, $1, 0;\n"
                     "mov.u32 arrived, 0;\n"
                     "@first atom.acq_rel.gpu.global.inc.u32 arrived, [$0], " +
                     last +
                     ";\n"
                     "setp.eq.and.u32 last, arrived, " +
                     last +
                     ", first;\n"
                     "barrier.red.or.pred last, 0, last;\n"
                     "@!last exit;\n"
                     "fence.acq_rel.gpu;\n"
                     "}";
  LLVM::InlineAsmOp::create(b, loc, TypeRange(), {counter, threadId}, text,
                            "l,r,~{memory}",
                            /*has_side_effects=*/true, /*is_align_stack=*/false,
                            LLVM::TailCallKind::None, {}, {});

  Values sums;
  for (int64_t p = 0; p < parts; ++p)
    for (int64_t i = 0; i < count; i += vector) {
      Values loaded = loadVector({first, p * partBytes + i * threads * 4}, {},
                                 b.getF32Type(), vector, /*independent=*/false);
      for (int64_t j = 0; j < vector; ++j) {
        if (p == 0)
          sums.push_back(loaded[j]);
        else
          sums[i + j] = arith::AddFOp::create(b, loc, sums[i + j], loaded[j]);
      }
    }
  bind(op.getResult(), sums);
  return success();
}
