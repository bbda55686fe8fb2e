#include "codegen/driver/Runs.h"
#include "graph/analysis/IterationSpace.h"
#include "graph/ir/WeightStore.h"

using namespace mlir;

namespace charonia::driver {

AffineExpr runOffset(graph::GraphOpInterface view) {
  if (view.getRole() != graph::OpRole::View || view->getNumOperands() != 1)
    return {};
  MLIRContext *context = view->getContext();
  AffineExpr zero = getAffineConstantExpr(0, context);
  graph::Exprs in = graph::getShape(view->getOperand(0)),
               out = graph::getShape(view->getResult(0)), at;
  for (auto [d, size] : llvm::enumerate(out))
    at.push_back(graph::constantOf(size) == 1 ? zero
                                              : getAffineDimExpr(d, context));
  auto number = [&](ArrayRef<AffineExpr> coordinates,
                    ArrayRef<AffineExpr> shape) {
    AffineExpr flat = zero;
    for (auto [coordinate, size] : llvm::zip_equal(coordinates, shape))
      flat = flat * size + coordinate;
    return flat;
  };
  AffineMap map = view.getOperandMap(0);
  if (!map)
    return {};
  // The same for all elements.
  AffineExpr offset =
      graph::simplify(number(graph::applyMap(map, at), in) - number(at, out),
                      graph::Facts::ofCoordinates(out));
  return offset.isSymbolicOrConstant() ? offset : AffineExpr();
}

/// The part that all readers of the argument read it through, whichever of the
/// equal views; null if there is none.
static graph::GraphOpInterface findPart(BlockArgument argument) {
  graph::GraphOpInterface one;
  for (Operation *user : argument.getUsers()) {
    auto view = dyn_cast<graph::GraphOpInterface>(user);
    if (!view || graph::isSameBytes(view) ||
        (one && !OperationEquivalence::isEquivalentTo(
                    one, view, OperationEquivalence::IgnoreLocations)))
      return {};
    one = view;
  }
  return one;
}

/// Views of views become views.
static void joinViews(Block &body) {
  auto asView = [](Operation *op) {
    auto asked = dyn_cast_or_null<graph::GraphOpInterface>(op);
    return asked && asked.getRole() == graph::OpRole::View &&
                   op->getNumOperands() == 1
               ? op
               : nullptr;
  };
  for (Operation &op : llvm::make_early_inc_range(body)) {
    Operation *view = asView(&op),
              *inner =
                  view ? asView(op.getOperand(0).getDefiningOp()) : nullptr;
    SmallVector<OpFoldResult> folded;
    if (!inner || failed(op.fold(folded)))
      continue;
    if (!folded.empty()) {
      if (auto value = dyn_cast<Value>(folded.front())) {
        op.replaceAllUsesWith(ValueRange(value));
        op.erase();
      }
    } else if (inner->use_empty()) {
      inner->erase();
    }
  }
}

std::optional<graph::Exprs> boxStarts(graph::GraphOpInterface view) {
  if (view.getRole() != graph::OpRole::View || view->getNumOperands() != 1)
    return std::nullopt;
  graph::Exprs out = graph::getShape(view->getResult(0)), starts;
  AffineMap map = view.getOperandMap(0);
  if (!map || map.getNumResults() != out.size())
    return std::nullopt;
  for (auto [d, at] : llvm::enumerate(map.getResults())) {
    AffineExpr zero = getAffineConstantExpr(0, view->getContext()),
               dim = getAffineDimExpr(d, view->getContext());
    AffineExpr start =
        graph::constantOf(out[d]) == 1 ? at.replace(dim, zero) : at - dim;
    start = graph::simplify(start);
    if (!start.isSymbolicOrConstant())
      return std::nullopt;
    starts.push_back(start);
  }
  return starts;
}

/// A slice of a tensor's leading dimensions, which is a run: all before the
/// last of them have one element in it.
struct LeadingPart {
  graph::Exprs starts, shape;
  unsigned count = 0; ///< Leading dimensions.

