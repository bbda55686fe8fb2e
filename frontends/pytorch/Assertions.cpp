// Conditions on sizes that nodes of an exported program assert: what it takes
// for granted of them where it was exported with deferred assertions, and what
// its author checks.
#include "frontends/pytorch/ProgramImporter.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using Kind = Argument::Kind;
using llvm::StringRef;

static ExpressionPtr make(const char *head, std::vector<ExpressionPtr> list) {
  auto expression = std::make_shared<Expression>();
  expression->head = head;
  expression->operands = std::move(list);
  return expression;
}

/// A number or a condition as an expression; null where that is not said.
ExpressionPtr ProgramImporter::expressionOf(const Argument &argument) const {
  if (argument.kind == Kind::Integer || argument.kind == Kind::Bool)
    return makeInteger(argument.integer);
  bool isNamed =
      argument.kind == Kind::SymInt || argument.kind == Kind::SymBool;
  return isNamed ? expressionOf(StringRef(argument.text)) : nullptr;
}

/// Of "sym_constrain_range": that a size lies in a range.
ExpressionPtr ProgramImporter::rangeAsserted(const Node &node,
                                             bool isSize) const {
  const Argument *size = findArgument(node, "size");
  ExpressionPtr value = size ? expressionOf(*size) : nullptr;
  if (!value)
    return nullptr;
  std::vector<ExpressionPtr> bounds;
  for (auto [name, head] :
       {std::pair("min", "GreaterThan"), std::pair("max", "LessThan")}) {
    const Argument *bound = findArgument(node, name);
    ExpressionPtr limit = bound ? expressionOf(*bound) : nullptr;
    if (!limit && isSize && StringRef(name) == "min")
      limit = makeInteger(0);
    if (limit)
      bounds.push_back(make(head, {value, limit}));
  }
  return make("And", std::move(bounds));
}

/// Of "_assert_tensor_metadata": that a tensor has these sizes. Its type is
/// looked at where it is computed; how it lies in memory is not the program's.
ExpressionPtr ProgramImporter::shapeAsserted(const Node &node) const {
  const Argument *tensor = findArgument(node, "a"),
                 *sizes = findArgument(node, "size");
  const TensorMeta *meta = tensor ? metaOf(tensor->text) : nullptr;
  if (!meta || !sizes || sizes->kind != Kind::List)
    return nullptr;
  if (sizes->items.size() != meta->sizes.size())
    return makeInteger(0);
  std::vector<ExpressionPtr> equal;
  for (auto [item, size] : llvm::zip_equal(sizes->items, meta->sizes))
    if (ExpressionPtr asserted = expressionOf(item); asserted && size)
      equal.push_back(make("Equality", {size, asserted}));
  return make("And", std::move(equal));
}

/// The condition on numbers that a node asserts; null where it has none.
ExpressionPtr ProgramImporter::conditionAsserted(const Node &node) const {
  StringRef op = node.target;
  if (!op.consume_front("torch.ops.aten."))
    return nullptr;
  op = op.split('.').first;
  // With a token that orders it, as some decompositions write it.
  op.consume_front("_functional");
  op.consume_front("_");
  if (op == "assert_tensor_metadata")
    return shapeAsserted(node);
  if (op == "sym_constrain_range" || op == "sym_constrain_range_for_size")
    return rangeAsserted(node, /*isSize=*/op.ends_with("_for_size"));
  const Argument *self =
      op == "assert_scalar" ? findArgument(node, "self") : nullptr;
  ExpressionPtr condition = self ? expressionOf(*self) : nullptr;
  return condition && self->kind == Kind::SymInt
             ? make("Unequality", {condition, makeInteger(0)})
             : condition;
}

/// Whether a condition is on sizes alone, as far as they are known by now.
bool ProgramImporter::isOfSizes(const Expression &condition) const {
  return (condition.head != "Symbol" || sizes.isBound(condition.name)) &&
         llvm::all_of(condition.operands, [&](const ExpressionPtr &operand) {
           return isOfSizes(*operand);
         });
}

/// The condition as torch writes it, of the names that sizes have here.
std::string
ProgramImporter::describeAssertion(const Node &node,
                                   const Expression &condition) const {
  const Argument *message = findArgument(node, "assert_msg");
  StringRef text = message ? StringRef(message->text) : "";
  text = text.split("for expression ").second.rsplit(" on node ").first;
  std::string written = text.empty() ? condition.toString() : text.str(),
              result;
  StringRef rest = written;
  auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  while (!rest.empty()) {
    StringRef word = rest.take_while(isPart);
    rest = rest.drop_front(word.size());
    auto size = dimNames.find(word);
    result += size == dimNames.end() ? word.str() : size->second;
    StringRef between = rest.take_until(isPart);
    result += between.str();
    rest = rest.drop_front(between.size());
  }
  constexpr size_t longest = 120;
  return printable(result, longest);
}

/// Assumes what a node asserts of sizes. What it asserts of data is not looked
/// at: an engine does not stop in the middle of a run.
void ProgramImporter::importAssertion(const Node &node) {
  ExpressionPtr condition = conditionAsserted(node);
  if (!condition || !isOfSizes(*condition) ||
      !asserted.insert(condition.get()).second)
    return;
  kept.push_back(condition);
  emitter.begin(locate(node));
  std::string name = "check '" + describeAssertion(node, *condition) + "'";
  if (auto problem = assumeCondition(condition, name)) {
    emitter.fail("the program's " + name + " " + *problem, conditionRemedy);
    report(node);
  }
}

/// Assumes what can be told ahead of all nodes, so that they build on it.
void ProgramImporter::assumeAssertions() {
  for (const Node &node : graph.nodes)
    if (findTarget(node.target).isCheck)
      importAssertion(node);
}
