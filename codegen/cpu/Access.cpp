// Loads of pieces, and what loads and stores share.
#include "codegen/cpu/AccessScopes.h"
#include "codegen/cpu/KernelEmitter.h"

using namespace charonia;
using namespace charonia::cpu;
using tile::AccessOp;

/// Of a line of the caches.
static constexpr int64_t memoryLineBytes = 64;

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// Registers of memory's bytes to values: bool is a byte there.
Value *KernelEmitter::fromMemory(Value *value, mlir::Type element) {
  return element.isInteger(1)
             ? b.CreateTrunc(value, value->getType()->getWithNewBitWidth(1))
             : value;
}
Value *KernelEmitter::toMemory(Value *value, mlir::Type element) {
  return element.isInteger(1)
             ? b.CreateZExt(value, value->getType()->getWithNewBitWidth(8))
             : value;
}

static int64_t widthOf(Value *vector) {
  auto type = llvm::dyn_cast<llvm::FixedVectorType>(vector->getType());
  return type ? type->getNumElements() : 1;
}

Value *KernelEmitter::lanesOf(Value *vector, int64_t start, int64_t count) {
  if (count == widthOf(vector))
    return vector;
  llvm::SmallVector<int> lanes;
  for (int64_t i = 0; i < count; ++i)
    lanes.push_back(start + i);
  return b.CreateShuffleVector(vector, lanes);
}

Value *KernelEmitter::concatenate(llvm::ArrayRef<Value *> given) {
  llvm::SmallVector<Value *> parts(given);
  while (parts.size() > 1) {
    llvm::SmallVector<Value *> joined;
    llvm::SmallVector<int> both;
    for (int64_t i = 0; i < 2 * widthOf(parts[0]); ++i)
      both.push_back(i);
    for (size_t i = 0; i < parts.size(); i += 2)
      joined.push_back(b.CreateShuffleVector(parts[i], parts[i + 1], both));
    parts = std::move(joined);
  }
  return parts[0];
}

/// The mask of each register that a masked access takes; null where all its
/// lanes are known to fail. LLVM cannot be left to find such masks: where it
/// does after splitting a wide masked load, it was seen to load all lanes
/// instead of none.
llvm::SmallVector<Value *>
KernelEmitter::registerParts(Value *mask, int64_t leading, int64_t bytes) {
  int64_t width = widthOf(mask), most = (hasAvx512(isa) ? 64 : 32) / bytes;
  llvm::SmallVector<Value *> parts;
  for (int64_t start = 0; start < width; start += most) {
    int64_t count = std::min(width, most);
    parts.push_back(start + count <= leading ? nullptr
                                             : lanesOf(mask, start, count));
  }
  return parts;
}

/// Which elements of a run of memory are wanted, where the lanes of `mask` lie
/// at `offsets` from the run's start. Null where too many lanes share one.
Value *charonia::cpu::maskOfRun(llvm::IRBuilder<> &b, Value *mask,
                                llvm::ArrayRef<int64_t> offsets, int64_t run) {
  constexpr size_t mostShared = 4;
  int64_t width = widthOf(mask);
  std::vector<llvm::SmallVector<int>> lanesAt(run);
  size_t shared = 0;
  for (auto [lane, offset] : llvm::enumerate(offsets))
    if (offset >= 0 && offset < run) {
      lanesAt[offset].push_back(lane);
      shared = std::max(shared, lanesAt[offset].size());
    }
  if (shared > mostShared)
    return nullptr;
  Value *none = llvm::Constant::getNullValue(mask->getType()), *all = nullptr;
  for (size_t i = 0; i < std::max<size_t>(shared, 1); ++i) {
    llvm::SmallVector<int> order; // `width`: none
    for (const auto &lanes : lanesAt)
      order.push_back(i < lanes.size() ? lanes[i] : width);
    Value *some = b.CreateShuffleVector(mask, none, order);
    all = all ? b.CreateOr(all, some) : some;
  }
  return all;
}

namespace {
/// Runs of memory, from the first element on, that hold all of some.
struct Runs {
  int64_t length = 1;
  llvm::SmallVector<int64_t> starts; ///< Empty: there would be too many.
  bool apart = false; ///< What lies between them is far more than they are.
};
} // namespace

