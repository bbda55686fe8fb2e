#include "codegen/gpu/lower/Lowering.h"
#include "codegen/tile/analysis/Values.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

static bool isTile(Value value) {
  return isa<RankedTensorType>(value.getType());
}

KernelLowering::KernelLowering(func::FuncOp kernel, OpBuilder &builder,
                               const LoweringOptions &options)
    : kernel(kernel), b(builder), options(options), loc(kernel.getLoc()) {}

FailureOr<LLVM::LLVMFuncOp> KernelLowering::run() {
  MLIRContext *context = b.getContext();
  Type pointer = LLVM::LLVMPointerType::get(context, 1),
       shared = LLVM::LLVMPointerType::get(context, 3);
  SmallVector<Type> types;
  for (Type type : kernel.getArgumentTypes())
    types.push_back(isa<tile::BufferType>(type) ? pointer : b.getI64Type());

  OpBuilder::InsertionGuard guard(b);
  // All of a program instance's shared memory, sized at launch.
  auto memory = LLVM::GlobalOp::create(
      b, loc, LLVM::LLVMArrayType::get(b.getI8Type(), 0), false,
      LLVM::Linkage::External, "shared", Attribute(),
      /*alignment=*/1024, /*addrSpace=*/3);
  function = LLVM::LLVMFuncOp::create(
      b, loc, kernel.getName(),
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types));
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    b.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    b.getDenseI32ArrayAttr({int32_t(options.warps * kLanes)}));
  // Without it ptxas gives up registers for occupancy that nobody asked for.
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    b.getI32IntegerAttr(1));
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  for (auto [i, type] : llvm::enumerate(types))
    if (type == pointer)
      function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                          b.getI64IntegerAttr(16));

  // What does not depend on the kernel's body goes to a block of its own, so
  // that constants built later still come first.
  index = std::make_unique<IndexBuilder>(b, loc, entry);
  threadId = NVVM::ThreadIdXOp::create(
      b, loc, b.getI32Type(),
      LLVM::ConstantRangeAttr::get(context, APInt(32, 0),
                                   APInt(32, options.warps * kLanes)));
  Value thread = toIndex(threadId);
  laneId = options.warps == 1 ? thread
                              : index->binary("arith.andi", thread,
                                              index->constant(kLanes - 1));
  warpId = index->binary("arith.shrui", thread, index->constant(kLaneBits));
  sharedBase = LLVM::AddressOfOp::create(b, loc, shared, memory.getSymName());

  for (auto [i, argument] : llvm::enumerate(kernel.getArguments())) {
    Value value = function.getArgument(i);
    if (!isa<tile::BufferType>(argument.getType()))
      value = toIndex(value);
    scalars.map(argument, value);
  }
  if (failed(lowerBlock(kernel.getBody().front())))
    return failure();
  LLVM::ReturnOp::create(b, loc, ValueRange());
  return function;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value KernelLowering::i32(int64_t value) {
  Value &known = i32Constants[value];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getBody().front());
    known = LLVM::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  }
  return known;
}

Value KernelLowering::toInteger(Value value, Type type) {
  if (!value.getType().isIndex())
    return value;
  std::string key = "int" + std::to_string(type.getIntOrFloatBitWidth()) + " " +
                    std::to_string(uintptr_t(value.getAsOpaquePointer()));
  return index->cached(key, [&]() -> Value {
    return arith::IndexCastOp::create(b, loc, type, value);
  });
}

Value KernelLowering::toIndex(Value integer) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), integer);
}

Type KernelLowering::scalarType(Value tile) const {
  return cast<RankedTensorType>(tile.getType()).getElementType();
}

KernelLowering::Values KernelLowering::flatten(Value value) {
  if (isTile(value))
    return tiles.find(value)->second.values;
  return {scalars.lookupOrDefault(value)};
}

void KernelLowering::bind(Value value, ValueRange values) {
  if (isTile(value))
    tiles[value].values.assign(values.begin(), values.end());
  else
    scalars.map(value, values[0]);
}

Value KernelLowering::lane() { return laneId; }
Value KernelLowering::warp() { return warpId; }

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

