// Arithmetic: elementwise, reductions, moves between registers, dots.
#include "codegen/gpu/lower/Lowering.h"
#include "graph/ir/Float8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using f2::Vector;

//===----------------------------------------------------------------------===//
// Elements and words
//===----------------------------------------------------------------------===//

KernelLowering::Values KernelLowering::elements(Value tile) {
  const ThreadTile &held = tiles.find(tile)->second;
  if (!held.packed)
    return held.values;
  Type element = scalarType(tile);
  unsigned count = 32 / simt::elementBits(element);
  Values result;
  for (Value word : Values(held.values))
    llvm::append_range(result, unpackBits(word, element, count));
  return result;
}

KernelLowering::Values KernelLowering::packed(Value tile) {
  const ThreadTile &held = tiles.find(tile)->second;
  if (held.packed)
    return held.values;
  unsigned count = 32 / simt::elementBits(scalarType(tile));
  Values values = held.values, result;
  for (unsigned i = 0; i < values.size(); i += count)
    result.push_back(packBits(ArrayRef<Value>(values).slice(i, count)));
  return result;
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

/// One scalar of an elementwise operator.
Value KernelLowering::scalarOp(Operation *op, ValueRange operands, Type type) {
  if (Value value = mathOp(op, operands))
    return value;
  IRMapping mapping;
  for (auto [from, to] : llvm::zip(op->getOperands(), operands))
    mapping.map(from, to);
  Operation *clone = b.clone(*op, mapping);
  clone->getResult(0).setType(type);
  return clone->getResult(0);
}

LogicalResult KernelLowering::lowerElementwise(Operation *op) {
  bool isRounding = isa<arith::TruncFOp>(op);
  if (isRounding || isa<arith::ExtFOp>(op)) {
    endChain();
    auto isSmall = [](Value value) {
      return graph::isFloat8(getElementTypeOrSelf(value));
    };
    if (isSmall(op->getResult(0)))
      return lowerToFloat8(op), success();
    if (isSmall(op->getOperand(0)))
      return lowerFromFloat8(op), success();
  }
  if (isRounding && scalarType(op->getOperand(0)).isF32()) {
    lowerRounding(op);
    return success();
  }
  Value result = op->getResult(0);
  Type type = scalarType(result);
  unsigned count = simt::layoutOf(result).inSize(Dim::Register);
  SmallVector<Values> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isa<RankedTensorType>(operand.getType())
                           ? elements(operand)
                           : Values(count, scalars.lookupOrDefault(operand)));
  Values values;
  // Registers that hold the same (splats, broadcasts) are computed once.
  std::map<SmallVector<const void *>, Value> known;
  ++chain.operators;
  for (unsigned r = 0; r < count; ++r) {
    Values arguments;
    SmallVector<const void *> key;
    for (Values &operand : operands) {
      arguments.push_back(operand[r]);
      key.push_back(operand[r].getAsOpaquePointer());
    }
    Value &value = known[key];
    if (!value) {
      auto at = b.getInsertionPoint();
      Operation *before =
          at == b.getInsertionBlock()->begin() ? nullptr : &*std::prev(at);
      value = scalarOp(op, arguments, type);
      noteInChain(r, before);
    }
    values.push_back(value);
  }
  bind(result, values);
  return success();
}

/// f32 to a 16-bit type, two registers in one instruction.
void KernelLowering::lowerRounding(Operation *op) {
  Value result = op->getResult(0);
  Type type = scalarType(result);
  Values values = elements(op->getOperand(0));
  if (values.size() % 2 || simt::elementBits(type) != 16) {
    for (Value &value : values)
      value = arith::TruncFOp::create(b, loc, type, value);
    bind(result, values);
    return;
  }
  auto wide = VectorType::get({2}, b.getF32Type()),
       narrow = VectorType::get({2}, type);
  Values words;
  for (unsigned i = 0; i < values.size(); i += 2) {
    Value two = LLVM::PoisonOp::create(b, loc, wide);
    two = LLVM::InsertElementOp::create(b, loc, wide, two, values[i], i32(0));
    two =
        LLVM::InsertElementOp::create(b, loc, wide, two, values[i + 1], i32(1));
    two = LLVM::FPTruncOp::create(b, loc, narrow, two);
    words.push_back(LLVM::BitcastOp::create(b, loc, b.getI32Type(), two));
  }
  tiles[result] = {words, true};
}

