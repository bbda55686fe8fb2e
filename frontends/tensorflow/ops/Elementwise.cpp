// Elementwise operators.
#include "frontends/common/builders/Activation.h"
#include "frontends/common/builders/Gamma.h"
#include "frontends/common/builders/Special.h"
#include "frontends/tensorflow/Node.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using graph::Predicate;
using llvm::LogicalResult;
using mlir::Value;

// One operand.

/// Builds a result of one tensor.
using Unary = Value (*)(Value, Emitter &);
template <Unary build> static LogicalResult unary(Node &n, Emitter &e) {
  return failed(n.needsTensors(1, 1)) ? llvm::failure()
                                      : n.yield(build(n.input(0), e));
}
template <typename Op> static Value apply(Value x, Emitter &e) {
  return e.op<Op>({x});
}
static Value square(Value x, Emitter &e) { return e.mul(x, x); }
static Value relu6(Value x, Emitter &e) {
  return e.min(buildRelu(x, e), e.scalar(int64_t(6), elementOf(x)));
}
static Value elu(Value x, Emitter &e) { return buildElu(x, 1, e); }
static Value selu(Value x, Emitter &e) {
  constexpr double alpha = 1.6732632423543772, scale = 1.0507009873554805;
  return buildSelu(x, alpha, scale, e);
}
static Value isInf(Value x, Emitter &e) {
  return e.op<graph::IsInfOp>(
      {x}, {e.attr("positive", true), e.attr("negative", true)});
}
static Value isFinite(Value x, Emitter &e) {
  Value out = e.op<graph::OrOp>({isInf(x, e), e.op<graph::IsNanOp>({x})});
  return e.op<graph::NotOp>({out});
}
/// Integers are their own; the graph rounds floats alone.
template <typename Op> static Value rounded(Value x, Emitter &e) {
  return isFloat(x) ? e.op<Op>({x}) : x;
}

/// What `build` makes of the operand in double.
template <Unary build> static Value inDouble(Value x, Emitter &e) {
  return e.cast(build(e.cast(x, e.getBuilder().getF64Type()), e), elementOf(x));
}
/// The place below which a normal distribution has a part of x.
static Value normalQuantile(Value x, Emitter &e) {
  mlir::Type f64 = elementOf(x);
  Value y = e.sub(e.mul(x, e.scalar(2.0, f64)), e.scalar(1.0, f64));
  constexpr double root = 1.4142135623730951;
  return e.mul(buildInverseErf(y, e), e.scalar(root, f64));
}
template <int order, bool scaled> static Value besselI(Value x, Emitter &e) {
  return buildBesselI(x, order, scaled, e);
}

static LogicalResult leakyRelu(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 1)))
    return llvm::failure();
  return n.yield(buildLeakyRelu(n.input(0), n.number("alpha", 0.2f), e));
}

/// Of complex numbers the real part; real ones may become complex.
static LogicalResult cast(Node &n, Emitter &e) {
  constexpr int complex64 = 8, complex128 = 18;
  std::shared_ptr<const Complex> z =
      n.numInputs() == 1 ? n.item(0).complex : nullptr;
  if (z)
    n.setInput(0, z->real);
  if (n.numInputs() != 1 || !n.input(0))
    return n.needsTensors(1, 1);
  auto *to = n.find("DstT");
  if (int type = to ? to->type() : 0; type == complex64 || type == complex128) {
    mlir::Builder &b = e.getBuilder();
    mlir::Type part =
        type == complex64 ? mlir::Type(b.getF32Type()) : b.getF64Type();
    Value real = e.cast(n.input(0), part);
    if (z && z->imaginary)
      return n.yieldComplex(Complex{real, e.cast(z->imaginary, part)});
    return n.yieldComplex(
        spreadComplex({real, {}}, graph::getShape(n.input(0)), e));
  }
  mlir::Type element = n.type("DstT", 1);
  return element ? n.yield(e.cast(n.input(0), element)) : llvm::failure();
}

static LogicalResult bitcast(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 1)))
    return llvm::failure();
  mlir::Type element = n.type("type", 1), from = elementOf(n.input(0));
  if (!element)
    return llvm::failure();
  if (element.getIntOrFloatBitWidth() != from.getIntOrFloatBitWidth() ||
      element.isInteger(1) != from.isInteger(1))
    return e.fail("reads elements as ones of another size, which is not "
                  "supported");
  return n.yield(e.op<graph::BitcastOp>(
      {n.input(0)}, e.attr("to", mlir::TypeAttr::get(element))));
}

