#include "codegen/emit/ShortBodies.h"
#include "codegen/emit/KernelShape.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

/// The number of the only symbol in an expression.
static std::optional<unsigned> onlySymbolOf(AffineExpr expr) {
  llvm::SmallSetVector<unsigned, 2> symbols;
  expr.walk([&](AffineExpr e) {
    if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
      symbols.insert(symbol.getPosition());
  });
  return symbols.size() == 1 ? std::optional(symbols[0]) : std::nullopt;
}

/// Bodies for rows of extent `extent`, a tile each or, with those that cross
/// them, a side of one.
static SmallVector<ShortBody> bodiesOf(graph::KernelOp kernel,
                                       AffineExpr extent, bool isSide) {
  std::optional<unsigned> symbol = onlySymbolOf(extent);
  if (!symbol)
    return {};
  auto module = kernel->getParentOfType<ModuleOp>();
  graph::Facts facts = graph::getFacts(module);
  graph::Interval range = facts.symbols[*symbol];
  SmallVector<int64_t> sizes = graph::getOptimum(kernel);
  auto isUpTo = [&](int64_t size, int64_t longest) {
    sizes[*symbol] = size;
    std::optional<int64_t> length = graph::evaluate(extent, sizes);
    return length && *length > 0 && *length <= longest;
  };
  // Of nothing at all there is no instance of any body.
  int64_t divisor = std::max<int64_t>(facts.symbolDivisors[*symbol], 1),
          least = llvm::alignTo(std::max<int64_t>(range.low, 0), divisor);
  if (least < 1 || least >= range.high || !range.isBounded())
    return {};
  // Rows side by side in one register take a division of each lane, as long as
  // this many do by themselves; of a known length, which need none, some more
  // do. A block is no longer one where a side of it has one element, and has
  // few registers where it has some.
  constexpr int64_t longest = 3, longestKnown = 4;
  if (!isUpTo(least, isSide ? 1 : longestKnown))
    return {};
  SmallVector<ShortBody> bodies{{*symbol, least, /*isOnly=*/true}};
  int64_t most = least;
  for (int64_t more = 1; more < longest && !isSide; ++more)
    if (most + divisor < range.high && isUpTo(most + divisor, longest))
      most += divisor;
  if (most > least)
    bodies.push_back({*symbol, most});
  return bodies;
}

SmallVector<ShortBody> emit::shortBodiesOf(graph::KernelOp kernel,
                                           const EmitTarget &target,
                                           const Schedule &schedule) {
  if (target.kind != EmitTarget::Kind::Cpu || schedule.groups.size() < 2 ||
      !llvm::is_contained(schedule.axes, schedule.groups.size() - 1))
    return {};
  KernelShape shape = inspect(kernel, target);
  // Each is the kernel's code once more.
  constexpr int64_t longestCode = 128;
  if (shape.role != graph::OpRole::Pointwise || shape.code > longestCode)
    return {};
  SmallVector<ShortBody> bodies;
  for (unsigned axis : llvm::reverse(schedule.axes)) {
    const Schedule::Group &group = schedule.groups[axis];
    if (group.sequential)
      return {};
    AffineExpr extent = getAffineConstantExpr(1, kernel.getContext());
    for (unsigned d : group.dims)
      extent = extent * shape.root[d];
    bodies.append(bodiesOf(kernel, graph::simplify(extent),
                           /*isSide=*/schedule.axes.size() > 1));
  }
  return bodies;
}

