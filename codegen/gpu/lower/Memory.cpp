// Accesses to buffers.
#include "codegen/gpu/InsideTiles.h"
#include "codegen/gpu/lower/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

namespace {
/// The registers of a layout in groups that one memory instruction moves.
struct Groups {
  SmallVector<unsigned> bits;
  unsigned mask = 0;
  unsigned repeat = 1; ///< Neighbours in a group that are one in memory.
  bool mayEnd = false; ///< Elements of a group do not agree on the checks.

  Groups(const tile::AccessOp &access, const LinearLayout &layout) {
    SmallVector<tile::AxisAccess> axes = tile::analyzeAxes(access);
    Coalescing how = LayoutPlan::judge(access, axes, layout);
    mayEnd = !axes.empty() && how.vector > axes[how.axis].uniformChecks;
    repeat = how.repeat;
    group(layout, how.axis, how.vector);
  }
  /// Of `count` neighbours along `axis`.
  Groups(const LinearLayout &layout, unsigned axis, unsigned count) {
    group(layout, axis, count);
  }
  void group(const LinearLayout &layout, unsigned axis, unsigned count) {
    bits = axisVector(layout, axis, count);
    for (unsigned bit : bits)
      mask |= 1u << bit;
  }
  bool starts(unsigned reg) const { return (reg & mask) == 0; }
  SmallVector<unsigned> from(unsigned reg) const {
    SmallVector<unsigned> members;
    for (unsigned i = 0; i < 1u << bits.size(); ++i) {
      members.push_back(reg);
      for (auto [j, bit] : llvm::enumerate(bits))
        members.back() |= (i >> j & 1) << bit;
    }
    return members;
  }
};
} // namespace

KernelLowering::Inside KernelLowering::insideOf(const AddressPlan &plan,
                                                const LinearLayout &layout,
                                                ArrayRef<unsigned> registers,
                                                bool mayEnd) {
  auto predicate = [&](unsigned reg) {
    return predicateOf(plan, layout, reg, coordinates(layout, reg),
                       symbolsOf(plan.access, layout, reg));
  };
  Value first = predicate(registers.front());
  if (!mayEnd)
    return {first, {}};
  Value last = predicate(registers.back());
  if (first == last)
    return {first, {}};
  auto known = [&](Value value) -> Value {
    return value ? value : arith::ConstantIntOp::create(b, loc, true, 1);
  };
  return {index->both(first, last),
          arith::XOrIOp::create(b, loc, known(first), known(last))};
}

KernelLowering::Values
KernelLowering::loadElements(const AddressPlan &plan,
                             const LinearLayout &layout,
                             ArrayRef<unsigned> registers, bool independent) {
  Values values;
  for (unsigned reg : registers) {
    SmallVector<IndexSum> dims = coordinates(layout, reg),
                          symbols = symbolsOf(plan.access, layout, reg);
    Value predicate = predicateOf(plan, layout, reg, dims, symbols);
    llvm::append_range(values,
                       loadVector(addressOf(plan, dims, symbols), predicate,
                                  heldType(plan.access.tile.getElementType()),
                                  1, independent));
  }
  return values;
}

/// Of eight words the four that begin `bytes` (an even number below 16) behind
/// the first.
static SmallVector<Value> shiftWords(OpBuilder &b, Location loc,
                                     SmallVector<Value> words, Value bytes) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, value, 32);
  };
  auto has = [&](int64_t bit) -> Value {
    return arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::ne,
        arith::AndIOp::create(b, loc, bytes, constant(bit)), constant(0));
  };
  for (unsigned by : {2, 1}) {
    Value moved = has(by * 4);
    for (unsigned i = 0; i + by < words.size(); ++i)
      words[i] =
          arith::SelectOp::create(b, loc, moved, words[i + by], words[i]);
    words.truncate(words.size() - by);
  }
  Value half = has(2);
  for (unsigned i = 0; i + 1 < words.size(); ++i) {
    Value low = arith::ShRUIOp::create(b, loc, words[i], constant(16)),
          high = arith::ShLIOp::create(b, loc, words[i + 1], constant(16));
    words[i] = arith::SelectOp::create(
        b, loc, half, arith::OrIOp::create(b, loc, low, high), words[i]);
  }
  words.pop_back();
  return words;
}

void KernelLowering::loadRuns(tile::LoadOp op, const AddressPlan &plan,
                              unsigned axis) {
  const LinearLayout &layout = simt::layoutOf(op.getResult());
  constexpr unsigned vector = 8;
  Groups groups(layout, axis, vector);
  Type element = scalarType(op.getResult());
  Values values(layout.inSize(Dim::Register));
  for (unsigned reg = 0; reg < values.size(); ++reg) {
    if (!groups.starts(reg))
      continue;
    SmallVector<unsigned> members = groups.from(reg);
    SmallVector<IndexSum> dims = coordinates(layout, reg),
                          symbols = symbolsOf(plan.access, layout, reg);
    // Both vectors lie inside of the row.
    IndexSum first = index->evaluate(plan.checks[0], dims, symbols, plan.facts),
             extent = index->evaluate(plan.extents[0], {}, symbols, plan.facts);
    first.constant -= vector - 1;
    extent.constant -= 3 * vector - 2;
    bool isAmid = op->hasAttr(kAmidAttr);
    Value inside = isAmid ? Value() : index->lessUnsigned(first, extent);
    Value place = index->materialize(
        index->evaluate(plan.offset, dims, symbols, plan.facts));
    Value behind = arith::AndIOp::create(
        b, loc, toInteger(place, b.getI32Type()), i32(vector - 1));
    Address address = addressOf(plan, dims, symbols);
    Value distance = arith::SubIOp::create(b, loc, i32(0), behind);
    Value start = LLVM::GEPOp::create(b, loc, address.pointer.getType(),
                                      b.getIntegerType(16), pointerOf(address),
                                      ArrayRef<LLVM::GEPArg>{distance});
    Values words;
    for (int64_t i : {0, 1})
      llvm::append_range(words,
                         loadVector({start, i * 16}, inside, b.getI32Type(), 4,
                                    op.getIndependent()));
    Value bytes = arith::ShLIOp::create(b, loc, behind, i32(1));
    Values run = unpackWords(shiftWords(b, loc, words, bytes), element, vector);
    if (!isAmid) {
      Value edge = arith::XOrIOp::create(
          b, loc, inside, arith::ConstantIntOp::create(b, loc, true, 1));
      run = replaceWhere(edge, run, [&] {
        return loadElements(plan, layout, members, op.getIndependent());
      });
    }
    for (auto [member, value] : llvm::zip(members, run))
      values[member] = value;
  }
  bind(op.getResult(), values);
}

