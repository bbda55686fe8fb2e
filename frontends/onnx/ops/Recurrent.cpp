// Recurrent layers, written out step by step.
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using graph::Predicate;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

namespace {
/// What LSTM, GRU and RNN share: operands by direction, the walk over the
/// steps.
class Recurrent {
public:
  Recurrent(Node &n, Emitter &e, int64_t gates, int64_t functions, bool hasCell)
      : n(n), e(e), gates(gates), functions(functions), hasCell(hasCell) {}
  virtual ~Recurrent() = default;
  llvm::LogicalResult run();

protected:
  /// The weights of one direction; gates lie side by side in the last
  /// dimension.
  struct Direction {
    int64_t index;
    Value recurrent;                // [hidden, gates * hidden]
    Value inputBias, recurrentBias; // [gates * hidden], may be null
    SmallVector<std::string> activations;
  };
  struct State {
    Value hidden, cell; // [batch, hidden]
  };
  /// The state after a step; `input` is X W of all gates.
  virtual State step(const Direction &d, Value input, State before) = 0;

  /// Gates [first, first + count) of `v`, whose last dimension holds all.
  Value gate(Value v, int64_t first, int64_t count = 1);
  /// Activation `which` of the direction; operands of gates are clipped.
  Value activate(const Direction &d, unsigned which, Value x,
                 bool clipped = true);
  Value number(double value) { return e.scalar(value, element); }
  Value product(Value x, Value matrix) {
    return e.op<graph::MatmulOp>({x, matrix});
  }
  static Value sum(Emitter &e, Value a, Value b) {
    return a && b ? e.add(a, b) : a ? a : b;
  }

  Node &n;
  Emitter &e;
  int64_t gates, functions;
  bool hasCell;
  mlir::Type element;
  int64_t steps = 0, hidden = 0, directions = 1;
  AffineExpr batch;

private:
  llvm::LogicalResult readShapes();
  llvm::FailureOr<SmallVector<std::string>> readActivations(int64_t direction);
  Value part(Value v, int64_t axis, int64_t start, int64_t count);
  /// Entry `i` of the first dimension, which goes.
  Value entry(Value v, int64_t i);
  Value initial(unsigned operand, int64_t direction);

  Value x; // [steps, batch, input]
};
} // namespace

Value Recurrent::part(Value v, int64_t axis, int64_t start, int64_t count) {
  if (!v)
    return {};
  Exprs dims = graph::getShape(v), starts(dims.size(), e.number(0));
  starts[axis] = e.number(start);
  dims[axis] = e.number(count);
  return e.slice(v, starts, SmallVector<int64_t>(dims.size(), 1), dims);
}

Value Recurrent::entry(Value v, int64_t i) {
  Value one = part(v, 0, i, 1);
  if (!one)
    return {};
  Exprs dims = graph::getShape(one);
  return e.reshape(one, llvm::ArrayRef(dims).drop_front());
}

Value Recurrent::gate(Value v, int64_t first, int64_t count) {
  return v ? part(v, rankOf(v) - 1, first * hidden, count * hidden) : Value();
}

Value Recurrent::activate(const Direction &d, unsigned which, Value x,
                          bool clipped) {
  if (double clip = n.number("clip"); clip > 0 && clipped)
    x = e.min(e.max(x, number(-clip)), number(clip));
  llvm::StringRef name = d.activations[which];
  if (name == "sigmoid")
    return e.op<graph::SigmoidOp>({x});
  if (name == "tanh")
    return e.op<graph::TanhOp>({x});
  if (name == "relu")
    return e.max(x, number(0));
  if (name == "hardsigmoid")
    return e.min(e.max(e.add(e.mul(x, number(0.2)), number(0.5)), number(0)),
                 number(1));
  return e.div(x, e.add(number(1), e.op<graph::AbsOp>({x}))); // softsign
}

llvm::FailureOr<SmallVector<std::string>>
Recurrent::readActivations(int64_t direction) {
  SmallVector<std::string> names;
  for (int64_t i = 0; i < functions; ++i)
    names.push_back(i == 0 && gates > 1 ? "sigmoid" : "tanh");
  const ::onnx::AttributeProto *given = n.find("activations");
  if (!given || !given->strings_size())
    return names;
  // The schema's default for RNN is that of two directions.
  if (given->strings_size() < functions * directions)
    return e.fail("attribute 'activations' has " +
                  Twine(given->strings_size()) + " entries, but needs " +
                  Twine(functions * directions));
  for (int64_t i = 0; i < functions; ++i) {
    names[i] =
        llvm::StringRef(given->strings(direction * functions + i)).lower();
    if (!llvm::is_contained(
            {"sigmoid", "tanh", "relu", "hardsigmoid", "softsign"},
            llvm::StringRef(names[i])))
      return e.fail("activation '" + names[i] + "' is not supported",
                    "use Sigmoid, Tanh, Relu, HardSigmoid or Softsign");
  }
  if (n.hasAttribute("activation_alpha") || n.hasAttribute("activation_beta"))
    return e.fail("parameters of activations are not supported",
                  "use activations without parameters");
  return names;
}

