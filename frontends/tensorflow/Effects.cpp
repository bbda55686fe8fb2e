#include "frontends/tensorflow/Effects.h"
#include "frontends/tensorflow/ControlFlow.h"
#include "frontends/tensorflow/Node.h"
#include "frontends/tensorflow/Stated.h"
#include "llvm/ADT/STLExtras.h"
#include <deque>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::StringRef;

/// Calls that lie deeper are refused when they are imported.
constexpr int maxDepth = 64;

using OfVariable = Row::OfVariable;

/// What an operator does with the variable that its first operand is.
static OfVariable useOf(const proto::Node &node) {
  const Row *row = findRow(node.op());
  bool isSwitch = flowKindOf(node.op()) == FlowKind::Switch;
  return row ? row->variable
             : (isSwitch ? OfVariable::PassesOn : OfVariable::Nothing);
}

/// The argument, or the node that is no copy, behind a reference.
static StringRef nodeBehind(const Body &body, const std::string &reference) {
  constexpr int maxCopies = 64;
  StringRef text = reference;
  for (int copies = 0; copies < maxCopies; ++copies) {
    auto it = body.byName.find(parseReference(text).node);
    if (it == body.byName.end() ||
        useOf(body.nodes[it->second]) != OfVariable::PassesOn ||
        !body.nodes[it->second].inputs_size())
      break;
    text = body.nodes[it->second].inputs(0);
  }
  return parseReference(text).node;
}
/// The name of that argument, or of the variable that it is.
static std::string sourceOf(const Body &body, const std::string &reference) {
  StringRef node = nodeBehind(body, reference);
  auto it = body.byName.find(node);
  return it == body.byName.end() ? node.str()
                                 : variableNameOf(body.nodes[it->second]);
}

/// Operands that a node without a row may change: variables, by the model's
/// definition of its operator; without one all that may be such.
static std::set<int> changedBy(const proto::Node &node, const Body &body,
                               const Model &model) {
  constexpr int resource = 20, reference = 100;
  std::set<int> changed;
  if (auto *definition = model.definition(node.op())) {
    for (auto [i, type] : llvm::enumerate(operandTypes(node, *definition)))
      if (type == resource || type > reference)
        changed.insert(static_cast<int>(i));
    return changed;
  }
  for (int i = 0; i < node.inputs_size(); ++i) {
    auto it = body.byName.find(nodeBehind(body, node.inputs(i)));
    if (!parseReference(node.inputs(i)).isControl &&
        (it == body.byName.end() || isVariable(body.nodes[it->second])))
      changed.insert(i);
  }
  return changed;
}

void Effects::merge(Access &into, const std::string &name, int shift,
                    int depth) {
  const proto::Function *function = model.function(name);
  if (!function)
    return;
  if (depth >= maxDepth || open.count(function)) {
    into.isUnknown = true;
    return;
  }
  const Access &inner = accessOf(*function, depth + 1);
  for (int i : inner.reads)
    into.reads.insert(i + shift);
  for (int i : inner.writes)
    into.writes.insert(i + shift);
  into.isUnknown |= inner.isUnknown;
}

/// Of a node's operands.
Effects::Access Effects::accessOf(const proto::Node &node, const Body &body,
                                  int depth) {
  Access access;
  FlowKind flow = flowKindOf(node.op());
  if (useOf(node) == OfVariable::Reads)
    access.reads.insert(0);
  if (model.function(node.op()))
    merge(access, node.op(), 0, depth);
  else if (!findRow(node.op()) && flow == FlowKind::None)
    access.writes = changedBy(node, body, model);
  // The first operand of a choice decides.
  bool chooses = flow == FlowKind::If || flow == FlowKind::Case;
  for (const auto &[name, attribute] : node.attributes()) {
    if (attribute.has_function())
      merge(access, attribute.function().name(), chooses, depth);
    for (const auto &function : attribute.list().functions())
      merge(access, function.name(), chooses, depth);
  }
  return access;
}

const Effects::Users &Effects::usersOf(const Body &body, int depth) {
  if (auto it = users.find(&body); it != users.end())
    return it->second;
  Users found;
  for (int i = 0; i < body.nodes.size(); ++i) {
    const proto::Node &node = body.nodes[i];
    Access access = accessOf(node, body, depth);
    for (int operand = 0; access.isUnknown && operand < node.inputs_size();
         ++operand) {
      access.reads.insert(operand);
      access.writes.insert(operand);
    }
    auto add = [&](const std::set<int> &operands, auto &to) {
      for (int operand : operands)
        if (operand < node.inputs_size())
          to[sourceOf(body, node.inputs(operand))].insert(i);
    };
    add(access.reads, found.readers);
    add(access.writes, found.writers);
    std::map<std::string, int> written;
    for (int operand : access.writes)
      if (operand < node.inputs_size())
        written[sourceOf(body, node.inputs(operand))] = operand;
    for (int operand : access.reads)
      if (operand < node.inputs_size() && !written.empty())
        if (auto it = written.find(sourceOf(body, node.inputs(operand)));
            it != written.end() && it->second != operand)
          found.both[it->first].insert(i);
    // A variable of TF1 is read by being used.
    if (useOf(node) == OfVariable::Value)
      found.readers[variableNameOf(node)].insert(i);
  }
  return users[&body] = std::move(found);
}

