// Products of more rows than registers hold sums of, by a right side that is
// computed or comes from outside of a loop: that is put into the scratch once
// for all rows, and loops over the terms add to sums that wait there, too.
#include "codegen/cpu/DotParts.h"

using namespace charonia;
using namespace charonia::cpu;

/// Some terms of some rows of a product, from where `left` and `right` are.
void KernelEmitter::addTermsOf(const Product &p, const LeftSide &left,
                               const Staged &right, int64_t firstRow,
                               int64_t count,
                               llvm::MutableArrayRef<Value *> sums) {
  int64_t bytes = lanes * memoryBytes(p.sum), chunks = right.rowBytes / bytes,
          rows = sums.size() / chunks;
  for (int64_t k = 0; k < count; ++k) {
    llvm::SmallVector<Value *> row;
    for (int64_t c = 0; c < chunks; ++c)
      row.push_back(b.CreateAlignedLoad(
          sums[c]->getType(),
          b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), right.base,
                                       k * right.rowBytes + c * bytes),
          llvm::Align(bytes), /*isVolatile=*/staysInOrder()));
    for (int64_t m = 0; m < rows; ++m) {
      Value *element =
          toAccumulator(leftElement(left, firstRow + m, k), left.type, p.sum);
      for (int64_t c = 0; c < chunks; ++c) {
        Value *&sum = sums[m * chunks + c];
        sum = b.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()},
                                {splat(element, lanes), row[c], sum});
      }
    }
  }
}

/// Some rows of a product by a right side that lies in the scratch: a loop over
/// the terms around sums that stay in registers.
void KernelEmitter::addRows(const Product &p, const Staged &right,
                            int64_t firstRow,
                            llvm::MutableArrayRef<Value *> sums) {
  int64_t rows = sums.size() * lanes * memoryBytes(p.sum) / right.rowBytes,
          apart = (p.left.offsets[1] - p.left.offsets[0]) * p.left.bytes;
  auto from = [&](Value *term, int64_t count, LeftSide &left, Staged &part) {
    left = p.left;
    if (p.starts)
      for (int64_t k = 0; k < count; ++k)
        left.starts[k] = b.CreateAlignedLoad(
            b.getPtrTy(),
            b.CreateGEP(b.getPtrTy(), p.starts, b.CreateAdd(term, i64(k))),
            llvm::Align(sizeof(void *)));
    else
      for (int64_t m = firstRow; m < firstRow + rows; ++m)
        left.starts[m] = b.CreateGEP(b.getInt8Ty(), left.starts[m],
                                     b.CreateMul(term, i64(apart)));
    part = {b.CreateGEP(b.getInt8Ty(), right.base,
                        b.CreateMul(term, i64(right.rowBytes))),
            right.rowBytes};
  };
  int64_t rest = p.depth % stagedTerms;
  auto *before = b.GetInsertBlock();
  auto *body = llvm::BasicBlock::Create(context, "rows", kernel);
  auto *after = llvm::BasicBlock::Create(context, "rows.end", kernel);
  b.CreateBr(body);
  b.SetInsertPoint(body);
  llvm::PHINode *term = b.CreatePHI(b.getInt64Ty(), 2);
  term->addIncoming(i64(0), before);
  llvm::SmallVector<llvm::PHINode *> phis;
  for (Value *&sum : sums) {
    phis.push_back(b.CreatePHI(sum->getType(), 2));
    phis.back()->addIncoming(sum, before);
    sum = phis.back();
  }
  LeftSide left;
  Staged part;
  from(term, stagedTerms, left, part);
  addTermsOf(p, left, part, firstRow, stagedTerms, sums);
  Value *next = b.CreateAdd(term, i64(stagedTerms));
  term->addIncoming(next, body);
  for (auto [phi, sum] : llvm::zip_equal(phis, sums))
    phi->addIncoming(sum, body);
  b.CreateCondBr(b.CreateICmpSLT(next, i64(p.depth - rest)), body, after);
  b.SetInsertPoint(after);
  from(i64(p.depth - rest), rest, left, part);
  addTermsOf(p, left, part, firstRow, rest, sums);
}

/// Whether a product of more rows than registers hold has its right side put
/// into the scratch once for all of them, so that rows and terms are loops.
/// Registers have to hold a row of that and of sums.
bool KernelEmitter::isStaged(tile::DotOp op) {
  Geometry shape = geometry(op.getResult());
  int64_t depth = geometry(op.getRhs()).rows;
  auto sum = llvm::cast<mlir::RankedTensorType>(op.getResult().getType());
  if (!sum.getElementType().isF32() || shape.inner % lanes != 0 ||
      shape.rows * shape.chunks() <= accumulators() ||
      2 * shape.chunks() > accumulators() || depth < 2 * stagedTerms ||
      depth * shape.chunks() < accumulators()) // registers hold the right side
    return false;
  auto load = op.getLhs().getDefiningOp<tile::LoadOp>();
  std::optional<unsigned> axis = load ? axisInPlace(load) : std::nullopt;
  // It is put into the scratch, too; or a list of where each term begins is.
  if (!axis || *axis == 0)
    return true;
  auto offsets = offsetsAlong(plan(tile::AccessOp::get(load)).offset, 1, depth,
                              load.getContext());
  for (int64_t k = 1; k < depth; ++k)
    if ((*offsets)[k] != k * (*offsets)[1])
      return false;
  return true;
}

