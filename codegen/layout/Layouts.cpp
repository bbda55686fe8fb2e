#include "codegen/layout/Layouts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cassert>

using namespace charonia;
using f2::Vector;
using llvm::ArrayRef;
using llvm::SmallVector;
using Space = LinearLayout::Space;

static constexpr Dim kHardware[] = {Dim::Register, Dim::Lane, Dim::Warp};

namespace {
/// Deals out the bits of tile axes, lowest first, to hardware bits.
class Dealer {
public:
  explicit Dealer(ArrayRef<int64_t> shape) {
    unsigned shift = 0;
    for (auto [i, extent] : llvm::enumerate(shape)) {
      assert(llvm::isPowerOf2_64(extent));
      unsigned bits = llvm::Log2_64(extent);
      axes.push_back({shift, bits, 0});
      outs.push_back({axisDim(i), bits});
      shift += bits;
    }
  }

  unsigned left(unsigned axis) const {
    return axes[axis].bits - axes[axis].used;
  }

  /// The next bits of `axis`, as far as there are any; the number dealt.
  unsigned deal(Dim in, unsigned axis, unsigned bits) {
    bits = std::min(bits, left(axis));
    for (unsigned i = 0; i < bits; ++i)
      images[unsigned(in)].push_back(Vector(1)
                                     << (axes[axis].shift + axes[axis].used++));
    return bits;
  }
  void rest(Dim in, unsigned axis) { deal(in, axis, left(axis)); }
  void copies(Dim in, unsigned bits) { images[unsigned(in)].append(bits, 0); }

  LinearLayout finish() const {
    SmallVector<Space> ins;
    SmallVector<Vector> columns;
    for (Dim dim : kHardware) {
      const auto &of = images[unsigned(dim)];
      ins.push_back({dim, unsigned(of.size())});
      llvm::append_range(columns, of);
    }
    return LinearLayout(ins, outs, columns);
  }

private:
  struct Axis {
    unsigned shift, bits, used;
  };
  SmallVector<Axis> axes;
  SmallVector<Space> outs;
  SmallVector<Vector> images[3];
};
} // namespace

LinearLayout charonia::blockedLayout(ArrayRef<int64_t> shape,
                                     ArrayRef<unsigned> order, unsigned vector,
                                     unsigned warps, unsigned neighbours) {
  Dealer dealer(shape);
  if (!order.empty())
    dealer.deal(Dim::Register, order[0], llvm::Log2_32(vector));
  if (order.size() > 1)
    dealer.deal(Dim::Register, order[1], llvm::Log2_32(neighbours));
  for (auto [dim, bits] :
       {std::pair(Dim::Lane, kLaneBits), {Dim::Warp, llvm::Log2_32(warps)}}) {
    unsigned needed = bits;
    for (unsigned axis : order)
      needed -= dealer.deal(dim, axis, needed);
    dealer.copies(dim, needed);
  }
  for (unsigned axis : order)
    dealer.rest(Dim::Register, axis);
  return dealer.finish();
}

LinearLayout charonia::withGroupsOf(const LinearLayout &layout,
                                    const LinearLayout &other) {
  SmallVector<Vector> columns(layout.allColumns());
  size_t warp = 0;
  for (const Space &in : layout.ins())
    if (in.dim != Dim::Warp)
      warp += in.bits;
    else
      break;
  ArrayRef<Vector> wanted = other.columnsOf(Dim::Warp);
  if (layout.inBits(Dim::Warp) != wanted.size() ||
      layout.outs() != other.outs())
    return layout;
  for (size_t bit = kWarpgroupBits; bit < wanted.size(); ++bit) {
    auto *found = llvm::find(columns, wanted[bit]);
    if (wanted[bit] == 0 || found == columns.end())
      return layout;
    std::swap(*found, columns[warp + bit]);
  }
  return LinearLayout(layout.ins(), layout.outs(), columns);
}

/// The bit of an image that tells the halves of an axis apart.
static unsigned topBitOf(const LinearLayout &layout, unsigned axis) {
  unsigned bits = 0;
  for (unsigned i = 0; i <= axis; ++i)
    bits += layout.outs()[i].bits;
  return bits - 1;
}

