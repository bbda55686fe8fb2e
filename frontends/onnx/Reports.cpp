// What is told of nodes that cannot be imported, and where they are.
#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using ::onnx::NodeProto;

/// Words by which a message goes into the body of a node.
static std::string insideOf(const NodeProto &node) {
  bool isGraph = node.op_type() == "Loop" || node.op_type() == "Scan" ||
                 node.op_type() == "If";
  return isGraph ? "in its body, " : "in its function body, ";
}

static const Frame &outermostOf(const Frame &frame) {
  const Frame *outer = &frame;
  while (outer->parent)
    outer = outer->parent;
  return *outer;
}

/// Words by which a message goes from the outermost node to that of the frame.
static std::string pathTo(const Frame &frame) {
  SmallVector<const Frame *> inside;
  for (const Frame *f = &frame; f->parent; f = f->parent)
    inside.push_back(f);
  // Of many, the outermost and the innermost.
  constexpr size_t shown = 3;
  std::string path;
  for (auto [i, f] : llvm::enumerate(llvm::reverse(inside)))
    if (i < shown || i + shown >= inside.size())
      path += insideOf(*f->parent->node) + printable(f->node->op_type()) +
              " '" + printable(displayName(*f->node)) + "': ";
    else if (i == shown)
      path +=
          "... " + std::to_string(inside.size() - 2 * shown) + " more ...: ";
  return path;
}

void GraphImporter::report(const Frame &frame, const Problem &problem) {
  const Frame &outer = outermostOf(frame);
  if (lastReported == outer.node)
    return;
  lastReported = outer.node;
  Diagnostic diagnostic;
  diagnostic.file = file;
  diagnostic.node = displayName(*outer.node);
  diagnostic.op = outer.node->op_type();
  diagnostic.domain = normalDomain(outer.node->domain());
  diagnostic.version = outer.version;
  diagnostic.inputs = outer.inputs;
  // The inner node's operands say more where the body fails.
  diagnostic.what = pathTo(frame) + problem.what;
  diagnostic.remedy = problem.remedy;
  diagnostics.push_back(std::move(diagnostic));
}

// Operators that are not supported at all.

/// With its domain: "my.Foo".
static std::string shownOperator(const NodeProto &node) {
  std::string domain = normalDomain(node.domain());
  return "operator " + (domain.empty() ? "" : printable(domain) + ".") +
         printable(node.op_type());
}

/// Whether ONNX Runtime's quantizers write an operator, and not its optimizers.
static bool isOfQuantizer(llvm::StringRef op) {
  bool isMarked = op.size() > 1 && op[0] == 'Q' && llvm::isUpper(op[1]);
  return isMarked ||
         llvm::any_of(
             llvm::ArrayRef{"Quant", "NBits", "Bnb4", "Q4", "Integer", "BFP"},
             [&](const char *part) { return op.contains(part); });
}

std::optional<Problem>
charonia::frontend::onnx::unknownOperator(const NodeProto &node,
                                          const Operator &op, int version) {
  std::string domain = normalDomain(node.domain()), shown = shownOperator(node);
  if (!version)
    return Problem{shown + " is of domain '" + printable(domain) +
                       "', which the model does not import",
                   "custom operators need a function in the model"};
  if (op)
    return std::nullopt;
  if (llvm::StringRef(domain).starts_with("com.microsoft"))
    return Problem{
        shown + " is not supported: it is ONNX Runtime's own",
        domain == "com.microsoft.nchwc"
            ? "its layout is of one machine: save the model at ONNX Runtime's "
              "optimization level extended or lower"
        : isOfQuantizer(node.op_type())
            ? "quantize without it: to operators of ONNX (quant_format QDQ), "
              "or without operators of this kind (op_types_to_quantize)"
            : "save the model without ONNX Runtime's optimizations, or at "
              "level basic"};
  if (newestVersion(domain))
    return Problem{"there is no " + shown + " in opset " +
                       std::to_string(version),
                   "export the model with an opset that has it"};
  return Problem{shown + " is not supported: it is no ONNX operator",
                 "export without operators of other runtimes, or give the "
                 "model a function of that name"};
}

