// Random numbers; see builders/Random.h for what that means of an engine.
#include "frontends/common/builders/Random.h"
#include "frontends/onnx/Registry.h"
#include "frontends/onnx/Tensors.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using mlir::Value;

static uint64_t streamOf(Node &n, Emitter &e) {
  return drawStream(n.hasAttribute("seed") ? std::optional(n.number("seed"))
                                           : std::nullopt,
                    e);
}

/// Attribute `dtype`, else `otherwise`.
static mlir::Type typeOf(Node &n, mlir::Type otherwise, Emitter &e) {
  if (!n.hasAttribute("dtype"))
    return otherwise;
  mlir::Type element = elementType(int(n.integer("dtype")), e.getContext());
  if (!element)
    e.fail("attribute 'dtype' names a type that is not supported",
           elementTypeRemedy);
  return element;
}

template <bool normal> static llvm::LogicalResult random(Node &n, Emitter &e) {
  Exprs dims;
  mlir::Type element = e.getBuilder().getF32Type();
  if (n.has(0)) {
    dims = graph::getShape(n.input(0));
    element = elementOf(n.input(0));
  } else {
    for (int64_t size :
         n.integers("shape").value_or(llvm::SmallVector<int64_t>()))
      if (size < 0)
        return e.fail("attribute 'shape' may not hold " + llvm::Twine(size));
      else
        dims.push_back(e.number(size));
  }
  element = typeOf(n, element, e);
  if (!element)
    return llvm::failure();
  auto type = llvm::dyn_cast<mlir::FloatType>(element);
  if (!type)
    return e.fail("random numbers have to be of a float type",
                  "give the attribute 'dtype'");
  mlir::Type f32 = e.getBuilder().getF32Type();
  uint64_t stream = streamOf(n, e);
  double low = normal ? n.number("mean") : n.number("low");
  double scale = normal ? n.number("scale", 1) : n.number("high", 1) - low;
  Value numbers = normal ? buildNormal(dims, stream, e)
                         : buildUniform(dims, stream, type, e);
  return n.yield(
      e.cast(e.add(e.mul(numbers, e.scalar(scale, f32)), e.scalar(low, f32)),
             element));
}

static llvm::LogicalResult bernoulli(Node &n, Emitter &e) {
  mlir::Type element = typeOf(n, elementOf(n.input(0)), e);
  if (!element)
    return llvm::failure();
  Value drawn = buildUniform(graph::getShape(n.input(0)), streamOf(n, e),
                             e.getBuilder().getF32Type(), e);
  return n.yield(
      e.cast(e.compare(graph::Predicate::lt, drawn,
                       e.cast(n.input(0), e.getBuilder().getF32Type())),
             element));
}

static llvm::LogicalResult multinomial(Node &n, Emitter &e) {
  mlir::Type element = typeOf(n, e.getBuilder().getI32Type(), e);
  int64_t samples = n.integer("sample_size", 1);
  if (!element || failed(n.needsRank(0, 2, 2)))
    return llvm::failure();
  if (samples < 1)
    return e.fail("attribute 'sample_size' may not be " + llvm::Twine(samples));
  return n.yield(
      buildMultinomial(n.input(0), samples, streamOf(n, e), element, e));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::randomRows() {
  static const Row rows[] = {
      {"", "RandomNormal", 1, 22, random<true>},
      {"", "RandomNormalLike", 1, 22, random<true>},
      {"", "RandomUniform", 1, 22, random<false>},
      {"", "RandomUniformLike", 1, 22, random<false>},
      {"", "Bernoulli", 15, 22, bernoulli},
      {"", "Multinomial", 7, 22, multinomial},
  };
  return rows;
}
