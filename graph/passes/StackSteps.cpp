#include "graph/analysis/IterationSpace.h"
#include "graph/analysis/Weights.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/Views.h"
#include <map>

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_STACKSTEPS
#include "graph/passes/Passes.h.inc"

namespace {

/// A value as elements of another one that is no view.
struct Shown {
  Value root;
  AffineMap map; // null where it is no simple one
};

GraphOpInterface definitionOf(Value value, OpRole role) {
  auto op = value.getDefiningOp<GraphOpInterface>();
  return op && op.getRole() == role ? op : GraphOpInterface();
}

Shown lookThrough(Value value) {
  constexpr unsigned mostViews = 16, mostTerms = 64;
  Exprs extents = getShape(value);
  Shown shown{value, AffineMap::getMultiDimIdentityMap(extents.size(),
                                                       value.getContext())};
  for (unsigned i = 0; shown.map && i < mostViews; ++i) {
    GraphOpInterface view = definitionOf(shown.root, OpRole::View);
    if (!view)
      return shown;
    shown.map = composeMaps(view.getOperandMap(0), shown.map, extents);
    shown.root = view->getOperand(0);
    if (countTerms(shown.map, mostTerms + 1) > mostTerms)
      shown.map = {};
  }
  return shown;
}

/// How two maps to the same value differ, if by a constant in one coordinate.
struct Distance {
  unsigned coordinate;
  int64_t places;
};
std::optional<Distance> distanceOf(AffineMap from, AffineMap to) {
  if (!from || !to || from.getNumResults() != to.getNumResults())
    return std::nullopt;
  std::optional<Distance> distance;
  for (unsigned i = 0; i < from.getNumResults(); ++i) {
    AffineExpr a = from.getResult(i), b = to.getResult(i);
    auto places = a == b ? 0 : constantOf(simplify(b - a));
    if (!places || (*places && distance))
      return std::nullopt;
    if (*places)
      distance = Distance{i, *places};
  }
  return distance ? distance : Distance{0, 0};
}

std::optional<Distance> distanceOf(const Shown &from, const Shown &to) {
  return from.root == to.root ? distanceOf(from.map, to.map) : std::nullopt;
}

/// Operators that compute the same of other operands.
bool areAlike(Operation *a, Operation *b) {
  return a->getName() == b->getName() &&
         a->getAttrDictionary() == b->getAttrDictionary() &&
         a->getNumOperands() == b->getNumOperands() &&
         a->getResult(0).getType() == b->getResult(0).getType();
}
/// What computes the first of values that are all computed alike, else null.
Operation *alikeDefinition(ArrayRef<Value> values) {
  Operation *first = values[0].getDefiningOp();
  bool all =
      first && llvm::all_of(values, [&](Value value) {
        return value.getDefiningOp() && areAlike(first, value.getDefiningOp());
      });
  return all ? first : nullptr;
}

SmallVector<Value> operandsOf(ArrayRef<Value> values, unsigned operand) {
  SmallVector<Value> operands;
  for (Value value : values)
    operands.push_back(value.getDefiningOp()->getOperand(operand));
  return operands;
}

//===----------------------------------------------------------------------===//
// Which contractions are steps of one
//===----------------------------------------------------------------------===//

/// What contractions have in common that are steps of one: in order, what their
/// operands are made of.
using Signature = std::vector<const void *>;

/// Whether views of what steps compute are part of a signature, or all views
/// are taken as parts of one tensor.
enum class Views { OfOneTensor, OfSteps };

class Reader {
public:
  explicit Reader(Views views) : views(views) {}
  Signature read(Operation *op, unsigned moving) {
    signature.clear();
    add(op);
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (i != moving)
        signature.push_back(operand.getAsOpaquePointer());
    read(op->getOperand(moving), mostDeep);
    return std::move(signature);
  }

private:
  void add(Operation *op) {
    signature.push_back(op->getName().getAsOpaquePointer());
    signature.push_back(op->getAttrDictionary().getAsOpaquePointer());
    signature.push_back(op->getResult(0).getType().getAsOpaquePointer());
  }
  void read(Value value, unsigned depth);

