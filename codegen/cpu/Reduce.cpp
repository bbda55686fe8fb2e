// Reductions. Along a leading axis, pieces are combined with pieces. Along the
// innermost axis, each row becomes one vector first, then the vectors of many
// rows are folded together: every step halves the lanes of each row and joins
// two rows, so the last vector holds a row in each lane.
#include "codegen/cpu/KernelEmitter.h"

using namespace charonia;
using namespace charonia::cpu;

using Values = llvm::SmallVector<llvm::Value *>;

static int64_t widthOf(llvm::Value *value) {
  auto type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return type ? type->getNumElements() : 1;
}

Values KernelEmitter::combine(mlir::Block &block, llvm::ArrayRef<Value *> left,
                              llvm::ArrayRef<Value *> right) {
  llvm::DenseMap<mlir::Value, Value *> values;
  for (auto [i, value] : llvm::enumerate(left))
    values[block.getArgument(i)] = value;
  for (auto [i, value] : llvm::enumerate(right))
    values[block.getArgument(left.size() + i)] = value;
  int64_t width = widthOf(left[0]);
  auto operand = [&](mlir::Value value) {
    Value *found = values.lookup(value);
    return found ? found : splat(scalar(value), width);
  };
  for (mlir::Operation &inner : block.without_terminator()) {
    Values operands;
    for (mlir::Value value : inner.getOperands())
      operands.push_back(operand(value));
    values[inner.getResult(0)] = emitElementwise(&inner, operands, width);
  }
  Values results;
  for (mlir::Value value : block.getTerminator()->getOperands())
    results.push_back(operand(value));
  return results;
}

/// Lanes [start, start + count) of every group of `group` lanes of the operands
/// behind each other.
static Values takeLanes(llvm::IRBuilder<> &b, const Values &first,
                        const Values *second, int64_t group, int64_t start,
                        int64_t count) {
  int64_t width = widthOf(first[0]) * (second ? 2 : 1);
  llvm::SmallVector<int> mask;
  for (int64_t base = 0; base < width; base += group)
    for (int64_t i = 0; i < count; ++i)
      mask.push_back(base + start + i);
  Values result;
  for (auto [i, value] : llvm::enumerate(first)) {
    if (mask.size() == 1) {
      result.push_back(b.CreateExtractElement(value, mask[0]));
      continue;
    }
    result.push_back(second ? b.CreateShuffleVector(value, (*second)[i], mask)
                            : b.CreateShuffleVector(value, mask));
  }
  return result;
}

/// One row along the innermost axis as one vector, every lane of which counts.
Values KernelEmitter::reduceRow(tile::ReduceOp op, int64_t row) {
  Geometry shape = geometry(op.getInputs()[0]);
  auto pieces = [&](int64_t chunk) {
    Values values;
    for (mlir::Value input : op.getInputs())
      values.push_back(piece(input, row, chunk));
    return values;
  };
  Values sum = pieces(0);
  int64_t width = shape.width(0);
  // A few chains hide the latency of the combiner.
  llvm::SmallVector<Values> chains;
  int64_t full = shape.inner / lanes;
  for (int64_t chunk = 0; chunk < full; ++chunk) {
    if (chunk < 4)
      chains.push_back(pieces(chunk));
    else
      chains[chunk % 4] = combine(op, chains[chunk % 4], pieces(chunk));
  }
  if (full > 0) {
    while (chains.size() > 1) {
      Values last = chains.pop_back_val();
      chains[chains.size() / 2] = combine(op, chains[chains.size() / 2], last);
    }
    sum = chains[0];
  }
  if (full > 0 && full < shape.chunks()) {
    Values tail = pieces(full);
    int64_t valid = shape.valid(full), tailWidth = shape.width(full);
    llvm::SmallVector<int> mask;
    for (int64_t i = 0; i < lanes; ++i)
      mask.push_back(std::min(i, tailWidth - 1));
    for (Value *&value : tail)
      value = tailWidth == 1 ? splat(value, lanes)
                             : b.CreateShuffleVector(value, mask);
    Values both = combine(op, sum, tail);
    for (auto [i, value] : llvm::enumerate(sum))
      value = b.CreateSelect(laneMask(valid, lanes), both[i], value);
  } else if (full == 0 && shape.valid(0) < width) {
    int64_t half = width / 2;
    Values low = takeLanes(b, sum, nullptr, width, 0, half);
    Values high = takeLanes(b, sum, nullptr, width, half, half);
    Values both = combine(op, low, high);
    for (auto [i, value] : llvm::enumerate(sum))
      value = b.CreateSelect(laneMask(shape.valid(0) - half, half), both[i],
                             low[i]);
  }
  return sum;
}