llvm::LogicalResult Recurrent::readShapes() {
  for (unsigned i : {0, 1, 2})
    if (failed(n.needsRank(i, 3, 3)))
      return llvm::failure();
  x = n.input(0);
  element = elementOf(x);
  if (n.flag("layout"))
    x = e.transpose(x, {1, 0, 2});
  std::string direction = n.text("direction", "forward");
  if (direction == "bidirectional")
    directions = 2;
  // ONNX misspells the default of GRU-1.
  else if (direction != "forward" && direction != "reverse" &&
           direction != "foward")
    return e.fail("attribute 'direction' may not be '" + direction + "'");
  if (!x)
    return llvm::failure();
  Exprs shape = graph::getShape(x), w = graph::getShape(n.input(1)),
        r = graph::getShape(n.input(2));
  batch = shape[1];
  auto length = graph::constantOf(shape[0]), size = graph::constantOf(r[2]);
  if (!length)
    return e.fail("sequences of length " + e.getSymbols().toString(shape[0]) +
                      " are not supported: the length has to be known",
                  "fix that size with --shape");
  if (*length < 1 || *length > maxSteps)
    return e.fail("sequences of " + Twine(*length) +
                  " steps are not supported: 1 to " + Twine(maxSteps) + " are");
  // A step has about so many operators.
  constexpr int64_t nodesOfStep = 8;
  if (failed(e.writeOut(*length * directions * nodesOfStep)))
    return llvm::failure();
  steps = *length;
  hidden = size.value_or(0);
  AffineExpr all = e.number(gates * hidden);
  if (hidden < 1 || w[0] != e.number(directions) || r[0] != w[0] ||
      w[1] != all || r[1] != all ||
      !e.agree(w[2], shape[2], "multiplies over them"))
    return e.fail("weights of " + e.describe(n.input(1).getType()) + " and " +
                  e.describe(n.input(2).getType()) + " do not fit inputs of " +
                  e.describe(x.getType()) + " in " + Twine(directions) +
                  " directions");
  if (n.has(3) && (failed(n.needsRank(3, 2, 2)) ||
                   graph::getShape(n.input(3)) !=
                       Exprs{w[0], e.number(2 * gates * hidden)}))
    return e.fail("a bias of " + e.describe(n.input(3).getType()) +
                  " does not fit");
  if (n.has(4) &&
      (failed(n.needsRank(4, 1, 1)) ||
       !e.agree(graph::getShape(n.input(4))[0], batch, "takes a length each")))
    return e.fail("there has to be a length for each sequence of the batch");
  return llvm::success();
}

Value Recurrent::initial(unsigned operand, int64_t direction) {
  if (!n.has(operand))
    return e.broadcast(number(0), {batch, e.number(hidden)});
  if (failed(n.needsRank(operand, 3, 3)))
    return {};
  Value state = n.input(operand);
  if (n.flag("layout"))
    state = e.transpose(state, {1, 0, 2});
  state = entry(state, direction);
  Exprs dims = state ? graph::getShape(state) : Exprs();
  if (state && (!e.agree(dims[0], batch, "starts from a state each") ||
                !e.agree(dims[1], e.number(hidden), "goes on from it")))
    return e.fail("an initial state of " +
                  e.describe(n.input(operand).getType()) + " does not fit");
  return state;
}

llvm::LogicalResult Recurrent::run() {
  if (failed(readShapes()))
    return llvm::failure();
  Values sequences, lastHidden, lastCell; // by direction
  Exprs single{e.number(1), batch, e.number(hidden)};
  for (int64_t i = 0; i < directions; ++i) {
    auto names = readActivations(i);
    if (failed(names))
      return llvm::failure();
    Direction d{i, e.transpose(entry(n.input(2), i), {1, 0}), {}, {}, *names};
    if (n.has(3)) {
      Value bias = entry(n.input(3), i);
      d.inputBias = part(bias, 0, 0, gates * hidden);
      d.recurrentBias = part(bias, 0, gates * hidden, gates * hidden);
    }
    // The inputs' part of all steps at once.
    Value inputs = product(x, e.transpose(entry(n.input(1), i), {1, 0}));
    inputs = sum(e, inputs, d.inputBias);
    State state{initial(5, i), hasCell ? initial(6, i) : Value()};
    Values outputs(steps);
    bool back = i == 1 || n.text("direction", "forward") == "reverse";
    for (int64_t s = 0; s < steps; ++s) {
      int64_t t = back ? steps - 1 - s : s;
      State next = step(d, entry(inputs, t), state);
      Value output = next.hidden;
      if (!output)
        return llvm::failure();
      if (n.has(4)) {
        // Behind its end a sequence keeps its state and gives zeros.
        Value lengths =
            e.reshape(e.cast(n.input(4), e.getBuilder().getI64Type()),
                      {batch, e.number(1)});
        Value inside = e.compare(Predicate::gt, lengths,
                                 e.scalar(t, e.getBuilder().getI64Type()));
        output = e.select(inside, output, number(0));
        next.hidden = e.select(inside, next.hidden, state.hidden);
        if (hasCell)
          next.cell = e.select(inside, next.cell, state.cell);
      }
      state = next;
      outputs[t] = e.reshape(output, single);
    }
    Exprs whole{e.number(steps), e.number(1), batch, e.number(hidden)};
    if (n.wants(0))
      sequences.push_back(e.reshape(e.concat(outputs, 0), whole));
    lastHidden.push_back(e.reshape(state.hidden, single));
    if (hasCell)
      lastCell.push_back(e.reshape(state.cell, single));
  }
  bool batchFirst = n.flag("layout");
  auto last = [&](Values &states) {
    Value all = e.concat(states, 0);
    return batchFirst ? e.transpose(all, {1, 0, 2}) : all;
  };
  Value all = n.wants(0) ? e.concat(sequences, 1) : Value();
  if (all && batchFirst)
    all = e.transpose(all, {2, 0, 1, 3});
  if (!hasCell)
    return n.yield({all, last(lastHidden)});
  return n.yield({all, last(lastHidden), last(lastCell)});
}

