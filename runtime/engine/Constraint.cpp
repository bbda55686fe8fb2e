//===- Constraint.cpp - What must hold between sizes ----------------------===//

#include "runtime/engine/Constraint.h"

#include <algorithm>

namespace charonia::engine {

namespace {

using Op = ShapeExpr::Op;
using Relation = Constraint::Relation;

/// A dimension of an input.
struct Place {
  size_t input, dim;
};

bool names(const ShapeExpr &expr, size_t symbol) {
  return std::ranges::any_of(expr.terms(), [&](const ShapeExpr::Term &term) {
    return term.op == Op::Symbol && static_cast<size_t>(term.value) == symbol;
  });
}

/// By symbol: the first dimension that names it, best one that is nothing else.
/// Found for all symbols in one look at the inputs.
class Places {
public:
  explicit Places(const Signature &signature)
      : bySymbol(signature.symbols.size()), isAlone(bySymbol.size()) {
    for (size_t i = 0; i < signature.inputs.size(); ++i)
      for (size_t d = 0; d < signature.inputs[i].dims.size(); ++d) {
        auto terms = signature.inputs[i].dims[d].terms();
        for (const ShapeExpr::Term &term : terms)
          if (term.op == Op::Symbol)
            add(term.value, {i, d}, terms.size() == 1);
      }
  }

  std::optional<Place> of(size_t symbol) const { return bySymbol[symbol]; }

private:
  void add(size_t symbol, Place place, bool alone) {
    if (bySymbol[symbol] && (isAlone[symbol] || !alone))
      return;
    bySymbol[symbol] = place;
    isAlone[symbol] = alone;
  }