LinearLayout charonia::splitAxis(const LinearLayout &layout, unsigned axis,
                                 int64_t inner) {
  unsigned low = llvm::Log2_64(inner);
  SmallVector<LinearLayout::Space> outs;
  for (auto [i, out] : llvm::enumerate(layout.outs())) {
    if (i == axis) {
      outs.push_back({axisDim(outs.size()), out.bits - low});
      outs.push_back({axisDim(outs.size()), low});
    } else {
      outs.push_back({axisDim(outs.size()), out.bits});
    }
  }
  SmallVector<Vector> images;
  for (Vector v : layout.allColumns()) {
    Vector image = 0;
    unsigned shift = 0;
    auto place = [&](Vector at, unsigned bits) {
      image |= at << shift;
      shift += bits;
    };
    for (auto [i, out] : llvm::enumerate(layout.outs())) {
      Vector at = layout.coordinate(v, out.dim);
      if (i == axis)
        place(at >> low, out.bits - low);
      place(i == axis ? at & (inner - 1) : at, i == axis ? low : out.bits);
    }
    images.push_back(image);
  }
  return LinearLayout(layout.ins(), outs, images);
}

LinearLayout charonia::joinAxes(const LinearLayout &layout, unsigned axis) {
  SmallVector<LinearLayout::Space> outs;
  unsigned low = layout.outs()[axis + 1].bits;
  for (auto [i, out] : llvm::enumerate(layout.outs()))
    if (i != axis + 1)
      outs.push_back({axisDim(outs.size()), out.bits + (i == axis ? low : 0)});
  SmallVector<Vector> images;
  for (Vector v : layout.allColumns()) {
    Vector image = 0;
    unsigned shift = 0;
    for (auto [i, out] : llvm::enumerate(layout.outs())) {
      Vector at = layout.coordinate(v, out.dim);
      if (i == axis)
        at = (at << low) | layout.coordinate(v, axisDim(axis + 1));
      if (i == axis + 1)
        continue;
      image |= at << shift;
      shift += out.bits + (i == axis ? low : 0);
    }
    images.push_back(image);
  }
  return LinearLayout(layout.ins(), outs, images);
}

/// Bits of an image below bit `bit` of the coordinates along an axis.
static unsigned bitsBelow(const LinearLayout &layout, unsigned axis,
                          unsigned bit) {
  for (unsigned i = 0; i < axis; ++i)
    bit += layout.outs()[i].bits;
  return bit;
}

LinearLayout charonia::withoutBit(const LinearLayout &layout, unsigned axis,
                                  unsigned bit) {
  unsigned below = bitsBelow(layout, axis, bit);
  SmallVector<Space> ins(layout.ins()), outs(layout.outs());
  --outs[axis].bits;
  Vector own = Vector(1) << below;
  // A register's bit that tells nothing else apart is gone, others hold copies.
  SmallVector<Vector> columns;
  for (Space &in : ins)
    for (Vector v : layout.columnsOf(in.dim)) {
      if (in.dim == Dim::Register && v == own)
        --in.bits;
      else
        columns.push_back((v & (own - 1)) | (v >> (below + 1) << below));
    }
  return LinearLayout(ins, outs, columns);
}

LinearLayout charonia::withBit(const LinearLayout &layout, unsigned axis,
                               unsigned bit) {
  unsigned below = bitsBelow(layout, axis, bit);
  SmallVector<Space> ins(layout.ins()), outs(layout.outs());
  ++outs[axis].bits;
  Vector own = Vector(1) << below;
  SmallVector<Vector> columns;
  for (Space &in : ins) {
    for (Vector v : layout.columnsOf(in.dim))
      columns.push_back((v & (own - 1)) | (v >> below << (below + 1)));
    if (in.dim == Dim::Register) {
      columns.push_back(own);
      ++in.bits;
    }
  }
  return LinearLayout(ins, outs, columns);
}

LinearLayout charonia::holdingBit(const LinearLayout &layout, unsigned axis,
                                  unsigned bit) {
  Vector own = Vector(1) << bitsBelow(layout, axis, bit);
  bool isHeld = llvm::count_if(layout.allColumns(),
                               [&](Vector v) { return (v & own) != 0; }) == 1 &&
                llvm::is_contained(layout.columnsOf(Dim::Register), own);
  return isHeld ? layout : withBit(withoutBit(layout, axis, bit), axis, bit);
}

