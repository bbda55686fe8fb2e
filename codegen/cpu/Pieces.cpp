// Tiles as pieces: demand, broadcast, transpose, constants.
#include "codegen/cpu/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace charonia;
using namespace charonia::cpu;
using tile::isTile;

/// Steps of a chain from which on neighbours take them together, how many of
/// them, and at how many steps a chain ends.
static constexpr size_t longChain = 12, mostOfChain = 256;
static constexpr int64_t atOnce = 4;

Geometry::Geometry(mlir::Type tile, int64_t lanes)
    : shape(llvm::cast<mlir::RankedTensorType>(tile).getShape()), lanes(lanes) {
  if (shape.empty())
    return;
  for (int64_t extent : shape.drop_back())
    rows *= extent;
  inner = shape.back();
}

llvm::SmallVector<int64_t> Geometry::coordinates(int64_t row) const {
  llvm::SmallVector<int64_t> result(shape.empty() ? 0 : shape.size() - 1);
  for (size_t i = result.size(); i-- > 0;) {
    result[i] = row % shape[i];
    row /= shape[i];
  }
  return result;
}

int64_t Geometry::row(llvm::ArrayRef<int64_t> coordinates) const {
  int64_t row = 0;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    row = row * shape[i] + coordinates[i];
  return row;
}

Value *KernelEmitter::findPiece(mlir::Value tile, int64_t index) {
  for (Scope &scope : llvm::reverse(scopes)) {
    auto found = scope.pieces.find(tile);
    if (found != scope.pieces.end() && found->second[index])
      return found->second[index];
  }
  return nullptr;
}

void KernelEmitter::setPiece(mlir::Value tile, int64_t index, Value *value) {
  auto &pieces = scopes.back().pieces[tile];
  if (pieces.empty())
    pieces.resize(geometry(tile).pieces());
  pieces[index] = value;
}

Value *KernelEmitter::piece(mlir::Value tile, int64_t row, int64_t chunk) {
  int64_t index = row * geometry(tile).chunks() + chunk;
  if (Value *found = findPiece(tile, index))
    return found;
  computeTogether(tile, index);
  if (Value *found = findPiece(tile, index))
    return found;
  Value *value = computePiece(tile, row, chunk);
  setPiece(tile, index, value);
  return value;
}

/// What is computed element by element for a tile out of tiles of its shape, in
/// order, its own operator last.
llvm::ArrayRef<mlir::Value> KernelEmitter::arithmeticOf(mlir::Value tile) {
  auto [known, isNew] = chains.try_emplace(tile);
  if (!isNew)
    return known->second;
  llvm::SetVector<mlir::Operation *> ops;
  mlir::Block *block = tile.getParentBlock();
  auto add = [&](mlir::Value value) {
    mlir::Operation *op = value.getDefiningOp();
    if (op && op->getBlock() == block && isTile(value) &&
        op->getNumResults() == 1 && op->getNumOperands() > 0 &&
        mlir::OpTrait::hasElementwiseMappableTraits(op) &&
        geometry(value).shape == geometry(tile).shape)
      ops.insert(op);
  };
  add(tile);
  for (size_t i = 0; i < ops.size() && i < mostOfChain; ++i)
    for (mlir::Value operand : ops[i]->getOperands())
      add(operand);
  auto order = ops.takeVector();
  llvm::sort(order, [](mlir::Operation *a, mlir::Operation *b) {
    return a->isBeforeInBlock(b);
  });
  for (mlir::Operation *op : order)
    known->second.push_back(op->getResult(0));
  return known->second;
}

/// A chain of many steps waits for each of them, and a machine looks for other
/// work not much further ahead than to its end: so some neighbours take each
/// step together.
void KernelEmitter::computeTogether(mlir::Value tile, int64_t index) {
  if (inChain || arithmeticOf(tile).size() < longChain)
    return;
  Geometry shape = geometry(tile);
  int64_t first = index / atOnce * atOnce,
          last = std::min(first + atOnce, shape.pieces());
  inChain = true;
  for (mlir::Value value : arithmeticOf(tile))
    for (int64_t i = first; i < last; ++i)
      piece(value, i / shape.chunks(), i % shape.chunks());
  inChain = false;
}

