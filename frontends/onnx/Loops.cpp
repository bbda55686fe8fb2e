// Loops: their bodies, one after another where the number of steps is known, or
// once, for steps that are repeated.
#include "frontends/onnx/Loops.h"
#include "frontends/common/OpenLoops.h"
#include "frontends/common/SizeCases.h"
#include "frontends/common/Steps.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::LogicalResult;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;
using ::onnx::AttributeProto;
using ::onnx::NodeProto;

::onnx::GraphProto *charonia::frontend::onnx::bodyOf(NodeProto &node) {
  for (AttributeProto &attribute : *node.mutable_attribute())
    if (attribute.name() == "body" && attribute.has_g())
      return attribute.mutable_g();
  return nullptr;
}

Value charonia::frontend::onnx::stackSteps(llvm::ArrayRef<Value> steps,
                                           int64_t axis, bool reverse,
                                           Emitter &e) {
  Values parts;
  for (Value step : steps) {
    Exprs dims = graph::getShape(step);
    if (axis < 0)
      axis += dims.size() + 1;
    if (axis < 0 || axis > static_cast<int64_t>(dims.size()))
      return e.fail("the axis of an output of the body is out of range");
    dims.insert(dims.begin() + axis, e.number(1));
    parts.push_back(e.reshape(step, dims));
  }
  if (reverse)
    std::reverse(parts.begin(), parts.end());
  return e.concat(parts, axis);
}

LogicalResult GraphImporter::importStep(const ::onnx::GraphProto &body,
                                        Nodes &nodes,
                                        const std::vector<Binding> &inputs,
                                        llvm::ArrayRef<std::string> roots,
                                        Scope &around, const Frame &frame,
                                        std::vector<Binding> &outputs) {
  // Initializers are there once, constants among the nodes in every step.
  int64_t bytes = 0;
  for (const NodeProto &node : nodes)
    bytes += node.ByteSizeLong();
  if (failed(countExpandedBytes(bytes)) || failed(emitter.writeOut(1)))
    return llvm::failure();
  Scope scope = around.inner();
  for (auto [i, input] : llvm::enumerate(inputs)) {
    if (!input.isBuilt())
      return emitter.fail("an input of the body is missing",
                          "export the model again");
    scope.values[body.input(i).name()] = input;
  }
  size_t before = diagnostics.size();
  if (!importNodes(nodes, roots.vec(), scope, &frame) ||
      diagnostics.size() != before)
    return llvm::failure();
  outputs.clear();
  for (const std::string &name : roots) {
    const Binding *output = lookup(name, scope, &frame);
    if (!output || !output->isBuilt())
      return emitter.fail("the body does not compute its output '" +
                              printable(name) + "'",
                          "export the model again");
    outputs.push_back(*output);
  }
  return llvm::success();
}

static std::vector<std::string> outputsOf(const ::onnx::GraphProto &body) {
  std::vector<std::string> names;
  for (const auto &output : body.output())
    names.push_back(output.name());
  return names;
}

static Binding bind(Value value) {
  Binding binding;
  binding.value = value;
  return binding;
}

/// The outputs' values: no sequences.
static LogicalResult tensorsOf(llvm::ArrayRef<Binding> outputs,
                               std::vector<Value> &values, Emitter &e) {
  values.clear();
  for (const Binding &output : outputs) {
    if (!output.value)
      return e.fail("an output of the body is a sequence where a tensor is "
                    "expected",
                    "export the model again");
    values.push_back(output.value);
  }
  return llvm::success();
}

LogicalResult GraphImporter::importStep(::onnx::GraphProto &body,
                                        const std::vector<Value> &inputs,
                                        Scope &around, const Frame &frame,
                                        std::vector<Value> &outputs) {
  std::vector<Binding> given, found;
  for (Value input : inputs)
    given.push_back(bind(input));
  if (failed(importStep(body, *body.mutable_node(), given, outputsOf(body),
                        around, frame, found)))
    return llvm::failure();
  return tensorsOf(found, outputs, emitter);
}

