// Registers that one instruction loads or stores, and their elements.
#include "codegen/gpu/lower/Lowering.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

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

/// The instruction that loads `words` registers of `width` bits at `bytes`
/// behind an address, or zeros where its predicate is false; and what its
/// operands are.
static std::pair<std::string, std::string>
guardedLoad(unsigned width, unsigned words, int64_t bytes, bool independent) {
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
  if (bytes)
    text += "+" + std::to_string(bytes);
  text += "];\n}";
  constraints += "l,b";
  return {text, constraints};
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
  auto [text, constraints] =
      guardedLoad(width, words, address.bytes, independent);
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
