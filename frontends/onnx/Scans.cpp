// Scans: their bodies, one after another where the number of steps is known, or
// once, for steps that are repeated.
#include "frontends/common/RepeatedSteps.h"
#include "frontends/onnx/Loops.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;
using ::onnx::NodeProto;

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
    results.push_back(stackSteps(values, entryOf(n, "scan_output_axes", i),
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
  auto values = steps && *steps <= mostWrittenOutToKnow
                    ? writeOutScan(n, scan, *steps, around, frame)
                    : repeatScan(n, scan, around, frame);
  if (!values)
    return llvm::failure();
  for (auto [result, value] : llvm::zip_equal(results, *values))
    result.value = value;
  return llvm::success();
}
