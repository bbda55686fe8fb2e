// Products of tiles by outer products: for each k, a row of the right side as vectors
// and one element of the left side at a time, broadcast from memory, into accumulators
// that stay in registers. So the left side wants to lie in memory: a loaded tile is
// read where it lies, any other is put into the scratch once.
#include "codegen/cpu/KernelEmitter.h"

using namespace charonia;
using namespace charonia::cpu;

/// Whether the elements of a loaded tile can be read in place: a constant step along
/// k, checks that a row shares, and a type that needs no conversion.
bool KernelEmitter::readsInPlace(tile::LoadOp load) {
  mlir::Type element = load.getType().getElementType();
  if (element.isF16() || element.isBF16() || element.isInteger(1) || !hasScalarSymbols(load))
    return false;
  const AccessPlan &whole = plan(tile::AccessOp::get(load));
  return whole.stride && llvm::all_of(whole.checks, [](const AccessPlan::Check &check) {
           return check.coefficient == 0;
         });
}

/// Makes the left side of a product readable element by element: at once if its memory
/// may change before the product.
void KernelEmitter::prepareLeft(mlir::Value tile, bool memoryMayChange) {
  for (Scope &scope : scopes)
    if (scope.staged.contains(tile))
      return;
  if (auto load = tile.getDefiningOp<tile::LoadOp>())
    if (readsInPlace(load) && (!memoryMayChange || load.getIndependent()))
      return;
  Geometry shape = geometry(tile);
  mlir::Type element = llvm::cast<mlir::RankedTensorType>(tile.getType()).getElementType();
  bool half = element.isF16() || element.isBF16();
  llvm::Type *type = half ? b.getFloatTy() : memoryType(element);
  int64_t bytes = llvm::divideCeil(type->getPrimitiveSizeInBits().getFixedValue(), 8);
  int64_t rowBytes = llvm::alignTo(shape.inner, lanes) * bytes;
  Value *base = allocateScratch(shape.rows * rowBytes);
  for (int64_t row = 0; row < shape.rows; ++row)
    for (int64_t chunk = 0; chunk < shape.chunks(); ++chunk) {
      Value *value = piece(tile, row, chunk);
      value = half ? toF32(value, element) : toMemory(value, element);
      Value *address = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base,
                                                    row * rowBytes + chunk * lanes * bytes);
      b.CreateAlignedStore(value, address, llvm::Align(bytes));
    }
  scopes.back().staged[tile] = {base, rowBytes};
}

/// An operand's elements in the type of the accumulator.
Value *KernelEmitter::toAccumulator(Value *value, mlir::Type from, mlir::Type to) {
  if (from == to)
    return value;
  if (llvm::isa<mlir::FloatType>(to))
    return fpExtend(value, from, to);
  llvm::Type *type = elementType(to);
  if (auto vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType()))
    type = llvm::FixedVectorType::get(type, vector->getNumElements());
  return b.CreateSExt(value, type);
}

void KernelEmitter::emitDot(tile::DotOp op) {
  mlir::Value left = op.getLhs(), right = op.getRhs(), result = op.getResult();
  Geometry rightShape = geometry(right), shape = geometry(result);
  mlir::Type operandType = llvm::cast<mlir::RankedTensorType>(left.getType()).getElementType();
  mlir::Type type = llvm::cast<mlir::RankedTensorType>(result.getType()).getElementType();
  int64_t depth = rightShape.rows;

  prepareLeft(left, /*memoryMayChange=*/false);
  const Staged *staged = nullptr;
  for (Scope &scope : scopes)
    if (auto found = scope.staged.find(left); found != scope.staged.end())
      staged = &found->second;
  bool half = operandType.isF16() || operandType.isBF16();
  mlir::Type leftType = staged && half ? mlir::Type(mlir::Float32Type::get(left.getContext()))
                                       : operandType;
  auto load = left.getDefiningOp<tile::LoadOp>();
  int64_t bytes = memoryBytes(leftType);
  int64_t stride = staged ? 1 : *plan(tile::AccessOp::get(load)).stride;
  llvm::SmallVector<Value *> rows;
  for (int64_t m = 0; m < shape.rows; ++m)
    rows.push_back(staged ? b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), staged->base,
                                                         m * staged->rowBytes)
                          : elementPointer(load, {m, 0},
                                           ((depth - 1) * std::abs(stride) + 1) * bytes));
  auto leftElement = [&](int64_t m, int64_t k) {
    Value *address = b.CreateConstGEP1_64(b.getInt8Ty(), rows[m], k * stride * bytes);
    Value *value = staged ? fromMemory(b.CreateAlignedLoad(memoryType(leftType), address,
                                                           llvm::Align(bytes)),
                                       leftType)
                          : loadScalar(load, address);
    return toAccumulator(value, leftType, type);
  };

  llvm::SmallVector<llvm::SmallVector<Value *>> sums(shape.rows);
  for (int64_t m = 0; m < shape.rows; ++m)
    for (int64_t c = 0; c < shape.chunks(); ++c)
      sums[m].push_back(piece(op.getAccumulator(), m, c));
  for (int64_t k = 0; k < depth; ++k) {
    llvm::SmallVector<Value *> row;
    for (int64_t c = 0; c < shape.chunks(); ++c)
      row.push_back(toAccumulator(piece(right, k, c), operandType, type));
    for (int64_t m = 0; m < shape.rows; ++m) {
      Value *element = leftElement(m, k);
      for (int64_t c = 0; c < shape.chunks(); ++c) {
        Value *a = splat(element, shape.width(c));
        Value *&sum = sums[m][c];
        sum = llvm::isa<mlir::FloatType>(type)
                  ? b.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {a, row[c], sum})
                  : b.CreateAdd(sum, b.CreateMul(a, row[c]));
      }
    }
  }
  for (int64_t m = 0; m < shape.rows; ++m)
    for (int64_t c = 0; c < shape.chunks(); ++c)
      setPiece(result, m * shape.chunks() + c, sums[m][c]);
}
