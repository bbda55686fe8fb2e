#include "frontends/onnx/RepeatedLoop.h"
#include "frontends/common/SizeCases.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::LogicalResult;
using mlir::AffineExpr;
using mlir::Value;
using ::onnx::NodeProto;

std::vector<std::string>
charonia::frontend::onnx::outputsOf(const ::onnx::GraphProto &body) {
  std::vector<std::string> names;
  for (const auto &output : body.output())
    names.push_back(output.name());
  return names;
}

Binding charonia::frontend::onnx::bindingOf(Value value) {
  Binding binding;
  binding.value = value;
  return binding;
}

LogicalResult
charonia::frontend::onnx::tensorsOf(llvm::ArrayRef<Binding> outputs,
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

namespace {
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
} // namespace

/// States that the body gives on as they are.
static llvm::BitVector keptBy(const ::onnx::GraphProto &body, size_t states) {
  Copies copies(body);
  llvm::BitVector kept(states);
  for (size_t i = 0; i < states; ++i)
    kept[i] = copies.sourceOf(body.output(1 + static_cast<int>(i)).name()) ==
              body.input(2 + static_cast<int>(i)).name();
  return kept;
}

bool charonia::frontend::onnx::computesCondition(
    const ::onnx::GraphProto &body) {
  std::string name = Copies(body).sourceOf(body.output(0).name());
  return llvm::any_of(body.node(), [&](const NodeProto &node) {
    return node.op_type() != "Constant" &&
           llvm::is_contained(node.output(), name);
  });
}

bool GraphImporter::RepeatedLoop::prepare() {
  auto most = tripsOf(loop.trips, e);
  if (failed(most))
    return false;
  open.most = *most;
  open.first = loop.condition;
  open.dataRemedy = loopDataRemedy;
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

std::optional<StepCount> GraphImporter::RepeatedLoop::known() const {
  return builder ? builder->known() : std::nullopt;
}

std::optional<LogicalResult>
GraphImporter::RepeatedLoop::build(std::vector<Binding> &results) {
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

void GraphImporter::RepeatedLoop::findLists() {
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
    const auto &list = loop.carried[i].sequence, &next = after[1 + i].sequence;
    isList[i] = list && !list->empty() && next &&
                next->size() == list->size() && after[1 + i].stacked.empty();
  }
}

void GraphImporter::RepeatedLoop::setState(Binding &state, size_t i,
                                           llvm::ArrayRef<Value> states) {
  if (isList[i])
    llvm::copy(states.slice(places[i], places[i + 1] - places[i]),
               state.sequence->begin());
  else
    state.value = states[places[i]];
}

LogicalResult
GraphImporter::RepeatedLoop::getState(const Binding &state, size_t i,
                                      llvm::MutableArrayRef<Value> states) {
  if (!isList[i]) {
    states[places[i]] = state.value;
    return llvm::success();
  }
  // What grows is of another state.
  if (!state.sequence || !state.stacked.empty() || state.growsAs ||
      state.sequence->size() != places[i + 1] - places[i])
    return e.fail("a sequence that the first step leaves as long as it is "
                  "gets another length in others",
                  "export the model without sequences in the loop");
  llvm::copy(*state.sequence, states.begin() + places[i]);
  return llvm::success();
}

std::vector<Binding>
GraphImporter::RepeatedLoop::argumentsOf(AffineExpr number,
                                         llvm::ArrayRef<Value> states) {
  Loop now = loop;
  for (auto [i, state] : llvm::enumerate(now.carried)) {
    setState(state, i, states);
    if (state.sequence && !isList[i])
      state.growsAs = i;
  }
  return now.argumentsOf(e.size(number, e.getBuilder().getI64Type()), e);
}

std::optional<OpenLoop::Step>
GraphImporter::RepeatedLoop::look(AffineExpr number,
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
  if (failed(importer.importStep(*loop.body, nodes, argumentsOf(number, states),
                                 roots, around, frame, outputs)))
    return std::nullopt;
  OpenLoop::Step step;
  step.condition = outputs[0].value;
  step.states.resize(states.size());
  for (auto [i, state] : llvm::enumerate(asked))
    if (failed(getState(outputs[1 + i], state, step.states)))
      return std::nullopt;
  return step;
}

std::optional<OpenLoop::Step>
GraphImporter::RepeatedLoop::take(AffineExpr number,
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

LogicalResult GraphImporter::RepeatedLoop::readSequence(size_t i,
                                                        const Binding &after,
                                                        Values &outputs) {
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
