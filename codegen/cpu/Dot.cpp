// Products of tiles by outer products: for each k, a row of the right side as
// vectors and one element of the left side at a time, broadcast from memory,
// into accumulators that stay in registers. So the left side wants to lie in
// memory: a loaded tile is read where it lies, any other is put into the
// scratch once. Integers of 16 bits are taken in pairs of neighbouring terms,
// whose two products one instruction adds.
#include "codegen/cpu/KernelEmitter.h"
#include "llvm/IR/IntrinsicsX86.h"

using namespace charonia;
using namespace charonia::cpu;

/// What the elements 0, 1, .. of an axis add to the offset, where that depends
/// on nothing else.
static std::optional<llvm::SmallVector<int64_t>>
offsetsAlong(const graph::Sum &offset, unsigned axis, int64_t extent,
             mlir::MLIRContext *context) {
  graph::Sum along;
  for (const graph::Sum::Term &term : offset.terms)
    if (term.usesDim(axis))
      along.terms.push_back(term);
  mlir::AffineExpr expr = along.toExpr(context);
  bool alone = true;
  expr.walk([&](mlir::AffineExpr e) {
    alone &= !llvm::isa<mlir::AffineSymbolExpr>(e) &&
             (!llvm::isa<mlir::AffineDimExpr>(e) ||
              e == mlir::getAffineDimExpr(axis, context));
  });
  if (!alone)
    return std::nullopt;
  llvm::SmallVector<int64_t> result, dims(axis + 1);
  for (dims[axis] = 0; dims[axis] < extent; ++dims[axis]) {
    std::optional<int64_t> value = graph::evaluate(expr, dims, {});
    if (!value)
      return std::nullopt;
    result.push_back(*value);
  }
  for (int64_t &value : llvm::drop_begin(result))
    value -= result[0];
  result[0] = 0;
  // Where a check fails, zeros are read from an address on.
  if (llvm::any_of(result, [](int64_t value) { return value < 0; }))
    return std::nullopt;
  return result;
}

/// Along which axis the elements of a loaded tile [m, k] can be read in place
/// from one address: constant distances along it and checks that do not look at
/// it.
std::optional<unsigned> KernelEmitter::axisInPlace(tile::LoadOp load) {
  mlir::Type element = load.getType().getElementType();
  if (element.isF16() || element.isBF16() || element.isInteger(1) ||
      !hasScalarSymbols(load))
    return std::nullopt;
  const AccessPlan &whole = plan(tile::AccessOp::get(load));
  // Pairs of terms are read as one.
  bool pairs = element.isInteger(16);
  for (unsigned axis : {1, 0})
    if (auto offsets =
            offsetsAlong(whole.offset, axis, load.getType().getDimSize(axis),
                         load.getContext());
        offsets &&
        (!pairs ||
         (axis == 1 &&
          llvm::equal(*offsets, llvm::seq<int64_t>(offsets->size())))) &&
        llvm::none_of(whole.checks, [&](const AccessPlan::Check &check) {
          return check.coordinate.isFunctionOfDim(axis);
        }))
      return axis;
  return std::nullopt;
}

/// Makes the left side of a product readable element by element: at once if its
/// memory may change before the product.
void KernelEmitter::prepareLeft(mlir::Value tile, bool memoryMayChange) {
  for (Scope &scope : scopes)
    if (scope.staged.contains(tile))
      return;
  if (auto load = tile.getDefiningOp<tile::LoadOp>())
    if (axisInPlace(load) && (!memoryMayChange || load.getIndependent()))
      return;
  Geometry shape = geometry(tile);
  mlir::Type element =
      llvm::cast<mlir::RankedTensorType>(tile.getType()).getElementType();
  bool half = element.isF16() || element.isBF16();
  llvm::Type *type = half ? b.getFloatTy() : memoryType(element);
  int64_t bytes =
      llvm::divideCeil(type->getPrimitiveSizeInBits().getFixedValue(), 8);
  int64_t rowBytes = llvm::alignTo(shape.inner, lanes) * bytes;
  Value *base = allocateScratch(shape.rows * rowBytes);
  for (int64_t row = 0; row < shape.rows; ++row)
    for (int64_t chunk = 0; chunk < shape.chunks(); ++chunk) {
      Value *value = piece(tile, row, chunk);
      value = half ? toF32(value, element) : toMemory(value, element);
      Value *address = b.CreateConstInBoundsGEP1_64(
          b.getInt8Ty(), base, row * rowBytes + chunk * lanes * bytes);
      b.CreateAlignedStore(value, address, llvm::Align(bytes));
    }
  scopes.back().staged[tile] = {base, rowBytes};
}

