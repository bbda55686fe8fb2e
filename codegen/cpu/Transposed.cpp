// Loads and stores whose tile runs across memory's rows: pieces along the axis
// that is dense in memory, transposed in registers.
#include "codegen/cpu/KernelEmitter.h"

using namespace charonia;
using namespace charonia::cpu;
using tile::AccessOp;

/// The leading axis that is dense in memory where the innermost is not, if it
/// is worth going along it; -1 otherwise.
int64_t KernelEmitter::denseAxis(const AccessOp &access) {
  int64_t rank = access.tile.getRank();
  constexpr int64_t least = 4; // elements along both axes
  if (rank < 2 || access.tile.getDimSize(rank - 1) < least ||
      !llvm::none_of(
          access.symbols,
          [](mlir::Value symbol) {
            return llvm::isa<mlir::RankedTensorType>(symbol.getType());
          }))
    return -1;
  const AccessPlan &natural = plan(access);
  if (natural.stride && (*natural.stride == 0 || *natural.stride == 1))
    return -1;
  for (int64_t axis = 0; axis + 1 < rank; ++axis)
    if (natural.offset.coefficientOf(axis) == 1 &&
        access.tile.getDimSize(axis) >= least)
      return axis;
  return -1;
}

/// Row of the tile with axes exchanged: `axis` holds `inner`.
static int64_t exchangedRow(const Geometry &shape,
                            llvm::SmallVector<int64_t> at, int64_t axis,
                            int64_t inner) {
  at[axis] = inner;
  int64_t row = 0;
  for (size_t i = 0; i + 1 < shape.shape.size(); ++i)
    row = row * ((int64_t)i == axis ? shape.inner : shape.shape[i]) + at[i];
  return row;
}

/// Loads the block of pieces around (row, chunk).
void KernelEmitter::loadTransposed(tile::LoadOp op, int64_t axis, int64_t row,
                                   int64_t chunk) {
  Geometry shape = geometry(op.getResult());
  llvm::SmallVector<int64_t> at = shape.coordinates(row);
  int64_t group = at[axis] / lanes;
  int64_t count = std::min(lanes, shape.shape[axis] - group * lanes);
  llvm::SmallVector<Value *> rows;
  for (int64_t i = 0; i < shape.valid(chunk); ++i)
    rows.push_back(loadPiece(
        op, exchangedRow(shape, at, axis, chunk * lanes + i), group, axis));
  while ((int64_t)rows.size() < shape.width(chunk))
    rows.push_back(llvm::PoisonValue::get(rows[0]->getType()));
  llvm::SmallVector<Value *> columns =
      transposeVectors(rows, llvm::PowerOf2Ceil(count));
  for (int64_t i = 0; i < count; ++i) {
    at[axis] = group * lanes + i;
    setPiece(op.getResult(), shape.row(at) * shape.chunks() + chunk,
             columns[i]);
  }
}

void KernelEmitter::storeTransposed(tile::StoreOp op, int64_t axis) {
  Geometry shape = geometry(op.getValue());
  for (int64_t row = 0; row < shape.rows; ++row) {
    llvm::SmallVector<int64_t> at = shape.coordinates(row);
    if (at[axis] % lanes != 0)
      continue;
    int64_t group = at[axis] / lanes;
    int64_t count = std::min(lanes, shape.shape[axis] - group * lanes);
    for (int64_t chunk = 0; chunk < shape.chunks(); ++chunk) {
      llvm::SmallVector<Value *> rows;
      for (int64_t i = 0; i < count; ++i) {
        llvm::SmallVector<int64_t> own(at);
        own[axis] += i;
        rows.push_back(piece(op.getValue(), shape.row(own), chunk));
      }
      while (rows.size() < llvm::PowerOf2Ceil(count))
        rows.push_back(llvm::PoisonValue::get(rows[0]->getType()));
      llvm::SmallVector<Value *> columns =
          transposeVectors(rows, shape.width(chunk));
      for (int64_t i = 0; i < shape.valid(chunk); ++i)
        storePiece(op, exchangedRow(shape, at, axis, chunk * lanes + i), group,
                   columns[i], axis);
    }
  }
}
