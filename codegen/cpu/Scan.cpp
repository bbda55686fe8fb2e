// Scans. Along a leading axis, pieces are combined with the pieces before them.
// Along the innermost axis, the lanes of a vector are combined with those 1, 2,
// 4, ... before them, and then with the last lane of the vector before: that
// chain is one combination long for each vector.
#include "codegen/cpu/KernelEmitter.h"

using namespace charonia;
using namespace charonia::cpu;

/// A vector along the axis, of which every lane has been combined with the
/// lanes before it and with the carry.
Value *KernelEmitter::scanInnermost(tile::ScanOp op, int64_t row,
                                    int64_t chunk) {
  mlir::Block &combiner = op.getCombiner().front();
  Geometry shape = geometry(op.getInput());
  int64_t width = shape.width(chunk);
  Value *sum = piece(op.getInput(), row, chunk);
  for (int64_t step = 1; step < width; step *= 2) {
    llvm::SmallVector<int> before;
    llvm::SmallVector<llvm::Constant *> has;
    for (int64_t i = 0; i < width; ++i) {
      before.push_back(i < step ? i : i - step);
      has.push_back(b.getInt1(i >= step));
    }
    Value *both =
        combine(combiner, {b.CreateShuffleVector(sum, before)}, {sum})[0];
    sum = b.CreateSelect(llvm::ConstantVector::get(has), both, sum);
  }
  Value *last = chunk > 0
                    ? lane(piece(op.getResult(), row, chunk - 1), lanes - 1)
                    : element(op.getCarry(), shape.coordinates(row));
  return combine(combiner, {splat(last, width)}, {sum})[0];
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
