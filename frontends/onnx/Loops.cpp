// Loops: their bodies, one after another where the number of steps is known, or
// once, for steps that are repeated.
#include "frontends/common/RepeatedSteps.h"
#include "frontends/common/Steps.h"
#include "frontends/onnx/GraphImporter.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;
using ::onnx::AttributeProto;
using ::onnx::NodeProto;

static ::onnx::GraphProto *bodyOf(NodeProto &node) {
  for (AttributeProto &attribute : *node.mutable_attribute())
    if (attribute.name() == "body" && attribute.has_g())
      return attribute.mutable_g();
  return nullptr;
}

/// Runs the body on `inputs` in a scope of its own inside of `around`.
LogicalResult GraphImporter::importStep(::onnx::GraphProto &body,
                                        const std::vector<Value> &inputs,
                                        Scope &around, const Frame &frame,
                                        std::vector<Value> &outputs) {
  // Initializers are there once, constants among the nodes in every step.
  int64_t bytes = 0;
  for (const NodeProto &node : body.node())
    bytes += node.ByteSizeLong();
  if (failed(countExpandedBytes(bytes)) || failed(emitter.writeOut(1)))
    return llvm::failure();
  Scope scope = around.inner();
  for (auto [i, value] : llvm::enumerate(inputs)) {
    if (!value)
      return emitter.fail("an input of the body is missing",
                          "export the model again");
    scope.values[body.input(i).name()].value = value;
  }
  std::vector<std::string> roots;
  for (const auto &output : body.output())
    roots.push_back(output.name());
  size_t before = diagnostics.size();
  if (!importNodes(*body.mutable_node(), roots, scope, &frame) ||
      diagnostics.size() != before)
    return llvm::failure();
  outputs.clear();
  for (const std::string &name : roots) {
    const Binding *output = lookup(name, scope, &frame);
    if (!output || !output->value)
      return emitter.fail("the body does not compute its output '" +
                              printable(name) + "'",
                          "export the model again");
    outputs.push_back(output->value);
  }
  return llvm::success();
}

