// Recurrent layers.
#include "frontends/common/builders/Recurrent.h"
#include "frontends/onnx/Registry.h"
#include "llvm/ADT/StringSwitch.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using llvm::Twine;
using mlir::Value;

namespace {
/// A node's operands by direction, and its results put together.
class Reader {
public:
  /// `inputWeights` and `recurrentWeights` as the node's operands 1 and 2 have
  /// them.
  Reader(Node &n, Emitter &e, RecurrentCell cell, Value inputWeights,
         Value recurrentWeights)
      : n(n), e(e), w(inputWeights), r(recurrentWeights), gates(gatesOf(cell)) {
    layer.cell = cell;
    for (int64_t gate = 0; gate < gates; ++gate)
      layer.order.push_back(gate);
  }
  llvm::LogicalResult run();

private:
  llvm::LogicalResult readShapes();
  llvm::LogicalResult checkOperands();
  /// Those of all directions.
  llvm::FailureOr<SmallVector<RecurrentActivation>> readActivations();
  llvm::LogicalResult
  readParameters(llvm::MutableArrayRef<RecurrentActivation> list);
  llvm::FailureOr<RecurrentDirection> readDirection(int64_t i);
  /// Entry `i` of the first dimension, which goes.
  Value entry(Value v, int64_t i);
  Value part(Value v, int64_t start, int64_t count);
  Value initial(unsigned operand, int64_t direction);
  Value lastStates(Values states);

  Node &n;
  Emitter &e;
  Value w, r;
  RecurrentLayer layer;
  int64_t gates, directions = 1;
};
} // namespace

Value Reader::entry(Value v, int64_t i) {
  if (!v)
    return {};
  Exprs dims = graph::getShape(v), starts(dims.size(), e.number(0));
  starts[0] = e.number(i);
  dims[0] = e.number(1);
  Value one = e.slice(v, starts, SmallVector<int64_t>(dims.size(), 1), dims);
  return e.reshape(one, llvm::ArrayRef(dims).drop_front());
}
Value Reader::part(Value v, int64_t start, int64_t count) {
  return v ? e.slice(v, {e.number(start)}, {1}, {e.number(count)}) : Value();
}

/// A parameter where the node gives none: of HardSigmoid, LeakyRelu and Elu
/// that of the operator. Of the others ONNX's text (which knows no operator for
/// two of them) and ONNX Runtime say different things.
static std::optional<double> defaultParameter(llvm::StringRef name,
                                              bool isAlpha) {
  return llvm::StringSwitch<std::optional<double>>(name)
      .Case("hardsigmoid", isAlpha ? 0.2 : 0.5)
      .Case("leakyrelu", 0.01)
      .Case("elu", 1.0)
      .Default(std::nullopt);
}

/// Each list has the parameters of those functions that take one, in order.
llvm::LogicalResult
Reader::readParameters(llvm::MutableArrayRef<RecurrentActivation> list) {
  for (bool isAlpha : {true, false}) {
    const char *attribute = isAlpha ? "activation_alpha" : "activation_beta";
    SmallVector<double> given = n.numbersOf(attribute);
    size_t next = 0;
    for (RecurrentActivation &function : list) {
      if (*recurrentParameters(function.name) < (isAlpha ? 1u : 2u))
        continue;
      std::optional<double> value =
          next < given.size() ? given[next++]
                              : defaultParameter(function.name, isAlpha);
      if (!value)
        return e.fail("activation '" + function.name + "' has no entry in '" +
                          attribute + "'",
                      "state all parameters: runtimes have different defaults");
      (isAlpha ? function.alpha : function.beta) = *value;
    }
  }
  return llvm::success();
}

llvm::FailureOr<SmallVector<RecurrentActivation>> Reader::readActivations() {
  SmallVector<RecurrentActivation> all, cell = defaultActivations(layer.cell);
  int64_t functions = cell.size();
  for (int64_t i = 0; i < directions; ++i)
    all.append(cell);
  const ::onnx::AttributeProto *given = n.find("activations");
  if (!given || !given->strings_size())
    return all;
  // The schema's default for RNN is that of two directions.
  if (given->strings_size() < functions * directions)
    return e.fail("attribute 'activations' has " +
                  Twine(given->strings_size()) + " entries, but needs " +
                  Twine(functions * directions));
  for (auto [i, function] : llvm::enumerate(all)) {
    function.name = llvm::StringRef(given->strings(i)).lower();
    if (!recurrentParameters(function.name))
      return e.fail("activation '" + function.name + "' is not supported",
                    "use one of those that ONNX names");
  }
  if (failed(readParameters(all)))
    return llvm::failure();
  return all;
}

