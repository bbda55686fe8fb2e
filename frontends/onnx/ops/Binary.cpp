// Elementwise operators of two or more operands.
#include "frontends/onnx/Registry.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using mlir::Value;

/// The second operand. Until opset 6 its dimensions are those of the first from
/// attribute `axis` on, or the last ones.
static Value secondOperand(Node &n, Emitter &e) {
  Value a = n.input(0), b = n.input(1);
  if (n.sinceVersion() >= 7)
    return b;
  int64_t rank = rankOf(a), own = rankOf(b);
  if (n.hasAttribute("axis") && own > 0) {
    auto axis = n.axis("axis", rank);
    if (failed(axis))
      return {};
    if (*axis + own > rank)
      return e.fail(e.describe(b.getType()) + " from axis " +
                    llvm::Twine(*axis) + " on does not fit into " +
                    e.describe(a.getType()));
    Exprs dims = graph::getShape(b);
    dims.append(rank - own - *axis, e.number(1));
    b = e.reshape(b, dims);
  }
  auto joined = e.join(graph::getShape(a), graph::getShape(b));
  if (!joined || *joined != graph::getShape(a))
    return e.fail(e.describe(n.input(1).getType()) +
                      " does not broadcast to the first operand, " +
                      e.describe(a.getType()),
                  "operators of opset 6 and older broadcast the second operand "
                  "only: convert the model to a newer opset");
  return b;
}

template <typename Op> static llvm::LogicalResult binary(Node &n, Emitter &e) {
  return n.yield(e.op<Op>({n.input(0), secondOperand(n, e)}));
}

template <graph::Predicate predicate>
static llvm::LogicalResult compare(Node &n, Emitter &e) {
  return n.yield(e.compare(predicate, n.input(0), secondOperand(n, e)));
}

/// Any number of operands, combined from the left.
template <typename Op> static Value fold(Node &n, Emitter &e) {
  Value result = n.input(0);
  for (unsigned i = 1; i < n.numInputs(); ++i)
    result = e.op<Op>({result, n.input(i)});
  return result;
}
template <typename Op>
static llvm::LogicalResult variadic(Node &n, Emitter &e) {
  return n.yield(fold<Op>(n, e));
}
static llvm::LogicalResult mean(Node &n, Emitter &e) {
  Value sum = fold<graph::AddOp>(n, e);
  return n.yield(e.div(sum, e.scalar(static_cast<int64_t>(n.numInputs()),
                                     elementOf(n.input(0)))));
}

/// The one number that a constant holds.
static std::optional<double> onlyNumber(mlir::DenseElementsAttr constant) {
  if (!constant || constant.getNumElements() != 1)
    return std::nullopt;
  mlir::Type element = constant.getElementType();
  if (llvm::isa<mlir::FloatType>(element))
    return constant.getValues<mlir::FloatAttr>()[0].getValueAsDouble();
  const llvm::APInt &value = *constant.value_begin<llvm::APInt>();
  return element.isUnsignedInteger()
             ? static_cast<double>(value.getZExtValue())
             : static_cast<double>(value.getSExtValue());
}

/// Small powers of integers, as sizes are computed by, are products.
static llvm::LogicalResult pow(Node &n, Emitter &e) {
  constexpr double most = 8;
  auto exponent = onlyNumber(e.constantOf(n.input(1)));
  mlir::Type element = elementOf(n.input(0));
  if (!exponent || isFloat(n.input(0)) ||
      rankOf(n.input(1)) > rankOf(n.input(0)))
    return binary<graph::PowOp>(n, e);
  if (*exponent == std::floor(*exponent) && *exponent >= 1 &&
      *exponent <= most) {
    Value product = n.input(0);
    for (int i = 1; i < *exponent; ++i)
      product = e.mul(product, n.input(0));
    return n.yield(product);
  }
  // A root of a size that is known.
  auto base = onlyNumber(e.constantOf(n.input(0)));
  double value = base ? std::pow(*base, *exponent) : NAN;
  if (std::abs(value) < 0x1p31)
    return n.yield(e.reshape(e.scalar(static_cast<int64_t>(value), element),
                             graph::getShape(n.input(0))));
  return binary<graph::PowOp>(n, e);
}

static llvm::LogicalResult mod(Node &n, Emitter &e) {
  return n.flag("fmod") ? binary<graph::FmodOp>(n, e)
                        : binary<graph::ModOp>(n, e);
}

