// Scans. Along a leading axis, pieces are combined with the pieces before them.
// Along the innermost axis, the lanes of a vector are combined with those 1, 2,
// 4, ... before them, and then with the last lane of the vector before: that
// chain is one combination long for each vector.
//
// Sums of neighbouring floats may overflow where those from the beginning are
// finite. So a vector of sums with a lane that is not finite is added up again
// in the order of its lanes. Products are taken in this order to begin with:
// those of neighbours lose digits below the least normal number, too.
#include "codegen/cpu/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/IR/MDBuilder.h"

using namespace charonia;
using namespace charonia::cpu;

template <typename Op> static bool combinesWith(mlir::Block &combiner) {
  return llvm::any_of(combiner,
                      [](mlir::Operation &op) { return llvm::isa<Op>(op); });
}

/// `result`, a scan of which the mask `valid` counts; `inOrder` writes the same
/// lane after lane, for when one of them is not finite.
static Value *unlessFinite(llvm::IRBuilderBase &b, Value *result, Value *valid,
                           llvm::function_ref<Value *()> inOrder) {
  Value *isBad =
      b.CreateFCmpUEQ(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, result),
                      llvm::ConstantFP::getInfinity(result->getType()));
  isBad = b.CreateOrReduce(b.CreateSelect(
      valid, isBad, llvm::Constant::getNullValue(isBad->getType())));
  auto *before = b.GetInsertBlock();
  llvm::Function *kernel = before->getParent();
  auto *again =
      llvm::BasicBlock::Create(b.getContext(), "scan.in.order", kernel);
  auto *after = llvm::BasicBlock::Create(b.getContext(), "scanned", kernel);
  b.CreateCondBr(isBad, again, after,
                 llvm::MDBuilder(b.getContext()).createUnlikelyBranchWeights());
  b.SetInsertPoint(again);
  Value *ordered = inOrder();
  auto *end = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(after);
  llvm::PHINode *phi = b.CreatePHI(result->getType(), 2);
  phi->addIncoming(result, before);
  phi->addIncoming(ordered, end);
  return phi;
}

/// The vector of which every lane has been combined with the lanes before it.
static Value *scanLanes(llvm::IRBuilderBase &b, Value *sum, int64_t width,
                        llvm::function_ref<Value *(Value *, Value *)> combine) {
  for (int64_t step = 1; step < width; step *= 2) {
    llvm::SmallVector<int> before;
    llvm::SmallVector<llvm::Constant *> has;
    for (int64_t i = 0; i < width; ++i) {
      before.push_back(i < step ? i : i - step);
      has.push_back(b.getInt1(i >= step));
    }
    Value *both = combine(b.CreateShuffleVector(sum, before), sum);
    sum = b.CreateSelect(llvm::ConstantVector::get(has), both, sum);
  }
  return sum;
}

/// ... and with the carry.
Value *KernelEmitter::scanInnermost(tile::ScanOp op, int64_t row,
                                    int64_t chunk) {
  mlir::Block &combiner = op.getCombiner().front();
  Geometry shape = geometry(op.getInput());
  int64_t width = shape.width(chunk), valid = shape.valid(chunk);
  Value *input = piece(op.getInput(), row, chunk);
  Value *last = chunk > 0
                    ? lane(piece(op.getResult(), row, chunk - 1), lanes - 1)
                    : element(op.getCarry(), shape.coordinates(row));
  auto both = [&](Value *x, Value *y) {
    return combine(combiner, {x}, {y})[0];
  };
  auto inOrder = [&] {
    Value *running = last, *ordered = input;
    for (int64_t i = 0; i < valid; ++i) {
      running = both(running, lane(input, i));
      ordered =
          width == 1 ? running : b.CreateInsertElement(ordered, running, i);
    }
    return ordered;
  };
  if (width == 1 || combinesWith<mlir::arith::MulFOp>(combiner))
    return inOrder();
  Value *result = both(splat(last, width), scanLanes(b, input, width, both));
  return combinesWith<mlir::arith::AddFOp>(combiner)
             ? unlessFinite(b, result, laneMask(valid, width), inOrder)
             : result;
}

/// The last elements along the axis.
Value *KernelEmitter::totalPiece(tile::ScanOp op, int64_t row, int64_t chunk) {
  Geometry from = geometry(op.getInput()), to = geometry(op.getTotal());
  llvm::SmallVector<int64_t> at = to.coordinates(row);
  int64_t axis = op.getAxis(), rank = from.shape.size();
  if (axis < rank - 1) {
    at.insert(at.begin() + axis, from.shape[axis] - 1);
    return piece(op.getResult(), from.row(at), chunk);
  }
  auto total = [&](int64_t lastRow) {
    int64_t last = from.chunks() - 1;
    return lane(piece(op.getResult(), lastRow, last), from.valid(last) - 1);
  };
  if (to.shape.empty())
    return total(0);
  int64_t width = to.width(chunk);
  Value *result = llvm::PoisonValue::get(
      pieceType(elementType(op.getTotal().getType().getElementType()), width));
  at.append(2, 0);
  for (int64_t i = 0; i < to.valid(chunk); ++i) {
    at[rank - 2] = chunk * lanes + i;
    Value *one = total(from.row(at));
    result = width == 1 ? one : b.CreateInsertElement(result, one, i);
  }
  return result;
}

Value *KernelEmitter::scanPiece(tile::ScanOp op, unsigned result, int64_t row,
                                int64_t chunk) {
  if (result == 1)
    return totalPiece(op, row, chunk);
  Geometry shape = geometry(op.getInput());
  int64_t axis = op.getAxis(), rank = shape.shape.size();
  if (axis == rank - 1)
    return scanInnermost(op, row, chunk);
  llvm::SmallVector<int64_t> at = shape.coordinates(row), outer(at);
  outer.erase(outer.begin() + axis);
  Value *before;
  if (at[axis] == 0) {
    before = piece(op.getCarry(), geometry(op.getCarry()).row(outer), chunk);
  } else {
    --at[axis];
    before = piece(op.getResult(), shape.row(at), chunk);
  }
  return combine(op.getCombiner().front(), {before},
                 {piece(op.getInput(), row, chunk)})[0];
}
