// Loops: over functions, and what is common to those of Switch and Merge. Their
// steps are written out where their number is known, else one is repeated.
#include "frontends/common/OpenLoops.h"
#include "frontends/common/Steps.h"
#include "frontends/tensorflow/GraphImporter.h"
#include "frontends/tensorflow/Remedy.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using llvm::StringRef;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

bool GraphImporter::isChosen(const Body &body, StringRef reference) {
  constexpr int maxCopies = 64;
  for (int copies = 0; copies < maxCopies; ++copies) {
    auto it = body.byName.find(parseReference(reference).node);
    if (it == body.byName.end())
      return false;
    const proto::Node &node = body.nodes[it->second];
    if (node.op() != "Identity" || !node.inputs_size())
      return flowKindOf(node.op()) == FlowKind::Merge ||
             flowKindOf(node.op()) == FlowKind::If;
    reference = node.inputs(0);
  }
  return false;
}

LogicalResult GraphImporter::keepEnded(mlir::Value runs, const Items &states,
                                       Items &results) {
  if (!runs)
    results = states;
  for (auto [state, result] : llvm::zip(states, results)) {
    emitter.follow(state.value);
    emitter.follow(result.value);
    if (runs)
      result = choose(runs, state, result, "its steps");
  }
  return llvm::failure(emitter.failed());
}

constexpr const char *const dataRemedy =
    "export the model with a number of steps that is constant or follows from "
    "sizes of its inputs, or compute this after the engine";

/// Written out step by step: what the condition compares has to be known, or
/// some of it that ends the loop at last.
LogicalResult GraphImporter::writeOutSteps(Items &states,
                                           const LoopSteps &steps,
                                           std::optional<StepCount> count) {
  std::optional<Items> ended;
  StepLoop loop;
  loop.test = [&](int64_t) { return steps.test(states); };
  loop.take = [&](int64_t) { return steps.take(states, nullptr); };
  loop.keep = [&](mlir::Value runs) {
    return keepEnded(runs, states, ended ? *ended : ended.emplace());
  };
  loop.isChoice = steps.isChoice;
  loop.count = count;
  loop.dataRemedy = dataRemedy;
  loop.lengthRemedy = "export the model for shorter sequences";
  loop.fixSize = [&](const std::string &size) { return fixSize(model, size); };
  if (failed(frontend::writeOutSteps(loop, emitter)))
    return llvm::failure();
  if (ended)
    states = std::move(*ended);
  return llvm::success();
}

/// A loop whose states are values and what is made of them.
class GraphImporter::RepeatedLoop {
public:
  RepeatedLoop(GraphImporter &importer, const Items &first,
               const LoopSteps &steps)
      : importer(importer), e(importer.emitter), first(first), steps(steps),
        lists(first.size()) {
    // Each state's own, so that it is seen which one a step gives on.
    for (Item &item : this->first)
      if (item.openList)
        item.openList = std::make_shared<OpenList>(*item.openList);
  }

  /// Whether the steps can be repeated: how many there are follows from sizes,
  /// and is open.
  bool prepare() {
    open.testsBefore = true;
    open.dataRemedy = dataRemedy;
    for (auto [i, item] : llvm::enumerate(first)) {
      firsts.push_back(static_cast<unsigned>(open.states.size()));
      addValues(item, open.states);
      open.kept.resize(open.states.size(),
                       steps.kept.count(static_cast<int>(i)));
    }
    open.take = [this](AffineExpr number, llvm::ArrayRef<Value> states,
                       const OpenLoop::Wanted *wanted) {
      return wanted ? look(states, *wanted) : take(number, states);
    };
    open.mark = [this]() -> std::function<void()> {
      return [told = Told(importer)] { told.restore(); };
    };
    builder.emplace(open, e);
    return builder->canRepeat();
  }

  std::optional<StepCount> known() const { return builder->known(); }

  /// Nothing where steps cannot be repeated and can be written out.
  std::optional<LogicalResult> build(Items &states) {
    auto built = builder->build();
    if (!built)
      return std::nullopt;
    if (failed(*built))
      return llvm::failure();
    LoopResults &left = **built;
    states = itemsOf(left.states, false);
    const auto *output = left.outputs.begin();
    for (auto [i, isSet] : llvm::enumerate(lists)) {
      if (!isSet)
        continue;
      OpenList list = *first[i].openList;
      if (!e.agree(left.count, list.count, "sets one each step"))
        return LogicalResult(e.fail(
            "sets " + e.getSymbols().toString(left.count) +
                " elements of a list of " + e.getSymbols().toString(list.count),
            "let the loop have as many steps as the list elements"));
      list.stacked = *output++;
      states[i].openList = std::make_shared<OpenList>(std::move(list));
    }
    return llvm::success();
  }

private:
  /// What was told of the model before something was tried.
  class Told {
  public:
    explicit Told(GraphImporter &importer)
        : importer(importer), diagnostics(importer.diagnostics.size()),
          reported(importer.reported), isTooLarge(importer.isTooLarge),
          location(importer.emitter.getLocation()) {}
    void restore() const {
      importer.diagnostics.resize(diagnostics);
      importer.reported = reported;
      importer.isTooLarge = isTooLarge;
      importer.emitter.begin(location);
    }

