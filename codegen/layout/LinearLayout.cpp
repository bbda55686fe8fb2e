#include "codegen/layout/LinearLayout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cassert>

using namespace charonia;
using f2::Vector;
using llvm::ArrayRef;
using llvm::SmallVector;

std::string charonia::dimName(Dim dim) {
  switch (dim) {
  case Dim::Register:
    return "register";
  case Dim::Lane:
    return "lane";
  case Dim::Warp:
    return "warp";
  case Dim::Offset:
    return "offset";
  default:
    return "d" + std::to_string(unsigned(dim) - unsigned(Dim::Axis0));
  }
}

LinearLayout::LinearLayout(ArrayRef<Space> ins, ArrayRef<Space> outs,
                           ArrayRef<Vector> columns)
    : inSpaces(ins), outSpaces(outs), columns(columns) {
  [[maybe_unused]] unsigned bits = 0;
  for (const Space &space : ins)
    bits += space.bits;
  assert(bits == columns.size() && "an image for each input bit");
  assert(totalOutBits() <= 64);
}

LinearLayout LinearLayout::identity(Dim in, Dim out, unsigned bits) {
  return LinearLayout({{in, bits}}, {{out, bits}}, f2::unitVectors(bits));
}

LinearLayout LinearLayout::broadcast(Dim in, unsigned bits) {
  return LinearLayout({{in, bits}}, {}, SmallVector<Vector>(bits, 0));
}

unsigned LinearLayout::bitsOf(ArrayRef<Space> spaces, Dim dim) {
  for (const Space &space : spaces)
    if (space.dim == dim)
      return space.bits;
  return 0;
}

unsigned LinearLayout::totalOutBits() const {
  unsigned bits = 0;
  for (const Space &space : outSpaces)
    bits += space.bits;
  return bits;
}

unsigned LinearLayout::outShift(Dim dim) const {
  unsigned shift = 0;
  for (const Space &space : outSpaces) {
    if (space.dim == dim)
      return shift;
    shift += space.bits;
  }
  return shift;
}

ArrayRef<Vector> LinearLayout::columnsOf(Dim in) const {
  unsigned start = 0;
  for (const Space &space : inSpaces) {
    if (space.dim == in)
      return ArrayRef<Vector>(columns).slice(start, space.bits);
    start += space.bits;
  }
  return {};
}

unsigned LinearLayout::coordinate(Vector image, Dim out) const {
  return unsigned(image >> outShift(out)) & (outSize(out) - 1);
}