Value *KernelEmitter::computePiece(mlir::Value tile, int64_t row,
                                   int64_t chunk) {
  Geometry shape = geometry(tile);
  int64_t width = shape.width(chunk);
  int64_t index = row * shape.chunks() + chunk;
  if (std::optional<Parked> parked = findParked(tile))
    return loadParked(*parked, index);
  mlir::Operation *op = tile.getDefiningOp();
  assert(op && "what a loop carries is written when the loop is entered");
  using namespace mlir;
  return llvm::TypeSwitch<Operation *, Value *>(op)
      .Case<tile::LoadOp>([&](auto load) {
        int64_t dense = denseAxis(tile::AccessOp::get(load));
        if (dense < 0)
          return loadPiece(load, row, chunk);
        loadTransposed(load, dense, row, chunk);
        return findPiece(tile, index);
      })
      .Case<tile::SplatOp>(
          [&](auto op) { return splat(scalar(op.getValue()), width); })
      .Case<tile::BroadcastOp>(
          [&](auto op) { return broadcastPiece(op, row, chunk); })
      .Case<tile::TransposeOp>([&](auto op) {
        transposeBlock(op, row, chunk);
        return findPiece(tile, index);
      })
      .Case<tile::ReduceOp>([&](auto op) {
        return reducePiece(op, cast<OpResult>(tile).getResultNumber(), row,
                           chunk);
      })
      .Case<tile::ScanOp>([&](auto op) {
        return scanPiece(op, cast<OpResult>(tile).getResultNumber(), row,
                         chunk);
      })
      .Case<tile::DotOp>([&](auto op) {
        emitDot(op);
        if (std::optional<Parked> parked = findParked(tile))
          return loadParked(*parked, index);
        return findPiece(tile, index);
      })
      .Case<tile::InBoundsOp>(
          [&](auto op) { return inBoundsPiece(op, row, chunk); })
      .Case<tile::IndexOp>([&](auto op) {
        llvm::SmallVector<int64_t> at = shape.coordinates(row);
        llvm::SmallVector<LaneInt> dims;
        for (int64_t coordinate : at)
          dims.push_back(constantInt(coordinate));
        if (!shape.shape.empty()) {
          at.push_back(0);
          dims.push_back(stepInt(chunk * lanes, width));
        }
        SymbolValues symbols = symbolValues(op.getSymbols(), at, chunk, shape);
        AffineExpr place = simplified(op, op.getMap().getResult(0), shape.shape,
                                      op.getSymbols());
        return widen(evaluate(place, dims, symbols, laneFacts(dims, symbols)),
                     width);
      })
      .Case<arith::ConstantOp>([&](auto op) {
        return constantPiece(cast<DenseElementsAttr>(op.getValue()),
                             op.getType(), row, chunk);
      })
      .Default([&](Operation *op) {
        llvm::SmallVector<Value *> operands;
        for (mlir::Value operand : op->getOperands())
          operands.push_back(llvm::isa<RankedTensorType>(operand.getType())
                                 ? piece(operand, row, chunk)
                                 : scalar(operand));
        return emitElementwise(op, operands, width);
      });
}

Value *KernelEmitter::constantPiece(mlir::DenseElementsAttr attr,
                                    mlir::Type type, int64_t row,
                                    int64_t chunk) {
  Geometry shape(type, lanes);
  mlir::Type element = attr.getElementType();
  auto constant = [&](int64_t position) -> llvm::Constant * {
    llvm::Type *type = elementType(element);
    if (llvm::isa<mlir::FloatType>(element)) {
      llvm::APFloat value = attr.isSplat()
                                ? attr.getSplatValue<llvm::APFloat>()
                                : attr.getValues<llvm::APFloat>()[position];
      if (type->isIntegerTy())
        return llvm::ConstantInt::get(type, value.bitcastToAPInt());
      return llvm::ConstantFP::get(type, value);
    }
    llvm::APInt value = attr.isSplat()
                            ? attr.getSplatValue<llvm::APInt>()
                            : attr.getValues<llvm::APInt>()[position];
    return llvm::ConstantInt::get(type, value);
  };
  int64_t width = shape.width(chunk), start = row * shape.inner + chunk * lanes;
  if (attr.isSplat() || width == 1)
    return splat(constant(start), width);
  llvm::SmallVector<llvm::Constant *> values;
  for (int64_t i = 0; i < width;
       ++i) // the last value once more in the lanes past the extent
    values.push_back(constant(start + std::min(i, shape.valid(chunk) - 1)));
  return llvm::ConstantVector::get(values);
}

/// One element as a scalar.
Value *KernelEmitter::element(mlir::Value tile,
                              llvm::ArrayRef<int64_t> coordinates) {
  Geometry shape = geometry(tile);
  int64_t inner = coordinates.empty() ? 0 : coordinates.back();
  int64_t row = shape.row(coordinates), chunk = inner / lanes;
  // An element of memory that nobody wanted as a vector so far is read alone:
  // the load broadcasts it.
  if (auto load = tile.getDefiningOp<tile::LoadOp>())
    if (!findPiece(tile, row * shape.chunks() + chunk) &&
        hasScalarSymbols(load)) {
      bool onlyElements =
          llvm::all_of(tile.getUsers(), [](mlir::Operation *user) {
            return llvm::isa<tile::BroadcastOp>(user);
          });
      if (onlyElements) {
        mlir::Type type = load.getType().getElementType();
        return loadScalar(load,
                          elementPointer(load, coordinates, memoryBytes(type)));
      }
    }
  return lane(piece(tile, row, chunk), inner % lanes);
}

Value *KernelEmitter::broadcastPiece(tile::BroadcastOp op, int64_t row,
                                     int64_t chunk) {
  Geometry to = geometry(op.getResult()), from = geometry(op.getInput());
  int64_t width = to.width(chunk);
  llvm::SmallVector<int64_t> at = to.coordinates(row), own;
  bool keepsInner = false;
  for (auto [i, axis] : llvm::enumerate(op.getAxes())) {
    bool innermost = axis + 1 == (int64_t)to.shape.size();
    if (innermost && from.shape[i] == to.shape[axis])
      keepsInner = true;
    own.push_back(innermost || from.shape[i] == 1 ? 0 : at[axis]);
  }
  if (keepsInner)
    return piece(op.getInput(), from.row(own), chunk);
  return splat(element(op.getInput(), own), width);
}