  private:
    GraphImporter &importer;
    size_t diagnostics;
    std::set<std::string> reported;
    bool isTooLarge;
    mlir::Location location;
  };

  /// What of an item steps may change.
  static void addValues(const Item &item, Values &values) {
    if (item.complex)
      values.append({item.complex->real, item.complex->imaginary});
    else if (item.list)
      for (int64_t i = 0; i < item.list->size(); ++i)
        values.push_back((*item.list)[i]);
    else if (item.value)
      values.push_back(item.value);
  }

  /// The first states with these values.
  Items itemsOf(llvm::ArrayRef<Value> values, bool inSteps) const {
    Items items;
    for (auto [number, item] : llvm::enumerate(first)) {
      unsigned at = firsts[number];
      Item now = item;
      if (item.complex) {
        now.complex =
            std::make_shared<Complex>(Complex{values[at], values[at + 1]});
      } else if (item.list) {
        TensorList list = *item.list;
        if (inSteps)
          list.carriedAs = number;
        for (int64_t i = 0; i < list.size(); ++i)
          if (Value value = values[at + static_cast<unsigned>(i)])
            list = list.with(i, value);
        now.list = std::make_shared<TensorList>(std::move(list));
      } else if (item.value) {
        now.value = values[at];
      }
      items.push_back(std::move(now));
    }
    return items;
  }

  /// Only what is asked for: other states may not be possible to build yet.
  std::optional<OpenLoop::Step> look(llvm::ArrayRef<Value> values,
                                     const OpenLoop::Wanted &wanted) {
    std::set<int> asked;
    for (auto [i, at] : llvm::enumerate(firsts))
      if (first[i].value && at < wanted.size() && wanted.test(at))
        asked.insert(static_cast<int>(i));
    Items states = itemsOf(values, true);
    auto condition = steps.test(states);
    if (failed(condition) || failed(steps.take(states, &asked)) ||
        states.size() != first.size())
      return std::nullopt;
    OpenLoop::Step step;
    step.condition = *condition;
    step.states.resize(values.size());
    for (int i : asked)
      step.states[firsts[i]] = states[i].value;
    return step;
  }

  std::optional<OpenLoop::Step> take(AffineExpr number,
                                     llvm::ArrayRef<Value> values) {
    Items states = itemsOf(values, true);
    auto condition = steps.test(states);
    if (failed(condition) || failed(steps.take(states, nullptr)))
      return std::nullopt;
    OpenLoop::Step step;
    step.condition = *condition;
    for (auto [i, item] : llvm::enumerate(states)) {
      Item after = importer.settled(item);
      size_t size = step.states.size();
      addValues(after, step.states);
      if (!isLike(first[i], after) || isAnothersList(i, after) ||
          step.states.size() - size != sizeOf(first[i])) {
        e.fail("a step makes another thing of state " + Twine(i) +
                   ", which is not supported where the number of steps is open",
               "let each step give tensors and lists of the same sizes");
        return std::nullopt;
      }
      if (!readList(i, after, number, step))
        return std::nullopt;
    }
    return step;
  }

  /// Whether elements that are not set may be in the list of another state.
  static bool isAnothersList(size_t i, const Item &item) {
    bool isWhole = true;
    for (int64_t k = 0; item.list && k < item.list->size(); ++k)
      isWhole &= bool((*item.list)[k]);
    return !isWhole && item.list->carriedAs && item.list->carriedAs != i;
  }
  static size_t sizeOf(const Item &item) {
    Values values;
    addValues(item, values);
    return values.size();
  }
  static bool isLike(const Item &a, const Item &b) {
    bool isSame = !a.variable == !b.variable &&
                  (!a.variable || (a.variable->key == b.variable->key &&
                                   a.variable->part == b.variable->part));
    return isSame && !a.value == !b.value && !a.list == !b.list &&
           !a.openList == !b.openList && !a.complex == !b.complex && !b.part;
  }

