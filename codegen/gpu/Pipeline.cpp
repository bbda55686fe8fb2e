#include "codegen/gpu/Pipeline.h"
#include "codegen/gpu/LayoutPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

namespace {

/// A load that cp.async can do.
struct AsyncCopy {
  tile::LoadOp load;
  unsigned axis, vector;
};

std::optional<AsyncCopy> asAsyncCopy(simt::ToSharedOp op) {
  auto load = op.getInput().getDefiningOp<tile::LoadOp>();
  if (!load)
    return std::nullopt;
  for (Value symbol : load.getSymbols())
    if (!symbol.getType().isIndex())
      return std::nullopt;
  const LinearLayout &layout = simt::layoutOf(load);
  unsigned bytes = simt::elementBits(load.getType().getElementType()) / 8;
  tile::AccessOp access = tile::AccessOp::get(load);
  Coalescing best =
      LayoutPlan::judge(access, tile::analyzeAxes(access), layout);
  // The vector has to be one in shared memory as well.
  LinearLayout offsets =
      sharedOffsets(layout, op.getMemory().getType().getLayout().getLayout());
  SmallVector<unsigned> shared = sharedVector(offsets, best.vector);
  SmallVector<unsigned> global = axisVector(layout, best.axis, best.vector);
  unsigned bits = 0;
  while (bits < shared.size() && bits < global.size() &&
         shared[bits] == global[bits])
    ++bits;
  unsigned vector = 1u << bits;
  if (vector * bytes < 4)
    return std::nullopt;
  return AsyncCopy{load, best.axis, vector};
}

/// An operand that a loop brings in ahead of time.
struct Stream {
  simt::ToSharedOp op;
  llvm::SetVector<Operation *>
      slice; // what computes it, within the body, in order
  std::optional<AsyncCopy> copy;
  Value ring;
};

/// Collects what `value` is computed from inside of `loop`; false if that
/// depends on what the loop carries or on shared memory.
bool collectSlice(Value value, scf::ForOp loop,
                  llvm::SetVector<Operation *> &slice) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() != loop.getBody() ||
           argument == loop.getInductionVar();
  Operation *op = value.getDefiningOp();
  if (op->getBlock() != loop.getBody())
    return !loop->isAncestor(op);
  if (slice.contains(op))
    return true;
  if (isa<simt::DotOp, simt::ToSharedOp>(op) ||
      (!isa<tile::LoadOp>(op) && !isMemoryEffectFree(op)))
    return false;
  for (Value operand : op->getOperands())
    if (!collectSlice(operand, loop, slice))
      return false;
  slice.insert(op);
  return true;
}

void createCopy(OpBuilder &b, tile::LoadOp load, const AsyncCopy &copy,
                Value memory) {
  simt::CopyAsyncOp::create(
      b, load.getLoc(), load.getBuffer(), load.getSymbols(), memory,
      load.getMapAttr(), load.getShapeAttr(), load.getRankAttr(),
      load.getChecksAttr(),
      cast<simt::LayoutAttr>(
          cast<RankedTensorType>(load.getType()).getEncoding()),
      b.getI64IntegerAttr(copy.axis), b.getI64IntegerAttr(copy.vector),
      load.getIndependentAttr());
}

/// Appends the guard `index < end` to the bounds checks of a load.
void addGuard(tile::LoadOp load, Value index, Value end) {
  MLIRContext *context = load.getContext();
  unsigned symbols = load.getSymbols().size(),
           results = load.getMap().getNumResults();
  load.getSymbolsMutable().append({index, end});
  auto extend = [&](AffineMap map, unsigned symbol) {
    SmallVector<AffineExpr> exprs(map.getResults());
    exprs.push_back(getAffineSymbolExpr(symbol, context));
    return AffineMap::get(map.getNumDims(), symbols + 2, exprs, context);
  };
  load.setMap(extend(load.getMap(), symbols));
  load.setShape(extend(load.getShape(), symbols + 1));
  SmallVector<int64_t> checks(load.getChecks());
  checks.push_back(results);
  load.setChecks(checks);
}

