// Scans within warps. Runs of 1, 2, 4, ... elements along the axis are joined
// in pairs: what the first of two runs sums up to is added to the elements of
// the second. A bit of the axis is one of a thread's registers or one of its
// lane, so a run's partner is another register, or another lane.
#include "codegen/gpu/lower/Lowering.h"
#include "codegen/tile/ir/IndexAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using f2::Vector;

/// The register of a scan's total for the row that register `reg` is of.
static unsigned rowOf(const LinearLayout &layout, const LinearLayout &outer,
                      unsigned axis, unsigned reg) {
  Vector image = layout.apply(Dim::Register, reg), wanted = 0;
  unsigned shift = 0;
  for (auto [i, out] : llvm::enumerate(outer.outs())) {
    unsigned from = i < axis ? i : i + 1;
    wanted |= Vector(layout.coordinate(image, axisDim(from))) << shift;
    shift += out.bits;
  }
  return *f2::Span(outer.columnsOf(Dim::Register)).solve(wanted);
}

void KernelLowering::lowerOp(tile::ScanOp op) {
  if (op->hasAttr(tile::kOneByOneAttr))
    return lowerOneByOne(op);
  const LinearLayout &layout = simt::layoutOf(op.getInput()),
                     &outer = simt::layoutOf(op.getTotal());
  Dim axis = axisDim(op.getAxis());
  Region &combiner = op.getCombiner();
  auto both = [&](Value x, Value y) { return combine(combiner, {x}, {y})[0]; };
  // Of each register: its element with those before it in the run, and all of
  // the run.
  Values sums = elements(op.getInput()), totals = sums;

  auto joinRegisters = [&](unsigned bit) {
    // Registers of one run have one total.
    llvm::DenseMap<std::pair<Value, Value>, Value> joined;
    for (unsigned low = 0; low < sums.size(); ++low) {
      unsigned high = low | 1u << bit;
      if (low == high)
        continue;
      sums[high] = both(totals[low], sums[high]);
      Value &whole = joined[{totals[low], totals[high]}];
      if (!whole)
        whole = both(totals[low], totals[high]);
      totals[low] = totals[high] = whole;
    }
  };
  auto joinLanes = [&](unsigned bit) {
    Value own = index->binary("arith.andi", laneId, index->constant(1 << bit));
    Value isHigh = index->lessUnsigned({{}, 0}, {own, 0});
    llvm::DenseMap<Value, std::pair<Value, Value>> joined;
    for (auto [sum, total] : llvm::zip(sums, totals)) {
      auto &[other, whole] = joined[total];
      if (!other) {
        other = shuffle(total, "bfly", i32(1 << bit));
        // In the order of the axis, whichever half this is.
        Value low = arith::SelectOp::create(b, loc, isHigh, other, total),
              high = arith::SelectOp::create(b, loc, isHigh, total, other);
        whole = both(low, high);
      }
      sum = arith::SelectOp::create(b, loc, isHigh, both(other, sum), sum);
      total = whole;
    }
  };
  for (unsigned bit = 0; bit < layout.outBits(axis); ++bit)
    for (Dim dim : {Dim::Register, Dim::Lane})
      for (unsigned in = 0; in < layout.inBits(dim); ++in)
        if (layout.basis(dim, in, axis) == uint64_t(1) << bit)
          dim == Dim::Register ? joinRegisters(in) : joinLanes(in);

  Values carry = elements(op.getCarry()), ends(carry.size());
  for (unsigned r = 0; r < sums.size(); ++r) {
    unsigned row = rowOf(layout, outer, op.getAxis(), r);
    sums[r] = both(carry[row], sums[r]);
    if (!ends[row])
      ends[row] = both(carry[row], totals[r]);
  }
  bind(op.getResult(), sums);
  bind(op.getTotal(), ends);
}

/// Each thread has all of its rows.
void KernelLowering::lowerOneByOne(tile::ScanOp op) {
  const LinearLayout &layout = simt::layoutOf(op.getInput()),
                     &outer = simt::layoutOf(op.getTotal());
  Values values = elements(op.getInput()), totals = elements(op.getCarry());
  std::vector<unsigned> registers(values.size());
  llvm::copy(llvm::seq<unsigned>(0, values.size()), registers.begin());
  auto place = [&](unsigned reg) {
    return layout.coordinate(layout.apply(Dim::Register, reg),
                             axisDim(op.getAxis()));
  };
  llvm::stable_sort(
      registers, [&](unsigned x, unsigned y) { return place(x) < place(y); });
  for (unsigned r : registers) {
    Value &total = totals[rowOf(layout, outer, op.getAxis(), r)];
    total = combine(op.getCombiner(), {total}, {values[r]})[0];
    values[r] = total;
  }
  bind(op.getResult(), values);
  bind(op.getTotal(), totals);
}