/// Of complex numbers what `ofComplex` makes of them.
template <Unary build, Complex (*ofComplex)(Complex, Emitter &)>
static LogicalResult function(Node &n, Emitter &e) {
  return n.numInputs() == 1 && n.item(0).complex
             ? n.yieldComplex(ofComplex(*n.item(0).complex, e))
             : unary<build>(n, e);
}
static Complex square(Complex z, Emitter &e) { return mulComplex(z, z, e); }
static Complex one(Complex like, Emitter &e) {
  return {e.scalar(1.0, elementOf(like.real)), {}};
}
static Complex reciprocal(Complex z, Emitter &e) {
  return divComplex(spreadComplex(one(z, e), graph::getShape(z.real), e), z, e);
}
static Complex inverseRoot(Complex z, Emitter &e) {
  return reciprocal(sqrtComplex(z, e), e);
}
static Complex sinComplex(Complex z, Emitter &e) {
  return turnComplex(sinhComplex(turnComplex(z, false, e), e), true, e);
}
static Complex cosComplex(Complex z, Emitter &e) {
  return coshComplex(turnComplex(z, false, e), e);
}

// Two operands.

using Binary = Value (*)(Value, Value, Emitter &);
template <Binary build> static LogicalResult binary(Node &n, Emitter &e) {
  return failed(n.needsTensors(2, 2))
             ? llvm::failure()
             : n.yield(build(n.input(0), n.input(1), e));
}
template <typename Op> static Value apply(Value a, Value b, Emitter &e) {
  return e.op<Op>({a, b});
}
template <Predicate predicate>
static Value compare(Value a, Value b, Emitter &e) {
  return e.compare(predicate, a, b);
}

/// The same of complex numbers.
using ComplexBinary = Complex (*)(Complex, Complex, Emitter &);
template <Binary build, ComplexBinary ofComplex>
static LogicalResult arithmetic(Node &n, Emitter &e) {
  bool isComplex = n.numInputs() == 2 && n.item(0).complex && n.item(1).complex;
  return isComplex ? n.yieldComplex(
                         ofComplex(*n.item(0).complex, *n.item(1).complex, e))
                   : binary<build>(n, e);
}
static Complex add(Complex a, Complex b, Emitter &e) {
  return addComplex(a, b, false, e);
}
static Complex divNoNanComplex(Complex a, Complex b, Emitter &e) {
  Value zero = e.scalar(0.0, elementOf(b.real));
  Value isNothing =
      e.op<graph::AndOp>({e.compare(Predicate::eq, b.real, zero),
                          e.compare(Predicate::eq, b.imaginary, zero)});
  Complex z = divComplex(a, b, e);
  return {e.select(isNothing, zero, z.real),
          e.select(isNothing, zero, z.imaginary)};
}
static Complex subtract(Complex a, Complex b, Emitter &e) {
  return addComplex(a, b, true, e);
}

static Value squaredDifference(Value a, Value b, Emitter &e) {
  return square(e.sub(a, b), e);
}
/// Whether integers follow from sizes, and are no less than that.
static bool areAtLeast(Value integers, int64_t least, Emitter &e) {
  graph::SymbolicTensor known = e.evaluate(integers);
  return known.isComplete() &&
         llvm::all_of(*known.elements, [&](mlir::AffineExpr element) {
           return e.getSymbols().isAtLeast(element, e.number(least));
         });
}
/// Rounds to minus infinity.
static Value floorDiv(Value a, Value b, Emitter &e) {
  if (isFloat(a))
    return e.op<graph::FloorOp>({e.div(a, b)});
  Value quotient = e.div(a, b);
  if (!quotient || elementOf(a).isUnsignedInteger() ||
      (areAtLeast(a, 0, e) && areAtLeast(b, 1, e)))
    return quotient;
  // One less where the remainders rounded down and toward zero differ.
  Value differ = e.compare(Predicate::ne, e.op<graph::ModOp>({a, b}),
                           e.op<graph::FmodOp>({a, b}));
  return e.sub(quotient, e.cast(differ, elementOf(a)));
}
static Value truncateDiv(Value a, Value b, Emitter &e) { return e.div(a, b); }
static Value divNoNan(Value a, Value b, Emitter &e) {
  Value zero = e.scalar(int64_t(0), elementOf(b));
  return e.select(e.compare(Predicate::eq, b, zero), zero, e.div(a, b));
}
/// 0 where a is 0, else a * f(b), or a / b.
static Value unlessZero(Value a, Value y, Emitter &e) {
  Value zero = e.scalar(int64_t(0), elementOf(a));
  return e.select(e.compare(Predicate::eq, a, zero), zero, y);
}
static Value xlogy(Value a, Value b, Emitter &e) {
  return unlessZero(a, e.mul(a, e.op<graph::LogOp>({b})), e);
}
static Value xlog1py(Value a, Value b, Emitter &e) {
  return unlessZero(a, e.mul(a, e.op<graph::Log1pOp>({b})), e);
}
static Value xdivy(Value a, Value b, Emitter &e) {
  return unlessZero(a, e.div(a, b), e);
}
static Value mulNoNan(Value a, Value b, Emitter &e) {
  Value zero = e.scalar(int64_t(0), elementOf(b));
  return e.select(e.compare(Predicate::eq, b, zero), zero, e.mul(a, b));
}

