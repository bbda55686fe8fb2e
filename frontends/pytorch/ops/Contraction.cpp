// Matrix products, and what is made of them.
#include "frontends/common/builders/Einsum.h"
#include "frontends/common/builders/Float8.h"
#include "frontends/common/builders/Matrix.h"
#include "frontends/pytorch/ops/Complex.h"
#include "graph/ir/Float8.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::LogicalResult;
using llvm::SmallVector;
using mlir::Value;

static Value transposed(Value matrix, Emitter &e) {
  return rankOf(matrix) == 2 ? e.transpose(matrix, {1, 0}) : matrix;
}

/// The product of complex matrices; either may be real.
static Complex multiply(Complex a, Complex b, Emitter &e) {
  auto times = [&](Value x, Value y) {
    return x && y ? buildMatmul(x, y, e) : Value();
  };
  auto combine = [&](Value x, Value y, bool subtract) {
    return !y ? x : !x ? y : subtract ? e.sub(x, y) : e.add(x, y);
  };
  return {
      combine(times(a.real, b.real), times(a.imaginary, b.imaginary), true),
      combine(times(a.real, b.imaginary), times(a.imaginary, b.real), false)};
}
static Complex operandOf(Call &c, llvm::StringRef name, mlir::Type element) {
  auto [real, imaginary] = c.complexOperand(name, element);
  return {real, imaginary};
}
static LogicalResult complexLinear(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Complex x = operandOf(c, "input", element),
          weight = operandOf(c, "weight", element);
  if (!hasRank(c, x.real, "input", 1, 32) ||
      !hasRank(c, weight.real, "weight", 1, 2))
    return c.yield(Value());
  weight.real = transposed(weight.real, e);
  if (weight.imaginary)
    weight.imaginary = transposed(weight.imaginary, e);
  Complex y = multiply(x, weight, e);
  return yieldComplex(
      c, c.has("bias") ? addComplex(y, operandOf(c, "bias", element), false, e)
                       : y);
}
/// The first operand is conjugated.
static LogicalResult complexVdot(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Complex a = operandOf(c, "self", element), b = operandOf(c, "other", element);
  if (!hasRank(c, a.real, "self", 1, 1) || !hasRank(c, b.real, "other", 1, 1))
    return c.yield(Value());
  if (a.imaginary)
    a.imaginary = e.op<graph::NegOp>({a.imaginary});
  return yieldComplex(c, multiply(a, b, e));
}

static LogicalResult linear(Call &c) {
  Emitter &e = c.getEmitter();
  // Under autocast operands are not of the type that is computed in.
  mlir::Type element = c.resultElement();
  Value x = c.operand("input", element), weight = c.operand("weight", element),
        bias = c.has("bias") ? c.operand("bias", element) : Value();
  if (!hasRank(c, x, "input", 1, 32) || !hasRank(c, weight, "weight", 1, 2))
    return c.yield(Value());
  Value y = buildMatmul(x, transposed(weight, e), e);
  return c.yield(bias ? e.add(y, bias) : y);
}
template <int64_t low, int64_t high>
static LogicalResult product(Call &c, llvm::StringRef lhs,
                             llvm::StringRef rhs) {
  mlir::Type element = c.resultElement();
  Value a = c.operand(lhs, element), b = c.operand(rhs, element);
  if (!hasRank(c, a, lhs, low, high) || !hasRank(c, b, rhs, low, high))
    return c.yield(Value());
  return c.yield(buildMatmul(a, b, c.getEmitter()));
}
static LogicalResult matmul(Call &c) {
  return product<1, 32>(c, "self", "other");
}
static LogicalResult mm(Call &c) { return product<2, 2>(c, "self", "mat2"); }
static LogicalResult bmm(Call &c) { return product<3, 3>(c, "self", "mat2"); }
static LogicalResult mv(Call &c) { return product<1, 2>(c, "self", "vec"); }
static LogicalResult dot(Call &c) { return product<1, 1>(c, "self", "tensor"); }

