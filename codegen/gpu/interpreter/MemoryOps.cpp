// Pointers, loads, stores, atomics.
#include "codegen/gpu/interpreter/Decoder.h"
#include "codegen/gpu/interpreter/Formats.h"
#include <cstring>

using namespace mlir;
using namespace charonia;
using namespace charonia::interpreter;

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

namespace {

/// The place of a lane's access, in either memory.
uint8_t *placeOf(Warp &warp, const Instruction &i, unsigned lane,
                 unsigned bytes, AccessKind kind, unsigned alignment,
                 const uint8_t *value = nullptr) {
  if (i.flags & handlers::kShared)
    return warp.block.access(warp, i, lane,
                             warp.lanes<uint32_t>(i.a)[lane] + i.constant,
                             bytes, kind, alignment, value);
  return warp.block.machine.access(warp, i, lane,
                                   warp.lanes<uint64_t>(i.a)[lane] + i.constant,
                                   bytes, kind, alignment, value);
}

void countBanks(Warp &warp, const Instruction &i, Mask lanes, unsigned bytes) {
  if (!(i.flags & handlers::kShared))
    return;
  uint32_t addresses[kWarpLanes];
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    addresses[lane] = warp.lanes<uint32_t>(i.a)[lane] + i.constant;
  warp.block.countBanks(i, lanes, addresses, bytes);
}

} // namespace

void handlers::load(Warp &warp, const Instruction &i) {
  const std::vector<uint32_t> &list = warp.block.machine.program.lists[i.list];
  unsigned count = list.size() - 1, bytes = count * i.bits;
  AccessKind kind =
      i.flags & kNonCoherent ? AccessKind::Constant : AccessKind::Read;
  Mask lanes = warp.active(i.b);
  countBanks(warp, i, lanes, bytes);
  Warp::each(lanes, [&](unsigned lane) {
    const uint8_t *place =
        i.flags & kCluster
            ? warp.block.readInCluster(
                  warp, i, lane, warp.lanes<uint32_t>(i.a)[lane] + i.constant,
                  bytes, list[0])
            : placeOf(warp, i, lane, bytes, kind, list[0]);
    for (unsigned e = 0; e < count; ++e) {
      uint64_t value = 0;
      if (place)
        std::memcpy(&value, place + e * i.bits, i.bits);
      if (i.bits > 4)
        warp.lanes<uint64_t>(list[e + 1])[lane] = value;
      else
        warp.lanes<uint32_t>(list[e + 1])[lane] = value;
    }
  });
}

void handlers::store(Warp &warp, const Instruction &i) {
  const std::vector<uint32_t> &list = warp.block.machine.program.lists[i.list];
  unsigned count = list.size() - 1, bytes = count * i.bits;
  AccessKind kind = i.flags & kAtomic ? AccessKind::Atomic : AccessKind::Write;
  Mask lanes = warp.active(i.b);
  countBanks(warp, i, lanes, bytes);
  uint8_t data[64];
  Warp::each(lanes, [&](unsigned lane) {
    for (unsigned e = 0; e < count; ++e) {
      uint64_t value = i.bits > 4 ? warp.lanes<uint64_t>(list[e + 1])[lane]
                                  : warp.lanes<uint32_t>(list[e + 1])[lane];
      std::memcpy(data + e * i.bits, &value, i.bits);
    }
    if (uint8_t *place = placeOf(warp, i, lane, bytes, kind, list[0], data))
      std::memcpy(place, data, bytes);
  });
  if (!(i.flags & kShared))
    Warp::each(warp.mask & ~lanes, [&](unsigned lane) {
      warp.block.machine.noteHeldBack(
          warp, i, lane, warp.lanes<uint64_t>(i.a)[lane] + i.constant, bytes);
    });
}

