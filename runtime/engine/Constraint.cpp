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

/// The first dimension that names `symbol`, best one that is nothing else.
std::optional<Place> placeOf(const Signature &signature, size_t symbol) {
  std::optional<Place> found;
  for (size_t i = 0; i < signature.inputs.size(); ++i)
    for (size_t d = 0; d < signature.inputs[i].dims.size(); ++d) {
      const ShapeExpr &dim = signature.inputs[i].dims[d];
      if (!names(dim, symbol))
        continue;
      if (dim.terms().size() == 1)
        return Place{i, d};
      if (!found)
        found = Place{i, d};
    }
  return found;
}

/// The text of an expression without parentheses around all of it.
std::string bare(const ShapeExpr &expr, std::span<const Symbol> symbols) {
  std::string text = expr.str(symbols);
  bool binary = expr.terms().size() > 1 && text.front() == '(';
  return binary ? text.substr(1, text.size() - 2) : text;
}

/// "dimension 1 of a (m = 3)", "m + n = 5", "4"; without values, "dimension 1
/// of a (m)".
std::string describe(const Signature &signature, const ShapeExpr &expr,
                     std::optional<int64_t> value) {
  std::string text = bare(expr, signature.symbols);
  if (expr.isConstant())
    return text;
  if (value)
    text += " = " + std::to_string(*value);
  const ShapeExpr::Term &first = expr.terms().front();
  if (expr.terms().size() == 1)
    if (auto place = placeOf(signature, first.value))
      return "dimension " + std::to_string(place->dim) + " of " +
             signature.inputs[place->input].name + " (" + text + ")";
  return text;
}

/// "a is float32 [4, 3] and b is float32 [6, 5]": the inputs that the
/// constraint's symbols come from.
std::string describeInputs(const Signature &signature, const Constraint &c,
                           std::span<const std::vector<int64_t>> shapes) {
  std::vector<size_t> used;
  for (const ShapeExpr *side : {&c.left, &c.right})
    for (const ShapeExpr::Term &term : side->terms()) {
      if (term.op != Op::Symbol)
        continue;
      auto place = placeOf(signature, term.value);
      if (place && std::ranges::find(used, place->input) == used.end())
        used.push_back(place->input);
    }
  std::string text;
  for (size_t n = 0; n < used.size(); ++n) {
    const TensorSpec &spec = signature.inputs[used[n]];
    text += (n == 0                 ? ""
             : n + 1 == used.size() ? " and "
                                    : ", ") +
            spec.name + " is " + std::string(dtypeName(spec.dtype)) + " [";
    const std::vector<int64_t> &shape = shapes[used[n]];
    for (size_t d = 0; d < shape.size(); ++d)
      text += (d ? ", " : "") + std::to_string(shape[d]);
    text += "]";
  }
  return text;
}

std::string withReason(std::string text, const Constraint &c) {
  return c.reason.empty() ? text : std::move(text) + ", " + c.reason;
}

bool holds(Relation relation, int64_t left, int64_t right) {
  switch (relation) {
  case Relation::Equal:
    return left == right;
  case Relation::Divides:
    return left >= 1 && right % left == 0;
  case Relation::AtLeast:
    return left >= right;
  }
  return false;
}

} // namespace

Status checkConstraints(const Signature &signature,
                        std::span<const std::vector<int64_t>> shapes,
                        std::span<const int64_t> values,
                        std::optional<size_t> only) {
  for (const Constraint &c : signature.constraints) {
    if (only && !names(c.left, *only) && !names(c.right, *only))
      continue;
    auto left = c.left.evaluate(values), right = c.right.evaluate(values);
    if (!left)
      return left.status();
    if (!right)
      return right.status();
    if (holds(c.relation, *left, *right))
      continue;
    std::string a = describe(signature, c.left, *left),
                b = describe(signature, c.right, *right), text;
    switch (c.relation) {
    case Relation::Equal:
      text = a + " must equal " + b;
      break;
    case Relation::Divides:
      text = b + " must be a multiple of " + a;
      break;
    case Relation::AtLeast:
      text = c.left.isConstant() ? b + " must be at most " + a
                                 : a + " must be at least " + b;
      break;
    }
    std::string inputs = describeInputs(signature, c, shapes);
    return Status(StatusCode::InvalidArgument,
                  withReason((inputs.empty() ? "" : inputs + ": ") + text, c));
  }
  return Status::ok();
}

} // namespace charonia::engine

namespace charonia {

std::string Signature::constraintString(const Constraint &constraint) const {
  using engine::Relation;
  std::string left = engine::describe(*this, constraint.left, std::nullopt),
              right = engine::describe(*this, constraint.right, std::nullopt);
  std::string text = constraint.relation == Relation::Equal
                         ? left + " = " + right
                     : constraint.relation == Relation::Divides
                         ? right + " is a multiple of " + left
                     : constraint.left.isConstant() ? right + " <= " + left
                                                    : left + " >= " + right;
  return engine::withReason(std::move(text), constraint);
}

} // namespace charonia
