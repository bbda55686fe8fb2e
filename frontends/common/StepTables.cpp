#include "frontends/common/StepTables.h"
#include "graph/ir/Fold.h"
#include "llvm/ADT/SetVector.h"

using namespace charonia;
using namespace charonia::frontend;
using mlir::AffineExpr;
using mlir::Attribute;
using mlir::DenseElementsAttr;
using mlir::Operation;
using mlir::Value;

/// Elements that are computed, and operators that are copied, for all steps.
constexpr int64_t mostComputed = int64_t(1) << 18, mostCopied = 1 << 14;

StepTables::StepTables(llvm::ArrayRef<Value> firsts,
                       llvm::ArrayRef<Value> carried,
                       llvm::ArrayRef<Value> next,
                       const llvm::BitVector &follow,
                       llvm::ArrayRef<Value> outputs, AffineExpr symbol,
                       int64_t count, Emitter &e)
    : states(carried.size()), outputs(outputs.size()), firsts(firsts),
      carried(carried), next(next), given(outputs), symbol(symbol),
      count(count), e(e) {
  for (size_t i = 0; i < carried.size(); ++i)
    if (!follow.test(i))
      this->carried[i] = this->next[i] = {};
  collect();
}

/// Whether a value has to be computed for each step: others are known.
bool StepTables::dependsOnStep(Value value) {
  if (llvm::is_contained(carried, value) || e.constantOf(value))
    return false;
  graph::SymbolicTensor known = e.evaluate(value);
  return !known.isComplete() ||
         llvm::any_of(*known.elements, [&](AffineExpr element) {
           return e.getSymbols().namesCounter(element);
         });
}

std::optional<Exprs> StepTables::numberOf(Value value) {
  mlir::Type type = elementOf(value);
  if (!type.isSignlessInteger(32) && !type.isSignlessInteger(64))
    return std::nullopt;
  graph::SymbolicTensor known = e.evaluate(value);
  return known.isComplete() ? std::optional(Exprs(*known.elements))
                            : std::nullopt;
}

Exprs StepTables::elementsIn(const Number &number, int64_t step) {
  Exprs elements;
  for (AffineExpr element : number.elements)
    elements.push_back(
        graph::simplify(element.replace(symbol, e.number(step + 1))));
  return elements;
}

/// Integers that are all known, as they wrap.
static Attribute integersOf(llvm::ArrayRef<AffineExpr> elements,
                            mlir::RankedTensorType type) {
  llvm::SmallVector<llvm::APInt> integers;
  unsigned width = type.getElementTypeBitWidth();
  for (AffineExpr element : elements)
    if (auto known = graph::constantOf(element))
      integers.push_back(llvm::APInt(64, *known, true).trunc(width));
  return integers.size() == elements.size()
             ? DenseElementsAttr::get(type, integers)
             : Attribute();
}

void StepTables::collect() {
  Values todo;
  for (const Values &roots : {next, given})
    llvm::copy_if(roots, std::back_inserter(todo),
                  [](Value v) { return bool(v); });
  for (Value root : todo)
    elements +=
        llvm::cast<mlir::RankedTensorType>(root.getType()).getNumElements();
  llvm::DenseSet<Value> known;
  llvm::SmallSetVector<Operation *, 16> order;
  while (!todo.empty()) {
    Value value = todo.back();
    Operation *op = value.getDefiningOp();
    if (order.contains(op) || known.contains(value) || !dependsOnStep(value)) {
      known.insert(value);
      todo.pop_back();
      continue;
    }
    auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
    if (auto number = numberOf(value)) {
      numbers.push_back({value, std::move(*number)});
      known.insert(value);
      continue;
    }
    if (!op || !type.hasStaticShape()) {
      elements = std::numeric_limits<int64_t>::max();
      return;
    }
    bool isReady = true;
    for (Value operand : op->getOperands())
      if (!known.contains(operand)) {
        todo.push_back(operand);
        isReady = false;
      }
    if (!isReady)
      continue;
    order.insert(op);
    elements +=
        llvm::cast<mlir::RankedTensorType>(value.getType()).getNumElements();
  }
  operators.assign(order.begin(), order.end());
}

/// The operator as it is in a step, at no place.
Operation *StepTables::copy(Operation *op, int64_t step, mlir::IRMapping &map) {
  Operation *copied = op->clone(map);
  AffineExpr number = e.number(step + 1);
  mlir::AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](mlir::AffineMapAttr attribute) -> std::optional<Attribute> {
        mlir::AffineMap of = attribute.getValue();
        if (of.getNumDims() != 0)
          return std::nullopt;
        graph::Exprs results;
        for (AffineExpr result : of.getResults())
          results.push_back(graph::simplify(result.replace(symbol, number)));
        return mlir::AffineMapAttr::get(e.getSymbols().mapTo(results));
      });
  replacer.replaceElementsIn(copied, /*replaceAttrs=*/true);
  return copied;
}

Attribute StepTables::constantOf(Value value) {
  auto it = now.find(value);
  return it != now.end() ? it->second : e.constantOf(value);
}

/// The constant that an operator's result is in a step; null where it is none.
Attribute StepTables::fold(Operation *op, int64_t step) {
  llvm::SmallVector<Attribute> operands;
  for (Value operand : op->getOperands())
    if (Attribute constant = constantOf(operand))
      operands.push_back(constant);
    else
      return {};
  auto namesStep = [&](mlir::NamedAttribute attribute) {
    auto map = llvm::dyn_cast<mlir::AffineMapAttr>(attribute.getValue());
    return map && llvm::any_of(map.getValue().getResults(), [&](AffineExpr x) {
             return e.getSymbols().namesCounter(x);
           });
  };
  if (llvm::none_of(op->getAttrs(), namesStep))
    return graph::foldConstants(op, operands);
  mlir::IRMapping map;
  Operation *copied = copy(op, step, map);
  Attribute result = graph::foldConstants(copied, operands);
  copied->erase();
  return result;
}