namespace {
class Rnn : public Recurrent {
public:
  Rnn(Node &n, Emitter &e) : Recurrent(n, e, 1, 1, false) {}
  State step(const Direction &d, Value input, State before) override {
    Value x = sum(e, e.add(input, product(before.hidden, d.recurrent)),
                  d.recurrentBias);
    return {activate(d, 0, x), {}};
  }
};

/// Gates: update, reset, hidden.
class Gru : public Recurrent {
public:
  Gru(Node &n, Emitter &e) : Recurrent(n, e, 3, 2, false) {}
  State step(const Direction &d, Value input, State before) override {
    Value h = before.hidden;
    bool late = n.flag("linear_before_reset");
    // With the reset in front, the hidden gate's product has to wait for it.
    int64_t early = late ? 3 : 2;
    Value products = sum(e, product(h, gate(d.recurrent, 0, early)),
                         gate(d.recurrentBias, 0, early));
    auto both = [&](int64_t g) {
      return e.add(gate(input, g), gate(products, g));
    };
    Value update = activate(d, 0, both(0)), reset = activate(d, 0, both(1));
    Value mixed = late ? e.mul(reset, gate(products, 2))
                       : sum(e, product(e.mul(reset, h), gate(d.recurrent, 2)),
                             gate(d.recurrentBias, 2));
    Value candidate = activate(d, 1, e.add(gate(input, 2), mixed));
    return {e.add(e.mul(e.sub(number(1), update), candidate), e.mul(update, h)),
            {}};
  }
};

/// Gates: input, output, forget, cell.
class Lstm : public Recurrent {
public:
  Lstm(Node &n, Emitter &e) : Recurrent(n, e, 4, 3, true) {}
  State step(const Direction &d, Value input, State before) override {
    Value all = sum(e, e.add(input, product(before.hidden, d.recurrent)),
                    d.recurrentBias);
    // Peepholes: input, output, forget.
    auto seen = [&](int64_t g, int64_t peephole, Value cell) -> Value {
      Value x = gate(all, g);
      if (!n.has(7))
        return x;
      Exprs dims = graph::getShape(n.input(7));
      if (dims != Exprs{e.number(directions), e.number(3 * hidden)})
        return e.fail("peephole weights of " +
                      e.describe(n.input(7).getType()) + " do not fit");
      Value flat = e.slice(n.input(7), {e.number(d.index), e.number(0)}, {1, 1},
                           {e.number(1), e.number(3 * hidden)});
      return e.add(x, e.mul(gate(flat, peephole), cell));
    };
    Value in = activate(d, 0, seen(0, 0, before.cell));
    Value forget = n.flag("input_forget")
                       ? e.sub(number(1), in)
                       : activate(d, 0, seen(2, 2, before.cell));
    Value cell = e.add(e.mul(forget, before.cell),
                       e.mul(in, activate(d, 1, gate(all, 3))));
    Value out = activate(d, 0, seen(1, 1, cell));
    return {e.mul(out, activate(d, 2, cell, /*clipped=*/false)), cell};
  }
};
} // namespace

template <typename Layer>
static llvm::LogicalResult recurrent(Node &n, Emitter &e) {
  return Layer(n, e).run();
}

llvm::ArrayRef<Row> charonia::frontend::onnx::recurrentRows() {
  static const Row rows[] = {
      {"", "RNN", 1, 22, recurrent<Rnn>},
      {"", "GRU", 1, 22, recurrent<Gru>},
      {"", "LSTM", 1, 22, recurrent<Lstm>},
  };
  return rows;
}
