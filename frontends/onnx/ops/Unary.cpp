// Elementwise operators of one operand, casts and tests.
#include "frontends/common/Diagnostic.h"
#include "frontends/common/builders/Float8.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/Schema.h"
#include "frontends/onnx/Tensors.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using mlir::Value;

template <typename Op> static llvm::LogicalResult unary(Node &n, Emitter &e) {
  return n.yield(e.op<Op>({n.input(0)}));
}

/// The element type that attribute `to` names; null after an error.
static mlir::Type targetType(Node &n, Emitter &e) {
  int64_t dataType = n.integer("to");
  // Until opset 5 it was a name.
  if (n.find("to")->type() == ::onnx::AttributeProto::STRING) {
    ::onnx::TensorProto::DataType named;
    std::string name = n.text("to");
    if (!::onnx::TensorProto::DataType_Parse(llvm::StringRef(name).upper(),
                                             &named)) {
      (void)e.fail("attribute 'to' may not be '" + printable(name) + "'",
                   elementTypeRemedy);
      return {};
    }
    dataType = named;
  }
  mlir::Type element;
  if (dataType >= 0 && dataType <= std::numeric_limits<int>::max())
    element = elementType(static_cast<int>(dataType), e.getContext());
  if (!element)
    (void)e.fail("casts to " + dataTypeName(static_cast<int>(dataType)) +
                     " are not supported",
                 elementTypeRemedy);
  return element;
}
/// The operand in another type, as attribute `saturate` says where that is one
/// of 8 bits.
static Value converted(Node &n, Emitter &e, mlir::Type element) {
  return n.integer("saturate", 1) ? buildSaturated(n.input(0), element, e)
                                  : e.cast(n.input(0), element);
}
static llvm::LogicalResult cast(Node &n, Emitter &e) {
  mlir::Type element = targetType(n, e);
  return llvm::success(element && succeeded(n.yield(converted(n, e, element))));
}
static llvm::LogicalResult bitCast(Node &n, Emitter &e) {
  mlir::Type element = targetType(n, e);
  // In ONNX a truth value is a byte, 0 or 1.
  auto byte =
      mlir::IntegerType::get(e.getContext(), 8, mlir::IntegerType::Unsigned);
  Value x = n.input(0);
  if (elementOf(x).isInteger(1))
    x = e.cast(x, byte);
  bool toTruth = element && element.isInteger(1);
  if (!x || !element)
    return llvm::failure();
  Value bits = e.op<graph::BitcastOp>(
      {x}, e.attr("to", mlir::TypeAttr::get(toTruth ? byte : element)));
  return n.yield(toTruth ? e.cast(bits, element) : bits);
}
static llvm::LogicalResult castLike(Node &n, Emitter &e) {
  return n.yield(converted(n, e, elementOf(n.input(1))));
}

static llvm::LogicalResult identity(Node &n, Emitter &e) {
  return n.yield(n.input(0));
}

static llvm::LogicalResult isInf(Node &n, Emitter &e) {
  return n.yield(e.op<graph::IsInfOp>(
      {n.input(0)}, {e.attr("positive", n.flag("detect_positive")),
                     e.attr("negative", n.flag("detect_negative"))}));
}

/// Inference: the identity; the mask keeps everything.
static llvm::LogicalResult dropout(Node &n, Emitter &e) {
  // Until opset 6 an attribute said that it is inference.
  if (n.sinceVersion() < 7 && !n.flag("is_test") && n.number("ratio") != 0)
    return e.fail("is_test = 0, training mode, is not supported",
                  "export the model for inference");
  if (n.has(2)) {
    auto training = e.constantOf(n.input(2));
    bool trains = !training || !training.isSplat() ||
                  training.getSplatValue<mlir::APInt>() != 0;
    // Without a ratio it is a half.
    if (trains && !(n.has(1) && succeeded(n.constantNumber(1)) &&
                    *n.constantNumber(1) == 0))
      return e.fail("training mode is not supported",
                    "export the model for inference");
  }
  if (!n.wants(1))
    return n.yield(n.input(0));
  // Until opset 9 the mask had the data's type.
  mlir::Type element = n.sinceVersion() < 10 ? elementOf(n.input(0))
                                             : e.getBuilder().getI1Type();
  Value mask =
      e.broadcast(e.scalar(int64_t(1), element), graph::getShape(n.input(0)));
  return n.yield({n.input(0), mask});
}

llvm::ArrayRef<Row> charonia::frontend::onnx::unaryRows() {
  static const Row rows[] = {
      {"", "Neg", 1, 13, unary<graph::NegOp>},
      {"", "Abs", 1, 13, unary<graph::AbsOp>},
      {"", "Sign", 9, 13, unary<graph::SignOp>},
      {"", "Not", 1, 1, unary<graph::NotOp>},
      {"", "BitwiseNot", 18, 18, unary<graph::NotOp>},
      {"", "Exp", 1, 13, unary<graph::ExpOp>},
      {"", "Log", 1, 13, unary<graph::LogOp>},
      {"", "Sqrt", 1, 13, unary<graph::SqrtOp>},
      {"", "Reciprocal", 1, 13, unary<graph::ReciprocalOp>},
      {"", "Erf", 9, 13, unary<graph::ErfOp>},
      {"", "Tanh", 1, 13, unary<graph::TanhOp>},
      {"", "Sigmoid", 1, 13, unary<graph::SigmoidOp>},
      {"", "Sin", 7, 22, unary<graph::SinOp>},
      {"", "Cos", 7, 22, unary<graph::CosOp>},
      {"", "Tan", 7, 22, unary<graph::TanOp>},
      {"", "Asin", 7, 22, unary<graph::AsinOp>},
      {"", "Acos", 7, 22, unary<graph::AcosOp>},
      {"", "Atan", 7, 22, unary<graph::AtanOp>},
      {"", "Sinh", 9, 22, unary<graph::SinhOp>},
      {"", "Cosh", 9, 22, unary<graph::CoshOp>},
      {"", "Asinh", 9, 22, unary<graph::AsinhOp>},
      {"", "Acosh", 9, 22, unary<graph::AcoshOp>},
      {"", "Atanh", 9, 22, unary<graph::AtanhOp>},
      {"", "Floor", 1, 13, unary<graph::FloorOp>},
      {"", "Ceil", 1, 13, unary<graph::CeilOp>},
      {"", "Round", 11, 22, unary<graph::RoundOp>},
      {"", "IsNaN", 9, 20, unary<graph::IsNanOp>},
      {"", "IsInf", 10, 20, isInf},
      {"", "Cast", 1, 28, cast},
      {"", "CastLike", 15, 25, castLike},
      {"", "BitCast", 26, 26, bitCast},
      {"", "Identity", 1, 25, identity},
      {"", "Dropout", 1, 22, dropout},
  };
  return rows;
}