void KernelLowering::lowerOp(tile::LoadOp op) {
  const LinearLayout &layout = simt::layoutOf(op.getResult());
  AddressPlan plan = planAddresses(tile::AccessOp::get(op));
  if (std::optional<unsigned> axis = LayoutPlan::unalignedRuns(
          plan.access, tile::analyzeAxes(plan.access), layout))
    return loadRuns(op, plan, *axis);
  Groups groups(plan.access, layout);
  Type element = scalarType(op.getResult());
  Values values(layout.inSize(Dim::Register));
  for (unsigned reg = 0; reg < values.size(); ++reg) {
    if (!groups.starts(reg))
      continue;
    SmallVector<unsigned> members = groups.from(reg);
    SmallVector<IndexSum> dims = coordinates(layout, reg);
    SmallVector<IndexSum> symbols = symbolsOf(plan.access, layout, reg);
    Address address = addressOf(plan, dims, symbols);
    Inside inside = insideOf(plan, layout, members, groups.mayEnd);
    if (!inside.some && isNever(inside.all)) {
      Value zero =
          LLVM::ConstantOp::create(b, loc, element, b.getZeroAttr(element));
      for (unsigned member : members)
        values[member] = zero;
      continue;
    }
    Values &vector =
        loaded[{b.getInsertionBlock(), address, inside.all.getAsOpaquePointer(),
                inside.some.getAsOpaquePointer(), element.getAsOpaquePointer(),
                members.size()}];
    if (vector.empty()) {
      for (Value value :
           loadVector(address, inside.all, element,
                      members.size() / groups.repeat, op.getIndependent()))
        vector.append(groups.repeat, value);
      if (inside.some)
        vector = replaceWhere(inside.some, vector, [&] {
          return loadElements(plan, layout, members, op.getIndependent());
        });
    }
    for (auto [member, value] : llvm::zip(members, vector))
      values[member] = value;
  }
  bind(op.getResult(), values);
}

KernelLowering::Values
KernelLowering::replaceWhere(Value condition, ArrayRef<Value> values,
                             llvm::function_ref<Values()> by) {
  Values words = packWords(values);
  auto branch = scf::IfOp::create(
      b, loc, SmallVector<Type>(words.size(), words[0].getType()), condition,
      /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(&branch.getThenRegion().front());
  index->enterScope();
  scf::YieldOp::create(b, loc, packWords(by()));
  index->leaveScope();
  b.setInsertionPointToEnd(&branch.getElseRegion().front());
  scf::YieldOp::create(b, loc, words);
  b.setInsertionPointAfter(branch);
  return unpackWords(Values(branch.getResults()), values[0].getType(),
                     values.size());
}

void KernelLowering::doWhere(Value condition, llvm::function_ref<void()> what,
                             llvm::function_ref<void()> otherwise) {
  auto branch = scf::IfOp::create(b, loc, TypeRange(), condition,
                                  /*withElseRegion=*/bool(otherwise));
  OpBuilder::InsertionGuard guard(b);
  auto fill = [&](Region &region, llvm::function_ref<void()> with) {
    b.setInsertionPointToStart(&region.front());
    index->enterScope();
    with();
    index->leaveScope();
  };
  fill(branch.getThenRegion(), what);
  if (otherwise)
    fill(branch.getElseRegion(), otherwise);
}

void KernelLowering::lowerOp(tile::StoreOp op) {
  if (op.getUpdate())
    return lowerUpdate(op);
  const LinearLayout &layout = simt::layoutOf(op.getValue());
  AddressPlan plan = planAddresses(tile::AccessOp::get(op));
  Groups groups(plan.access, layout);
  Values values = elements(op.getValue());
  Value first = firstHolder(layout);
  auto place = [&](unsigned reg) {
    return addressOf(plan, coordinates(layout, reg),
                     symbolsOf(plan.access, layout, reg));
  };
  for (unsigned reg = 0; reg < values.size(); ++reg) {
    if (!groups.starts(reg))
      continue;
    SmallVector<unsigned> members = groups.from(reg);
    Inside inside = insideOf(plan, layout, members, groups.mayEnd);
    if (!inside.some && isNever(inside.all))
      continue;
    Values vector;
    for (unsigned member : members)
      vector.push_back(values[member]);
    storeVector(place(reg), index->both(first, inside.all), vector);
    if (!inside.some)
      continue;
    doWhere(index->both(first, inside.some), [&] {
      for (unsigned member : members) {
        Value one = insideOf(plan, layout, member, false).all;
        storeVector(place(member), one, values[member]);
      }
    });
  }
}