  static constexpr unsigned mostDeep = 8;
  static constexpr size_t mostEntries = 256;
  Views views;
  Signature signature;
};

void Reader::read(Value value, unsigned depth) {
  Value root = value;
  while (GraphOpInterface view = definitionOf(root, OpRole::View))
    root = view->getOperand(0);
  Operation *op = root == value || views == Views::OfSteps
                      ? value.getDefiningOp()
                      : nullptr;
  bool goesOn = depth && signature.size() < mostEntries &&
                definitionOf(root, OpRole::Pointwise);
  if (!op || !goesOn) {
    signature.push_back(value.getType().getAsOpaquePointer());
    signature.push_back(root.getAsOpaquePointer());
    return;
  }
  add(op);
  for (Value operand : op->getOperands())
    read(operand, depth - 1);
}

/// Where an operator works index by index: each index of dimension `operandDim`
/// of operand `operand` gives, with all of the other operands, the same index
/// of dimension `resultDim` of the result.
struct Rows {
  unsigned operand, operandDim, resultDim;
};

/// Contractions that differ in operand `rows.operand` alone.
struct Steps {
  Rows rows;
  SmallVector<Operation *> ops;
};

/// Whether the result has one index more where the operand has, and is else as
/// it was.
bool growsAlone(Operation *op, const Rows &rows) {
  auto inferred = dyn_cast<InferTypeOpInterface>(op);
  Value operand = op->getOperand(rows.operand);
  Exprs shape = getShape(operand), result = getShape(op->getResult(0));
  if (!inferred || rows.operandDim >= shape.size() ||
      shape.size() != result.size())
    return false;
  shape[rows.operandDim] = simplify(shape[rows.operandDim] + 1);
  result[rows.resultDim] = simplify(result[rows.resultDim] + 1);
  // A value of that type, for as long as the question takes.
  Block block;
  SmallVector<Value> operands(op->getOperands());
  operands[rows.operand] = block.addArgument(
      makeType(shape, getElementTypeOrSelf(operand)), op->getLoc());
  SmallVector<Type> types;
  return succeeded(inferred.inferReturnTypes(
             op->getContext(), std::nullopt, operands, op->getAttrDictionary(),
             op->getPropertiesStorage(), op->getRegions(), types)) &&
         getShape(types[0]) == result;
}

std::optional<Rows> rowsOf(Operation *op, bool ofColumns) {
  auto contraction = dyn_cast<GraphOpInterface>(op);
  if (!contraction || contraction.getRole() != OpRole::Contraction ||
      op->use_empty())
    return std::nullopt;
  auto columns = contraction.getColumns();
  if (!columns)
    return std::nullopt;
  if (ofColumns)
    return Rows{columns->operand, columns->operandDim, columns->resultDim};
  // Rows of what is multiplied with them lead, where no dimension of the
  // columns' operand meets them.
  Rows rows{1 - columns->operand, 0, 0};
  if (op->getNumOperands() != 2 ||
      contraction.getResultDimKinds()[0] != DimKind::Row ||
      !growsAlone(op, rows))
    return std::nullopt;
  return rows;
}

SmallVector<Steps> findSteps(Block &block, bool ofColumns, Views views) {
  // What is cheap to tell first.
  std::map<Signature, unsigned> alike;
  SmallVector<std::pair<Operation *, Signature>> candidates;
  for (Operation &op : block)
    if (auto rows = rowsOf(&op, ofColumns)) {
      Signature rough{op.getName().getAsOpaquePointer(),
                      op.getAttrDictionary().getAsOpaquePointer()};
      for (auto [i, operand] : llvm::enumerate(op.getOperands()))
        rough.push_back(i == rows->operand
                            ? operand.getType().getAsOpaquePointer()
                            : operand.getAsOpaquePointer());
      ++alike[rough];
      candidates.push_back({&op, std::move(rough)});
    }
  std::map<Signature, unsigned> places;
  SmallVector<Steps> found;
  for (auto &[op, rough] : candidates) {
    if (alike[rough] < 2)
      continue;
    Rows rows = *rowsOf(op, ofColumns);
    auto [it, isNew] =
        places.insert({Reader(views).read(op, rows.operand), found.size()});
    if (isNew)
      found.push_back({rows, {}});
    found[it->second].ops.push_back(op);
  }
  llvm::erase_if(found,
                 [](const Steps &steps) { return steps.ops.size() < 2; });
  return found;
}

//===----------------------------------------------------------------------===//
// Their operands as one
//===----------------------------------------------------------------------===//

/// Of values that are parts of one tensor, or computed of such: the place of
/// each one's part. False where all are the same, or nothing of the kind.
bool findPlaces(ArrayRef<Value> values, SmallVectorImpl<int64_t> &places) {
  if (llvm::all_equal(values))
    return false;
  Shown first = lookThrough(values[0]);
  places.clear();
  for (Value value : values) {
    auto distance = distanceOf(first, lookThrough(value));
    if (!distance)
      break;
    places.push_back(distance->places);
  }
  if (places.size() == values.size())
    return true;
  Operation *op = alikeDefinition(values);
  if (!op)
    return false;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (findPlaces(operandsOf(values, i), places))
      return true;
  return false;
}

/// Values of one type side by side along a new first dimension.
class Stacker {
public:
  Stacker(OpBuilder &builder, Location location)
      : builder(builder), location(location) {}