/// Elements of steps as one tensor with a new dimension.
static Value stack(const std::vector<Value> &steps, int64_t axis, bool reverse,
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

/// An entry of a list attribute; 0 where the list is absent.
static int64_t entryOf(const Node &n, llvm::StringRef name, size_t i) {
  auto list = n.integers(name);
  return list && i < list->size() ? (*list)[i] : 0;
}

/// A Scan: what its steps read and give.
struct GraphImporter::Scan {
  ::onnx::GraphProto *body = nullptr;
  std::vector<Value> carried;
  struct Input {
    Value value;
    int64_t axis;
    bool isBackward;
  };
  std::vector<Input> scanned;
  AffineExpr steps;
};

LogicalResult GraphImporter::readScan(Node &n, NodeProto &node,
                                      const std::vector<Binding> &inputs,
                                      Scan &scan) {
  scan.body = bodyOf(node);
  size_t scanned = n.integer("num_scan_inputs");
  if (!scan.body || scanned < 1 || scanned > inputs.size() ||
      scan.body->input_size() != static_cast<int>(inputs.size()) ||
      scan.body->output_size() != node.output_size())
    return emitter.fail(
        "the body's inputs or outputs are not those of the node",
        "export the model again");
  size_t states = inputs.size() - scanned;
  if (scan.body->output_size() < static_cast<int>(states))
    return emitter.fail("the body does not give all states",
                        "export the model again");
  for (size_t i = 0; i < states; ++i)
    scan.carried.push_back(inputs[i].value);
  for (size_t i = 0; i < scanned; ++i) {
    Value x = inputs[states + i].value;
    auto axis = n.axis(entryOf(n, "scan_input_axes", i), rankOf(x));
    if (failed(axis))
      return llvm::failure();
    AffineExpr size = graph::getShape(x)[*axis];
    if (scan.steps &&
        !emitter.agree(size, scan.steps, "takes an element of each a step"))
      return emitter.fail("Scan takes " + emitter.describe(x.getType()) +
                              " along dimension " + Twine(*axis) +
                              " beside an input with another number of steps",
                          "name these sizes alike with --shape");
    scan.steps = scan.steps ? scan.steps : size;
    scan.scanned.push_back(
        {x, *axis, entryOf(n, "scan_input_directions", i) == 1});
  }
  if (graph::constantOf(scan.steps) == 0)
    return emitter.fail("Scan is not supported over no step at all",
                        "simplify the model (onnxsim)");
  return llvm::success();
}

/// What the body gets in step `step`, which may be a size that counts.
std::vector<Value> GraphImporter::argumentsOf(const Scan &scan,
                                              AffineExpr step) {
  std::vector<Value> arguments = scan.carried;
  for (const Scan::Input &input : scan.scanned) {
    Exprs dims = graph::getShape(input.value),
          starts(dims.size(), emitter.number(0));
    starts[input.axis] =
        input.isBackward ? graph::simplify(scan.steps - 1 - step) : step;
    dims[input.axis] = emitter.number(1);
    Value part = emitter.slice(input.value, starts,
                               SmallVector<int64_t>(dims.size(), 1), dims);
    dims.erase(dims.begin() + input.axis);
    arguments.push_back(emitter.reshape(part, dims));
  }
  return arguments;
}

/// One step that is repeated; outputs of all steps are stacked along a first
/// dimension.
std::optional<std::vector<Value>>
GraphImporter::repeatScan(Node &n, Scan scan, Scope &around,
                          const Frame &frame) {
  RepeatedSteps repeated(scan.steps, emitter);
  AffineExpr counter = repeated.counter;
  if (!counter)
    return std::nullopt;
  for (Value &state : scan.carried)
    state = repeated.carry(state);
  std::vector<Value> outputs;
  if (failed(importStep(*scan.body, argumentsOf(scan, counter), around, frame,
                        outputs)))
    return std::nullopt;
  emitter.begin(locate(frame));
  size_t states = scan.carried.size();
  SmallVector<AffineExpr> places;
  for (size_t i = states; i < outputs.size(); ++i)
    places.push_back(entryOf(n, "scan_output_directions", i - states) == 1
                         ? graph::simplify(scan.steps - 1 - counter)
                         : counter);
  Values results =
      repeated.finish(llvm::ArrayRef(outputs).take_front(states),
                      llvm::ArrayRef(outputs).drop_front(states), places);
  for (size_t i = states; i < results.size(); ++i) {
    auto axis =
        n.axis(entryOf(n, "scan_output_axes", i - states), rankOf(results[i]));
    if (failed(axis) || !results[i])
      return std::nullopt;
    auto order = llvm::to_vector(llvm::seq<int64_t>(1, rankOf(results[i])));
    order.insert(order.begin() + *axis, 0);
    results[i] = emitter.transpose(results[i], order);
  }
  return std::vector<Value>(results.begin(), results.end());
}

/// All steps, one behind the other.
std::optional<std::vector<Value>>
GraphImporter::writeOutScan(Node &n, Scan scan, int64_t steps, Scope &around,
                            const Frame &frame) {
  size_t states = scan.carried.size();
  std::vector<std::vector<Value>> stacked(scan.body->output_size() - states);
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<Value> outputs;
    if (failed(importStep(*scan.body, argumentsOf(scan, emitter.number(step)),
                          around, frame, outputs)))
      return std::nullopt;
    scan.carried.assign(outputs.begin(), outputs.begin() + states);
    for (size_t i = states; i < outputs.size(); ++i)
      stacked[i - states].push_back(outputs[i]);
    emitter.begin(locate(frame));
  }
  std::vector<Value> results = scan.carried;
  for (auto [i, values] : llvm::enumerate(stacked)) {
    results.push_back(stack(values, entryOf(n, "scan_output_axes", i),
                            entryOf(n, "scan_output_directions", i) == 1,
                            emitter));
    if (!results.back())
      return std::nullopt;
  }
  return results;
}

