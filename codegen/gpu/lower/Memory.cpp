// Accesses to buffers.
#include "codegen/gpu/InsideTiles.h"
#include "codegen/gpu/lower/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

KernelLowering::AddressPlan
KernelLowering::planAddresses(const tile::AccessOp &access) {
  AddressPlan plan{access,
                   tile::factsOf(access),
                   {},
                   {},
                   {},
                   {},
                   simt::elementBits(access.tile.getElementType()) / 8};
  if (access.buffer) {
    plan.offset = tile::linearOffset(access, plan.facts);
    // Its summands, so that what loops do not change is added first.
    graph::Sum sum(plan.offset);
    for (const graph::Sum::Term &term : sum.terms)
      plan.terms.push_back(term.toExpr());
    plan.terms.push_back(getAffineConstantExpr(sum.constant, b.getContext()));
  }
  for (int64_t check : access.checks) {
    plan.checks.push_back(
        graph::simplify(access.map.getResult(check), plan.facts));
    plan.extents.push_back(
        graph::simplify(access.shape.getResult(check), plan.facts));
  }
  return plan;
}

SmallVector<IndexSum> KernelLowering::symbolsOf(const tile::AccessOp &access,
                                                const LinearLayout &layout,
                                                unsigned reg) {
  SmallVector<IndexSum> result;
  for (Value symbol : access.symbols) {
    auto type = dyn_cast<RankedTensorType>(symbol.getType());
    if (!type) {
      result.push_back(sumOf(symbol));
      continue;
    }
    // The symbol's own layout is this one with its unit axes dropped: the
    // register that has the same coordinates there.
    const LinearLayout &own = simt::layoutOf(symbol);
    f2::Vector image = layout.apply(Dim::Register, reg), wanted = 0;
    unsigned shift = 0;
    for (const LinearLayout::Space &out : own.outs()) {
      wanted |=
          f2::Vector(layout.coordinate(image, out.dim) & ((1u << out.bits) - 1))
          << shift;
      shift += out.bits;
    }
    std::optional<f2::Vector> source =
        f2::Span(own.columnsOf(Dim::Register)).solve(wanted);
    assert(source && "layouts of a symbol and its access do not agree");
    result.push_back({tiles[symbol].values[*source], 0});
  }
  return result;
}

/// How many loops are around the innermost operand.
unsigned KernelLowering::depthOf(AffineExpr expr, ValueRange symbols) const {
  unsigned depth = 0;
  expr.walk([&](AffineExpr e) {
    auto symbol = dyn_cast<AffineSymbolExpr>(e);
    if (!symbol)
      return;
    Value value = symbols[symbol.getPosition()];
    unsigned own = 0;
    for (Operation *op = value.getParentRegion()->getParentOp();
         op && !isa<func::FuncOp>(op); op = op->getParentOp())
      ++own;
    depth = std::max(depth, own);
  });
  return depth;
}

KernelLowering::Address KernelLowering::addressOf(const AddressPlan &plan,
                                                  ArrayRef<IndexSum> dims,
                                                  ArrayRef<IndexSum> symbols) {
  std::map<unsigned, IndexSum> byDepth;
  // As the machine adds and multiplies: a part of an address may leave 64 bits
  // where the whole does not.
  uint64_t constant = 0;
  for (AffineExpr term : plan.terms) {
    IndexSum value = index->evaluate(term, dims, symbols, plan.facts);
    constant += value.constant;
    value.constant = 0;
    if (value.value) {
      IndexSum &sum = byDepth[depthOf(term, plan.access.symbols)];
      sum = index->add(sum, value);
    }
  }
  Value pointer = scalars.lookup(plan.access.buffer);
  Type bytes = b.getI8Type();
  Type pointerType = pointer.getType();
  for (auto &[depth, sum] : byDepth) {
    if (!sum.value)
      continue;
    IndexBuilder::Key key{"address", {pointer, sum.value}, {plan.elementBytes}};
    pointer = index->cached(key, [&]() -> Value {
      Value offset = toInteger(sum.value, indexInteger());
      Type element = plan.elementBytes == 1
                         ? bytes
                         : Type(b.getIntegerType(plan.elementBytes * 8));
      return LLVM::GEPOp::create(b, loc, pointerType, element, pointer,
                                 ArrayRef<LLVM::GEPArg>{offset});
    });
  }
  // What an instruction's immediate offset does not hold goes to the pointer.
  int64_t offset = constant * plan.elementBytes;
  // A GEP keeps constants in 29 bits, and vectors add some bytes.
  static_assert(LLVM::kGEPConstantBitWidth >= 29);
  if (llvm::isInt<28>(offset))
    return {pointer, offset};
  uint64_t near = uint64_t(offset) % (1 << 20), far = uint64_t(offset) - near;
  pointer = index->cached({"far", {pointer}, {far}}, [&]() -> Value {
    Value distance = LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                                              b.getI64IntegerAttr(far));
    return LLVM::GEPOp::create(b, loc, pointerType, bytes, pointer,
                               ArrayRef<LLVM::GEPArg>{distance});
  });
  return {pointer, int64_t(near)};
}