/// The condition of a Loop before step `step`: that its number of steps is not
/// reached, and what the step before said; null stands for true.
static Value goesOn(int64_t step, Value trips, Value condition, Emitter &e) {
  // Of one element; all else is refused as no condition.
  auto single = [&](Value value) {
    bool isLine = rankOf(value) == 1 && graph::getShape(value)[0] == 1;
    return isLine ? e.reshape(value, {}) : value;
  };
  mlir::Type i64 = e.getBuilder().getI64Type(), i1 = e.getBuilder().getI1Type();
  auto known = knownInteger(trips, e);
  if ((known && step >= *known) || knownInteger(condition, e) == 0)
    return e.scalar(int64_t(0), i1);
  bool isMore = !trips || known,
       isTrue = !condition || knownInteger(condition, e).has_value();
  Value isBelow = isMore ? Value()
                         : e.compare(graph::Predicate::lt, e.scalar(step, i64),
                                     single(trips));
  if (isMore && isTrue)
    return e.scalar(int64_t(1), i1);
  if (isMore)
    return single(condition);
  return isTrue ? isBelow : e.op<graph::AndOp>({isBelow, single(condition)});
}

/// A Loop: states are given from step to step, other outputs of the body are
/// stacked.
struct GraphImporter::Loop {
  ::onnx::GraphProto *body = nullptr;
  Value trips, condition;
  std::vector<Binding> carried;
  size_t outputs = 0;

  std::vector<Binding> argumentsOf(Value number, Emitter &e) const {
    std::vector<Binding> arguments = {
        bind(number), bind(e.scalar(int64_t(1), e.getBuilder().getI1Type()))};
    llvm::append_range(arguments, carried);
    return arguments;
  }
};

constexpr const char *const dataRemedy =
    "export the model without the loop, or with a number of steps that follows "
    "from sizes and without outputs of each step";

// Steps that are written out.

/// The states where data may end the loop.
static LogicalResult keepEnded(Value runs, llvm::ArrayRef<Binding> carried,
                               std::vector<Binding> &ended, Emitter &e) {
  if (!runs)
    ended.assign(carried.begin(), carried.end());
  for (auto [state, kept] : llvm::zip(carried, ended)) {
    if (state.sequence)
      return e.fail("data may end the loop, and how long a sequence is that it "
                    "makes is not known then",
                    dataRemedy);
    kept.value = keepState(runs, state.value, kept.value, e);
  }
  return llvm::success();
}

LogicalResult GraphImporter::writeOutLoop(Loop &loop, Scope &around,
                                          const Frame &frame,
                                          std::optional<StepCount> count,
                                          std::vector<Binding> &results) {
  size_t states = loop.carried.size();
  std::vector<Binding> ended;
  std::vector<std::vector<Value>> stacked(loop.outputs);
  StepLoop steps;
  steps.count = count;
  if (auto most = knownInteger(loop.trips, emitter); !count && most)
    steps.count = StepCount{*most};
  steps.test = [&](int64_t step) -> llvm::FailureOr<Value> {
    return goesOn(step, loop.trips, loop.condition, emitter);
  };
  steps.take = [&](int64_t step) -> LogicalResult {
    std::vector<Binding> outputs;
    Value number = emitter.scalar(step, emitter.getBuilder().getI64Type());
    std::vector<Value> values;
    if (failed(importStep(*loop.body, *loop.body->mutable_node(),
                          loop.argumentsOf(number, emitter),
                          outputsOf(*loop.body), around, frame, outputs)))
      return llvm::failure();
    emitter.begin(locate(frame));
    if (failed(tensorsOf(llvm::ArrayRef(outputs).drop_front(1 + states), values,
                         emitter)))
      return llvm::failure();
    loop.condition = outputs[0].value;
    loop.carried.assign(outputs.begin() + 1, outputs.begin() + 1 + states);
    for (auto [list, value] : llvm::zip_equal(stacked, values))
      list.push_back(value);
    return llvm::success();
  };
  // How long the outputs of all steps are would depend on data.
  if (stacked.empty())
    steps.keep = [&](Value runs) {
      return keepEnded(runs, loop.carried, ended, emitter);
    };
  steps.dataRemedy = dataRemedy;
  steps.lengthRemedy =
      "export the model without the loop, or fix sizes with --shape";
  if (failed(writeOutSteps(steps, emitter)))
    return llvm::failure();
  for (size_t i = 0; i < states; ++i)
    results[i] = ended.empty() ? loop.carried[i] : ended[i];
  for (auto [i, values] : llvm::enumerate(stacked)) {
    if (values.empty())
      return emitter.fail("Loop is not supported where it has no step, since "
                          "its outputs then have no shape",
                          "simplify the model (onnxsim)");
    results[states + i].value = stackSteps(values, 0, false, emitter);
    if (!results[states + i].value)
      return llvm::failure();
  }
  return llvm::success();
}