const Effects::Access &Effects::accessOf(const proto::Function &function,
                                         int depth) {
  auto [it, isNew] = known.try_emplace(&function);
  if (!isNew)
    return it->second;
  open.insert(&function);
  const Users &users = usersOf(model.bodyOf(function), depth);
  open.erase(&function);
  Access access;
  const auto &inputs = function.signature().inputs();
  for (int i = 0; i < inputs.size(); ++i) {
    if (users.readers.count(inputs[i].name()))
      access.reads.insert(i);
    if (users.writers.count(inputs[i].name()))
      access.writes.insert(i);
  }
  // A map keeps its elements where they are.
  return known[&function] = std::move(access);
}

/// Adds to `seen` all that `roots` depend on or wait for, and they themselves.
static void addAncestors(const Body &body, llvm::ArrayRef<int> roots,
                         std::set<int> &seen) {
  std::vector<int> todo;
  auto add = [&](int node) {
    if (seen.insert(node).second)
      todo.push_back(node);
  };
  llvm::for_each(roots, add);
  while (!todo.empty()) {
    int node = todo.back();
    todo.pop_back();
    for (const std::string &input : body.nodes[node].inputs()) {
      auto it = body.byName.find(parseReference(input).node);
      if (it != body.byName.end())
        add(it->second);
    }
  }
}

namespace {

/// What nodes depend on or wait for, of up to 64 marked nodes at a time, so
/// that many of them cost few walks over the body.
class Marks {
public:
  explicit Marks(const Body &body) : readers(body.nodes.size()) {
    for (int i = 0; i < body.nodes.size(); ++i)
      for (const std::string &input : body.nodes[i].inputs())
        if (auto it = body.byName.find(parseReference(input).node);
            it != body.byName.end())
          readers[it->second].push_back(i);
  }

  /// Nodes that read a node, or wait for it.
  llvm::ArrayRef<int> readersOf(int node) const { return readers[node]; }

  /// A bit of each node is set where it is the marked node of that number or
  /// depends on it.
  std::vector<uint64_t> spread(llvm::ArrayRef<int> marked) const {
    std::vector<uint64_t> marks(readers.size());
    // A node is looked at again for each mark it gets late, 64 times at most.
    std::deque<int> todo;
    for (auto [bit, node] : llvm::enumerate(marked)) {
      if (!marks[node])
        todo.push_back(node);
      marks[node] |= uint64_t(1) << bit;
    }
    std::vector<bool> waits(readers.size());
    for (int node : todo)
      waits[node] = true;
    while (!todo.empty()) {
      int node = todo.front();
      todo.pop_front();
      waits[node] = false;
      for (int reader : readers[node]) {
        if ((marks[node] & ~marks[reader]) == 0)
          continue;
        marks[reader] |= marks[node];
        if (!waits[reader])
          todo.push_back(reader);
        waits[reader] = true;
      }
    }
    return marks;
  }

private:
  std::vector<std::vector<int>> readers;
};

} // namespace

/// Of each node the outermost loop of Enter, NextIteration and Exit that it is
/// in, by a number; 0 where it is in none. What is wrong with loops is told
/// when they are imported.
static std::vector<int> outermostLoops(const Body &body, const Marks &marks) {
  struct Frame {
    int parent, outermost;
  };
  std::vector<Frame> frames = {{0, 0}};
  std::map<std::pair<int, std::string>, int> numbers;
  auto enter = [&](int frame, const proto::Node &node) {
    auto name = node.attributes().find("frame_name");
    auto [it, isNew] = numbers.try_emplace(
        {frame, name == node.attributes().end() ? "" : name->second.text()},
        static_cast<int>(frames.size()));
    if (isNew)
      frames.push_back({frame, frame ? frames[frame].outermost : it->second});
    return it->second;
  };
  std::vector<int> frameOf(body.nodes.size(), -1), todo;
  auto visit = [&](int node, int frame) {
    if (frameOf[node] >= 0)
      return;
    FlowKind kind = flowKindOf(body.nodes[node].op());
    frameOf[node] =
        kind == FlowKind::Enter ? enter(frame, body.nodes[node]) : frame;
    todo.push_back(node);
  };
  for (int i = 0; i < body.nodes.size(); ++i)
    if (body.nodes[i].inputs().empty())
      visit(i, 0);
  while (!todo.empty()) {
    int node = todo.back(), frame = frameOf[node];
    todo.pop_back();
    if (flowKindOf(body.nodes[node].op()) == FlowKind::Exit)
      frame = frames[frame].parent;
    for (int reader : marks.readersOf(node))
      visit(reader, frame);
  }
  for (int &frame : frameOf)
    frame = frame < 0 ? 0 : frames[frame].outermost;
  return frameOf;
}

