//===- ShapeExpr.cpp - Integer functions of the shape symbols -------------===//

#include "charonia/signature.h"
#include "runtime/engine/Format.h"

#include <array>

namespace charonia {

namespace {

using Op = ShapeExpr::Op;

// Deeper programs than this come from nowhere but a hostile file; the bounds
// let evaluation use a fixed stack.
constexpr size_t maxDepth = 256;
/// Of an expression's text in bytes; longer ones end with "...".
constexpr size_t maxText = 4096;

bool isBinary(Op op) { return op >= Op::Add && op <= Op::Min; }

/// nullptr on success, else what went wrong.
const char *apply(Op op, int64_t a, int64_t b, int64_t &result) {
  bool overflow = false;
  switch (op) {
  case Op::Add:
    overflow = __builtin_add_overflow(a, b, &result);
    break;
  case Op::Sub:
    overflow = __builtin_sub_overflow(a, b, &result);
    break;
  case Op::Mul:
    overflow = __builtin_mul_overflow(a, b, &result);
    break;
  case Op::FloorDiv:
  case Op::CeilDiv:
  case Op::Mod: {
    if (b < 1)
      return "divides by a number below 1";
    int64_t quotient = a / b, remainder = a % b;
    if (remainder < 0) {
      --quotient;
      remainder += b;
    }
    if (op == Op::Mod)
      result = remainder;
    else
      result = quotient + (op == Op::CeilDiv && remainder != 0);
    break;
  }
  case Op::Max:
    result = a > b ? a : b;
    break;
  case Op::Min:
    result = a < b ? a : b;
    break;
  default:
    return "has an unknown operator";
  }
  return overflow ? "overflows 64 bits" : nullptr;
}

} // namespace

ShapeExpr ShapeExpr::symbol(unsigned index) {
  return fromTerms({{Op::Symbol, static_cast<int64_t>(index)}});
}

ShapeExpr ShapeExpr::fromTerms(std::vector<Term> terms) {
  ShapeExpr expr;
  if (terms.size() != 1 || terms[0] != Term())
    expr.code = std::move(terms);
  return expr;
}

ShapeExpr ShapeExpr::binary(Op op, const ShapeExpr &lhs, const ShapeExpr &rhs) {
  auto a = lhs.constantValue(), b = rhs.constantValue();
  int64_t folded;
  if (a && b && !apply(op, *a, *b, folded))
    return folded;
  if (b) {
    bool neutral =
        (*b == 0 && (op == Op::Add || op == Op::Sub)) ||
        (*b == 1 && (op == Op::Mul || op == Op::FloorDiv || op == Op::CeilDiv));
    if (neutral)
      return lhs;
    if ((*b == 0 && op == Op::Mul) || (*b == 1 && op == Op::Mod))
      return 0;
  }
  if (a) {
    if ((*a == 0 && op == Op::Add) || (*a == 1 && op == Op::Mul))
      return rhs;
    if (*a == 0 && op == Op::Mul)
      return 0;
  }
  if ((op == Op::Max || op == Op::Min) && lhs == rhs)
    return lhs;
  ShapeExpr result;
  for (std::span<const Term> side : {lhs.terms(), rhs.terms()})
    result.code.insert(result.code.end(), side.begin(), side.end());
  result.code.push_back({op, 0});
  return result;
}

std::optional<int64_t> ShapeExpr::constantValue() const {
  std::span<const Term> all = terms();
  if (all.size() == 1 && all[0].op == Op::Const)
    return all[0].value;
  return std::nullopt;
}

Result<int64_t> ShapeExpr::evaluate(std::span<const int64_t> symbols) const {
  if (auto constant = constantValue())
    return *constant;
  auto malformed = [](const char *what) {
    return Status(StatusCode::Corrupt,
                  std::string("a shape expression ") + what);
  };
  std::array<int64_t, maxDepth> stack;
  size_t depth = 0;
  for (const Term &term : code) {
    if (isBinary(term.op)) {
      if (depth < 2)
        return malformed("lacks an operand");
      int64_t value;
      if (const char *what =
              apply(term.op, stack[depth - 2], stack[depth - 1], value))
        return Status(StatusCode::OutOfRange,
                      "the shape expression " + str() + " " + what);
      stack[--depth - 1] = value;
      continue;
    }
    if (depth == maxDepth)
      return malformed("is nested too deeply");
    if (term.op == Op::Symbol) {
      if (term.value < 0 || static_cast<uint64_t>(term.value) >= symbols.size())
        return malformed("names a symbol that does not exist");
      stack[depth++] = symbols[term.value];
    } else if (term.op == Op::Const) {
      stack[depth++] = term.value;
    } else {
      return malformed("has an unknown operator");
    }
  }
  if (depth != 1)
    return malformed("does not leave exactly one value");
  return stack[0];
}

Status ShapeExpr::check(size_t numSymbols) const {
  auto malformed = [](const char *what) {
    return Status(StatusCode::Corrupt,
                  std::string("a shape expression ") + what);
  };
  if (code.size() > engine::maxExprTerms)
    return malformed("is too long");
  size_t depth = 0;
  for (const Term &term : terms()) {
    if (isBinary(term.op)) {
      if (depth < 2)
        return malformed("lacks an operand");
      --depth;
    } else if (term.op == Op::Symbol || term.op == Op::Const) {
      if (term.op == Op::Symbol &&
          (term.value < 0 || static_cast<uint64_t>(term.value) >= numSymbols))
        return malformed("names a symbol that does not exist");
      if (++depth > maxDepth)
        return malformed("is nested too deeply");
    } else {
      return malformed("has an unknown operator");
    }
  }
  return depth == 1 ? Status::ok()
                    : malformed("does not leave exactly one value");
}

/// What stands before, between and after the operands.
static std::array<const char *, 3> spelling(Op op) {
  switch (op) {
  case Op::Add:
    return {"(", " + ", ")"};
  case Op::Sub:
    return {"(", " - ", ")"};
  case Op::Mul:
    return {"(", " * ", ")"};
  case Op::FloorDiv:
    return {"(", " / ", ")"};
  case Op::CeilDiv:
    return {"ceildiv(", ", ", ")"};
  case Op::Mod:
    return {"(", " % ", ")"};
  case Op::Max:
    return {"max(", ", ", ")"};
  case Op::Min:
    return {"min(", ", ", ")"};
  default:
    return {};
  }
}

std::string ShapeExpr::str(std::span<const Symbol> symbols) const {
  std::span<const Term> all = terms();
  // Where the left operand of each operator ends; the right one ends before it.
  std::vector<size_t> left(all.size()), roots;
  for (size_t i = 0; i < all.size(); ++i) {
    if (isBinary(all[i].op)) {
      if (roots.size() < 2)
        return "<malformed>";
      roots.pop_back();
      left[i] = roots.back();
      roots.back() = i;
    } else if (all[i].op == Op::Const || all[i].op == Op::Symbol) {
      roots.push_back(i);
    } else {
      return "<malformed>";
    }
  }
  if (roots.size() != 1)
    return "<malformed>";

  auto leaf = [&](const Term &term) -> std::string {
    if (term.op == Op::Const)
      return std::to_string(term.value);
    bool named = term.value >= 0 &&
                 static_cast<uint64_t>(term.value) < symbols.size() &&
                 !symbols[term.value].name.empty();
    return named ? symbols[term.value].name : "s" + std::to_string(term.value);
  };
  // The parts of a term that are still to be written, the next one on top.
  struct Rest {
    size_t term;
    unsigned part;
  };
  std::vector<Rest> todo = {{roots[0], 0}};
  std::string text;
  while (!todo.empty()) {
    auto [i, part] = todo.back();
    todo.pop_back();
    bool binary = isBinary(all[i].op);
    std::string piece = binary ? spelling(all[i].op)[part] : leaf(all[i]);
    if (text.size() + piece.size() > maxText)
      return text + "...";
    text += piece;
    if (binary && part < 2) {
      todo.push_back({i, part + 1});
      todo.push_back({part == 0 ? left[i] : i - 1, 0});
    }
  }
  return text;
}

} // namespace charonia
