#include "frontends/onnx/ops/Window.h"
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;

llvm::FailureOr<SmallVector<int64_t>>
charonia::frontend::onnx::readWindowList(Node &n, Emitter &e,
                                         llvm::StringRef name, size_t count,
                                         int64_t low, int64_t otherwise) {
  auto values = n.integers(name);
  if (!values)
    return SmallVector<int64_t>(count, otherwise);
  if (values->size() != count)
    return e.fail("attribute '" + name + "' has " + Twine(values->size()) +
                      " entries, but needs " + Twine(count),
                  "export the model again");
  for (int64_t value : *values)
    if (value < low || value > maxWindow)
      return e.fail("attribute '" + name + "' may not hold " + Twine(value) +
                        ", but " + Twine(low) + ".." + Twine(maxWindow),
                    "export the model again");
  return *values;
}

llvm::FailureOr<Window>
charonia::frontend::onnx::readWindow(Node &n, Emitter &e,
                                     std::optional<SmallVector<int64_t>> kernel,
                                     double fill, mlir::Value input) {
  if (failed(n.needsRank(0, 3, 5)))
    return llvm::failure();
  Window w;
  w.input = input ? input : n.input(0);
  size_t spatial = rankOf(w.input) - 2;
  auto given = n.integers("kernel_shape");
  if (given && !given->empty()) {
    if (kernel && *kernel != *given)
      return e.fail(
          "attribute 'kernel_shape' contradicts the shape of the filter, " +
          e.describe(e.numbers(*kernel)));
    kernel = given;
  }
  if (!kernel || kernel->size() != spatial)
    return e.fail("needs a kernel of " + Twine(spatial) + " dimensions");
  for (int64_t size : *kernel)
    if (size < 1 || size > maxWindow)
      return e.fail("a kernel cannot have a size of " + Twine(size));
  w.kernel = *kernel;
  auto strides = readWindowList(n, e, "strides", spatial, 1, 1);
  auto dilations = readWindowList(n, e, "dilations", spatial, 1, 1);
  auto pads = readWindowList(n, e, "pads", 2 * spatial, 0, 0);
  if (failed(strides) || failed(dilations) || failed(pads))
    return llvm::failure();
  w.strides = *strides;
  w.dilations = *dilations;
  w.pads = *pads;
  w.ceilMode = n.flag("ceil_mode");
  for (size_t i = 0; i < spatial; ++i)
    if ((w.kernel[i] - 1) * w.dilations[i] > maxWindow)
      return e.fail("the dilated kernel is absurdly large");
  std::string autoPad = n.text("auto_pad", "NOTSET");
  if (autoPad == "VALID") {
    // Without padding results may be rounded up all the same: the text's
    // formula says no, but ONNX's shape inference and onnxruntime do.
    w.pads.assign(2 * spatial, 0);
  } else if (autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER") {
    // The sizes of the result are rounded up already.
    w.ceilMode = false;
    if (failed(padSame(w, autoPad == "SAME_UPPER", fill, e)))
      return llvm::failure();
  } else if (autoPad != "NOTSET" && !autoPad.empty()) {
    return e.fail("attribute 'auto_pad' may not be '" + autoPad + "'");
  }
  if (failed(fitWindow(w, e)))
    return llvm::failure();
  return w;
}