std::optional<LinearLayout> charonia::halfOf(const LinearLayout &layout,
                                             unsigned axis) {
  if (layout.outs()[axis].bits == 0)
    return std::nullopt;
  unsigned top = topBitOf(layout, axis);
  Vector half = Vector(1) << top;
  auto tells = [&](Vector v) { return (v & half) != 0; };
  if (llvm::count_if(layout.allColumns(), tells) != 1 ||
      !llvm::is_contained(layout.columnsOf(Dim::Register), half))
    return std::nullopt;
  SmallVector<Space> ins(layout.ins()), outs(layout.outs());
  --llvm::find_if(ins, [](Space in) { return in.dim == Dim::Register; })->bits;
  --outs[axis].bits;
  SmallVector<Vector> columns;
  for (Vector v : layout.allColumns())
    if (v != half) // whose bits above move down
      columns.push_back((v & (half - 1)) | (v >> (top + 1) << top));
  return LinearLayout(ins, outs, columns);
}

LinearLayout charonia::withHalvesOf(const LinearLayout &layout,
                                    const LinearLayout &other) {
  std::optional<Vector> wanted; // of the first such axis
  for (unsigned axis = 0; axis < layout.outs().size(); ++axis) {
    if (layout.outs() != other.outs() || !halfOf(other, axis))
      continue;
    if (halfOf(layout, axis))
      return layout;
    if (!wanted)
      wanted = Vector(1) << topBitOf(layout, axis);
  }
  SmallVector<Vector> columns(layout.allColumns());
  auto *found = wanted ? llvm::find(columns, *wanted) : columns.end();
  // The highest bit of a register: the lowest are a vector's.
  ArrayRef<Vector> registers = layout.columnsOf(Dim::Register);
  if (found == columns.end() || registers.empty() ||
      layout.ins().front().dim != Dim::Register)
    return layout;
  std::swap(*found, columns[registers.size() - 1]);
  return LinearLayout(layout.ins(), layout.outs(), columns);
}

//===----------------------------------------------------------------------===//
// Dots
//===----------------------------------------------------------------------===//

/// Repeats an instruction's fragment: first along `inner`, then along `outer`
/// in registers, then over the warps of each axis (-1: the warps hold copies).
static void repeat(Dealer &dealer, unsigned inner, unsigned outer, int rowAxis,
                   int columnAxis, WarpGrid warps) {
  unsigned rowBits = llvm::Log2_32(warps.rows),
           columnBits = llvm::Log2_32(warps.columns);
  auto inRegisters = [&](unsigned axis) {
    unsigned forWarps = int(axis) == rowAxis      ? rowBits
                        : int(axis) == columnAxis ? columnBits
                                                  : 0;
    unsigned left = dealer.left(axis);
    dealer.deal(Dim::Register, axis, left - std::min(left, forWarps));
  };
  inRegisters(inner);
  inRegisters(outer);
  for (auto [axis, bits] :
       {std::pair(columnAxis, columnBits), {rowAxis, rowBits}}) {
    unsigned dealt = axis < 0 ? 0 : dealer.deal(Dim::Warp, axis, bits);
    dealer.copies(Dim::Warp, bits - dealt);
  }
}

/// The 16 rows and 8 columns of a product that a warp holds, the unit of all
/// that hold one.
static void dealFragment(Dealer &dealer) {
  dealer.deal(Dim::Register, 1, 1);
  dealer.deal(Dim::Lane, 1, 2);
  dealer.deal(Dim::Lane, 0, 3);
  dealer.deal(Dim::Register, 0, 1);
}

LinearLayout charonia::mmaResultLayout(ArrayRef<int64_t> shape,
                                       WarpGrid warps) {
  assert(shape[0] >= 16 && shape[1] >= 8);
  Dealer dealer(shape);
  dealFragment(dealer);
  repeat(dealer, 1, 0, 0, 1, warps);
  return dealer.finish();
}

LinearLayout charonia::warpgroupResultLayout(ArrayRef<int64_t> shape,
                                             WarpGrid groups) {
  assert(shape[0] >= 64 && shape[1] >= 8);
  Dealer dealer(shape);
  dealFragment(dealer);
  dealer.deal(Dim::Warp, 0, 2);
  repeat(dealer, 1, 0, 0, 1, groups);
  return dealer.finish();
}

