#include "graph/passes/Stored.h"
#include "graph/ir/StoredWeight.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace mlir;
using namespace charonia::graph;

std::optional<Stored> charonia::graph::storedIn(Operation *op) {
  Stored stored;
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto value = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!value || value.isSplat())
      return std::nullopt;
    stored.type = cast<RankedTensorType>(value.getType());
    if (value.getElementType().isInteger(1))
      llvm::append_range(stored.owned, value.getValues<bool>());
    else
      stored.kept = value.getRawData();
  } else if (auto weight = dyn_cast<WeightOp>(op)) {
    const Weight *found = storedWeight(weight);
    if (!found)
      return std::nullopt;
    stored.type = found->type;
    stored.kept = found->bytes;
  }
  return stored.type ? std::optional(std::move(stored)) : std::nullopt;
}

std::optional<Progression>
charonia::graph::progressionOf(const Stored &stored) {
  size_t width = stored.width();
  auto at = [&](int64_t i) {
    uint64_t word = 0;
    std::memcpy(&word, stored.element(i).data(), width);
    return llvm::SignExtend64(word, 8 * width);
  };
  constexpr int64_t most = int64_t(1) << 30;
  auto isSmall = [](int64_t n) { return -most <= n && n <= most; };
  ArrayRef<int64_t> shape = stored.type.getShape();
  Progression found{at(0), SmallVector<int64_t>(shape.size())};
  if (!isSmall(found.base))
    return std::nullopt;
  int64_t run = 1, reached = std::abs(found.base);
  for (size_t d = shape.size(); d-- > 0; run *= shape[d]) {
    if (shape[d] == 1)
      continue;
    if (!isSmall(at(run)))
      return std::nullopt;
    found.steps[d] = at(run) - found.base;
    reached += std::abs(found.steps[d]) * (shape[d] - 1);
    if (reached > most)
      return std::nullopt;
  }
  SmallVector<int64_t> place(shape.size());
  int64_t wanted = found.base;
  for (int64_t i = 0; i < stored.count(); ++i) {
    if (at(i) != wanted)
      return std::nullopt;
    for (size_t d = shape.size(); d-- > 0;) {
      wanted += found.steps[d];
      if (++place[d] < shape[d])
        break;
      wanted -= found.steps[d] * shape[d];
      place[d] = 0;
    }
  }
  return found;
}
