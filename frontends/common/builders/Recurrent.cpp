#include "frontends/common/builders/Recurrent.h"
#include "frontends/common/RepeatedSteps.h"
#include "frontends/common/builders/Activation.h"
#include "llvm/ADT/StringSwitch.h"

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using llvm::Twine;
using mlir::Value;

int64_t charonia::frontend::gatesOf(RecurrentCell cell) {
  return cell == RecurrentCell::Rnn ? 1 : cell == RecurrentCell::Gru ? 3 : 4;
}
int64_t charonia::frontend::activationsOf(RecurrentCell cell) {
  return cell == RecurrentCell::Rnn ? 1 : cell == RecurrentCell::Gru ? 2 : 3;
}
SmallVector<RecurrentActivation>
charonia::frontend::defaultActivations(RecurrentCell cell) {
  SmallVector<RecurrentActivation> list(activationsOf(cell), {"tanh"});
  if (cell != RecurrentCell::Rnn)
    list[0].name = "sigmoid";
  return list;
}
std::optional<unsigned>
charonia::frontend::recurrentParameters(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<unsigned>>(name)
      .Cases({"sigmoid", "tanh", "relu", "softsign", "softplus"}, 0)
      .Cases({"leakyrelu", "thresholdedrelu", "elu"}, 1)
      .Cases({"affine", "scaledtanh", "hardsigmoid"}, 2)
      .Default(std::nullopt);
}

static bool isWrittenOut(mlir::AffineExpr steps) {
  auto known = graph::constantOf(steps);
  return known && *known <= mostWrittenOut;
}

llvm::LogicalResult charonia::frontend::checkSteps(mlir::AffineExpr length,
                                                   int64_t directions,
                                                   Emitter &e) {
  auto steps = graph::constantOf(length);
  if (steps && *steps < 1)
    return e.fail("sequences of " + Twine(*steps) +
                  " steps are not supported: 1 and more are");
  // A step has about so many operators.
  constexpr int64_t nodesOfStep = 8;
  return e.writeOut((isWrittenOut(length) ? *steps : 1) * directions *
                    nodesOfStep);
}

namespace {
class Recurrence {
public:
  Recurrence(const RecurrentLayer &layer, const RecurrentDirection &direction,
             Emitter &e)
      : l(layer), d(direction), e(e), element(elementOf(layer.input)) {
    if (d.recurrent)
      recurrent = e.transpose(d.recurrent, {1, 0});
    if (d.projection)
      projection = e.transpose(d.projection, {1, 0});
  }
  RecurrentStates run();

private:
  struct State {
    Value hidden, cell;
  };
  /// The state after a step; `input` is X W of all gates.
  State step(Value input, const State &before);
  State stepRnn(Value input, const State &before);
  State stepGru(Value input, const State &before);
  State stepLstm(Value input, const State &before);
  Value start(Value given, int64_t size);
  int64_t outputSize() {
    return projection
               ? graph::constantOf(graph::getShape(projection)[1]).value_or(0)
               : l.hidden;
  }
  Value runningSteps();
  Value keepEnded(Value inside, const State &before, State &next);

  Value part(Value v, int64_t axis, mlir::AffineExpr first, int64_t count);
  /// Row `t` of the first dimension, which goes.
  Value row(Value v, mlir::AffineExpr t);
  /// The step that is in place `t` of the sequence: its output, and the states
  /// behind it.
  std::pair<Value, State> stepAt(mlir::AffineExpr t, const State &before);
  RecurrentStates writeOut(State state, int64_t steps);
  RecurrentStates repeat(const State &state);
  /// Gates [first, first + count) of `v`, whose last dimension holds all.
  Value gates(Value v, int64_t first, int64_t count);
  Value gate(Value v, int64_t which) { return gates(v, l.order[which], 1); }
  /// Activation `which`; operands of gates are clipped.
  Value activate(unsigned which, Value x, bool clipped = true);
  Value number(double value) { return e.scalar(value, element); }
  Value product(Value x, Value matrix) {
    return e.op<graph::MatmulOp>({x, matrix});
  }
  Value sum(Value a, Value b) { return a && b ? e.add(a, b) : a ? a : b; }

