#include "frontends/common/builders/LogSum.h"
#include "frontends/common/builders/Special.h"
#include <limits>

using namespace charonia;
using namespace charonia::frontend;
using graph::Predicate;
using graph::ReduceKind;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Value;

/// log of the sum of exp of the elements so far: each from the largest of its
/// own, as no sum that is carried along could have it.
static Value logSumsSoFar(Value x, int64_t axis, Emitter &e) {
  if (!x)
    return {};
  int64_t rank = rankOf(x);
  // [.., own place, place before, ..].
  Exprs terms = graph::getShape(x), own(rank + 1, e.number(1)), before = own;
  AffineExpr length = terms[axis];
  terms.insert(terms.begin() + axis, e.number(1));
  own[axis] = before[axis + 1] = length;
  mlir::Type i64 = e.getBuilder().getI64Type();
  Value counts = e.compare(Predicate::le, e.iota(before, axis + 1, i64),
                           e.iota(own, axis, i64));
  mlir::Type element = elementOf(x);
  Value none = e.scalar(-std::numeric_limits<double>::infinity(), element),
        zero = e.scalar(0.0, element);
  Value spread = e.select(counts, e.reshape(x, terms), none);
  Value most = e.reduce(ReduceKind::max, spread, {axis + 1}, true);
  // Infinities have no distance from themselves.
  most = e.select(e.op<graph::IsInfOp>({most}, {e.attr("positive", true),
                                                e.attr("negative", true)}),
                  zero, most);
  Value sums =
      e.reduce(ReduceKind::sum, e.op<graph::ExpOp>({e.sub(spread, most)}),
               {axis + 1}, true);
  return e.reshape(e.add(most, e.op<graph::LogOp>({sums})), graph::getShape(x));
}

/// The same where there may be many: in blocks, then over the sums of blocks,
/// `levels` times.
static Value logSumsInBlocks(Value x, int64_t axis, int levels, Emitter &e) {
  if (!x)
    return {};
  constexpr int64_t block = 32;
  Exprs shape = graph::getShape(x), padded = shape, apart = shape;
  if (!levels || e.getSymbols().isAtLeast(e.number(2 * block), shape[axis]))
    return logSumsSoFar(x, axis, e);
  AffineExpr blocks = graph::simplify(shape[axis].ceilDiv(block));
  padded[axis] = graph::simplify(blocks * block);
  apart[axis] = blocks;
  apart.insert(apart.begin() + axis + 1, e.number(block));
  Value none = e.scalar(-std::numeric_limits<double>::infinity(), elementOf(x));
  Exprs start(shape.size(), e.number(0)), last(apart.size(), e.number(0));
  Value inner = logSumsSoFar(
      e.reshape(e.pad(graph::PadMode::constant, x, none, start, padded), apart),
      axis + 1, e);
  // What comes before a block: all of the blocks in front of it.
  Exprs ends = apart, sums = shape;
  last[axis + 1] = e.number(block - 1);
  ends[axis + 1] = e.number(1);
  sums[axis] = blocks;
  SmallVector<int64_t> steps(apart.size(), 1);
  Value before = logSumsInBlocks(
      e.reshape(e.slice(inner, last, steps, ends), sums), axis, levels - 1, e);
  Exprs behind = start;
  behind[axis] = e.number(1);
  before = e.pad(graph::PadMode::constant, before, none, behind, sums);
  Value y = buildLogAddExp(inner, e.reshape(before, ends), e);
  steps.pop_back();
  return e.slice(e.reshape(y, padded), start, steps, shape);
}

Value charonia::frontend::buildLogSums(Value x, int64_t axis, Emitter &e) {
  return logSumsInBlocks(x, axis, /*levels=*/2, e);
}
