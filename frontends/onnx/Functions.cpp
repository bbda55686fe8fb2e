// Nodes that are imported as other nodes: functions, branches, constants.
#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::Twine;
using mlir::Value;
using ::onnx::AttributeProto;
using ::onnx::NodeProto;

/// Functions that may be inside of one another.
constexpr unsigned maxDepth = 64;
/// Bytes that bodies written out may take in all.
constexpr int64_t maxExpandedBytes = int64_t(1) << 31;

using Attributes = std::map<std::string, const AttributeProto *>;

/// Replaces references to a function's attributes by what the caller gives;
/// an attribute that nobody gives is left out.
static void substitute(NodeProto &node, const Attributes &given) {
  auto *attributes = node.mutable_attribute();
  for (int i = attributes->size() - 1; i >= 0; --i) {
    AttributeProto &attribute = (*attributes)[i];
    if (!attribute.ref_attr_name().empty()) {
      auto it = given.find(attribute.ref_attr_name());
      if (it == given.end()) {
        attributes->DeleteSubrange(i, 1);
        continue;
      }
      std::string name = attribute.name();
      attribute = *it->second;
      attribute.set_name(name);
    }
    if (attribute.has_g())
      for (NodeProto &inner : *attribute.mutable_g()->mutable_node())
        substitute(inner, given);
  }
}

LogicalResult GraphImporter::countExpandedBytes(int64_t bytes) {
  expandedBytes += bytes;
  return expandedBytes <= maxExpandedBytes
             ? llvm::success()
             : emitter.fail("functions and loops written out are over 2 GiB",
                            "export the model without nested functions and "
                            "with loops of fewer steps");
}

const ::onnx::FunctionProto *
GraphImporter::calledFunction(const NodeProto &node,
                              const std::map<std::string, int> &opsets) const {
  std::string domain = normalDomain(node.domain());
  auto local =
      functions.find(domain + "::" + node.op_type() + "::" + node.overload());
  if (local == functions.end())
    return nullptr;
  // A model's own definition of an operator that has a row says nothing new.
  auto version = opsets.find(domain);
  Operator op = Operator::find(
      node.op_type(), version == opsets.end() ? 0 : version->second, domain);
  bool hasRow = op && findRow(domain, node.op_type(), op.sinceVersion());
  return hasRow ? nullptr : local->second;
}

int64_t GraphImporter::leastNodes(const ::onnx::FunctionProto &function,
                                  const SmallVector<bool> &wanted) {
  std::pair key(&function, std::vector<bool>(wanted.begin(), wanted.end()));
  auto [it, isNew] = leastKnown.try_emplace(key, 0);
  if (!isNew)
    return it->second;
  std::map<std::string, int> opsets;
  for (const auto &opset : function.opset_import())
    opsets[normalDomain(opset.domain())] = opset.version();
  std::set<std::string> inputs(function.input().begin(),
                               function.input().end());
  std::vector<std::string> roots;
  for (int i = 0; i < function.output_size(); ++i)
    if (i < static_cast<int>(wanted.size()) && wanted[i])
      roots.push_back(function.output(i));
  Order order =
      orderNodes(function.node(), roots, [&](const std::string &name) {
        return inputs.count(name) != 0;
      });
  int64_t count = 0;
  for (int i : order.nodes) {
    const NodeProto &node = function.node(i);
    ++count;
    if (auto *inner = calledFunction(node, opsets)) {
      SmallVector<bool> read;
      for (const std::string &name : node.output())
        read.push_back(!name.empty() && order.used.count(name));
      count += leastNodes(*inner, read);
    }
    // More than any budget.
    count = std::min<int64_t>(count, int64_t(1) << 40);
  }
  return leastKnown[key] = count;
}

LogicalResult GraphImporter::importFunction(
    const ::onnx::FunctionProto &function, const NodeProto &call,
    const std::vector<Binding> &inputs, const SmallVector<bool> &wanted,
    const Frame &frame, std::vector<Binding> &results) {
  std::string shown = "function '" + printable(function.name()) + "'";
  if (frame.depth() > maxDepth)
    return emitter.fail(shown + " is nested in over " + Twine(maxDepth) +
                            " functions",
                        "a function may not call itself");
  if (failed(countExpandedBytes(function.ByteSizeLong())))
    return llvm::failure();
  if (static_cast<int>(inputs.size()) > function.input_size() ||
      call.output_size() > function.output_size())
    return emitter.fail(shown + " has " + Twine(function.input_size()) +
                            " inputs and " + Twine(function.output_size()) +
                            " outputs, the node more",
                        "export the model again");
  Scope scope;
  for (const auto &opset : function.opset_import())
    scope.opsets[normalDomain(opset.domain())] = opset.version();
  for (int i = 0; i < function.input_size(); ++i) {
    Binding binding;
    binding.absent = true;
    scope.values[function.input(i)] =
        i < static_cast<int>(inputs.size()) ? inputs[i] : binding;
  }
  Attributes given;
  for (const AttributeProto &attribute : function.attribute_proto())
    given[attribute.name()] = &attribute;
  for (const AttributeProto &attribute : call.attribute())
    given[attribute.name()] = &attribute;
  Nodes nodes = function.node();
  for (NodeProto &node : nodes)
    substitute(node, given);
  std::vector<std::string> roots;
  for (int i = 0; i < call.output_size(); ++i)
    if (wanted[i])
      roots.push_back(function.output(i));
  size_t before = diagnostics.size();
  bool ok =
      importNodes(nodes, roots, scope, &frame) && diagnostics.size() == before;
  for (int i = 0; i < call.output_size() && ok; ++i) {
    if (!wanted[i])
      continue;
    const Binding *output = lookup(function.output(i), scope, &frame);
    if (!output || !(output->isBuilt() || output->absent))
      return emitter.fail(shown + " does not compute its output '" +
                              printable(function.output(i)) + "'",
                          "export the model again");
    results[i] = *output;
  }
  // What failed inside has been reported.
  return llvm::success(ok);
}

