// Sampling at coordinates that are data.
#include "frontends/common/builders/Sampling.h"
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using mlir::Value;

static llvm::LogicalResult gridSample(Node &n, Emitter &e) {
  Value x = n.input(0), grid = n.input(1);
  if (failed(n.needsRank(0, 3, 5)) ||
      failed(n.needsRank(1, rankOf(x), rankOf(x))))
    return llvm::failure();
  std::string text = n.text("mode", "linear");
  auto mode = graph::symbolizeResizeMode(
      text.rfind("bi", 0) == 0 ? text.substr(2) : text);
  std::string edge = n.text("padding_mode", "zeros");
  if (!mode || (edge != "zeros" && edge != "border" && edge != "reflection"))
    return e.fail("attributes 'mode' and 'padding_mode' may not be '" + text +
                  "' and '" + edge + "'");
  SamplePadding padding = edge == "zeros"    ? SamplePadding::zeros
                          : edge == "border" ? SamplePadding::border
                                             : SamplePadding::reflection;
  return n.yield(
      buildGridSample(x, grid, *mode, padding, n.flag("align_corners"), e));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::samplingRows() {
  static const Row rows[] = {
      {"", "GridSample", 16, 22, gridSample},
  };
  return rows;
}
