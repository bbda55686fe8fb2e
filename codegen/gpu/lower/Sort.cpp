// Sorting, by all threads of a program instance: a bitonic network in the form
// in which every comparison puts the lesser element in front. Elements behind
// the last count as greatest, so comparisons with them are left out and any
// number of elements will do. Where few are kept, runs grow to their number
// only; then the lesser half of each two of them goes on.
//
// A row that fits into shared memory is sorted there, others where they lie.
#include "codegen/gpu/SharedMemory.h"
#include "codegen/gpu/lower/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

namespace {
/// What the loops of a sort are written with; all on index.
struct SortCode {
  OpBuilder &b;
  Location loc;
  Value base, count, kept, thread, threads;

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  template <typename Op> Value make(Value x, Value y) {
    return Op::create(b, loc, x, y);
  }
  Value isLess(Value x, Value y) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
  }
  Value addressIn(Value memory, Value at) {
    bool isShared =
        cast<LLVM::LLVMPointerType>(memory.getType()).getAddressSpace() == 3;
    Value place = arith::IndexCastOp::create(
        b, loc, isShared ? b.getI32Type() : b.getI64Type(), at);
    return LLVM::GEPOp::create(b, loc, memory.getType(), b.getI64Type(), memory,
                               ArrayRef<LLVM::GEPArg>{place});
  }
  Value address(Value at) { return addressIn(base, at); }

  /// All threads' elements from one memory to the other.
  void copy(Value from, Value to) {
    auto loop = scf::ForOp::create(b, loc, thread, count, threads);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value i = loop.getInductionVar();
      Value x =
          LLVM::LoadOp::create(b, loc, b.getI64Type(), addressIn(from, i), 8);
      LLVM::StoreOp::create(b, loc, x, addressIn(to, i), 8);
    }
    NVVM::Barrier0Op::create(b, loc);
  }

  /// while (continues(i)) i = body(i); gives the last i.
  Value loop(Value first, llvm::function_ref<Value(Value)> continues,
             llvm::function_ref<Value(Value)> body) {
    auto loop = scf::WhileOp::create(
        b, loc, TypeRange{b.getIndexType()}, ValueRange{first},
        [&](OpBuilder &, Location, ValueRange i) {
          Value test = continues(i[0]);
          scf::ConditionOp::create(b, loc, test, i);
        },
        [&](OpBuilder &, Location, ValueRange i) {
          Value next = body(i[0]);
          scf::YieldOp::create(b, loc, next);
        });
    return loop.getResult(0);
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

  /// The pairs of each block of `size` elements: `each` of them, a power of
  /// two, of which `pair` gives the two places from the pair's number in the
  /// block and the block's start.
  void
  exchangeAll(Value size, Value each,
              llvm::function_ref<std::pair<Value, Value>(Value, Value)> pair) {
    Value one = constant(1);
    Value mask = make<arith::SubIOp>(each, one),
          last = make<arith::SubIOp>(size, one);
    Value blocks = make<arith::DivUIOp>(make<arith::AddIOp>(count, last), size),
          pairs = make<arith::MulIOp>(blocks, each),
          ratio = make<arith::DivUIOp>(size, each);
    auto loop = scf::ForOp::create(b, loc, thread, pairs, threads);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value number = loop.getInductionVar(),
            inside = make<arith::AndIOp>(number, mask),
            start =
                make<arith::MulIOp>(make<arith::SubIOp>(number, inside), ratio);
      auto [low, high] = pair(inside, start);
      exchange(low, high);
    }
    NVVM::Barrier0Op::create(b, loc);
  }

  /// Joins runs of `run` elements, `distance` apart: each element of the first
  /// with its mirror image in the second, so that the lesser ones, rising and
  /// then falling, are in the first.
  void mirror(Value run, Value distance) {
    Value size = make<arith::MulIOp>(distance, constant(2)),
          ends = make<arith::SubIOp>(make<arith::AddIOp>(distance, run),
                                     constant(1));
    exchangeAll(size, run, [&](Value inside, Value start) {
      return std::pair(
          make<arith::AddIOp>(start, inside),
          make<arith::SubIOp>(make<arith::AddIOp>(start, ends), inside));
    });
  }

  /// Orders the first `run` elements of each `size`, which rise and then fall:
  /// each element with the one half of a part behind it.
  void order(Value run, Value size) {
    Value one = constant(1), two = constant(2), zero = constant(0);
    loop(
        make<arith::DivUIOp>(run, two),
        [&](Value half) { return isLess(zero, half); },
        [&](Value half) {
          Value mask = make<arith::SubIOp>(half, one);
          exchangeAll(size, make<arith::DivUIOp>(run, two),
                      [&](Value inside, Value start) {
                        Value rest = make<arith::AndIOp>(inside, mask);
                        Value low = make<arith::AddIOp>(
                            start, make<arith::SubIOp>(
                                       make<arith::MulIOp>(inside, two), rest));
                        return std::pair(low, make<arith::AddIOp>(low, half));
                      });
          return make<arith::DivUIOp>(half, two);
        });
  }

  void run() {
    Value two = constant(2);
    // Runs are sorted up to a power of two that holds what is kept.
    Value few = make<arith::MinSIOp>(count, kept);
    Value run = loop(
        constant(1), [&](Value run) { return isLess(run, few); },
        [&](Value run) {
          Value size = make<arith::MulIOp>(run, two);
          mirror(run, run);
          // Both halves rise and then fall.
          order(run, run);
          return size;
        });
    loop(
        run, [&](Value distance) { return isLess(distance, count); },
        [&](Value distance) {
          Value size = make<arith::MulIOp>(distance, two);
          mirror(run, distance);
          order(run, size);
          return size;
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
                scalars.lookupOrDefault(op.getKept()),
                toIndex(threadId),
                index->constant(int64_t(options.warps) * kLanes)};
  int64_t bytes = sharedBytesOf(op);
  if (!bytes)
    return code.run();
  code.base = LLVM::GEPOp::create(
      b, loc, sharedBase.getType(), b.getI8Type(), sharedBase,
      ArrayRef<LLVM::GEPArg>{int32_t(options.sharedBytes - bytes)});
  code.copy(base, code.base);
  code.run();
  code.copy(code.base, base);
}
