// Complex numbers, carried as two tensors: how rows of real numbers are of
// these too, their arithmetic, questions and conjugates.
#include "frontends/pytorch/ops/Complex.h"
#include "frontends/common/builders/Special.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;

// From and to real numbers.

static LogicalResult viewAsComplex(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  if (rankOf(x) < 1 || graph::getShape(x).back() != e.number(2))
    return c.fail("needs a last dimension of 2");
  auto [real, imaginary] = splitComplex(x, e);
  return c.yieldComplex(real, imaginary);
}
static LogicalResult viewAsReal(Call &c) {
  Emitter &e = c.getEmitter();
  auto [real, imaginary] = c.complexTensor("self");
  if (!real || !imaginary)
    return c.yield(Value());
  return c.yield(joinComplex({real, imaginary}, e));
}
static LogicalResult polar(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Value length = c.operand("abs", element), angle = c.operand("angle", element);
  return c.yieldComplex(e.mul(length, e.op<graph::CosOp>({angle})),
                        e.mul(length, e.op<graph::SinOp>({angle})));
}
static LogicalResult fromParts(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Exprs shape = c.resultShape();
  return c.yieldComplex(e.broadcast(c.operand("real", element), shape),
                        e.broadcast(c.operand("imag", element), shape));
}
static LogicalResult realPart(Call &c) {
  return c.yield(c.complexTensor("self").first);
}
static LogicalResult imaginaryPart(Call &c) {
  return c.yield(c.complexTensor("self").second);
}

// Arguments and results.

Complex charonia::frontend::pytorch::readComplex(Call &c,
                                                 llvm::StringRef name) {
  auto [real, imaginary] = c.complexTensor(name);
  return {real, imaginary};
}
LogicalResult charonia::frontend::pytorch::yieldComplex(Call &c, Complex z) {
  return c.yieldComplex(z.real, z.imaginary);
}
Value charonia::frontend::pytorch::truthOfComplex(Call &c,
                                                  llvm::StringRef name) {
  Emitter &e = c.getEmitter();
  mlir::Type truth = c.resultElement();
  if (!truth || !truth.isInteger(1) || !c.isComplex({name}))
    return {};
  auto [real, imaginary] = c.complexOperand(name, e.getBuilder().getF64Type());
  return e.op<graph::OrOp>({e.cast(real, truth), e.cast(imaginary, truth)});
}
/// A tensor or a number, real ones in the parts' type.
static Complex operand(Call &c, llvm::StringRef name, mlir::Type element) {
  auto [real, imaginary] = c.complexOperand(name, element);
  return {real, imaginary};
}

/// Of what each argument says of tensors: real parts of all, or imaginary ones
/// but for places and conditions.
static SmallVector<llvm::StringRef> elementArguments(const Node &node) {
  SmallVector<llvm::StringRef> names;
  for (const NamedArgument &input : node.inputs)
    if (!llvm::is_contained({"index", "indices", "mask", "condition"},
                            input.name))
      names.push_back(input.name);
  return names;
}

/// (a + ib)(c + id), by products of real numbers.
static LogicalResult importProduct(const Import &import, Call &c) {
  Emitter &e = c.getEmitter();
  auto multiply = [&](llvm::ArrayRef<llvm::StringRef> imaginary) -> Value {
    c.readParts(imaginary);
    return succeeded(import.real(c)) ? c.getResults().front() : Value();
  };
  bool left = c.isComplex({import.lhs}), right = c.isComplex({import.rhs});
  Value real = multiply({}), imaginary;
  if (left)
    imaginary = multiply({import.lhs});
  if (right) {
    Value other = multiply({import.rhs});
    imaginary = imaginary ? e.add(imaginary, other) : other;
  }
  if (left && right)
    real = e.sub(real, multiply({import.lhs, import.rhs}));
  return c.yieldComplex(real, imaginary);
}

LogicalResult charonia::frontend::pytorch::importComplex(const Import &import,
                                                         Call &c) {
  if (import.complex)
    return import.complex(c);
  if (import.lhs)
    return importProduct(import, c);
  if (!import.isPartwise)
    return c.fail("is not supported of complex numbers",
                  "compute with view_as_real() there");
  c.readParts({});
  if (failed(import.real(c)))
    return llvm::failure();
  Values real(c.getResults());
  c.readParts(elementArguments(c.getNode()));
  if (failed(import.real(c)))
    return llvm::failure();
  Values imaginary(c.getResults());
  return c.yieldComplex(real, imaginary);
}

// Arithmetic.