/// An operand's elements in the type of the accumulator.
Value *KernelEmitter::toAccumulator(Value *value, mlir::Type from,
                                    mlir::Type to) {
  if (from == to)
    return value;
  if (llvm::isa<mlir::FloatType>(to))
    return fpExtend(value, from, to);
  llvm::Type *type = elementType(to);
  if (auto vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType()))
    type = llvm::FixedVectorType::get(type, vector->getNumElements());
  return b.CreateSExt(value, type);
}

/// The left side of a product, element by element.
struct KernelEmitter::LeftSide {
  tile::LoadOp load; ///< Read in place, or
  const Staged *staged = nullptr;
  mlir::Type type;
  int64_t bytes;
  unsigned axis = 1;
  llvm::SmallVector<int64_t> offsets; ///< Of the elements along `axis`.
  llvm::SmallVector<Value *>
      starts; ///< Of each row or column, as they are wanted.
};

KernelEmitter::LeftSide KernelEmitter::leftSide(mlir::Value tile) {
  LeftSide left;
  left.type =
      llvm::cast<mlir::RankedTensorType>(tile.getType()).getElementType();
  for (Scope &scope : scopes)
    if (auto found = scope.staged.find(tile); found != scope.staged.end())
      left.staged = &found->second;
  if (left.staged) {
    if (left.type.isF16() || left.type.isBF16())
      left.type = mlir::Float32Type::get(tile.getContext());
    left.offsets =
        llvm::to_vector(llvm::seq<int64_t>(0, geometry(tile).shape[1]));
  } else {
    left.load = tile.getDefiningOp<tile::LoadOp>();
    left.axis = *axisInPlace(left.load);
    left.offsets =
        *offsetsAlong(plan(tile::AccessOp::get(left.load)).offset, left.axis,
                      geometry(tile).shape[left.axis], tile.getContext());
  }
  left.bytes = memoryBytes(left.type);
  llvm::ArrayRef<int64_t> shape = geometry(tile).shape;
  left.starts.resize(shape[1 - left.axis]);
  for (int64_t i = 0; i < (int64_t)left.starts.size(); ++i) {
    if (left.staged) {
      left.starts[i] = b.CreateConstInBoundsGEP1_64(
          b.getInt8Ty(), left.staged->base, i * left.staged->rowBytes);
      continue;
    }
    int64_t span = (*llvm::max_element(left.offsets) + 1) * left.bytes;
    left.starts[i] = left.axis == 1 ? elementPointer(left.load, {i, 0}, span)
                                    : elementPointer(left.load, {0, i}, span);
  }
  return left;
}

Value *KernelEmitter::leftElement(const LeftSide &left, int64_t m, int64_t k) {
  int64_t along = left.axis == 1 ? k : m;
  Value *start = left.starts[left.axis == 1 ? m : k];
  Value *address = b.CreateConstGEP1_64(b.getInt8Ty(), start,
                                        left.offsets[along] * left.bytes);
  if (left.load)
    return loadScalar(left.load, address);
  return fromMemory(b.CreateAlignedLoad(memoryType(left.type), address,
                                        llvm::Align(left.bytes)),
                    left.type);
}

/// The terms k and k + 1 of a row in one integer, the first in its low half;
/// without `both`, the first and zero.
Value *KernelEmitter::leftPair(const LeftSide &left, int64_t m, int64_t k,
                               bool both) {
  if (!both)
    return b.CreateZExt(leftElement(left, m, k), b.getInt32Ty());
  Value *address = b.CreateConstGEP1_64(b.getInt8Ty(), left.starts[m],
                                        left.offsets[k] * left.bytes);
  auto *load =
      b.CreateAlignedLoad(b.getInt32Ty(), address, llvm::Align(left.bytes));
  if (left.load)
    if (llvm::MDNode *apart = noalias.lookup(left.load))
      load->setMetadata(llvm::LLVMContext::MD_noalias, apart);
  return load;
}

/// Rows k and k + 1 of the right side, or zeros for the second, as a pair in
/// each column; four columns at least.
Value *KernelEmitter::rightPairs(mlir::Value right, int64_t k, int64_t chunk,
                                 bool both) {
  Value *first = piece(right, k, chunk);
  Value *second = both ? piece(right, k + 1, chunk)
                       : llvm::Constant::getNullValue(first->getType());
  constexpr int64_t fewest = 4;
  int64_t width = geometry(right).width(chunk);
  if (width == 1) {
    auto *type = llvm::FixedVectorType::get(first->getType(), 1);
    Value *none = llvm::PoisonValue::get(type);
    first = b.CreateInsertElement(none, first, uint64_t(0));
    second = b.CreateInsertElement(none, second, uint64_t(0));
  }
  llvm::SmallVector<int> pairs;
  for (int64_t i = 0; i < std::max(width, fewest); ++i)
    for (int64_t row : {0, 1})
      pairs.push_back(i < width ? i + row * width : -1);
  return b.CreateShuffleVector(first, second, pairs);
}

