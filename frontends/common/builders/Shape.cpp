#include "frontends/common/builders/Shape.h"

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

AffineExpr charonia::frontend::productOfSizes(llvm::ArrayRef<AffineExpr> sizes,
                                              Emitter &e) {
  AffineExpr result = productOf(sizes, e.getContext());
  return result
             ? result
             : AffineExpr(e.fail("the number of elements is absurdly large"));
}

/// Takes sizes of inputs that stand at one place in front of the open one for
/// equal: [b, s] as [p, -1] with another input's p.
static bool agreeInFront(const Exprs &dims, const Exprs &shape, unsigned open,
                         Emitter &e) {
  bool any = false;
  Symbols &symbols = e.getSymbols();
  for (unsigned i = 0; i < open && i < shape.size(); ++i)
    if (dims[i] != shape[i] && !symbols.namesDefined(dims[i]) &&
        !symbols.namesDefined(shape[i]) &&
        llvm::isa<mlir::AffineSymbolExpr>(dims[i]) &&
        llvm::isa<mlir::AffineSymbolExpr>(shape[i])) {
      if (!e.agree(dims[i], shape[i], "keeps the number of elements"))
        return false;
      any = true;
    }
  return any;
}

/// total / part, of which is needed that nothing remains; null where it cannot
/// be told.
static AffineExpr exactQuotient(AffineExpr total, AffineExpr part, Emitter &e) {
  using Op = graph::SizeStep::Op;
  Symbols &symbols = e.getSymbols();
  if (!total || !part ||
      !symbols.assumeAtLeast(part, e.number(1), "so that it divides another"))
    return {};
  AffineExpr rest = symbols.define(
      {{Op::Size, total, 0}, {Op::Size, part, 0}, {Op::TruncDiv, {}, 0}});
  return rest && e.agree(total, graph::simplify(part * rest),
                         "keeps the number of elements")
             ? rest
             : AffineExpr();
}

Value charonia::frontend::buildReshape(Value value, Exprs dims, Emitter &e) {
  if (!value)
    return {};
  Exprs shape = graph::getShape(value), others;
  std::optional<unsigned> open;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    auto known = graph::constantOf(dim);
    if (known && *known == -1) {
      if (open)
        return e.fail("more than one size is -1");
      open = i;
      continue;
    }
    if (known && *known < -1)
      return e.fail("a size may not be " + Twine(*known));
    others.push_back(dim);
  }
  if (!open) {
    if (!e.agree(productOfSizes(shape, e), productOfSizes(dims, e),
                 "keeps the number of elements"))
      return e.fail(e.describe(value.getType()) +
                        " does not have as many elements as " +
                        e.describe(dims),
                    "check the shapes, or fix sizes with --shape");
    return e.reshape(value, dims);
  }
  AffineExpr rest = divideSizes(shape, others, e.getContext());
  if (!rest && agreeInFront(dims, shape, *open, e)) {
    shape = graph::getShape(value);
    others.clear();
    for (AffineExpr &dim : dims)
      if ((dim = e.getSymbols().resolve(dim)) != e.number(-1))
        others.push_back(dim);
    rest = divideSizes(shape, others, e.getContext());
  }
  if (!rest)
    rest = exactQuotient(productOf(shape, e.getContext()),
                         productOf(others, e.getContext()), e);
  if (!rest)
    return e.fail("cannot tell size " + Twine(*open) +
                      " of the result: " + e.describe(value.getType()) +
                      " does not split by the other sizes, " +
                      e.describe(others),
                  "name equal sizes alike with --shape, or fix them");
  dims[*open] = rest;
  return e.reshape(value, dims);
}

llvm::FailureOr<SmallVector<int64_t>> charonia::frontend::unitAxes(Value value,
                                                                   Emitter &e) {
  if (!value)
    return llvm::failure();
  SmallVector<int64_t> axes;
  Symbols &symbols = e.getSymbols();
  for (auto [i, size] : llvm::enumerate(graph::getShape(value))) {
    mlir::AffineExpr dim = symbols.resolve(size);
    if (dim == e.number(1)) {
      axes.push_back(i);
      continue;
    }
    // A size to optimize for that is 1 is no reason to expect another.
    SmallVector<int64_t> optimum = graph::getOptimum(symbols.list());
    if (!symbols.isAtLeast(dim, e.number(2)) &&
        (graph::evaluate(dim, optimum).value_or(1) < 2 ||
         !symbols.assumeAtLeast(dim, e.number(2),
                                "so that dimension " + std::to_string(i) +
                                    " stays")))
      return e.fail(
          "dimension " + Twine(i) + " of " + e.describe(value.getType()) +
              " goes where it is 1 and else stays, as no axes are given (" +
              symbols.describeRanges(dim) + ")",
          "give the axes, or fix that size or let its range start at 2 with "
          "--shape");
  }
  return axes;
}

Value charonia::frontend::buildSqueeze(Value value,
                                       llvm::ArrayRef<int64_t> axes,
                                       Emitter &e) {
  if (!value)
    return {};
  Exprs shape = graph::getShape(value), dims;
  for (auto [i, dim] : llvm::enumerate(shape)) {
    bool goes = llvm::is_contained(axes, static_cast<int64_t>(i));
    if (goes && dim != e.number(1))
      return e.fail("dimension " + Twine(i) + " of " +
                        e.describe(value.getType()) + " is not 1",
                    "fix that size with --shape");
    if (!goes)
      dims.push_back(dim);
  }
  return e.reshape(value, dims);
}