LogicalResult GraphImporter::importBranch(NodeProto &node,
                                          const std::string &name, Scope &scope,
                                          const Frame &frame,
                                          std::vector<Binding> &results) {
  ::onnx::GraphProto *branch = nullptr;
  for (AttributeProto &attribute : *node.mutable_attribute())
    if (attribute.name() == name)
      branch = attribute.mutable_g();
  if (!branch || branch->output_size() != node.output_size() ||
      branch->input_size())
    return emitter.fail("attribute '" + name +
                            "' does not have the outputs of the node",
                        "export the model again");
  Scope inner = scope.inner();
  inner.mayTake = scope.mayTake;
  size_t before = diagnostics.size();
  addInitializers(*branch, inner);
  std::vector<std::string> roots;
  for (const auto &output : branch->output())
    roots.push_back(output.name());
  if (!importNodes(*branch->mutable_node(), roots, inner, &frame) ||
      diagnostics.size() != before)
    return llvm::failure();
  for (int i = 0; i < node.output_size(); ++i) {
    const Binding *output = lookup(roots[i], inner, &frame);
    if (!output || !(output->isBuilt() || output->absent))
      return emitter.fail("the branch does not compute its output '" +
                              printable(roots[i]) + "'",
                          "export the model again");
    results[i] = *output;
  }
  return llvm::success();
}

/// A condition that follows from sizes takes one branch. Else both are computed
/// and one is chosen, where their results have the same types.
LogicalResult GraphImporter::importIf(NodeProto &node,
                                      const std::vector<Binding> &inputs,
                                      Scope &scope, const Frame &frame,
                                      std::vector<Binding> &results) {
  Value condition = inputs[0].value;
  auto known = emitter.evaluate(condition).constants();
  if (known && known->size() == 1)
    return importBranch(node, known->front() ? "then_branch" : "else_branch",
                        scope, frame, results);
  std::vector<Binding> otherwise(results.size());
  bool around = emitter.setInBranch(true);
  bool ok =
      succeeded(importBranch(node, "then_branch", scope, frame, results)) &&
      succeeded(importBranch(node, "else_branch", scope, frame, otherwise));
  emitter.setInBranch(around);
  if (!ok)
    return llvm::failure();
  emitter.begin(locate(frame));
  condition = emitter.reshape(condition, {});
  for (auto [result, other] : llvm::zip(results, otherwise)) {
    if (!result.value || !other.value)
      return emitter.fail("a branch that data takes, or the number of a step "
                          "that is repeated, may not give a sequence or an "
                          "optional value",
                          "simplify the model (onnxsim), or export it without "
                          "the branch");
    emitter.follow(result.value);
    emitter.follow(other.value);
    if (result.value.getType() != other.value.getType())
      return emitter.fail(
          "operator If is not supported unless its condition follows from "
          "shapes, or its branches give the same types, but these give " +
              emitter.describe(result.value.getType()) + " and " +
              emitter.describe(other.value.getType()),
          "simplify the model (onnxsim), or export it without the branch");
    result.value = emitter.select(condition, result.value, other.value);
    if (!result.value)
      return llvm::failure();
  }
  return llvm::success();
}

LogicalResult GraphImporter::importConstant(NodeProto &node, Scope &scope,
                                            std::vector<Binding> &results) {
  if (node.attribute_size() != 1)
    return emitter.fail("needs one attribute that holds the value",
                        "export the model again");
  AttributeProto &attribute = *node.mutable_attribute(0);
  Problem problem;
  std::optional<TensorData> data;
  std::string name = node.output(0);
  // Lists become tensors, so that one reader checks everything.
  ::onnx::TensorProto tensor;
  if (attribute.name() == "value") {
    results[0].narrow = narrowType(attribute.t().data_type());
    data = readTensor(*attribute.mutable_t(), scope.mayTake, files,
                      emitter.getContext(), problem);
  } else if (attribute.name() == "sparse_value") {
    results[0].narrow =
        narrowType(attribute.sparse_tensor().values().data_type());
    data = readSparse(*attribute.mutable_sparse_tensor(), files,
                      emitter.getContext(), problem);
  } else {
    tensor.set_data_type(attribute.name().rfind("value_float", 0) == 0
                             ? ::onnx::TensorProto::FLOAT
                         : attribute.name().rfind("value_int", 0) == 0
                             ? ::onnx::TensorProto::INT64
                             : ::onnx::TensorProto::STRING);
    if (attribute.name() == "value_float") {
      tensor.add_float_data(attribute.f());
    } else if (attribute.name() == "value_int") {
      tensor.add_int64_data(attribute.i());
    } else {
      *tensor.mutable_float_data() = attribute.floats();
      *tensor.mutable_int64_data() = attribute.ints();
      tensor.add_dims(attribute.floats_size() + attribute.ints_size());
    }
    data = readTensor(tensor, true, files, emitter.getContext(), problem);
  }
  if (!data)
    return emitter.fail("its value " + problem.what, problem.remedy);
  results[0].value = materialize(*data, name, emitter);
  return llvm::success(bool(results[0].value));
}
