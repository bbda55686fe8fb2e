// Tensors made from nothing but sizes and numbers.
#include "frontends/common/Tables.h"
#include "frontends/common/Tensors.h"
#include "frontends/pytorch/ops/Complex.h"

#include <cstdlib>
#include <cstring>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::LogicalResult;
using mlir::Value;

/// What says where and how a tensor lies in memory.
static void ignoreOptions(Call &c) {
  c.ignore({"dtype", "layout", "device", "pin_memory", "memory_format",
            "requires_grad", "names", "physical_layout"});
}

/// Fails where a range of integers has not as many as the file says.
static LogicalResult checkCount(Call &c) {
  using Kind = Argument::Kind;
  // Beyond no difference of two is taken.
  constexpr int64_t most = int64_t(1) << 60;
  auto constant = [&](llvm::StringRef name, int64_t otherwise) {
    const Argument *given = c.find(name);
    bool known = !given || (given->kind == Kind::Integer &&
                            given->integer <= most && given->integer >= -most);
    return known ? std::optional(given ? given->integer : otherwise)
                 : std::nullopt;
  };
  auto start = constant("start", 0), step = constant("step", 1);
  const Argument *end = c.find("end");
  bool isSize = end && (end->kind == Kind::SymInt || constant("end", 0));
  if (!start || !step || *step == 0 || !isSize) {
    c.ignore({"end"});
    return llvm::success();
  }
  mlir::AffineExpr last = c.size("end");
  if (!last)
    return llvm::failure();
  mlir::AffineExpr span = *step > 0 ? last - *start : *start - last;
  return c.checkShape(graph::simplify(span.ceilDiv(std::abs(*step))));
}

/// start + i * step, as many as the file says; rounded once, since programs
/// round it down: integers count as such, floats in double.
static LogicalResult arange(Call &c) {
  Emitter &e = c.getEmitter();
  ignoreOptions(c);
  mlir::Type element = c.resultElement();
  Exprs shape = c.resultShape();
  if (!element || shape.size() != 1 || !shape[0])
    return c.fail("has to give one dimension");
  const Argument *step = c.find("step"), *start = c.find("start");
  if (failed(checkCount(c)))
    return llvm::failure();
  auto isInteger = [](const Argument *given, int64_t value) {
    return !given ||
           (given->kind == Argument::Kind::Integer && given->integer == value);
  };
  bool isScaled = !isInteger(step, 1), isMoved = !isInteger(start, 0);
  if (!isScaled && !isMoved)
    return c.yield(e.iota(shape, 0, element));
  bool isFloat = false;
  for (const Argument *given : {start, step})
    isFloat |= given && (given->kind == Argument::Kind::Float ||
                         given->kind == Argument::Kind::SymFloat);
  mlir::Builder &b = e.getBuilder();
  mlir::Type wide = !isFloat ? mlir::Type(b.getI64Type())
                    : llvm::isa<mlir::FloatType>(element)
                        ? mlir::Type(b.getF64Type())
                        : element;
  Value y = e.iota(shape, 0, wide);
  if (isScaled)
    y = e.mul(y, c.operand("step", wide));
  if (isMoved)
    y = e.add(y, c.operand("start", wide));
  return c.yield(e.cast(y, element));
}

