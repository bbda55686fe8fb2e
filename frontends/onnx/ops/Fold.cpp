// Operators over windows that overlap: their sum, and transforms of each.
#include "frontends/common/builders/Fold.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/ops/Window.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::Twine;
using mlir::Value;

static llvm::LogicalResult columnsToImage(Node &n, Emitter &e) {
  auto image = n.known(1);
  auto block = n.constants(2);
  if (failed(image) || failed(block) || failed(n.needsRank(0, 3, 3)))
    return llvm::failure();
  size_t spatial = image->size();
  if (spatial < 1 || block->size() != spatial)
    return e.fail("an image of " + Twine(spatial) + " dimensions has no " +
                  "windows of " + Twine(block->size()));
  auto strides = readWindowList(n, e, "strides", spatial, 1, 1);
  auto dilations = readWindowList(n, e, "dilations", spatial, 1, 1);
  auto pads = readWindowList(n, e, "pads", 2 * spatial, 0, 0);
  if (failed(strides) || failed(dilations) || failed(pads))
    return llvm::failure();
  return n.yield(
      buildFold(n.input(0), *image, {*block, *strides, *dilations, *pads}, e));
}

static llvm::LogicalResult stft(Node &n, Emitter &e) {
  auto step = n.constantInteger(1);
  if (failed(step) || failed(n.needsRank(0, 2, 3)))
    return llvm::failure();
  Value signal = n.input(0), window = n.input(2);
  int64_t length;
  if (n.has(3)) {
    auto given = n.constantInteger(3);
    if (failed(given))
      return llvm::failure();
    length = *given;
  } else if (window && rankOf(window) == 1 &&
             graph::constantOf(graph::getShape(window)[0])) {
    length = *graph::constantOf(graph::getShape(window)[0]);
  } else {
    return e.fail("needs inputs 'frame_length' or 'window', which say how long "
                  "a transform is");
  }
  if (window &&
      (rankOf(window) != 1 || graph::getShape(window)[0] != e.number(length)))
    return e.fail("a window of " + e.describe(window.getType()) +
                  " does not fit frames of " + Twine(length));
  // [N, elements, parts] to [N, parts, elements].
  Exprs dims = graph::getShape(signal);
  if (dims.size() == 2)
    signal = e.reshape(signal, {dims[0], e.number(1), dims[1]});
  else
    signal = e.transpose(signal, {0, 2, 1});
  bool onesided = n.integer("onesided", 1) != 0;
  if (onesided && dims.size() == 3 && dims[2] != e.number(1))
    return e.fail("half of the frequencies tell nothing of a complex signal",
                  "set attribute 'onesided' to 0");
  return n.yield(buildStft(signal, window, *step, length, onesided, e));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::foldRows() {
  static const Row rows[] = {
      {"", "Col2Im", 18, 18, columnsToImage},
      {"", "STFT", 17, 17, stft},
  };
  return rows;
}
