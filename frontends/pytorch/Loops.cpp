// Loops: their bodies, one after another where the number of steps is known, or
// once, for steps that are repeated.
#include "frontends/common/OpenLoops.h"
#include "frontends/common/Steps.h"
#include "frontends/pytorch/ProgramImporter.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using Kind = Argument::Kind;
using llvm::LogicalResult;
using llvm::Twine;

static const char *const againRemedy = "export the program again";

bool pytorch::isLoop(const Node &node) {
  return node.target == "torch.ops.higher_order.while_loop";
}

ProgramImporter::ProgramImporter(Program &body, ProgramImporter &around)
    : program(body), graph(body.graph), isStep(true), weights(around.weights),
      options(around.options), builder(around.builder), emitter(around.emitter),
      sizes(around.sizes) {}

/// What a loop is made of. States are what each step gives to the next one;
/// operands behind them are the same in all.
struct ProgramImporter::Loop {
  std::unique_ptr<Program> condition, body;
  std::vector<Part> operands;
  size_t states = 0;
  /// Nodes of a step, and what is beside them to look at.
  int64_t effort = 0;
};

static int64_t countArguments(const Argument &argument) {
  int64_t count = 1;
  for (const Argument &item : argument.items)
    count += countArguments(item);
  return count;
}
static int64_t effortOf(const Graph &graph) {
  constexpr int64_t argumentsPerNode = 16;
  int64_t count = static_cast<int64_t>(graph.inputs.size());
  for (const Node &node : graph.nodes) {
    for (const NamedArgument &input : node.inputs)
      count += countArguments(input.value);
    for (const Argument &output : node.outputs)
      count += countArguments(output);
  }
  return 1 + static_cast<int64_t>(graph.nodes.size()) +
         count / argumentsPerNode;
}

/// The program of a graph inside of `node`; null where that fails.
std::unique_ptr<Program> ProgramImporter::prepareBody(const Graph &body,
                                                      const Node &node) {
  auto program = std::make_unique<Program>();
  program->graph = body;
  for (Node &inner : program->graph.nodes)
    if (inner.module.empty())
      inner.module = node.module;
  for (const Argument &output : body.outputs)
    program->outputs.push_back({OutputSpec::Kind::User, output, ""});
  Sizes::Scope scope(sizes);
  return ProgramImporter(*program, *this).resolveRegions() ? std::move(program)
                                                           : nullptr;
}

std::optional<ProgramImporter::Loop>
ProgramImporter::readLoop(const Node &node) {
  Loop loop;
  std::vector<const Graph *> graphs;
  std::vector<const Argument *> lists;
  for (const NamedArgument &input : node.inputs) {
    if (input.value.kind == Kind::Graph)
      graphs.push_back(input.value.graph.get());
    else if (input.value.kind == Kind::List)
      lists.push_back(&input.value);
  }
  if (graphs.size() != 2 || lists.empty() || lists.size() > 2 ||
      graphs.size() + lists.size() != node.inputs.size()) {
    emitter.fail("has not the parts of a loop", againRemedy);
    return std::nullopt;
  }
  loop.states = lists.front()->items.size();
  for (const Argument *list : lists)
    for (const Argument &item : list->items) {
      // The file calls sizes tensors here; of those graphs have the expression.
      Entry *entry = item.kind == Kind::Tensor ? find(item.text) : nullptr;
      mlir::AffineExpr size = entry ? mlir::AffineExpr() : sizeOf(item.text);
      if (!entry && (!size || list == lists.front()))
        emitter.fail("operand " + Twine(loop.operands.size()) +
                         " is no tensor of the program",
                     "give the loop tensors alone");
      mlir::Value value = entry ? currentValue(*entry) : mlir::Value();
      if (emitter.failed())
        return std::nullopt;
      loop.operands.push_back(
          {value, entry ? entry->imaginary : mlir::Value(), size});
    }
  for (const Graph *graph : graphs)
    if (graph->inputs.size() != loop.operands.size()) {
      emitter.fail("has " + Twine(loop.operands.size()) +
                       " operands, and a graph that takes " +
                       Twine(graph->inputs.size()),
                   againRemedy);
      return std::nullopt;
    }
  loop.condition = prepareBody(*graphs[0], node);
  loop.body = prepareBody(*graphs[1], node);
  if (!loop.condition || !loop.body)
    return std::nullopt;
  loop.effort = effortOf(loop.condition->graph) + effortOf(loop.body->graph);
  return loop;
}