/// Whether a clamp keeps all numbers of a tile within -limit and limit.
static bool isWithin(Value value, double limit) {
  auto bound = [](Value v) -> std::optional<double> {
    DenseFPElementsAttr splat;
    if (!matchPattern(v, m_Constant(&splat)) || !splat.isSplat())
      return std::nullopt;
    return splat.getSplatValue<APFloat>().convertToDouble();
  };
  bool below = false, above = false;
  for (Operation *op = value.getDefiningOp();
       isa_and_present<arith::MinimumFOp, arith::MaximumFOp>(op);) {
    unsigned number = bound(op->getOperand(1)) ? 1 : 0;
    std::optional<double> at = bound(op->getOperand(number));
    if (!at || std::fabs(*at) > limit)
      break;
    (isa<arith::MinimumFOp>(op) ? below : above) = true;
    op = op->getOperand(1 - number).getDefiningOp();
  }
  return below && above;
}

/// f32 to floats of 8 bits, two in one instruction. It gives the largest for
/// what is out of range, where the operator gives infinity or NaN.
void KernelLowering::lowerToFloat8(Operation *op) {
  auto element = cast<FloatType>(getElementTypeOrSelf(op->getResult(0)));
  bool isE4M3 = isa<Float8E4M3FNType>(element);
  // What rounds to more than the largest, and infinity, as bits of f32.
  const int64_t beyond = isE4M3 ? 0x43e80001 : 0x47700000,
                infinity = 0x7f800000;
  Values values = elements(op->getOperand(0)), results;
  bool clamped = isWithin(op->getOperand(0), isE4M3 ? 448 : 57344);
  auto pair = VectorType::get({2}, b.getI8Type());
  for (unsigned i = 0; i < values.size(); i += 2) {
    Value low = values[i], high = i + 1 < values.size() ? values[i + 1] : low;
    Value two = NVVM::ConvertF32x2ToF8x2Op::create(
        b, loc, pair, high, low, NVVM::FPRoundingMode::RN,
        NVVM::SaturationMode::SATFINITE, /*relu=*/false, element);
    for (unsigned j = 0; j < 2 && i + j < values.size(); ++j) {
      Value code = LLVM::ExtractElementOp::create(b, loc, two, i32(j));
      if (!clamped) {
        auto constant = [&](int64_t value, unsigned bits) {
          return LLVM::ConstantOp::create(
              b, loc, b.getIntegerAttr(b.getIntegerType(bits), value));
        };
        Value bits =
            LLVM::BitcastOp::create(b, loc, b.getI32Type(), values[i + j]);
        Value size = LLVM::AndOp::create(b, loc, bits, constant(INT32_MAX, 32));
        Value above = LLVM::SubOp::create(b, loc, size, constant(beyond, 32));
        Value isBeyond =
            arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, above,
                                  constant(infinity - beyond, 32));
        Value sign = LLVM::AndOp::create(b, loc, code, constant(-128, 8));
        Value most =
            LLVM::OrOp::create(b, loc, sign, constant(isE4M3 ? 0x7f : 0x7c, 8));
        code = arith::SelectOp::create(b, loc, isBeyond, most, code);
      }
      results.push_back(code);
    }
  }
  bind(op->getResult(0), results);
}

