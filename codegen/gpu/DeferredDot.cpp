#include "codegen/gpu/DeferredDot.h"
#include "codegen/gpu/EarlyLoads.h"
#include "codegen/tile/analysis/Values.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

simt::WaitDotsOp charonia::gpu::onlyWaitOf(simt::WarpgroupDotOp dot) {
  if (!dot.getResult().hasOneUse())
    return nullptr;
  auto wait = dyn_cast<simt::WaitDotsOp>(*dot.getResult().user_begin());
  return wait && wait->getBlock() == dot->getBlock() &&
                 wait.getValues().size() == 1 && wait.getPending() == 0
             ? wait
             : nullptr;
}

/// The value that the loop carries from one of these waits to the next.
static BlockArgument carriedBy(scf::ForOp loop, simt::WaitDotsOp wait) {
  if (!wait.getResult(0).hasOneUse())
    return nullptr;
  OpOperand &use = *wait.getResult(0).use_begin();
  return use.getOwner() == loop.getBody()->getTerminator()
             ? loop.getRegionIterArg(use.getOperandNumber())
             : nullptr;
}

static Operation *firstUserOf(Value value, Block &body) {
  Operation *first = nullptr;
  for (Operation *user : value.getUsers()) {
    Operation *ancestor = body.findAncestorOpInBlock(*user);
    if (!first || ancestor->isBeforeInBlock(first))
      first = ancestor;
  }
  return first;
}

static bool runsAtLeastOnce(scf::ForOp loop) {
  // Tiles that come in another order are found by a dozen operators.
  constexpr unsigned most = 20;
  graph::Interval low = tile::rangeOf(loop.getLowerBound(), most),
                  high = tile::rangeOf(loop.getUpperBound(), most);
  return low.isBounded() && high.isBounded() && high.low > low.high;
}

std::optional<DeferredDot> charonia::gpu::findDeferredDot(scf::ForOp loop) {
  Block &body = *loop.getBody();
  SmallVector<simt::WarpgroupDotOp> dots(body.getOps<simt::WarpgroupDotOp>());
  if (dots.size() != 2)
    return std::nullopt;
  DeferredDot found;
  found.mayBeEmpty = !runsAtLeastOnce(loop);
  found.first = dots[0];
  found.last = dots[1];
  found.firstWait = onlyWaitOf(dots[0]);
  found.lastWait = onlyWaitOf(dots[1]);
  found.rounded = found.last.getLhs().getDefiningOp<arith::TruncFOp>();
  if (!found.firstWait || !found.lastWait || !found.rounded ||
      found.rounded->getBlock() != &body || !found.rounded->hasOneUse() ||
      !getElementTypeOrSelf(found.rounded.getIn()).isF32() ||
      !found.firstWait->isBeforeInBlock(found.last))
    return std::nullopt;
  found.total = carriedBy(loop, found.lastWait);
  if (!found.total)
    return std::nullopt;
  found.firstUse = firstUserOf(found.total, body);
  // What the last dot of the iteration before gives is taken when the first
  // one's results are there, by what its left operand does not need.
  Operation *exact = found.rounded.getIn().getDefiningOp();
  if (!found.firstUse || found.firstUse == body.getTerminator() ||
      found.firstUse == found.last ||
      !found.firstWait->isBeforeInBlock(found.firstUse) || !exact ||
      exact->getBlock() != &body || !exact->isBeforeInBlock(found.firstUse))
    return std::nullopt;
  return found;
}

int64_t charonia::gpu::registersOf(DeferredDot dot) {
  return wordsOf(dot.first) + wordsOf(dot.last) + wordsOf(dot.rounded);
}
