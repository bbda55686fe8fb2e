// Updates of memory that program instances share: one atomic operation an
// element. Their order is not told, so they are relaxed, and the end of the
// kernel publishes them.
#include "codegen/gpu/lower/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using tile::Update;

/// All threads of the device.
static constexpr llvm::StringLiteral kScope = "device";

/// Registers of a thread that repeat others.
static unsigned repeatedRegisters(const LinearLayout &layout) {
  unsigned mask = 0;
  for (unsigned bit = 0; bit < layout.inBits(Dim::Register); ++bit)
    if (layout.apply(Dim::Register, 1u << bit) == 0)
      mask |= 1u << bit;
  return mask;
}

void KernelLowering::lowerUpdate(tile::StoreOp op) {
  const LinearLayout &layout = simt::layoutOf(op.getValue());
  AddressPlan plan = planAddresses(tile::AccessOp::get(op));
  Values values = elements(op.getValue());
  Value first = firstHolder(layout);
  unsigned repeated = repeatedRegisters(layout);
  for (unsigned reg = 0; reg < values.size(); ++reg) {
    if (reg & repeated)
      continue;
    SmallVector<IndexSum> dims = coordinates(layout, reg);
    SmallVector<IndexSum> symbols = symbolsOf(plan.access, layout, reg);
    Address address = addressOf(plan, dims, symbols);
    Value predicate =
        index->both(first, predicateOf(plan, layout, reg, dims, symbols));
    OpBuilder::InsertionGuard guard(b);
    if (predicate) {
      auto branch = scf::IfOp::create(b, loc, predicate, false);
      b.setInsertionPointToStart(&branch.getThenRegion().front());
    }
    updateElement(pointerOf(address), *op.getUpdate(), values[reg]);
  }
}

/// The machine's own operation, if it has one.
static std::optional<LLVM::AtomicBinOp> nativeOf(Update update, Type type) {
  using K = LLVM::AtomicBinOp;
  bool isFloat = isa<FloatType>(type);
  switch (update) {
  case Update::add:
    return isFloat ? K::fadd : K::add;
  case Update::max:
    return isFloat ? std::nullopt : std::optional(K::max);
  case Update::min:
    return isFloat ? std::nullopt : std::optional(K::min);
  case Update::umax:
    return K::umax;
  case Update::umin:
    return K::umin;
  default:
    return std::nullopt;
  }
}

/// What becomes of `old`, for what a machine has no operation for. NaN wins.
static Value updated(OpBuilder &b, Location loc, Update update, Value old,
                     Value value) {
  switch (update) {
  case Update::mul:
    if (isa<FloatType>(value.getType()))
      return arith::MulFOp::create(b, loc, old, value);
    return arith::MulIOp::create(b, loc, old, value);
  case Update::max:
    return arith::MaximumFOp::create(b, loc, old, value);
  case Update::min:
    return arith::MinimumFOp::create(b, loc, old, value);
  default:
    llvm_unreachable("a machine has this");
  }
}

void KernelLowering::updateElement(Value pointer, Update update, Value value) {
  constexpr auto relaxed = LLVM::AtomicOrdering::monotonic;
  Type type = value.getType();
  unsigned bits = simt::elementBits(type);
  if (update == Update::replace) {
    auto store =
        LLVM::StoreOp::create(b, loc, packBits(value), pointer, bits / 8);
    store.setOrdering(relaxed);
    store.setSyncscope(kScope);
    return;
  }
  if (auto native = nativeOf(update, type)) {
    LLVM::AtomicRMWOp::create(b, loc, *native, pointer, value, relaxed, kScope);
    return;
  }
  // Nothing is read but by the exchange itself; the first guess costs at most
  // one more of them.
  Type word = b.getIntegerType(bits);
  auto as = [&](Value x, Type to) -> Value {
    return x.getType() == to ? x : LLVM::BitcastOp::create(b, loc, to, x);
  };
  Value guess = LLVM::ConstantOp::create(b, loc, b.getIntegerAttr(word, 0));
  scf::WhileOp::create(
      b, loc, TypeRange{word}, ValueRange{guess},
      [&](OpBuilder &, Location, ValueRange expected) {
        Value next = updated(b, loc, update, as(expected[0], type), value);
        Value exchange = LLVM::AtomicCmpXchgOp::create(
            b, loc, pointer, expected[0], as(next, word), relaxed, relaxed,
            kScope);
        Value found = LLVM::ExtractValueOp::create(b, loc, exchange, 0),
              done = LLVM::ExtractValueOp::create(b, loc, exchange, 1);
        Value isTrue = LLVM::ConstantOp::create(b, loc, b.getBoolAttr(true));
        scf::ConditionOp::create(
            b, loc, arith::XOrIOp::create(b, loc, done, isTrue), found);
      },
      [&](OpBuilder &, Location, ValueRange found) {
        scf::YieldOp::create(b, loc, found);
      });
}