  /// What the step sets of an open list.
  bool readList(size_t i, const Item &after, AffineExpr number,
                OpenLoop::Step &step) {
    if (!after.openList || after.openList == first[i].openList)
      return true;
    const OpenList &list = *after.openList;
    AffineExpr fromBehind = list.element
                                ? graph::simplify(list.count - 1 - list.place)
                                : AffineExpr();
    bool isOwn = list.element && list.from == first[i].openList &&
                 (graph::simplify(list.place - number) == 0 ||
                  graph::simplify(fromBehind - number) == 0);
    if (!isOwn) {
      e.fail("a step sets another element of a list of open size than that of "
             "its number, from the front or from behind",
             fixSize(importer.model, e.getSymbols().toString(list.count)));
      return false;
    }
    lists[i] = true;
    step.outputs.push_back(list.element);
    step.places.push_back(list.place);
    return true;
  }

  GraphImporter &importer;
  Emitter &e;
  Items first;
  const LoopSteps &steps;
  /// By state: its first value, and whether steps set a list's elements.
  llvm::SmallVector<unsigned> firsts;
  std::vector<bool> lists;
  OpenLoop open;
  std::optional<LoopBuilder> builder;
};

LogicalResult GraphImporter::runSteps(Items &states, const LoopSteps &steps) {
  for (Item &state : states)
    state = settled(std::move(state));
  mlir::Location location = emitter.getLocation();
  auto condition = steps.test(states);
  if (failed(condition))
    return llvm::failure();
  emitter.begin(location);
  std::optional<StepCount> count;
  // Of a choice only the side is seen that was taken first.
  if (steps.isChoice || mayRepeat(*condition, emitter)) {
    RepeatedLoop repeated(*this, states, steps);
    if (repeated.prepare())
      if (auto built = repeated.build(states))
        return *built;
    count = repeated.known();
  }
  return writeOutSteps(states, steps, count);
}

/// Whether a result of a body is an argument of it, or copies of that.
static bool isPassedOn(const Body &body, StringRef result,
                       const std::string &argument) {
  constexpr int maxCopies = 64;
  for (int copies = 0; copies < maxCopies; ++copies) {
    std::string name = parseReference(result).node.str();
    auto it = body.byName.find(name);
    if (it == body.byName.end())
      return name == argument;
    const proto::Node &node = body.nodes[it->second];
    if (node.op() != "Identity" || !node.inputs_size())
      return false;
    result = node.inputs(0);
  }
  return false;
}

LogicalResult GraphImporter::importWhile(Node &node, const proto::Node &proto,
                                         Scope &scope) {
  const proto::Function *condition = functionOf(node, "cond");
  const proto::Function *body = condition ? functionOf(node, "body") : nullptr;
  if (!body)
    return llvm::failure();
  if (effects.findCarried(*condition, *body))
    return emitter.fail("its steps read a variable that they write, which is "
                        "not supported",
                        "export a function that leaves its variables as they "
                        "are");
  Items states;
  std::set<int> all;
  LoopSteps steps;
  for (unsigned i = 0; i < node.numInputs(); ++i) {
    states.push_back(node.item(i));
    all.insert(static_cast<int>(i));
  }
  std::string path = scopeOf(scope.path, proto.name());
  for (const auto &[name, reference] : condition->results())
    steps.isChoice |= isChosen(model.bodyOf(*condition), reference);
  const auto &signature = body->signature();
  for (int i = 0; i < signature.inputs_size() && i < signature.outputs_size();
       ++i)
    if (auto it = body->results().find(signature.outputs(i).name());
        it != body->results().end() &&
        isPassedOn(model.bodyOf(*body), it->second, signature.inputs(i).name()))
      steps.kept.insert(i);
  steps.test = [&](const Items &states) -> llvm::FailureOr<mlir::Value> {
    Items results;
    if (failed(call(*condition, states, {0}, path, scope, results)))
      return llvm::failure();
    emitter.begin(locate(proto, scope));
    return results.empty() ? mlir::Value() : results[0].value;
  };
  steps.take = [&](Items &states,
                   const std::set<int> *wanted) -> LogicalResult {
    Items next;
    if (failed(call(*body, std::move(states), wanted ? *wanted : all, path,
                    scope, next)))
      return llvm::failure();
    states = std::move(next);
    emitter.begin(locate(proto, scope));
    if (states.size() == all.size())
      return llvm::success();
    return emitter.fail("its body gives " + Twine(states.size()) +
                            " results for " + Twine(all.size()) + " states",
                        againRemedy);
  };
  if (failed(runSteps(states, steps)))
    return llvm::failure();
  node.getResults() = std::move(states);
  return llvm::success();
}
