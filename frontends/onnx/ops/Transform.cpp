// Discrete Fourier transforms.
#include "frontends/common/builders/Fourier.h"
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using mlir::Value;

static llvm::LogicalResult dft(Node &n, Emitter &e) {
  Value x = n.input(0);
  int64_t rank = rankOf(x);
  if (failed(n.needsRank(0, 2, 32)))
    return llvm::failure();
  int64_t given = n.sinceVersion() < 20 ? n.integer("axis", 1) : -2;
  if (n.has(2)) {
    auto value = n.constantInteger(2);
    if (failed(value))
      return llvm::failure();
    given = *value;
  }
  auto axis = n.axis(given, rank);
  if (failed(axis))
    return llvm::failure();
  Fourier how;
  how.axis = *axis;
  how.inverse = n.flag("inverse");
  how.onesided = n.flag("onesided");
  how.norm = how.inverse ? 1 : 0;
  how.length = graph::getShape(x)[*axis];
  if (n.has(1)) {
    auto length = n.known(1);
    if (failed(length))
      return llvm::failure();
    if (length->size() != 1)
      return e.fail("takes one length");
    how.length = length->front();
  } else if (how.inverse && how.onesided) {
    how.length = graph::simplify((how.length - 1) * 2);
  }
  return n.yield(buildFourier(x, how, e));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::transformRows() {
  static const Row rows[] = {
      {"", "DFT", 17, 20, dft},
  };
  return rows;
}