/// Gives no message of its own where one of its nodes has.
LogicalResult ProgramImporter::importStep(Program &body,
                                          llvm::ArrayRef<Part> operands,
                                          std::vector<Part> &results) {
  Sizes::Scope scope(sizes);
  return ProgramImporter(body, *this).runStep(operands, results);
}
LogicalResult ProgramImporter::runStep(llvm::ArrayRef<Part> operands,
                                       std::vector<Part> &results) {
  auto countErrors = [&] {
    return llvm::count_if(builder.getDiagnostics(), [](const Diagnostic &d) {
      return d.severity == Diagnostic::Severity::Error;
    });
  };
  for (auto [i, input] : llvm::enumerate(graph.inputs)) {
    if (operands[i].size && input.kind == Kind::SymInt &&
        sizeOf(input.text) == operands[i].size)
      continue;
    if (operands[i].size || input.kind != Kind::Tensor || find(input.text))
      return emitter.fail("operand " + Twine(i) +
                              " is another thing in the loop's graph, or has "
                              "the name of another",
                          againRemedy);
    Entry &entry = addEntry(input.text);
    entry.value = operands[i].value;
    entry.imaginary = operands[i].imaginary;
    checkType("state " + Twine(i) + " is", input.text, entry.value);
  }
  if (emitter.failed())
    return llvm::failure();
  auto before = countErrors();
  findAliases();
  auto needed = findNeeded();
  for (const Node &node : graph.nodes) {
    if (countErrors() != before)
      break;
    if (findTarget(node.target).isCheck)
      importAssertion(node);
    else if (needed.contains(&node))
      importNode(node);
  }
  if (countErrors() != before) {
    emitter.begin(emitter.getBuilder().getUnknownLoc());
    return llvm::failure();
  }
  results.clear();
  for (const Argument &output : graph.outputs) {
    if (output.kind != Kind::Tensor)
      return emitter.fail("result " + Twine(results.size()) +
                              " of a step is no tensor",
                          "let each step give tensors");
    mlir::Value value = valueOf(output.text, false);
    if (!value)
      return llvm::failure();
    results.push_back({value, find(output.text)->imaginary, {}});
  }
  return llvm::success();
}

constexpr const char *const dataRemedy =
    "let the condition compare a counter with a number or a size";

LogicalResult ProgramImporter::writeOutLoop(const Node &node, Loop &loop,
                                            std::optional<StepCount> count,
                                            std::vector<Part> &results) {
  auto states = llvm::MutableArrayRef(loop.operands).take_front(loop.states);
  std::vector<Part> ended;
  StepLoop steps;
  steps.count = count;
  steps.test = [&](int64_t) -> llvm::FailureOr<mlir::Value> {
    std::vector<Part> test;
    if (mlir::failed(emitter.writeOut(loop.effort)) ||
        mlir::failed(importStep(*loop.condition, loop.operands, test)))
      return llvm::failure();
    emitter.begin(locate(node));
    return test.size() == 1 ? test[0].value : mlir::Value();
  };
  steps.take = [&](int64_t) -> LogicalResult {
    std::vector<Part> next;
    if (mlir::failed(importStep(*loop.body, loop.operands, next)))
      return llvm::failure();
    emitter.begin(locate(node));
    if (next.size() != loop.states)
      return emitter.fail("its body gives " + Twine(next.size()) +
                              " results for " + Twine(loop.states) + " states",
                          againRemedy);
    llvm::copy(next, states.begin());
    return llvm::success();
  };
  steps.keep = [&](mlir::Value runs) {
    if (!runs)
      ended.assign(states.begin(), states.end());
    for (auto [state, kept] : llvm::zip(states, ended)) {
      kept.value = keepState(runs, state.value, kept.value, emitter);
      kept.imaginary =
          keepState(runs, state.imaginary, kept.imaginary, emitter);
    }
    return llvm::success();
  };
  steps.dataRemedy = dataRemedy;
  steps.lengthRemedy = "export the model with a loop of fewer steps";
  if (mlir::failed(writeOutSteps(steps, emitter)))
    return llvm::failure();
  if (ended.empty())
    ended.assign(states.begin(), states.end());
  results = std::move(ended);
  return llvm::success();
}

class ProgramImporter::RepeatedLoop {
public:
  RepeatedLoop(ProgramImporter &importer, const Node &node, Loop &loop)
      : importer(importer), e(importer.emitter), node(node), loop(loop) {}

