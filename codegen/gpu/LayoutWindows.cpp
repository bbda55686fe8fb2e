// Layouts for windows: a thread has neighbours along the dimension that a
// window slides over, so that what it reads for one of them serves the others.
#include "codegen/gpu/LayoutPlan.h"
#include "llvm/ADT/SetVector.h"
#include <set>

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;
using tile::AccessOp;

/// More loads than these are not compared with each other.
static constexpr size_t mostLoads = 128;

namespace {

/// What a tile is computed from by elementwise operators.
struct Sources {
  SmallVector<tile::LoadOp> loads; ///< Of tiles of its shape.
  int64_t broadcasts = 0;          ///< Tiles of fewer elements.

  explicit Sources(Value value) {
    llvm::SmallSetVector<Value, 16> values;
    values.insert(value);
    for (size_t i = 0; i < values.size(); ++i) {
      Operation *op = values[i].getDefiningOp();
      if (auto load = dyn_cast_or_null<tile::LoadOp>(op))
        loads.push_back(load);
      else if (isa_and_nonnull<tile::BroadcastOp>(op))
        ++broadcasts;
      else if (op && isElementwise(op))
        for (Value operand : op->getOperands())
          if (tile::isTile(operand))
            values.insert(operand);
    }
  }
};

/// Loads of one buffer whose addresses differ by known numbers of elements.
struct Neighbours {
  AccessOp first;
  AffineExpr offset;
  SmallVector<int64_t> distances{0};

  Neighbours(const AccessOp &first, AffineExpr offset)
      : first(first), offset(offset) {}

  /// Whether `other` is one of them.
  bool add(const AccessOp &other, AffineExpr at, const graph::Facts &facts) {
    if (other.buffer != first.buffer || other.symbols != first.symbols)
      return false;
    auto distance = graph::constantOf(graph::simplify(at - offset, facts));
    if (distance)
      distances.push_back(*distance);
    return distance.has_value();
  }

  /// Elements that `count` neighbours, `stride` elements apart, read along an
  /// axis.
  int64_t elementsOf(int64_t count, int64_t stride) const {
    std::set<int64_t> places;
    for (int64_t distance : distances)
      for (int64_t i = 0; i < count; ++i)
        places.insert(distance + i * stride);
    return places.size();
  }
};

/// How the elements of a thread lie: `count` along the axis of the window by
/// vectors.
struct Share {
  int64_t count, vector;
};

} // namespace

static SmallVector<Neighbours> neighboursOf(ArrayRef<tile::LoadOp> loads) {
  SmallVector<Neighbours> all;
  for (tile::LoadOp load : loads) {
    AccessOp access = AccessOp::get(load);
    graph::Facts facts = tile::factsOf(access);
    AffineExpr offset = tile::linearOffset(access, facts);
    if (llvm::none_of(
            all, [&](Neighbours &n) { return n.add(access, offset, facts); }))
      all.emplace_back(access, offset);
  }
  return all;
}

/// What a thread with `elements` elements does for what it reads, roughly in
/// cycles of a warp: instructions with their checks, lines of the cache,
/// conversions. Broadcast tiles are the same for all neighbours.
static int64_t costOf(ArrayRef<Neighbours> all, int64_t broadcasts,
                      int64_t stride, Share share, int64_t elements,
                      int64_t bytes) {
  constexpr int64_t instructions = 4, unchecked = 2, lineBytes = 128;
  int64_t loads = 0;
  for (const Neighbours &n : all)
    loads += n.elementsOf(share.count, stride);
  int64_t lines = llvm::divideCeil(share.vector * bytes * kLanes, lineBytes);
  return elements / (share.count * share.vector) *
         (loads * (instructions + lines + share.vector) +
          broadcasts * (unchecked + share.vector));
}

std::optional<LinearLayout> LayoutPlan::layoutOfWindow(Value value) const {
  Sources sources(value);
  if (sources.loads.size() < 2 || sources.loads.size() > mostLoads)
    return std::nullopt;
  SmallVector<Neighbours> all = neighboursOf(sources.loads);
  // Those that nothing else reads with say nothing about a window.
  llvm::erase_if(all,
                 [](const Neighbours &n) { return n.distances.size() == 1; });
  if (all.empty())
    return std::nullopt;
  const AccessOp &access = all.front().first;
  ArrayRef<int64_t> shape = access.tile.getShape();
  int64_t bytes = simt::elementBits(access.tile.getElementType()) / 8,
          elements = access.tile.getNumElements() / (int64_t(warps) * kLanes);
  Coalescing alone = judge(access, coalesced(access));
  if (bytes < 1 || elements < 2)
    return std::nullopt;
  std::optional<std::pair<unsigned, Share>> best;
  int64_t before = 0, least = 0;
  for (unsigned axis = shape.size(); axis-- > 0;) {
    std::optional<int64_t> stride = axesOf(access)[axis].stride;
    if (axis == alone.axis || !stride || *stride < 2)
      continue;
    constexpr int64_t most = 8, wordBytes = 4;
    for (int64_t count = 1; count <= std::min({most, elements, shape[axis]});
         count *= 2) {
      Share share{count, std::min<int64_t>(alone.vector, elements / count)};
      // A word at least, where there is a longer vector.
      if (share.vector < alone.vector && share.vector * bytes < wordBytes)
        break;
      int64_t cost =
          costOf(all, sources.broadcasts, *stride, share, elements, bytes);
      if (count == 1)
        before = std::max(before, cost);
      if (!best || cost < least) {
        best = {axis, share};
        least = cost;
      }
    }
  }
  if (!best || best->second.count == 1 || 4 * least > 3 * before)
    return std::nullopt;
  auto [axis, share] = *best;
  SmallVector<unsigned> order{alone.axis, axis};
  for (unsigned other = shape.size(); other-- > 0;)
    if (other != alone.axis && other != axis)
      order.push_back(other);
  return blockedLayout(shape, order, share.vector, warps, share.count);
}