/// Floats of 8 bits to f16, two in one instruction, and on to wider ones.
void KernelLowering::lowerFromFloat8(Operation *op) {
  Type element = getElementTypeOrSelf(op->getOperand(0)),
       to = scalarType(op->getResult(0));
  Values values = elements(op->getOperand(0)), results;
  auto bytes = VectorType::get({2}, b.getI8Type()),
       halves = VectorType::get({2}, b.getF16Type());
  for (unsigned i = 0; i < values.size(); i += 2) {
    Value two = LLVM::PoisonOp::create(b, loc, bytes);
    for (unsigned j : {0u, 1u})
      two = LLVM::InsertElementOp::create(
          b, loc, bytes, two,
          values[std::min<size_t>(i + j, values.size() - 1)], i32(j));
    Value wide = NVVM::ConvertF8x2ToF16x2Op::create(b, loc, halves, two,
                                                    /*relu=*/false, element);
    for (unsigned j = 0; j < 2 && i + j < values.size(); ++j) {
      Value x = LLVM::ExtractElementOp::create(b, loc, wide, i32(j));
      if (!to.isF16())
        x = arith::ExtFOp::create(b, loc, b.getF32Type(), x);
      if (to.isBF16())
        x = arith::TruncFOp::create(b, loc, to, x);
      results.push_back(x);
    }
  }
  bind(op->getResult(0), results);
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

Value KernelLowering::shuffle(Value value, StringRef kind, Value laneOrMask) {
  Type type = value.getType();
  if (type.isIndex())
    return toIndex(shuffle(toInteger(value, indexInteger()), kind, laneOrMask));
  auto move = [&](Value word) -> Value {
    return NVVM::ShflOp::create(
        b, loc, word.getType(), i32(-1), word, laneOrMask, i32(31),
        kind == "idx" ? NVVM::ShflKind::idx : NVVM::ShflKind::bfly, UnitAttr());
  };
  unsigned bits = type.getIntOrFloatBitWidth();
  if (type.isF32() || type.isInteger(32))
    return move(value);
  Value integer = value;
  if (!isa<IntegerType>(type))
    integer = LLVM::BitcastOp::create(b, loc, b.getIntegerType(bits), value);
  if (bits < 32) {
    integer = move(LLVM::ZExtOp::create(b, loc, b.getI32Type(), integer));
    integer = LLVM::TruncOp::create(b, loc, b.getIntegerType(bits), integer);
  } else {
    Values words = unpackBits(integer, b.getI32Type(), bits / 32);
    for (Value &word : words)
      word = move(word);
    integer = packBits(words);
  }
  return isa<IntegerType>(type)
             ? integer
             : Value(LLVM::BitcastOp::create(b, loc, type, integer));
}

void KernelLowering::lowerOp(simt::ConvertOp op) {
  const LinearLayout &from = simt::layoutOf(op.getInput()),
                     &to = simt::layoutOf(op.getResult());
  LinearLayout move = from.conversionTo(to);
  // lane' = (lane moved by its own bits) xor (what the warp and the register
  // add): where all warps hold the same elements, each may take its own part.
  SmallVector<uint64_t> laneImages, warpImages;
  bool sameLane = true;
  for (unsigned bit = 0; bit < move.inBits(Dim::Lane); ++bit) {
    laneImages.push_back(move.basis(Dim::Lane, bit, Dim::Lane));
    sameLane &= laneImages.back() == uint64_t(1) << bit;
  }
  for (unsigned bit = 0; bit < move.inBits(Dim::Warp); ++bit) {
    warpImages.push_back(move.basis(Dim::Warp, bit, Dim::Lane));
    sameLane &= warpImages.back() == 0;
  }
  Values source = elements(op.getInput()), values;
  for (unsigned r = 0; r < to.inSize(Dim::Register); ++r) {
    Vector image = move.apply(Dim::Register, r);
    Value value = source[move.coordinate(image, Dim::Register)];
    unsigned flip = move.coordinate(image, Dim::Lane);
    if (sameLane) {
      values.push_back(flip ? shuffle(value, "bfly", i32(flip)) : value);
      continue;
    }
    Value lane = index->linear({{laneId, laneImages}, {warpId, warpImages}});
    if (flip)
      lane = index->exclusiveOr(lane, index->constant(flip));
    values.push_back(shuffle(value, "idx", toInteger(lane, b.getI32Type())));
  }
  bind(op.getResult(), values);
}

void KernelLowering::lowerOp(tile::BroadcastOp op) {
  const LinearLayout &from = simt::layoutOf(op.getInput()),
                     &to = simt::layoutOf(op.getResult());
  Values source = elements(op.getInput()), values;
  f2::Span registers(from.columnsOf(Dim::Register));
  for (unsigned r = 0; r < to.inSize(Dim::Register); ++r) {
    Vector image = to.apply(Dim::Register, r), wanted = 0;
    unsigned shift = 0;
    for (auto [i, out] : llvm::enumerate(from.outs())) {
      unsigned coordinate = to.coordinate(image, axisDim(op.getAxes()[i]));
      wanted |= Vector(coordinate & ((1u << out.bits) - 1)) << shift;
      shift += out.bits;
    }
    values.push_back(source[*registers.solve(wanted)]);
  }
  bind(op.getResult(), values);
}

void KernelLowering::lowerOp(tile::TransposeOp op) {
  bind(op.getResult(), elements(op.getInput()));
}

void KernelLowering::lowerOp(tile::SplitAxisOp op) {
  bind(op.getResult(), elements(op.getInput()));
}

void KernelLowering::lowerOp(tile::JoinAxesOp op) {
  bind(op.getResult(), elements(op.getInput()));
}

/// Of the elements that a thread has of `from` those at the places that `place`
/// gives of its coordinates along `axis` of the result.
static SmallVector<Value>
takeAlong(const LinearLayout &from, const LinearLayout &to,
          ArrayRef<Value> source, unsigned axis,
          llvm::function_ref<unsigned(unsigned)> place) {
  SmallVector<Value> values;
  f2::Span registers(from.columnsOf(Dim::Register));
  for (unsigned r = 0; r < to.inSize(Dim::Register); ++r) {
    Vector image = to.apply(Dim::Register, r), wanted = 0;
    unsigned shift = 0;
    for (auto [i, out] : llvm::enumerate(from.outs())) {
      unsigned coordinate = to.coordinate(image, out.dim);
      wanted |= Vector(i == axis ? place(coordinate) : coordinate) << shift;
      shift += out.bits;
    }
    values.push_back(source[*registers.solve(wanted)]);
  }
  return values;
}

void KernelLowering::lowerOp(tile::CellPartOp op) {
  unsigned run = op.getRun(), cell = run * op.getParts();
  bind(op.getResult(),
       takeAlong(simt::layoutOf(op.getInput()), simt::layoutOf(op.getResult()),
                 elements(op.getInput()), op.getAxis(), [&](unsigned c) {
                   return c / run * cell + op.getPart() * run + c % run;
                 }));
}

void KernelLowering::lowerOp(tile::SwapHalvesOp op) {
  bind(op.getResult(),
       takeAlong(simt::layoutOf(op.getInput()), simt::layoutOf(op.getResult()),
                 elements(op.getInput()), op.getAxis(),
                 [&](unsigned c) { return c ^ unsigned(op.getRun()); }));
}

/// The register that holds what lies `start` behind where `image` says, as
/// coordinates of another layout.
static unsigned registerAt(const LinearLayout &layout,
                           const f2::Span &registers, const LinearLayout &other,
                           Vector image, ArrayRef<int64_t> start) {
  Vector wanted = 0;
  unsigned shift = 0;
  for (auto [i, out] : llvm::enumerate(layout.outs())) {
    wanted |= Vector(other.coordinate(image, out.dim) + start[i]) << shift;
    shift += out.bits;
  }
  return *registers.solve(wanted);
}

void KernelLowering::lowerOp(simt::SliceOp op) {
  const LinearLayout &from = simt::layoutOf(op.getInput()),
                     &to = simt::layoutOf(op.getResult());
  Values source = elements(op.getInput()), values;
  f2::Span registers(from.columnsOf(Dim::Register));
  for (unsigned r = 0; r < to.inSize(Dim::Register); ++r)
    values.push_back(source[registerAt(
        from, registers, to, to.apply(Dim::Register, r), op.getStart())]);
  bind(op.getResult(), values);
}

void KernelLowering::lowerOp(simt::JoinOp op) {
  const LinearLayout &from = simt::layoutOf(op.getParts()[0]),
                     &to = simt::layoutOf(op.getResult());
  SmallVector<Values> parts;
  for (Value part : op.getParts())
    parts.push_back(elements(part));
  f2::Span registers(from.columnsOf(Dim::Register));
  int64_t extent = from.outSize(axisDim(op.getAxis()));
  Values values;
  for (unsigned r = 0; r < to.inSize(Dim::Register); ++r) {
    Vector image = to.apply(Dim::Register, r);
    int64_t part = to.coordinate(image, axisDim(op.getAxis())) / extent;
    SmallVector<int64_t> start(from.outs().size(), 0);
    start[op.getAxis()] = -part * extent;
    values.push_back(
        parts[part][registerAt(from, registers, to, image, start)]);
  }
  bind(op.getResult(), values);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

KernelLowering::Values
KernelLowering::combine(Region &combiner, ValueRange left, ValueRange right) {
  Block &block = combiner.front();
  IRMapping mapping;
  for (auto [i, value] : llvm::enumerate(left))
    mapping.map(block.getArgument(i), value);
  for (auto [i, value] : llvm::enumerate(right))
    mapping.map(block.getArgument(left.size() + i), value);
  for (Operation &op : block.without_terminator()) {
    Values operands;
    for (Value operand : op.getOperands())
      operands.push_back(mapping.lookupOrDefault(operand));
    if (Value value = mathOp(&op, operands))
      mapping.map(op.getResult(0), value);
    else
      b.clone(op, mapping);
  }
  Values result;
  for (Value value : block.getTerminator()->getOperands())
    result.push_back(mapping.lookupOrDefault(value));
  return result;
}

/// `result` is the layout of the results; for tile.reduce without `axis`, for
/// simt.warp_reduce with it (then warps keep an element each).
void KernelLowering::lowerReduce(Operation *op, unsigned axis, Region &combiner,
                                 const LinearLayout &result) {
  const LinearLayout &layout = simt::layoutOf(op->getOperand(0));
  bool dropped = result.outs().size() < layout.outs().size();
  SmallVector<Values> inputs;
  for (Value operand : op->getOperands())
    inputs.push_back(elements(operand));

  // In the thread: registers that differ along the axis alone are one result.
  f2::Span registers(result.columnsOf(Dim::Register));
  SmallVector<Values> partial(result.inSize(Dim::Register));
  SmallVector<SmallVector<Values>> parts(partial.size());
  for (unsigned r = 0; r < layout.inSize(Dim::Register); ++r) {
    Vector image = layout.apply(Dim::Register, r), wanted = 0;
    unsigned shift = 0;
    for (auto [i, out] : llvm::enumerate(result.outs())) {
      unsigned from = dropped && i >= axis ? i + 1 : i;
      if (from != axis)
        wanted |= Vector(layout.coordinate(image, axisDim(from))) << shift;
      shift += out.bits;
    }
    Values element;
    for (Values &input : inputs)
      element.push_back(input[r]);
    parts[*registers.solve(wanted)].push_back(element);
  }
  // By halves, since one after the other each would wait for the one before.
  for (auto [list, into] : llvm::zip(parts, partial)) {
    for (size_t count = list.size(); count > 1; count = (count + 1) / 2)
      for (size_t i = 0; i < count / 2; ++i)
        list[i] = combine(combiner, list[i], list[i + (count + 1) / 2]);
    into = list.front();
  }
  // Across lanes: each lane bit that moves along the axis halves what is left.
  for (unsigned bit = 0; bit < layout.inBits(Dim::Lane); ++bit) {
    if (layout.basis(Dim::Lane, bit, axisDim(axis)) == 0)
      continue;
    for (Values &values : partial) {
      Values others;
      for (Value value : values)
        others.push_back(shuffle(value, "bfly", i32(1 << bit)));
      values = combine(combiner, values, others);
    }
  }
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    Values values;
    for (Values &element : partial)
      values.push_back(element[i]);
    bind(op->getResult(i), values);
  }
}

void KernelLowering::lowerOp(tile::ReduceOp op) {
  lowerReduce(op, op.getAxis(), op.getCombiner(),
              simt::layoutOf(op->getResult(0)));
}

void KernelLowering::lowerOp(simt::WarpReduceOp op) {
  lowerReduce(op, op.getAxis(), op.getCombiner(),
              simt::layoutOf(op->getResult(0)));
}

//===----------------------------------------------------------------------===//
// Dots
//===----------------------------------------------------------------------===//

void KernelLowering::lowerOp(simt::DotOp op) {
  if (op.getMma())
    lowerMma(op);
  else
    lowerMultiplyAdd(op);
}

void KernelLowering::lowerMma(simt::DotOp op) {
  Type element = scalarType(op.getLhs());
  bool tf32 = element.isF32();
  Values lhs = packed(op.getLhs()), rhs = packed(op.getRhs()),
         values = elements(op.getAccumulator());
  MLIRContext *context = b.getContext();
  if (tf32) {
    // Rounded to nearest: the tensor cores would cut off.
    for (Values *list : {&lhs, &rhs})
      for (Value &value : *list) {
        if (value.getType().isF32())
          value = LLVM::BitcastOp::create(b, loc, b.getI32Type(), value);
        value =
            LLVM::InlineAsmOp::create(b, loc, b.getI32Type(), ValueRange{value},
                                      "cvt.rna.tf32.f32 $0, $1;", "=r,r", false,
                                      false, LLVM::TailCallKind::None, {}, {})
                .getRes();
      }
  } else if (element.isF16()) {
    auto pair = VectorType::get({2}, element);
    for (Values *list : {&lhs, &rhs})
      for (Value &value : *list)
        value = LLVM::BitcastOp::create(b, loc, pair, value);
  }
  NVVM::MMATypes type = tf32               ? NVVM::MMATypes::tf32
                        : element.isBF16() ? NVVM::MMATypes::bf16
                                           : NVVM::MMATypes::f16;
  // Words of a fragment: 4 of A and 2 of B in either shape; 4 accumulators.
  unsigned columns = rhs.size() / 2, rows = lhs.size() / 4;
  Type result = LLVM::LLVMStructType::getLiteral(
      context, SmallVector<Type>(4, b.getF32Type()));
  for (unsigned i = 0; i < rows; ++i)
    for (unsigned j = 0; j < columns; ++j) {
      MutableArrayRef<Value> acc =
          MutableArrayRef<Value>(values).slice((i * columns + j) * 4, 4);
      Value product = NVVM::MmaOp::create(
          b, loc, result, ArrayRef<Value>(lhs).slice(i * 4, 4),
          ArrayRef<Value>(rhs).slice(j * 2, 2), ArrayRef<Value>(acc),
          ArrayRef<int64_t>{16, 8, tf32 ? 8 : 16}, std::nullopt, std::nullopt,
          std::array{type, type},
          std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
      for (unsigned k = 0; k < 4; ++k)
        acc[k] = LLVM::ExtractValueOp::create(b, loc, product, k);
    }
  bind(op.getResult(), values);
}

void KernelLowering::lowerMultiplyAdd(simt::DotOp op) {
  const LinearLayout &lhsLayout = simt::layoutOf(op.getLhs());
  const LinearLayout &rhsLayout = simt::layoutOf(op.getRhs());
  const LinearLayout &layout = simt::layoutOf(op.getResult());
  Values lhs = elements(op.getLhs()), rhs = elements(op.getRhs()),
         values = elements(op.getAccumulator());
  Type type = scalarType(op.getResult());
  for (Values *list : {&lhs, &rhs})
    for (Value &value : *list)
      if (value.getType() != type) {
        if (isa<FloatType>(type))
          value = arith::ExtFOp::create(b, loc, type, value);
        else
          value = arith::ExtSIOp::create(b, loc, type, value);
      }
  f2::Span left(lhsLayout.columnsOf(Dim::Register)),
      right(rhsLayout.columnsOf(Dim::Register));
  unsigned m = lhsLayout.outBits(axisDim(0)), k = rhsLayout.outBits(axisDim(0));
  for (unsigned step = 0; step < 1u << k; ++step)
    for (unsigned r = 0; r < values.size(); ++r) {
      Vector image = layout.apply(Dim::Register, r);
      unsigned row = layout.coordinate(image, axisDim(0)),
               column = layout.coordinate(image, axisDim(1));
      Value x = lhs[*left.solve(row | Vector(step) << m)];
      Value y = rhs[*right.solve(step | Vector(column) << k)];
      if (isa<FloatType>(type))
        values[r] = LLVM::FMAOp::create(b, loc, x, y, values[r]);
      else
        values[r] = arith::AddIOp::create(b, loc, values[r],
                                          arith::MulIOp::create(b, loc, x, y));
    }
  bind(op.getResult(), values);
}