/// By the element's bits less one at most, and not by less than none.
template <typename Op> static Value shift(Value a, Value b, Emitter &e) {
  mlir::Type element = elementOf(b);
  auto last = static_cast<int64_t>(elementOf(a).getIntOrFloatBitWidth()) - 1;
  Value amount = e.max(b, e.scalar(int64_t(0), element));
  return e.op<Op>({a, e.min(amount, e.scalar(last, element))});
}

static LogicalResult addN(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, Node::manyInputs)))
    return llvm::failure();
  Value sum = n.input(0);
  for (Value term : n.allInputs().drop_front())
    sum = e.add(sum, term);
  return n.yield(sum);
}

/// Along the channels, which are last or behind the batch.
static LogicalResult biasAdd(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(1, 1, 1)) ||
      failed(n.needsRank(0, 2, 32)))
    return llvm::failure();
  std::string format = n.text("data_format", "NHWC");
  if (format != "NHWC" && format != "NCHW")
    return e.fail("data_format '" + format + "' is not supported");
  Value bias = n.input(1);
  Exprs shape = graph::getShape(n.input(0));
  if (!e.agree(graph::getShape(bias)[0],
               format == "NHWC" ? shape.back() : shape[1],
               "has a bias for each channel"))
    return e.fail("a bias of " + e.describe(bias.getType()) +
                  " does not fit the channels of " +
                  e.describe(n.input(0).getType()));
  if (format == "NCHW")
    bias = e.asChannels(bias, rankOf(n.input(0)) - 2);
  return n.yield(e.add(n.input(0), bias));
}

