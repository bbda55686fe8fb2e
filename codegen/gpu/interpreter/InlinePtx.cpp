// Inline PTX: its statements become instructions one by one. A statement that
// is not known is an error that shows it.
#include "codegen/gpu/interpreter/Decoder.h"
#include "codegen/gpu/interpreter/Formats.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>

using namespace mlir;
using namespace charonia;
using namespace charonia::interpreter;

namespace {

struct Operand {
  enum class Kind { Register, Immediate, Address, Vector, Sink } kind;
  llvm::SmallVector<Slot, 4> slots; ///< Of a register, address or vector.
  int64_t value = 0;                ///< Immediate, or an address's offset.
  int argument = -1;                ///< Address: which operand points there.
};

/// One inline assembly operation.
class PtxDecoder {
public:
  PtxDecoder(Decoder &d, LLVM::InlineAsmOp op) : d(d), op(op) {}

  LogicalResult run() {
    bindOperands();
    StringRef text = StringRef(op.getAsmString()).trim();
    if (text.consume_front("{"))
      text.consume_back("}");
    SmallVector<StringRef> statements;
    text.split(statements, ';');
    for (StringRef one : statements)
      if (one = one.trim(); !one.empty() && failed(decodeStatement(one)))
        return failure();
    return success();
  }

private:
  using Decode = LogicalResult (PtxDecoder::*)();

  LogicalResult unknown() {
    return op->emitError("the interpreter does not know the inline PTX '")
           << statement << ";'";
  }

  /// $0, $1, ...: results, then operands.
  void bindOperands() {
    if (op.getNumResults())
      for (Slot slot : d.define(op.getResult(0)))
        numbered.push_back({slot, {}});
    for (Value operand : op.getOperands())
      numbered.push_back({d.slot(operand), operand});
  }

  LogicalResult decodeStatement(StringRef text) {
    statement = text;
    guard = kNoSlot;
    guardIsNegative = false;
    if (text.consume_front("@")) {
      guardIsNegative = text.consume_front("!");
      auto [name, rest] = text.split(' ');
      Operand predicate;
      if (failed(parseOperand(name, predicate)))
        return failure();
      guard = predicate.slots[0];
      text = rest.trim();
    }
    auto [mnemonic, rest] = text.split(' ');
    parts.clear();
    mnemonic.split(parts, '.');
    if (mnemonic.starts_with(".reg"))
      return declare(mnemonic, rest.trim());
    operands.clear();
    if (failed(parseOperands(rest.trim())))
      return failure();
    static const llvm::StringMap<Decode> known = {
        {"mov", &PtxDecoder::decodeMove},
        {"ld", &PtxDecoder::decodeAccess},
        {"st", &PtxDecoder::decodeAccess},
        {"cvt", &PtxDecoder::decodeConvert},
        {"fence", &PtxDecoder::decodeFence},
        {"barrier", &PtxDecoder::decodeBarrier},
        {"setp", &PtxDecoder::decodeSetPredicate},
        {"atom", &PtxDecoder::decodeAtomic},
        {"wgmma", &PtxDecoder::decodeWarpgroup},
        {"mbarrier", &PtxDecoder::decodeArrive},
        {"exit", &PtxDecoder::decodeExit}};
    auto entry = known.find(parts[0]);
    return entry == known.end() ? unknown() : (this->*entry->second)();
  }