IndexSum KernelLowering::threadPart(const LinearLayout &layout, Dim out) {
  std::string key = "part " + std::to_string(unsigned(out));
  SmallVector<std::pair<Value, SmallVector<uint64_t>>> inputs;
  bool any = false;
  for (auto [dim, value] :
       {std::pair(Dim::Lane, laneId), {Dim::Warp, warpId}}) {
    SmallVector<uint64_t> images;
    for (unsigned bit = 0; bit < layout.inBits(dim); ++bit) {
      images.push_back(layout.basis(dim, bit, out));
      any |= images.back() != 0;
      key += "," + std::to_string(images.back());
    }
    key += ";";
    inputs.push_back({value, images});
  }
  if (!any)
    return {};
  // Thread coordinates are the same everywhere: they are built at the top.
  return {index->cached(key, [&] { return index->linear(inputs); }), 0};
}

IndexSum KernelLowering::coordinate(const LinearLayout &layout, unsigned reg,
                                    Dim out) {
  unsigned own = layout.coordinate(layout.apply(Dim::Register, reg), out);
  IndexSum part = threadPart(layout, out);
  uint64_t moved = 0;
  for (Dim dim : {Dim::Lane, Dim::Warp})
    for (unsigned bit = 0; bit < layout.inBits(dim); ++bit)
      moved |= layout.basis(dim, bit, out);
  if ((moved & own) == 0)
    return {part.value, int64_t(own)};
  // Bits that threads move too are flipped; the others are added.
  Value flipped = index->exclusiveOr(part.value, index->constant(own & moved));
  return {flipped, int64_t(own & ~moved)};
}

SmallVector<IndexSum> KernelLowering::coordinates(const LinearLayout &layout,
                                                  unsigned reg) {
  SmallVector<IndexSum> result;
  for (const LinearLayout::Space &out : layout.outs())
    result.push_back(coordinate(layout, reg, out.dim));
  return result;
}

