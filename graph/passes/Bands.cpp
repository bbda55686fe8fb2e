#include "graph/passes/Bands.h"
#include "llvm/ADT/STLExtras.h"
#include <vector>

using namespace charonia::graph;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {

/// Places of one row along the last dimension: none where first > last.
struct RowPart {
  int64_t first, last;
  bool isEmpty() const { return first > last; }
};

/// What holds in a row; nothing where that is in several parts.
std::optional<RowPart> partOf(int64_t begin, int64_t length,
                              llvm::function_ref<bool(int64_t)> holds) {
  RowPart part{length, -1};
  for (int64_t i = 0; i < length; ++i) {
    if (!holds(begin + i))
      continue;
    if (part.isEmpty())
      part.first = i;
    else if (part.last != i - 1)
      return std::nullopt;
    part.last = i;
  }
  return part;
}

/// The least bands around places that are included one after the other, by the
/// number of a dimension among those that count.
class Hull {
public:
  explicit Hull(ArrayRef<int64_t> extents) : extents(extents) {
    for (int64_t to = 0, rank = extents.size(); to < rank; ++to)
      for (int64_t from = -1; from < to; ++from)
        bounds.push_back({from, to});
  }

  void include(ArrayRef<int64_t> place) {
    for (Bound &bound : bounds) {
      int64_t value = valueAt(bound, place);
      bound.low = std::min(bound.low, value);
      bound.high = std::max(bound.high, value);
    }
  }

  /// The places of a row in it; `place` says which, and is changed.
  RowPart partOf(SmallVector<int64_t> &place) const {
    RowPart part{0, extents.back() - 1};
    int64_t last = extents.size() - 1;
    place.back() = 0;
    for (const Bound &bound : bounds) {
      int64_t value = valueAt(bound, place);
      if (bound.to == last) {
        part.first = std::max(part.first, bound.low - value);
        part.last = std::min(part.last, bound.high - value);
      } else if (value < bound.low || value > bound.high) {
        return {0, -1};
      }
    }
    return part;
  }

  /// Its bands, for the dimensions of these numbers.
  SmallVector<Band> bands(ArrayRef<int64_t> dims) const {
    SmallVector<Band> result;
    for (const Bound &bound : bounds) {
      Band band{bound.from < 0 ? -1 : dims[bound.from], dims[bound.to], {}, {}};
      if (bound.low > (bound.from < 0 ? 0 : 1 - extents[bound.from]))
        band.low = bound.low;
      if (bound.high < extents[bound.to] - 1)
        band.high = bound.high;
      if (band.low || band.high)
        result.push_back(band);
    }
    return result;
  }

private:
  struct Bound {
    int64_t from, to;
    int64_t low = std::numeric_limits<int64_t>::max(),
            high = std::numeric_limits<int64_t>::min();
  };

  static int64_t valueAt(const Bound &bound, ArrayRef<int64_t> place) {
    return place[bound.to] - (bound.from < 0 ? 0 : place[bound.from]);
  }

  ArrayRef<int64_t> extents;
  SmallVector<Bound> bounds;
};

} // namespace

std::optional<SmallVector<Band>>
charonia::graph::bandsOf(ArrayRef<int64_t> shape,
                         llvm::function_ref<bool(int64_t)> holds) {
  SmallVector<int64_t> dims, extents;
  int64_t rows = 1;
  for (auto [dim, extent] : llvm::enumerate(shape))
    if (extent != 1) {
      dims.push_back(dim);
      extents.push_back(extent);
    }
  if (dims.size() < 2 || dims.size() > 3 || llvm::is_contained(extents, 0))
    return std::nullopt;
  for (int64_t extent : ArrayRef(extents).drop_back())
    rows *= extent;

  Hull hull(extents);
  std::vector<RowPart> parts;
  SmallVector<int64_t> place(extents.size());
  auto goTo = [&](int64_t row) {
    for (size_t i = place.size() - 1; i-- > 0; row /= extents[i])
      place[i] = row % extents[i];
  };
  bool areAny = false;
  for (int64_t row = 0; row < rows; ++row) {
    std::optional<RowPart> part =
        partOf(row * extents.back(), extents.back(), holds);
    if (!part)
      return std::nullopt;
    parts.push_back(*part);
    if (part->isEmpty())
      continue;
    areAny = true;
    goTo(row);
    for (int64_t end : {part->first, part->last}) {
      place.back() = end;
      hull.include(place);
    }
  }
  if (!areAny)
    return std::nullopt;
  for (int64_t row = 0; row < rows; ++row) {
    goTo(row);
    RowPart wanted = hull.partOf(place), part = parts[row];
    bool isSame = part.isEmpty()
                      ? wanted.isEmpty()
                      : part.first == wanted.first && part.last == wanted.last;
    if (!isSame)
      return std::nullopt;
  }
  return hull.bands(dims);
}
