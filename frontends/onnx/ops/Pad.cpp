// Padding.
#include "frontends/common/builders/Pad.h"
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using llvm::Twine;
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

static llvm::LogicalResult padBy(Node &n, Emitter &e, const Exprs &pads,
                                 llvm::ArrayRef<int64_t> axes, Value fill) {
  auto mode = readMode(n, e);
  if (failed(mode))
    return llvm::failure();
  if (pads.size() != 2 * axes.size())
    return e.fail("has " + Twine(pads.size()) + " pads for " +
                  Twine(axes.size()) + " dimensions");
  auto all = llvm::ArrayRef(pads);
  return n.yield(buildPad(*mode, n.input(0), fill, all.take_front(axes.size()),
                          all.drop_front(axes.size()), axes, e));
}

static llvm::LogicalResult padAttributes(Node &n, Emitter &e) {
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(n.input(0))));
  auto pads = n.integers(n.sinceVersion() < 2 ? "paddings" : "pads");
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
      {"", "Pad", 1, 2, padAttributes},
      {"", "Pad", 11, 25, pad},
  };
  return rows;
}