/// For elements that lie `span` from the first, at `low`, to the last: a few
/// runs of at most `width` behind each other, or one around each cluster.
static Runs runsOf(llvm::ArrayRef<int64_t> offsets, int64_t low, int64_t span,
                   int64_t width) {
  constexpr int64_t mostRuns = 4;
  Runs runs;
  runs.length = std::min(width, (int64_t)llvm::bit_floor<uint64_t>(span));
  // The last run ends with the last element, and may overlap the one before.
  if (llvm::divideCeil(span, runs.length) <= mostRuns) {
    for (int64_t start = 0; start < span; start += runs.length)
      runs.starts.push_back(std::min(start, span - runs.length));
    return runs;
  }
  llvm::SmallVector<int64_t> sorted(offsets), lengths;
  llvm::sort(sorted);
  for (int64_t offset : sorted) {
    int64_t at = offset - low;
    if (runs.starts.empty() || at - runs.starts.back() >= width) {
      runs.starts.push_back(at);
      lengths.push_back(1);
    }
    lengths.back() = at - runs.starts.back() + 1;
  }
  runs.apart = true;
  runs.length = llvm::PowerOf2Ceil(*llvm::max_element(lengths));
  for (int64_t &start : runs.starts)
    start = std::min(start, span - runs.length);
  if ((int64_t)runs.starts.size() > mostRuns || runs.length > width)
    runs.starts.clear();
  return runs;
}

/// Which elements of a run of memory lie between those of the first and the
/// last wanted lane, where the lanes lie in order at `offsets` from the run's
/// start: a guard's bounds, asked of lanes next to each element. What lies
/// between is memory, too. Where no lane is wanted an element may be that lanes
/// on both sides of the bounds share (see LaneGuard::some).
Value *KernelEmitter::boundsOfRun(const LaneGuard &guard,
                                  llvm::ArrayRef<int64_t> offsets,
                                  int64_t run) {
  llvm::SmallVector<uint32_t> from, upTo; // Lanes at an element or behind it.
  for (int64_t element = 0; element < run; ++element) {
    from.push_back(llvm::lower_bound(offsets, element) - offsets.begin());
    upTo.push_back(llvm::upper_bound(offsets, element) - offsets.begin());
  }
  auto lanes = [&](llvm::ArrayRef<uint32_t> values) {
    return llvm::ConstantDataVector::get(context, values);
  };
  Value *first = guard.first ? guard.first : b.getInt32(0),
        *end = guard.end ? guard.end : b.getInt32(offsets.size());
  return conjunction(b, b.CreateICmpULT(lanes(from), splat(end, run)),
                     b.CreateICmpUGT(lanes(upTo), splat(first, run)));
}

/// Lanes that lie apart by known distances, but close to each other, or in few
/// clusters: what lies between the first and the last is memory of the same
/// buffer, and is loaded in runs of which the lanes are picked; with `mask`
/// just the lanes' own elements. Null where a gather is better.
Value *KernelEmitter::loadSpread(tile::LoadOp op, const PiecePlace &at,
                                 Value *mask) {
  std::optional<llvm::SmallVector<int64_t>> offsets =
      constantLanes(at.offsets, at.valid);
  if (!offsets || at.valid < 2)
    return nullptr;
  int64_t low = *llvm::min_element(*offsets),
          span = *llvm::max_element(*offsets) - low + 1;
  mlir::Type element = op.getType().getElementType();
  int64_t bytes = memoryBytes(element);
  Runs in = runsOf(*offsets, low, span, at.width);
  bool byBounds = mask && llvm::is_sorted(*offsets) && at.valid == at.width &&
                  (at.guard.first || at.guard.end);
  // Lanes outside of bounds are then zeros as they are loaded, but for those
  // that share an element with others.
  bool areZero =
      byBounds &&
      std::adjacent_find(offsets->begin(), offsets->end()) == offsets->end();
  Value *exists = at.guard.scalar;
  if (byBounds && !areZero)
    exists = conjunction(b, exists, at.guard.some);
  // Those of half of a register may be one of memory, which takes one mask.
  int64_t whole = llvm::bit_ceil<uint64_t>(span);
  if (byBounds && whole * bytes <= (hasAvx512(isa) ? 64 : 32))
    in = {whole, {0}, false};
  // A block of zeros has no gaps.
  if (in.apart && exists)
    return nullptr;
  int64_t run = in.length, runs = in.starts.size();
  bool isRegister = run * bytes <= (hasAvx512(isa) ? 64 : 32);
  if (runs == 0 ||
      (mask && (!isRegister || run < 4 || (bytes < 4 && !hasAvx512(isa)))))
    return nullptr;
  llvm::Type *scalarType = memoryType(element);
  Value *address = b.CreateConstGEP1_64(scalarType, at.base, low);
  address = b.CreateGEP(scalarType, address, at.offsets.scalar);
  if (exists)
    address = b.CreateSelect(exists, address, zeros(span * bytes));
  Value *value = nullptr;
  for (int64_t i = 0; i < runs; ++i) {
    // Lanes of this run, among those picked so far.
    llvm::SmallVector<int> own(at.width, llvm::PoisonMaskElem), both(at.width);
    llvm::SmallVector<int64_t> from;
    for (int64_t lane = 0; lane < at.width; ++lane) {
      from.push_back((*offsets)[std::min(lane, at.valid - 1)] - low -
                     in.starts[i]);
      bool here = from[lane] >= 0 && from[lane] < run;
      if (here)
        own[lane] = from[lane];
      both[lane] = here ? at.width + lane : lane;
    }
    from.truncate(at.valid);
    llvm::Type *type = pieceType(scalarType, run);
    Value *place = b.CreateConstGEP1_64(scalarType, address, in.starts[i]);
    Value *wanted = byBounds ? boundsOfRun(at.guard, from, run)
                    : mask   ? maskOfRun(b, mask, from, run)
                             : nullptr;
    if (mask && !wanted)
      return nullptr;
    llvm::Instruction *loaded =
        mask ? b.CreateMaskedLoad(type, place, llvm::Align(bytes), wanted,
                                  llvm::Constant::getNullValue(type))
             : static_cast<llvm::Instruction *>(
                   b.CreateAlignedLoad(type, place, llvm::Align(bytes)));
    withScopes(loaded, nullptr, noalias.lookup(op));
    Value *picked =
        run == 1 ? splat(loaded, at.width) : b.CreateShuffleVector(loaded, own);
    value = value ? b.CreateShuffleVector(value, picked, both) : picked;
  }
  return mask && !areZero
             ? b.CreateSelect(mask, value,
                              llvm::Constant::getNullValue(value->getType()))
             : value;
}

