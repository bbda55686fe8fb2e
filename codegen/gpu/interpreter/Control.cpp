// Structured control flow: masks instead of branches. A branch is skipped where
// no lane takes it, a loop ends when its last lane has.
#include "codegen/gpu/interpreter/Decoder.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::interpreter;

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// What products are to write moves along with the registers.
static void copyUnfinished(Warp &warp, const std::vector<uint32_t> &list) {
  std::map<Slot, Warp::Unfinished> moved;
  for (size_t at = 0; at < list.size(); at += 3)
    if (auto from = warp.unfinished.find(list[at + 1]);
        from != warp.unfinished.end())
      moved.insert({list[at], from->second});
  for (size_t at = 0; at < list.size(); at += 3)
    warp.unfinished.erase(list[at]);
  warp.unfinished.merge(moved);
}

/// The list: slot to, slot from, words (1 or 2); of each.
static void copyRegisters(Warp &warp, const Instruction &i) {
  const std::vector<uint32_t> &list = warp.block.machine.program.lists[i.list];
  if (!warp.unfinished.empty())
    copyUnfinished(warp, list);
  // What one copy writes another may read.
  std::vector<uint32_t> &held = warp.scratch;
  held.clear();
  for (size_t at = 0; at < list.size(); at += 3) {
    uint32_t *from = warp.lanes<uint32_t>(list[at + 1]);
    held.insert(held.end(), from, from + kWarpLanes * list[at + 2]);
  }
  const uint32_t *next = held.data();
  for (size_t at = 0; at < list.size(); at += 3) {
    unsigned words = list[at + 2];
    uint32_t *to = warp.lanes<uint32_t>(list[at]);
    Warp::each(warp.mask, [&](unsigned lane) {
      for (unsigned word = 0; word < words; ++word)
        to[lane * words + word] = next[lane * words + word];
    });
    next += kWarpLanes * words;
  }
}

void Decoder::emitCopies(Operation *op, ArrayRef<Slot> to, ArrayRef<Slot> from,
                         ArrayRef<unsigned> bits) {
  std::vector<uint32_t> list;
  for (auto [t, f, b] : llvm::zip_equal(to, from, bits))
    if (t != f)
      list.insert(list.end(), {t, f, b > 32 ? 2u : 1u});
  if (list.empty())
    return;
  uint32_t number = addList(std::move(list));
  emit(op, copyRegisters).list = number;
}

