//===- Signature.cpp - From the inputs' shapes to the symbols -------------===//

#include "runtime/engine/Constraint.h"

#include <algorithm>
#include <ranges>

namespace charonia {

namespace {

using Op = ShapeExpr::Op;

using engine::maxText;

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
    } else if (term.op > Op::Min) {
      // What computes in floats is solved by nobody.
      return std::nullopt;
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

/// Finds symbols from equations: each is solved as soon as all but one of its
/// symbols are known. Each is looked at once, however long the chain of symbols
/// that leads to it.
class Solver {
public:
  explicit Solver(size_t symbols)
      : values(symbols), known(symbols), uses(symbols) {}

  bool isKnown(size_t symbol) const { return known[symbol]; }

  void set(size_t symbol, int64_t value) {
    if (known[symbol])
      return;
    values[symbol] = value;
    known[symbol] = true;
    for (size_t user : uses[symbol])
      if (--equations[user].unknowns == 1)
        ready.push_back(user);
  }

  /// left = right.
  void add(const ShapeExpr &left, const ShapeExpr &right) {
    add({&left, &right});
  }
  /// expr = value.
  void add(const ShapeExpr &expr, int64_t value) {
    add({&expr, nullptr, value});
  }

  void solve() {
    for (; next < ready.size(); ++next) {
      const Equation &e = equations[ready[next]];
      size_t symbol = 0;
      std::optional<int64_t> value;
      if (!e.right) {
        value = invert(*e.left, e.value, values, known, symbol);
      } else if (auto right = valueOf(*e.right)) {
        value = invert(*e.left, *right, values, known, symbol);
      } else if (auto left = valueOf(*e.left)) {
        value = invert(*e.right, *left, values, known, symbol);
      }
      if (value)
        set(symbol, *value);
    }
  }

  /// 0 where a symbol is not known.
  std::span<const int64_t> get() const { return values; }
  std::vector<int64_t> take() { return std::move(values); }

private:
  struct Equation {
    const ShapeExpr *left, *right; ///< No right side: it is `value`.
    int64_t value = 0;
    size_t unknowns = 0;
  };

  void add(Equation equation) {
    for (const ShapeExpr *side : {equation.left, equation.right})
      for (const ShapeExpr::Term &term :
           side ? side->terms() : std::span<const ShapeExpr::Term>())
        if (term.op == Op::Symbol && !known[term.value]) {
          uses[term.value].push_back(equations.size());
          ++equation.unknowns;
        }
    if (equation.unknowns == 1)
      ready.push_back(equations.size());
    equations.push_back(equation);
  }

  std::optional<int64_t> valueOf(const ShapeExpr &expr) const {
    for (const ShapeExpr::Term &term : expr.terms())
      if (term.op == Op::Symbol && !known[term.value])
        return std::nullopt;
    auto value = expr.evaluate(values);
    return value ? std::optional(*value) : std::nullopt;
  }

  std::vector<int64_t> values;
  std::vector<bool> known;
  std::vector<Equation> equations;
  std::vector<std::vector<size_t>> uses; ///< Equations by symbol.
  std::vector<size_t> ready;             ///< With one unknown, in this order.
  size_t next = 0;                       ///< Of `ready`.
};

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
  std::vector<size_t> used;
  for (const ShapeExpr &dim : spec.dims)
    for (const ShapeExpr::Term &term : dim.terms())
      if (term.op == Op::Symbol &&
          static_cast<uint64_t>(term.value) < symbols.size())
        used.push_back(term.value);
  std::ranges::sort(used);
  used.erase(std::ranges::unique(used).begin(), used.end());
  std::string text;
  for (size_t symbol : used) {
    if (text.size() > maxText)
      return text + "; ...";
    text += (text.empty() ? "" : "; ") + symbolRange(symbols[symbol]);
  }
  return text;
}

Result<std::vector<int64_t>>
Signature::evaluateShape(const TensorSpec &spec,
                         std::span<const int64_t> symbolValues) const {
  std::vector<int64_t> shape;
  for (const ShapeExpr &dim : spec.dims) {
    auto value = dim.evaluate(symbolValues);
    if (!value)
      return engine::withNames(value.status(), dim, symbols);
    if (*value < 0)
      return Status(StatusCode::OutOfRange,
                    "'" + spec.name + "' would have the negative dimension " +
                        std::to_string(*value) + " = " + dim.str(symbols));
    shape.push_back(*value);
  }
  return shape;
}

/// What is a dimension by itself is read from it, also where only one value is
/// right; what others tell is solved for. `shapes`: null where there is none.
static Solver solveShapes(const Signature &signature,
                          std::span<const std::vector<int64_t> *const> shapes) {
  Solver solver(signature.symbols.size());
  auto forEach = [&](auto visit) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      const std::vector<ShapeExpr> &dims = signature.inputs[i].dims;
      for (size_t d = 0; shapes[i] && d < dims.size() && d < shapes[i]->size();
           ++d)
        visit(dims[d], (*shapes[i])[d]);
    }
  };
  forEach([&](const ShapeExpr &dim, int64_t extent) {
    if (auto terms = dim.terms();
        terms.size() == 1 && terms[0].op == Op::Symbol)
      solver.set(terms[0].value, extent);
  });
  // A range of one value tells others.
  for (size_t s = 0; s < signature.symbols.size(); ++s)
    if (signature.symbols[s].min == signature.symbols[s].max)
      solver.set(s, signature.symbols[s].min);
  forEach(
      [&](const ShapeExpr &dim, int64_t extent) { solver.add(dim, extent); });
  solver.solve();
  return solver;
}

