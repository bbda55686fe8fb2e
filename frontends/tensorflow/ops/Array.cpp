// TensorArray, the lists of TF1: the last operand, the flow, says what an array
// holds, so it is the list.
#include "frontends/tensorflow/Remedy.h"
#include "frontends/tensorflow/ops/List.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using llvm::Twine;

static const TensorList *arrayOf(Node &n, Emitter &e, unsigned count) {
  if (n.numInputs() != count || !n.item(count - 1).list) {
    e.fail("is not given an array of tensors", "export the model again");
    return nullptr;
  }
  return n.item(count - 1).list.get();
}

static LogicalResult newArray(Node &n, Emitter &e) {
  if (mlir::AffineExpr open =
          n.numInputs() == 1 ? openCountOf(n, e, 0) : mlir::AffineExpr())
    return llvm::success(succeeded(yieldOpenList(n, {open, {}, {}, {}, {}})) &&
                         succeeded(yieldOpenList(n, {open, {}, {}, {}, {}})));
  auto count =
      n.numInputs() == 1 ? countOf(n, e, 0) : llvm::FailureOr<int64_t>(0);
  if (failed(count))
    return llvm::failure();
  if (*count < 0 || *count > maxElements)
    return e.fail("reserves an array of " + Twine(*count) + " tensors; up to " +
                      Twine(maxElements) + " are supported",
                  "fix the length of the sequence with --shape");
  return llvm::success(succeeded(yieldList(n, TensorList(*count))) &&
                       succeeded(yieldList(n, TensorList(*count))));
}

static LogicalResult readArray(Node &n, Emitter &e) {
  if (const OpenList *open = openListOf(n, 2); open && n.has(1))
    return getOpenItem(n, *open, e);
  const TensorList *list = arrayOf(n, e, 3);
  if (!list)
    return llvm::failure();
  auto position = positionOf(n, e, *list);
  if (failed(position))
    return llvm::failure();
  if (!(*list)[*position])
    return e.fail("reads element " + Twine(*position) +
                  " of an array before it is set");
  return n.yield((*list)[*position]);
}

static LogicalResult writeArray(Node &n, Emitter &e) {
  if (openListOf(n, 3) && n.has(1) && n.has(2))
    return setOpenItem(n, 3, e);
  const TensorList *list = arrayOf(n, e, 4);
  if (!list)
    return llvm::failure();
  auto position = n.constantInteger(1);
  if (failed(position))
    return llvm::failure();
  // An array may grow.
  if (*position < 0 || *position >= maxElements || !n.input(2))
    return e.fail("sets element " + Twine(*position) + " of an array of " +
                  Twine(list->size()));
  return yieldList(n, list->with(*position, n.input(2)));
}

static LogicalResult scatterArray(Node &n, Emitter &e) {
  if (const OpenList *open = openListOf(n, 3); open && n.has(2))
    return scatterOpen(n, *open, 2, 1, e);
  const TensorList *list = arrayOf(n, e, 4);
  return list ? scatterRows(n, e, *list, 2, 1) : llvm::failure();
}
static LogicalResult gatherArray(Node &n, Emitter &e) {
  if (const OpenList *open = openListOf(n, 2); open && n.has(1))
    return gatherOpen(n, *open, std::nullopt, e);
  const TensorList *list = arrayOf(n, e, 3);
  return list ? gatherElements(n, e, *list) : llvm::failure();
}

static LogicalResult arraySize(Node &n, Emitter &e) {
  if (const OpenList *open = openListOf(n, 1))
    return yieldLength(n, *open, e);
  const TensorList *list = arrayOf(n, e, 2);
  return list ? n.yield(e.scalar(list->size(), e.getBuilder().getI32Type()))
              : llvm::failure();
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::arrayRows() {
  static const Row rows[] = {
      {"TensorArrayV3", newArray, "handle flow"},
      {"TensorArrayReadV3", readArray},
      {"TensorArrayWriteV3", writeArray},
      {"TensorArrayScatterV3", scatterArray},
      {"TensorArrayGatherV3", gatherArray},
      {"TensorArraySizeV3", arraySize},
  };
  return rows;
}