class LoopPipeline {
public:
  LoopPipeline(scf::ForOp loop, SmallVector<Stream> streams, unsigned stages)
      : loop(loop), streams(std::move(streams)), stages(stages), b(loop) {}

  void run() {
    createRings();
    prologue();
    bool prefetch = findPrefetch();
    if (prefetch)
      startFragments();
    createLoop(prefetch);
  }

private:
  Location loc() { return loop.getLoc(); }
  bool anyAsync() const {
    return llvm::any_of(streams,
                        [](const Stream &s) { return s.copy.has_value(); });
  }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc(), value);
  }

  void createRings() {
    for (Stream &stream : streams)
      stream.ring =
          simt::AllocOp::create(b, loc(), stream.op.getMemory().getType(),
                                stream.copy ? stages : 2, IntegerAttr(), true);
  }

  /// Iteration `first + ahead`, counted in steps.
  Value iteration(Value first, int64_t ahead) {
    if (ahead == 0)
      return first;
    Value steps =
        b.createOrFold<arith::MulIOp>(loc(), loop.getStep(), constant(ahead));
    return b.createOrFold<arith::AddIOp>(loc(), first, steps);
  }

  /// Copies of the async streams for the iteration at `index`, if there is one.
  void issueCopies(Value index, Value slot) {
    for (Stream &stream : streams) {
      if (!stream.copy)
        continue;
      IRMapping mapping = outer;
      mapping.map(loop.getInductionVar(), index);
      tile::LoadOp load;
      for (Operation *op : stream.slice) {
        Operation *clone = b.clone(*op, mapping);
        if (op == stream.copy->load)
          load = cast<tile::LoadOp>(clone);
      }
      addGuard(load, index, loop.getUpperBound());
      Value memory = simt::SlotOp::create(b, loc(), stream.ring.getType(),
                                          stream.ring, slot);
      createCopy(b, load, *stream.copy, memory);
      load.erase();
    }
    simt::CommitAsyncOp::create(b, loc());
  }

  /// The loads of the other streams, and what these need.
  SmallVector<IRMapping> issueLoads(Value index) {
    SmallVector<IRMapping> mappings;
    for (Stream &stream : streams) {
      IRMapping mapping = outer;
      if (!stream.copy) {
        mapping.map(loop.getInductionVar(), index);
        llvm::SetVector<Operation *> early;
        for (Operation *op : llvm::reverse(stream.slice))
          if (isa<tile::LoadOp>(op) ||
              llvm::any_of(op->getUsers(), [&](Operation *user) {
                return early.contains(user);
              }))
            early.insert(op);
        for (Operation *op : stream.slice)
          if (early.contains(op)) {
            Operation *clone = b.clone(*op, mapping);
            if (auto load = dyn_cast<tile::LoadOp>(clone))
              addGuard(load, index, loop.getUpperBound());
          }
      }
      mappings.push_back(std::move(mapping));
    }
    return mappings;
  }

  /// The rest of their computation, to shared memory.
  void storeLoads(SmallVector<IRMapping> &mappings, Value slot) {
    for (auto [stream, mapping] : llvm::zip(streams, mappings)) {
      if (stream.copy)
        continue;
      for (Operation *op : stream.slice)
        if (!mapping.contains(op->getResult(0)))
          b.clone(*op, mapping);
      Value memory = simt::SlotOp::create(b, loc(), stream.ring.getType(),
                                          stream.ring, slot);
      simt::StoreSharedOp::create(b, loc(),
                                  mapping.lookup(stream.op.getInput()), memory);
    }
  }

  bool anySync() const {
    return !llvm::all_of(streams, [](auto &s) { return s.copy; });
  }

  void prologue() {
    if (anyAsync())
      for (unsigned s = 0; s + 1 < stages; ++s)
        issueCopies(iteration(loop.getLowerBound(), s), constant(s));
    if (anySync()) {
      SmallVector<IRMapping> loads = issueLoads(loop.getLowerBound());
      storeLoads(loads, constant(0));
    }
  }

  /// Streams are there for the next iteration: at most the copies of later ones
  /// are still under way.
  void synchronize() {
    if (anyAsync())
      simt::WaitAsyncOp::create(b, loc(), stages - 2);
    simt::BarrierOp::create(b, loc());
  }

  /// One chain of dots on streams alone: then the first fragments of the next
  /// iteration can be loaded under the last dot of this one.
  bool findPrefetch() {
    SmallVector<simt::DotOp> dots;
    for (Operation &op : *loop.getBody()) {
      if (op.getNumRegions() && !isa<tile::ReduceOp, simt::WarpReduceOp>(op))
        return false;
      if (auto dot = dyn_cast<simt::DotOp>(op))
        dots.push_back(dot);
    }
    if (dots.empty())
      return false;
    for (size_t i = 1; i < dots.size(); ++i)
      if (dots[i].getAccumulator() != dots[i - 1].getResult())
        return false;
    auto isStream = [&](simt::LoadSharedOp load) {
      return llvm::any_of(streams, [&](Stream &s) {
        return s.op.getMemory() == load.getMemory();
      });
    };
    for (auto load : loop.getBody()->getOps<simt::LoadSharedOp>())
      if (!isStream(load) || !load->isBeforeInBlock(dots.back()))
        return false;
    for (Value operand : {dots[0].getLhs(), dots[0].getRhs()})
      if (auto load = operand.getDefiningOp<simt::LoadSharedOp>())
        if (load->getBlock() == loop.getBody())
          fragments.push_back(load);
    firstDot = dots.front();
    lastDot = dots.back();
    return !fragments.empty();
  }

  SmallVector<Value> loadFragments(function_ref<Value(Stream &)> slot) {
    SmallVector<Value> result;
    for (simt::LoadSharedOp fragment : fragments)
      for (Stream &stream : streams)
        if (stream.op.getMemory() == fragment.getMemory()) {
          Value memory = simt::SlotOp::create(b, loc(), stream.ring.getType(),
                                              stream.ring, slot(stream));
          result.push_back(simt::LoadSharedOp::create(
              b, loc(), fragment.getType(), memory, fragment.getStart()));
        }
    return result;
  }

  void startFragments() {
    synchronize();
    firstFragments = loadFragments([&](Stream &) { return constant(0); });
  }

  Value wrap(Value index, int64_t count) {
    Value next = arith::AddIOp::create(b, loc(), index, constant(1));
    Value end = arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::eq, next,
                                      constant(count));
    return arith::SelectOp::create(b, loc(), end, constant(0), next);
  }

  void createLoop(bool prefetch) {
    unsigned carried = loop.getInitArgs().size();
    SmallVector<Value> inits(loop.getInitArgs());
    inits.append({constant(0), constant(stages - 1),
                  constant(0)}); // read, write, parity
    llvm::append_range(inits, firstFragments);
    auto fresh =
        scf::ForOp::create(b, loc(), loop.getLowerBound(), loop.getUpperBound(),
                           loop.getStep(), inits);
    Block *body = fresh.getBody();
    if (!body->empty())
      body->getTerminator()->erase();
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(body);
    Value read = fresh.getRegionIterArg(carried),
          write = fresh.getRegionIterArg(carried + 1),
          parity = fresh.getRegionIterArg(carried + 2);
    ValueRange ahead = fresh.getRegionIterArgs().drop_front(carried + 3);
    Value index = fresh.getInductionVar();

    IRMapping mapping;
    mapping.map(loop.getInductionVar(), index);
    for (auto [old, with] :
         llvm::zip(loop.getRegionIterArgs(), fresh.getRegionIterArgs()))
      mapping.map(old, with);
    SmallVector<IRMapping> loads;
    Value other;
    auto issue = [&] {
      if (anyAsync())
        issueCopies(iteration(index, stages - 1), write);
      if (anySync()) {
        loads = issueLoads(iteration(index, 1));
        other = arith::SubIOp::create(b, loc(), constant(1), parity);
      }
    };
    if (!prefetch) {
      synchronize();
      issue();
    }
    for (Stream &stream : streams)
      mapping.map(stream.op.getMemory(),
                  simt::SlotOp::create(b, loc(), stream.ring.getType(),
                                       stream.ring, stream.copy ? read : parity)
                      .getMemory());

    Value nextRead, nextWrite;
    SmallVector<Value> nextFragments;
    auto advance = [&] {
      nextRead = anyAsync() ? wrap(read, stages) : read;
      nextWrite = anyAsync() ? wrap(write, stages) : write;
      if (anySync())
        storeLoads(loads, other);
    };
    for (Operation &op : loop.getBody()->without_terminator()) {
      if (llvm::any_of(streams, [&](Stream &s) { return s.op == &op; }))
        continue;
      auto *fragment =
          llvm::find_if(fragments, [&](auto load) { return load == &op; });
      if (fragment != fragments.end()) {
        mapping.map(op.getResult(0), ahead[fragment - fragments.begin()]);
        continue;
      }
      // After the fragments of the second step: ptxas keeps shared memory
      // accesses in order, and these are what the next dot waits for.
      if (prefetch && &op == firstDot)
        issue();
      if (prefetch && &op == lastDot) {
        advance();
        synchronize();
        nextFragments = loadFragments(
            [&](Stream &stream) { return stream.copy ? nextRead : other; });
      }
      b.clone(op, mapping);
    }
    if (!prefetch)
      advance();
    SmallVector<Value> yields;
    for (Value value : loop.getBody()->getTerminator()->getOperands())
      yields.push_back(mapping.lookupOrDefault(value));
    yields.append({nextRead, nextWrite, anySync() ? other : parity});
    llvm::append_range(yields, nextFragments);
    scf::YieldOp::create(b, loc(), yields);

    b.setInsertionPointAfter(fresh);
    if (anyAsync())
      simt::WaitAsyncOp::create(b, loc(), 0);
    for (auto [old, with] : llvm::zip(loop.getResults(), fresh.getResults()))
      old.replaceAllUsesWith(with);
    loop.erase();
    eraseDead(*body);
  }

  static void eraseDead(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  scf::ForOp loop;
  SmallVector<Stream> streams;
  unsigned stages;
  OpBuilder b;
  IRMapping outer;
  SmallVector<simt::LoadSharedOp> fragments;
  SmallVector<Value> firstFragments;
  Operation *firstDot = nullptr, *lastDot = nullptr;
};

