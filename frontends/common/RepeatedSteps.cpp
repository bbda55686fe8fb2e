#include "frontends/common/RepeatedSteps.h"

using namespace charonia;
using namespace charonia::frontend;
using mlir::AffineExpr;
using mlir::Value;

RepeatedSteps::RepeatedSteps(AffineExpr count, Emitter &e)
    : RepeatedSteps(e.isInSteps() ? AffineExpr() : e.getSymbols().addCounter(),
                    count, e) {}

RepeatedSteps::RepeatedSteps(AffineExpr symbol, AffineExpr count, Emitter &e)
    : e(e), symbol(symbol), count(count), isOutermost(!e.isInSteps()) {
  if (!isOutermost) {
    e.fail("steps inside of steps are not supported unless the number of the "
           "inner ones is known",
           "fix the sizes that say how many they are with --shape");
    return;
  }
  e.setInSteps(true);
  if (!symbol) {
    e.fail("the model has too many sizes that are computed");
    return;
  }
  counter = graph::simplify(symbol - 1);
  e.getSymbols().setCount(symbol, count);
  e.getSymbols().settleCount(symbol);
}

RepeatedSteps::~RepeatedSteps() {
  if (isOutermost)
    e.setInSteps(false);
}

Value RepeatedSteps::carry(Value init) {
  Value state;
  if (init && counter)
    state = e.opTo<graph::CarriedOp>(
        llvm::cast<mlir::RankedTensorType>(init.getType()), {init},
        {e.map("counter", symbol),
         e.attr("index", static_cast<int64_t>(carried.size()))});
  carried.push_back(state);
  return state;
}

void RepeatedSteps::failUnlike(Value before, Value after) {
  e.fail("a step makes " + e.describe(after.getType()) + " of a state of " +
             e.describe(before.getType()) +
             ", and states of steps that are repeated keep types and sizes",
         "fix the number of steps with --shape, so that each is written out, "
         "or give steps a state of the largest size");
}

/// Whether a state may be what it was; fails where it is not.
bool RepeatedSteps::mayBeAlike(Value before, Value after) {
  Exprs is = graph::getShape(e.follow(before)),
        becomes = graph::getShape(e.follow(after));
  auto isOther = [&](AffineExpr a, AffineExpr b) {
    Symbols &symbols = e.getSymbols();
    return symbols.isAtLeast(a, b + 1) || symbols.isAtLeast(b, a + 1);
  };
  if (is.size() == becomes.size() && elementOf(before) == elementOf(after) &&
      llvm::none_of(llvm::zip(is, becomes), [&](auto sizes) {
        return isOther(std::get<0>(sizes), std::get<1>(sizes));
      }))
    return true;
  failUnlike(before, after);
  return false;
}

/// That sizes stay what they are, where that is not seen.
void RepeatedSteps::assumeAlike(Value before, Value after) {
  e.follow(before);
  e.follow(after);
  Exprs is = graph::getShape(before), becomes = graph::getShape(after);
  if (is.size() != becomes.size())
    return;
  for (auto [a, b] : llvm::zip(is, becomes))
    e.agree(a, b, "carries them from step to step");
}

bool RepeatedSteps::mayCarryOn(llvm::ArrayRef<Value> next) {
  return llvm::all_of(llvm::zip_equal(carried, next), [&](auto state) {
    auto [before, after] = state;
    return before && after && mayBeAlike(before, after);
  });
}

Values RepeatedSteps::finish(llvm::ArrayRef<Value> next,
                             llvm::ArrayRef<Value> outputs,
                             llvm::ArrayRef<AffineExpr> places) {
  Values failed(carried.size() + outputs.size());
  llvm::SmallVector<mlir::Type> types;
  // Nothing is assumed of sizes for steps that are none.
  if (!mayCarryOn(next))
    return failed;
  for (auto [value, after] : llvm::zip_equal(carried, next)) {
    assumeAlike(value, after);
    if (value.getType() != after.getType()) {
      failUnlike(value, after);
      return failed;
    }
    types.push_back(value.getType());
  }
  for (Value output : outputs) {
    if (!output)
      return failed;
    Exprs shape = graph::getShape(e.follow(output));
    shape.insert(shape.begin(), e.getSymbols().resolve(count));
    mlir::RankedTensorType stacked = e.type(shape, elementOf(output));
    if (!stacked)
      return failed;
    types.push_back(stacked);
  }
  Symbols &symbols = e.getSymbols();
  auto iterate = graph::IterateOp::create(
      e.getBuilder(), e.getLocation(), types, carried, next, outputs,
      symbols.mapTo(symbol), symbols.mapTo(count), symbols.mapTo(places));
  Values results(iterate.getResults());
  for (Value result : results)
    e.follow(result);
  return results;
}