void KernelEmitter::reduceInnermost(tile::ReduceOp op, int64_t row,
                                    int64_t chunk) {
  Geometry from = geometry(op.getInputs()[0]),
           to = geometry(op.getResults()[0]);
  int64_t count = to.width(chunk);
  llvm::SmallVector<int64_t> at = to.coordinates(row);
  if (!to.shape.empty())
    at.push_back(0);
  llvm::SmallVector<Values> rows;
  for (int64_t i = 0; i < count; ++i) {
    if (i >= to.valid(chunk)) {
      rows.push_back(rows[0]);
      continue;
    }
    if (!at.empty())
      at.back() = chunk * lanes + i;
    llvm::SmallVector<int64_t> own(at);
    own.push_back(0);
    rows.push_back(reduceRow(op, from.row(own)));
  }
  int64_t group = widthOf(rows[0][0]); // lanes of each row in a vector
  for (; rows.size() > 1 && group > 1; group /= 2) {
    llvm::SmallVector<Values> next;
    for (size_t i = 0; i < rows.size(); i += 2)
      next.push_back(combine(
          op, takeLanes(b, rows[i], &rows[i + 1], group, 0, group / 2),
          takeLanes(b, rows[i], &rows[i + 1], group, group / 2, group / 2)));
    rows = std::move(next);
  }
  for (; group > 1; group /= 2)
    rows[0] =
        combine(op, takeLanes(b, rows[0], nullptr, group, 0, group / 2),
                takeLanes(b, rows[0], nullptr, group, group / 2, group / 2));
  for (; rows.size() > 1;) { // more rows than a vector of one row has lanes
    llvm::SmallVector<Values> next;
    for (size_t i = 0; i < rows.size(); i += 2) {
      Values joined;
      for (auto [a, c] : llvm::zip_equal(rows[i], rows[i + 1])) {
        int64_t width = widthOf(a);
        if (width == 1) {
          Value *pair = llvm::PoisonValue::get(
              llvm::FixedVectorType::get(a->getType(), 2));
          joined.push_back(b.CreateInsertElement(
              b.CreateInsertElement(pair, a, uint64_t(0)), c, uint64_t(1)));
          continue;
        }
        llvm::SmallVector<int> mask;
        for (int64_t j = 0; j < 2 * width; ++j)
          mask.push_back(j);
        joined.push_back(b.CreateShuffleVector(a, c, mask));
      }
      next.push_back(std::move(joined));
    }
    rows = std::move(next);
  }
  for (auto [result, value] : llvm::zip_equal(op.getResults(), rows[0]))
    setPiece(result, row * to.chunks() + chunk, value);
}

Value *KernelEmitter::reducePiece(tile::ReduceOp op, unsigned result,
                                  int64_t row, int64_t chunk) {
  Geometry from = geometry(op.getInputs()[0]),
           to = geometry(op.getResults()[0]);
  int64_t axis = op.getAxis(), rank = from.shape.size();
  int64_t index = row * to.chunks() + chunk;
  if (axis == rank - 1) {
    reduceInnermost(op, row, chunk);
    return findPiece(op.getResult(result), index);
  }
  llvm::SmallVector<int64_t> at = to.coordinates(row);
  at.insert(at.begin() + axis, 0);
  llvm::SmallVector<Values> chains;
  for (int64_t i = 0; i < from.shape[axis]; ++i) {
    at[axis] = i;
    Values values;
    for (mlir::Value input : op.getInputs())
      values.push_back(piece(input, from.row(at), chunk));
    if (i < 4)
      chains.push_back(std::move(values));
    else
      chains[i % 4] = combine(op, chains[i % 4], values);
  }
  while (chains.size() > 1) {
    Values last = chains.pop_back_val();
    chains[chains.size() / 2] = combine(op, chains[chains.size() / 2], last);
  }
  for (auto [value, part] : llvm::zip_equal(op.getResults(), chains[0]))
    setPiece(value, index, part);
  return chains[0][result];
}