static Complex conjugated(Complex z, Emitter &e) {
  return {z.real, e.op<graph::NegOp>({z.imaginary})};
}
/// `name` times `alpha`.
static Complex scaled(Call &c, llvm::StringRef name, mlir::Type element) {
  Complex z = operand(c, name, element);
  return c.has("alpha")
             ? mulComplex(z, operand(c, "alpha", element), c.getEmitter())
             : z;
}
static LogicalResult addOrSub(Call &c, llvm::StringRef first,
                              llvm::StringRef second, bool subtract) {
  mlir::Type element = c.resultElement();
  Exprs shape = c.resultShape();
  Emitter &e = c.getEmitter();
  Complex sum = addComplex(operand(c, first, element),
                           scaled(c, second, element), subtract, e);
  return yieldComplex(c, spreadComplex(sum, shape, e));
}
LogicalResult charonia::frontend::pytorch::complexAdd(Call &c) {
  return addOrSub(c, "self", "other", false);
}
LogicalResult charonia::frontend::pytorch::complexSub(Call &c) {
  return addOrSub(c, "self", "other", true);
}
LogicalResult charonia::frontend::pytorch::complexRsub(Call &c) {
  return addOrSub(c, "other", "self", true);
}
LogicalResult charonia::frontend::pytorch::complexMul(Call &c) {
  mlir::Type element = c.resultElement();
  return yieldComplex(c,
                      mulComplex(operand(c, "self", element),
                                 operand(c, "other", element), c.getEmitter()));
}
LogicalResult charonia::frontend::pytorch::complexDiv(Call &c) {
  mlir::Type element = c.resultElement();
  return yieldComplex(c,
                      divComplex(operand(c, "self", element),
                                 operand(c, "other", element), c.getEmitter()));
}
/// 1 / z.
static Complex reciprocal(Complex z, Emitter &e) {
  Value one = e.scalar(1.0, elementOf(z.real));
  return z.real
             ? divComplex({e.broadcast(one, graph::getShape(z.real)), {}}, z, e)
             : z;
}
LogicalResult charonia::frontend::pytorch::complexReciprocal(Call &c) {
  return complexUnary<reciprocal>(c);
}
LogicalResult charonia::frontend::pytorch::complexRsqrt(Call &c) {
  Emitter &e = c.getEmitter();
  return yieldComplex(c, reciprocal(sqrtComplex(readComplex(c, "self"), e), e));
}
LogicalResult charonia::frontend::pytorch::complexSquare(Call &c) {
  return yieldComplex(c, powComplex(readComplex(c, "self"), 2, c.getEmitter()));
}
/// 1 / (1 + exp(-z)).
LogicalResult charonia::frontend::pytorch::complexSigmoid(Call &c) {
  Emitter &e = c.getEmitter();
  Complex z = readComplex(c, "self");
  Complex sum = expComplex(
      {e.op<graph::NegOp>({z.real}), e.op<graph::NegOp>({z.imaginary})}, e);
  sum.real = e.add(sum.real, e.scalar(1.0, elementOf(sum.real)));
  return yieldComplex(c, reciprocal(sum, e));
}
/// Small whole powers are products.
LogicalResult charonia::frontend::pytorch::complexPow(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Complex base = operand(c, "self", element);
  const Argument *exponent = c.find("exponent");
  bool isReal = exponent && (exponent->kind == Argument::Kind::Integer ||
                             exponent->kind == Argument::Kind::Float);
  double power = isReal ? c.number("exponent") : 0;
  if (isReal && power == 0.5)
    return yieldComplex(c, sqrtComplex(base, e));
  if (isReal && power == std::trunc(power) && std::abs(power) <= 64)
    return yieldComplex(c, powComplex(base, static_cast<int64_t>(power), e));
  Complex y = powComplex(base, operand(c, "exponent", element), e);
  return yieldComplex(c, y);
}

// Questions.

LogicalResult charonia::frontend::pytorch::complexAbs(Call &c) {
  return c.yield(absComplex(readComplex(c, "self"), c.getEmitter()));
}
/// The angle of real numbers is 0 or pi.
static LogicalResult angleOfReal(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.operand("self", c.resultElement());
  auto number = [&](double value) { return e.scalar(value, elementOf(x)); };
  Value y = e.select(e.compare(graph::Predicate::lt, x, number(0)),
                     number(3.14159265358979323846), number(0));
  return c.yield(isFloat(x) ? e.select(e.op<graph::IsNanOp>({x}), x, y) : y);
}
static LogicalResult angle(Call &c) {
  Complex z = readComplex(c, "self");
  return c.yield(buildAtan2(z.imaginary, z.real, c.getEmitter()));
}