/// What to do without an operator that nothing in a graph stands for.
static const char *remedyWithout(const NodeProto &node) {
  llvm::StringRef op = node.op_type();
  if (op == "NonMaxSuppression")
    return "end the model at boxes and scores, and select boxes outside of the "
           "engine";
  if (op.starts_with("String") || op == "RegexFullMatch" ||
      op == "TfIdfVectorizer" || op == "ImageDecoder")
    return "prepare texts and files outside of the engine, and begin the model "
           "at numbers";
  return "replace it in the model by supported operators (see the operator "
         "table in the documentation)";
}

Problem charonia::frontend::onnx::unsupportedOperator(const NodeProto &node,
                                                      const std::string &why) {
  std::string domain = normalDomain(node.domain());
  if (llvm::StringRef(domain).starts_with("ai.onnx.ml"))
    return {shownOperator(node) +
                " is not supported: no operators of classical machine "
                "learning (domain ai.onnx.ml) are",
            "run this part outside of the engine, or convert it to operators "
            "of tensors (Hummingbird makes them of trees and scalers)"};
  if (llvm::StringRef(domain).starts_with("ai.onnx.preview.training"))
    return {shownOperator(node) + " is not supported: it is for training",
            "export the model for inference"};
  return {shownOperator(node) + " is not supported" + why, remedyWithout(node)};
}

bool GraphImporter::isKnown(const NodeProto &node, const Operator &op) const {
  std::string domain = normalDomain(node.domain());
  return functions.count(domain + "::" + node.op_type() +
                         "::" + node.overload()) ||
         (op && (op.hasFunctionBody() ||
                 findRow(domain, node.op_type(), op.sinceVersion())));
}

void GraphImporter::reportUnknown(const Frame &frame, const Nodes &nodes,
                                  const std::vector<std::string> &roots,
                                  const std::map<std::string, int> &opsets) {
  // What the surroundings define is not looked for here.
  Order order =
      orderNodes(nodes, roots, [](const std::string &) { return false; });
  for (int i : order.nodes) {
    const NodeProto &node = nodes[i];
    auto version = opsets.find(normalDomain(node.domain()));
    Frame inner{
        &frame, &node, version == opsets.end() ? 0 : version->second, {}};
    Operator op = Operator::find(node.op_type(), inner.version, node.domain());
    if (isKnown(node, op)) {
      reportInside(inner, opsets, std::nullopt);
      continue;
    }
    bool isTold = llvm::StringRef(toldInside).starts_with(pathTo(inner));
    if (!listed.insert(shownOperator(node)).second || isTold)
      continue;
    lastReported = nullptr;
    auto unknown = unknownOperator(node, op, inner.version);
    report(inner, unknown ? *unknown : unsupportedOperator(node, ""));
  }
}

void GraphImporter::reportInside(const Frame &frame,
                                 const std::map<std::string, int> &opsets,
                                 std::optional<bool> branch) {
  constexpr unsigned maxDepth = 64;
  const NodeProto &node = *frame.node;
  if (frame.depth() > maxDepth)
    return;
  // What the import of the node came to is not told again.
  if (!frame.parent) {
    toldInside = lastReported == &node ? diagnostics.back().what : "";
    listed.clear();
  }
  if (const auto *function = calledFunction(node, opsets)) {
    // Once, whoever calls it.
    if (!lookedInto.insert(function).second)
      return;
    std::map<std::string, int> own;
    for (const auto &opset : function->opset_import())
      own[normalDomain(opset.domain())] = opset.version();
    reportUnknown(frame, function->node(),
                  {function->output().begin(), function->output().end()}, own);
    return;
  }
  // Of a branch it is not known here whether it is needed.
  if (node.op_type() == "If" && frame.parent)
    return;
  for (const auto &attribute : node.attribute()) {
    if (!attribute.has_g() ||
        (branch &&
         attribute.name() != (*branch ? "then_branch" : "else_branch")))
      continue;
    std::vector<std::string> roots;
    for (const auto &output : attribute.g().output())
      roots.push_back(output.name());
    reportUnknown(frame, attribute.g().node(), roots, opsets);
  }
}