  /// Null where they are not computed alike of parts of one tensor at equal
  /// distances. One and the same value is not stacked (isCommon).
  Value stack(ArrayRef<Value> values, bool &isCommon);

private:
  Value stackParts(ArrayRef<Value> values);
  Value stackView(GraphOpInterface view, Value stacked, int64_t count);
  Value stackPointwise(ArrayRef<Value> values);
  /// A view of `root` with a new first dimension, each index of which is
  /// `step` further in a coordinate.
  Value build(Value root, AffineMap map, ArrayRef<AffineExpr> shape) {
    auto plan = planViews(map, getShape(root), shape);
    return plan ? buildViews(builder, location, root, *plan) : Value();
  }

  OpBuilder &builder;
  Location location;
};

Value Stacker::stack(ArrayRef<Value> values, bool &isCommon) {
  isCommon = llvm::all_equal(values);
  if (isCommon)
    return values[0];
  if (Value parts = stackParts(values))
    return parts;
  auto op = dyn_cast_if_present<GraphOpInterface>(alikeDefinition(values));
  if (!op)
    return {};
  if (op.getRole() == OpRole::Pointwise)
    return stackPointwise(values);
  if (op.getRole() != OpRole::View)
    return {};
  Value stacked = stack(operandsOf(values, 0), isCommon);
  return stacked && !isCommon ? stackView(op, stacked, values.size()) : Value();
}

Value Stacker::stackParts(ArrayRef<Value> values) {
  Shown first = lookThrough(values[0]);
  std::optional<Distance> step;
  for (auto [i, value] : llvm::enumerate(values.drop_front())) {
    auto distance = distanceOf(first, lookThrough(value));
    if (!distance || !distance->places)
      return {};
    if (!step)
      step = distance;
    if (distance->coordinate != step->coordinate ||
        distance->places != step->places * int64_t(i + 1))
      return {};
  }
  Exprs shape = getShape(values[0]), coordinates;
  unsigned rank = shape.size();
  AffineMap map = first.map.shiftDims(1);
  coordinates.append(map.getResults().begin(), map.getResults().end());
  AffineExpr &moving = coordinates[step->coordinate];
  moving = simplify(moving + builder.getAffineDimExpr(0) * step->places);
  shape.insert(shape.begin(), builder.getAffineConstantExpr(values.size()));
  return build(first.root,
               AffineMap::get(rank + 1, map.getNumSymbols(), coordinates,
                              builder.getContext()),
               shape);
}

Value Stacker::stackView(GraphOpInterface view, Value stacked, int64_t count) {
  AffineMap map = view.getOperandMap(0).shiftDims(1);
  Exprs shape = getShape(view->getResult(0)),
        coordinates{builder.getAffineDimExpr(0)};
  llvm::append_range(coordinates, map.getResults());
  shape.insert(shape.begin(), builder.getAffineConstantExpr(count));
  return build(stacked,
               AffineMap::get(shape.size(), map.getNumSymbols(), coordinates,
                              builder.getContext()),
               shape);
}

Value Stacker::stackPointwise(ArrayRef<Value> values) {
  Operation *first = values[0].getDefiningOp();
  size_t rank = getShape(values[0]).size();
  AffineExpr one = builder.getAffineConstantExpr(1);
  SmallVector<Value> operands;
  bool areCommon = true;
  for (unsigned i = 0; i < first->getNumOperands(); ++i) {
    bool isOperandCommon;
    Value operand = stack(operandsOf(values, i), isOperandCommon);
    if (!operand)
      return {};
    Exprs shape = getShape(operand);
    // Behind the steps come the dimensions of the result that it lacks.
    if (!isOperandCommon && shape.size() < rank + 1) {
      shape.insert(shape.begin() + 1, rank + 1 - shape.size(), one);
      operand = ReshapeOp::create(
          builder, location, makeType(shape, getElementTypeOrSelf(operand)),
          operand);
    }
    areCommon &= isOperandCommon;
    operands.push_back(operand);
  }
  if (areCommon)
    return {};
  Exprs shape = getShape(values[0]);
  shape.insert(shape.begin(), builder.getAffineConstantExpr(values.size()));
  Operation *all = builder.clone(*first);
  all->setOperands(operands);
  all->getResult(0).setType(makeType(shape, getElementTypeOrSelf(values[0])));
  return all->getResult(0);
}

//===----------------------------------------------------------------------===//
// One for all steps
//===----------------------------------------------------------------------===//

struct StackSteps : impl::StackStepsBase<StackSteps> {
  void runOnOperation() override {
    Block &block = getOperation().getBody().front();
    // What is behind a contraction that becomes one may become one in the next
    // round.
    constexpr unsigned mostRounds = 8;
    bool changes = true;
    for (unsigned round = 0; changes && round < mostRounds; ++round) {
      changes = false;
      for (bool ofColumns : {false, true})
        for (Views views : {Views::OfOneTensor, Views::OfSteps})
          for (Steps &steps : findSteps(block, ofColumns, views))
            changes |= merge(steps);
      eraseDead(getOperation());
    }
  }