namespace {

uint32_t spaceFlags(Value pointer) {
  switch (cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace()) {
  case 3:
    return handlers::kShared;
  case 7:
    return handlers::kCluster;
  default:
    return 0;
  }
}

/// Bits of an element in memory; 0 if it is no whole number of bytes.
unsigned memoryBytes(Decoder &d, Type type) {
  unsigned bits = d.bitsOf(type);
  return bits % 8 ? 0 : bits / 8;
}

LogicalResult emitAccess(Decoder &d, Operation *op, Handler handler,
                         Value pointer, Type type, ArrayRef<Slot> slots,
                         std::optional<uint64_t> alignment, uint32_t flags,
                         bool writes) {
  unsigned bytes = memoryBytes(d, type);
  if (!bytes)
    return op->emitError("the interpreter keeps whole bytes in memory");
  if (writes && spaceFlags(pointer) == handlers::kCluster)
    return op->emitError("the interpreter only reads shared memory of other "
                         "blocks");
  unsigned total = bytes * slots.size();
  if (total > 64)
    return op->emitError("the interpreter moves up to 64 bytes at once");
  std::vector<uint32_t> list{uint32_t(alignment.value_or(bytes))};
  list.insert(list.end(), slots.begin(), slots.end());
  d.noteAccess(pointer, std::min<unsigned>(total, list[0]), writes);
  uint32_t number = d.addList(std::move(list));
  Slot address = d.slot(pointer);
  Instruction &i = d.emit(op, handler);
  i.a = address;
  i.bits = bytes;
  i.list = number;
  i.flags = flags | spaceFlags(pointer);
  return success();
}

LogicalResult decodeLoad(Decoder &d, Operation *op) {
  auto load = cast<LLVM::LoadOp>(op);
  SmallVector<Slot, 4> slots = d.define(load.getResult());
  return emitAccess(d, op, handlers::load, load.getAddr(), load.getType(),
                    slots, load.getAlignment(),
                    load.getInvariant() ? handlers::kNonCoherent : 0, false);
}

/// Memory of the device is updated for all of it: a narrower scope would be no
/// order for the other program instances, and no run here would show it.
LogicalResult checkScope(Operation *op, Value pointer,
                         std::optional<StringRef> scope) {
  if (spaceFlags(pointer) == handlers::kCluster)
    return op->emitError("the interpreter only reads shared memory of other "
                         "blocks");
  bool isShared = spaceFlags(pointer) == handlers::kShared;
  if (isShared || !scope || scope->empty() || *scope == "device")
    return success();
  return op->emitError("is atomic for the scope '")
         << *scope << "' alone, and other program instances share its memory";
}

LogicalResult decodeStore(Decoder &d, Operation *op) {
  auto store = cast<LLVM::StoreOp>(op);
  using Ordering = LLVM::AtomicOrdering;
  bool isAtomic = store.getOrdering() == Ordering::monotonic;
  if (!isAtomic && store.getOrdering() != Ordering::not_atomic)
    return op->emitError("the interpreter does not know this kind of atomic");
  if (isAtomic && failed(checkScope(op, store.getAddr(), store.getSyncscope())))
    return failure();
  SmallVector<Slot> slots(d.slots(store.getValue()));
  return emitAccess(d, op, handlers::store, store.getAddr(),
                    store.getValue().getType(), slots, store.getAlignment(),
                    isAtomic ? handlers::kAtomic : 0, true);
}

//===----------------------------------------------------------------------===//
// Pointers
//===----------------------------------------------------------------------===//

/// `a` + `b` (of `bits`, signed) * `flags` + `constant`; `b` may be absent.
template <typename Address> void offset(Warp &warp, const Instruction &i) {
  Address *result = warp.lanes<Address>(i.result);
  const Address *base = warp.lanes<Address>(i.a);
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    int64_t index = i.b == kNoSlot ? 0
                    : i.bits > 32  ? int64_t(warp.lanes<uint64_t>(i.b)[lane])
                                   : int32_t(warp.lanes<uint32_t>(i.b)[lane]);
    result[lane] =
        base[lane] + Address(uint64_t(index) * i.flags) + Address(i.constant);
  }
}