/// How a symbol that no input has is computed; null where nothing says it.
static const ShapeExpr *definitionOf(const Signature &signature,
                                     size_t symbol) {
  for (const Constraint &c : signature.constraints)
    if (auto left = c.left.terms();
        c.relation == Constraint::Relation::Equal && left.size() == 1 &&
        left[0].op == Op::Symbol &&
        static_cast<size_t>(left[0].value) == symbol)
      return &c.right;
  return nullptr;
}

/// Of the symbols' values, as far as they are known. Where all are, says what a
/// constraint does rather than what its consequence for a range does.
static Status checkRanges(const Signature &signature,
                          std::span<const std::vector<int64_t>> inputShapes,
                          std::span<const int64_t> values, const Solver &solver,
                          bool allKnown) {
  for (size_t s = 0; s < values.size(); ++s) {
    const Symbol &symbol = signature.symbols[s];
    if (!solver.isKnown(s) ||
        (values[s] >= symbol.min && values[s] <= symbol.max &&
         values[s] % symbol.divisor == 0))
      continue;
    if (allKnown)
      CHARONIA_RETURN_IF_ERROR(
          engine::checkConstraints(signature, inputShapes, values, s));
    for (size_t i = 0; i < inputShapes.size(); ++i)
      for (const ShapeExpr &dim : signature.inputs[i].dims)
        for (const ShapeExpr::Term &term : dim.terms())
          if (term.op == Op::Symbol && static_cast<size_t>(term.value) == s)
            return Status(
                StatusCode::OutOfRange,
                "the shape " + shapeString(inputShapes[i]) + " of the input '" +
                    signature.inputs[i].name + "' makes " + symbol.name + " " +
                    std::to_string(values[s]) + "; the engine was built for " +
                    symbolRange(symbol));
    if (const ShapeExpr *program = definitionOf(signature, s))
      return Status(StatusCode::OutOfRange,
                    "the inputs' shapes make " + symbol.name + " = " +
                        program->str(signature.symbols) + " " +
                        std::to_string(values[s]) +
                        "; the engine was built for " + symbolRange(symbol));
    return Status(StatusCode::Corrupt, "the range of the shape symbol '" +
                                           symbol.name + "' is wrong");
  }
  return Status::ok();
}