/// Computed here as PyTorch does, since programs round it down: in its type,
/// the second half from the end.
template <typename T>
static Value spaced(T start, T end, int64_t steps, mlir::Type element,
                    Emitter &e) {
  if (failed(reserveTable(steps, element, e)))
    return {};
  std::vector<char> bytes(steps * sizeof(T));
  if (steps == 1)
    end = start;
  T step = steps > 1 ? (end - start) / static_cast<T>(steps - 1) : T(0);
  for (int64_t i = 0; i < steps; ++i) {
    T value = i < steps / 2 ? start + step * static_cast<T>(i)
                            : end - step * static_cast<T>(steps - 1 - i);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  auto type = mlir::RankedTensorType::get({steps}, element);
  return materialize(ownedTensor(type, std::move(bytes)), "linspace", e);
}
static LogicalResult linspace(Call &c) {
  Emitter &e = c.getEmitter();
  ignoreOptions(c);
  mlir::Type element = c.resultElement();
  double start = c.number("start"), end = c.number("end");
  int64_t steps = c.integer("steps");
  Exprs shape = c.resultShape();
  if (!isa_and_present<mlir::FloatType>(element) || shape.size() != 1)
    return c.fail("is supported of floats only");
  if (e.failed() || steps < 0)
    return c.fail("cannot have " + llvm::Twine(steps) + " steps");
  if (element.isF64())
    return c.yield(spaced<double>(start, end, steps, element, e));
  mlir::Type f32 = e.getBuilder().getF32Type();
  return c.yield(e.cast(spaced<float>(static_cast<float>(start),
                                      static_cast<float>(end), steps, f32, e),
                        element));
}

/// The one element of a tensor as a number: sizes may be computed with it,
/// where it follows from sizes.
static LogicalResult item(Call &c) {
  Value x = c.tensor("self");
  return c.yieldNumber(x ? c.getEmitter().reshape(x, {}) : x);
}

static LogicalResult splat(Call &c, Value scalar) {
  return c.yield(c.getEmitter().broadcast(scalar, c.resultShape()));
}
template <int value> static LogicalResult filled(Call &c) {
  ignoreOptions(c);
  c.ignore({"self", "size"});
  return splat(c, c.getEmitter().scalar(int64_t(value), c.resultElement()));
}
static LogicalResult full(Call &c) {
  ignoreOptions(c);
  c.ignore({"self", "size"});
  return splat(c, c.operand("fill_value", c.resultElement()));
}
static LogicalResult fill(Call &c) {
  c.ignore({"self"});
  return splat(c, c.operand("value", c.resultElement()));
}
static LogicalResult scalarTensor(Call &c) {
  ignoreOptions(c);
  return splat(c, c.operand("s", c.resultElement()));
}
static LogicalResult copy(Call &c) {
  c.ignore({"self", "non_blocking"});
  return splat(c, c.operand("src", c.resultElement()));
}
/// What fills or copies, of complex numbers.
template <ImportFunction real> static LogicalResult filledComplex(Call &c) {
  c.ignore({"self", "non_blocking"});
  for (llvm::StringRef name : {"src", "value"})
    if (Value truth = truthOfComplex(c, name))
      return splat(c, truth);
  return importComplex(partwise(real), c);
}
static LogicalResult eye(Call &c) {
  Emitter &e = c.getEmitter();
  ignoreOptions(c);
  Exprs shape = c.resultShape();
  mlir::AffineExpr rows = c.size("n"),
                   columns = c.find("m") ? c.size("m") : rows;
  if (e.failed() || failed(c.checkShape({rows, columns})))
    return llvm::failure();
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value row = e.iota({shape[0], e.number(1)}, 0, i64),
        column = e.iota({e.number(1), shape[1]}, 1, i64);
  return c.yield(
      e.cast(e.compare(graph::Predicate::eq, row, column), c.resultElement()));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::sourceRows() {
  static const Row rows[] = {
      {"aten.arange.default", arange},
      {"aten.arange.start", arange},
      {"aten.arange.start_step", arange},
      {"aten.linspace.default", linspace},
      {"aten.zeros.default", partwise(filled<0>)},
      {"aten.ones.default", {filled<1>, complexOfReal<filled<1>>}},
      {"aten.zeros_like.default", partwise(filled<0>)},
      {"aten.ones_like.default", {filled<1>, complexOfReal<filled<1>>}},
      {"aten.new_zeros.default", partwise(filled<0>)},
      {"aten.new_ones.default", {filled<1>, complexOfReal<filled<1>>}},
      {"aten.empty.memory_format", partwise(filled<0>)},
      {"aten.empty_like.default", partwise(filled<0>)},
      {"aten.empty_permuted.default", partwise(filled<0>)},
      {"aten.new_empty.default", partwise(filled<0>)},
      {"aten.zero.default", partwise(filled<0>)},
      {"aten.full.default", partwise(full)},
      {"aten.full_like.default", partwise(full)},
      {"aten.new_full.default", partwise(full)},
      {"aten.fill.Scalar", {fill, filledComplex<fill>}},
      {"aten.fill.Tensor", {fill, filledComplex<fill>}},
      {"aten.copy.default", {copy, filledComplex<copy>}},
      {"aten.item.default", item},
      {"aten._local_scalar_dense.default", item},
      {"aten.scalar_tensor.default", partwise(scalarTensor)},
      {"prims.scalar_tensor.default", scalarTensor},
      {"aten.eye.default", {eye, complexOfReal<eye>}},
      {"aten.eye.m", {eye, complexOfReal<eye>}},
  };
  return rows;
}
