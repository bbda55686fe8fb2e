#include "graph/passes/AttentionViews.h"

using namespace mlir;
using namespace charonia::graph;

namespace {

bool isOne(AffineExpr extent) { return constantOf(extent) == 1; }

/// Dimensions of two shapes of the same elements: some of one that are some of
/// the other. One of the two may be none, where the other has extents of 1.
struct Run {
  unsigned from, fromEnd, to, toEnd;
};
std::optional<SmallVector<Run>> runsOf(ArrayRef<AffineExpr> from,
                                       ArrayRef<AffineExpr> to) {
  SmallVector<Run> runs;
  // The end of a run of `many` from `at` on that has as many elements.
  auto endOf = [](ArrayRef<AffineExpr> many, unsigned at, AffineExpr extent,
                  bool isLast) -> unsigned {
    AffineExpr covered = many[at++];
    while (at < many.size() && (covered != extent || isLast))
      covered = simplify(covered * many[at++]);
    return covered == extent ? at : 0;
  };
  unsigned i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    unsigned iEnd = i + 1, jEnd = j + 1;
    if (isOne(from[i]) != isOne(to[j])) {
      (isOne(from[i]) ? jEnd : iEnd) -= 1;
    } else if (unsigned end = endOf(from, i, to[j], j + 1 == to.size())) {
      iEnd = end;
    } else {
      jEnd = endOf(to, j, from[i], iEnd == from.size());
      if (!jEnd)
        return std::nullopt;
    }
    runs.push_back({i, iEnd, j, jEnd});
    i = iEnd, j = jEnd;
  }
  if (!llvm::all_of(from.drop_front(i), isOne) ||
      !llvm::all_of(to.drop_front(j), isOne))
    return std::nullopt;
  if (i < from.size() || j < to.size())
    runs.push_back({i, unsigned(from.size()), j, unsigned(to.size())});
  return runs;
}

/// What broadcasts to the shape that a reshape is of, in another shape: of the
/// rank of that, then repeated along some of it, then reshaped.
struct Written {
  Exprs own, whole, result;
};
Written writtenOut(Exprs own, const ScoreView &reshape) {
  assert(own.size() <= reshape.from.size() && "does not broadcast");
  AffineExpr one = getAffineConstantExpr(1, reshape.from[0].getContext());
  own.insert(own.begin(), reshape.from.size() - own.size(), one);
  Written written{own, {}, {}};
  std::optional<SmallVector<Run>> runs = runsOf(reshape.from, reshape.to);
  assert(runs && "asked of what can't be carried");
  for (const Run &run : *runs) {
    // Repeated along all of the run, or else written out.
    bool repeats = llvm::all_of(llvm::seq(run.from, run.fromEnd),
                                [&](unsigned j) { return isOne(own[j]); });
    for (unsigned j = run.from; j < run.fromEnd; ++j)
      written.whole.push_back(repeats ? one : reshape.from[j]);
    for (unsigned j = run.to; j < run.toEnd; ++j)
      written.result.push_back(repeats ? one : reshape.to[j]);
  }
  return written;
}

Term underReshape(Term x, const ScoreView &view) {
  Written written = writtenOut(getShape(x.get()), view);
  x = reshaped(x, written.own);
  if (written.whole != written.own)
    x = x.make<BroadcastOp>(makeType(written.whole, x.element()), x.get());
  return reshaped(x, written.result);
}

/// Where dimension `dim` of what a view is of is in its result.
std::optional<unsigned> placeIn(const ScoreView &view, unsigned dim) {
  if (view.kind == ScoreView::Transpose)
    return llvm::find(view.permutation, dim) - view.permutation.begin();
  ArrayRef<AffineExpr> from = view.from, to = view.to;
  size_t behind = from.size() - dim;
  if (view.kind == ScoreView::Broadcast)
    return to[to.size() - behind] == from[dim]
               ? std::optional<unsigned>(to.size() - behind)
               : std::nullopt;
  // Equal dimensions up to it, seen from either end, leave as many elements on
  // its other side; an extent of 1 could not be told from others otherwise.
  if (to.size() >= behind && to.take_back(behind) == from.take_back(behind))
    return to.size() - behind;
  if (to.size() > dim && to.take_front(dim + 1) == from.take_front(dim + 1))
    return dim;
  if (std::optional<SmallVector<Run>> runs = runsOf(from, to))
    for (const Run &run : *runs)
      if (run.from == dim && run.fromEnd == dim + 1 && run.toEnd == run.to + 1)
        return run.to;
  return std::nullopt;
}

} // namespace