/// Whether a factor, 1 where it is left out, is known to be `value`. What is
/// added 0 times is not looked at: it may be infinite.
static bool isFactor(Call &c, llvm::StringRef name, double value) {
  const Argument *given = c.find(name);
  if (!given)
    return value == 1;
  switch (given->kind) {
  case Argument::Kind::Integer:
  case Argument::Kind::Bool:
    return double(given->integer) == value;
  case Argument::Kind::Float:
    return given->number == value;
  case Argument::Kind::Complex:
    return given->items[0].number == value && given->items[1].number == 0;
  default:
    return false;
  }
}
/// beta * self + alpha * a b.
static LogicalResult addProduct(Call &c, llvm::StringRef lhs,
                                llvm::StringRef rhs) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Value a = c.operand(lhs, element), b = c.operand(rhs, element),
        added = c.operand("self", element);
  if (!hasRank(c, a, lhs, 2, 3) || !hasRank(c, b, rhs, 1, 3))
    return c.yield(Value());
  mlir::Type wide = c.exactType(element, {"alpha", "beta"});
  Value y = e.cast(buildMatmul(a, b, e), wide);
  if (!isFactor(c, "alpha", 1))
    y = e.mul(y, c.operand("alpha", wide));
  if (isFactor(c, "beta", 0))
    return c.yield(e.cast(y, element));
  added = e.cast(added, wide);
  if (!isFactor(c, "beta", 1))
    added = e.mul(added, c.operand("beta", wide));
  return c.yield(e.cast(e.add(y, added), element));
}
/// Of complex numbers: real and imaginary part of the product, each with that
/// of `self`.
static LogicalResult addComplexProduct(Call &c, const char *lhs,
                                       const char *rhs) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Complex a = operandOf(c, lhs, element), b = operandOf(c, rhs, element),
          added = operandOf(c, "self", element);
  if (!hasRank(c, a.real, lhs, 2, 3) || !hasRank(c, b.real, rhs, 1, 3))
    return c.yield(Value());
  Complex y = multiply(a, b, e);
  if (!isFactor(c, "alpha", 1))
    y = mulComplex(y, operandOf(c, "alpha", element), e);
  if (isFactor(c, "beta", 0))
    return yieldComplex(c, y);
  if (!isFactor(c, "beta", 1))
    added = mulComplex(added, operandOf(c, "beta", element), e);
  return yieldComplex(c, addComplex(y, added, false, e));
}
static LogicalResult complexAddmm(Call &c) {
  return addComplexProduct(c, "mat1", "mat2");
}
static LogicalResult complexBaddbmm(Call &c) {
  return addComplexProduct(c, "batch1", "batch2");
}
static LogicalResult addmm(Call &c) { return addProduct(c, "mat1", "mat2"); }
static LogicalResult baddbmm(Call &c) {
  return addProduct(c, "batch1", "batch2");
}