/// ONNX says what a shift by the width or more, or by less than zero, gives;
/// the graph's shifts leave it open.
static llvm::LogicalResult bitShift(Node &n, Emitter &e) {
  Value x = n.input(0), amount = n.input(1);
  mlir::Type element = elementOf(x);
  int64_t width = element.getIntOrFloatBitWidth();
  std::string direction = n.text("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    return e.fail("attribute 'direction' has to be LEFT or RIGHT, not '" +
                  direction + "'");
  Value zero = e.scalar(int64_t(0), element);
  Value inside =
      e.compare(graph::Predicate::lt, amount, e.scalar(width, element));
  if (!element.isUnsignedInteger())
    inside = e.op<graph::AndOp>(
        {inside, e.compare(graph::Predicate::ge, amount, zero)});
  if (direction == "LEFT")
    return n.yield(e.select(
        inside, e.op<graph::ShlOp>({x, e.select(inside, amount, zero)}), zero));
  // Bits shifted out entirely leave the sign alone.
  if (!element.isUnsignedInteger())
    return n.yield(e.op<graph::ShrOp>(
        {x, e.select(inside, amount, e.scalar(width - 1, element))}));
  return n.yield(e.select(
      inside, e.op<graph::ShrOp>({x, e.select(inside, amount, zero)}), zero));
}

static llvm::LogicalResult where(Node &n, Emitter &e) {
  return n.yield(e.select(n.input(0), n.input(1), n.input(2)));
}

static llvm::LogicalResult clipAttributes(Node &n, Emitter &e) {
  Value x = n.input(0);
  mlir::Type element = elementOf(x);
  if (n.hasAttribute("min"))
    x = e.max(x, e.scalar(n.number("min"), element));
  if (n.hasAttribute("max"))
    x = e.min(x, e.scalar(n.number("max"), element));
  return n.yield(x);
}
static llvm::LogicalResult clip(Node &n, Emitter &e) {
  Value x = n.input(0);
  // A bound is a scalar; some exporters write one element for it.
  auto bound = [&](unsigned i) -> Value {
    for (mlir::AffineExpr size : graph::getShape(n.input(i)))
      if (size != e.number(1))
        return e.fail("a bound has to be a scalar, not " +
                      e.describe(n.input(i).getType()));
    return e.reshape(n.input(i), {});
  };
  if (n.has(1))
    x = e.max(x, bound(1));
  if (n.has(2))
    x = e.min(x, bound(2));
  return n.yield(x);
}

llvm::ArrayRef<Row> charonia::frontend::onnx::binaryRows() {
  using graph::Predicate;
  static const Row rows[] = {
      {"", "Add", 1, 14, binary<graph::AddOp>},
      {"", "Sub", 1, 14, binary<graph::SubOp>},
      {"", "Mul", 1, 14, binary<graph::MulOp>},
      {"", "Div", 1, 14, binary<graph::DivOp>},
      {"", "Pow", 1, 15, pow},
      {"", "Mod", 10, 28, mod},
      {"", "And", 1, 7, binary<graph::AndOp>},
      {"", "Or", 1, 7, binary<graph::OrOp>},
      {"", "Xor", 1, 7, binary<graph::XorOp>},
      {"", "BitwiseAnd", 18, 18, binary<graph::AndOp>},
      {"", "BitwiseOr", 18, 18, binary<graph::OrOp>},
      {"", "BitwiseXor", 18, 18, binary<graph::XorOp>},
      {"", "BitShift", 11, 28, bitShift},
      {"", "Equal", 1, 19, compare<Predicate::eq>},
      {"", "Less", 1, 13, compare<Predicate::lt>},
      {"", "LessOrEqual", 12, 16, compare<Predicate::le>},
      {"", "Greater", 1, 13, compare<Predicate::gt>},
      {"", "GreaterOrEqual", 12, 16, compare<Predicate::ge>},
      {"", "Max", 1, 13, variadic<graph::MaxOp>},
      {"", "Min", 1, 13, variadic<graph::MinOp>},
      {"", "Sum", 1, 13, variadic<graph::AddOp>},
      {"", "Mean", 1, 13, mean},
      {"", "Where", 9, 16, where},
      {"", "Clip", 1, 6, clipAttributes},
      {"", "Clip", 11, 13, clip},
  };
  return rows;
}
