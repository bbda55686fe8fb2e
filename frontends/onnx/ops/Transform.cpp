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
  if (n.has(1)) {
    auto value = n.constantInteger(1);
    if (failed(value))
      return llvm::failure();
    how.length = *value;
  } else if (auto size = graph::constantOf(graph::getShape(x)[*axis])) {
    how.length = how.inverse && how.onesided ? 2 * (*size - 1) : *size;
  }
  if (how.inverse && how.length > 0)
    how.factor = 1.0 / double(how.length);
  return n.yield(buildFourier(x, how, e));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::transformRows() {
  static const Row rows[] = {
      {"", "DFT", 17, 20, dft},
  };
  return rows;
}