LinearLayout charonia::warpgroupLhsLayout(ArrayRef<int64_t> shape,
                                          WarpGrid groups) {
  assert(shape[0] >= 64 && shape[1] >= 16);
  Dealer dealer(shape);
  dealer.deal(Dim::Register, 1, 1);
  dealer.deal(Dim::Lane, 1, 2);
  dealer.deal(Dim::Lane, 0, 3);
  dealer.deal(Dim::Register, 0, 1);
  dealer.deal(Dim::Register, 1, 1);
  dealer.deal(Dim::Warp, 0, 2);
  repeat(dealer, 1, 0, 0, -1, groups);
  return dealer.finish();
}

LinearLayout charonia::warpgroupOperandLayout(ArrayRef<int64_t> shape,
                                              unsigned contiguous,
                                              unsigned elementBits) {
  unsigned rowBits = llvm::Log2_32(128 * 8 / elementBits),
           chunkBits = llvm::Log2_32(128 / elementBits);
  SmallVector<unsigned> bits;
  SmallVector<Space> outs;
  for (auto [i, extent] : llvm::enumerate(shape)) {
    bits.push_back(llvm::Log2_64(extent));
    outs.push_back({axisDim(i), bits[i]});
  }
  unsigned other = 1 - contiguous;
  assert(bits[contiguous] >= rowBits && bits[other] >= 3);
  auto unit = [&](unsigned axis, unsigned bit) {
    return Vector(1) << ((axis ? bits[0] : 0) + bit);
  };
  SmallVector<Vector> columns;
  for (unsigned bit = 0; bit < rowBits; ++bit)
    columns.push_back(unit(contiguous, bit));
  for (unsigned bit = 0; bit < bits[other]; ++bit)
    columns.push_back(unit(other, bit) ^
                      (bit < 3 ? unit(contiguous, chunkBits + bit) : 0));
  for (unsigned bit = rowBits; bit < bits[contiguous]; ++bit)
    columns.push_back(unit(contiguous, bit));
  return LinearLayout({{Dim::Offset, unsigned(columns.size())}}, outs, columns);
}

LinearLayout charonia::mmaLhsLayout(ArrayRef<int64_t> shape,
                                    unsigned elementBits, WarpGrid warps) {
  unsigned packed = llvm::Log2_32(32 / elementBits); // elements of a register
  Dealer dealer(shape);
  dealer.deal(Dim::Register, 1, packed);
  dealer.deal(Dim::Lane, 1, 2);
  dealer.deal(Dim::Lane, 0, 3);
  dealer.deal(Dim::Register, 0, 1);
  dealer.deal(Dim::Register, 1, 1);
  repeat(dealer, 1, 0, 0, -1, warps);
  return dealer.finish();
}

LinearLayout charonia::mmaRhsLayout(ArrayRef<int64_t> shape,
                                    unsigned elementBits, WarpGrid warps) {
  unsigned packed = llvm::Log2_32(32 / elementBits);
  Dealer dealer(shape);
  dealer.deal(Dim::Register, 0, packed);
  dealer.deal(Dim::Lane, 0, 2);
  dealer.deal(Dim::Lane, 1, 3);
  dealer.deal(Dim::Register, 0, 1);
  repeat(dealer, 0, 1, -1, 1, warps);
  return dealer.finish();
}

LinearLayout charonia::fmaResultLayout(ArrayRef<int64_t> shape,
                                       WarpGrid warps) {
  unsigned rowBits = llvm::Log2_32(warps.rows),
           columnBits = llvm::Log2_32(warps.columns);
  Dealer dealer(shape);
  auto room = [&](unsigned axis, unsigned reserved) {
    unsigned left = dealer.left(axis);
    return left - std::min(left, reserved);
  };
  // A thread has about as many rows as columns, so that it reads least of both
  // operands; lanes come first where the tile is small.
  unsigned rows = room(0, rowBits), columns = room(1, columnBits),
           own = rows + columns - std::min(rows + columns, kLaneBits);
  unsigned laneColumns =
      std::min(columns - std::min(columns, own / 2), kLaneBits);
  unsigned laneRows = std::min(kLaneBits - laneColumns, rows);
  laneColumns = std::min(kLaneBits - laneRows, columns);
  dealer.deal(Dim::Register, 1, std::min(2u, columns - laneColumns));
  dealer.deal(Dim::Register, 0, std::min(2u, rows - laneRows));
  // Shared memory answers a load of 16 bytes in rounds of eight lanes; with
  // neighbours along both sides in each it needs fewer of them, as measured.
  for (unsigned bit = 0; bit < std::max(laneColumns, laneRows); ++bit) {
    dealer.deal(Dim::Lane, 1, bit < laneColumns);
    dealer.deal(Dim::Lane, 0, bit < laneRows);
  }
  dealer.copies(Dim::Lane, kLaneBits - laneColumns - laneRows);
  repeat(dealer, 1, 0, 0, 1, warps);
  return dealer.finish();
}