  /// ".reg .pred first, last"
  LogicalResult declare(StringRef, StringRef rest) {
    auto [type, names] = rest.split(' ');
    unsigned bits = type.ends_with("64") ? 64 : 32;
    SmallVector<StringRef> list;
    names.split(list, ',');
    for (StringRef name : list)
      named[name.trim()] = d.newSlot(bits);
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Operands
  //===--------------------------------------------------------------------===//

  LogicalResult parseOperands(StringRef text) {
    while (!text.empty()) {
      size_t end = text.starts_with("{") ? text.find('}') : 0;
      end = text.find(',', end == StringRef::npos ? 0 : end);
      if (failed(parseOperand(text.take_front(end).trim(),
                              operands.emplace_back())))
        return failure();
      text = end == StringRef::npos ? "" : text.drop_front(end + 1).trim();
    }
    return success();
  }

  LogicalResult parseOperand(StringRef text, Operand &operand) {
    if (text.consume_front("{") && text.consume_back("}")) {
      operand.kind = Operand::Kind::Vector;
      SmallVector<StringRef> members;
      text.split(members, ',');
      for (StringRef member : members) {
        Operand one;
        if (failed(parseOperand(member.trim(), one)) ||
            one.kind != Operand::Kind::Register)
          return unknown();
        operand.slots.push_back(one.slots[0]);
      }
      return success();
    }
    if (text.consume_front("[") && text.consume_back("]")) {
      auto [base, offset] = text.split('+');
      if (failed(parseOperand(base, operand)) ||
          operand.kind != Operand::Kind::Register ||
          (!offset.empty() && offset.getAsInteger(10, operand.value)))
        return unknown();
      operand.kind = Operand::Kind::Address;
      return success();
    }
    if (text == "_") {
      operand.kind = Operand::Kind::Sink;
      return success();
    }
    if (!text.getAsInteger(10, operand.value)) {
      operand.kind = Operand::Kind::Immediate;
      return success();
    }
    operand.kind = Operand::Kind::Register;
    unsigned number;
    if (text.consume_front("$")) {
      if (text.getAsInteger(10, number) || number >= numbered.size())
        return unknown();
      operand.slots.push_back(numbered[number].first);
      operand.argument = number;
      return success();
    }
    auto entry = named.find(text);
    if (entry == named.end())
      return unknown();
    operand.slots.push_back(entry->second);
    return success();
  }

  bool has(StringRef part) { return llvm::is_contained(parts, part); }
  bool areKinds(ArrayRef<Operand::Kind> kinds) {
    return llvm::equal(operands, kinds,
                       [](auto &o, auto kind) { return o.kind == kind; });
  }
  Slot valueOf(const Operand &operand) {
    return operand.kind == Operand::Kind::Immediate
               ? d.constant(op, operand.value, 32)
               : operand.slots[0];
  }
  /// The guard as a slot; what has none gives none.
  Slot guardSlot() {
    if (!guardIsNegative)
      return guard;
    Slot inverted = d.newSlot(32);
    Instruction &i = d.emit(op, invert);
    i.result = inverted;
    i.a = guard;
    return inverted;
  }

  //===--------------------------------------------------------------------===//
  // Statements
  //===--------------------------------------------------------------------===//

  LogicalResult decodeMove() {
    using K = Operand::Kind;
    if (guard || !areKinds({K::Register, K::Immediate}) || has("b64"))
      return unknown();
    Instruction &i = d.emit(op, handlers::setConstant);
    i.result = operands[0].slots[0];
    i.bits = 32;
    i.constant = operands[1].value;
    return success();
  }

  /// ld.global[.nc][.v2|.v4].b32 and st.global
  LogicalResult decodeAccess() {
    bool isLoad = parts[0] == "ld";
    unsigned bits = 0;
    if (operands.size() != 2 || !has("global") ||
        parts.back().drop_front().getAsInteger(10, bits) || bits % 8)
      return unknown();
    const Operand &address = operands[isLoad ? 1 : 0],
                  &values = operands[isLoad ? 0 : 1];
    for (StringRef part : ArrayRef<StringRef>(parts).drop_front().drop_back())
      if (part != "global" && part != "v2" && part != "v4" &&
          !(isLoad && part == "nc"))
        return unknown();
    if (address.kind != Operand::Kind::Address || address.argument < 0 ||
        (values.kind != Operand::Kind::Register &&
         values.kind != Operand::Kind::Vector) ||
        values.slots.size() != (has("v4")   ? 4
                                : has("v2") ? 2
                                            : 1))
      return unknown();
    unsigned bytes = bits / 8 * values.slots.size();
    Value pointer = numbered[address.argument].second;
    if (!pointer || !isa<LLVM::LLVMPointerType>(pointer.getType()))
      return unknown();
    d.noteAccess(pointer, bytes, !isLoad);
    std::vector<uint32_t> list{bytes};
    list.insert(list.end(), values.slots.begin(), values.slots.end());
    uint32_t number = d.addList(std::move(list));
    Slot predicate = guardSlot();
    Instruction &i = d.emit(op, isLoad ? handlers::load : handlers::store);
    i.a = address.slots[0];
    i.b = predicate;
    i.bits = bits / 8;
    i.constant = address.value;
    i.list = number;
    i.flags = has("nc") ? handlers::kNonCoherent : 0;
    return success();
  }

  LogicalResult decodeConvert() {
    using K = Operand::Kind;
    if (guard || !areKinds({K::Register, K::Register}) ||
        parts != ArrayRef<StringRef>{"cvt", "rna", "tf32", "f32"})
      return unknown();
    Instruction &i = d.emit(op, handlers::roundToTf32);
    i.result = operands[0].slots[0];
    i.a = operands[1].slots[0];
    return success();
  }

  /// Orders what one thread does in memory, which here is in order already;
  /// what others did before the kernel began it sees from here on.
  LogicalResult decodeFence() {
    if (parts == ArrayRef<StringRef>{"fence", "acq_rel", "gpu"})
      d.emit(op,
             [](Warp &warp, const Instruction &) { warp.fenced |= warp.mask; });
    return success();
  }

  /// barrier.sync 0, barrier.red.or.pred p, 0, q
  LogicalResult decodeBarrier() {
    using K = Operand::Kind;
    bool votes = areKinds({K::Register, K::Immediate, K::Register}) &&
                 parts == ArrayRef<StringRef>{"barrier", "red", "or", "pred"};
    bool syncs = areKinds({K::Immediate}) &&
                 parts == ArrayRef<StringRef>{"barrier", "sync"};
    if (guard || (!votes && !syncs) || operands[votes ? 1 : 0].value != 0)
      return unknown();
    Instruction &i = d.emit(op, handlers::barrier);
    i.flags = votes;
    if (votes) {
      i.result = operands[0].slots[0];
      i.a = operands[2].slots[0];
    }
    return success();
  }

  /// setp.eq.u32 p, a, b and setp.eq.and.u32 p, a, b, q; setp.ne.b32 p, 1, 0
  LogicalResult decodeSetPredicate() {
    using K = Operand::Kind;
    if (!guard && parts == ArrayRef<StringRef>{"setp", "ne", "b32"} &&
        areKinds({K::Register, K::Immediate, K::Immediate})) {
      constants[operands[0].slots[0]] = operands[1].value != operands[2].value;
      return success();
    }
    bool combines = parts == ArrayRef<StringRef>{"setp", "eq", "and", "u32"};
    if (guard || operands.size() != (combines ? 4 : 3) ||
        (!combines && parts != ArrayRef<StringRef>{"setp", "eq", "u32"}))
      return unknown();
    Slot a = valueOf(operands[1]), b = valueOf(operands[2]);
    Instruction &i = d.emit(op, setIfEqual);
    i.result = operands[0].slots[0];
    i.a = a;
    i.b = b;
    if (combines)
      i.c = operands[3].slots[0];
    return success();
  }

  /// atom.acq_rel.gpu.global.inc.u32 old, [address], last
  LogicalResult decodeAtomic() {
    using K = Operand::Kind;
    if (!areKinds({K::Register, K::Address, K::Immediate}) ||
        parts != ArrayRef<StringRef>{"atom", "acq_rel", "gpu", "global", "inc",
                                     "u32"} ||
        operands[1].argument < 0)
      return unknown();
    d.noteAccess(numbered[operands[1].argument].second, 4, true);
    Slot predicate = guardSlot(), last = valueOf(operands[2]);
    Instruction &i = d.emit(op, increment);
    i.result = operands[0].slots[0];
    i.a = operands[1].slots[0];
    i.b = predicate;
    i.c = last;
    i.constant = operands[1].value;
    return success();
  }

  LogicalResult decodeWarpgroup() {
    return has("mma_async") ? decodeRegisterDot() : decodeWaitForDots();
  }

  /// wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {results}, {left},
  /// right, p, 1, 1, transposed; the totals are tied to the results.
  LogicalResult decodeRegisterDot() {
    using K = Operand::Kind;
    unsigned columns = 0;
    StringRef shape = parts.size() == 8 ? parts[4] : "";
    if (guard || !shape.consume_front("m64n") || !shape.consume_back("k16") ||
        shape.getAsInteger(10, columns) || parts[5] != "f32" ||
        (parts[6] != "f16" && parts[6] != "bf16") || parts[7] != parts[6] ||
        !areKinds({K::Vector, K::Vector, K::Register, K::Register, K::Immediate,
                   K::Immediate, K::Immediate}) ||
        operands[0].slots.size() * 2 != columns ||
        operands[1].slots.size() != 4 || operands[4].value != 1 ||
        operands[5].value != 1)
      return unknown();
    // Whether there are totals is known: the predicate compares constants.
    auto scale = constants.find(operands[3].slots[0]);
    size_t count = operands[0].slots.size(), others = op->getNumOperands() - 5;
    if (scale == constants.end() || others != (scale->second ? count : 0))
      return unknown();
    RegisterDot dot{
        operands[0].slots,    operands[1].slots,  {},
        operands[2].slots[0], parts[6] == "bf16", operands[6].value == 0};
    for (size_t i = 0; i < others; ++i)
      dot.totals.push_back(numbered[count + i].first);
    handlers::startRegisterDot(d, op, dot);
    return success();
  }

  /// wgmma.wait_group.sync.aligned 0, through which the operands pass.
  LogicalResult decodeWaitForDots() {
    using K = Operand::Kind;
    size_t results = numbered.size() - op->getNumOperands();
    if (guard || !areKinds({K::Immediate}) || results != op->getNumOperands() ||
        parts != ArrayRef<StringRef>{"wgmma", "wait_group", "sync", "aligned"})
      return unknown();
    d.emit(op, handlers::waitForDots).constant = operands[0].value;
    SmallVector<Slot> to, from;
    for (size_t i = 0; i < results; ++i) {
      to.push_back(numbered[i].first);
      from.push_back(numbered[results + i].first);
    }
    d.emitCopies(op, to, from, SmallVector<unsigned>(results, 32));
    return success();
  }

  /// mbarrier.arrive.shared::cta.b64 _, [address]
  LogicalResult decodeArrive() {
    using K = Operand::Kind;
    if (!areKinds({K::Sink, K::Address}) ||
        parts !=
            ArrayRef<StringRef>{"mbarrier", "arrive", "shared::cta", "b64"} ||
        operands[1].argument < 0 || operands[1].value != 0)
      return unknown();
    d.program.hasClocks = true;
    Slot predicate = guardSlot();
    Instruction &i = d.emit(op, handlers::arrive);
    i.a = operands[1].slots[0];
    i.b = predicate;
    return success();
  }

  LogicalResult decodeExit() {
    Slot predicate = guardSlot();
    d.emit(op, exit).a = predicate;
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Handlers
  //===--------------------------------------------------------------------===//

  static void invert(Warp &warp, const Instruction &i) {
    for (unsigned lane = 0; lane < kWarpLanes; ++lane)
      warp.lanes<uint32_t>(i.result)[lane] =
          !(warp.lanes<uint32_t>(i.a)[lane] & 1);
  }

  static void setIfEqual(Warp &warp, const Instruction &i) {
    for (unsigned lane = 0; lane < kWarpLanes; ++lane)
      warp.lanes<uint32_t>(i.result)[lane] =
          warp.lanes<uint32_t>(i.a)[lane] == warp.lanes<uint32_t>(i.b)[lane] &&
          (i.c == kNoSlot || warp.lanes<uint32_t>(i.c)[lane]);
  }

  /// Counts up to `c`, then begins again at 0.
  static void increment(Warp &warp, const Instruction &i) {
    Machine &machine = warp.block.machine;
    Warp::each(warp.active(i.b), [&](unsigned lane) {
      uint64_t address = warp.lanes<uint64_t>(i.a)[lane] + i.constant;
      uint8_t *place =
          machine.access(warp, i, lane, address, 4, AccessKind::Atomic, 4);
      if (!place)
        return;
      uint32_t old;
      std::memcpy(&old, place, 4);
      uint32_t now = old >= warp.lanes<uint32_t>(i.c)[lane] ? 0 : old + 1;
      std::memcpy(place, &now, 4);
      warp.lanes<uint32_t>(i.result)[lane] = old;
      machine.synchronize(warp.block, uint64_t(uintptr_t(place)));
    });
  }

  static void exit(Warp &warp, const Instruction &i) {
    warp.exit(i, warp.active(i.a));
    warp.leftByExit = warp.state == Warp::State::Ended;
  }

  Decoder &d;
  LLVM::InlineAsmOp op;
  std::vector<std::pair<Slot, Value>> numbered;
  llvm::StringMap<Slot> named;
  /// Predicates that are known.
  llvm::DenseMap<Slot, bool> constants;
  // Of the statement that is being decoded.
  StringRef statement;
  Slot guard = kNoSlot;
  bool guardIsNegative = false;
  SmallVector<StringRef> parts;
  SmallVector<Operand> operands;
};

LogicalResult decodeInlinePtx(Decoder &d, Operation *op) {
  return PtxDecoder(d, cast<LLVM::InlineAsmOp>(op)).run();
}

} // namespace

/// To nearest, ties away from zero; NaN and infinity stay.
void handlers::roundToTf32(Warp &warp, const Instruction &i) {
  const uint32_t *a = warp.lanes<uint32_t>(i.a);
  uint32_t *result = warp.lanes<uint32_t>(i.result);
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    bool isFinite = (a[lane] & 0x7f800000) != 0x7f800000;
    result[lane] = (isFinite ? a[lane] + 0x1000 : a[lane]) & 0xffffe000;
  }
}

void charonia::interpreter::addInlinePtx(OperationTable &table) {
  table["llvm.inline_asm"] = decodeInlinePtx;
}
