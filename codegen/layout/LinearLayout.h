// Where the elements of a tile live: one algebra for registers, shared memory
// and memory instructions.
//
// A layout is a linear map over F2 from the bits of hardware coordinates
// (register, lane, warp; or the offset in shared memory) to the bits of tile
// coordinates: bit by bit, xor is its addition. It is written as one basis
// vector of tile coordinates for each hardware bit, and the element held at a
// hardware point is the xor of the vectors of the bits that are set there. Take
// a 16x8 tile of an mma.sync accumulator (each thread has 4 registers):
//
//   register: bit 0 -> (0, 1)   bit 1 -> (8, 0)
//   lane:     bit 0 -> (0, 2)   bit 1 -> (0, 4)   bit 2 -> (1, 0)   bit 3 ->
//   (2, 0)
//             bit 4 -> (4, 0)
//
// Register 3 of lane 6 = 0b00110 holds (8,1) ^ (0,4) ^ (1,0) = (9, 5).
//
// Everything one wants to know about a layout is linear algebra:
//  - a zero vector: hardware bits that hold copies of the same element
//  (broadcast);
//  - dropping a tile axis: where the result of a reduction along it lives;
//  - `inverse(source) . destination`: from where each destination point gets
//  its
//    element, so which registers, lanes and warps a conversion moves between;
//  - products: an instruction's fragment, repeated over registers, then over
//  warps.
// All extents are powers of two.
#ifndef CHARONIA_CODEGEN_LAYOUT_LINEARLAYOUT_H
#define CHARONIA_CODEGEN_LAYOUT_LINEARLAYOUT_H

#include "codegen/layout/F2.h"
#include "llvm/ADT/Hashing.h"
#include <string>

namespace charonia {

/// The name of a coordinate. Axis0 + i is axis i of a tile.
enum class Dim : uint8_t { Register, Lane, Warp, Offset, Axis0 };
constexpr Dim axisDim(unsigned i) { return Dim(unsigned(Dim::Axis0) + i); }
std::string dimName(Dim dim);

/// An immutable value; see the head of this file.
class LinearLayout {
public:
  /// A coordinate of 2^bits values.
  struct Space {
    Dim dim;
    unsigned bits;
    bool operator==(const Space &) const = default;
  };

  LinearLayout() = default;
  /// `columns`: the image of each input bit, inputs in order, low bit first; an
  /// image has the bits of all outputs, the first output lowest.
  LinearLayout(llvm::ArrayRef<Space> ins, llvm::ArrayRef<Space> outs,
               llvm::ArrayRef<f2::Vector> columns);

  /// in -> out, value by value.
  static LinearLayout identity(Dim in, Dim out, unsigned bits);
  /// `bits` of `in` that hold copies.
  static LinearLayout broadcast(Dim in, unsigned bits);

  llvm::ArrayRef<Space> ins() const { return inSpaces; }
  llvm::ArrayRef<Space> outs() const { return outSpaces; }
  unsigned inBits(Dim dim) const { return bitsOf(inSpaces, dim); }
  unsigned outBits(Dim dim) const { return bitsOf(outSpaces, dim); }
  unsigned inSize(Dim dim) const { return 1u << inBits(dim); }
  unsigned outSize(Dim dim) const { return 1u << outBits(dim); }
  unsigned totalInBits() const { return columns.size(); }
  unsigned totalOutBits() const;

  /// Images of the bits of one input, low bit first.
  llvm::ArrayRef<f2::Vector> columnsOf(Dim in) const;
  llvm::ArrayRef<f2::Vector> allColumns() const { return columns; }
  /// The coordinate `out` of the image of one input bit.
  unsigned basis(Dim in, unsigned bit, Dim out) const {
    return coordinate(columnsOf(in)[bit], out);
  }
  /// One coordinate of an image.
  unsigned coordinate(f2::Vector image, Dim out) const;

  /// Image of the point that has `value` in one input and zero in the others.
  f2::Vector apply(Dim in, uint64_t value) const;

  /// The product: bits of `other` lie above those of this in every space;
  /// spaces that only one has keep its order, those of this first.
  LinearLayout operator*(const LinearLayout &other) const;
  /// What remains when the low bits of each space are `inner` alone: the Q with
  /// inner * Q == this (spaces in the order of this), if there is one.
  std::optional<LinearLayout> divide(const LinearLayout &inner) const;

  /// next after this; the inputs of `next` are the outputs of this (any order).
  LinearLayout then(const LinearLayout &next) const;
  bool isSurjective() const;
  bool isInjective() const;
  /// From outputs to inputs, for a surjective layout; where copies exist, the
  /// one of the lowest independent bits.
  LinearLayout inverse() const;
  /// From where a point of `destination` gets its element: destination's inputs
  /// to this layout's inputs. Copies in this layout are chosen so that lane and
  /// warp stay the same wherever that is free.
  LinearLayout conversionTo(const LinearLayout &destination) const;

  /// Bits of `in` that hold copies of what lower bits hold already.
  uint64_t freeBits(Dim in) const;
  /// Without those register bits.
  LinearLayout withoutFreeRegisters() const;
  /// Where the elements live when an axis is dropped; higher axes move down,
  /// and register bits that hold only copies disappear.
  LinearLayout withoutAxis(unsigned axis) const;
  /// Output i of the result is output `order[i]` of this; what is not named is
  /// dropped.
  LinearLayout selectAxes(llvm::ArrayRef<int64_t> order) const;
  /// The same map with spaces in the given order; absent inputs are added with
  /// no bits.
  LinearLayout withInputOrder(llvm::ArrayRef<Dim> order) const;
  /// Axes of extent `outs`, larger or equal: more bits, which nothing reaches.
  LinearLayout withOutBits(llvm::ArrayRef<unsigned> bits) const;

  bool operator==(const LinearLayout &) const = default;
  /// register=[[0,1],[8,0]] lane=[...] -> [16, 8]
  std::string str() const;

  friend llvm::hash_code hash_value(const LinearLayout &layout);

private:
  static unsigned bitsOf(llvm::ArrayRef<Space> spaces, Dim dim);
  unsigned outShift(Dim dim) const;

  llvm::SmallVector<Space, 4> inSpaces, outSpaces;
  llvm::SmallVector<f2::Vector, 16> columns;
};

inline bool operator==(const llvm::SmallVector<LinearLayout::Space, 4> &a,
                       const llvm::SmallVector<LinearLayout::Space, 4> &b) {
  return llvm::ArrayRef<LinearLayout::Space>(a) ==
         llvm::ArrayRef<LinearLayout::Space>(b);
}

} // namespace charonia

#endif
