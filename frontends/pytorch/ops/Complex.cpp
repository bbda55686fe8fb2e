// Complex numbers, carried as two tensors: rotary embeddings multiply by them.
#include "frontends/common/builders/Special.h"
#include "frontends/pytorch/ops/Rows.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;

std::pair<Value, Value> charonia::frontend::pytorch::splitComplex(Value pairs,
                                                                  Emitter &e) {
  if (!pairs || rankOf(pairs) < 1)
    return {};
  Exprs shape = graph::getShape(pairs);
  int64_t last = shape.size() - 1;
  auto part = [&](int64_t i) {
    Exprs starts(shape.size(), e.number(0)), one = shape;
    starts[last] = e.number(i);
    one[last] = e.number(1);
    Value y =
        e.slice(pairs, starts, SmallVector<int64_t>(shape.size(), 1), one);
    return e.reshape(y, llvm::ArrayRef(shape).drop_back());
  };
  return {part(0), part(1)};
}

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
  Exprs shape = graph::getShape(real);
  shape.push_back(e.number(1));
  return c.yield(e.concat({e.reshape(real, shape), e.reshape(imaginary, shape)},
                          shape.size() - 1));
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

// Arithmetic.

static LogicalResult conjugate(Call &c) {
  auto [real, imaginary] = c.complexTensor("self");
  return c.yieldComplex(real, c.getEmitter().op<graph::NegOp>({imaginary}));
}
static LogicalResult magnitude(Call &c) {
  Emitter &e = c.getEmitter();
  auto [real, imaginary] = c.complexTensor("self");
  return c.yield(buildHypot(real, imaginary, e));
}

/// Both operands, real ones in the parts' type; a number is one of them.
struct Operands {
  explicit Operands(Call &c) {
    mlir::Type element = c.resultElement();
    auto read = [&](llvm::StringRef name, Value &real, Value &imaginary) {
      const Argument *argument = c.find(name);
      if (argument && argument->kind == Argument::Kind::Tensor) {
        std::tie(real, imaginary) = c.complexTensor(name);
      } else if (argument && argument->kind == Argument::Kind::Complex) {
        real = c.getEmitter().scalar(argument->items[0].number, element);
        imaginary = c.getEmitter().scalar(argument->items[1].number, element);
      } else {
        real = c.operand(name, element);
      }
      real = c.getEmitter().cast(real, element);
    };
    read("self", a, ai);
    read("other", b, bi);
  }
  Value a, ai, b, bi;
};
static LogicalResult multiply(Call &c) {
  Emitter &e = c.getEmitter();
  Operands o(c);
  if (!o.ai || !o.bi) {
    Value factor = o.ai ? o.b : o.a;
    return o.ai ? c.yieldComplex(e.mul(o.a, factor), e.mul(o.ai, factor))
                : c.yieldComplex(e.mul(o.b, factor), e.mul(o.bi, factor));
  }
  return c.yieldComplex(e.sub(e.mul(o.a, o.b), e.mul(o.ai, o.bi)),
                        e.add(e.mul(o.a, o.bi), e.mul(o.ai, o.b)));
}
template <bool subtract> static LogicalResult add(Call &c) {
  Emitter &e = c.getEmitter();
  Operands o(c);
  Exprs shape = c.resultShape();
  auto combine = [&](Value x, Value y) -> Value {
    if (x && y)
      return subtract ? e.sub(x, y) : e.add(x, y);
    Value only = x ? x : subtract ? e.op<graph::NegOp>({y}) : y;
    return e.broadcast(only, shape);
  };
  return c.yieldComplex(combine(o.a, o.b), combine(o.ai, o.bi));
}

ImportFunction
charonia::frontend::pytorch::findComplexForm(llvm::StringRef op) {
  static const Row forms[] = {
      {"aten.mul.Tensor", multiply},
      {"aten.mul.Scalar", multiply},
      {"aten.add.Tensor", add<false>},
      {"aten.sub.Tensor", add<true>},
      {"aten.abs.default", magnitude},
      {"aten._conj.default", conjugate},
      {"aten.conj.default", conjugate},
      {"aten.conj_physical.default", conjugate},
      {"aten.view_as_complex.default", viewAsComplex},
      {"aten.view_as_real.default", viewAsReal},
      {"aten.polar.default", polar},
      {"aten.complex.default", fromParts},
      {"aten.real.default", realPart},
      {"aten.imag.default", imaginaryPart},
  };
  for (const Row &form : forms)
    if (op == form.op)
      return form.import;
  return nullptr;
}

bool charonia::frontend::pytorch::isPartwise(llvm::StringRef op) {
  op.consume_front("aten.");
  return llvm::is_contained({"view",
                             "_unsafe_view",
                             "reshape",
                             "flatten",
                             "unflatten",
                             "unsqueeze",
                             "squeeze",
                             "expand",
                             "expand_as",
                             "transpose",
                             "permute",
                             "t",
                             "numpy_T",
                             "swapaxes",
                             "movedim",
                             "alias",
                             "detach",
                             "contiguous",
                             "clone",
                             "lift_fresh_copy",
                             "slice",
                             "select",
                             "narrow",
                             "split",
                             "split_with_sizes",
                             "chunk",
                             "unbind",
                             "cat",
                             "stack",
                             "flip",
                             "roll",
                             "repeat",
                             "index",
                             "index_select",
                             "neg",
                             "to",
                             "_to_copy"},
                            op.split('.').first);
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::complexRows() {
  static const Row rows[] = {
      {"aten.view_as_complex.default", viewAsComplex, Alias::View},
      {"aten.view_as_real.default", viewAsReal, Alias::View},
      {"aten.polar.default", polar},
      {"aten.complex.default", fromParts},
      {"aten.real.default", realPart, Alias::View},
      {"aten.imag.default", imaginaryPart, Alias::View},
      {"aten._conj.default", conjugate, Alias::View},
      {"aten.conj.default", conjugate, Alias::View},
      {"aten.conj_physical.default", conjugate},
  };
  return rows;
}