/// Shared memory that a function needs beside the rings of one loop, at most.
int64_t otherBytes(func::FuncOp function, ArrayRef<Stream> streams) {
  int64_t bytes = 0;
  function.walk([&](Operation *op) {
    if (auto shared = dyn_cast<simt::ToSharedOp>(op))
      if (llvm::none_of(streams,
                        [&](const Stream &s) { return s.op == shared; }))
        bytes += shared.getMemory().getType().getBytes();
  });
  return bytes;
}

LogicalResult pipelineLoop(scf::ForOp loop, const PipelineOptions &options) {
  SmallVector<Stream> streams;
  int64_t bytes = 0, fixed = 0;
  for (auto op : loop.getBody()->getOps<simt::ToSharedOp>()) {
    Stream stream;
    stream.op = op;
    if (!collectSlice(op.getInput(), loop, stream.slice))
      continue;
    stream.copy = asAsyncCopy(op);
    (stream.copy ? bytes : fixed) += op.getMemory().getType().getBytes();
    streams.push_back(std::move(stream));
  }
  if (streams.empty())
    return success();
  int64_t available =
      options.sharedBytes -
      otherBytes(loop->getParentOfType<func::FuncOp>(), streams) - 2 * fixed;
  int64_t stages = options.stages;
  APInt low, high, step;
  if (matchPattern(loop.getLowerBound(), m_ConstantInt(&low)) &&
      matchPattern(loop.getUpperBound(), m_ConstantInt(&high)) &&
      matchPattern(loop.getStep(), m_ConstantInt(&step)) &&
      step.isStrictlyPositive()) {
    int64_t trips =
        llvm::divideCeil((high - low).getSExtValue(), step.getSExtValue());
    stages = std::min(stages, trips + 1);
  }
  if (bytes)
    stages = std::min(stages, available / bytes);
  stages = std::max<int64_t>(stages, 2);
  if (stages * bytes > available)
    return loop.emitError()
           << "operands of " << bytes + fixed
           << " bytes do not fit into shared memory of " << options.sharedBytes
           << " bytes twice; use smaller tiles";
  LoopPipeline(loop, std::move(streams), stages).run();
  return success();
}