void StepTables::takeStep(int64_t step) {
  for (const Number &number : numbers)
    now[number.value] =
        integersOf(elementsIn(number, step),
                   llvm::cast<mlir::RankedTensorType>(number.value.getType()));
  for (Operation *op : operators)
    now[op->getResult(0)] = fold(op, step);
}

/// Rows end where one is not known.
void StepTables::add(Rows &rows, size_t i, Attribute constant) {
  auto dense = llvm::dyn_cast_if_present<DenseElementsAttr>(constant);
  if (dense)
    llvm::append_range(rows[i], dense.getValues<Attribute>());
}

std::vector<DenseElementsAttr> StepTables::stack(const Rows &rows,
                                                 llvm::ArrayRef<Value> values,
                                                 int64_t count) {
  std::vector<DenseElementsAttr> tables(values.size());
  for (auto [elements, value, table] : llvm::zip_equal(rows, values, tables)) {
    if (!value)
      continue;
    auto one = llvm::cast<mlir::RankedTensorType>(value.getType());
    llvm::SmallVector<int64_t> shape = {count};
    llvm::append_range(shape, one.getShape());
    if (static_cast<int64_t>(elements.size()) == count * one.getNumElements() &&
        !elements.empty())
      table = DenseElementsAttr::get(
          mlir::RankedTensorType::get(shape, one.getElementType()), elements);
  }
  return tables;
}

void StepTables::tabulate() {
  if (count < 1 || elements > mostComputed / count)
    return;
  Rows ofStates(next.size()), ofOutputs(given.size());
  llvm::SmallVector<Attribute> found(next.size());
  for (size_t i = 0; i < next.size(); ++i)
    if (next[i]) {
      found[i] = e.constantOf(firsts[i]);
      add(ofStates, i, found[i]);
    }
  for (int64_t step = 0; step < count; ++step) {
    now.clear();
    for (size_t i = 0; i < next.size(); ++i)
      if (next[i])
        now[carried[i]] = found[i];
    takeStep(step);
    bool any = false;
    for (size_t i = 0; i < next.size(); ++i)
      if (next[i]) {
        found[i] = constantOf(next[i]);
        any |= bool(found[i]);
        add(ofStates, i, found[i]);
      }
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i]) {
        Attribute constant = constantOf(given[i]);
        any |= bool(constant);
        add(ofOutputs, i, constant);
      }
    if (!any)
      return;
  }
  states = stack(ofStates, next, count + 1);
  outputs = stack(ofOutputs, given, count);
}

std::pair<Values, Values> StepTables::copySteps() {
  Values found(next.size()), stacked(given.size());
  if (count < 1 || elements > mostCopied / count)
    return {found, stacked};
  for (size_t i = 0; i < next.size(); ++i)
    found[i] = next[i] ? firsts[i] : Value();
  std::vector<Values> parts(given.size());
  for (int64_t step = 0; step < count; ++step) {
    mlir::IRMapping map;
    for (size_t i = 0; i < next.size(); ++i)
      if (next[i])
        map.map(carried[i], found[i]);
    for (const Number &number : numbers) {
      auto type = llvm::cast<mlir::RankedTensorType>(number.value.getType());
      Exprs sizes = elementsIn(number, step);
      auto known =
          llvm::dyn_cast_if_present<DenseElementsAttr>(integersOf(sizes, type));
      map.map(number.value,
              known ? e.constant(known)
                    : e.sizes(sizes, type.getShape(), type.getElementType()));
    }
    for (Operation *op : operators)
      e.getBuilder().insert(copy(op, step, map));
    for (size_t i = 0; i < next.size(); ++i)
      if (next[i])
        found[i] = map.lookupOrDefault(next[i]);
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i]) {
        Exprs dims = graph::getShape(given[i]);
        dims.insert(dims.begin(), e.number(1));
        parts[i].push_back(e.reshape(map.lookupOrDefault(given[i]), dims));
      }
  }
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i])
      stacked[i] = e.concat(parts[i], 0);
  return {found, stacked};
}

/// A row of a known number: a constant by itself, which is known as a size
/// however long the table is.
static DenseElementsAttr rowAt(DenseElementsAttr table, int64_t number) {
  auto type = mlir::RankedTensorType::get(
      table.getType().getShape().drop_front(), table.getElementType());
  int64_t count = type.getNumElements();
  auto first = table.getValues<mlir::Attribute>().begin() + number * count;
  return DenseElementsAttr::get(
      type, llvm::SmallVector<mlir::Attribute>(first, first + count));
}

Value charonia::frontend::rowOf(DenseElementsAttr table, AffineExpr step,
                                Emitter &e) {
  if (std::optional<int64_t> number = graph::constantOf(step))
    return e.constant(rowAt(table, *number));
  Value all = e.constant(table);
  if (!all)
    return {};
  Exprs dims = graph::getShape(all);
  Exprs starts(dims.size(), e.number(0));
  starts[0] = step;
  Exprs one = dims;
  one[0] = e.number(1);
  Value row =
      e.slice(all, starts, llvm::SmallVector<int64_t>(dims.size(), 1), one);
  return e.reshape(row, llvm::ArrayRef(dims).drop_front());
}