std::optional<bool> charonia::gpu::decide(AffineExpr check, AffineExpr extent,
                                          const LinearLayout &layout,
                                          unsigned reg) {
  auto axis = dyn_cast<AffineDimExpr>(check);
  auto end = dyn_cast<AffineConstantExpr>(extent);
  if (!axis || !end)
    return std::nullopt;
  Dim out = axisDim(axis.getPosition());
  int64_t own = layout.coordinate(layout.apply(Dim::Register, reg), out),
          moved = 0;
  for (Dim dim : {Dim::Lane, Dim::Warp})
    for (unsigned bit = 0; bit < layout.inBits(dim); ++bit)
      moved |= layout.basis(dim, bit, out);
  if ((own | moved) < end.getValue())
    return true;
  if ((own & ~moved) >= end.getValue())
    return false;
  return std::nullopt;
}

bool KernelLowering::isNever(Value predicate) const {
  return predicate && matchPattern(predicate, m_Zero());
}

Value KernelLowering::predicateOf(const AddressPlan &plan,
                                  const LinearLayout &layout, unsigned reg,
                                  ArrayRef<IndexSum> dims,
                                  ArrayRef<IndexSum> symbols) {
  Value result;
  for (auto [check, extent] : llvm::zip(plan.checks, plan.extents)) {
    std::optional<bool> known = decide(check, extent, layout, reg);
    if (known == false)
      return index->cached({"never", {}, {}}, [&]() -> Value {
        return arith::ConstantIntOp::create(b, loc, false, 1);
      });
    if (known == true)
      continue;
    IndexSum coordinate = index->evaluate(check, dims, symbols, plan.facts);
    IndexSum end = index->evaluate(extent, {}, symbols, plan.facts);
    if (coordinate.isConstant() && end.isConstant() &&
        coordinate.constant >= 0 && coordinate.constant < end.constant)
      continue;
    result = index->both(result, index->lessUnsigned(coordinate, end));
  }
  return result;
}