  friend bool operator==(const LeadingPart &, const LeadingPart &) = default;
};

/// The leading part of which a view reads some; nothing where it is no cut.
static std::optional<LeadingPart> leadingPart(graph::GraphOpInterface view) {
  std::optional<graph::Exprs> starts = boxStarts(view);
  if (!starts)
    return std::nullopt;
  graph::Exprs in = graph::getShape(view->getOperand(0)),
               out = graph::getShape(view->getResult(0));
  LeadingPart part{*starts, out};
  while (part.count < out.size() && graph::constantOf(out[part.count++]) == 1)
    ;
  bool cuts = false;
  for (unsigned d = 0; d < out.size(); ++d) {
    if (d < part.count) {
      cuts |= in[d] != out[d];
      continue;
    }
    part.starts[d] = getAffineConstantExpr(0, view->getContext());
    part.shape[d] = in[d];
  }
  return cuts ? std::optional(std::move(part)) : std::nullopt;
}

/// Where all readers of the argument take some of one leading part of it, lets
/// them read that: of each step of a recurrence a kernel may read some columns.
static void splitSlices(BlockArgument whole) {
  std::optional<LeadingPart> part;
  SmallVector<graph::GraphOpInterface> readers;
  for (Operation *user : whole.getUsers()) {
    auto view = dyn_cast<graph::GraphOpInterface>(user);
    auto leading = view ? leadingPart(view) : std::nullopt;
    if (!leading || (part && *part != *leading))
      return;
    part = std::move(leading);
    readers.push_back(view);
  }
  if (!part)
    return;
  MLIRContext *context = whole.getContext();
  SmallVector<int64_t> steps(part->shape.size(), 1);
  auto slice = [&](OpBuilder builder, Value of, Type type,
                   ArrayRef<AffineExpr> starts) -> Value {
    return graph::SliceOp::create(builder, whole.getLoc(), type, of,
                                  graph::mapOf(0, starts, context), steps);
  };
  Value outer = slice(OpBuilder::atBlockBegin(whole.getOwner()), whole,
                      graph::makeType(part->shape, getElementTypeOrSelf(whole)),
                      part->starts);
  for (graph::GraphOpInterface reader : readers) {
    graph::Exprs starts = *boxStarts(reader);
    std::fill_n(starts.begin(), part->count, getAffineConstantExpr(0, context));
    Value result = reader->getResult(0);
    result.replaceAllUsesWith(
        result.getType() == outer.getType()
            ? outer
            : slice(OpBuilder(reader), outer, result.getType(), starts));
    reader->erase();
  }
}

/// A column of a tensor as rows of `stride` elements: element `start` of each.
struct Column {
  AffineExpr rows, start;
  int64_t stride = 0;
};

/// The column that a view is; nothing for other views.
static std::optional<Column> columnOf(graph::GraphOpInterface view) {
  std::optional<graph::Exprs> starts = boxStarts(view);
  if (!starts)
    return std::nullopt;
  graph::Exprs in = graph::getShape(view->getOperand(0)),
               out = graph::getShape(view->getResult(0));
  AffineExpr zero = getAffineConstantExpr(0, view->getContext());
  unsigned lead = 0;
  while (lead < out.size() && in[lead] == out[lead] && (*starts)[lead] == zero)
    ++lead;
  Column column{getAffineConstantExpr(1, view->getContext()), zero, 1};
  for (AffineExpr size : ArrayRef(in).take_front(lead))
    column.rows = graph::simplify(column.rows * size);
  for (unsigned d = lead; d < out.size(); ++d) {
    auto size = graph::constantOf(in[d]);
    if (graph::constantOf(out[d]) != 1 || !size ||
        llvm::MulOverflow(column.stride, *size, column.stride))
      return std::nullopt;
    column.start = graph::simplify(column.start * *size + (*starts)[d]);
  }
  return lead && column.stride > 1 ? std::optional(column) : std::nullopt;
}

/// Whether a value is one of several results: others follow from the operator
/// that computes it, which has to stay.
static bool isOneOfResults(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return user->hasTrait<OpTrait::IsTerminator>() &&
           user->getNumOperands() > 1;
  });
}