static LogicalResult select(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)))
    return llvm::failure();
  return n.yield(e.select(n.input(0), n.input(1), n.input(2)));
}
/// Without broadcasting, but for a condition that chooses rows or is a scalar.
static LogicalResult selectRows(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)))
    return llvm::failure();
  Value condition = n.input(0);
  int64_t rank = rankOf(n.input(1));
  if (failed(n.needsRank(2, rank, rank)))
    return llvm::failure();
  Exprs taken = graph::getShape(n.input(1)),
        other = graph::getShape(n.input(2)),
        chosen = graph::getShape(condition);
  bool fits = chosen.size() <= 1 || chosen.size() == taken.size();
  for (size_t d = 0; fits && d < taken.size(); ++d)
    fits = e.agree(taken[d], other[d], "chooses between equal shapes") &&
           (d >= chosen.size() ||
            e.agree(chosen[d], taken[d], "chooses element by element"));
  if (!fits)
    return e.fail("chooses by " + e.describe(condition.getType()) +
                  " between " + e.describe(n.input(1).getType()) + " and " +
                  e.describe(n.input(2).getType()) +
                  ", which have to be of one shape");
  if (rankOf(condition) == 1 && rank > 1)
    condition = e.asChannels(condition, rank - 1);
  return n.yield(e.select(condition, n.input(1), n.input(2)));
}
static LogicalResult clip(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)))
    return llvm::failure();
  return n.yield(e.max(e.min(n.input(0), n.input(2)), n.input(1)));
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::elementwiseRows() {
  static const Row rows[] = {
      ofParts({"Neg", unary<apply<graph::NegOp>>}),
      {"Abs", unary<apply<graph::AbsOp>>},
      {"Sign", function<apply<graph::SignOp>, signComplex>},
      {"Square", function<square, square>},
      {"Sqrt", function<apply<graph::SqrtOp>, sqrtComplex>},
      {"Rsqrt", function<apply<graph::RsqrtOp>, inverseRoot>},
      {"Reciprocal", function<apply<graph::ReciprocalOp>, reciprocal>},
      {"Inv", function<apply<graph::ReciprocalOp>, reciprocal>},
      {"Exp", function<apply<graph::ExpOp>, expComplex>},
      {"Expm1", unary<apply<graph::Expm1Op>>},
      {"Log", function<apply<graph::LogOp>, logComplex>},
      {"Log1p", unary<apply<graph::Log1pOp>>},
      {"Erf", unary<apply<graph::ErfOp>>},
      {"Erfc", unary<apply<graph::ErfcOp>>},
      {"Erfinv", unary<inDouble<buildInverseErf>>},
      {"Ndtri", unary<inDouble<normalQuantile>>},
      {"Lgamma", unary<inDouble<buildLogGamma>>},
      {"Digamma", unary<inDouble<buildDigamma>>},
      {"BesselI0", unary<inDouble<besselI<0, false>>>},
      {"BesselI0e", unary<inDouble<besselI<0, true>>>},
      {"BesselI1", unary<inDouble<besselI<1, false>>>},
      {"BesselI1e", unary<inDouble<besselI<1, true>>>},
      {"Sin", function<apply<graph::SinOp>, sinComplex>},
      {"Cos", function<apply<graph::CosOp>, cosComplex>},
      {"Tan", unary<apply<graph::TanOp>>},
      {"Asin", unary<apply<graph::AsinOp>>},
      {"Acos", unary<apply<graph::AcosOp>>},
      {"Atan", unary<apply<graph::AtanOp>>},
      {"Sinh", function<apply<graph::SinhOp>, sinhComplex>},
      {"Cosh", function<apply<graph::CoshOp>, coshComplex>},
      {"Tanh", function<apply<graph::TanhOp>, tanhComplex>},
      {"Asinh", unary<apply<graph::AsinhOp>>},
      {"Acosh", unary<apply<graph::AcoshOp>>},
      {"Atanh", unary<apply<graph::AtanhOp>>},
      {"Sigmoid", unary<apply<graph::SigmoidOp>>},
      {"Floor", unary<rounded<graph::FloorOp>>},
      {"Ceil", unary<rounded<graph::CeilOp>>},
      {"Round", unary<rounded<graph::RoundOp>>},
      {"Rint", unary<rounded<graph::RoundOp>>},
      {"IsNan", unary<apply<graph::IsNanOp>>},
      {"IsInf", unary<isInf>},
      {"IsFinite", unary<isFinite>},
      {"LogicalNot", unary<apply<graph::NotOp>>},
      {"Invert", unary<apply<graph::NotOp>>},
      {"Relu", unary<buildRelu>},
      {"Relu6", unary<relu6>},
      {"Elu", unary<elu>},
      {"Selu", unary<selu>},
      {"LeakyRelu", leakyRelu},
      {"Softplus", unary<buildSoftplus>},
      {"Softsign", unary<buildSoftsign>},
      {"Cast", cast},
      {"Bitcast", bitcast},
      {"Add", arithmetic<apply<graph::AddOp>, add>},
      {"AddV2", arithmetic<apply<graph::AddOp>, add>},
      ofParts({"AddN", addN}),
      {"Sub", arithmetic<apply<graph::SubOp>, subtract>},
      {"Mul", arithmetic<apply<graph::MulOp>, mulComplex>},
      {"RealDiv", arithmetic<apply<graph::DivOp>, divComplex>},
      {"Div", binary<truncateDiv>},
      {"TruncateDiv", binary<truncateDiv>},
      {"FloorDiv", binary<floorDiv>},
      {"DivNoNan", arithmetic<divNoNan, divNoNanComplex>},
      {"MulNoNan", binary<mulNoNan>},
      {"Xlogy", binary<xlogy>},
      {"Xlog1py", binary<xlog1py>},
      {"Xdivy", binary<xdivy>},
      {"FloorMod", binary<apply<graph::ModOp>>},
      {"Mod", binary<apply<graph::FmodOp>>},
      {"TruncateMod", binary<apply<graph::FmodOp>>},
      {"Pow", arithmetic<apply<graph::PowOp>, powComplex>},
      {"Atan2", binary<buildAtan2>},
      {"Maximum", binary<apply<graph::MaxOp>>},
      {"Minimum", binary<apply<graph::MinOp>>},
      {"SquaredDifference", binary<squaredDifference>},
      {"LogicalAnd", binary<apply<graph::AndOp>>},
      {"LogicalOr", binary<apply<graph::OrOp>>},
      {"BitwiseAnd", binary<apply<graph::AndOp>>},
      {"BitwiseOr", binary<apply<graph::OrOp>>},
      {"BitwiseXor", binary<apply<graph::XorOp>>},
      {"LeftShift", binary<shift<graph::ShlOp>>},
      {"RightShift", binary<shift<graph::ShrOp>>},
      {"Equal", binary<compare<Predicate::eq>>},
      {"NotEqual", binary<compare<Predicate::ne>>},
      {"Less", binary<compare<Predicate::lt>>},
      {"LessEqual", binary<compare<Predicate::le>>},
      {"Greater", binary<compare<Predicate::gt>>},
      {"GreaterEqual", binary<compare<Predicate::ge>>},
      {"BiasAdd", biasAdd},
      {"BiasAddV1", biasAdd},
      ofParts({"SelectV2", select}),
      ofParts({"Select", selectRows}),
      {"ClipByValue", clip},
  };
  return rows;
}
