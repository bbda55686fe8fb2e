// Fourier transforms, and the complex numbers between them: two tensors each.
#include "frontends/common/builders/Fourier.h"
#include "frontends/common/builders/Special.h"
#include "frontends/tensorflow/Node.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using mlir::Value;

/// Operand 0, which `count` operands have to be there for.
static std::optional<Complex> complexOf(Node &n, Emitter &e, unsigned count) {
  if (n.numInputs() == count && n.item(0).complex)
    return *n.item(0).complex;
  e.fail("is not given a complex tensor", "export the model again");
  return std::nullopt;
}

/// Of real or complex numbers along `axis`.
static Complex transform(const Complex &z, Fourier how, Emitter &e) {
  how.norm = how.inverse ? 1 : 0;
  Value y = buildFourier(joinComplex(z, e), how, e);
  if (!how.inverse || !how.onesided)
    return splitComplex(y, e);
  return {y ? e.reshape(y, llvm::ArrayRef(graph::getShape(y)).drop_back()) : y,
          {}};
}
/// Along the last `dims` dimensions of complex numbers.
template <int64_t dims, bool inverse>
static LogicalResult complexTransform(Node &n, Emitter &e) {
  auto z = complexOf(n, e, 1);
  if (!z)
    return llvm::failure();
  int64_t rank = rankOf(z->real);
  if (rank < dims)
    return e.fail("has too few dimensions for a transform of " +
                  llvm::Twine(dims));
  for (int64_t axis = rank - dims; z->real && axis < rank; ++axis)
    z = transform(*z, {axis, graph::getShape(z->real)[axis], inverse}, e);
  return n.yieldComplex(*z);
}

/// The lengths of a real transform, operand 1.
template <int64_t dims>
static llvm::FailureOr<Exprs> lengthsOf(Node &n, Emitter &e) {
  auto lengths = n.known(1);
  if (failed(lengths))
    return llvm::failure();
  if (lengths->size() != dims)
    return e.fail("needs a length for each of " + llvm::Twine(dims) +
                  " dimensions");
  return *lengths;
}
/// Of real numbers, the first half of the spectrum in the last dimension.
template <int64_t dims>
static LogicalResult realTransform(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(0, dims, 32)))
    return llvm::failure();
  auto lengths = lengthsOf<dims>(n, e);
  if (failed(lengths))
    return llvm::failure();
  int64_t rank = rankOf(n.input(0));
  Complex z = {n.input(0), {}};
  for (int64_t i = dims - 1; z.real && i >= 0; --i)
    z = transform(z, {rank - dims + i, (*lengths)[i], false, i == dims - 1}, e);
  return n.yieldComplex(z);
}
template <int64_t dims>
static LogicalResult inverseRealTransform(Node &n, Emitter &e) {
  auto z = complexOf(n, e, 2);
  auto lengths = z ? lengthsOf<dims>(n, e) : llvm::FailureOr<Exprs>();
  if (failed(lengths))
    return llvm::failure();
  int64_t rank = rankOf(z->real);
  if (rank < dims)
    return e.fail("has too few dimensions for a transform of " +
                  llvm::Twine(dims));
  for (int64_t i = 0; z->real && i < dims; ++i)
    z = transform(*z, {rank - dims + i, (*lengths)[i], true, i == dims - 1}, e);
  return n.yield(z->real);
}

// What makes complex numbers and what takes them apart.

static LogicalResult complex(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)))
    return llvm::failure();
  auto dims = e.join(graph::getShape(n.input(0)), graph::getShape(n.input(1)));
  if (!dims)
    return e.fail("real and imaginary parts do not broadcast");
  return n.yieldComplex(
      Complex{e.broadcast(n.input(0), *dims), e.broadcast(n.input(1), *dims)});
}
template <typename Build>
static LogicalResult ofComplex(Node &n, Emitter &e, Build build) {
  auto z = complexOf(n, e, 1);
  return z ? n.yield(build(*z)) : llvm::failure();
}
static LogicalResult real(Node &n, Emitter &e) {
  return ofComplex(n, e, [](const Complex &z) { return z.real; });
}
static LogicalResult imaginary(Node &n, Emitter &e) {
  return ofComplex(n, e, [](const Complex &z) { return z.imaginary; });
}
static LogicalResult magnitude(Node &n, Emitter &e) {
  return ofComplex(n, e, [&](const Complex &z) { return absComplex(z, e); });
}
static LogicalResult angle(Node &n, Emitter &e) {
  return ofComplex(n, e, [&](const Complex &z) {
    return buildAtan2(z.imaginary, z.real, e);
  });
}
static LogicalResult conjugate(Node &n, Emitter &e) {
  auto z = complexOf(n, e, 1);
  return z ? n.yieldComplex(
                 Complex{z->real, e.op<graph::NegOp>({z->imaginary})})
           : llvm::failure();
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::fourierRows() {
  static const Row rows[] = {
      {"FFT", complexTransform<1, false>},
      {"FFT2D", complexTransform<2, false>},
      {"FFT3D", complexTransform<3, false>},
      {"IFFT", complexTransform<1, true>},
      {"IFFT2D", complexTransform<2, true>},
      {"IFFT3D", complexTransform<3, true>},
      {"RFFT", realTransform<1>},
      {"RFFT2D", realTransform<2>},
      {"RFFT3D", realTransform<3>},
      {"IRFFT", inverseRealTransform<1>},
      {"IRFFT2D", inverseRealTransform<2>},
      {"IRFFT3D", inverseRealTransform<3>},
      {"Complex", complex},
      {"Real", real},
      {"Imag", imaginary},
      {"ComplexAbs", magnitude},
      {"Angle", angle},
      {"Conj", conjugate},
  };
  return rows;
}