void Decoder::emitCopies(Operation *op, ValueRange to, ValueRange from) {
  SmallVector<Slot> toSlots, fromSlots;
  SmallVector<unsigned> bits;
  for (auto [t, f] : llvm::zip_equal(to, from)) {
    llvm::append_range(toSlots, slots(t));
    llvm::append_range(fromSlots, slots(f));
    bits.append(slots(t).size(), bitsOf(t.getType()));
  }
  emitCopies(op, toSlots, fromSlots, bits);
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

/// `a`: condition; `constant`: where the other branch begins.
static void enterBranch(Warp &warp, const Instruction &i) {
  Mask taken = warp.active(i.a);
  warp.frames.push_back({warp.mask, warp.mask & ~taken});
  warp.mask = taken;
  if (!taken)
    warp.pc = i.constant;
}

/// `constant`: where the branch ends.
static void enterElse(Warp &warp, const Instruction &i) {
  warp.mask = warp.frames.back().other & warp.alive;
  if (!warp.mask)
    warp.pc = i.constant;
}

/// Of branches and loops: the lanes that came in go on.
static void leave(Warp &warp, const Instruction &) {
  warp.mask = warp.frames.pop_back_val().saved & warp.alive;
}

static LogicalResult decodeIf(Decoder &d, Operation *op) {
  auto branch = cast<scf::IfOp>(op);
  for (Value result : branch.getResults())
    d.define(result);
  uint32_t enter = d.position();
  d.emit(op, enterBranch).a = d.slot(branch.getCondition());
  if (failed(d.decodeBlock(*branch.thenBlock())))
    return failure();
  uint32_t middle = d.position();
  d.emit(op, enterElse);
  d.program.code[enter].constant = middle;
  if (branch.elseBlock() && failed(d.decodeBlock(*branch.elseBlock())))
    return failure();
  d.program.code[middle].constant = d.position();
  d.emit(op, leave);
  return success();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

static void enterLoop(Warp &warp, const Instruction &) {
  warp.frames.push_back({warp.mask, 0});
}

/// `a` < `b` or, without `b`, `a`: lanes where it fails leave. `constant`:
/// where the loop ends.
template <typename T> static void testLoop(Warp &warp, const Instruction &i) {
  using Signed = std::make_signed_t<T>;
  Mask goesOn = 0;
  const T *value = warp.lanes<T>(i.a), *end = warp.lanes<T>(i.b);
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    goesOn |= Mask(Signed(value[lane]) < Signed(end[lane])) << lane;
  warp.mask &= goesOn & warp.alive;
  if (!warp.mask)
    warp.pc = i.constant;
}

static void testCondition(Warp &warp, const Instruction &i) {
  warp.mask = warp.active(i.a) & warp.alive;
  if (!warp.mask)
    warp.pc = i.constant;
}

/// `a` += `b`, back to `constant`.
template <typename T>
static void nextIteration(Warp &warp, const Instruction &i) {
  T *value = warp.lanes<T>(i.a);
  const T *step = warp.lanes<T>(i.b);
  Warp::each(warp.mask, [&](unsigned lane) { value[lane] += step[lane]; });
  warp.pc = i.constant;
}

static void jump(Warp &warp, const Instruction &i) { warp.pc = i.constant; }

static LogicalResult decodeFor(Decoder &d, Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  Value counter = loop.getInductionVar();
  unsigned bits = d.bitsOf(counter.getType());
  if (bits != 32 && bits != 64)
    return op->emitError("the interpreter's loops count in 32 or 64 bits");
  d.define(counter);
  for (auto [argument, result] :
       llvm::zip(loop.getRegionIterArgs(), loop.getResults())) {
    d.define(argument);
    d.alias(result, SmallVector<Slot>(d.slots(argument)));
  }
  d.emitCopies(op, counter, loop.getLowerBound());
  d.emitCopies(op, loop.getRegionIterArgs(), loop.getInitArgs());
  d.emit(op, enterLoop);
  uint32_t test = d.position();
  Instruction &compare =
      d.emit(op, bits == 32 ? testLoop<uint32_t> : testLoop<uint64_t>);
  compare.a = d.slot(counter);
  compare.b = d.slot(loop.getUpperBound());
  if (failed(d.decodeBlock(*loop.getBody())))
    return failure();
  Instruction &next = d.emit(op, bits == 32 ? nextIteration<uint32_t>
                                            : nextIteration<uint64_t>);
  next.a = d.slot(counter);
  next.b = d.slot(loop.getStep());
  next.constant = test;
  d.program.code[test].constant = d.position();
  d.emit(op, leave);
  return success();
}

static LogicalResult decodeWhile(Decoder &d, Operation *op) {
  auto loop = cast<scf::WhileOp>(op);
  for (Value argument : loop.getBeforeArguments())
    d.define(argument);
  for (auto [argument, result] :
       llvm::zip(loop.getAfterArguments(), loop.getResults())) {
    d.define(argument);
    d.alias(result, SmallVector<Slot>(d.slots(argument)));
  }
  d.emitCopies(op, loop.getBeforeArguments(), loop.getInits());
  d.emit(op, enterLoop);
  uint32_t start = d.position();
  if (failed(d.decodeBlock(*loop.getBeforeBody())))
    return failure();
  // scf.condition leaves the test as the last instruction.
  uint32_t test = d.position() - 1;
  if (failed(d.decodeBlock(*loop.getAfterBody())))
    return failure();
  d.emit(op, jump).constant = start;
  d.program.code[test].constant = d.position();
  d.emit(op, leave);
  return success();
}

static LogicalResult decodeCondition(Decoder &d, Operation *op) {
  auto condition = cast<scf::ConditionOp>(op);
  auto loop = cast<scf::WhileOp>(op->getParentOp());
  d.emitCopies(op, loop.getAfterArguments(), condition.getArgs());
  d.emit(op, testCondition).a = d.slot(condition.getCondition());
  return success();
}

static LogicalResult decodeYield(Decoder &d, Operation *op) {
  Operation *parent = op->getParentOp();
  if (auto loop = dyn_cast<scf::ForOp>(parent))
    d.emitCopies(op, loop.getRegionIterArgs(), op->getOperands());
  else if (auto loop = dyn_cast<scf::WhileOp>(parent))
    d.emitCopies(op, loop.getBeforeArguments(), op->getOperands());
  else if (isa<scf::IfOp>(parent))
    d.emitCopies(op, parent->getResults(), op->getOperands());
  else
    return op->emitError("the interpreter does not know a region of '")
           << parent->getName().getStringRef() << "'";
  return success();
}

static void endThread(Warp &warp, const Instruction &i) {
  if (!warp.unfinished.empty())
    warp.block.machine.report(FindingKind::UnfinishedDot, warp, i, 0,
                              "ends while a product is under way");
  warp.exit(i, warp.mask);
}

static LogicalResult decodeReturn(Decoder &d, Operation *op) {
  d.emit(op, endThread);
  return success();
}

//===----------------------------------------------------------------------===//
// Kernels before and after
//===----------------------------------------------------------------------===//

static void waitForPrevious(Warp &warp, const Instruction &) {
  warp.waited |= warp.mask;
}

/// The next kernel may rely on it that what is before this one has ended, and
/// does where it runs beside this one.
static void startNext(Warp &warp, const Instruction &i) {
  Machine &machine = warp.block.machine;
  Mask early = warp.mask & ~warp.waited;
  if (early && machine.launch.overlapsPrevious && !machine.launch.waitsAtEnd)
    machine.report(FindingKind::EarlyStart, warp, i,
                   unsigned(__builtin_ctz(early)),
                   "lets the next kernel start before it has waited for the "
                   "kernels before this one");
}

static LogicalResult decodeDependency(Decoder &d, Operation *op) {
  d.emit(op, cast<NVVM::GriddepcontrolOp>(op).getKind() ==
                     NVVM::GridDepActionKind::wait
                 ? waitForPrevious
                 : startNext);
  return success();
}

void charonia::interpreter::addControl(OperationTable &table) {
  table["scf.if"] = decodeIf;
  table["scf.for"] = decodeFor;
  table["scf.while"] = decodeWhile;
  table["scf.condition"] = decodeCondition;
  table["scf.yield"] = decodeYield;
  table["llvm.return"] = decodeReturn;
  table["nvvm.griddepcontrol"] = decodeDependency;
}
