#include "codegen/gpu/WholeTiles.h"
#include "codegen/tile/analysis/Access.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <optional>
#include <vector>

using namespace mlir;
using namespace charonia;
using graph::Sum;

namespace {

/// Elements of a tile under which a branch costs what it saves.
constexpr int64_t kLeastElements = 1024;

/// A sum of products of symbols and a constant, as an index.
class SumBuilder {
public:
  SumBuilder(OpBuilder &b, Location loc, ValueRange symbols)
      : b(b), loc(loc), symbols(symbols) {}

  Value operator()(const Sum &sum) {
    Value total = constant(sum.constant);
    for (const Sum::Term &term : sum.terms) {
      Value product = constant(term.coefficient);
      for (AffineExpr atom : term.atoms) {
        unsigned symbol = cast<AffineSymbolExpr>(atom).getPosition();
        product = arith::MulIOp::create(b, loc, product, symbols[symbol]);
      }
      total = arith::AddIOp::create(b, loc, total, product);
    }
    return total;
  }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }

private:
  OpBuilder &b;
  Location loc;
  ValueRange symbols;
};

/// The least and the greatest value of an expression over a tile, over symbols
/// alone; nothing where it is no plain sum.
std::optional<std::pair<Sum, Sum>> extremes(AffineExpr expr,
                                            ArrayRef<int64_t> tile) {
  Sum least, most;
  Sum sum(expr);
  least.constant = most.constant = sum.constant;
  for (const Sum::Term &term : sum.terms) {
    if (auto dim = dyn_cast<AffineDimExpr>(term.atoms.front());
        dim && term.atoms.size() == 1) {
      int64_t moved = term.coefficient * (tile[dim.getPosition()] - 1);
      (moved < 0 ? least : most).constant += moved;
      continue;
    }
    if (!llvm::all_of(term.atoms, llvm::IsaPred<AffineSymbolExpr>))
      return std::nullopt;
    least.terms.push_back(term);
    most.terms.push_back(term);
  }
  return std::pair(least, most);
}

/// Whether all elements of the tile are in bounds; null where no short code
/// tells.
Value areAllInBounds(OpBuilder &b, tile::InBoundsOp op) {
  for (Value symbol : op.getSymbols())
    if (!symbol.getType().isIndex())
      return {};
  Location loc = op.getLoc();
  ArrayRef<int64_t> tile = op.getType().getShape();
  std::vector<std::pair<Sum, Sum>> lows, ends;
  AffineMap map = op.getMap(), shape = op.getShape();
  for (auto [at, extent] : llvm::zip(map.getResults(), shape.getResults())) {
    auto range = extremes(at, tile), end = extremes(extent, tile);
    if (!range || !end)
      return {};
    lows.push_back(*range);
    ends.push_back(*end);
  }
  SumBuilder build(b, loc, op.getSymbols());
  Value all;
  auto require = [&](arith::CmpIPredicate predicate, Value x, Value y) {
    Value holds = arith::CmpIOp::create(b, loc, predicate, x, y);
    all = all ? Value(arith::AndIOp::create(b, loc, all, holds)) : holds;
  };
  for (auto [range, end] : llvm::zip(lows, ends)) {
    require(arith::CmpIPredicate::sge, build(range.first), build.constant(0));
    require(arith::CmpIPredicate::slt, build(range.second), build(end.first));
  }
  return all;
}

void branchAround(arith::SelectOp select, tile::InBoundsOp bounds) {
  OpBuilder b(select);
  Value all = areAllInBounds(b, bounds);
  if (!all)
    return;
  Location loc = select.getLoc();
  auto branch = scf::IfOp::create(b, loc, select->getResultTypes(), all, true);
  b.setInsertionPointToEnd(&branch.getThenRegion().front());
  scf::YieldOp::create(b, loc, select.getTrueValue());
  select.replaceAllUsesWith(branch.getResult(0));
  Block &other = branch.getElseRegion().front();
  b.setInsertionPointToEnd(&other);
  auto yield = scf::YieldOp::create(b, loc, select.getResult());
  select->moveBefore(yield);
  if (bounds->hasOneUse())
    bounds->moveBefore(select);
}

} // namespace

void charonia::gpu::branchAroundBounds(func::FuncOp function) {
  SmallVector<arith::SelectOp> selects;
  function.walk([&](scf::ForOp loop) {
    if (loop.getBody()->getOps<tile::DotOp>().empty())
      return;
    for (auto select : loop.getBody()->getOps<arith::SelectOp>()) {
      auto type = dyn_cast<RankedTensorType>(select.getType());
      if (type && type.getNumElements() >= kLeastElements)
        selects.push_back(select);
    }
  });
  for (arith::SelectOp select : selects)
    if (auto bounds = select.getCondition().getDefiningOp<tile::InBoundsOp>();
        bounds && bounds->getBlock() == select->getBlock())
      branchAround(select, bounds);
}
