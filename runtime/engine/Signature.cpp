//===- Signature.cpp - From the inputs' shapes to the symbols -------------===//

#include "runtime/engine/Constraint.h"

#include <algorithm>

namespace charonia {

namespace {

using Op = ShapeExpr::Op;

/// Of a tensor's type in bytes, but for the last dimension that is told.
constexpr size_t maxText = 4096;

Result<size_t> findTensor(const std::vector<TensorSpec> &specs,
                          std::string_view name, const char *what) {
  for (size_t i = 0; i < specs.size(); ++i)
    if (specs[i].name == name)
      return i;
  std::string message = "no " + std::string(what) + " is named '" +
                        std::string(name) + "'; the engine's " + what + "s are";
  for (size_t i = 0; i < specs.size(); ++i)
    message += (i ? ", '" : " '") + specs[i].name + "'";
  if (specs.empty())
    message += ": none";
  return Status(StatusCode::NotFound, message);
}

/// The value of the one unknown symbol that makes `expr` equal to `target`, if
/// the expression has exactly one unknown, once, under +, - and * alone. Sets
/// `symbol` to it. The caller checks the result by evaluating forward.
std::optional<int64_t> invert(const ShapeExpr &expr, int64_t target,
                              std::span<const int64_t> values,
                              const std::vector<bool> &known, size_t &symbol) {
  // An operand is a known number or the part that holds the unknown; the steps
  // that lead from the unknown to the root are recorded in order.
  struct Operand {
    bool unknown;
    int64_t value;
  };
  struct Inverse {
    Op op;
    int64_t other;
    bool unknownOnLeft;
  };
  std::vector<Operand> stack;
  std::vector<Inverse> path;
  bool seen = false;
  for (const ShapeExpr::Term &term : expr.terms()) {
    if (term.op == Op::Const) {
      stack.push_back({false, term.value});
    } else if (term.op == Op::Symbol) {
      if (known[term.value]) {
        stack.push_back({false, values[term.value]});
        continue;
      }
      if (seen)
        return std::nullopt;
      seen = true;
      symbol = term.value;
      stack.push_back({true, 0});
    } else {
      Operand rhs = stack.back();
      stack.pop_back();
      Operand &lhs = stack.back();
      if (!lhs.unknown && !rhs.unknown) {
        auto folded =
            ShapeExpr::binary(term.op, lhs.value, rhs.value).constantValue();
        if (!folded)
          return std::nullopt;
        lhs.value = *folded;
        continue;
      }
      path.push_back(
          {term.op, lhs.unknown ? rhs.value : lhs.value, lhs.unknown});
      lhs = {true, 0};
    }
  }
  if (!seen)
    return std::nullopt;
  for (auto it = path.rbegin(); it != path.rend(); ++it) {
    bool overflow = false;
    switch (it->op) {
    case Op::Add:
      overflow = __builtin_sub_overflow(target, it->other, &target);
      break;
    case Op::Sub:
      overflow = it->unknownOnLeft
                     ? __builtin_add_overflow(target, it->other, &target)
                     : __builtin_sub_overflow(it->other, target, &target);
      break;
    case Op::Mul:
      if (it->other <= 0)
        return std::nullopt;
      // Rounded: a shape that does not fit is found when checking forward.
      target /= it->other;
      break;
    default:
      return std::nullopt;
    }
    if (overflow)
      return std::nullopt;
  }
  return target;
}

std::string symbolRange(const Symbol &symbol) {
  std::string text = symbol.name + " in " + std::to_string(symbol.min) + ".." +
                     std::to_string(symbol.max);
  if (symbol.divisor > 1)
    text += ", a multiple of " + std::to_string(symbol.divisor);
  return text;
}

/// "the input 'x' takes float32 [batch, 3] with batch in 1..8".
std::string expectation(const Signature &signature, const TensorSpec &spec) {
  std::string text =
      "the input '" + spec.name + "' takes " + signature.typeString(spec);
  std::string ranges = signature.rangeString(spec);
  return ranges.empty() ? text : text + " with " + ranges;
}

} // namespace

Result<size_t> Signature::findInput(std::string_view name) const {
  return findTensor(inputs, name, "input");
}

Result<size_t> Signature::findOutput(std::string_view name) const {
  return findTensor(outputs, name, "output");
}

std::string Signature::typeString(const TensorSpec &spec) const {
  std::string text(dtypeName(spec.dtype));
  text += " [";
  for (size_t i = 0; i < spec.dims.size(); ++i) {
    // A message has to be read by somebody.
    if (text.size() > maxText)
      return text + ", ...]";
    text += (i ? ", " : "") + spec.dims[i].str(symbols);
  }
  return text + "]";
}

std::string Signature::rangeString(const TensorSpec &spec) const {
  std::vector<bool> used(symbols.size());
  for (const ShapeExpr &dim : spec.dims)
    for (const ShapeExpr::Term &term : dim.terms())
      if (term.op == Op::Symbol &&
          static_cast<uint64_t>(term.value) < used.size())
        used[term.value] = true;
  std::string text;
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i])
      text += (text.empty() ? "" : "; ") + symbolRange(symbols[i]);
  return text;
}