// Steps that are repeated.

/// The number of steps that a Loop is given; null where it does not follow from
/// sizes. One that is more than could run is none.
static llvm::FailureOr<AffineExpr> tripsOf(Value trips, Emitter &e) {
  if (!trips)
    return AffineExpr();
  graph::SymbolicTensor known = e.evaluateSizes(trips);
  if (!known.isComplete() || known.elements->size() != 1)
    return llvm::failure();
  AffineExpr count = known.elements->front();
  if (graph::constantOf(count).value_or(0) > maxRepeatedSteps)
    return AffineExpr();
  count = largerOf(e.getSymbols(), count, e.number(0), true);
  if (!count)
    return llvm::failure();
  return count;
}

/// What values of a body are that it gives on as they are.
class Copies {
public:
  explicit Copies(const ::onnx::GraphProto &body) {
    for (const NodeProto &node : body.node())
      if (node.op_type() == "Identity" && node.domain().empty() &&
          node.input_size() == 1 && node.output_size() == 1)
        sources[node.output(0)] = node.input(0);
  }
  std::string sourceOf(std::string name) const {
    for (size_t left = sources.size(); left && sources.count(name); --left)
      name = sources.at(name);
    return name;
  }

private:
  std::map<std::string, std::string> sources;
};

/// States that the body gives on as they are.
static llvm::BitVector keptBy(const ::onnx::GraphProto &body, size_t states) {
  Copies copies(body);
  llvm::BitVector kept(states);
  for (size_t i = 0; i < states; ++i)
    kept[i] = copies.sourceOf(body.output(1 + static_cast<int>(i)).name()) ==
              body.input(2 + static_cast<int>(i)).name();
  return kept;
}

/// Whether the body computes its condition, which then may end the loop.
static bool computesCondition(const ::onnx::GraphProto &body) {
  std::string name = Copies(body).sourceOf(body.output(0).name());
  return llvm::any_of(body.node(), [&](const NodeProto &node) {
    return node.op_type() != "Constant" &&
           llvm::is_contained(node.output(), name);
  });
}

class GraphImporter::RepeatedLoop {
public:
  RepeatedLoop(GraphImporter &importer, const Loop &loop, Scope &around,
               const Frame &frame)
      : importer(importer), e(importer.emitter), loop(loop), around(around),
        frame(frame), added(loop.carried.size()) {}

  /// Whether the steps can be repeated: how many there are follows from sizes,
  /// and is open or too many to be written out.
  bool prepare() {
    auto most = tripsOf(loop.trips, e);
    if (failed(most))
      return false;
    open.most = *most;
    open.first = loop.condition;
    open.dataRemedy = dataRemedy;
    for (const Binding &state : loop.carried)
      if (!state.stacked.empty() || state.growsAs)
        return false;
    findLists();
    llvm::BitVector kept = keptBy(*loop.body, loop.carried.size());
    for (auto [i, state] : llvm::enumerate(loop.carried)) {
      places.push_back(open.states.size());
      if (isList[i])
        llvm::append_range(open.states, *state.sequence);
      else
        open.states.push_back(state.value);
      open.kept.resize(open.states.size(), kept[i]);
    }
    places.push_back(open.states.size());
    open.take = [this](AffineExpr number, llvm::ArrayRef<Value> states,
                       const OpenLoop::Wanted *wanted) {
      return wanted ? look(number, states, *wanted) : take(number, states);
    };
    open.mark = [this]() -> std::function<void()> {
      return [this, before = importer.diagnostics.size(),
              reported = importer.lastReported] {
        importer.diagnostics.resize(before);
        importer.lastReported = reported;
        e.begin(importer.locate(frame));
      };
    };
    builder.emplace(open, e);
    return builder->canRepeat();
  }