bool Effects::need(const Body &body, bool isFunction,
                   llvm::ArrayRef<int> nodes) {
  if (usersOf(body, 0).writers.empty())
    return false;
  Seen &all = seen[&body];
  all.isFunction = isFunction;
  all.needed.insert(nodes.begin(), nodes.end());
  if (!isFunction)
    addAncestors(body, nodes, all.run);
  return true;
}

std::set<std::string> Effects::findWritten(const Body &body,
                                           IsUntaken isUntaken) {
  const auto &[isFunction, needed, run] = seen[&body];
  // What an operator of an unknown definition gets may be no variable.
  std::set<std::string> names, variables;
  for (const proto::Node &node : body.nodes)
    if (isVariable(node))
      variables.insert(variableNameOf(node));
  for (const auto &[variable, writers] : usersOf(body, 0).writers)
    for (int writer : writers) {
      if (body.byName.count(variable) && !variables.count(variable))
        continue;
      bool isRun = isFunction || run.count(writer);
      // What is needed is imported, and its own body looked at.
      const proto::Node &node = body.nodes[writer];
      bool isCall =
          callsFunctions(flowKindOf(node.op())) || model.function(node.op());
      bool isOwn = !isCall || !needed.count(writer);
      if (isRun && isOwn && !isUntaken(writer))
        names.insert(variable);
    }
  return names;
}

namespace {

/// Variables that are both read and written: needed nodes that read one, and
/// nodes that write it and are run.
struct Uses {
  std::string variable;
  std::vector<int> readers, writers;
};

} // namespace

/// A variable of which a writer does not depend on a reader; none where all do.
static std::optional<std::string> findEarlyWrite(llvm::ArrayRef<Uses> all,
                                                 const Marks &marks) {
  // Readers of all variables have marks of one walk, as many as it has.
  std::vector<int> readers, owners;
  for (auto [i, uses] : llvm::enumerate(all)) {
    llvm::append_range(readers, uses.readers);
    owners.resize(readers.size(), static_cast<int>(i));
  }
  for (size_t first = 0; first < readers.size(); first += 64) {
    auto some = llvm::ArrayRef(readers).drop_front(first).take_front(64);
    auto before = marks.spread(some);
    for (size_t i = 0, end; i < some.size(); i = end) {
      uint64_t wanted = 0;
      int owner = owners[first + i];
      for (end = i; end < some.size() && owners[first + end] == owner; ++end)
        wanted |= uint64_t(1) << end;
      // A node that does both has its own mark: the function behind it is
      // looked at.
      for (int writer : all[owner].writers)
        if (wanted & ~before[writer])
          return all[owner].variable;
    }
  }
  return std::nullopt;
}

std::optional<std::string> Effects::findStale(const Body &body,
                                              IsUntaken isUntaken) {
  const Users &users = usersOf(body, 0);
  const auto &[isFunction, needed, run] = seen[&body];
  for (const auto &[variable, nodes] : users.both)
    for (int node : nodes)
      if (needed.count(node) && !isUntaken(node))
        return variable;
  std::vector<Uses> all;
  // The next step of a loop reads what the last one wrote.
  Marks marks(body);
  std::vector<int> loops = outermostLoops(body, marks);
  for (const auto &[variable, writers] : users.writers) {
    auto it = users.readers.find(variable);
    if (it == users.readers.end())
      continue;
    Uses uses{variable, {}, {}};
    std::set<int> writingLoops;
    for (int writer : writers)
      if ((isFunction || run.count(writer)) && !isUntaken(writer)) {
        uses.writers.push_back(writer);
        writingLoops.insert(loops[writer]);
      }
    for (int reader : it->second) {
      if (!needed.count(reader) || uses.writers.empty())
        continue;
      // Variables of TF1 are read where they are used, which may be later.
      if (useOf(body.nodes[reader]) == OfVariable::Value ||
          (loops[reader] && writingLoops.count(loops[reader])))
        return variable;
      uses.readers.push_back(reader);
    }
    all.push_back(std::move(uses));
  }
  return findEarlyWrite(all, marks);
}

std::optional<int> Effects::findCarried(const proto::Function &condition,
                                        const proto::Function &body) {
  const Access &test = accessOf(condition, 0), &step = accessOf(body, 0);
  for (int written : step.writes)
    if (step.reads.count(written) || test.reads.count(written))
      return written;
  return std::nullopt;
}