Result<std::vector<int64_t>>
Signature::evaluateShape(const TensorSpec &spec,
                         std::span<const int64_t> symbolValues) const {
  std::vector<int64_t> shape;
  for (const ShapeExpr &dim : spec.dims) {
    auto value = dim.evaluate(symbolValues);
    if (!value)
      return value.status();
    if (*value < 0)
      return Status(StatusCode::OutOfRange,
                    "'" + spec.name + "' would have the negative dimension " +
                        std::to_string(*value) + " = " + dim.str(symbols));
    shape.push_back(*value);
  }
  return shape;
}

Result<std::vector<int64_t>> Signature::solveSymbols(
    std::span<const std::vector<int64_t>> inputShapes) const {
  if (inputShapes.size() != inputs.size())
    return Status(StatusCode::InvalidArgument,
                  "the engine has " + std::to_string(inputs.size()) +
                      " inputs, but " + std::to_string(inputShapes.size()) +
                      " shapes were given");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputShapes[i].size() != inputs[i].dims.size())
      return Status(StatusCode::InvalidArgument,
                    expectation(*this, inputs[i]) + ", not the shape " +
                        shapeString(inputShapes[i]));

  std::vector<int64_t> values(symbols.size());
  std::vector<bool> known(symbols.size());
  // What is a dimension by itself is read from it, also where only one value is
  // right.
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t d = 0; d < inputs[i].dims.size(); ++d) {
      auto terms = inputs[i].dims[d].terms();
      if (terms.size() != 1 || terms[0].op != Op::Symbol ||
          known[terms[0].value])
        continue;
      values[terms[0].value] = inputShapes[i][d];
      known[terms[0].value] = true;
    }
  // A range of one value tells others.
  for (size_t s = 0; s < symbols.size(); ++s)
    if (!known[s] && symbols[s].min == symbols[s].max) {
      values[s] = symbols[s].min;
      known[s] = true;
    }
  // A dimension is solved as soon as all but one of its symbols are known: each
  // of them once, however long the chain of symbols that leads to it.
  struct Dim {
    size_t input, index, unknowns;
  };
  std::vector<Dim> dims;
  std::vector<std::vector<size_t>> uses(symbols.size());
  std::vector<size_t> ready;
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t d = 0; d < inputs[i].dims.size(); ++d) {
      size_t unknowns = 0;
      for (const ShapeExpr::Term &term : inputs[i].dims[d].terms())
        if (term.op == Op::Symbol && !known[term.value]) {
          uses[term.value].push_back(dims.size());
          ++unknowns;
        }
      if (unknowns == 1)
        ready.push_back(dims.size());
      dims.push_back({i, d, unknowns});
    }
  for (size_t next = 0; next < ready.size(); ++next) {
    const Dim &dim = dims[ready[next]];
    size_t symbol = 0;
    auto value =
        invert(inputs[dim.input].dims[dim.index],
               inputShapes[dim.input][dim.index], values, known, symbol);
    if (!value)
      continue;
    values[symbol] = *value;
    known[symbol] = true;
    for (size_t user : uses[symbol])
      if (--dims[user].unknowns == 1)
        ready.push_back(user);
  }
  for (size_t s = 0; s < symbols.size(); ++s)
    if (!known[s])
      return Status(StatusCode::Corrupt,
                    "no input's shape determines the shape symbol '" +
                        symbols[s].name + "'");

  // Ranges first: "batch is 100" says more than "100 is not batch".
  for (size_t s = 0; s < symbols.size(); ++s) {
    const Symbol &symbol = symbols[s];
    if (values[s] >= symbol.min && values[s] <= symbol.max &&
        values[s] % symbol.divisor == 0)
      continue;
    // A range may be what a constraint leaves; that says more.
    CHARONIA_RETURN_IF_ERROR(
        engine::checkConstraints(*this, inputShapes, values, s));
    for (size_t i = 0; i < inputs.size(); ++i)
      for (const ShapeExpr &dim : inputs[i].dims)
        for (const ShapeExpr::Term &term : dim.terms())
          if (term.op == Op::Symbol && static_cast<size_t>(term.value) == s)
            return Status(StatusCode::OutOfRange,
                          "the shape " + shapeString(inputShapes[i]) +
                              " of the input '" + inputs[i].name + "' makes " +
                              symbol.name + " " + std::to_string(values[s]) +
                              "; the engine was built for " +
                              symbolRange(symbol));
    return Status(StatusCode::Corrupt, "the range of the shape symbol '" +
                                           symbol.name + "' is wrong");
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t d = 0; d < inputs[i].dims.size(); ++d) {
      auto expected = inputs[i].dims[d].evaluate(values);
      if (!expected)
        return expected.status();
      if (*expected != inputShapes[i][d])
        return Status(StatusCode::InvalidArgument,
                      expectation(*this, inputs[i]) + "; dimension " +
                          std::to_string(d) + " of the shape " +
                          shapeString(inputShapes[i]) + " should be " +
                          std::to_string(*expected) +
                          (inputs[i].dims[d].isConstant()
                               ? ""
                               : " = " + inputs[i].dims[d].str(symbols)));
    }
  CHARONIA_RETURN_IF_ERROR(
      engine::checkConstraints(*this, inputShapes, values));
  return values;
}

} // namespace charonia