  const RecurrentLayer &l;
  const RecurrentDirection &d;
  Emitter &e;
  mlir::Type element;
  Value recurrent;  // [hidden or projected, gates * hidden]
  Value projection; // [hidden, projected], may be null
  Value inputs;     // X W of all steps
  Value running;    // as runningSteps gives it
};
} // namespace

Value Recurrence::part(Value v, int64_t axis, mlir::AffineExpr first,
                       int64_t count) {
  if (!v)
    return {};
  Exprs dims = graph::getShape(v), starts(dims.size(), e.number(0));
  starts[axis] = first;
  dims[axis] = e.number(count);
  return e.slice(v, starts, SmallVector<int64_t>(dims.size(), 1), dims);
}
Value Recurrence::row(Value v, mlir::AffineExpr t) {
  Value one = part(v, 0, t, 1);
  if (!one)
    return {};
  Exprs dims = graph::getShape(one);
  return e.reshape(one, llvm::ArrayRef(dims).drop_front());
}
Value Recurrence::gates(Value v, int64_t first, int64_t count) {
  return v ? part(v, rankOf(v) - 1, e.number(first * l.hidden),
                  count * l.hidden)
           : Value();
}

static Value apply(const RecurrentActivation &function, Value x, Emitter &e) {
  const auto &[given, alpha, beta] = function;
  llvm::StringRef name = given;
  auto number = [&](double value) { return e.scalar(value, elementOf(x)); };
  if (name == "sigmoid")
    return e.op<graph::SigmoidOp>({x});
  if (name == "tanh")
    return e.op<graph::TanhOp>({x});
  if (name == "relu")
    return buildRelu(x, e);
  if (name == "softsign")
    return buildSoftsign(x, e);
  if (name == "softplus")
    return buildSoftplus(x, e);
  if (name == "leakyrelu")
    return buildLeakyRelu(x, alpha, e);
  if (name == "elu")
    return buildElu(x, alpha, e);
  if (name == "hardsigmoid")
    return buildHardSigmoid(x, alpha, beta, e);
  if (name == "thresholdedrelu")
    return e.select(e.compare(graph::Predicate::gt, x, number(alpha)), x,
                    number(0));
  if (name == "scaledtanh")
    return e.mul(e.op<graph::TanhOp>({e.mul(x, number(beta))}), number(alpha));
  return e.add(e.mul(x, number(alpha)), number(beta)); // affine
}

Value Recurrence::activate(unsigned which, Value x, bool clipped) {
  if (l.clip > 0 && clipped)
    x = e.min(e.max(x, number(-l.clip)), number(l.clip));
  return apply(d.activations[which], x, e);
}

Recurrence::State Recurrence::stepRnn(Value input, const State &before) {
  Value x =
      sum(e.add(input, product(before.hidden, recurrent)), d.recurrentBias);
  return {activate(0, x), {}};
}

Recurrence::State Recurrence::stepGru(Value input, const State &before) {
  Value h = before.hidden;
  // With the reset in front, the hidden gate's product has to wait for it.
  int64_t early = l.resetsLate ? 3 : 2;
  Value products = sum(product(h, gates(recurrent, 0, early)),
                       gates(d.recurrentBias, 0, early));
  auto both = [&](int64_t g) {
    return e.add(gate(input, g), gate(products, g));
  };
  Value update = activate(0, both(0)), reset = activate(0, both(1));
  Value mixed = l.resetsLate ? e.mul(reset, gate(products, 2))
                             : sum(product(e.mul(reset, h), gate(recurrent, 2)),
                                   gate(d.recurrentBias, 2));
  Value candidate = activate(1, e.add(gate(input, 2), mixed));
  return {e.add(e.mul(e.sub(number(1), update), candidate), e.mul(update, h)),
          {}};
}

Recurrence::State Recurrence::stepLstm(Value input, const State &before) {
  Value all =
      sum(e.add(input, product(before.hidden, recurrent)), d.recurrentBias);
  auto seen = [&](int64_t g, int64_t peephole, Value cell) -> Value {
    Value x = gate(all, g);
    return d.peepholes ? e.add(x, e.mul(gates(d.peepholes, peephole, 1), cell))
                       : x;
  };
  Value in = activate(0, seen(0, 0, before.cell));
  Value forget = l.joinsForget ? e.sub(number(1), in)
                               : activate(0, seen(2, 2, before.cell));
  Value cell =
      e.add(e.mul(forget, before.cell), e.mul(in, activate(1, gate(all, 3))));
  Value out = activate(0, seen(1, 1, cell));
  Value hidden = e.mul(out, activate(2, cell, /*clipped=*/false));
  return {projection ? product(hidden, projection) : hidden, cell};
}