Value KernelLowering::firstHolder(const LinearLayout &layout) {
  Value result;
  for (auto [dim, value] :
       {std::pair(Dim::Lane, laneId), {Dim::Warp, warpId}}) {
    uint64_t free = layout.freeBits(dim);
    if (!free)
      continue;
    Value bits = index->binary("arith.andi", value, index->constant(free));
    result = index->both(result, index->lessUnsigned({bits, 0}, {{}, 1}));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerBlock(Block &block) {
  for (Operation &op : block)
    if (!op.hasTrait<OpTrait::IsTerminator>() && failed(lower(&op)))
      return failure();
  return success();
}

LogicalResult KernelLowering::lowerLoop(scf::ForOp op) {
  SmallVector<Value> inits;
  SmallVector<unsigned> counts;
  SmallVector<bool> isPacked;
  for (Value init : op.getInitArgs()) {
    Values values = flatten(init);
    counts.push_back(values.size());
    isPacked.push_back(isTile(init) && tiles.find(init)->second.packed);
    llvm::append_range(inits, values);
  }
  auto lookup = [&](Value v) { return scalars.lookupOrDefault(v); };
  Value low = lookup(op.getLowerBound());
  auto loop =
      scf::ForOp::create(b, op.getLoc(), low, lookup(op.getUpperBound()),
                         lookup(op.getStep()), inits);
  OpBuilder::InsertionGuard guard(b);
  Block *body = loop.getBody();
  if (!body->empty())
    body->getTerminator()->erase();
  b.setInsertionPointToEnd(body);
  index->enterScope();
  scalars.map(op.getInductionVar(), loop.getInductionVar());
  auto bindAll = [&](ValueRange old, ValueRange with) {
    unsigned at = 0;
    for (auto [i, value] : llvm::enumerate(old)) {
      bind(value, with.slice(at, counts[i]));
      if (isTile(value))
        tiles[value].packed = isPacked[i];
      at += counts[i];
    }
  };
  bindAll(op.getRegionIterArgs(), loop.getRegionIterArgs());
  if (failed(lowerBlock(*op.getBody())))
    return failure();
  SmallVector<Value> yields;
  for (auto [i, value] :
       llvm::enumerate(op.getBody()->getTerminator()->getOperands()))
    llvm::append_range(yields, !isTile(value) ? flatten(value)
                               : isPacked[i]  ? packed(value)
                                              : elements(value));
  scf::YieldOp::create(b, op.getLoc(), yields);
  index->leaveScope();
  bindAll(op.getResults(), loop.getResults());
  return success();
}

LogicalResult KernelLowering::lowerBranch(scf::IfOp op) {
  SmallVector<Type> types;
  SmallVector<unsigned> counts;
  for (Value result : op.getResults()) {
    unsigned count =
        isTile(result) ? simt::layoutOf(result).inSize(Dim::Register) : 1;
    counts.push_back(count);
    types.append(count, isTile(result) ? scalarType(result) : result.getType());
  }
  auto branch = scf::IfOp::create(b, op.getLoc(), types,
                                  scalars.lookupOrDefault(op.getCondition()),
                                  !op.getElseRegion().empty());
  OpBuilder::InsertionGuard guard(b);
  for (auto [from, to] : llvm::zip(op->getRegions(), branch->getRegions())) {
    if (from.empty())
      continue;
    if (!to.front().empty())
      to.front().getTerminator()->erase();
    b.setInsertionPointToEnd(&to.front());
    index->enterScope();
    if (failed(lowerBlock(from.front())))
      return failure();
    SmallVector<Value> yields;
    for (Value value : from.front().getTerminator()->getOperands())
      llvm::append_range(yields,
                         isTile(value) ? elements(value) : flatten(value));
    scf::YieldOp::create(b, op.getLoc(), yields);
    index->leaveScope();
  }
  unsigned at = 0;
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    bind(result, branch.getResults().slice(at, counts[i]));
    at += counts[i];
  }
  return success();
}

LogicalResult KernelLowering::lower(Operation *op) {
  loc = op->getLoc();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return lowerLoop(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return lowerBranch(branch);
  if (isElementwise(op))
    return lowerElementwise(op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tile::ProgramIdOp id) {
        scalars.map(id.getResult(),
                    toIndex(NVVM::BlockIdXOp::create(b, loc, b.getI32Type())));
        return success();
      })
      .Case([&](arith::ConstantOp constant) {
        auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
        if (!dense) {
          if (auto integer = dyn_cast<IntegerAttr>(constant.getValue());
              integer && integer.getType().isIndex()) {
            scalars.map(constant.getResult(),
                        index->constant(integer.getInt()));
          } else {
            b.clone(*op, scalars);
          }
          return success();
        }
        Value value = arith::ConstantOp::create(
            b, loc, cast<TypedAttr>(dense.getSplatValue<Attribute>()));
        unsigned count =
            simt::layoutOf(constant.getResult()).inSize(Dim::Register);
        tiles[constant.getResult()].values.assign(count, value);
        return success();
      })
      .Case([&](tile::SplatOp splat) {
        unsigned count =
            simt::layoutOf(splat.getResult()).inSize(Dim::Register);
        tiles[splat.getResult()].values.assign(
            count, scalars.lookupOrDefault(splat.getValue()));
        return success();
      })
      .Case([&](tile::LoadOp load) { return lowerLoad(load); })
      .Case([&](tile::StoreOp store) { return lowerStore(store); })
      .Case([&](tile::AtomicOp atomic) { return lowerAtomic(atomic); })
      .Case([&](tile::SplitSumOp sum) { return lowerSplitSum(sum); })
      .Case([&](tile::IndexOp indexOp) {
        const LinearLayout &layout = simt::layoutOf(indexOp.getResult());
        tile::AccessOp like{op,
                            cast<RankedTensorType>(indexOp.getType()),
                            {},
                            indexOp.getSymbols(),
                            indexOp.getMap(),
                            {},
                            0,
                            {}};
        graph::Facts facts = tile::factsOf(like);
        Values values;
        for (unsigned r = 0; r < layout.inSize(Dim::Register); ++r)
          values.push_back(index->materialize(index->evaluate(
              indexOp.getMap().getResult(0), coordinates(layout, r),
              symbolsOf(like, layout, r), facts)));
        bind(indexOp.getResult(), values);
        return success();
      })
      .Case([&](tile::InBoundsOp inside) {
        const LinearLayout &layout = simt::layoutOf(inside.getResult());
        SmallVector<int64_t> checks = llvm::to_vector(
            llvm::seq<int64_t>(0, inside.getMap().getNumResults()));
        auto type = cast<RankedTensorType>(inside.getType());
        AccessPlan plan = planAccess({op,
                                      type,
                                      {},
                                      inside.getSymbols(),
                                      inside.getMap(),
                                      inside.getShape(),
                                      0,
                                      checks});
        Values values;
        for (unsigned r = 0; r < layout.inSize(Dim::Register); ++r) {
          Value value = predicateOf(plan, coordinates(layout, r),
                                    symbolsOf(plan.access, layout, r));
          if (!value)
            value = index->cached("true", [&]() -> Value {
              return arith::ConstantIntOp::create(b, loc, true, 1);
            });
          values.push_back(value);
        }
        bind(inside.getResult(), values);
        return success();
      })
      .Case([&](tile::BroadcastOp broadcast) {
        return lowerBroadcast(broadcast), success();
      })
      .Case([&](tile::TransposeOp transpose) {
        tiles[transpose.getResult()].values = elements(transpose.getInput());
        return success();
      })
      .Case([&](tile::ReduceOp reduce) {
        lowerReduce(op, reduce.getAxis(), reduce.getCombiner(),
                    simt::layoutOf(op->getResult(0)));
        return success();
      })
      .Case([&](simt::WarpReduceOp reduce) {
        lowerReduce(op, reduce.getAxis(), reduce.getCombiner(),
                    simt::layoutOf(op->getResult(0)));
        return success();
      })
      .Case([&](simt::ConvertOp convert) {
        return lowerConvert(convert), success();
      })
      .Case([&](simt::SliceOp slice) { return lowerSlice(slice), success(); })
      .Case([&](simt::DotOp dot) { return lowerDot(dot), success(); })
      .Case([&](simt::AllocOp alloc) {
        memories[alloc.getMemory()] = {{}, int64_t(*alloc.getOffset())};
        return success();
      })
      .Case([&](simt::SlotOp slot) {
        int64_t bytes = slot.getRing().getType().getBytes();
        IndexSum number{scalars.lookupOrDefault(slot.getIndex()), 0};
        if (auto constant =
                number.value.getDefiningOp<arith::ConstantIndexOp>())
          number = {{}, constant.value()};
        memories[slot.getMemory()] = index->add(
            sharedStart(slot.getRing()), index->multiply(number, {{}, bytes}));
        return success();
      })
      .Case([&](simt::StoreSharedOp store) {
        return lowerStoreShared(store), success();
      })
      .Case([&](simt::LoadSharedOp load) {
        return lowerLoadShared(load), success();
      })
      .Case([&](simt::CopyAsyncOp copy) {
        return lowerCopyAsync(copy), success();
      })
      .Case([&](simt::CommitAsyncOp) {
        NVVM::CpAsyncCommitGroupOp::create(b, loc);
        return success();
      })
      .Case([&](simt::WaitAsyncOp wait) {
        NVVM::CpAsyncWaitGroupOp::create(b, loc, wait.getPending());
        return success();
      })
      .Case([&](simt::BarrierOp) {
        NVVM::Barrier0Op::create(b, loc);
        return success();
      })
      .Default([&](Operation *) -> LogicalResult {
        if (llvm::any_of(op->getOperands(), isTile) ||
            llvm::any_of(op->getResults(), isTile) || op->getNumRegions())
          return op->emitOpError("has no lowering to a GPU");
        // Scalar code of the kernel: what is known of its operands goes on.
        bool positive =
            op->getNumOperands() &&
            llvm::all_of(op->getOperands(), [&](Value v) {
              return v.getType().isIndex() && tile::rangeOf(v).low >= 0;
            });
        auto operand = [&](unsigned i) {
          Value value = scalars.lookupOrDefault(op->getOperand(i));
          if (auto constant = value.getDefiningOp<arith::ConstantIndexOp>())
            return IndexSum{{}, constant.value()};
          return IndexSum{value, 0};
        };
        auto set = [&](IndexSum sum) {
          scalars.map(op->getResult(0), index->materialize(sum));
          return success();
        };
        bool onIndex =
            op->getNumResults() == 1 && op->getResult(0).getType().isIndex();
        if (onIndex && isa<arith::FloorDivSIOp>(op))
          return set(index->floorDivide(operand(0), operand(1), positive));
        if (onIndex && isa<arith::CeilDivSIOp>(op))
          return set(index->floorDivide(
              index->add(operand(0), index->add(operand(1), {{}, -1})),
              operand(1), positive));
        if (onIndex && positive && isa<arith::DivSIOp, arith::DivUIOp>(op))
          return set(index->floorDivide(operand(0), operand(1), true));
        if (onIndex && positive && isa<arith::RemSIOp, arith::RemUIOp>(op))
          return set(index->modulo(operand(0), operand(1), true));
        if (onIndex && isa<arith::AddIOp>(op))
          return set(index->add(operand(0), operand(1)));
        if (onIndex && isa<arith::MulIOp>(op))
          return set(index->multiply(operand(0), operand(1)));
        b.clone(*op, scalars);
        return success();
      });
}
