// Loops: their bodies, one after another where the number of steps is known;
// those that are repeated are a RepeatedLoop.
#include "frontends/onnx/Loops.h"
#include "frontends/common/Steps.h"
#include "frontends/onnx/RepeatedLoop.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::LogicalResult;
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

LogicalResult GraphImporter::importStep(::onnx::GraphProto &body,
                                        const std::vector<Value> &inputs,
                                        Scope &around, const Frame &frame,
                                        std::vector<Value> &outputs) {
  std::vector<Binding> given, found;
  for (Value input : inputs)
    given.push_back(bindingOf(input));
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
                    loopDataRemedy);
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
  steps.dataRemedy = loopDataRemedy;
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

/// Of a loop that nothing ends but a number of steps that is known to be more
/// than can run, if there is one.
static LogicalResult failEndless(Value trips, Emitter &e) {
  auto most = knownInteger(trips, e);
  return e.fail(most ? "takes " + std::to_string(*most) +
                           " steps; up to 2^20 are supported"
                     : "has no end: it has no number of steps, and its "
                       "condition is always true",
                "export the model with a loop that ends in fewer steps");
}

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
    bool starts = !loop.condition || knownInteger(loop.condition, emitter) == 1;
    if (starts && repeated.isEndless())
      return failEndless(loop.trips, emitter);
    count = repeated.known();
  }
  return writeOutLoop(loop, around, frame, count, results);
}