static LogicalResult addmv(Call &c) { return addProduct(c, "mat", "vec"); }
static LogicalResult vdot(Call &c) { return product<1, 1>(c, "self", "other"); }
/// The scale of an operand with `extent` rows or columns along dimension `dim`:
/// one for all, or one for each of them. Null after an error.
static Value scaleOf(Call &c, llvm::StringRef name, Value matrix,
                     unsigned dim) {
  Emitter &e = c.getEmitter();
  Value scale = c.operand(name, e.getBuilder().getF32Type());
  if (!scale || !matrix)
    return {};
  Exprs shape = graph::getShape(scale), each(2, e.number(1));
  if (llvm::all_of(shape, [&](auto d) { return d == e.number(1); }))
    return e.reshape(scale, {});
  each[dim] = graph::getShape(matrix)[dim];
  if (shape.size() == 2 && shape[1 - dim] == e.number(1) &&
      areAlike(shape[dim], each[dim]))
    return scale;
  (void)c.fail("has a '" + name.str() + "' of " + e.describe(scale.getType()) +
                   " for " + e.describe(matrix.getType()),
               "scales are one for the tensor, or one for each row of 'self' "
               "and each column of 'mat2'; those of blocks are not supported");
  return {};
}
/// Floats of 8 bits as they are, the scales behind their product.
static LogicalResult scaledProduct(Call &c) {
  Emitter &e = c.getEmitter();
  // Sums that keep fewer bits are allowed, not asked for.
  c.ignore({"out_dtype", "use_fast_accum"});
  mlir::Type element = c.resultElement(), wide = e.getBuilder().getF32Type();
  Value a = c.tensor("self"), b = c.tensor("mat2");
  if (!hasRank(c, a, "self", 2, 2) || !hasRank(c, b, "mat2", 2, 2))
    return c.yield(Value());
  if (!graph::isFloat8(elementOf(a)) || !graph::isFloat8(elementOf(b)))
    return c.fail("is of " + e.describe(a.getType()) + " and " +
                      e.describe(b.getType()),
                  "its operands are of float8");
  // On a GPU PyTorch multiplies by it, on a CPU it divides.
  if (c.has("scale_result") && graph::isFloat8(element))
    return c.fail("has a 'scale_result', which is not supported",
                  "scale in front of a cast to float8 of its own");
  c.ignore({"scale_result"});
  Value scaleA = scaleOf(c, "scale_a", a, 0),
        scaleB = scaleOf(c, "scale_b", b, 1);
  if (!scaleA || !scaleB)
    return c.yield(Value());
  Value product = e.op<graph::MatmulOp>({a, b});
  if (rankOf(scaleA) == 0 && rankOf(scaleB) == 0)
    product = e.mul(product, e.mul(scaleA, scaleB));
  else
    product = e.mul(e.mul(product, scaleA), scaleB);
  if (c.has("bias"))
    product = e.add(product, c.operand("bias", wide));
  return c.yield(buildSaturated(product, element, e));
}

/// Sums over the last dimension of both.
static LogicalResult inner(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Value a = c.operand("self", element), b = c.operand("other", element);
  if (!a || !b)
    return c.yield(Value());
  if (rankOf(a) == 0 || rankOf(b) == 0)
    return c.yield(e.mul(a, b));
  auto asRows = [&](Value x) {
    Exprs shape = graph::getShape(x);
    return e.reshape(
        x, {productOf(llvm::ArrayRef(shape).drop_back(), e.getContext()),
            shape.back()});
  };
  return c.yield(
      e.reshape(buildMatmul(asRows(a), e.transpose(asRows(b), {1, 0}), e),
                c.resultShape()));
}
static LogicalResult bilinear(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Value y =
      buildEinsum("...i,oij,...j->...o",
                  {c.operand("input1", element), c.operand("weight", element),
                   c.operand("input2", element)},
                  e);
  return c.yield(c.has("bias") ? e.add(y, c.operand("bias", element)) : y);
}
/// The sum of the products of three tensors with dimensions of one put in.
static LogicalResult trilinear(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"unroll_dim"});
  mlir::Type element = c.resultElement();
  auto expanded = [&](llvm::StringRef name, llvm::StringRef dims) -> Value {
    Value x = c.operand(name, element);
    if (!x)
      return x;
    Exprs shape = graph::getShape(x);
    SmallVector<int64_t> at = c.integers(dims);
    llvm::sort(at);
    for (int64_t d : at) {
      if (d < 0 || d > static_cast<int64_t>(shape.size()))
        return c.fail("cannot put in dimension " + llvm::Twine(d));
      shape.insert(shape.begin() + d, e.number(1));
    }
    return e.widen(e.reshape(x, shape));
  };
  Value x = e.mul(e.mul(expanded("i1", "expand1"), expanded("i2", "expand2")),
                  expanded("i3", "expand3"));
  SmallVector<int64_t> axes = c.axes("sumdim", rankOf(x), false);
  llvm::sort(axes);
  if (!x || e.failed())
    return c.yield(Value());
  return c.yield(
      e.cast(e.reduce(graph::ReduceKind::sum, x, axes, false), element));
}