  bool merge(Steps &steps) {
    SmallVector<Value> moving;
    for (Operation *op : steps.ops)
      moving.push_back(op->getOperand(steps.rows.operand));
    // Parts of weights are merge-contractions', which takes biases along.
    if (weightsOnly(moving.front()))
      return false;
    SmallVector<int64_t> places;
    if (!findPlaces(moving, places))
      return false;
    OpBuilder builder(steps.ops.front());
    // In the order in which their parts lie.
    SmallVector<unsigned> order =
        llvm::to_vector(llvm::seq<unsigned>(0, steps.ops.size()));
    llvm::stable_sort(
        order, [&](unsigned a, unsigned b) { return places[a] < places[b]; });
    SmallVector<Operation *> ops;
    SmallVector<Value> sorted;
    for (unsigned i : order) {
      ops.push_back(steps.ops[i]);
      sorted.push_back(moving[i]);
    }
    bool isCommon;
    Value stacked =
        Stacker(builder, ops.front()->getLoc()).stack(sorted, isCommon);
    if (!stacked || isCommon)
      return false;
    replace(builder, ops, steps.rows, stacked);
    return true;
  }

  /// One operator on all steps' rows, of whose result each step gets its own.
  static void replace(OpBuilder &builder, ArrayRef<Operation *> ops,
                      const Rows &rows, Value stacked) {
    Operation *first = ops.front();
    Location location = first->getLoc();
    Type element = getElementTypeOrSelf(stacked);
    AffineExpr count = builder.getAffineConstantExpr(ops.size());
    SmallVector<int64_t> permutation;
    for (int64_t i = 1, e = getShape(stacked).size(); i < e; ++i)
      permutation.push_back(i);
    permutation.insert(permutation.begin() + rows.operandDim, 0);
    if (rows.operandDim)
      stacked = TransposeOp::create(builder, location, stacked, permutation);
    Exprs shape = getShape(first->getOperand(rows.operand));
    shape[rows.operandDim] = simplify(shape[rows.operandDim] * count);
    Value merged =
        ReshapeOp::create(builder, location, makeType(shape, element), stacked);
    Operation *all = builder.clone(*first);
    all->setOperand(rows.operand, merged);
    Exprs result = getShape(first->getResult(0)), split = result;
    element = getElementTypeOrSelf(first->getResult(0));
    result[rows.resultDim] = simplify(result[rows.resultDim] * count);
    all->getResult(0).setType(makeType(result, element));
    split.insert(split.begin() + rows.resultDim, count);
    Value parts = ReshapeOp::create(builder, location, makeType(split, element),
                                    all->getResult(0));
    Exprs starts(split.size(), builder.getAffineConstantExpr(0));
    split[rows.resultDim] = builder.getAffineConstantExpr(1);
    SmallVector<int64_t> ones(split.size(), 1);
    for (auto [i, op] : llvm::enumerate(ops)) {
      starts[rows.resultDim] = builder.getAffineConstantExpr(i);
      Value part = SliceOp::create(
          builder, op->getLoc(), makeType(split, element), parts,
          AffineMap::get(0, 0, starts, builder.getContext()), ones);
      op->getResult(0).replaceAllUsesWith(ReshapeOp::create(
          builder, op->getLoc(), op->getResult(0).getType(), part));
    }
    for (Operation *op : ops)
      op->erase();
  }

  WeightsOnly weightsOnly;
};

} // namespace
} // namespace charonia::graph