  /// Whether the steps can be repeated: how many there are follows from sizes,
  /// and is open.
  bool prepare() {
    open.testsBefore = true;
    open.dataRemedy = dataRemedy;
    for (const Part &state :
         llvm::ArrayRef(loop.operands).take_front(loop.states))
      open.states.append({state.value, state.imaginary});
    const Graph &body = loop.body->graph;
    open.kept.resize(open.states.size());
    for (size_t i = 0; i < loop.states && i < body.outputs.size(); ++i)
      if (body.outputs[i].text == body.inputs[i].text)
        open.kept.set(2 * i, 2 * i + 2);
    open.take = [this](AffineExpr, llvm::ArrayRef<mlir::Value> states,
                       const OpenLoop::Wanted *wanted) {
      return wanted ? look(states, *wanted) : take(states);
    };
    open.mark = [this]() -> std::function<void()> {
      return [this, before = importer.builder.getDiagnostics().size()] {
        importer.builder.getDiagnostics().resize(before);
        e.begin(importer.locate(node));
      };
    };
    builder.emplace(open, e);
    return builder->canRepeat();
  }

  std::optional<StepCount> known() const { return builder->known(); }

  /// Nothing where steps cannot be repeated and can be written out.
  std::optional<LogicalResult> build(std::vector<Part> &results) {
    auto built = builder->build();
    if (!built)
      return std::nullopt;
    if (mlir::failed(*built))
      return llvm::failure();
    const Values &left = (*built)->states;
    for (size_t i = 0; i < loop.states; ++i)
      results.push_back({left[2 * i], left[2 * i + 1], {}});
    return llvm::success();
  }

private:
  using AffineExpr = mlir::AffineExpr;

  /// The condition and the next states of a program of the body's.
  std::optional<OpenLoop::Step> run(Program &body,
                                    llvm::ArrayRef<mlir::Value> states,
                                    std::vector<Part> &next) {
    std::vector<Part> operands = loop.operands, test;
    for (size_t i = 0; i < loop.states; ++i)
      operands[i] = {states[2 * i], states[2 * i + 1], {}};
    if (mlir::failed(e.writeOut(loop.effort)) ||
        mlir::failed(importer.importStep(*loop.condition, operands, test)) ||
        mlir::failed(importer.importStep(body, operands, next)))
      return std::nullopt;
    e.begin(importer.locate(node));
    OpenLoop::Step step;
    step.condition = test.size() == 1 ? test[0].value : mlir::Value();
    return step;
  }

  std::optional<OpenLoop::Step> take(llvm::ArrayRef<mlir::Value> states) {
    std::vector<Part> next;
    auto step = run(*loop.body, states, next);
    if (step)
      for (const Part &part : next)
        step->states.append({part.value, part.imaginary});
    return step;
  }

  /// Results of the body that are not asked for may not be possible to build
  /// yet.
  std::optional<OpenLoop::Step> look(llvm::ArrayRef<mlir::Value> states,
                                     const OpenLoop::Wanted &wanted) {
    Program body;
    body.graph = loop.body->graph;
    body.graph.outputs.clear();
    std::vector<unsigned> asked;
    for (unsigned i : wanted.set_bits())
      if (i % 2 == 0 && i / 2 < loop.body->graph.outputs.size())
        asked.push_back(i);
    for (unsigned i : asked) {
      body.graph.outputs.push_back(loop.body->graph.outputs[i / 2]);
      body.outputs.push_back(
          {OutputSpec::Kind::User, body.graph.outputs.back(), ""});
    }
    std::vector<Part> next;
    auto step = run(body, states, next);
    if (!step)
      return std::nullopt;
    step->states.resize(states.size());
    for (auto [i, part] : llvm::zip(asked, next))
      step->states[i] = part.value;
    return step;
  }

  ProgramImporter &importer;
  Emitter &e;
  const Node &node;
  Loop &loop;
  OpenLoop open;
  std::optional<LoopBuilder> builder;
};

LogicalResult ProgramImporter::importLoop(const Node &node,
                                          std::vector<Part> &results) {
  auto loop = readLoop(node);
  if (!loop)
    return llvm::failure();
  std::vector<Part> first;
  if (mlir::failed(importStep(*loop->condition, loop->operands, first)))
    return llvm::failure();
  emitter.begin(locate(node));
  mlir::Value test = first.size() == 1 ? first[0].value : mlir::Value();
  std::optional<StepCount> count;
  if (mayRepeat(test, emitter)) {
    RepeatedLoop repeated(*this, node, *loop);
    if (repeated.prepare())
      if (auto built = repeated.build(results))
        return *built;
    count = repeated.known();
  }
  return writeOutLoop(node, *loop, count, results);
}