Value KernelLowering::pointerOf(const Address &address) {
  if (!address.bytes)
    return address.pointer;
  return LLVM::GEPOp::create(b, loc, address.pointer.getType(), b.getI8Type(),
                             address.pointer,
                             ArrayRef<LLVM::GEPArg>{int32_t(address.bytes)});
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

Value KernelLowering::packBits(ArrayRef<Value> values) {
  Type element = values[0].getType();
  unsigned bits = simt::elementBits(element) * values.size();
  Value result;
  if (values.size() == 1) {
    result = values[0];
  } else {
    auto type = VectorType::get({int64_t(values.size())}, element);
    result = LLVM::PoisonOp::create(b, loc, type);
    for (auto [i, value] : llvm::enumerate(values))
      result =
          LLVM::InsertElementOp::create(b, loc, type, result, value, i32(i));
  }
  Type integer = b.getIntegerType(bits);
  return result.getType() == integer
             ? result
             : Value(LLVM::BitcastOp::create(b, loc, integer, result));
}

KernelLowering::Values KernelLowering::unpackBits(Value bits, Type element,
                                                  unsigned count) {
  if (count == 1) {
    if (bits.getType() == element)
      return {bits};
    return {LLVM::BitcastOp::create(b, loc, element, bits)};
  }
  auto type = VectorType::get({int64_t(count)}, element);
  if (bits.getType() != type)
    bits = LLVM::BitcastOp::create(b, loc, type, bits);
  Values result;
  for (unsigned i = 0; i < count; ++i)
    result.push_back(LLVM::ExtractElementOp::create(b, loc, bits, i32(i)));
  return result;
}

/// The registers that an access of `bytes` moves: their width in bits and
/// number.
static std::pair<unsigned, unsigned> wordsOf(unsigned bytes) {
  if (bytes >= 4)
    return {32, bytes / 4};
  return {bytes * 8, 1};
}

KernelLowering::Values KernelLowering::loadVector(const Address &address,
                                                  Value predicate, Type element,
                                                  unsigned count,
                                                  bool independent) {
  unsigned bytes = simt::elementBits(element) / 8 * count;
  if (!predicate) {
    Type type =
        count == 1 ? element : VectorType::get({int64_t(count)}, element);
    auto load = LLVM::LoadOp::create(b, loc, type, pointerOf(address), bytes);
    load.setInvariant(independent);
    return unpackBits(load, element, count);
  }
  // Nothing is read where the predicate is false, so no address has to be valid
  // there.
  auto [width, words] = wordsOf(bytes);
  unsigned registerBits = std::max(16u, width);
  const char *constraint = registerBits == 32 ? "r" : "h";
  std::string text = "{\n", outputs, constraints;
  for (unsigned i = 0; i < words; ++i) {
    text += "mov.b" + std::to_string(registerBits) + " $" + std::to_string(i) +
            ", 0;\n";
    outputs += (i ? ", $" : "$") + std::to_string(i);
    constraints += std::string("=") + constraint + ",";
  }
  text += "@$" + std::to_string(words + 1) + " ld.global";
  if (independent)
    text += ".nc";
  text += words > 1 ? ".v" + std::to_string(words) : "";
  text += ".b" + std::to_string(width) + " ";
  text += words > 1 ? "{" + outputs + "}" : outputs;
  text += ", [$" + std::to_string(words);
  if (address.bytes)
    text += "+" + std::to_string(address.bytes);
  text += "];\n}";
  constraints += "l,b";
  Type word = b.getIntegerType(registerBits);
  Type type = words == 1 ? word
                         : LLVM::LLVMStructType::getLiteral(
                               b.getContext(), SmallVector<Type>(words, word));
  Value result = LLVM::InlineAsmOp::create(
                     b, loc, type, ValueRange{address.pointer, predicate}, text,
                     constraints,
                     /*has_side_effects=*/true, /*is_align_stack=*/false,
                     LLVM::TailCallKind::None, {}, {})
                     .getRes();
  Values registers;
  if (words == 1) {
    if (width < registerBits)
      result = LLVM::TruncOp::create(b, loc, b.getIntegerType(width), result);
    registers.push_back(result);
  } else {
    for (unsigned i = 0; i < words; ++i)
      registers.push_back(LLVM::ExtractValueOp::create(b, loc, result, i));
  }
  unsigned elementBits = simt::elementBits(element);
  Values values;
  if (elementBits <= width) {
    for (Value word : registers)
      llvm::append_range(values,
                         unpackBits(word, element, width / elementBits));
  } else {
    for (unsigned i = 0; i < words; i += elementBits / 32)
      values.push_back(LLVM::BitcastOp::create(
          b, loc, element,
          packBits(ArrayRef<Value>(registers).slice(i, elementBits / 32))));
  }
  return values;
}

void KernelLowering::storeVector(const Address &address, Value predicate,
                                 ArrayRef<Value> values) {
  Type element = values[0].getType();
  unsigned elementBits = simt::elementBits(element),
           bytes = elementBits / 8 * values.size();
  if (!predicate) {
    Value value = values[0];
    if (values.size() > 1) {
      auto type = VectorType::get({int64_t(values.size())}, element);
      value = LLVM::PoisonOp::create(b, loc, type);
      for (auto [i, part] : llvm::enumerate(values))
        value =
            LLVM::InsertElementOp::create(b, loc, type, value, part, i32(i));
    }
    LLVM::StoreOp::create(b, loc, value, pointerOf(address), bytes);
    return;
  }
  auto [width, words] = wordsOf(bytes);
  SmallVector<Value> registers;
  if (elementBits <= width) {
    for (unsigned i = 0; i < words; ++i)
      registers.push_back(packBits(
          values.slice(i * (width / elementBits), width / elementBits)));
  } else {
    for (Value value : values)
      llvm::append_range(registers, unpackBits(packBits(value), b.getI32Type(),
                                               elementBits / 32));
  }
  unsigned registerBits = std::max(16u, width);
  std::string text = "@$0 st.global", inputs, constraints = "b,l";
  for (unsigned i = 0; i < words; ++i) {
    if (width < registerBits)
      registers[i] = LLVM::ZExtOp::create(
          b, loc, b.getIntegerType(registerBits), registers[i]);
    inputs += (i ? ", $" : "$") + std::to_string(i + 2);
    constraints += registerBits == 32 ? ",r" : ",h";
  }
  text += words > 1 ? ".v" + std::to_string(words) : "";
  text += ".b" + std::to_string(width) + " [$1";
  if (address.bytes)
    text += "+" + std::to_string(address.bytes);
  text += "], " + (words > 1 ? "{" + inputs + "}" : inputs) + ";";
  SmallVector<Value> operands{predicate, address.pointer};
  operands.append(registers);
  LLVM::InlineAsmOp::create(b, loc, TypeRange(), operands, text, constraints,
                            /*has_side_effects=*/true, /*is_align_stack=*/false,
                            LLVM::TailCallKind::None, {}, {});
}

//===----------------------------------------------------------------------===//
// Loads, stores
//===----------------------------------------------------------------------===//

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

/// Words rather than elements go through a branch: a register holds one.
KernelLowering::Values KernelLowering::packWords(ArrayRef<Value> values) {
  unsigned bits = simt::elementBits(values[0].getType()),
           perWord =
               bits < 32 ? std::min<unsigned>(32 / bits, values.size()) : 1;
  Values words;
  for (unsigned i = 0; i < values.size(); i += perWord)
    words.push_back(packBits(values.slice(i, perWord)));
  return words;
}

KernelLowering::Values KernelLowering::unpackWords(ArrayRef<Value> words,
                                                   Type element,
                                                   unsigned count) {
  Values values;
  for (Value word : words)
    llvm::append_range(values, unpackBits(word, element, count / words.size()));
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