LogicalResult decodeOffset(Decoder &d, Operation *op) {
  auto gep = cast<LLVM::GEPOp>(op);
  if (gep.getIndices().size() != 1 || !gep.getElemType().isIntOrFloat())
    return op->emitError("the interpreter offsets by one index of numbers");
  unsigned bytes = memoryBytes(d, gep.getElemType());
  if (!bytes)
    return op->emitError("the interpreter keeps whole bytes in memory");
  Slot base = d.slot(gep.getBase()), index = kNoSlot;
  int64_t constant = 0;
  unsigned bits = 32;
  auto by = gep.getIndices()[0];
  if (auto value = dyn_cast<Value>(by)) {
    index = d.slot(value);
    bits = d.bitsOf(value.getType());
  } else {
    constant = cast<IntegerAttr>(by).getValue().getSExtValue() * int64_t(bytes);
  }
  Slot result = d.define(gep.getResult()).front();
  bool isNarrow = d.bitsOf(gep.getType()) == 32;
  Instruction &i = d.emit(op, isNarrow ? offset<uint32_t> : offset<uint64_t>);
  i.result = result;
  i.a = base;
  i.b = index;
  i.bits = bits;
  i.flags = bytes;
  i.constant = constant;
  return success();
}

/// The block's shared memory, the only symbol there is: it begins at 0.
LogicalResult decodeAddressOf(Decoder &d, Operation *op) {
  auto address = cast<LLVM::AddressOfOp>(op);
  if (spaceFlags(address.getRes()) != handlers::kShared)
    return op->emitError("the interpreter knows shared memory alone");
  d.alias(address.getRes(), d.constant(op, 0, 32));
  return success();
}

