// The sum over the program instances that share a tile.
//
// Each part leaves its registers in scratch memory, every thread in places of
// its own, so that all accesses are 16 bytes wide and coalesced whatever the
// layout is. Sums are taken in the order of the parts, which makes the result
// the same in every run.
//
// Without clusters a part counts itself then, and whoever completes the count
// adds up all and goes on. The parts of a cluster wait for each other, and each
// adds up its share of an axis: registers are left in the order of the share
// that they belong to, so a share is a run of each part's places.
#include "codegen/gpu/lower/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

namespace {

/// Which registers belong to which share of an axis. The coordinate's high bits
/// are a share's number; `mask`: those of them that registers decide, lanes and
/// warps flip any.
struct Shares {
  unsigned mask = 0;
  /// Registers, those of a share side by side, in the same order in each.
  SmallVector<unsigned> order;
  int64_t count = 1; ///< Of shares that registers tell apart.
  int64_t each() const { return order.size() / count; }
};

/// `first`: the lowest bit of the coordinate that belongs to a share's number.
Shares sharesOf(const LinearLayout &layout, unsigned registers, unsigned axis,
                unsigned first) {
  Shares shares;
  std::map<unsigned, SmallVector<unsigned>> byShare;
  for (unsigned r = 0; r < registers; ++r) {
    unsigned share =
        layout.coordinate(layout.apply(Dim::Register, r), axisDim(axis)) >>
        first;
    shares.mask |= share;
    byShare[share].push_back(r);
  }
  shares.count = byShare.size();
  // Where shares are not all that the bits can say everything is added up.
  if (shares.count != int64_t(1) << llvm::popcount(shares.mask)) {
    shares.mask = 0;
    shares.count = 1;
  }
  for (auto &[share, of] : byShare)
    llvm::append_range(shares.order, of);
  return shares;
}

} // namespace

/// Where a part's registers begin, for each thread.
struct KernelLowering::SplitPlaces {
  Value first, own;  ///< Of the first part and of this one.
  int64_t partBytes; ///< From one part to the next.
  int64_t vector;    ///< Elements of an access.
  int64_t stride;    ///< Bytes from one access of a thread to its next.
};

void KernelLowering::leavePart(const SplitPlaces &places,
                               ArrayRef<Value> values) {
  for (size_t i = 0; i < values.size(); i += places.vector)
    storeVector({places.own, int64_t(i) / places.vector * places.stride}, {},
                values.slice(i, places.vector));
}

KernelLowering::Values KernelLowering::addParts(const SplitPlaces &places,
                                                Value from, int64_t parts,
                                                int64_t count) {
  Values sums;
  for (int64_t p = 0; p < parts; ++p)
    for (int64_t i = 0; i < count; i += places.vector) {
      Values loaded = loadVector(
          {from, p * places.partBytes + i / places.vector * places.stride}, {},
          b.getF32Type(), places.vector, /*independent=*/false);
      for (int64_t j = 0; j < places.vector; ++j) {
        if (p == 0)
          sums.push_back(loaded[j]);
        else
          sums[i + j] = arith::AddFOp::create(b, loc, sums[i + j], loaded[j]);
      }
    }
  return sums;
}

void KernelLowering::countPart(tile::SplitSumOp op, Value counter) {
  // The fence orders every thread's stores before the count that follows the
  // barrier, and the one behind it the loads after. The count wraps to zero for
  // the next run. A warp that copies has ended or will: barriers are of those
  // that have not.
  std::string last = std::to_string(op.getParts() - 1);
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
}

Value KernelLowering::ownShare(tile::SplitSumOp op, unsigned first) {
  const LinearLayout &layout = simt::layoutOf(op.getValue());
  Value share = scalars.lookupOrDefault(op.getPart());
  if (Value moved = threadPart(layout, axisDim(*op.getSharedAxis())).value)
    share = index->exclusiveOr(
        share, index->binary("arith.shrui", moved, index->constant(first)));
  return share;
}

Value KernelLowering::numberOf(Value share, unsigned mask) {
  Value number;
  for (unsigned bit = 0, to = 0; mask >> bit; ++bit) {
    if (!(mask >> bit & 1))
      continue;
    Value one = index->binary(
        "arith.andi", index->binary("arith.shrui", share, index->constant(bit)),
        index->constant(1));
    one = index->binary("arith.shli", one, index->constant(to++));
    number = number ? index->binary("arith.ori", number, one) : one;
  }
  return number;
}

LogicalResult KernelLowering::lowerOp(tile::SplitSumOp op) {
  if (failed(checkCluster(op, op.getSharedAxis() ? op.getParts() : 1)))
    return failure();
  Values values = elements(op.getValue());
  int64_t parts = op.getParts(), threads = int64_t(options.warps) * kLanes;
  int64_t count = values.size();
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
  auto advance = [&](Value pointer, Value by, int64_t bytes) -> Value {
    Value offset = LLVM::MulOp::create(b, loc, by, constant(bytes));
    return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(),
                               pointer, ArrayRef<LLVM::GEPArg>{offset});
  };
  Shares shares;
  unsigned first = 0;
  for (int64_t r = 0; r < count; ++r)
    shares.order.push_back(r);
  if (auto axis = op.getSharedAxis()) {
    first = llvm::Log2_64(op.getType().getShape()[*axis] / parts);
    shares = sharesOf(simt::layoutOf(op.getValue()), count, *axis, first);
  }
  SplitPlaces places;
  places.vector = std::min<int64_t>(shares.each(), 4);
  places.partBytes = count * threads * 4;
  places.stride = places.vector * threads * 4;
  Value tile = wide(scalars.lookupOrDefault(op.getTile()));
  places.first =
      advance(scalars.lookup(op.getScratch()), tile, parts * places.partBytes);
  places.first =
      advance(places.first, LLVM::ZExtOp::create(b, loc, i64, threadId),
              places.vector * 4);
  places.own =
      advance(places.first, wide(scalars.lookupOrDefault(op.getPart())),
              places.partBytes);
  Values left;
  for (unsigned r : shares.order)
    left.push_back(values[r]);
  leavePart(places, left);

  Value from = places.first, owns;
  if (op.getSharedAxis()) {
    arriveAtCluster();
    waitForCluster();
    Value share = ownShare(op, first);
    if (Value number = numberOf(share, shares.mask))
      from = advance(from, wide(number), shares.each() * threads * 4);
    // Warps decide the other bits: those with no element of the share wait.
    if (unsigned others = (parts - 1) & ~shares.mask)
      owns = index->lessUnsigned(
          {index->binary("arith.andi", share, index->constant(others)), 0},
          {{}, 1});
  } else {
    countPart(op, advance(scalars.lookup(op.getCounters()), tile, 4));
  }
  auto add = [&] { return addParts(places, from, parts, shares.each()); };
  Values sums;
  if (owns) {
    Value zero = LLVM::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
    sums = replaceWhere(owns, SmallVector<Value>(shares.each(), zero), add);
  } else {
    sums = add();
  }
  // What belongs to other shares may be anything.
  Values result(count);
  for (auto [i, r] : llvm::enumerate(shares.order))
    result[r] = sums[i % shares.each()];
  bind(op.getResult(), result);
  return success();
}
