#include "graph/ir/Elements.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

void charonia::graph::forEachElement(
    Type type, llvm::function_ref<void(ArrayRef<int64_t>)> visit) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
  if (llvm::is_contained(shape, 0))
    return;
  SmallVector<int64_t> at(shape.size(), 0);
  while (true) {
    visit(at);
    size_t d = shape.size();
    while (d > 0 && ++at[d - 1] == shape[d - 1])
      at[--d] = 0;
    if (d == 0)
      return;
  }
}

std::optional<int64_t> charonia::graph::linearize(ArrayRef<int64_t> coordinates,
                                                  ArrayRef<int64_t> shape) {
  int64_t linear = 0;
  for (auto [c, size] : llvm::zip_equal(coordinates, shape)) {
    if (c < 0 || c >= size)
      return std::nullopt;
    linear = linear * size + c;
  }
  return linear;
}