  std::optional<StepCount> known() const {
    return builder ? builder->known() : std::nullopt;
  }

  /// Nothing where steps cannot be repeated and can be written out.
  std::optional<LogicalResult> build(std::vector<Binding> &results) {
    auto built = builder->build();
    if (!built)
      return std::nullopt;
    if (failed(*built))
      return llvm::failure();
    LoopResults &left = **built;
    size_t states = loop.carried.size();
    for (size_t i = 0; i < loop.outputs; ++i)
      results[states + i].value = left.outputs[i];
    auto *next = left.outputs.begin() + loop.outputs;
    for (size_t i = 0; i < states; ++i) {
      results[i] = loop.carried[i];
      setState(results[i], i, left.states);
      if (isList[i])
        continue;
      results[i].stacked.assign(next, next + added[i]);
      next += added[i];
    }
    return llvm::success();
  }

private:
  /// Which states are lists that a step leaves as long as they are, as it shows
  /// in the first one: their tensors are states of their own.
  void findLists() {
    isList.assign(loop.carried.size(), false);
    if (llvm::none_of(loop.carried, [](const Binding &state) {
          return state.sequence && !state.sequence->empty();
        }))
      return;
    Nodes nodes = loop.body->node();
    size_t before = importer.diagnostics.size();
    auto *reported = importer.lastReported;
    std::vector<Binding> after;
    Value first = e.scalar(int64_t(0), e.getBuilder().getI64Type());
    bool ok = succeeded(
        importer.importStep(*loop.body, nodes, loop.argumentsOf(first, e),
                            outputsOf(*loop.body), around, frame, after));
    importer.diagnostics.resize(before);
    importer.lastReported = reported;
    e.begin(importer.locate(frame));
    for (size_t i = 0; ok && i < loop.carried.size(); ++i) {
      const auto &list = loop.carried[i].sequence,
                 &next = after[1 + i].sequence;
      isList[i] = list && !list->empty() && next &&
                  next->size() == list->size() && after[1 + i].stacked.empty();
    }
  }

  /// Gives a state of the body what it is of all states.
  void setState(Binding &state, size_t i, llvm::ArrayRef<Value> states) {
    if (isList[i])
      llvm::copy(states.slice(places[i], places[i + 1] - places[i]),
                 state.sequence->begin());
    else
      state.value = states[places[i]];
  }
  /// Adds what a state of the body is behind a step.
  LogicalResult getState(const Binding &state, size_t i,
                         llvm::MutableArrayRef<Value> states) {
    if (!isList[i]) {
      states[places[i]] = state.value;
      return llvm::success();
    }
    if (!state.sequence || !state.stacked.empty() ||
        state.sequence->size() != places[i + 1] - places[i])
      return e.fail("a sequence that the first step leaves as long as it is "
                    "gets another length in others",
                    "export the model without sequences in the loop");
    llvm::copy(*state.sequence, states.begin() + places[i]);
    return llvm::success();
  }

  std::vector<Binding> argumentsOf(AffineExpr number,
                                   llvm::ArrayRef<Value> states) {
    Loop now = loop;
    for (auto [i, state] : llvm::enumerate(now.carried)) {
      setState(state, i, states);
      if (state.sequence && !isList[i])
        state.growsAs = i;
    }
    return now.argumentsOf(e.size(number, e.getBuilder().getI64Type()), e);
  }

  /// What counts and the condition, of a copy of the body.
  std::optional<OpenLoop::Step> look(AffineExpr number,
                                     llvm::ArrayRef<Value> states,
                                     const OpenLoop::Wanted &wanted) {
    std::vector<std::string> roots = {loop.body->output(0).name()};
    llvm::SmallVector<size_t> asked;
    for (size_t i = 0; i < loop.carried.size(); ++i)
      if (wanted.find_first_in(places[i], places[i + 1]) >= 0) {
        asked.push_back(i);
        roots.push_back(loop.body->output(1 + static_cast<int>(i)).name());
      }
    Nodes nodes = loop.body->node();
    std::vector<Binding> outputs;
    if (failed(importer.importStep(*loop.body, nodes,
                                   argumentsOf(number, states), roots, around,
                                   frame, outputs)))
      return std::nullopt;
    OpenLoop::Step step;
    step.condition = outputs[0].value;
    step.states.resize(states.size());
    for (auto [i, state] : llvm::enumerate(asked))
      if (failed(getState(outputs[1 + i], state, step.states)))
        return std::nullopt;
    return step;
  }

