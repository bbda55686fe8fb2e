#include "frontends/common/Tensors.h"
#include "frontends/common/ShapeOption.h"
#include "llvm/Support/MathExtras.h"

using namespace charonia;
using namespace charonia::frontend;

/// Tensors of up to this many elements are constants of the IR.
constexpr int64_t maxConstantElements = 64;
/// Integer vectors of up to this many elements may be shapes.
constexpr int64_t maxShapeElements = 1024;

TensorData charonia::frontend::ownedTensor(mlir::RankedTensorType type,
                                           std::vector<char> bytes) {
  auto owner = std::make_shared<std::vector<char>>(std::move(bytes));
  return {type, llvm::ArrayRef<char>(*owner), owner};
}

mlir::RankedTensorType
charonia::frontend::denseType(mlir::Type element, llvm::ArrayRef<int64_t> dims,
                              int64_t &elements, int64_t &bytes,
                              Problem &problem) {
  elements = 1;
  bool overflows = dims.size() > 32;
  for (int64_t dim : dims) {
    if (dim < 0) {
      problem = {"has a negative dimension, " + std::to_string(dim),
                 "export the model again"};
      return {};
    }
    overflows |=
        llvm::MulOverflow(elements, dim, elements) || dim > maxDimension;
  }
  if (overflows ||
      llvm::MulOverflow(elements, graph::elementBytes(element), bytes)) {
    problem = {"has a shape that is absurdly large", "export the model again"};
    return {};
  }
  return mlir::RankedTensorType::get(dims, element);
}

TensorData charonia::frontend::normalizeBools(TensorData data) {
  if (!data.type.getElementType().isInteger(1) ||
      llvm::none_of(data.bytes, [](char c) { return c & ~1; }))
    return data;
  std::vector<char> normalized(data.bytes.begin(), data.bytes.end());
  for (char &c : normalized)
    c = c != 0;
  return ownedTensor(data.type, std::move(normalized));
}

mlir::Value charonia::frontend::materialize(const TensorData &data,
                                            llvm::StringRef name,
                                            Emitter &emitter) {
  int64_t elements = data.type.getNumElements();
  bool mayBeShape =
      data.type.getElementType().isIntOrIndex() && data.type.getRank() <= 1;
  if (elements <= maxConstantElements ||
      (mayBeShape && elements <= maxShapeElements)) {
    if (data.type.getElementType().isInteger(1)) {
      llvm::SmallVector<bool> bools;
      for (char c : data.bytes)
        bools.push_back(c);
      return emitter.constant(mlir::DenseElementsAttr::get(data.type, bools));
    }
    if (elements == 0)
      return emitter.constant(mlir::DenseElementsAttr::get(
          data.type, llvm::ArrayRef<mlir::Attribute>()));
    return emitter.constant(
        mlir::DenseElementsAttr::getFromRawBuffer(data.type, data.bytes));
  }
  auto *dialect = emitter.getContext()->getLoadedDialect<graph::GraphDialect>();
  std::string unique = dialect->getWeights().uniqueName(name);
  dialect->getWeights().add(unique,
                            graph::Weight{data.type, data.bytes, data.owner});
  return emitter.opTo<graph::WeightOp>(
      data.type, {},
      emitter.attr("name", emitter.getBuilder().getStringAttr(unique)));
}