/// Asks for so many lines of memory.
void KernelEmitter::prefetchLines(Value *base, Value *lines) {
  auto *before = b.GetInsertBlock();
  auto *body = llvm::BasicBlock::Create(context, "lines", kernel);
  auto *after = llvm::BasicBlock::Create(context, "lines.end", kernel);
  b.CreateCondBr(b.CreateICmpSGT(lines, i64(0)), body, after);
  b.SetInsertPoint(body);
  llvm::PHINode *line = b.CreatePHI(b.getInt64Ty(), 2);
  line->addIncoming(i64(0), before);
  Value *address =
      b.CreateGEP(b.getInt8Ty(), base, b.CreateMul(line, i64(memoryLineBytes)));
  b.CreateIntrinsic(llvm::Intrinsic::prefetch, {address->getType()},
                    {address, b.getInt32(0), b.getInt32(3), b.getInt32(1)});
  Value *next = b.CreateAdd(line, i64(1));
  line->addIncoming(next, body);
  b.CreateCondBr(b.CreateICmpSLT(next, lines), body, after);
  b.SetInsertPoint(after);
}

/// Elements that data choose from a row of memory come in no order that the
/// machine foresees, and a gather waits for each line. Where more are chosen
/// than the row has lines, all of them are asked for in front.
void KernelEmitter::prefetchRow(const AccessOp &access, const PiecePlace &at,
                                const PlanOfPiece &piece, int64_t bytes) {
  constexpr int64_t perLine = 2;
  unsigned lane = access.tile.getRank() - 1;
  if (access.rank == 0 || !hasAvx512(isa)) // loads of elements don't wait
    return;
  auto results = access.map.getResults().take_front(access.rank);
  if (!at.offsets.wide || !llvm::isa<mlir::AffineSymbolExpr>(results.back()) ||
      llvm::any_of(results.drop_back(),
                   [&](mlir::AffineExpr e) { return e.isFunctionOfDim(lane); }))
    return;
  int64_t chosen = access.tile.getShape().back(), most = chosen / perLine;
  mlir::AffineExpr extent = access.shape.getResult(access.rank - 1);
  std::optional<int64_t> known = graph::constantOf(extent);
  // A short tile in front of an open end follows others, which have asked.
  if (known ? *known * bytes > most * memoryLineBytes : chosen <= lanes)
    return;
  LaneInt length = evaluate(extent, {}, piece.symbols, {});
  if (!length.isScalar())
    return;
  Value *lines =
      b.CreateLShr(b.CreateAdd(b.CreateMul(length.scalar, i64(bytes)),
                               i64(memoryLineBytes - 1)),
                   llvm::Log2_64(memoryLineBytes));
  // The tiles of a row follow each other. What the slot has at first, of which
  // nothing is known, makes no difference but to what is asked for.
  Value *slot = allocateScratch(sizeof(void *));
  Value *asks = b.CreateICmpNE(
      b.CreateAlignedLoad(b.getPtrTy(), slot, llvm::Align(sizeof(void *))),
      at.base);
  b.CreateAlignedStore(at.base, slot, llvm::Align(sizeof(void *)));
  if (!known)
    asks = b.CreateAnd(asks, b.CreateICmpSLE(lines, i64(most)));
  prefetchLines(at.base, b.CreateSelect(asks, lines, i64(0)));
}