llvm::LogicalResult Reader::readShapes() {
  for (unsigned i : {0, 1, 2})
    if (failed(n.needsRank(i, 3, 3)))
      return llvm::failure();
  if (!w || !r)
    return llvm::failure();
  layer.input = n.input(0);
  if (n.flag("layout"))
    layer.input = e.transpose(layer.input, {1, 0, 2});
  std::string direction = n.text("direction", "forward");
  if (direction == "bidirectional")
    directions = 2;
  // ONNX misspells the default of GRU-1.
  else if (direction != "forward" && direction != "reverse" &&
           direction != "foward")
    return e.fail("attribute 'direction' may not be '" + direction + "'");
  if (!layer.input)
    return llvm::failure();
  Exprs shape = graph::getShape(layer.input);
  layer.batch = shape[1];
  layer.steps = shape[0];
  if (failed(checkSteps(layer.steps, directions, e)))
    return llvm::failure();
  layer.hidden = graph::constantOf(graph::getShape(r)[2]).value_or(0);
  return checkOperands();
}

llvm::LogicalResult Reader::checkOperands() {
  int64_t hidden = layer.hidden;
  Exprs shape = graph::getShape(layer.input), ws = graph::getShape(w),
        rs = graph::getShape(r);
  mlir::AffineExpr all = e.number(gates * hidden);
  if (hidden < 1 || ws[0] != e.number(directions) || rs[0] != ws[0] ||
      ws[1] != all || rs[1] != all ||
      !e.agree(ws[2], shape[2], "multiplies over them"))
    return e.fail("weights of " + e.describe(w.getType()) + " and " +
                  e.describe(r.getType()) + " do not fit inputs of " +
                  e.describe(layer.input.getType()) + " in " +
                  Twine(directions) + " directions");
  if (n.has(3) && (failed(n.needsRank(3, 2, 2)) ||
                   graph::getShape(n.input(3)) !=
                       Exprs{ws[0], e.number(2 * gates * hidden)}))
    return e.fail("a bias of " + e.describe(n.input(3).getType()) +
                  " does not fit");
  if (n.has(4) && (failed(n.needsRank(4, 1, 1)) ||
                   !e.agree(graph::getShape(n.input(4))[0], layer.batch,
                            "takes a length each")))
    return e.fail("there has to be a length for each sequence of the batch");
  if (n.has(7) && graph::getShape(n.input(7)) !=
                      Exprs{e.number(directions), e.number(3 * hidden)})
    return e.fail("peephole weights of " + e.describe(n.input(7).getType()) +
                  " do not fit");
  return llvm::success();
}

Value Reader::initial(unsigned operand, int64_t direction) {
  if (!n.has(operand) || failed(n.needsRank(operand, 3, 3)))
    return {};
  Value state = n.input(operand);
  if (n.flag("layout"))
    state = e.transpose(state, {1, 0, 2});
  return entry(state, direction);
}

llvm::FailureOr<RecurrentDirection> Reader::readDirection(int64_t i) {
  auto functions = readActivations();
  if (failed(functions))
    return llvm::failure();
  RecurrentDirection d;
  int64_t each = activationsOf(layer.cell);
  auto own = llvm::ArrayRef(*functions).slice(i * each, each);
  d.activations.assign(own.begin(), own.end());
  d.isBackward = i == 1 || n.text("direction", "forward") == "reverse";
  d.input = entry(w, i);
  d.recurrent = entry(r, i);
  if (n.has(3)) {
    Value bias = entry(n.input(3), i);
    int64_t all = gates * layer.hidden;
    d.inputBias = part(bias, 0, all);
    d.recurrentBias = part(bias, all, all);
  }
  d.hidden = initial(5, i);
  if (layer.cell == RecurrentCell::Lstm) {
    d.cell = initial(6, i);
    d.peepholes = n.has(7) ? entry(n.input(7), i) : Value();
  }
  if (e.failed())
    return llvm::failure();
  return d;
}