/// Both operands in the type of a complex one's parts, and comparisons of
/// either part.
template <typename Both>
static LogicalResult compareParts(Call &c, graph::Predicate predicate) {
  Emitter &e = c.getEmitter();
  mlir::Type element;
  for (llvm::StringRef name : {"self", "other"})
    if (const TensorMeta *meta = c.metaOf(name))
      element = promoteTypes(element, partType(meta->dtype, e.getContext()));
  if (!llvm::isa_and_present<mlir::FloatType>(element))
    element = e.getBuilder().getF32Type();
  Complex a = operand(c, "self", element), b = operand(c, "other", element);
  Value zero = e.scalar(0.0, element);
  return c.yield(
      e.op<Both>({e.compare(predicate, a.real, b.real),
                  e.compare(predicate, a.imaginary ? a.imaginary : zero,
                            b.imaginary ? b.imaginary : zero)}));
}
LogicalResult charonia::frontend::pytorch::complexEqual(Call &c) {
  return compareParts<graph::AndOp>(c, graph::Predicate::eq);
}
LogicalResult charonia::frontend::pytorch::complexNotEqual(Call &c) {
  return compareParts<graph::OrOp>(c, graph::Predicate::ne);
}
static Value isInfinite(Value x, Emitter &e) {
  return e.op<graph::IsInfOp>(
      {x}, {e.attr("positive", true), e.attr("negative", true)});
}
LogicalResult charonia::frontend::pytorch::complexIsNan(Call &c) {
  Emitter &e = c.getEmitter();
  Complex z = readComplex(c, "self");
  return c.yield(e.op<graph::OrOp>(
      {e.op<graph::IsNanOp>({z.real}), e.op<graph::IsNanOp>({z.imaginary})}));
}
LogicalResult charonia::frontend::pytorch::complexIsInf(Call &c) {
  Emitter &e = c.getEmitter();
  Complex z = readComplex(c, "self");
  return c.yield(
      e.op<graph::OrOp>({isInfinite(z.real, e), isInfinite(z.imaginary, e)}));
}
LogicalResult charonia::frontend::pytorch::complexIsFinite(Call &c) {
  Emitter &e = c.getEmitter();
  Complex z = readComplex(c, "self");
  auto isFinite = [&](Value x) {
    return e.op<graph::NotOp>(
        {e.op<graph::OrOp>({isInfinite(x, e), e.op<graph::IsNanOp>({x})})});
  };
  return c.yield(e.op<graph::AndOp>({isFinite(z.real), isFinite(z.imaginary)}));
}
/// Of real numbers all are.
static LogicalResult isReal(Call &c) {
  Emitter &e = c.getEmitter();
  Complex z = readComplex(c, "self");
  if (z.real && z.imaginary)
    return c.yield(e.compare(graph::Predicate::eq, z.imaginary,
                             e.scalar(0.0, elementOf(z.imaginary))));
  return c.yield(e.broadcast(e.scalar(int64_t(1), e.getBuilder().getI1Type()),
                             c.resultShape()));
}

// Conjugates, also of what is transposed.

/// Real tensors are their own.
static LogicalResult itself(Call &c) { return c.yield(c.tensor("self")); }
static LogicalResult transposedReal(Call &c) {
  Emitter &e = c.getEmitter();
  Value x = c.tensor("self");
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x)));
  if (order.size() < 2)
    return c.yield(x);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return c.yield(e.transpose(x, order));
}
static Complex same(Complex z, Emitter &) { return z; }
static LogicalResult conjugate(Call &c) { return complexUnary<conjugated>(c); }
static LogicalResult transposedConjugate(Call &c) {
  Emitter &e = c.getEmitter();
  if (failed(importComplex(partwise(transposedReal), c)))
    return llvm::failure();
  return yieldComplex(
      c, conjugated({c.getResults().front(), c.getImaginary().front()}, e));
}
static Value writeTransposed(Call &c, Value self, Value view) {
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(self)));
  if (order.size() > 1)
    std::swap(order[order.size() - 1], order[order.size() - 2]);
  return c.getEmitter().transpose(view, order);
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::complexRows() {
  static const Row rows[] = {
      {"aten.view_as_complex.default",
       {viewAsComplex, viewAsComplex},
       Alias::View},
      {"aten.view_as_real.default", {viewAsReal, viewAsReal}, Alias::View},
      {"aten.polar.default", {polar, polar}},
      {"aten.complex.default", {fromParts, fromParts}},
      {"aten.real.default", {realPart, realPart}, Alias::View},
      {"aten.imag.default", {imaginaryPart, imaginaryPart}, Alias::View},
      {"aten._conj.default", {itself, conjugate}, Alias::View, writeSame},
      {"aten.conj.default", {itself, conjugate}, Alias::View, writeSame},
      {"aten.conj_physical.default",
       {itself, conjugate},
       Alias::Real,
       writeSame},
      {"aten._conj_physical.default", {itself, conjugate}},
      {"aten.resolve_conj.default",
       {itself, complexUnary<same>},
       Alias::View,
       writeSame},
      {"aten.mH.default",
       {transposedReal, transposedConjugate},
       Alias::View,
       writeTransposed},
      {"aten.matrix_H.default",
       {transposedReal, transposedConjugate},
       Alias::View,
       writeTransposed},
      {"aten.adjoint.default",
       {transposedReal, transposedConjugate},
       Alias::View,
       writeTransposed},
      {"aten.angle.default", {angleOfReal, angle}},
      {"aten.isreal.default", {isReal, isReal}},
  };
  return rows;
}
