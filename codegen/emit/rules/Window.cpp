// Loops over the leading dimensions of a window.
#include "codegen/emit/rules/Rules.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

unsigned emit::outerLoops(TileEmitter &e, ArrayRef<AffineExpr> extents) {
  constexpr int64_t mostWrittenOut = 16;
  auto elements = [&](ArrayRef<AffineExpr> some) {
    return graph::constantOf(
        e.simplify(graph::numElements(some, e.context()), {}));
  };
  unsigned outer = 0;
  if (elements(extents).value_or(0) <= mostWrittenOut)
    return outer;
  while (outer + 1 < extents.size() &&
         elements(extents.drop_front(outer)) > mostWrittenOut &&
         elements(extents.drop_front(outer + 1)) != 1)
    ++outer;
  return outer;
}

namespace {

class WindowWalk {
public:
  WindowWalk(
      TileEmitter &e, ArrayRef<WindowDim> dims, ArrayRef<Value> neutral,
      Combine combine,
      function_ref<FailureOr<SmallVector<Value>>(ArrayRef<WindowPlace>)> row)
      : e(e), dims(dims), neutral(neutral), combine(combine), row(row) {}

  FailureOr<SmallVector<Value>> walk() {
    if (places.size() == dims.size())
      return row(places);
    const WindowDim &dim = dims[places.size()];
    bool isLimited = dim.start && e.isScalar(dim.start) && !isInside(dim);
    TileEmitter::Limits limits;
    if (isLimited) {
      limits.firsts.push_back(e.simplify(-dim.start, {}));
      limits.ends.push_back(e.simplify(dim.size - dim.start, {}));
    }
    return e.loop(dim.extent, limits, neutral,
                  [&](AffineExpr counter, ArrayRef<Value> carried)
                      -> FailureOr<SmallVector<Value>> {
                    places.push_back(place(dim, isLimited, counter));
                    FailureOr<SmallVector<Value>> inner = walk();
                    places.pop_back();
                    if (failed(inner))
                      return failure();
                    return combine(e.b(), e.loc(), carried, *inner);
                  });
  }

private:
  /// Whether the window never leaves what it slides over.
  bool isInside(const WindowDim &dim) {
    graph::Facts known = e.facts({});
    AffineExpr last = e.simplify(dim.start + dim.extent - 1, {});
    return graph::isWithin(dim.start, dim.size, known) &&
           graph::isWithin(last, dim.size, known);
  }

  WindowPlace place(const WindowDim &dim, bool isLimited, AffineExpr counter) {
    if (!isLimited)
      return {counter, counter};
    AffineExpr at = e.simplify(dim.start + counter, {});
    return {counter, e.addSymbol(e.materialize(at), dim.size) - dim.start};
  }

  TileEmitter &e;
  ArrayRef<WindowDim> dims;
  ArrayRef<Value> neutral;
  Combine combine;
  function_ref<FailureOr<SmallVector<Value>>(ArrayRef<WindowPlace>)> row;
  SmallVector<WindowPlace> places;
};

} // namespace

FailureOr<SmallVector<Value>> emit::walkWindow(
    TileEmitter &e, ArrayRef<WindowDim> dims, ArrayRef<Value> neutral,
    Combine combine,
    function_ref<FailureOr<SmallVector<Value>>(ArrayRef<WindowPlace>)> row) {
  return WindowWalk(e, dims, neutral, combine, row).walk();
}

FailureOr<Value>
emit::insideOrNot(TileEmitter &e, ArrayRef<int64_t> tile, Type type,
                  ArrayRef<Guard> starts,
                  function_ref<FailureOr<Value>(ArrayRef<AffineExpr>)> body) {
  Value allInside;
  SmallVector<bool> asked(starts.size(), false);
  for (auto [start, isAsked] : llvm::zip_equal(starts, asked)) {
    Value isInside;
    if (start.coordinate)
      isInside = e.isInsideAsWhole(start, tile);
    isAsked = bool(isInside);
    if (isInside && allInside)
      isInside = arith::AndIOp::create(e.b(), e.loc(), allInside, isInside);
    if (isInside)
      allInside = isInside;
  }
  Exprs known(starts.size());
  if (!allInside)
    return body(known);
  return e.branch(
      allInside, type,
      [&] {
        for (unsigned i = 0; i < starts.size(); ++i)
          if (asked[i])
            known[i] = e.insideAsWhole(starts[i], tile);
        return body(known);
      },
      [&] { return e.staying([&] { return body(Exprs(starts.size())); }); });
}
