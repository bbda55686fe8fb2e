#include "codegen/gpu/lower/Lowering.h"
#include "codegen/tile/ir/IndexAttributes.h"
#include "graph/ir/Float8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using tile::isTile;

KernelLowering::KernelLowering(func::FuncOp kernel, OpBuilder &builder,
                               const LoweringOptions &options)
    : kernel(kernel), b(builder), options(options), loc(kernel.getLoc()) {}

/// All of a program instance's shared memory, sized at launch.
static LLVM::GlobalOp createSharedMemory(OpBuilder &b, Location loc) {
  return LLVM::GlobalOp::create(
      b, loc, LLVM::LLVMArrayType::get(b.getI8Type(), 0), false,
      LLVM::Linkage::External, "shared", Attribute(),
      /*alignment=*/1024, /*addrSpace=*/3);
}

void KernelLowering::createFunction() {
  MLIRContext *context = b.getContext();
  Type pointer = LLVM::LLVMPointerType::get(context, 1);
  SmallVector<Type> types;
  for (Type type : kernel.getArgumentTypes())
    types.push_back(isa<tile::BufferType>(type) ? pointer : b.getI64Type());
  types.append(maps.size(), LLVM::LLVMPointerType::get(context));
  function = LLVM::LLVMFuncOp::create(
      b, loc, kernel.getName(),
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types));
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    b.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    b.getDenseI32ArrayAttr({int32_t(numThreads())}));
  if (options.indexBits != 32) // for whoever runs it as it is
    function->setAttr(tile::kIndexBitsAttr,
                      b.getI64IntegerAttr(options.indexBits));
  kernel.walk([&](tile::SplitSumOp sum) {
    if (sum.getSharedAxis())
      function->setAttr(tile::kClusterAttr, sum.getPartsAttr());
  });
  kernel.walk([&](simt::ExchangeOp exchange) {
    function->setAttr(tile::kClusterAttr, exchange.getPartsAttr());
  });
  // One at least: without it ptxas gives up registers for occupancy that
  // nobody asked for.
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    b.getI32IntegerAttr(options.residents));
  function.addEntryBlock(b);
  for (auto [i, type] : llvm::enumerate(types))
    if (type == pointer)
      function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                          b.getI64IntegerAttr(16));
  annotateTensorMaps();
}

void KernelLowering::findThread() {
  threadId = NVVM::ThreadIdXOp::create(
      b, loc, b.getI32Type(),
      LLVM::ConstantRangeAttr::get(b.getContext(), APInt(32, 0),
                                   APInt(32, numThreads())));
  Value thread = toIndex(threadId);
  laneId = numThreads() == kLanes ? thread
                                  : index->binary("arith.andi", thread,
                                                  index->constant(kLanes - 1));
  warpId = index->binary("arith.shrui", thread, index->constant(kLaneBits));
  auto hasGroups = [](simt::WarpgroupDotOp dot) {
    return dot.getRows() * dot.getColumns() > 1 ? WalkResult::interrupt()
                                                : WalkResult::advance();
  };
  if (kernel.walk(hasGroups).wasInterrupted())
    findGroup();
}

FailureOr<LLVM::LLVMFuncOp> KernelLowering::run() {
  OpBuilder::InsertionGuard guard(b);
  LLVM::GlobalOp memory = createSharedMemory(b, loc);
  findTensorMaps();
  createFunction();
  Block *entry = &function.getBody().front();
  b.setInsertionPointToStart(entry);
  index = std::make_unique<IndexBuilder>(b, loc, entry);
  findThread();
  sharedBase = LLVM::AddressOfOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext(), 3),
      memory.getSymName());
  for (auto [i, argument] : llvm::enumerate(kernel.getArguments())) {
    Value value = function.getArgument(i);
    scalars.map(argument, isa<tile::BufferType>(argument.getType())
                              ? value
                              : toIndex(value));
  }
  prefetchTensorMaps();
  if (failed(lowerBlock(kernel.getBody().front())))
    return failure();
  if (hasArrived)
    waitForCluster();
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
  return index->cached({"integer", {value}, {type.getIntOrFloatBitWidth()}},
                       [&]() -> Value {
                         return arith::IndexCastOp::create(b, loc, type, value);
                       });
}