/// Sums of a row's products with pairs, for each column of `sum`.
Value *KernelEmitter::addPairs(Value *sum, Value *left, Value *right) {
  int64_t width =
      llvm::cast<llvm::FixedVectorType>(right->getType())->getNumElements() / 2;
  Value *a = b.CreateBitCast(splat(left, width), right->getType());
  llvm::Intrinsic::ID id = width == 16
                               ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                           : width == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                        : llvm::Intrinsic::x86_sse2_pmadd_wd;
  Value *products = b.CreateIntrinsic(
      llvm::FixedVectorType::get(b.getInt32Ty(), width), id, {a, right});
  auto *type = llvm::dyn_cast<llvm::FixedVectorType>(sum->getType());
  if (!type)
    products = lane(products, 0);
  else if (type->getNumElements() != width)
    products = lanesOf(products, 0, type->getNumElements());
  return b.CreateAdd(sum, products);
}

void KernelEmitter::emitDot(tile::DotOp op) {
  mlir::Value right = op.getRhs(), result = op.getResult();
  Geometry rightShape = geometry(right), shape = geometry(result);
  mlir::Type operandType =
      llvm::cast<mlir::RankedTensorType>(right.getType()).getElementType();
  mlir::Type type =
      llvm::cast<mlir::RankedTensorType>(result.getType()).getElementType();
  bool isFloat = llvm::isa<mlir::FloatType>(type);
  bool pairs = operandType.isInteger(16) && type.isInteger(32);
  int64_t depth = rightShape.rows, chunks = shape.chunks();

  prepareLeft(op.getLhs(), /*memoryMayChange=*/false);
  LeftSide left = leftSide(op.getLhs());

  // More accumulators than registers: blocks of rows one after the other. Each
  // reads the right side again if that lies in memory.
  int64_t registers = accumulators();
  bool loaded = right.getDefiningOp<tile::LoadOp>() != nullptr;
  int64_t blocks = llvm::divideCeil(shape.rows * chunks, registers);
  if (blocks > 1 && !loaded) {
    emitWhole(right);
    if (depth * chunks < registers) // that many registers hold the right side
      blocks =
          llvm::divideCeil(shape.rows * chunks,
                           std::max(registers - depth * chunks, registers / 2));
  }
  int64_t blockRows =
      llvm::divideCeil(shape.rows, std::min(blocks, shape.rows));

  for (int64_t first = 0; first < shape.rows; first += blockRows) {
    int64_t last = std::min(first + blockRows, shape.rows);
    llvm::SmallVector<Value *> sums;
    for (int64_t m = first; m < last; ++m)
      for (int64_t c = 0; c < chunks; ++c)
        sums.push_back(piece(op.getAccumulator(), m, c));
    if (blocks > 1)
      scopes.emplace_back();
    for (int64_t k = 0; k < depth; k += pairs ? 2 : 1) {
      bool both = k + 1 < depth;
      llvm::SmallVector<Value *> row;
      for (int64_t c = 0; c < chunks; ++c)
        row.push_back(
            pairs ? rightPairs(right, k, c, both)
                  : toAccumulator(piece(right, k, c), operandType, type));
      for (int64_t m = first; m < last; ++m) {
        Value *element =
            pairs ? leftPair(left, m, k, both)
                  : toAccumulator(leftElement(left, m, k), left.type, type);
        for (int64_t c = 0; c < chunks; ++c) {
          Value *&sum = sums[(m - first) * chunks + c];
          if (pairs) {
            sum = addPairs(sum, element, row[c]);
            continue;
          }
          Value *a = splat(element, shape.width(c));
          sum = isFloat ? b.CreateIntrinsic(llvm::Intrinsic::fma,
                                            {sum->getType()}, {a, row[c], sum})
                        : b.CreateAdd(sum, b.CreateMul(a, row[c]));
        }
      }
    }
    if (blocks > 1)
      scopes.pop_back();
    for (auto [i, sum] : llvm::enumerate(sums))
      setPiece(result, first * chunks + i, sum);
  }
}