static LogicalResult einsum(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"path"});
  mlir::Type element = c.resultElement();
  Values operands = c.tensors("tensors");
  for (Value &operand : operands) {
    operand = e.cast(operand, element);
    if (!operand)
      return c.yield(Value());
  }
  if (operands.empty())
    return c.fail("has no operands");
  return c.yield(buildEinsum(c.text("equation", ""), operands, e));
}

/// Of one or two operands.
static LogicalResult complexEinsum(Call &c) {
  Emitter &e = c.getEmitter();
  c.ignore({"path"});
  std::string equation = c.text("equation", "");
  c.readParts({});
  Values real = c.tensors("tensors");
  c.readParts({"tensors"});
  Values imaginary = c.tensors("tensors");
  auto sum = [&](llvm::ArrayRef<Value> operands) {
    return buildEinsum(equation, operands, e);
  };
  if (e.failed() || real.empty() || real.size() > 2)
    return c.fail("sums of " + llvm::Twine(real.size()) +
                      " complex tensors are not supported",
                  "write it as several of two tensors each");
  if (real.size() == 1)
    return c.yieldComplex(sum({real[0]}), sum({imaginary[0]}));
  return c.yieldComplex(
      e.sub(sum({real[0], real[1]}), sum({imaginary[0], imaginary[1]})),
      e.add(sum({real[0], imaginary[1]}), sum({imaginary[0], real[1]})));
}

