// Recurrent layers and cells.
#include "frontends/common/builders/Recurrent.h"
#include "frontends/pytorch/ops/Rows.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;

namespace {
/// A cell, and where its gates lie in weights.
struct CellForm {
  RecurrentCell cell;
  const char *activation; ///< Of RNN.
  RecurrentLayer start() const {
    RecurrentLayer layer;
    layer.cell = cell;
    layer.resetsLate = cell == RecurrentCell::Gru;
    if (cell == RecurrentCell::Lstm)
      layer.order = {0, 3, 1, 2}; // input, forget, cell, output
    else if (cell == RecurrentCell::Gru)
      layer.order = {1, 0, 2}; // reset, update, hidden
    else
      layer.order = {0};
    return layer;
  }
  SmallVector<RecurrentActivation> activations() const {
    return cell == RecurrentCell::Rnn
               ? SmallVector<RecurrentActivation>{{activation}}
               : defaultActivations(cell);
  }
};

/// Layers on top of each other, in one or both directions.
class Stack {
public:
  Stack(Call &c, CellForm form) : c(c), e(c.getEmitter()), form(form) {}
  LogicalResult run();

private:
  bool read();
  RecurrentDirection direction(int64_t layer, int64_t d);
  bool fits(const RecurrentDirection &d, const RecurrentLayer &layer);
  /// Entry `i` of a state [layers * directions, batch, hidden].
  Value entry(Value states, int64_t i);
  Value joinStates(Values states, Exprs shape);

  Call &c;
  Emitter &e;
  CellForm form;
  Value x; // [steps, batch, features]
  Values states, parameters;
  bool hasBiases = true, isBatch = true, isProjected = false;
  size_t perDirection = 4; ///< Parameters.
  /// Of what is put out: the hidden state's, or the projected one's.
  int64_t outputSize = 0;
  int64_t layers = 1, directions = 1;
  mlir::AffineExpr steps;
};
} // namespace

bool Stack::read() {
  x = c.tensor("input");
  states = form.cell == RecurrentCell::Lstm ? c.tensors("hx")
                                            : Values{c.tensor("hx")};
  parameters = c.tensors("params");
  hasBiases = c.flag("has_biases");
  layers = c.integer("num_layers");
  directions = c.flag("bidirectional") ? 2 : 1;
  bool batchFirst = c.flag("batch_first"), train = c.flag("train");
  double dropout = c.number("dropout");
  if (!x || e.failed())
    return false;
  if (train && dropout != 0) {
    c.fail("is exported for training", "export the model in eval()");
    return false;
  }
  constexpr int64_t maxLayers = 256;
  bool isGood = layers >= 1 && layers <= maxLayers;
  perDirection = hasBiases ? 4 : 2;
  isProjected = form.cell == RecurrentCell::Lstm && isGood &&
                parameters.size() == (perDirection + 1) * layers * directions;
  perDirection += isProjected;
  if (!isGood || parameters.size() != perDirection * layers * directions) {
    c.fail("has " + Twine(parameters.size()) + " parameters for " +
           Twine(layers) + " layers in " + Twine(directions) + " directions");
    return false;
  }
  isBatch = rankOf(x) == 3;
  if (rankOf(x) != 2 && !isBatch) {
    c.fail("needs an input of 2 or 3 dimensions, not " + Twine(rankOf(x)));
    return false;
  }
  Exprs shape = graph::getShape(x);
  if (!isBatch)
    x = e.reshape(x, {shape[0], e.number(1), shape[1]});
  else if (batchFirst)
    x = e.transpose(x, {1, 0, 2});
  size_t wanted = form.cell == RecurrentCell::Lstm ? 2 : 1;
  bool areStates = states.size() == wanted;
  for (Value &state : states) {
    areStates = areStates && state && rankOf(state) == rankOf(x) - !isBatch;
    if (areStates && !isBatch) {
      Exprs dims = graph::getShape(state);
      state = e.reshape(state, {dims[0], e.number(1), dims[1]});
    }
    areStates = areStates && state &&
                graph::getShape(state)[0] == e.number(layers * directions);
  }
  if (!areStates)
    c.fail("its initial states do not fit");
  return x && !e.failed();
}

Value Stack::entry(Value states, int64_t i) {
  Exprs shape = graph::getShape(states);
  shape[0] = e.number(1);
  Value one = e.slice(states, {e.number(i), e.number(0), e.number(0)},
                      {1, 1, 1}, shape);
  return e.reshape(one, llvm::ArrayRef(shape).drop_front());
}

RecurrentDirection Stack::direction(int64_t layer, int64_t d) {
  RecurrentDirection result;
  size_t index = layer * directions + d, at = index * perDirection;
  result.isBackward = d == 1;
  result.input = parameters[at];
  result.recurrent = parameters[at + 1];
  if (hasBiases) {
    result.inputBias = parameters[at + 2];
    result.recurrentBias = parameters[at + 3];
  }
  if (isProjected)
    result.projection = parameters[at + perDirection - 1];
  result.hidden = entry(states[0], index);
  if (states.size() > 1)
    result.cell = entry(states[1], index);
  result.activations = form.activations();
  return result;
}