Recurrence::State Recurrence::step(Value input, const State &before) {
  switch (l.cell) {
  case RecurrentCell::Rnn:
    return stepRnn(input, before);
  case RecurrentCell::Gru:
    return stepGru(input, before);
  case RecurrentCell::Lstm:
    return stepLstm(input, before);
  }
  return {};
}

Value Recurrence::start(Value given, int64_t size) {
  if (!given)
    return e.broadcast(number(0), {l.batch, e.number(size)});
  Exprs dims = graph::getShape(given);
  if (dims.size() != 2 ||
      !e.agree(dims[0], l.batch, "starts from a state each") ||
      !e.agree(dims[1], e.number(size), "goes on from it"))
    return e.fail("an initial state of " + e.describe(given.getType()) +
                  " does not fit");
  return given;
}

/// Of each step, which sequences have not ended before it: [steps, batch, 1].
/// In one comparison, so that steps differ in the place alone where they read.
Value Recurrence::runningSteps() {
  if (!l.lengths)
    return {};
  mlir::Type i64 = e.getBuilder().getI64Type();
  mlir::AffineExpr one = e.number(1);
  Value lengths = e.reshape(e.cast(l.lengths, i64), {one, l.batch, one});
  return e.compare(graph::Predicate::gt, lengths,
                   e.iota({l.steps, one, one}, 0, i64));
}

/// Behind its end a sequence keeps its state and gives zeros.
Value Recurrence::keepEnded(Value inside, const State &before, State &next) {
  Value output = e.select(inside, next.hidden, number(0));
  next.hidden = e.select(inside, next.hidden, before.hidden);
  if (next.cell)
    next.cell = e.select(inside, next.cell, before.cell);
  return output;
}

std::pair<Value, Recurrence::State> Recurrence::stepAt(mlir::AffineExpr t,
                                                       const State &before) {
  State next = step(row(inputs, t), before);
  if (!next.hidden)
    return {};
  Value output =
      running ? keepEnded(row(running, t), before, next) : next.hidden;
  return {output, next};
}

RecurrentStates Recurrence::writeOut(State state, int64_t steps) {
  Values outputs(steps);
  for (int64_t s = 0; s < steps; ++s) {
    int64_t t = d.isBackward ? steps - 1 - s : s;
    auto [output, next] = stepAt(e.number(t), state);
    if (!output)
      return {};
    Exprs one = graph::getShape(output);
    one.insert(one.begin(), e.number(1));
    outputs[t] = e.reshape(output, one);
    state = next;
  }
  return {e.concat(outputs, 0), state.hidden, state.cell};
}

RecurrentStates Recurrence::repeat(const State &state) {
  RepeatedSteps steps(l.steps, e);
  mlir::AffineExpr counter = steps.counter;
  if (!counter)
    return {};
  mlir::AffineExpr place =
      d.isBackward ? graph::simplify(l.steps - 1 - counter) : counter;
  Value hidden = steps.carry(state.hidden),
        cell = state.cell ? steps.carry(state.cell) : Value();
  auto [output, next] = stepAt(place, {hidden, cell});
  if (!output)
    return {};
  Values after{next.hidden};
  if (next.cell)
    after.push_back(next.cell);
  Values results = steps.finish(after, output, place);
  return {results.back(), results[0], next.cell ? results[1] : Value()};
}

RecurrentStates Recurrence::run() {
  if (!l.input || !d.input || !recurrent)
    return {};
  running = runningSteps();
  // The inputs' part of all steps at once.
  inputs = sum(product(l.input, e.transpose(d.input, {1, 0})), d.inputBias);
  State state{start(d.hidden, outputSize()), l.cell == RecurrentCell::Lstm
                                                 ? start(d.cell, l.hidden)
                                                 : Value()};
  return isWrittenOut(l.steps) ? writeOut(state, *graph::constantOf(l.steps))
                               : repeat(state);
}

RecurrentStates
charonia::frontend::buildRecurrent(const RecurrentLayer &layer,
                                   const RecurrentDirection &direction,
                                   Emitter &e) {
  return Recurrence(layer, direction, e).run();
}
