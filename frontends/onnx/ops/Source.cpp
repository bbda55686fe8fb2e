// Operators whose results follow from shapes and attributes: constants, sizes,
// ranges.
#include "frontends/common/builders/Sequence.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/Tensors.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

static llvm::LogicalResult shape(Node &n, Emitter &e) {
  Exprs dims = graph::getShape(n.input(0));
  int64_t rank = dims.size();
  auto bound = [&](int64_t value) {
    return std::clamp<int64_t>(value < 0 ? value + rank : value, 0, rank);
  };
  int64_t start = bound(n.integer("start", 0)),
          end = bound(n.integer("end", rank));
  int64_t count = std::max<int64_t>(end - start, 0);
  return n.yield(e.sizes(llvm::ArrayRef(dims).slice(start, count), count,
                         e.getBuilder().getI64Type()));
}

static llvm::LogicalResult size(Node &n, Emitter &e) {
  AffineExpr count = productOf(graph::getShape(n.input(0)), e.getContext());
  if (!count)
    return e.fail("the number of elements is absurdly large");
  return n.yield(e.sizes({count}, {}, e.getBuilder().getI64Type()));
}

/// The first element of a constant, as a scalar; 0 in f32 without one.
static llvm::FailureOr<Value> fillOf(Node &n, Emitter &e) {
  const ::onnx::AttributeProto *attribute = n.find("value");
  if (!attribute)
    return e.scalar(0.0, e.getBuilder().getF32Type());
  Problem problem;
  ExternalFiles none("", "");
  ::onnx::TensorProto copy = attribute->t();
  auto data = readTensor(copy, true, none, e.getContext(), problem);
  if (!data)
    return e.fail("attribute 'value' " + problem.what, problem.remedy);
  if (data->type.getNumElements() != 1)
    return e.fail("attribute 'value' has to hold one element");
  return e.reshape(materialize(*data, "value", e), {});
}

static llvm::LogicalResult constantOfShape(Node &n, Emitter &e) {
  auto dims = n.known(0);
  auto fill = fillOf(n, e);
  if (failed(dims) || failed(fill) || !*fill || failed(n.needsRank(0, 1, 1)))
    return llvm::failure();
  for (AffineExpr dim : *dims)
    if (auto known = graph::constantOf(dim); known && *known < 0)
      return e.fail("a size may not be " + Twine(*known));
  auto type = e.type(*dims, elementOf(*fill));
  auto element = e.constantOf(*fill);
  // A splat takes no room however large it is.
  if (type && type.hasStaticShape() && element)
    return n.yield(e.constant(mlir::DenseElementsAttr::get(
        type, element.getSplatValue<mlir::Attribute>())));
  return n.yield(e.broadcast(*fill, *dims));
}

static llvm::LogicalResult range(Node &n, Emitter &e) {
  return n.yield(buildRange(n, false, e));
}

static llvm::LogicalResult eyeLike(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 2, 2)))
    return llvm::failure();
  mlir::Type element = elementOf(n.input(0)), i64 = e.getBuilder().getI64Type();
  if (n.hasAttribute("dtype"))
    element = elementType(int(n.integer("dtype")), e.getContext());
  if (!element)
    return e.fail("attribute 'dtype' names a type that is not supported",
                  elementTypeRemedy);
  Exprs shape = graph::getShape(n.input(0));
  Value row = e.iota({shape[0], e.number(1)}, 0, i64),
        column = e.iota({e.number(1), shape[1]}, 1, i64);
  Value diagonal = e.add(row, e.scalar(n.integer("k"), i64));
  return n.yield(
      e.cast(e.compare(graph::Predicate::eq, column, diagonal), element));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::sourceRows() {
  static const Row rows[] = {
      {"", "Shape", 1, 25, shape},
      {"", "Size", 1, 25, size},
      {"", "ConstantOfShape", 9, 25, constantOfShape},
      {"", "Range", 11, 27, range},
      {"", "EyeLike", 9, 22, eyeLike},
      // These are imported by the graph importer itself.
      {"", "Constant", 1, 25, nullptr},
      {"", "If", 1, 25, nullptr},
      {"", "Loop", 1, 25, nullptr},
      {"", "Scan", 9, 25, nullptr},
      {"", "SequenceConstruct", 11, 11, nullptr},
      {"", "SequenceEmpty", 11, 11, nullptr},
      {"", "SequenceInsert", 11, 11, nullptr},
      {"", "SequenceErase", 11, 11, nullptr},
      {"", "SequenceAt", 11, 11, nullptr},
      {"", "SequenceLength", 11, 11, nullptr},
      {"", "SplitToSequence", 11, 24, nullptr},
      {"", "ConcatFromSequence", 11, 11, nullptr},
      {"", "Optional", 15, 28, nullptr},
      {"", "OptionalGetElement", 15, 28, nullptr},
      {"", "OptionalHasElement", 15, 28, nullptr},
  };
  return rows;
}