/// Writes every piece of the result that the block around (row, chunk) holds.
void KernelEmitter::transposeBlock(tile::TransposeOp op, int64_t row,
                                   int64_t chunk) {
  mlir::Value input = op.getInput(), result = op.getResult();
  Geometry to = geometry(result), from = geometry(input);
  llvm::ArrayRef<int64_t> permutation = op.getPermutation();
  int64_t rank = permutation.size();
  llvm::SmallVector<int64_t> at = to.coordinates(row);
  auto inputRow = [&](llvm::ArrayRef<int64_t> resultAt) {
    llvm::SmallVector<int64_t> own(rank, 0);
    for (int64_t i = 0; i < rank; ++i)
      own[permutation[i]] = i < (int64_t)resultAt.size() ? resultAt[i] : 0;
    return own;
  };
  if (rank < 2 || permutation.back() == rank - 1) {
    int64_t index = row * to.chunks() + chunk;
    setPiece(result, index, piece(input, from.row(inputRow(at)), chunk));
    return;
  }
  // The result's innermost axis is the input's axis `outer`; the input's
  // innermost axis is the result's axis `along`.
  int64_t outer = permutation.back();
  int64_t along = llvm::find(permutation, rank - 1) - permutation.begin();
  int64_t group = at[along] / lanes;
  llvm::SmallVector<Value *> rows;
  int64_t count = to.valid(chunk);
  for (int64_t i = 0; i < count; ++i) {
    llvm::SmallVector<int64_t> own = inputRow(at);
    own[outer] = chunk * lanes + i;
    rows.push_back(piece(input, from.row(own), group));
  }
  int64_t height = to.width(chunk);
  while ((int64_t)rows.size() < height)
    rows.push_back(llvm::PoisonValue::get(rows[0]->getType()));
  llvm::SmallVector<Value *> columns =
      transposeVectors(rows, from.width(group));
  for (int64_t i = 0; i < from.valid(group); ++i) {
    at[along] = group * lanes + i;
    setPiece(result, to.row(at) * to.chunks() + chunk, columns[i]);
  }
}

/// n vectors of w elements to w vectors of n elements, n and w powers of two.
/// Each round interleaves the first half of the vectors with the second, which
/// rotates the bits of (row, column) by one.
llvm::SmallVector<Value *>
KernelEmitter::transposeVectors(llvm::ArrayRef<Value *> rows, int64_t width) {
  int64_t count = rows.size();
  llvm::SmallVector<Value *> current(rows);
  if (width == 1) {
    if (count == 1)
      return current;
    Value *column = llvm::PoisonValue::get(
        llvm::FixedVectorType::get(rows[0]->getType(), count));
    for (int64_t i = 0; i < count; ++i)
      column = b.CreateInsertElement(column, rows[i], i);
    return {column};
  }
  llvm::SmallVector<int> low, high;
  for (int64_t i = 0; i < width / 2; ++i) {
    low.append({int(i), int(width + i)});
    high.append({int(width / 2 + i), int(width + width / 2 + i)});
  }
  for (int64_t round = 1; round < count; round *= 2) {
    llvm::SmallVector<Value *> next;
    for (int64_t i = 0; i < count / 2; ++i) {
      Value *a = current[i], *c = current[i + count / 2];
      next.push_back(b.CreateShuffleVector(a, c, low));
      next.push_back(b.CreateShuffleVector(a, c, high));
    }
    current = std::move(next);
  }
  if (count == width)
    return current;
  llvm::SmallVector<Value *> columns;
  if (count < width) { // several columns in a vector
    for (Value *vector : current)
      for (int64_t start = 0; start < width; start += count) {
        if (count == 1) {
          columns.push_back(b.CreateExtractElement(vector, start));
          continue;
        }
        llvm::SmallVector<int> part;
        for (int64_t i = 0; i < count; ++i)
          part.push_back(start + i);
        columns.push_back(b.CreateShuffleVector(vector, part));
      }
    return columns;
  }
  int64_t parts = count / width; // several vectors in a column
  for (int64_t i = 0; i < count; i += parts) {
    llvm::SmallVector<Value *> joined(current.begin() + i,
                                      current.begin() + i + parts);
    while (joined.size() > 1) {
      llvm::SmallVector<Value *> next;
      int64_t half = llvm::cast<llvm::FixedVectorType>(joined[0]->getType())
                         ->getNumElements();
      llvm::SmallVector<int> both;
      for (int64_t j = 0; j < 2 * half; ++j)
        both.push_back(j);
      for (size_t j = 0; j < joined.size(); j += 2)
        next.push_back(b.CreateShuffleVector(joined[j], joined[j + 1], both));
      joined = std::move(next);
    }
    columns.push_back(joined[0]);
  }
  return columns;
}
