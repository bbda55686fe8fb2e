#include "graph/ir/Refinement.h"

using namespace mlir;
using namespace charonia::graph;

/// a / b, where that leaves nothing; null elsewhere.
static AffineExpr exactQuotient(AffineExpr a, AffineExpr b) {
  if (constantOf(b) == 0)
    return {};
  AffineExpr quotient = simplify(a.floorDiv(b));
  return simplify(quotient * b) == simplify(a) ? quotient : AffineExpr();
}

std::optional<Refinement>
charonia::graph::commonRefinement(ArrayRef<AffineExpr> a,
                                  ArrayRef<AffineExpr> b) {
  Refinement refinement;
  size_t i = 0, j = 0;
  AffineExpr restA, restB; // what is left of dimensions i and j
  while (i < a.size() && j < b.size()) {
    restA = restA ? restA : a[i];
    restB = restB ? restB : b[j];
    AffineExpr common, leftA, leftB;
    if (restA == restB) {
      common = restA;
    } else if ((leftA = exactQuotient(restA, restB))) {
      common = restB;
    } else if ((leftB = exactQuotient(restB, restA))) {
      common = restA;
    } else {
      return std::nullopt;
    }
    refinement.dims.push_back(common);
    refinement.first.push_back(i);
    refinement.second.push_back(j);
    restA = leftA;
    restB = leftB;
    i += !restA;
    j += !restB;
  }
  // Units at the end belong to the dimension before them.
  for (; i < a.size() || j < b.size(); i < a.size() ? ++i : ++j) {
    AffineExpr unit = i < a.size() ? a[i] : b[j];
    if (constantOf(unit) != 1 || refinement.dims.empty() || restA || restB)
      return std::nullopt;
    refinement.dims.push_back(unit);
    refinement.first.push_back(std::min(i, a.size() - 1));
    refinement.second.push_back(std::min(j, b.size() - 1));
  }
  return refinement;
}

std::optional<Exprs> charonia::graph::cutIntoRuns(AffineExpr extent,
                                                  Exprs runs) {
  Exprs parts;
  llvm::erase_if(runs, [&](AffineExpr e) { return e == extent; });
  while (!runs.empty()) {
    // The longest is a multiple of all others.
    auto longest = llvm::find_if(runs, [&](AffineExpr e) {
      return llvm::all_of(
          runs, [&](AffineExpr other) { return !!exactQuotient(e, other); });
    });
    AffineExpr count =
        longest == runs.end() ? AffineExpr() : exactQuotient(extent, *longest);
    if (!count)
      return std::nullopt;
    parts.push_back(count);
    extent = *longest;
    runs.erase(longest);
  }
  parts.push_back(extent);
  return parts;
}

std::optional<SunkTranspose>
charonia::graph::sinkTranspose(ArrayRef<AffineExpr> input,
                               ArrayRef<int64_t> permutation,
                               ArrayRef<AffineExpr> result) {
  Exprs transposed;
  for (int64_t p : permutation)
    transposed.push_back(input[p]);
  std::optional<Refinement> refinement = commonRefinement(transposed, result);
  if (!refinement)
    return std::nullopt;
  // Places, in the input's order, of the dimensions of the refinement.
  unsigned count = refinement->dims.size();
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq(0u, count));
  llvm::stable_sort(order, [&](unsigned x, unsigned y) {
    return permutation[refinement->first[x]] <
           permutation[refinement->first[y]];
  });
  SmallVector<unsigned> place(count);
  for (auto [at, which] : llvm::enumerate(order))
    place[which] = at;
  // Each dimension of the result is made of neighbours in the same order.
  SmallVector<int64_t> starts(result.size(), -1);
  std::optional<unsigned> before;
  for (unsigned i = 0; i < count; ++i) {
    if (constantOf(refinement->dims[i]) == 1 &&
        constantOf(result[refinement->second[i]]) != 1)
      continue;
    int64_t &start = starts[refinement->second[i]];
    if (start < 0)
      start = place[i];
    else if (place[i] <= *before ||
             llvm::any_of(llvm::seq(*before + 1, place[i]), [&](unsigned p) {
               return constantOf(refinement->dims[order[p]]) != 1;
             }))
      return std::nullopt;
    before = place[i];
  }
  if (llvm::is_contained(starts, -1))
    return std::nullopt;
  SmallVector<int64_t> dims = llvm::to_vector(
      llvm::seq<int64_t>(0, static_cast<int64_t>(result.size())));
  llvm::stable_sort(
      dims, [&](int64_t x, int64_t y) { return starts[x] < starts[y]; });
  SunkTranspose sunk;
  for (int64_t d : dims)
    sunk.reshaped.push_back(result[d]);
  for (int64_t d = 0; d < (int64_t)result.size(); ++d)
    sunk.permutation.push_back(llvm::find(dims, d) - dims.begin());
  return sunk;
}