/// [directions, batch, hidden], or the batch first.
Value Reader::lastStates(Values states) {
  Exprs single{e.number(1), layer.batch, e.number(layer.hidden)};
  for (Value &state : states)
    state = e.reshape(state, single);
  Value all = e.concat(states, 0);
  return n.flag("layout") ? e.transpose(all, {1, 0, 2}) : all;
}

llvm::LogicalResult Reader::run() {
  if (failed(readShapes()))
    return llvm::failure();
  layer.lengths = n.has(4) ? n.input(4) : Value();
  layer.clip = n.number("clip");
  layer.resetsLate =
      layer.cell == RecurrentCell::Gru && n.flag("linear_before_reset");
  layer.joinsForget =
      layer.cell == RecurrentCell::Lstm && n.flag("input_forget");
  Values sequences, lastHidden, lastCell; // by direction
  Exprs whole{layer.steps, e.number(1), layer.batch, e.number(layer.hidden)};
  for (int64_t i = 0; i < directions; ++i) {
    auto direction = readDirection(i);
    if (failed(direction))
      return llvm::failure();
    RecurrentStates states = buildRecurrent(layer, *direction, e);
    if (!states.outputs)
      return llvm::failure();
    if (n.wants(0))
      sequences.push_back(e.reshape(states.outputs, whole));
    lastHidden.push_back(states.hidden);
    lastCell.push_back(states.cell);
  }
  Value all = n.wants(0) ? e.concat(sequences, 1) : Value();
  if (all && n.flag("layout"))
    all = e.transpose(all, {2, 0, 1, 3});
  if (layer.cell != RecurrentCell::Lstm)
    return n.yield({all, lastStates(lastHidden)});
  return n.yield({all, lastStates(lastHidden), lastStates(lastCell)});
}

template <RecurrentCell cell>
static llvm::LogicalResult recurrent(Node &n, Emitter &e) {
  return Reader(n, e, cell, n.input(1), n.input(2)).run();
}

/// Weights of integers, [directions, width, 4 * hidden], as LSTM has them in
/// float. Scale and zero point are operand `scaleAt` and the one behind it, of
/// a direction or of each of its columns.
static Value dequantizedWeights(Node &n, Emitter &e, unsigned i,
                                unsigned scaleAt) {
  if (failed(n.needsRank(i, 3, 3)))
    return {};
  Value weights = e.transpose(n.input(i), {0, 2, 1});
  Exprs shape = graph::getShape(weights);
  mlir::Type f32 = e.getBuilder().getF32Type();
  auto parameter = [&](unsigned k) -> Value {
    Exprs dims = graph::getShape(n.input(k));
    if (dims.empty() || dims.size() > 2 ||
        dims != llvm::ArrayRef(shape).take_front(dims.size()))
      return e.fail(
          "input " + Twine(k) + ", " + e.describe(n.input(k).getType()) +
          ", does not fit weights of " + e.describe(n.input(i).getType()));
    dims.resize(3, e.number(1));
    return e.cast(e.reshape(n.input(k), dims), f32);
  };
  Value distances = e.sub(e.cast(weights, f32), parameter(scaleAt + 1));
  return e.mul(distances, parameter(scaleAt));
}

/// An LSTM of weights that are integers. ONNX Runtime also makes bytes of the
/// inputs and of the states of each step; these stay floats here.
static llvm::LogicalResult dynamicQuantizeLstm(Node &n, Emitter &e) {
  return Reader(n, e, RecurrentCell::Lstm, dequantizedWeights(n, e, 1, 8),
                dequantizedWeights(n, e, 2, 10))
      .run();
}

llvm::ArrayRef<Row> charonia::frontend::onnx::recurrentRows() {
  static const Row rows[] = {
      {"", "RNN", 1, 22, recurrent<RecurrentCell::Rnn>},
      {"", "GRU", 1, 22, recurrent<RecurrentCell::Gru>},
      {"", "LSTM", 1, 22, recurrent<RecurrentCell::Lstm>},
      {"com.microsoft", "DynamicQuantizeLSTM", 1, 1, dynamicQuantizeLstm},
  };
  return rows;
}