/// Waits for the last group of copies before `op`, right before the memory's
/// first user: what was issued in between, such as the first iterations of a
/// pipeline, stays under way.
void waitBeforeUse(Operation *commit, Value memory) {
  Block *block = commit->getBlock();
  Operation *first = nullptr;
  for (Operation *user : memory.getUsers())
    if (Operation *ancestor = block->findAncestorOpInBlock(*user))
      if (commit->isBeforeInBlock(ancestor) &&
          (!first || ancestor->isBeforeInBlock(first)))
        first = ancestor;
  if (!first)
    first = commit->getNextNode();
  int64_t pending = 0;
  for (Operation *op = commit->getNextNode(); op != first;
       op = op->getNextNode()) {
    if (isa<simt::CommitAsyncOp>(op))
      ++pending;
    else if (op->getNumRegions() && op->walk([](simt::CommitAsyncOp) {
                                        return WalkResult::interrupt();
                                      }).wasInterrupted())
      pending = 0; // a pipeline has waited for everything before its end
  }
  OpBuilder b(first);
  simt::WaitAsyncOp::create(b, commit->getLoc(), pending);
}

/// Outside of pipelines: written where the value is known.
void expand(simt::ToSharedOp op) {
  OpBuilder b(op);
  Value memory = simt::AllocOp::create(b, op.getLoc(), op.getMemory().getType(),
                                       1, IntegerAttr(), false);
  std::optional<AsyncCopy> copy = asAsyncCopy(op);
  op.getMemory().replaceAllUsesWith(memory);
  if (copy) {
    createCopy(b, copy->load, *copy, memory);
    waitBeforeUse(simt::CommitAsyncOp::create(b, op.getLoc()), memory);
  } else {
    simt::StoreSharedOp::create(b, op.getLoc(), op.getInput(), memory);
  }
  op.erase();
  if (copy && isOpTriviallyDead(copy->load))
    copy->load.erase();
}