/// Of shared memory, as a number of 32 bits.
LogicalResult decodeAddress(Decoder &d, Operation *op) {
  auto number = cast<LLVM::PtrToIntOp>(op);
  if (spaceFlags(number.getArg()) != handlers::kShared ||
      !number.getType().isInteger(32))
    return op->emitError("the interpreter takes addresses of shared memory");
  d.alias(number.getRes(), Slot(d.slot(number.getArg())));
  return success();
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

template <typename T, typename F>
void update(uint8_t *place, uint64_t operand, uint64_t &old, F combine) {
  T before;
  std::memcpy(&before, place, sizeof(T));
  T after = combine(before, T(operand));
  std::memcpy(place, &after, sizeof(T));
  old = before;
}

/// `flags` beside the memory's: the operation from bit 8 on; `c`: the operand.
template <typename T, typename F>
void atomic(Warp &warp, const Instruction &i, F combine) {
  Warp::each(warp.mask, [&](unsigned lane) {
    uint8_t *place =
        placeOf(warp, i, lane, sizeof(T), AccessKind::Atomic, sizeof(T));
    if (!place)
      return;
    uint64_t old = 0, operand = sizeof(T) > 4 ? warp.lanes<uint64_t>(i.c)[lane]
                                              : warp.lanes<uint32_t>(i.c)[lane];
    update<T>(place, operand, old, combine);
    if (sizeof(T) > 4)
      warp.lanes<uint64_t>(i.result)[lane] = old;
    else
      warp.lanes<uint32_t>(i.result)[lane] = old;
  });
}

template <typename T, auto F>
void atomicInteger(Warp &warp, const Instruction &i) {
  atomic<T>(warp, i, [](T a, T b) { return T(F(a, b)); });
}
template <typename Format, typename T, auto F>
void atomicFloat(Warp &warp, const Instruction &i) {
  atomic<T>(warp, i, [](T a, T b) {
    return T(Format::round(F(Format::read(a), Format::read(b))));
  });
}

template <auto F> Handler integerAtomic(unsigned bits) {
  return bits == 32   ? atomicInteger<uint32_t, F>
         : bits == 64 ? atomicInteger<uint64_t, F>
                      : Handler(nullptr);
}
template <auto F> Handler floatAtomic(Type type) {
  return type.isF32()    ? atomicFloat<Single, uint32_t, F>
         : type.isF64()  ? atomicFloat<Double, uint64_t, F>
         : type.isF16()  ? atomicFloat<Half, uint16_t, F>
         : type.isBF16() ? atomicFloat<Bfloat, uint16_t, F>
                         : Handler(nullptr);
}

Handler atomicOf(LLVM::AtomicBinOp kind, Type type, unsigned bits) {
  using K = LLVM::AtomicBinOp;
  switch (kind) {
  case K::add:
    return integerAtomic<[](auto a, auto b) { return a + b; }>(bits);
  case K::umax:
    return integerAtomic<[](auto a, auto b) { return std::max(a, b); }>(bits);
  case K::umin:
    return integerAtomic<[](auto a, auto b) { return std::min(a, b); }>(bits);
  case K::max:
    return integerAtomic<[](auto a, auto b) {
      using Signed = std::make_signed_t<decltype(a)>;
      return Signed(a) < Signed(b) ? b : a;
    }>(bits);
  case K::min:
    return integerAtomic<[](auto a, auto b) {
      using Signed = std::make_signed_t<decltype(a)>;
      return Signed(a) < Signed(b) ? a : b;
    }>(bits);
  case K::fadd:
    return floatAtomic<[](auto a, auto b) { return a + b; }>(type);
  case K::fmax:
    return floatAtomic<[](auto a, auto b) { return std::fmax(a, b); }>(type);
  case K::fmin:
    return floatAtomic<[](auto a, auto b) { return std::fmin(a, b); }>(type);
  default:
    return nullptr;
  }
}

LogicalResult decodeAtomic(Decoder &d, Operation *op) {
  auto atomic = cast<LLVM::AtomicRMWOp>(op);
  Type type = atomic.getVal().getType();
  unsigned bits = d.bitsOf(type);
  Handler handler = atomicOf(atomic.getBinOp(), type, bits);
  if (!handler || atomic.getOrdering() != LLVM::AtomicOrdering::monotonic)
    return op->emitError("the interpreter does not know this kind of atomic");
  if (failed(checkScope(op, atomic.getPtr(), atomic.getSyncscope())))
    return failure();
  d.noteAccess(atomic.getPtr(), bits / 8, true);
  Slot result = d.define(atomic.getRes()).front();
  Instruction &i = d.emit(op, handler);
  i.result = result;
  i.a = d.slot(atomic.getPtr());
  i.c = d.slot(atomic.getVal());
  i.flags = spaceFlags(atomic.getPtr());
  return success();
}

/// Puts `c` where `b` is; gives what was there, and whether it was `b`.
template <typename T> void exchange(Warp &warp, const Instruction &i) {
  const std::vector<uint32_t> &results =
      warp.block.machine.program.lists[i.list];
  Warp::each(warp.mask, [&](unsigned lane) {
    uint8_t *place =
        placeOf(warp, i, lane, sizeof(T), AccessKind::Atomic, sizeof(T));
    if (!place)
      return;
    T found, value = warp.lanes<T>(i.c)[lane];
    std::memcpy(&found, place, sizeof(T));
    bool isSame = found == warp.lanes<T>(i.b)[lane];
    if (isSame)
      std::memcpy(place, &value, sizeof(T));
    warp.lanes<T>(results[0])[lane] = found;
    warp.lanes<uint32_t>(results[1])[lane] = isSame;
  });
}

LogicalResult decodeExchange(Decoder &d, Operation *op) {
  auto exchanged = cast<LLVM::AtomicCmpXchgOp>(op);
  unsigned bits = d.bitsOf(exchanged.getVal().getType());
  constexpr auto relaxed = LLVM::AtomicOrdering::monotonic;
  if ((bits != 32 && bits != 64) || exchanged.getSuccessOrdering() != relaxed ||
      exchanged.getFailureOrdering() != relaxed)
    return op->emitError("the interpreter does not know this kind of atomic");
  if (failed(checkScope(op, exchanged.getPtr(), exchanged.getSyncscope())))
    return failure();
  d.noteAccess(exchanged.getPtr(), bits / 8, true);
  SmallVector<Slot, 4> results = d.define(exchanged.getRes());
  uint32_t list = d.addList({results.begin(), results.end()});
  Instruction &i =
      d.emit(op, bits == 32 ? exchange<uint32_t> : exchange<uint64_t>);
  i.a = d.slot(exchanged.getPtr());
  i.b = d.slot(exchanged.getCmp());
  i.c = d.slot(exchanged.getVal());
  i.list = list;
  i.flags = spaceFlags(exchanged.getPtr());
  return success();
}

} // namespace

void charonia::interpreter::addMemory(OperationTable &table) {
  table["llvm.load"] = decodeLoad;
  table["llvm.store"] = decodeStore;
  table["llvm.getelementptr"] = decodeOffset;
  table["llvm.mlir.addressof"] = decodeAddressOf;
  table["llvm.ptrtoint"] = decodeAddress;
  table["llvm.atomicrmw"] = decodeAtomic;
  table["llvm.cmpxchg"] = decodeExchange;
}