Value KernelLowering::toIndex(Value integer) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), integer);
}

Type KernelLowering::heldType(Type element) {
  return graph::isFloat8(element) ? IntegerType::get(element.getContext(), 8)
                                  : element;
}

Type KernelLowering::scalarType(Value tile) const {
  return heldType(cast<RankedTensorType>(tile.getType()).getElementType());
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

IndexSum KernelLowering::sumOf(Value scalar) {
  Value value = scalars.lookupOrDefault(scalar);
  if (auto constant = value.getDefiningOp<arith::ConstantIndexOp>())
    return {{}, constant.value()};
  return {value, 0};
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

IndexSum KernelLowering::threadPart(const LinearLayout &layout, Dim out) {
  IndexBuilder::Key key{"thread part", {}, {uint64_t(out)}};
  SmallVector<std::pair<Value, SmallVector<uint64_t>>> inputs;
  bool any = false;
  for (auto [dim, value] :
       {std::pair(Dim::Lane, laneId), {Dim::Warp, warpId}}) {
    SmallVector<uint64_t> images;
    for (unsigned bit = 0; bit < layout.inBits(dim); ++bit) {
      images.push_back(layout.basis(dim, bit, out));
      any |= images.back() != 0;
    }
    key.numbers.push_back(images.size());
    llvm::append_range(key.numbers, images);
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
// Operators
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lower(Operation *op) {
  loc = op->getLoc();
  if (isElementwise(op))
    return lowerElementwise(op);
  if (!isa<arith::ConstantOp>(op))
    endChain();
  if (!isMemoryEffectFree(op) && !isa<tile::LoadOp, simt::LoadSharedOp>(op))
    loaded.clear();
  // Most operators cannot fail.
  auto each = [&](auto concrete) -> LogicalResult {
    if constexpr (std::is_void_v<decltype(lowerOp(concrete))>)
      return lowerOp(concrete), success();
    else
      return lowerOp(concrete);
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      // Structure.cpp
      .Case<scf::ForOp, scf::IfOp>(each)
      // Leaves.cpp
      .Case<tile::ProgramIdOp, arith::ConstantOp, tile::SplatOp, tile::IndexOp,
            tile::InBoundsOp>(each)
      // Memory.cpp, SplitSum.cpp
      .Case<tile::LoadOp, tile::StoreOp, tile::SplitSumOp>(each)
      // Shared.cpp
      .Case<simt::AllocOp, simt::SlotOp, simt::StoreSharedOp,
            simt::LoadSharedOp, simt::CopyAsyncOp, simt::CommitAsyncOp,
            simt::WaitAsyncOp, simt::BarrierOp, simt::WaitDependenciesOp,
            simt::LaunchDependentsOp, simt::FenceDeviceOp>(each)
      // Exchange.cpp
      .Case<simt::ExchangeOp>(each)
      // Boxes.cpp
      .Case<simt::InitBarriersOp, simt::ExpectBytesOp, simt::ArriveOp,
            simt::WaitBarrierOp, simt::CopyWarpOp, simt::CoordinatesOp,
            simt::CopyBoxOp>(each)
      // Compute.cpp
      .Case<tile::BroadcastOp, tile::TransposeOp, tile::SplitAxisOp,
            tile::CellPartOp, tile::SwapHalvesOp, tile::JoinAxesOp,
            tile::ReduceOp, simt::WarpReduceOp, simt::ConvertOp, simt::SliceOp,
            simt::JoinOp, simt::DotOp>(each)
      // Scan.cpp, Sort.cpp
      .Case<tile::ScanOp, tile::SortOp>(each)
      // Dots.cpp
      .Case<simt::WarpgroupDotOp, simt::WaitDotsOp, simt::FenceSharedOp>(each)
      .Default([&](Operation *) { return lowerScalar(op); });
}