LinearLayout charonia::fmaOperandLayout(const LinearLayout &result, bool left,
                                        int64_t k) {
  LinearLayout part = result.withoutAxis(left ? 1 : 0);
  LinearLayout all =
      LinearLayout::identity(Dim::Register, axisDim(1), llvm::Log2_64(k)) *
      part;
  return all
      .selectAxes(left ? ArrayRef<int64_t>{0, 1} : ArrayRef<int64_t>{1, 0})
      .withInputOrder(kHardware);
}

/// Register bits whose images are `units`, one after another, as long as
/// nothing else moves within them (`low` tells what of an image lies there).
static SmallVector<unsigned>
vectorBits(const LinearLayout &layout, unsigned limit,
           llvm::function_ref<Vector(unsigned)> unit,
           llvm::function_ref<bool(Vector, unsigned)> movesWithin) {
  ArrayRef<Vector> registers = layout.columnsOf(Dim::Register);
  SmallVector<unsigned> bits;
  while ((2u << bits.size()) <= limit) {
    const Vector *found = llvm::find(registers, unit(bits.size()));
    if (found == registers.end())
      break;
    bits.push_back(found - registers.begin());
  }
  for (; !bits.empty(); bits.pop_back()) {
    auto moves = [&](Vector v) { return movesWithin(v, bits.size()); };
    if (llvm::count_if(layout.allColumns(), moves) == (long)bits.size())
      break;
  }
  return bits;
}