/// A run of elements that are narrower than what the machine loads under a
/// mask: a register where all of them are wanted, as mostly, zeros where none
/// is, as behind short rows, else those from `guard.first` to `guard.end` one
/// by one.
Value *KernelEmitter::loadNarrow(llvm::FixedVectorType *type, Value *address,
                                 const LaneGuard &guard, llvm::MDNode *apart) {
  llvm::Type *element = type->getElementType();
  int64_t width = type->getNumElements();
  llvm::Align align(element->getPrimitiveSizeInBits() / 8);
  auto newBlock = [&](llvm::StringRef name) {
    return llvm::BasicBlock::Create(context, name, kernel);
  };
  llvm::BasicBlock *all = newBlock("all"), *part = newBlock("part"),
                   *some = newBlock("some"), *after = newBlock("loaded");
  auto widened = [&](Value *place) {
    return b.CreateSExt(place, b.getInt64Ty());
  };
  Value *first = guard.first ? widened(guard.first) : i64(0),
        *end = guard.end ? widened(guard.end) : i64(width);
  b.CreateCondBr(b.CreateICmpEQ(b.CreateSub(end, first), i64(width)), all,
                 part);
  b.SetInsertPoint(all);
  Value *whole =
      withScopes(b.CreateAlignedLoad(type, address, align), nullptr, apart);
  b.CreateBr(after);

  b.SetInsertPoint(part);
  b.CreateCondBr(b.CreateICmpSLT(first, end), some, after);
  b.SetInsertPoint(some);
  Value *picked = llvm::PoisonValue::get(type);
  for (int64_t i = 0; i < width; ++i) {
    Value *isWanted = b.CreateICmpSLT(i64(i), end);
    if (guard.first)
      isWanted = b.CreateAnd(isWanted, b.CreateICmpSGE(i64(i), first));
    Value *place =
        b.CreateSelect(isWanted, b.CreateConstGEP1_64(element, address, i),
                       zeros(align.value()));
    picked = b.CreateInsertElement(
        picked,
        withScopes(b.CreateAlignedLoad(element, place, align), nullptr, apart),
        i);
  }
  b.CreateBr(after);

  b.SetInsertPoint(after);
  llvm::PHINode *result = b.CreatePHI(type, 3);
  result->addIncoming(whole, all);
  result->addIncoming(llvm::Constant::getNullValue(type), part);
  result->addIncoming(picked, some);
  return result;
}

