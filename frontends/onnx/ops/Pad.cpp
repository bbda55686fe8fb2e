// Padding.
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

static llvm::FailureOr<graph::PadMode> readMode(Node &n, Emitter &e) {
  std::string mode = n.text("mode", "constant");
  auto known = graph::symbolizePadMode(mode);
  if (!known)
    return e.fail(
        "attribute 'mode' has to be constant, edge, reflect or wrap, not '" +
        mode + "'");
  return *known;
}

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
    if (!fits)
      return e.fail("cannot pad size " + e.getSymbols().toString(size) +
                    " by " + e.getSymbols().toString(amount) + " in mode " +
                    graph::stringifyPadMode(mode));
  }
  return llvm::success();
}

static llvm::LogicalResult padBy(Node &n, Emitter &e, const Exprs &pads,
                                 llvm::ArrayRef<int64_t> axes, Value fill) {
  auto mode = readMode(n, e);
  Exprs shape = graph::getShape(n.input(0)), dims = shape;
  if (failed(mode))
    return llvm::failure();
  if (pads.size() != 2 * axes.size())
    return e.fail("has " + Twine(pads.size()) + " pads for " +
                  Twine(axes.size()) + " dimensions");
  Exprs lows = e.numbers(SmallVector<int64_t>(shape.size(), 0));
  for (auto [i, axis] : llvm::enumerate(axes)) {
    AffineExpr low = pads[i], high = pads[i + axes.size()];
    for (AffineExpr amount : {low, high})
      if (auto known = graph::constantOf(amount);
          known && std::abs(*known) > maxDimension)
        return e.fail("a pad of " + Twine(*known) + " is absurdly large");
    if (failed(checkReach(e, *mode, shape[axis], low, high)))
      return llvm::failure();
    lows[axis] = low;
    dims[axis] = graph::simplify(shape[axis] + low + high);
  }
  return n.yield(e.pad(*mode, n.input(0), fill, lows, dims));
}

static llvm::LogicalResult padAttributes(Node &n, Emitter &e) {
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(n.input(0))));
  auto pads = n.integers("pads");
  return padBy(n, e, e.numbers(*pads), all,
               e.scalar(n.number("value"), elementOf(n.input(0))));
}

static llvm::LogicalResult pad(Node &n, Emitter &e) {
  auto pads = n.known(1);
  SmallVector<int64_t> axes =
      llvm::to_vector(llvm::seq<int64_t>(0, rankOf(n.input(0))));
  if (n.has(3)) {
    auto given = n.constants(3);
    if (failed(given))
      return llvm::failure();
    auto checked = n.axes(*given, rankOf(n.input(0)));
    if (failed(checked))
      return llvm::failure();
    axes = *checked;
  }
  if (failed(pads))
    return llvm::failure();
  Value fill = n.has(2) ? e.reshape(n.input(2), {})
                        : e.scalar(int64_t(0), elementOf(n.input(0)));
  return padBy(n, e, *pads, axes, fill);
}

llvm::ArrayRef<Row> charonia::frontend::onnx::padRows() {
  static const Row rows[] = {
      {"", "Pad", 2, 2, padAttributes},
      {"", "Pad", 11, 25, pad},
  };
  return rows;
}