LogicalResult GraphImporter::importScan(NodeProto &node,
                                        const std::vector<Binding> &inputs,
                                        Scope &scope, const Frame &frame,
                                        std::vector<Binding> &results) {
  Node n(emitter, node, frame.version, {}, {});
  Scan scan;
  if (failed(readScan(n, node, inputs, scan)))
    return llvm::failure();
  Scope around = scope.inner();
  addInitializers(*scan.body, around);
  auto steps = graph::constantOf(scan.steps);
  auto values = steps && *steps <= maxSteps
                    ? writeOutScan(n, scan, *steps, around, frame)
                    : repeatScan(n, scan, around, frame);
  if (!values)
    return llvm::failure();
  for (auto [result, value] : llvm::zip_equal(results, *values))
    result.value = value;
  return llvm::success();
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

/// What each step gave, as one tensor for each output.
static std::optional<std::vector<Value>>
stackSteps(llvm::ArrayRef<std::vector<Value>> steps, Emitter &e) {
  std::vector<Value> results;
  for (const std::vector<Value> &values : steps) {
    results.push_back(values.empty() ? Value() : stack(values, 0, false, e));
    if (values.empty())
      e.fail("Loop is not supported where it has no step, since its outputs "
             "then have no shape",
             "simplify the model (onnxsim)");
    if (!results.back())
      return std::nullopt;
  }
  return results;
}

LogicalResult GraphImporter::importLoop(NodeProto &node,
                                        const std::vector<Binding> &inputs,
                                        Scope &scope, const Frame &frame,
                                        std::vector<Binding> &results) {
  ::onnx::GraphProto *body = bodyOf(node);
  if (!body || inputs.size() < 2 ||
      body->input_size() != static_cast<int>(inputs.size()) ||
      body->output_size() != node.output_size() + 1 ||
      body->output_size() + 1 < body->input_size())
    return emitter.fail(
        "the body's inputs or outputs are not those of the node",
        "export the model again");
  size_t states = inputs.size() - 2;
  Value trips = inputs[0].value, condition = inputs[1].value;
  Scope around = scope.inner();
  addInitializers(*body, around);
  mlir::Builder &builder = emitter.getBuilder();
  std::vector<Value> carried, ended;
  for (size_t i = 0; i < states; ++i)
    carried.push_back(inputs[i + 2].value);
  std::vector<std::vector<Value>> stacked(node.output_size() - states);
  StepLoop loop;
  loop.most = knownInteger(trips, emitter);
  loop.test = [&](int64_t step) -> llvm::FailureOr<Value> {
    return goesOn(step, trips, condition, emitter);
  };
  loop.take = [&](int64_t step) -> LogicalResult {
    std::vector<Value> arguments = {
        emitter.scalar(step, builder.getI64Type()),
        emitter.scalar(int64_t(1), builder.getI1Type())};
    llvm::append_range(arguments, carried);
    std::vector<Value> outputs;
    if (failed(importStep(*body, arguments, around, frame, outputs)))
      return llvm::failure();
    emitter.begin(locate(frame));
    condition = outputs[0];
    carried.assign(outputs.begin() + 1, outputs.begin() + 1 + states);
    for (size_t i = 0; i < stacked.size(); ++i)
      stacked[i].push_back(outputs[1 + states + i]);
    return llvm::success();
  };
  // How long the outputs of all steps are would depend on data.
  if (stacked.empty())
    loop.keep = [&](Value runs) {
      if (!runs)
        ended = carried;
      for (auto [state, kept] : llvm::zip(carried, ended))
        kept = keepState(runs, state, kept, emitter);
      return llvm::success();
    };
  loop.dataRemedy = "export the model without the loop, or with a number of "
                    "steps that follows from sizes and without outputs of "
                    "each step";
  loop.lengthRemedy =
      "export the model without the loop, or fix sizes with --shape";
  if (failed(writeOutSteps(loop, emitter)))
    return llvm::failure();
  auto outputs = stackSteps(stacked, emitter);
  if (!outputs)
    return llvm::failure();
  for (size_t i = 0; i < states; ++i)
    results[i].value = ended.empty() ? carried[i] : ended[i];
  for (auto [i, value] : llvm::enumerate(*outputs))
    results[states + i].value = value;
  return llvm::success();
}