/// What products of a region take as their right side from outside: in the
/// scratch once, where all of them would put it there.
bool KernelEmitter::stageCaptured(mlir::Value tile, mlir::Operation *region) {
  tile::DotOp dot;
  for (mlir::OpOperand &use : tile.getUses()) {
    dot = llvm::dyn_cast<tile::DotOp>(use.getOwner());
    if (!dot || dot.getRhs() != tile || dot.getLhs() == tile ||
        !region->isAncestor(dot) || !isStaged(dot))
      return false;
  }
  scopes.back().rights[tile] = stageRight(
      tile, llvm::cast<mlir::RankedTensorType>(dot.getResult().getType())
                .getElementType());
  return true;
}

/// What a loop carries that is the sums of a product, perhaps scaled first.
static mlir::Value carriedSums(mlir::Value sums) {
  mlir::Operation *scaled = sums.getDefiningOp();
  if (!scaled || !sums.hasOneUse() ||
      !mlir::OpTrait::hasElementwiseMappableTraits(scaled))
    return sums;
  for (mlir::Value operand : scaled->getOperands())
    if (llvm::isa<mlir::BlockArgument>(operand) && operand.hasOneUse() &&
        operand.getType() == sums.getType())
      return operand;
  return sums;
}

/// Whether such a product adds to what a loop carries.
bool KernelEmitter::addsInPlace(mlir::scf::ForOp loop,
                                mlir::BlockArgument carried) {
  if (!carried.hasOneUse() || !tile::isTile(carried))
    return false;
  auto dot = llvm::dyn_cast_or_null<tile::DotOp>(
      loop.getTiedLoopYieldedValue(carried)->get().getDefiningOp());
  return dot && dot->getBlock() == loop.getBody() &&
         dot.getResult().hasOneUse() &&
         dot.getAccumulator().getType() == carried.getType() &&
         carriedSums(dot.getAccumulator()) == carried && isStaged(dot);
}

std::optional<KernelEmitter::Parked>
KernelEmitter::findParked(mlir::Value tile) {
  for (Scope &scope : llvm::reverse(scopes))
    if (auto found = scope.parked.find(tile); found != scope.parked.end())
      return found->second;
  return std::nullopt;
}

/// The right side of a product, in the type of the sums, in the scratch.
KernelEmitter::Staged KernelEmitter::stageRight(mlir::Value tile,
                                                mlir::Type sum) {
  for (Scope &scope : scopes)
    if (auto found = scope.rights.find(tile); found != scope.rights.end())
      return found->second;
  Geometry right = geometry(tile);
  mlir::Type element =
      llvm::cast<mlir::RankedTensorType>(tile.getType()).getElementType();
  int64_t bytes = lanes * memoryBytes(sum), rowBytes = right.chunks() * bytes;
  Staged staged{allocateScratch(right.rows * rowBytes), rowBytes};
  scopes.emplace_back();
  for (int64_t k = 0; k < right.rows; ++k)
    for (int64_t c = 0; c < right.chunks(); ++c)
      b.CreateAlignedStore(
          toAccumulator(piece(tile, k, c), element, sum),
          b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), staged.base,
                                       k * rowBytes + c * bytes),
          llvm::Align(bytes));
  scopes.pop_back();
  return staged;
}

/// Sums to add to, in the scratch: where a loop has parked them, which first
/// are scaled there, or else in a place of their own.
KernelEmitter::Parked KernelEmitter::parkSums(mlir::Value sums) {
  mlir::Value carried = carriedSums(sums);
  // What was parked outside of this loop or branch is read again in it.
  auto &here = scopes.back().parked;
  auto parked = here.find(carried);
  if (parked == here.end() || !sums.hasOneUse())
    return park(allParts(sums));
  Parked place = parked->second;
  Geometry shape = geometry(sums);
  for (int64_t i = 0; carried != sums && i < shape.pieces(); ++i)
    storeParked(place, piece(sums, i / shape.chunks(), i % shape.chunks()), i);
  return place;
}

KernelEmitter::Parked KernelEmitter::addStaged(tile::DotOp op, Product p) {
  Geometry shape = geometry(op.getResult());
  // Registers hold sums, a row of the right side, and an element of the left.
  int64_t chunks = shape.chunks(), registers = accumulators() - chunks,
          blocks = llvm::divideCeil(shape.rows * chunks, registers),
          blockRows = llvm::divideCeil(shape.rows, blocks);
  Staged staged = stageRight(op.getRhs(), p.sum);
  // Sums wait in the scratch: LLVM would spill them inside the loops.
  Parked sums = parkSums(op.getAccumulator());
  if (p.left.axis == 0) {
    p.starts = allocateScratch(p.depth * sizeof(void *));
    for (auto [k, start] : llvm::enumerate(p.left.starts))
      b.CreateAlignedStore(
          start, b.CreateConstInBoundsGEP1_64(b.getPtrTy(), p.starts, k),
          llvm::Align(sizeof(void *)));
  }
  for (int64_t first = 0; first < shape.rows; first += blockRows) {
    int64_t last = std::min(first + blockRows, shape.rows);
    llvm::SmallVector<Value *> own;
    for (int64_t i = first * chunks; i < last * chunks; ++i)
      own.push_back(loadParked(sums, i));
    addRows(p, staged, first, own);
    storeParked(sums, own, first * chunks);
  }
  return sums;
}