SmallVector<unsigned> charonia::axisVector(const LinearLayout &layout,
                                           unsigned axis, unsigned limit) {
  Dim dim = axisDim(axis);
  unsigned shift = 0;
  for (unsigned i = 0; i < axis; ++i)
    shift += layout.outBits(axisDim(i));
  return vectorBits(
      layout, std::min(limit, layout.outSize(dim)),
      [&](unsigned bit) { return Vector(1) << (shift + bit); },
      [&](Vector v, unsigned bits) {
        return (layout.coordinate(v, dim) & ((1u << bits) - 1)) != 0;
      });
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

static constexpr unsigned kBankRowBits =
    128 * 8; // what all banks deliver at once

Wavefront charonia::wavefrontOf(const LinearLayout &layout,
                                ArrayRef<Vector> vector, unsigned elementBits) {
  unsigned vectorBits = elementBits << vector.size();
  unsigned lanes =
      vectorBits >= kBankRowBits ? 0 : llvm::Log2_32(kBankRowBits / vectorBits);
  ArrayRef<Vector> columns = layout.columnsOf(Dim::Lane);
  Wavefront wavefront(vector);
  f2::Span span(wavefront);
  for (Vector v : columns.take_front(std::min<size_t>(lanes, columns.size())))
    if (span.add(v))
      wavefront.push_back(v);
  return wavefront;
}

LinearLayout charonia::sharedLayout(ArrayRef<Space> axes,
                                    ArrayRef<Vector> vector, const Wavefront &a,
                                    const Wavefront &b) {
  unsigned bits = 0;
  for (const Space &axis : axes)
    bits += axis.bits;
  SmallVector<Vector> units = f2::unitVectors(bits);
  SmallVector<Vector> common = f2::intersect(a, b);
  SmallVector<Vector> onlyA = f2::extend(common, a),
                      onlyB = f2::extend(common, b);
  SmallVector<Vector> rows;
  for (auto [x, y] : llvm::zip(onlyA, onlyB))
    rows.push_back(x ^ y);
  SmallVector<Vector> both(a);
  both.append(b.begin(), b.end());
  llvm::append_range(rows, f2::extend(both, units));

  // Banks: what completes vector and rows; the wavefronts' own vectors first,
  // so that addresses stay simple.
  SmallVector<Vector> taken(vector);
  llvm::append_range(taken, rows);
  SmallVector<Vector> candidates(a);
  candidates.append(b.begin(), b.end());
  llvm::append_range(candidates, units);
  SmallVector<Vector> columns(vector);
  llvm::append_range(columns, f2::extend(taken, candidates));
  llvm::append_range(columns, rows);
  assert(columns.size() == bits && "the vector lies in the span of the rows");
  return LinearLayout({{Dim::Offset, bits}}, axes, columns);
}

LinearLayout charonia::conversionLayout(const LinearLayout &source,
                                        const LinearLayout &destination,
                                        unsigned elementBits) {
  // A vector is what both have in registers of one thread, at most 16 bytes;
  // where that is less, what is written in parts is read at once.
  auto registers = [](const LinearLayout &layout) {
    return f2::extend({}, layout.columnsOf(Dim::Register));
  };
  SmallVector<Vector> written =
      f2::intersect(registers(source), registers(destination));
  unsigned most = llvm::Log2_32(std::max(1u, 128 / elementBits));
  if (written.size() > most)
    written.truncate(most);
  SmallVector<Vector> read(written);
  if (!written.empty())
    llvm::append_range(read, f2::extend(written, registers(destination)));
  if (read.size() > most)
    read.truncate(most);
  return sharedLayout(source.outs(), read,
                      wavefrontOf(source, written, elementBits),
                      wavefrontOf(destination, read, elementBits));
}

/// Tile vectors of the low bits of one axis.
static SmallVector<Vector> along(ArrayRef<Space> axes, unsigned axis,
                                 unsigned bits) {
  unsigned shift = 0;
  for (unsigned i = 0; i < axis; ++i)
    shift += axes[i].bits;
  SmallVector<Vector> result;
  for (unsigned i = 0; i < std::min(bits, axes[axis].bits); ++i)
    result.push_back(Vector(1) << (shift + i));
  return result;
}

LinearLayout charonia::matrixLayout(const LinearLayout &writer,
                                    unsigned contiguous, unsigned vector,
                                    unsigned elementBits) {
  // The reader's rows of 16 bytes stay contiguous whatever the writer's vector
  // is.
  SmallVector<Vector> row =
      along(writer.outs(), contiguous, llvm::Log2_32(128 / elementBits));
  SmallVector<Vector> written =
      along(writer.outs(), contiguous, llvm::Log2_32(vector));
  Wavefront reader(row);
  llvm::append_range(reader, along(writer.outs(), 1 - contiguous, 3));
  return sharedLayout(writer.outs(), row,
                      wavefrontOf(writer, written, elementBits), reader);
}

LinearLayout charonia::operandLayout(const LinearLayout &writer,
                                     unsigned contiguous, unsigned vector,
                                     const LinearLayout &fragment,
                                     unsigned elementBits) {
  SmallVector<unsigned> bits;
  for (const Space &out : writer.outs())
    bits.push_back(out.bits);
  LinearLayout reader = fragment.withOutBits(bits);
  SmallVector<Vector> written = along(writer.outs(), contiguous,
                                      llvm::Log2_32(vector)),
                      read;
  for (Vector v : written) {
    if (!llvm::is_contained(reader.columnsOf(Dim::Register), v))
      break;
    read.push_back(v);
  }
  return sharedLayout(writer.outs(), written,
                      wavefrontOf(writer, written, elementBits),
                      wavefrontOf(reader, read, elementBits));
}

LinearLayout charonia::sharedOffsets(const LinearLayout &registers,
                                     const LinearLayout &shared) {
  return registers.then(shared.inverse());
}

SmallVector<unsigned> charonia::sharedVector(const LinearLayout &offsets,
                                             unsigned limit) {
  return vectorBits(
      offsets, std::min<uint64_t>(limit, offsets.outSize(Dim::Offset)),
      [](unsigned bit) { return Vector(1) << bit; },
      [](Vector v, unsigned bits) {
        return (v & ((Vector(1) << bits) - 1)) != 0;
      });
}
