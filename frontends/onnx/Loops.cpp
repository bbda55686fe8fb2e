// Loops whose number of steps is known: their bodies, one after another.
#include "frontends/common/Steps.h"
#include "frontends/onnx/GraphImporter.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::Twine;
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
  Scope scope;
  scope.parent = &around;
  scope.opsets = around.opsets;
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

LogicalResult GraphImporter::importScan(NodeProto &node,
                                        const std::vector<Binding> &inputs,
                                        Scope &scope, const Frame &frame,
                                        std::vector<Binding> &results) {
  ::onnx::GraphProto *body = bodyOf(node);
  Node n(emitter, node, frame.version, {}, {});
  size_t scanned = n.integer("num_scan_inputs");
  if (!body || scanned < 1 || scanned > inputs.size() ||
      body->input_size() != static_cast<int>(inputs.size()) ||
      body->output_size() != node.output_size())
    return emitter.fail(
        "the body's inputs or outputs are not those of the node",
        "export the model again");
  size_t states = inputs.size() - scanned;
  if (body->output_size() < static_cast<int>(states))
    return emitter.fail("the body does not give all states",
                        "export the model again");
  // All scanned inputs have the same number of steps.
  std::vector<int64_t> axes(scanned);
  std::optional<int64_t> steps;
  for (size_t i = 0; i < scanned; ++i) {
    Value x = inputs[states + i].value;
    auto axis = n.axis(entryOf(n, "scan_input_axes", i), rankOf(x));
    if (failed(axis))
      return llvm::failure();
    axes[i] = *axis;
    auto size = graph::constantOf(graph::getShape(x)[*axis]);
    if (!size || *size < 1 || *size > maxSteps || (steps && *steps != *size))
      return emitter.fail(
          "Scan is not supported over " + emitter.describe(x.getType()) +
              " unless the number of its steps is known, and 1 to " +
              Twine(maxSteps),
          "fix that size with --shape");
    steps = size;
  }
  Scope around;
  around.parent = &scope;
  around.opsets = scope.opsets;
  addInitializers(*body, around);
  std::vector<Value> carried;
  for (size_t i = 0; i < states; ++i)
    carried.push_back(inputs[i].value);
  std::vector<std::vector<Value>> stacked(body->output_size() - states);
  for (int64_t step = 0; step < *steps; ++step) {
    for (size_t i = 0; i < scanned; ++i) {
      Value x = inputs[states + i].value;
      Exprs dims = graph::getShape(x), starts(dims.size(), emitter.number(0));
      bool back = entryOf(n, "scan_input_directions", i) == 1;
      starts[axes[i]] = emitter.number(back ? *steps - 1 - step : step);
      dims[axes[i]] = emitter.number(1);
      Value part =
          emitter.slice(x, starts, SmallVector<int64_t>(dims.size(), 1), dims);
      dims.erase(dims.begin() + axes[i]);
      carried.push_back(emitter.reshape(part, dims));
    }
    std::vector<Value> outputs;
    if (failed(importStep(*body, carried, around, frame, outputs)))
      return llvm::failure();
    carried.assign(outputs.begin(), outputs.begin() + states);
    for (size_t i = states; i < outputs.size(); ++i)
      stacked[i - states].push_back(outputs[i]);
    emitter.begin(locate(frame));
  }
  for (size_t i = 0; i < states; ++i)
    results[i].value = carried[i];
  for (auto [i, values] : llvm::enumerate(stacked)) {
    results[states + i].value =
        stack(values, entryOf(n, "scan_output_axes", i),
              entryOf(n, "scan_output_directions", i) == 1, emitter);
    if (!results[states + i].value)
      return llvm::failure();
  }
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
  Scope around;
  around.parent = &scope;
  around.opsets = scope.opsets;
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