Value *KernelEmitter::loadPiece(tile::LoadOp op, int64_t row, int64_t chunk,
                                int64_t innermost) {
  PiecePlace at =
      place(AccessOp::get(op), innermost, row, chunk, /*load=*/true);
  mlir::Type element = op.getType().getElementType();
  llvm::Type *scalarType = memoryType(element),
             *type = pieceType(scalarType, at.width);
  int64_t bytes = memoryBytes(element);
  llvm::Align align(bytes);
  llvm::MDNode *apart = noalias.lookup(op);
  auto load = [&](llvm::Type *loaded, Value *address) {
    auto *one = b.CreateAlignedLoad(loaded, address, align);
    one->setVolatile(inOrder);
    return withScopes(one, nullptr, apart);
  };

  if (at.stride == 0) {
    Value *address = at.base;
    Value *any = at.guard.scalar;
    if (at.guard.mask) {
      Value *real = at.guard.mask;
      if (at.valid < at.width)
        real = b.CreateAnd(real, laneMask(at.valid, at.width));
      any = conjunction(b, any, b.CreateOrReduce(real));
    }
    if (any)
      address = b.CreateSelect(any, address, zeros(bytes));
    Value *value = splat(load(scalarType, address), at.width);
    if (at.guard.mask)
      value = b.CreateSelect(at.guard.mask, value,
                             llvm::Constant::getNullValue(type));
    return fromMemory(value, element);
  }

  Value *mask = at.guard.mask;
  if (at.valid < at.width)
    mask = conjunction(b, mask, laneMask(at.valid, at.width));
  bool maskable = bytes >= 4 || hasAvx512(isa);
  auto runAddress = [&] {
    return at.guard.scalar ? b.CreateSelect(at.guard.scalar, at.base,
                                            zeros(at.width * bytes))
                           : at.base;
  };
  if (at.stride == 1 && (!mask || maskable)) {
    Value *address = runAddress();
    if (!mask)
      return fromMemory(load(type, address), element);
    llvm::SmallVector<Value *> parts =
        registerParts(mask, at.guard.leading, bytes);
    int64_t width = at.width / parts.size();
    auto *partType = llvm::FixedVectorType::get(scalarType, width);
    llvm::Constant *zero = llvm::Constant::getNullValue(partType);
    for (auto [i, part] : llvm::enumerate(parts))
      part = part ? withScopes(
                        b.CreateMaskedLoad(partType,
                                           b.CreateConstGEP1_64(
                                               scalarType, address, i * width),
                                           align, part, zero),
                        nullptr, apart)
                  : (Value *)zero;
    return fromMemory(concatenate(parts), element);
  }
  if (at.stride == 1 && at.valid == at.width &&
      (at.guard.first || at.guard.end))
    return fromMemory(loadNarrow(llvm::cast<llvm::FixedVectorType>(type),
                                 runAddress(), at.guard, apart),
                      element);

  // Elements apart.
  if (Value *value = loadSpread(op, at, at.guard.mask ? mask : nullptr))
    return fromMemory(value, element);
  if (chunk == 0 && innermost < 0)
    prefetchRow(AccessOp::get(op), at,
                planOfPiece(AccessOp::get(op), innermost, row, chunk), bytes);
  if (Value *value = loadPlanes(
          op, at, planOfPiece(AccessOp::get(op), innermost, row, chunk),
          at.guard.mask ? mask : nullptr))
    return fromMemory(value, element);
  if (at.guard.scalar)
    mask = conjunction(b, mask, splat(at.guard.scalar, at.width));
  if (hasAvx512(isa) && bytes >= 4) {
    Value *addresses =
        b.CreateGEP(scalarType, at.base, laneOffsets(at.offsets, at.width));
    Value *all = mask ? mask : laneMask(at.width, at.width);
    return withScopes(b.CreateMaskedGather(type, addresses, align, all,
                                           llvm::Constant::getNullValue(type)),
                      nullptr, apart);
  }
  Value *value = llvm::PoisonValue::get(type);
  for (int64_t i = 0; i < at.valid; ++i) {
    Value *address =
        b.CreateGEP(scalarType, at.base, laneOffset(at.offsets, i));
    if (mask)
      address = b.CreateSelect(b.CreateExtractElement(mask, i), address,
                               zeros(bytes));
    value = b.CreateInsertElement(value, load(scalarType, address), i);
  }
  return fromMemory(value, element);
}

/// The distance of each lane from the base: of 32 bits where these hold it. All
/// lanes of a tensor without elements lie at one place.
Value *KernelEmitter::laneOffsets(const LaneInt &offsets, int64_t width) {
  bool narrow = offsets.small && !offsets.wide;
  return narrow ? offsets.small : widen(offsets, width);
}

Value *KernelEmitter::laneOffset(const LaneInt &offsets, int64_t index) {
  Value *sum = offsets.scalar;
  if (offsets.small)
    sum = b.CreateAdd(sum,
                      b.CreateSExt(b.CreateExtractElement(offsets.small, index),
                                   b.getInt64Ty()));
  if (offsets.wide)
    sum = b.CreateAdd(sum, b.CreateExtractElement(offsets.wide, index));
  return sum;
}

Value *KernelEmitter::elementPointer(tile::LoadOp op,
                                     llvm::ArrayRef<int64_t> coordinates,
                                     int64_t zeroBytes) {
  AccessOp access = AccessOp::get(op);
  const AccessPlan &whole = plan(access);
  llvm::SmallVector<LaneInt> dims;
  for (int64_t coordinate : coordinates)
    dims.push_back(constantInt(coordinate));
  SymbolValues symbols;
  Geometry one(access.tile, 1);
  symbols = symbolValues(access.symbols, coordinates, 0, one);
  LaneGuard inside = guard(whole, dims, symbols, 1);
  return pointer(whole, dims, symbols, nullptr, &inside, zeroBytes);
}

bool KernelEmitter::hasScalarSymbols(tile::LoadOp op) {
  return llvm::all_of(op.getSymbols(), [](mlir::Value symbol) {
    return !llvm::isa<mlir::RankedTensorType>(symbol.getType());
  });
}

Value *KernelEmitter::loadScalar(tile::LoadOp op, Value *address) {
  mlir::Type element = op.getType().getElementType();
  auto *load = b.CreateAlignedLoad(memoryType(element), address,
                                   llvm::Align(memoryBytes(element)));
  return fromMemory(withScopes(load, nullptr, noalias.lookup(op)), element);
}