/// Whether the parameters have the shapes of the layer, and those its size.
bool Stack::fits(const RecurrentDirection &d, const RecurrentLayer &layer) {
  AffineExpr all = e.number(gatesOf(form.cell) * layer.hidden);
  Exprs features = graph::getShape(layer.input);
  auto isMatrix = [&](Value m, AffineExpr columns) {
    return m && rankOf(m) == 2 && graph::getShape(m)[0] == all &&
           e.agree(graph::getShape(m)[1], columns, "multiplies over them");
  };
  auto isVector = [&](Value v) {
    return !hasBiases || (v && graph::getShape(v) == Exprs{all});
  };
  Exprs projected = {e.number(outputSize), e.number(layer.hidden)};
  if (layer.hidden >= 1 && outputSize >= 1 && isMatrix(d.input, features[2]) &&
      isMatrix(d.recurrent, projected[0]) && isVector(d.inputBias) &&
      isVector(d.recurrentBias) &&
      (!isProjected ||
       (d.projection && graph::getShape(d.projection) == projected)))
    return true;
  c.fail("its parameters do not fit an input of " + e.describe(features));
  return false;
}

Value Stack::joinStates(Values states, Exprs shape) {
  for (Value &state : states) {
    if (!state)
      return {};
    Exprs single = graph::getShape(state);
    single.insert(single.begin(), e.number(1));
    state = e.reshape(state, single);
  }
  return e.reshape(e.concat(states, 0), shape);
}

LogicalResult Stack::run() {
  if (!read())
    return c.yield(Value());
  steps = graph::getShape(x)[0];
  if (failed(checkSteps(steps, layers * directions, e)))
    return llvm::failure();
  Value input = x;
  Values lastHidden, lastCell;
  for (int64_t l = 0; l < layers; ++l) {
    Values sides;
    for (int64_t d = 0; d < directions; ++d) {
      RecurrentLayer layer = form.start();
      RecurrentDirection side = direction(l, d);
      layer.steps = steps;
      layer.batch = graph::getShape(x)[1];
      layer.input = input;
      auto sizeOf = [](Value state) {
        return graph::constantOf(graph::getShape(state)[2]).value_or(0);
      };
      outputSize = sizeOf(states[0]);
      layer.hidden = isProjected ? sizeOf(states[1]) : outputSize;
      if (!fits(side, layer))
        return llvm::failure();
      RecurrentStates result = buildRecurrent(layer, side, e);
      if (!result.outputs)
        return llvm::failure();
      sides.push_back(result.outputs);
      lastHidden.push_back(result.hidden);
      lastCell.push_back(result.cell);
    }
    input = sides.size() == 1 ? sides[0] : e.concat(sides, 2);
  }
  Value y =
      isBatch && c.flag("batch_first") ? e.transpose(input, {1, 0, 2}) : input;
  Values results = {e.reshape(y, c.resultShape(0)),
                    joinStates(lastHidden, c.resultShape(1))};
  if (form.cell == RecurrentCell::Lstm)
    results.push_back(joinStates(lastCell, c.resultShape(2)));
  return c.yield(results);
}

/// One step of a layer.
static LogicalResult cellStep(Call &c, CellForm form) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("input");
  bool isLstm = form.cell == RecurrentCell::Lstm;
  Values states = isLstm ? c.tensors("hx") : Values{c.tensor("hx")};
  RecurrentDirection d;
  d.input = c.tensor("w_ih");
  d.recurrent = c.tensor("w_hh");
  d.inputBias = c.optionalTensor("b_ih");
  d.recurrentBias = c.optionalTensor("b_hh");
  d.activations = form.activations();
  if (e.failed() || rankOf(x) < 1 || rankOf(x) > 2 ||
      states.size() != (isLstm ? 2 : 1) || rankOf(d.input) != 2 ||
      rankOf(d.recurrent) != 2)
    return c.fail("its operands do not fit");
  RecurrentLayer layer = form.start();
  layer.steps = e.number(1);
  Exprs shape = graph::getShape(x);
  layer.batch = shape.size() == 2 ? shape[0] : e.number(1);
  layer.input = e.reshape(x, {e.number(1), layer.batch, shape.back()});
  layer.hidden = graph::constantOf(graph::getShape(d.recurrent)[1]).value_or(0);
  Exprs state = {layer.batch, e.number(layer.hidden)};
  d.hidden = e.reshape(states[0], state);
  d.cell = isLstm ? e.reshape(states[1], state) : Value();
  if (layer.hidden < 1 || graph::getShape(d.recurrent)[0] !=
                              e.number(gatesOf(form.cell) * layer.hidden))
    return c.fail("its weights do not fit");
  RecurrentStates result = buildRecurrent(layer, d, e);
  Value y = e.reshape(result.hidden, c.resultShape(0));
  if (!isLstm)
    return c.yield(y);
  return c.yield({y, e.reshape(result.cell, c.resultShape(1))});
}

constexpr CellForm lstmForm{RecurrentCell::Lstm, ""},
    gruForm{RecurrentCell::Gru, ""}, tanhForm{RecurrentCell::Rnn, "tanh"},
    reluForm{RecurrentCell::Rnn, "relu"};

template <const CellForm &form> static LogicalResult layers(Call &c) {
  return Stack(c, form).run();
}
template <const CellForm &form> static LogicalResult cell(Call &c) {
  return cellStep(c, form);
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::recurrentRows() {
  static const Row rows[] = {
      {"aten.lstm.input", layers<lstmForm>},
      {"aten.gru.input", layers<gruForm>},
      {"aten.rnn_tanh.input", layers<tanhForm>},
      {"aten.rnn_relu.input", layers<reluForm>},
      {"aten.lstm_cell.default", cell<lstmForm>},
      {"aten.gru_cell.default", cell<gruForm>},
      {"aten.rnn_tanh_cell.default", cell<tanhForm>},
      {"aten.rnn_relu_cell.default", cell<reluForm>},
  };
  return rows;
}