/// Where all readers of argument `i` take the same column of it, lets the
/// kernel have the elements as one dimension, and take of them a run from the
/// column's first element to its last.
static void splitColumn(graph::KernelOp kernel, unsigned i, int64_t alignment,
                        const graph::Facts &facts) {
  Block &body = kernel.getBody().front();
  BlockArgument whole = body.getArgument(i);
  graph::GraphOpInterface view = findPart(whole);
  std::optional<Column> column = view ? columnOf(view) : std::nullopt;
  Type element = getElementTypeOrSelf(whole);
  if (!column || isOneOfResults(view->getResult(0)) ||
      graph::divisorOf(column->start * graph::elementBytes(element), facts) %
              alignment !=
          0)
    return;
  MLIRContext *context = kernel.getContext();
  Location location = whole.getLoc();
  auto line = [&](AffineExpr size) {
    return graph::makeType({graph::simplify(size)}, element);
  };
  OpBuilder outside(kernel), inside = OpBuilder::atBlockBegin(&body);
  auto slice = [&](Value of, AffineExpr size, AffineExpr start,
                   int64_t step) -> Value {
    return graph::SliceOp::create(inside, location, line(size), of,
                                  graph::mapOf(0, {start}, context),
                                  ArrayRef(step));
  };
  Value all = graph::ReshapeOp::create(outside, location,
                                       line(column->rows * column->stride),
                                       kernel.getInputs()[i]);
  kernel->setOperand(i, all);
  Value elements = body.insertArgument(i + 1, all.getType(), location);
  Value run = slice(elements, (column->rows - 1) * column->stride + 1,
                    column->start, 1);
  Value rows = slice(run, column->rows, getAffineConstantExpr(0, context),
                     column->stride);
  Value result = graph::ReshapeOp::create(inside, location,
                                          view->getResult(0).getType(), rows);
  for (Operation *reader : llvm::make_early_inc_range(whole.getUsers())) {
    reader->getResult(0).replaceAllUsesWith(result);
    reader->erase();
  }
  body.eraseArgument(i);
}

static void passRuns(graph::KernelOp kernel, int64_t alignment,
                     const graph::Facts &facts) {
  Block &body = kernel.getBody().front();
  OpBuilder builder(kernel);
  joinViews(body);
  for (unsigned i = 0; i < body.getNumArguments(); ++i) {
    splitSlices(body.getArgument(i));
    splitColumn(kernel, i, alignment, facts);
    BlockArgument whole = body.getArgument(i);
    graph::GraphOpInterface view = findPart(whole);
    AffineExpr offset = view ? runOffset(view) : AffineExpr();
    if (!offset || llvm::any_of(whole.getUsers(), [](Operation *user) {
          return isOneOfResults(user->getResult(0));
        }))
      continue;
    int64_t divisor = graph::divisorOf(
        offset * graph::elementBytes(getElementTypeOrSelf(whole)), facts);
    if (divisor % alignment != 0)
      continue;
    Operation *outside = builder.clone(*view);
    outside->setOperand(0, kernel.getInputs()[i]);
    kernel->setOperand(i, outside->getResult(0));
    BlockArgument part = body.insertArgument(
        i + 1, view->getResult(0).getType(), whole.getLoc());
    for (Operation *user : llvm::make_early_inc_range(whole.getUsers())) {
      user->getResult(0).replaceAllUsesWith(part);
      user->erase();
    }
    body.eraseArgument(i);
  }
}

void passRuns(func::FuncOp function, int64_t alignment) {
  graph::Facts facts = graph::getFacts(function->getParentOfType<ModuleOp>());
  for (auto kernel :
       llvm::make_early_inc_range(function.getOps<graph::KernelOp>()))
    passRuns(kernel, alignment, facts);
}

} // namespace charonia::driver