Vector LinearLayout::apply(Dim in, uint64_t value) const {
  Vector image = 0;
  for (auto [i, column] : llvm::enumerate(columnsOf(in)))
    if (value >> i & 1)
      image ^= column;
  return image;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static SmallVector<LinearLayout::Space> merge(ArrayRef<LinearLayout::Space> a,
                                              ArrayRef<LinearLayout::Space> b) {
  SmallVector<LinearLayout::Space> result(a);
  for (const LinearLayout::Space &space : b) {
    auto *same =
        llvm::find_if(result, [&](auto &s) { return s.dim == space.dim; });
    if (same == result.end())
      result.push_back(space);
    else
      same->bits += space.bits;
  }
  return result;
}

/// An image of `layout` in the outputs `outs`, each coordinate moved up by
/// `above` of its dim.
static Vector place(const LinearLayout &layout, Vector image,
                    ArrayRef<LinearLayout::Space> outs,
                    llvm::function_ref<unsigned(Dim)> above) {
  Vector result = 0;
  unsigned shift = 0;
  for (const LinearLayout::Space &out : outs) {
    if (layout.outBits(out.dim))
      result |= Vector(layout.coordinate(image, out.dim))
                << (shift + above(out.dim));
    shift += out.bits;
  }
  return result;
}

LinearLayout LinearLayout::operator*(const LinearLayout &other) const {
  SmallVector<Space> ins = merge(inSpaces, other.inSpaces);
  SmallVector<Space> outs = merge(outSpaces, other.outSpaces);
  SmallVector<Vector> images;
  for (const Space &in : ins) {
    for (Vector v : columnsOf(in.dim))
      images.push_back(place(*this, v, outs, [](Dim) { return 0u; }));
    for (Vector v : other.columnsOf(in.dim))
      images.push_back(
          place(other, v, outs, [&](Dim dim) { return outBits(dim); }));
  }
  return LinearLayout(ins, outs, images);
}

std::optional<LinearLayout>
LinearLayout::divide(const LinearLayout &inner) const {
  SmallVector<Space> ins, outs;
  SmallVector<Vector> images;
  for (const Space &out : outSpaces) {
    if (inner.outBits(out.dim) > out.bits)
      return std::nullopt;
    outs.push_back({out.dim, out.bits - inner.outBits(out.dim)});
  }
  for (const Space &in : inSpaces) {
    unsigned low = inner.inBits(in.dim);
    if (low > in.bits)
      return std::nullopt;
    ins.push_back({in.dim, in.bits - low});
    for (Vector v : columnsOf(in.dim).drop_front(low)) {
      Vector image = 0;
      unsigned shift = 0;
      for (const Space &out : outs) {
        unsigned drop = inner.outBits(out.dim);
        unsigned value = coordinate(v, out.dim);
        if (value & ((1u << drop) - 1))
          return std::nullopt;
        image |= Vector(value >> drop) << shift;
        shift += out.bits;
      }
      images.push_back(image);
    }
  }
  LinearLayout quotient(ins, outs, images);
  // The low bits have to be inner's, and inner must not know other spaces.
  LinearLayout product = LinearLayout(ins, outs, images);
  SmallVector<Space> innerIns, innerOuts;
  SmallVector<Vector> innerImages;
  for (const Space &out : outSpaces)
    innerOuts.push_back({out.dim, inner.outBits(out.dim)});
  for (const Space &in : inSpaces) {
    innerIns.push_back({in.dim, inner.inBits(in.dim)});
    for (Vector v : inner.columnsOf(in.dim))
      innerImages.push_back(place(inner, v, innerOuts, [](Dim) { return 0u; }));
  }
  if (innerImages.size() != inner.totalInBits())
    return std::nullopt;
  if (LinearLayout(innerIns, innerOuts, innerImages) * quotient != *this)
    return std::nullopt;
  return quotient;
}

//===----------------------------------------------------------------------===//
// Composition and inversion
//===----------------------------------------------------------------------===//

LinearLayout LinearLayout::then(const LinearLayout &next) const {
  SmallVector<Vector> images;
  for (Vector v : columns) {
    Vector image = 0;
    for (const Space &out : outSpaces) {
      assert(next.inBits(out.dim) == out.bits &&
             "spaces of the composition differ");
      image ^= next.apply(out.dim, coordinate(v, out.dim));
    }
    images.push_back(image);
  }
  return LinearLayout(inSpaces, next.outSpaces, images);
}

bool LinearLayout::isSurjective() const {
  return f2::Span(columns).rank() == totalOutBits();
}
bool LinearLayout::isInjective() const {
  return f2::Span(columns).rank() == columns.size();
}

LinearLayout LinearLayout::inverse() const {
  f2::Span span;
  SmallVector<unsigned>
      bitOf; // of each vector that the span keeps, its input bit
  SmallVector<Vector> independent;
  for (auto [i, column] : llvm::enumerate(columns))
    if (!span.contains(column)) {
      span.add(column);
      bitOf.push_back(i);
    }
  SmallVector<Vector> images;
  for (Vector unit : f2::unitVectors(totalOutBits())) {
    std::optional<Vector> combination = span.solve(unit);
    assert(combination && "the layout does not reach the whole tile");
    Vector image = 0;
    for (auto [i, bit] : llvm::enumerate(bitOf))
      if (*combination >> i & 1)
        image |= Vector(1) << bit;
    images.push_back(image);
  }
  return LinearLayout(outSpaces, inSpaces, images);
}

LinearLayout LinearLayout::conversionTo(const LinearLayout &destination) const {
  LinearLayout source = destination.then(inverse());
  // An input bit of this that holds copies may be anything: what it is in the
  // destination saves a move.
  SmallVector<Vector> images(source.allColumns());
  unsigned shift = 0;
  for (const Space &in : inSpaces) {
    if (in.dim == Dim::Lane || in.dim == Dim::Warp)
      for (auto [bit, column] : llvm::enumerate(columnsOf(in.dim))) {
        if (column != 0 || bit >= destination.inBits(in.dim))
          continue;
        unsigned start = 0;
        for (const Space &from : destination.ins()) {
          if (from.dim == in.dim)
            images[start + bit] |= Vector(1) << (shift + bit);
          start += from.bits;
        }
      }
    shift += in.bits;
  }
  return LinearLayout(source.ins(), source.outs(), images);
}

//===----------------------------------------------------------------------===//
// Copies and axes
//===----------------------------------------------------------------------===//

uint64_t LinearLayout::freeBits(Dim in) const {
  // What the other inputs hold counts as held: a warp bit that repeats what a
  // register bit holds is no new element, but is not free either, so only lower
  // bits of the same input are looked at.
  uint64_t free = 0;
  f2::Span span;
  for (auto [i, column] : llvm::enumerate(columnsOf(in)))
    if (!span.add(column))
      free |= uint64_t(1) << i;
  return free;
}

LinearLayout LinearLayout::withoutFreeRegisters() const {
  uint64_t free = freeBits(Dim::Register);
  if (!free)
    return *this;
  SmallVector<Space> ins;
  SmallVector<Vector> images;
  for (const Space &in : inSpaces) {
    Space kept{in.dim, 0};
    for (auto [i, column] : llvm::enumerate(columnsOf(in.dim)))
      if (in.dim != Dim::Register || !(free >> i & 1)) {
        images.push_back(column);
        ++kept.bits;
      }
    ins.push_back(kept);
  }
  return LinearLayout(ins, outSpaces, images);
}

LinearLayout LinearLayout::selectAxes(ArrayRef<int64_t> order) const {
  SmallVector<Space> outs;
  for (auto [i, from] : llvm::enumerate(order))
    outs.push_back({axisDim(i), outBits(axisDim(from))});
  SmallVector<Vector> images;
  for (Vector v : columns) {
    Vector image = 0;
    unsigned shift = 0;
    for (auto [i, from] : llvm::enumerate(order)) {
      image |= Vector(coordinate(v, axisDim(from))) << shift;
      shift += outs[i].bits;
    }
    images.push_back(image);
  }
  return LinearLayout(inSpaces, outs, images);
}

LinearLayout LinearLayout::withoutAxis(unsigned axis) const {
  SmallVector<int64_t> order;
  for (unsigned i = 0; i < outSpaces.size(); ++i)
    if (i != axis)
      order.push_back(i);
  return selectAxes(order).withoutFreeRegisters();
}

LinearLayout LinearLayout::withInputOrder(ArrayRef<Dim> order) const {
  SmallVector<Space> ins;
  SmallVector<Vector> images;
  for (Dim dim : order) {
    ins.push_back({dim, inBits(dim)});
    llvm::append_range(images, columnsOf(dim));
  }
  assert(images.size() == columns.size() && "an input is missing in the order");
  return LinearLayout(ins, outSpaces, images);
}

LinearLayout LinearLayout::withOutBits(ArrayRef<unsigned> bits) const {
  SmallVector<Space> outs;
  for (auto [i, b] : llvm::enumerate(bits)) {
    assert(b >= outBits(axisDim(i)));
    outs.push_back({axisDim(i), b});
  }
  SmallVector<Vector> images;
  for (Vector v : columns)
    images.push_back(place(*this, v, outs, [](Dim) { return 0u; }));
  return LinearLayout(inSpaces, outs, images);
}

std::string LinearLayout::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const Space &in : inSpaces) {
    os << dimName(in.dim) << "=[";
    llvm::interleave(
        columnsOf(in.dim), os,
        [&](Vector v) {
          os << '[';
          llvm::interleave(
              outSpaces, os,
              [&](const Space &out) { os << coordinate(v, out.dim); }, ",");
          os << ']';
        },
        ",");
    os << "] ";
  }
  os << "-> [";
  llvm::interleave(
      outSpaces, os, [&](const Space &out) { os << (1u << out.bits); }, ",");
  os << ']';
  return text;
}

namespace charonia {
llvm::hash_code hash_value(const LinearLayout &layout) {
  llvm::hash_code hash =
      llvm::hash_combine_range(layout.columns.begin(), layout.columns.end());
  for (const auto &spaces : {layout.inSpaces, layout.outSpaces})
    for (const LinearLayout::Space &space : spaces)
      hash = llvm::hash_combine(hash, unsigned(space.dim), space.bits);
  return hash;
}
} // namespace charonia