std::optional<ScoreView> charonia::graph::viewOf(Term x) {
  ScoreView view;
  view.to = getShape(x.get());
  if (auto transpose = x.as<TransposeOp>()) {
    view.kind = ScoreView::Transpose;
    view.permutation.assign(transpose.getPermutation().begin(),
                            transpose.getPermutation().end());
  } else if (x.as<BroadcastOp>()) {
    view.kind = ScoreView::Broadcast;
  } else if (!x.as<ReshapeOp>()) {
    return std::nullopt;
  }
  view.from = getShape(x.get().getDefiningOp()->getOperand(0));
  // What has no dimensions is no scores.
  if (view.from.empty() || view.to.empty())
    return std::nullopt;
  return view;
}

void Route::append(ScoreView view) {
  if (views.empty() || views.back().kind != view.kind ||
      view.kind == ScoreView::Broadcast) {
    views.push_back(std::move(view));
  } else {
    ScoreView &last = views.back();
    for (int64_t &dim : view.permutation)
      dim = last.permutation[dim];
    last.permutation = view.permutation;
    last.to = view.to;
  }
  const ScoreView &last = views.back();
  if (last.kind == ScoreView::Transpose
          ? llvm::equal(last.permutation,
                        llvm::seq<int64_t>(0, last.permutation.size()))
          : last.from == last.to)
    views.pop_back();
}

void Route::append(const Route &other) {
  for (const ScoreView &view : other.views)
    append(view);
}

void Route::appendReshape(Exprs shape) {
  append({ScoreView::Reshape, Exprs(to()), std::move(shape), {}});
}

void Route::appendTranspose(ArrayRef<int64_t> permutation) {
  ScoreView view{ScoreView::Transpose, Exprs(to()), {}, {}};
  view.permutation.assign(permutation.begin(), permutation.end());
  for (int64_t dim : permutation)
    view.to.push_back(view.from[dim]);
  append(std::move(view));
}

std::optional<Route> Route::reversed() const {
  Route back{Exprs(to())};
  for (const ScoreView &view : llvm::reverse(views)) {
    if (view.kind == ScoreView::Broadcast)
      return std::nullopt;
    ScoreView inverse{view.kind, view.to, view.from, view.permutation};
    for (auto [i, dim] : llvm::enumerate(view.permutation))
      inverse.permutation[dim] = i;
    back.append(std::move(inverse));
  }
  return back;
}

std::optional<unsigned> Route::placeOf(unsigned dim) const {
  std::optional<unsigned> place = dim;
  for (const ScoreView &view : views)
    if (place)
      place = placeIn(view, *place);
  return place;
}

std::optional<Route> Route::with(ArrayRef<Replaced> extents) const {
  Route result = *this;
  for (const Replaced &other : extents) {
    std::optional<unsigned> place = other.dim;
    result.source[*place] = other.extent;
    // Places are those of the views as they are, not as they become.
    for (auto [view, changed] : llvm::zip(views, result.views)) {
      changed.from[*place] = other.extent;
      place = placeIn(view, *place);
      if (!place)
        return std::nullopt;
      changed.to[*place] = other.extent;
    }
  }
  return result.canCarry() ? std::optional(result) : std::nullopt;
}

bool Route::canCarry() const {
  return llvm::all_of(views, [](const ScoreView &view) {
    return view.kind != ScoreView::Reshape || runsOf(view.from, view.to);
  });
}

Exprs Route::shapeOf(Exprs own) const {
  for (const ScoreView &view : views) {
    if (view.kind == ScoreView::Reshape) {
      own = writtenOut(own, view).result;
    } else if (view.kind == ScoreView::Transpose) {
      Exprs all = own;
      all.insert(all.begin(), view.from.size() - own.size(),
                 getAffineConstantExpr(1, view.from[0].getContext()));
      own.clear();
      for (int64_t dim : view.permutation)
        own.push_back(all[dim]);
    }
  }
  return own;
}

Term Route::carry(Term x) const {
  // What broadcasts to a shape broadcasts to its repetitions, too.
  for (const ScoreView &view : views) {
    if (view.kind == ScoreView::Reshape) {
      x = underReshape(x, view);
    } else if (view.kind == ScoreView::Transpose) {
      x = withRank(x, view.from.size());
      x = x.make<TransposeOp>(x.get(), view.permutation);
    }
  }
  return x;
}

Exprs charonia::graph::withLeading(ArrayRef<AffineExpr> leading,
                                   ArrayRef<AffineExpr> shape) {
  Exprs result(leading);
  llvm::append_range(result, shape.take_back(2));
  return result;
}

Term charonia::graph::reshaped(Term x, const Exprs &shape) {
  return getShape(x.get()) == shape
             ? x
             : x.make<ReshapeOp>(makeType(shape, x.element()), x.get());
}

Term charonia::graph::withRank(Term x, size_t rank) {
  Exprs shape = getShape(x.get());
  if (shape.size() < rank)
    shape.insert(shape.begin(), rank - shape.size(),
                 getAffineConstantExpr(1, x.get().getContext()));
  return reshaped(x, shape);
}