/// Writes a number for a symbol in all types and attributes below `op`.
static void setSymbol(Operation *op, unsigned symbol, int64_t value) {
  MLIRContext *context = op->getContext();
  auto replaced = [=](AffineExpr expr) {
    return graph::simplify(expr.replace(getAffineSymbolExpr(symbol, context),
                                        getAffineConstantExpr(value, context)));
  };
  AttrTypeReplacer replacer;
  replacer.addReplacement([=](AffineMapAttr attribute) -> Attribute {
    AffineMap map = attribute.getValue();
    graph::Exprs results;
    for (AffineExpr result : map.getResults())
      results.push_back(replaced(result));
    return AffineMapAttr::get(AffineMap::get(
        map.getNumDims(), map.getNumSymbols(), results, context));
  });
  replacer.addReplacement(
      [=](RankedTensorType type) -> std::optional<std::pair<Type, WalkResult>> {
        if (!graph::hasSymbolicShape(type))
          return std::nullopt;
        graph::Exprs dims;
        for (AffineExpr dim : graph::getShape(type))
          dims.push_back(replaced(dim));
        return std::pair<Type, WalkResult>(
            graph::makeType(dims, type.getElementType()), WalkResult::skip());
      });
  replacer.recursivelyReplaceElementsIn(op, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

OwningOpRef<ModuleOp> emit::moduleOf(graph::KernelOp kernel,
                                     const ShortBody &body) {
  auto outer = kernel->getParentOfType<ModuleOp>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
  auto function =
      func::FuncOp::create(b, kernel.getLoc(), "main",
                           b.getFunctionType(kernel->getOperandTypes(), {}));
  b.setInsertionPointToEnd(function.addEntryBlock());
  IRMapping mapping;
  mapping.map(kernel->getOperands(), function.getArguments());
  auto copy = cast<graph::KernelOp>(b.clone(*kernel, mapping));
  copy.removeScheduleAttr();
  func::ReturnOp::create(b, kernel.getLoc());
  if (body.isOnly)
    setSymbol(*module, body.symbol, body.most);
  // Constraints of the model do not come along, but what they make of sizes.
  SmallVector<graph::Symbol> symbols = graph::getSymbols(outer);
  graph::Facts facts = graph::getFacts(outer);
  for (auto [symbol, divisor] : llvm::zip_equal(symbols, facts.symbolDivisors))
    symbol.divisor = divisor;
  graph::Symbol &few = symbols[body.symbol];
  few.max = body.most;
  few.opt = std::min(few.opt, body.most);
  if (body.isOnly)
    few.min = body.most;
  graph::setSymbols(*module, symbols);
  return module;
}

/// `few` where the symbol is at most body.most, else `many`.
static AffineMap chosenGrid(AffineMap few, AffineMap many,
                            const ShortBody &body, int64_t highest) {
  AffineExpr symbol = getAffineSymbolExpr(body.symbol, few.getContext()),
             isMany = (symbol + (highest - 1 - body.most)).floorDiv(highest),
             grid = few.getResult(0) +
                    isMany * (many.getResult(0) - few.getResult(0));
  return AffineMap::get(0, many.getNumSymbols(), grid, few.getContext());
}

void emit::addBody(func::FuncOp function, func::FuncOp of,
                   graph::KernelOp kernel, const ShortBody &body) {
  auto module = kernel->getParentOfType<ModuleOp>();
  graph::Facts facts = graph::getFacts(module);
  auto gridOf = [](func::FuncOp f) {
    return f->getAttrOfType<AffineMapAttr>(tile::kGridAttr).getValue();
  };
  function->setAttr(tile::kGridAttr, AffineMapAttr::get(chosenGrid(
                                         gridOf(of), gridOf(function), body,
                                         facts.symbols[body.symbol].high)));
  Block &many = function.getBody().front(), &few = of.getBody().front();
  Operation *manyEnd = many.getTerminator(), *fewEnd = few.getTerminator();
  OpBuilder b(manyEnd);
  Location loc = kernel.getLoc();
  unsigned first = many.getNumArguments() - facts.symbols.size();
  Value limit = arith::ConstantIndexOp::create(b, loc, body.most),
        isFew =
            arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                                  many.getArgument(first + body.symbol), limit);
  auto branch = scf::IfOp::create(b, loc, isFew, /*withElseRegion=*/true);
  auto move = [](Block &from, Operation *end, Block &to) {
    to.getOperations().splice(to.getTerminator()->getIterator(),
                              from.getOperations(), from.begin(),
                              end->getIterator());
  };
  for (auto [inner, outer] :
       llvm::zip_equal(few.getArguments(), many.getArguments()))
    inner.replaceAllUsesWith(outer);
  move(many, limit.getDefiningOp(), branch.getElseRegion().front());
  move(few, fewEnd, branch.getThenRegion().front());
}
