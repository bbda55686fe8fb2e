//===- ShapeExpr.cpp - Integer functions of the shape symbols -------------===//

#include "charonia/signature.h"
#include "runtime/engine/Format.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

namespace charonia {

namespace {

using Op = ShapeExpr::Op;

// Deeper programs than this come from nowhere but a hostile file; the bounds
// let evaluation use a fixed stack.
constexpr size_t maxDepth = 256;
/// Of an expression's text in bytes; longer ones end with "...".
constexpr size_t maxText = 4096;

/// What an operator takes and gives.
struct Form {
  unsigned operands;
  bool takesFloats, givesFloat;
  /// What stands before, between and after the operands.
  std::array<const char *, 3> spelling;
};

/// No value for what is no operator.
std::optional<Form> formOf(Op op) {
  switch (op) {
  case Op::Const:
  case Op::Symbol:
    return Form{0, false, false, {}};
  case Op::Add:
    return Form{2, false, false, {"(", " + ", ")"}};
  case Op::Sub:
    return Form{2, false, false, {"(", " - ", ")"}};
  case Op::Mul:
    return Form{2, false, false, {"(", " * ", ")"}};
  case Op::FloorDiv:
    return Form{2, false, false, {"(", " / ", ")"}};
  case Op::CeilDiv:
    return Form{2, false, false, {"ceildiv(", ", ", ")"}};
  case Op::Mod:
    return Form{2, false, false, {"(", " % ", ")"}};
  case Op::Max:
    return Form{2, false, false, {"max(", ", ", ")"}};
  case Op::Min:
    return Form{2, false, false, {"min(", ", ", ")"}};
  case Op::TruncDiv:
    return Form{2, false, false, {"truncdiv(", ", ", ")"}};
  case Op::FloatConst:
    return Form{0, false, true, {}};
  case Op::ToFloat:
    return Form{1, false, true, {"float(", "", ")"}};
  case Op::ToSingle:
    return Form{1, true, true, {"single(", "", ")"}};
  case Op::Truncate:
    return Form{1, true, false, {"int(", "", ")"}};
  case Op::FloatAdd:
    return Form{2, true, true, {"(", " + ", ")"}};
  case Op::FloatSub:
    return Form{2, true, true, {"(", " - ", ")"}};
  case Op::FloatMul:
    return Form{2, true, true, {"(", " * ", ")"}};
  case Op::FloatDiv:
    return Form{2, true, true, {"(", " / ", ")"}};
  case Op::FloatMax:
    return Form{2, true, true, {"max(", ", ", ")"}};
  case Op::FloatMin:
    return Form{2, true, true, {"min(", ", ", ")"}};
  case Op::Floor:
    return Form{1, true, true, {"floor(", "", ")"}};
  case Op::Ceil:
    return Form{1, true, true, {"ceil(", "", ")"}};
  case Op::Round:
    return Form{1, true, true, {"round(", "", ")"}};
  case Op::Sqrt:
    return Form{1, true, true, {"sqrt(", "", ")"}};
  }
  return std::nullopt;
}

double toDouble(int64_t bits) { return std::bit_cast<double>(bits); }

/// The float that an operator of floats gives; `b` is 0 for one operand.
double applyFloat(Op op, double a, double b) {
  switch (op) {
  case Op::ToSingle:
    return static_cast<double>(static_cast<float>(a));
  case Op::FloatAdd:
    return a + b;
  case Op::FloatSub:
    return a - b;
  case Op::FloatMul:
    return a * b;
  case Op::FloatDiv:
    return a / b;
  case Op::FloatMax:
    return a > b ? a : b;
  case Op::FloatMin:
    return a < b ? a : b;
  case Op::Floor:
    return std::floor(a);
  case Op::Ceil:
    return std::ceil(a);
  case Op::Round:
    return std::nearbyint(a);
  default:
    return std::sqrt(a);
  }
}

/// nullptr on success, else what went wrong.
const char *applyInteger(Op op, int64_t a, int64_t b, int64_t &result) {
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
  case Op::TruncDiv:
    if (b == 0)
      return "divides by 0";
    if (b == -1)
      overflow = __builtin_sub_overflow(int64_t(0), a, &result);
    else
      result = a / b;
    break;
  default:
    return "has an unknown operator";
  }
  return overflow ? "overflows 64 bits" : nullptr;
}

/// The same of any operator; floats go by their bits.
const char *apply(Op op, const Form &form, int64_t a, int64_t b,
                  int64_t &result) {
  if (op == Op::ToFloat) {
    result = std::bit_cast<int64_t>(static_cast<double>(a));
    return nullptr;
  }
  if (op == Op::Truncate) {
    double value = toDouble(a);
    if (!(value > -0x1p63 && value < 0x1p63))
      return "converts what fits no 64 bits";
    result = static_cast<int64_t>(value);
    return nullptr;
  }
  if (!form.takesFloats)
    return applyInteger(op, a, b, result);
  result = std::bit_cast<int64_t>(applyFloat(op, toDouble(a), toDouble(b)));
  return nullptr;
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
  if (a && b && !applyInteger(op, *a, *b, folded))
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
    auto form = formOf(term.op);
    if (!form)
      return malformed("has an unknown operator");
    if (depth < form->operands)
      return malformed("lacks an operand");
    if (form->operands == 0) {
      if (depth == maxDepth)
        return malformed("is nested too deeply");
      int64_t value = term.value;
      if (term.op == Op::Symbol) {
        if (value < 0 || static_cast<uint64_t>(value) >= symbols.size())
          return malformed("names a symbol that does not exist");
        value = symbols[value];
      }
      stack[depth++] = value;
      continue;
    }
    int64_t *first = &stack[depth - form->operands], value;
    if (const char *what =
            apply(term.op, *form, first[0],
                  form->operands == 2 ? first[1] : int64_t(0), value))
      return Status(StatusCode::OutOfRange,
                    "the shape expression " + str() + " " + what);
    *first = value;
    depth -= form->operands - 1;
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
  std::array<bool, maxDepth> isFloat;
  size_t depth = 0;
  for (const Term &term : terms()) {
    auto form = formOf(term.op);
    if (!form)
      return malformed("has an unknown operator");
    if (depth < form->operands)
      return malformed("lacks an operand");
    for (unsigned i = 0; i < form->operands; ++i)
      if (isFloat[--depth] != form->takesFloats)
        return malformed("mixes integers and floats up");
    if (term.op == Op::Symbol &&
        (term.value < 0 || static_cast<uint64_t>(term.value) >= numSymbols))
      return malformed("names a symbol that does not exist");
    if (depth == maxDepth)
      return malformed("is nested too deeply");
    isFloat[depth++] = form->givesFloat;
  }
  if (depth != 1)
    return malformed("does not leave exactly one value");
  return isFloat[0] ? malformed("gives a float") : Status::ok();
}

std::string ShapeExpr::str(std::span<const Symbol> symbols) const {
  std::span<const Term> all = terms();
  // Where the left operand of each operator ends; the right one ends before it.
  std::vector<size_t> left(all.size()), roots;
  for (size_t i = 0; i < all.size(); ++i) {
    auto form = formOf(all[i].op);
    if (!form || roots.size() < form->operands)
      return "<malformed>";
    if (form->operands == 2)
      roots.pop_back();
    if (form->operands == 0) {
      roots.push_back(i);
    } else {
      left[i] = roots.back();
      roots.back() = i;
    }
  }
  if (roots.size() != 1)
    return "<malformed>";

  auto leaf = [&](const Term &term) -> std::string {
    if (term.op == Op::Const)
      return std::to_string(term.value);
    if (term.op == Op::FloatConst) {
      std::array<char, 32> text;
      auto end = std::to_chars(text.begin(), text.end(), toDouble(term.value));
      return std::string(text.begin(), end.ptr);
    }
    bool named = term.value >= 0 &&
                 static_cast<uint64_t>(term.value) < symbols.size() &&
                 !symbols[term.value].name.empty();
    return named ? symbols[term.value].name : "s" + std::to_string(term.value);
  };
  // A number below 0 that is added is subtracted, and the other way around.
  auto turns = [&](size_t i) {
    return (all[i].op == Op::Add || all[i].op == Op::Sub) &&
           all[i - 1].op == Op::Const && all[i - 1].value < 0 &&
           all[i - 1].value != std::numeric_limits<int64_t>::min();
  };
  // The parts of a term that are still to be written, the next one on top.
  struct Rest {
    size_t term;
    unsigned part;
    bool isTurned = false;
  };
  std::vector<Rest> todo = {{roots[0], 0}};
  std::string text;
  while (!todo.empty()) {
    auto [i, part, isTurned] = todo.back();
    todo.pop_back();
    bool turnsNext = part == 1 && turns(i);
    Form form = *formOf(turnsNext ? (all[i].op == Op::Add ? Op::Sub : Op::Add)
                                  : all[i].op);
    std::string piece =
        form.operands
            ? form.spelling[part == form.operands ? 2 : part]
            : leaf(isTurned ? Term{Op::Const, -all[i].value} : all[i]);
    if (text.size() + piece.size() > maxText)
      return text + "...";
    text += piece;
    if (part < form.operands) {
      todo.push_back({i, part + 1});
      todo.push_back({part == 0 ? left[i] : i - 1, 0, turnsNext});
    }
  }
  return text;
}

} // namespace charonia
