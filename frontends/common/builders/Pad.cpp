#include "frontends/common/builders/Pad.h"

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

/// Reflection reaches as far as the dimension goes, once.
static llvm::LogicalResult checkReach(Emitter &e, graph::PadMode mode,
                                      AffineExpr size, AffineExpr low,
                                      AffineExpr high) {
  if (mode == graph::PadMode::constant)
    return llvm::success();
  AffineExpr limit =
      mode == graph::PadMode::reflect ? graph::simplify(size - 1) : size;
  for (AffineExpr amount : {low, high}) {
    bool fits = mode == graph::PadMode::reflect
                    ? e.getSymbols().assumeAtLeast(
                          limit, amount, "so that padding can reflect it")
                    : amount == e.number(0) ||
                          e.getSymbols().assumeAtLeast(
                              size, e.number(1), "so that it can be padded");
    if (fits)
      continue;
    Symbols &symbols = e.getSymbols();
    // At some sizes of a declared range it may.
    AffineExpr room = graph::simplify(
        mode == graph::PadMode::reflect ? limit - amount : size - 1);
    bool mayFit = symbols.bounds(room).high >= 0;
    return e.fail(
        "cannot pad size " + symbols.toString(size) + " by " +
            symbols.toString(amount) + " in mode " +
            graph::stringifyPadMode(mode) +
            (mayFit ? " for all of " + symbols.describeRanges(room) : ""),
        mayFit ? "narrow the range with --shape" : "");
  }
  return llvm::success();
}

Value charonia::frontend::buildPad(graph::PadMode mode, Value value, Value fill,
                                   llvm::ArrayRef<AffineExpr> lows,
                                   llvm::ArrayRef<AffineExpr> highs,
                                   llvm::ArrayRef<int64_t> axes, Emitter &e) {
  if (!value)
    return {};
  Exprs shape = graph::getShape(value), dims = shape;
  Exprs all = e.numbers(SmallVector<int64_t>(shape.size(), 0));
  for (auto [axis, low, high] : llvm::zip_equal(axes, lows, highs)) {
    for (AffineExpr amount : {low, high})
      if (auto known = graph::constantOf(amount);
          known && std::abs(*known) > maxDimension)
        return e.fail("a pad of " + Twine(*known) + " is absurdly large");
    if (failed(checkReach(e, mode, shape[axis], low, high)))
      return {};
    all[axis] = low;
    dims[axis] = graph::simplify(shape[axis] + low + high);
  }
  return e.pad(mode, value, fill, all, dims);
}

Value charonia::frontend::buildTile(Value value,
                                    llvm::ArrayRef<AffineExpr> repeats,
                                    Emitter &e) {
  if (!value)
    return {};
  Exprs shape = graph::getShape(value);
  if (repeats.size() != shape.size())
    return e.fail("has " + Twine(repeats.size()) + " repeats for " +
                  Twine(shape.size()) + " dimensions");
  Exprs split, spread, dims;
  for (auto [dim, repeat] : llvm::zip(shape, repeats)) {
    if (auto known = graph::constantOf(repeat); known && *known < 0)
      return e.fail("a repeat may not be " + Twine(*known));
    AffineExpr extent = productOf({repeat, dim}, e.getContext());
    if (!extent)
      return e.fail("the number of elements is absurdly large");
    dims.push_back(extent);
    bool once = repeat == e.number(1);
    if (!once && dim != e.number(1)) {
      split.push_back(e.number(1));
      spread.push_back(repeat);
    }
    split.push_back(dim);
    spread.push_back(dim == e.number(1) ? repeat : dim);
  }
  return e.reshape(e.broadcast(e.reshape(value, split), spread), dims);
}
