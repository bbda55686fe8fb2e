// Sorting in memory, by all threads of a program instance: a bitonic network in
// the form in which every comparison puts the lesser element in front. Elements
// behind the last count as greatest, so comparisons with them are left out and
// any number of elements will do.
#include "codegen/gpu/lower/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

void KernelLowering::lowerOp(tile::BarrierOp) {
  NVVM::Barrier0Op::create(b, loc);
}

namespace {
/// What the loops of a sort are written with; all on index.
struct SortCode {
  OpBuilder &b;
  Location loc;
  Value base, count, thread, threads;

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  template <typename Op> Value make(Value x, Value y) {
    return Op::create(b, loc, x, y);
  }
  Value isLess(Value x, Value y) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
  }
  Value address(Value at) {
    Value wide = arith::IndexCastOp::create(b, loc, b.getI64Type(), at);
    return LLVM::GEPOp::create(b, loc, base.getType(), b.getI64Type(), base,
                               ArrayRef<LLVM::GEPArg>{wide});
  }

  /// while (continues(i)) { body(i); i = next(i); }
  void loop(Value first, llvm::function_ref<Value(Value)> continues,
            llvm::function_ref<Value(Value)> body) {
    scf::WhileOp::create(
        b, loc, TypeRange{b.getIndexType()}, ValueRange{first},
        [&](OpBuilder &, Location, ValueRange i) {
          Value test = continues(i[0]);
          scf::ConditionOp::create(b, loc, test, i);
        },
        [&](OpBuilder &, Location, ValueRange i) {
          Value next = body(i[0]);
          scf::YieldOp::create(b, loc, next);
        });
  }

  void exchange(Value low, Value high) {
    auto branch = scf::IfOp::create(b, loc, isLess(high, count), false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&branch.getThenRegion().front());
    Value at[] = {address(low), address(high)};
    Value x = LLVM::LoadOp::create(b, loc, b.getI64Type(), at[0], 8),
          y = LLVM::LoadOp::create(b, loc, b.getI64Type(), at[1], 8);
    LLVM::StoreOp::create(b, loc, make<arith::MinSIOp>(x, y), at[0], 8);
    LLVM::StoreOp::create(b, loc, make<arith::MaxSIOp>(x, y), at[1], 8);
  }

  /// All pairs of runs of `half` elements: each element of the first with its
  /// mirror image in the second, or with the one `half` behind it.
  void step(Value half, bool mirrored) {
    Value one = constant(1), two = constant(2);
    Value mask = make<arith::SubIOp>(half, one),
          size = make<arith::MulIOp>(half, two);
    // As many pairs as the first runs have elements.
    Value last = make<arith::SubIOp>(size, one);
    Value runs = make<arith::DivUIOp>(make<arith::AddIOp>(count, last), size),
          pairs = make<arith::MulIOp>(runs, half);
    auto loop = scf::ForOp::create(b, loc, thread, pairs, threads);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value pair = loop.getInductionVar(),
            inside = make<arith::AndIOp>(pair, mask),
            start = make<arith::MulIOp>(make<arith::SubIOp>(pair, inside), two),
            low = make<arith::AddIOp>(start, inside);
      Value high =
          mirrored
              ? make<arith::SubIOp>(make<arith::AddIOp>(start, last), inside)
              : make<arith::AddIOp>(low, half);
      exchange(low, high);
    }
    NVVM::Barrier0Op::create(b, loc);
  }

  void run() {
    Value one = constant(1), two = constant(2);
    loop(
        one, [&](Value half) { return isLess(half, count); },
        [&](Value half) {
          step(half, /*mirrored=*/true);
          loop(
              make<arith::DivUIOp>(half, two),
              [&](Value part) { return isLess(constant(0), part); },
              [&](Value part) {
                step(part, /*mirrored=*/false);
                return make<arith::DivUIOp>(part, two);
              });
          return make<arith::MulIOp>(half, two);
        });
  }
};
} // namespace

void KernelLowering::lowerOp(tile::SortOp op) {
  Value first = arith::IndexCastOp::create(
      b, loc, b.getI64Type(), scalars.lookupOrDefault(op.getFirst()));
  Value buffer = scalars.lookup(op.getBuffer());
  Value base = LLVM::GEPOp::create(b, loc, buffer.getType(), b.getI64Type(),
                                   buffer, ArrayRef<LLVM::GEPArg>{first});
  NVVM::Barrier0Op::create(b, loc);
  SortCode code{b,
                loc,
                base,
                scalars.lookupOrDefault(op.getCount()),
                toIndex(threadId),
                index->constant(int64_t(options.warps) * kLanes)};
  code.run();
}