  std::optional<OpenLoop::Step> take(AffineExpr number,
                                     llvm::ArrayRef<Value> states) {
    std::vector<Binding> outputs;
    if (failed(importer.importStep(
            *loop.body, *loop.body->mutable_node(), argumentsOf(number, states),
            outputsOf(*loop.body), around, frame, outputs)))
      return std::nullopt;
    e.begin(importer.locate(frame));
    std::vector<Value> stacked;
    auto behind = llvm::ArrayRef(outputs).drop_front(1);
    size_t own = loop.carried.size();
    if (failed(tensorsOf(behind.drop_front(own), stacked, e)))
      return std::nullopt;
    OpenLoop::Step step;
    step.condition = outputs[0].value;
    step.outputs.assign(stacked.begin(), stacked.end());
    step.states.resize(states.size());
    for (size_t i = 0; i < own; ++i)
      if (failed(getState(behind[i], i, step.states)) ||
          (!isList[i] && failed(readSequence(i, behind[i], step.outputs))))
        return std::nullopt;
    return step;
  }

  /// Adds what the step does to the outputs.
  LogicalResult readSequence(size_t i, const Binding &after, Values &outputs) {
    const auto &before = loop.carried[i].sequence;
    if (before.has_value() != after.sequence.has_value())
      return e.fail("a step makes a sequence of a tensor, or a tensor of a "
                    "sequence",
                    "export the model again");
    if (!before)
      return llvm::success();
    llvm::ArrayRef<Value> list(*after.sequence), kept(*before);
    if (after.growsAs != i || list.size() < kept.size() ||
        list.take_front(kept.size()) != kept)
      return e.fail("a step makes another sequence of one, neither as long nor "
                    "with more at its end, which is not supported where the "
                    "number of steps is open",
                    "let each step add to the end of it, or leave it as long "
                    "as it is, or fix sizes with --shape");
    added[i] = list.size() - kept.size();
    outputs.append(list.begin() + kept.size(), list.end());
    return llvm::success();
  }

  GraphImporter &importer;
  Emitter &e;
  const Loop &loop;
  Scope &around;
  const Frame &frame;
  OpenLoop open;
  std::optional<LoopBuilder> builder;
  /// By state of the body: tensors that each step adds to a sequence.
  std::vector<size_t> added;
  /// The same: whether it is a list whose length stays, and where its tensors,
  /// or the one that it is, begin among all states; at the end their number.
  std::vector<bool> isList;
  std::vector<size_t> places;
};

LogicalResult GraphImporter::importLoop(NodeProto &node,
                                        const std::vector<Binding> &inputs,
                                        Scope &scope, const Frame &frame,
                                        std::vector<Binding> &results) {
  Loop loop;
  loop.body = bodyOf(node);
  if (!loop.body || inputs.size() < 2 ||
      loop.body->input_size() != static_cast<int>(inputs.size()) ||
      loop.body->output_size() != node.output_size() + 1 ||
      loop.body->output_size() + 1 < loop.body->input_size())
    return emitter.fail(
        "the body's inputs or outputs are not those of the node",
        "export the model again");
  loop.trips = inputs[0].value;
  loop.condition = inputs[1].value;
  loop.carried.assign(inputs.begin() + 2, inputs.end());
  loop.outputs = node.output_size() - loop.carried.size();
  Scope around = scope.inner();
  addInitializers(*loop.body, around);
  auto known = knownInteger(loop.trips, emitter);
  bool hasNoShape = known == 0 && loop.outputs > 0;
  std::optional<StepCount> count;
  if (!known || *known > mostWrittenOut || hasNoShape ||
      computesCondition(*loop.body)) {
    RepeatedLoop repeated(*this, loop, around, frame);
    if (repeated.prepare())
      if (auto built = repeated.build(results))
        return *built;
    count = repeated.known();
  }
  return writeOutLoop(loop, around, frame, count, results);
}