  std::vector<std::optional<Place>> bySymbol;
  std::vector<bool> isAlone;
};

/// The text of an expression without parentheses around all of it.
std::string bare(const ShapeExpr &expr, std::span<const Symbol> symbols) {
  std::string text = expr.str(symbols);
  bool binary = expr.terms().size() > 1 && text.front() == '(';
  return binary ? text.substr(1, text.size() - 2) : text;
}

/// What computes a size that no input has, if there is something.
const ShapeExpr *programOf(const Signature &signature, const Places &places,
                           size_t symbol) {
  if (places.of(symbol))
    return nullptr;
  for (const Constraint &c : signature.constraints) {
    auto left = c.left.terms();
    if (c.relation == Relation::Equal && left.size() == 1 &&
        left[0].op == Op::Symbol &&
        static_cast<size_t>(left[0].value) == symbol)
      return &c.right;
  }
  return nullptr;
}

/// The signature with the programs of sizes that no input has for their names,
/// where they are short enough to be read.
Signature withPrograms(const Signature &signature, const Places &places) {
  constexpr size_t maxText = 160;
  Signature result = signature;
  for (const Constraint &c : signature.constraints) {
    auto left = c.left.terms();
    if (c.relation != Relation::Equal || left.size() != 1 ||
        left[0].op != Op::Symbol || places.of(left[0].value))
      continue;
    if (std::string text = c.right.str(result.symbols); text.size() <= maxText)
      result.symbols[left[0].value].name = std::move(text);
  }
  return result;
}

/// "dimension 1 of a (m = 3)", "m + n = 5", "4"; without values, "dimension 1
/// of a (m)".
std::string describe(const Signature &signature, const Places &places,
                     const ShapeExpr &expr, std::optional<int64_t> value) {
  std::string text = bare(expr, signature.symbols);
  if (expr.isConstant())
    return text;
  // A size that was found to be one number goes by that.
  if (value && text != std::to_string(*value))
    text += " = " + std::to_string(*value);
  const ShapeExpr::Term &first = expr.terms().front();
  if (expr.terms().size() == 1)
    if (auto place = places.of(first.value))
      return "dimension " + std::to_string(place->dim) + " of " +
             signature.inputs[place->input].name + " (" + text + ")";
  return text;
}

/// "a is float32 [4, 3] and b is float32 [6, 5]": the inputs that the
/// constraint's symbols come from, and those that these are computed from.
/// Where it is about more than single dimensions, they have names: [4, h = 3].
std::string describeInputs(const Signature &signature, const Places &places,
                           const Constraint &c,
                           std::span<const std::vector<int64_t>> shapes) {
  std::vector<size_t> used, computed;
  std::vector<const ShapeExpr *> parts = {&c.left, &c.right};
  for (size_t i = 0; i < parts.size(); ++i)
    for (const ShapeExpr::Term &term : parts[i]->terms()) {
      if (term.op != Op::Symbol)
        continue;
      auto place = places.of(term.value);
      if (place && std::ranges::find(used, place->input) == used.end())
        used.push_back(place->input);
      const ShapeExpr *program = programOf(signature, places, term.value);
      if (!program ||
          std::ranges::find(computed, size_t(term.value)) != computed.end())
        continue;
      computed.push_back(term.value);
      parts.push_back(program);
    }
  bool withNames = !computed.empty() || c.left.terms().size() > 1 ||
                   c.right.terms().size() > 1;
  std::string text;
  for (size_t n = 0; n < used.size(); ++n) {
    // A message has to be read by somebody.
    if (text.size() > maxText)
      return text + " and " + std::to_string(used.size() - n) + " other inputs";
    const TensorSpec &spec = signature.inputs[used[n]];
    text += (n == 0                 ? ""
             : n + 1 == used.size() ? " and "
                                    : ", ") +
            spec.name + " is " + std::string(dtypeName(spec.dtype)) + " [";
    const std::vector<int64_t> &shape = shapes[used[n]];
    for (size_t d = 0; d < shape.size(); ++d) {
      const ShapeExpr &dim = spec.dims[d];
      bool isSymbol =
          dim.terms().size() == 1 && dim.terms().front().op == Op::Symbol;
      text +=
          (d ? ", " : "") +
          (withNames && isSymbol ? dim.str(signature.symbols) + " = " : "") +
          std::to_string(shape[d]);
    }
    text += "]";
  }
  return text;
}

std::string withReason(std::string text, const Constraint &c) {
  return c.reason.empty() ? text : std::move(text) + ", " + c.reason;
}

/// "a = b" as it is told, "a must equal b" where it does not hold.
std::string phrase(const Constraint &c, const std::string &left,
                   const std::string &right, bool must) {
  switch (c.relation) {
  case Relation::Equal:
    return left + (must ? " must equal " : " = ") + right;
  case Relation::Divides:
    return right + (must ? " must be" : " is") + " a multiple of " + left;
  case Relation::Differs:
    return left + (must ? " must not equal " : " != ") + right;
  case Relation::AtLeast:
    break;
  }
  // An upper limit reads better the other way round.
  return c.left.isConstant()
             ? right + (must ? " must be at most " : " <= ") + left
             : left + (must ? " must be at least " : " >= ") + right;
}

bool holds(Relation relation, int64_t left, int64_t right) {
  switch (relation) {
  case Relation::Equal:
    return left == right;
  case Relation::Divides:
    return left >= 1 && right % left == 0;
  case Relation::AtLeast:
    return left >= right;
  case Relation::Differs:
    return left != right;
  }
  return false;
}

} // namespace

Status withNames(const Status &status, const ShapeExpr &expr,
                 std::span<const Symbol> symbols) {
  std::string text(status.message()), unnamed = expr.str();
  size_t at = text.find(unnamed);
  if (at == std::string::npos)
    return status;
  return Status(status.code(),
                text.replace(at, unnamed.size(), bare(expr, symbols)));
}

Status checkConstraints(const Signature &signature,
                        std::span<const std::vector<int64_t>> shapes,
                        std::span<const int64_t> values,
                        std::optional<size_t> only) {
  for (const Constraint &c : signature.constraints) {
    if (only && !names(c.left, *only) && !names(c.right, *only))
      continue;
    auto left = c.left.evaluate(values), right = c.right.evaluate(values);
    if (!left)
      return withNames(left.status(), c.left, signature.symbols);
    if (!right)
      return withNames(right.status(), c.right, signature.symbols);
    if (holds(c.relation, *left, *right))
      continue;
    Places places(signature);
    Signature named = withPrograms(signature, places);
    std::string text =
        phrase(c, describe(named, places, c.left, *left),
               describe(named, places, c.right, *right), /*must=*/true);
    std::string inputs = describeInputs(named, places, c, shapes);
    return Status(StatusCode::InvalidArgument,
                  withReason((inputs.empty() ? "" : inputs + ": ") + text, c));
  }
  return Status::ok();
}

} // namespace charonia::engine

namespace charonia {

std::vector<std::string> Signature::constraintStrings() const {
  engine::Places places(*this);
  std::vector<std::string> texts;
  for (const Constraint &c : constraints) {
    std::string left = engine::describe(*this, places, c.left, std::nullopt),
                right = engine::describe(*this, places, c.right, std::nullopt);
    std::string text = engine::phrase(c, left, right, /*must=*/false);
    texts.push_back(engine::withReason(std::move(text), c));
  }
  return texts;
}

} // namespace charonia