/// Whether the symbols' values make the shapes what they are.
static Status checkDims(const Signature &signature,
                        std::span<const std::vector<int64_t>> inputShapes,
                        std::span<const int64_t> values) {
  for (size_t i = 0; i < inputShapes.size(); ++i)
    for (size_t d = 0; d < inputShapes[i].size(); ++d) {
      const TensorSpec &spec = signature.inputs[i];
      auto expected = spec.dims[d].evaluate(values);
      if (!expected)
        return expected.status();
      if (*expected != inputShapes[i][d])
        return Status(StatusCode::InvalidArgument,
                      expectation(signature, spec) + "; dimension " +
                          std::to_string(d) + " of the shape " +
                          shapeString(inputShapes[i]) + " should be " +
                          std::to_string(*expected) +
                          (spec.dims[d].isConstant()
                               ? ""
                               : " = " + spec.dims[d].str(signature.symbols)));
    }
  return Status::ok();
}

/// Why a symbol has no value.
static Status cannotCompute(const Signature &signature, size_t symbol,
                            std::span<const int64_t> values,
                            const Solver &solver) {
  const std::string &name = signature.symbols[symbol].name;
  const ShapeExpr *program = definitionOf(signature, symbol);
  bool follows =
      program &&
      std::ranges::all_of(program->terms(), [&](const ShapeExpr::Term &term) {
        return term.op != Op::Symbol || solver.isKnown(term.value);
      });
  if (follows)
    if (auto value = program->evaluate(values); !value)
      return Status(value.status().code(),
                    "the inputs' shapes leave " + name +
                        " without a value: " + value.status().message());
  return Status(StatusCode::Corrupt,
                "no input's shape determines the shape symbol '" + name + "'");
}

Result<std::vector<int64_t>> Signature::solveSymbols(
    std::span<const std::vector<int64_t>> inputShapes) const {
  if (inputShapes.size() != inputs.size())
    return Status(StatusCode::InvalidArgument,
                  "the engine has " + std::to_string(inputs.size()) +
                      " inputs, but " + std::to_string(inputShapes.size()) +
                      " shapes were given");
  std::vector<const std::vector<int64_t> *> shapes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputShapes[i].size() != inputs[i].dims.size())
      return Status(StatusCode::InvalidArgument,
                    expectation(*this, inputs[i]) + ", not the shape " +
                        shapeString(inputShapes[i]));
    shapes.push_back(&inputShapes[i]);
  }
  Solver solver = solveShapes(*this, shapes);
  auto isKnown = [&](size_t s) { return solver.isKnown(s); };
  auto all = std::views::iota(size_t(0), symbols.size());
  // What no input has is computed from the others.
  if (!std::ranges::all_of(all, isKnown)) {
    for (const Constraint &c : constraints)
      if (c.relation == Constraint::Relation::Equal)
        solver.add(c.left, c.right);
    solver.solve();
  }
  // Ranges first: "batch is 100" says more than "100 is not batch", or than
  // that a size cannot be computed from it.
  std::span<const int64_t> found = solver.get();
  auto unknown = std::ranges::find_if_not(all, isKnown);
  CHARONIA_RETURN_IF_ERROR(
      checkRanges(*this, inputShapes, found, solver, unknown == all.end()));
  if (unknown != all.end())
    return cannotCompute(*this, *unknown, found, solver);
  std::vector<int64_t> values = solver.take();
  CHARONIA_RETURN_IF_ERROR(checkDims(*this, inputShapes, values));
  CHARONIA_RETURN_IF_ERROR(
      engine::checkConstraints(*this, inputShapes, values));
  return values;
}

std::vector<int64_t> Signature::completeSymbols(
    std::span<const std::optional<std::vector<int64_t>>> inputShapes) const {
  std::vector<const std::vector<int64_t> *> shapes;
  for (const auto &shape :
       inputShapes.first(std::min(inputShapes.size(), inputs.size())))
    shapes.push_back(shape ? &*shape : nullptr);
  Solver solver = solveShapes(*this, shapes);
  for (const Constraint &c : constraints)
    if (c.relation == Constraint::Relation::Equal)
      solver.add(c.left, c.right);
  // One after another: each may tell others.
  for (size_t s = 0; s < symbols.size(); ++s) {
    solver.solve();
    solver.set(s, symbols[s].opt);
  }
  return solver.take();
}

} // namespace charonia