/// Registers of a thread that a loop may keep beside what it carries.
constexpr unsigned kHoistedRegisters = 32;

/// Fragments of a tile that a loop does not change are loaded once, if they are
/// few.
void hoistFragments(scf::ForOp loop) {
  DenseMap<Value, SmallVector<simt::LoadSharedOp>> fragments;
  for (auto load : loop.getBody()->getOps<simt::LoadSharedOp>())
    if (auto alloc = load.getMemory().getDefiningOp<simt::AllocOp>())
      if (!alloc.getManaged() && !loop->isAncestor(alloc))
        fragments[alloc].push_back(load);
  unsigned budget = kHoistedRegisters;
  for (auto load :
       llvm::to_vector(loop.getBody()->getOps<simt::LoadSharedOp>())) {
    auto it = fragments.find(load.getMemory());
    if (it == fragments.end())
      continue;
    bool written =
        llvm::any_of(load.getMemory().getUsers(), [&](Operation *user) {
          return loop->isAncestor(user) && !isa<simt::LoadSharedOp>(user);
        });
    unsigned registers = 0;
    for (simt::LoadSharedOp fragment : it->second)
      registers += simt::layoutOf(fragment).inSize(Dim::Register) *
                   simt::elementBits(fragment.getType().getElementType()) / 32;
    if (!written && registers <= budget) {
      budget -= registers;
      for (simt::LoadSharedOp fragment : it->second)
        fragment->moveBefore(loop);
    }
    fragments.erase(it);
  }
}

} // namespace

LogicalResult
charonia::gpu::pipelineSharedOperands(func::FuncOp function,
                                      const PipelineOptions &options) {
  SmallVector<scf::ForOp> loops;
  function.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops)
    if (failed(pipelineLoop(loop, options)))
      return failure();
  SmallVector<simt::ToSharedOp> rest;
  function.walk([&](simt::ToSharedOp op) { rest.push_back(op); });
  for (simt::ToSharedOp op : rest)
    expand(op);
  function.walk([](scf::ForOp loop) { hoistFragments(loop); });
  return success();
}