static LogicalResult outer(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Value a = c.operand("self", element), b = c.operand("vec2", element);
  if (rankOf(a) != 1 || rankOf(b) != 1)
    return c.fail("is of vectors");
  return c.yield(e.mul(e.reshape(a, {graph::getShape(a)[0], e.number(1)}), b));
}
/// beta * self + alpha * a vector times another; of truths, one or the other.
static LogicalResult addOuter(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement(), wide = element;
  bool isTruth = element && element.isInteger(1);
  if (!isTruth)
    wide = c.exactType(element, {"alpha", "beta"});
  Value a = c.operand("vec1", wide), b = c.operand("vec2", wide);
  if (rankOf(a) != 1 || rankOf(b) != 1)
    return c.fail("is of vectors");
  Value y = e.mul(e.reshape(a, {graph::getShape(a)[0], e.number(1)}), b);
  if (!isFactor(c, "alpha", 1))
    y = e.mul(y, c.operand("alpha", wide));
  Value added = c.operand("self", wide);
  if (isFactor(c, "beta", 0))
    return c.yield(e.cast(y, element));
  if (!isFactor(c, "beta", 1))
    added = e.mul(added, c.operand("beta", wide));
  y = isTruth ? e.op<graph::OrOp>({y, added}) : e.add(y, added);
  return c.yield(e.cast(y, element));
}
/// Products of matrices from left to right; at either end may be a vector.
static LogicalResult chain(Call &c) {
  Values matrices = c.tensors(c.has("matrices") ? "matrices" : "tensors");
  if (matrices.empty())
    return c.fail("multiplies nothing");
  Value y = matrices.front();
  for (Value next : llvm::drop_begin(matrices))
    y = y && next ? buildMatmul(y, next, c.getEmitter()) : Value();
  return c.yield(y);
}
/// Each dimension holds for each element of `self` those of `other`.
static LogicalResult kron(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Value a = c.operand("self", element), b = c.operand("other", element);
  if (!a || !b)
    return c.yield(Value());
  Exprs outer = graph::getShape(a), inner = graph::getShape(b), spreadOuter,
        spreadInner;
  size_t rank = std::max(outer.size(), inner.size());
  outer.insert(outer.begin(), rank - outer.size(), e.number(1));
  inner.insert(inner.begin(), rank - inner.size(), e.number(1));
  for (size_t d = 0; d < rank; ++d) {
    spreadOuter.append({outer[d], e.number(1)});
    spreadInner.append({e.number(1), inner[d]});
  }
  return c.yield(
      e.reshape(e.mul(e.reshape(a, spreadOuter), e.reshape(b, spreadInner)),
                c.resultShape()));
}
/// Sums over the dimensions that are listed of both.
static LogicalResult tensordot(Call &c) {
  Emitter &e = c.getEmitter();
  Value a = c.tensor("self"), b = c.tensor("other");
  SmallVector<int64_t> overA = c.integers("dims_self"),
                       overB = c.integers("dims_other");
  if (!a || !b || overA.size() != overB.size())
    return c.fail("sums over other numbers of dimensions");
  // The kept ones in front of the summed ones; the other way round for `b`.
  auto asMatrix = [&](Value x, SmallVector<int64_t> &over, bool keptFirst) {
    for (int64_t &d : over)
      d = c.axis(d, rankOf(x));
    Exprs shape = graph::getShape(x), kept, summed;
    SmallVector<int64_t> order;
    for (int64_t d = 0; d < rankOf(x); ++d)
      if (!llvm::is_contained(over, d)) {
        order.push_back(d);
        kept.push_back(shape[d]);
      }
    for (int64_t d : over)
      summed.push_back(shape[d]);
    order.insert(keptFirst ? order.end() : order.begin(), over.begin(),
                 over.end());
    mlir::AffineExpr rows = productOf(kept, e.getContext()),
                     inner = productOf(summed, e.getContext());
    return e.reshape(e.transpose(x, order),
                     keptFirst ? Exprs{rows, inner} : Exprs{inner, rows});
  };
  Value left = asMatrix(a, overA, true), right = asMatrix(b, overB, false);
  return c.yield(e.reshape(buildMatmul(left, right, e), c.resultShape()));
}
/// The cosine of the angle between vectors along a dimension.
static LogicalResult cosineSimilarity(Call &c) {
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Value a = e.widen(c.operand("x1", element)),
        b = e.widen(c.operand("x2", element));
  double epsilon = c.number("eps", 1e-8);
  // The dimension is one of both together.
  if (!a || !b)
    return c.yield(Value());
  auto shape = e.join(graph::getShape(a), graph::getShape(b));
  if (!shape)
    return c.fail("is of tensors that do not broadcast");
  a = e.broadcast(a, *shape);
  b = e.broadcast(b, *shape);
  int64_t axis = c.axis("dim", rankOf(a), 1);
  auto total = [&](Value x, Value y) {
    return e.reduce(graph::ReduceKind::sum, e.mul(x, y), {axis}, false);
  };
  auto length = [&](Value x) {
    return e.max(e.op<graph::SqrtOp>({total(x, x)}),
                 e.scalar(epsilon, elementOf(x)));
  };
  return c.yield(
      e.cast(e.div(total(a, b), e.mul(length(a), length(b))), element));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::contractionRows() {
  static const Row rows[] = {
      {"aten.linear.default", {linear, complexLinear}},
      {"aten.matmul.default", product(matmul, "self", "other")},
      {"aten.mm.default", product(mm, "self", "mat2")},
      {"aten.bmm.default", product(bmm, "self", "mat2")},
      {"aten._scaled_mm.default", scaledProduct},
      {"aten.mv.default", product(mv, "self", "vec")},
      {"aten.dot.default", product(dot, "self", "tensor")},
      {"aten.addmv.default", addmv},
      {"aten.vdot.default", {vdot, complexVdot}},
      {"aten.inner.default", product(inner, "self", "other")},
      {"aten.bilinear.default", bilinear},
      {"aten._trilinear.default", trilinear},
      {"aten.addmm.default", {addmm, complexAddmm}},
      {"aten.baddbmm.default", {baddbmm, complexBaddbmm}},
      {"aten.einsum.default", {einsum, complexEinsum}, Alias::Alone},
      {"aten.ger.default", product(outer, "self", "vec2")},
      {"aten.addr.default", addOuter},
      {"aten.linalg_multi_dot.default", chain},
      {"aten.chain_matmul.default", chain},
      {"aten.kron.default", product(kron, "self", "other")},
      {"aten.outer.default", product(outer, "self", "vec2")},
      {"aten.tensordot.default", product(tensordot, "self", "other")},
      {"aten.cosine_similarity.default", cosineSimilarity},
  };
  return rows;
}
