// Products of tiles by outer products: for each k, a row of the right side as
// vectors and one element of the left side at a time, broadcast from memory,
// into accumulators that stay in registers. So the left side wants to lie in
// memory: a loaded tile is read where it lies, any other is put into the
// scratch once. Integers of 16 bits are taken in pairs of neighbouring terms,
// whose two products one instruction adds; bytes four terms at a time where
// there is VNNI, else as integers of 16 bits.
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
  if (element.isInteger(8) && isa != CpuIsa::V4Vnni)
    return std::nullopt;
  // Some terms are read as one.
  bool together = element.isInteger(16) || element.isInteger(8);
  for (unsigned axis : {1, 0})
    if (auto offsets =
            offsetsAlong(whole.offset, axis, load.getType().getDimSize(axis),
                         load.getContext());
        offsets &&
        (!together ||
         (axis == 1 &&
          llvm::equal(*offsets, llvm::seq<int64_t>(offsets->size())))) &&
        llvm::none_of(whole.checks, [&](const AccessPlan::Check &check) {
          return check.coordinate.isFunctionOfDim(axis);
        }))
      return axis;
  return std::nullopt;
}

/// Bytes without VNNI are multiplied as integers of 16 bits.
static bool isWidened(mlir::Type element, CpuIsa isa) {
  return element.isInteger(8) && isa != CpuIsa::V4Vnni;
}

/// Whether a tile of bytes has signs where it is the left side of products.
static std::optional<bool> leftHasSign(mlir::Value tile) {
  std::optional<bool> found;
  for (mlir::Operation *user : tile.getUsers())
    if (auto dot = llvm::dyn_cast<tile::DotOp>(user);
        dot && dot.getLhs() == tile) {
      if (found && *found != dot.getSignedLhs())
        return std::nullopt;
      found = dot.getSignedLhs();
    }
  return found;
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
  bool half = element.isF16() || element.isBF16(),
       widened = isWidened(element, isa);
  std::optional<bool> hasSign = widened ? leftHasSign(tile) : false;
  if (!hasSign) {
    fail(tile.getDefiningOp(), "bytes are multiplied with and without a sign");
    hasSign = false;
  }
  llvm::Type *type = half      ? b.getFloatTy()
                     : widened ? b.getInt16Ty()
                               : memoryType(element);
  int64_t bytes =
      llvm::divideCeil(type->getPrimitiveSizeInBits().getFixedValue(), 8);
  int64_t rowBytes = llvm::alignTo(shape.inner, lanes) * bytes;
  Value *base = allocateScratch(shape.rows * rowBytes);
  for (int64_t row = 0; row < shape.rows; ++row)
    for (int64_t chunk = 0; chunk < shape.chunks(); ++chunk) {
      Value *value = piece(tile, row, chunk);
      if (widened)
        value = b.CreateIntCast(value, pieceType(type, shape.width(chunk)),
                                *hasSign);
      else
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
    else if (isWidened(left.type, isa))
      left.type = mlir::IntegerType::get(tile.getContext(), 16);
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

/// How a product of tiles takes its terms.
struct KernelEmitter::Product {
  mlir::Value rhs;
  bool signedLhs;
  LeftSide left;
  int64_t depth;    ///< Terms in all.
  int64_t terms;    ///< At a time, in 32 bits of each side where above 1.
  mlir::Type right; ///< Elements of the right side in the tile.
  mlir::Type sum;
  int64_t count(int64_t k) const { return std::min(terms, depth - k); }
  int64_t bits() const { return 32 / terms; }
};

/// The terms of a row from k on in one integer, the first in its low bits, with
/// zeros for those that are not there.
Value *KernelEmitter::leftTerms(const Product &p, int64_t m, int64_t k) {
  const LeftSide &left = p.left;
  if (p.terms == 1)
    return toAccumulator(leftElement(left, m, k), left.type, p.sum);
  if (p.count(k) < p.terms) {
    Value *all = b.getInt32(0);
    for (int64_t i = 0; i < p.count(k); ++i) {
      Value *term = b.CreateZExt(leftElement(left, m, k + i), b.getInt32Ty());
      all = b.CreateOr(all, b.CreateShl(term, i * p.bits()));
    }
    return all;
  }
  Value *address = b.CreateConstGEP1_64(b.getInt8Ty(), left.starts[m],
                                        left.offsets[k] * left.bytes);
  auto *load =
      b.CreateAlignedLoad(b.getInt32Ty(), address, llvm::Align(left.bytes));
  if (left.load)
    if (llvm::MDNode *apart = noalias.lookup(left.load))
      load->setMetadata(llvm::LLVMContext::MD_noalias, apart);
  return load;
}

/// Four rows of bytes from row k on, in memory with the four of a column side
/// by side, as weights are packed; null where they lie otherwise.
Value *KernelEmitter::packedQuads(mlir::Value right, int64_t k, int64_t chunk) {
  constexpr int64_t quad = 4;
  auto load = right.getDefiningOp<tile::LoadOp>();
  if (!load || !load.getType().getElementType().isInteger(8) ||
      !hasScalarSymbols(load))
    return nullptr;
  tile::AccessOp access = tile::AccessOp::get(load);
  const AccessPlan &whole = plan(access);
  auto rows = offsetsAlong(whole.offset, 0, load.getType().getDimSize(0),
                           load.getContext());
  if (!rows || k + quad > (int64_t)rows->size() ||
      llvm::any_of(whole.checks, [](const AccessPlan::Check &check) {
        return check.coordinate.isFunctionOfDim(0);
      }))
    return nullptr;
  for (int64_t i = 1; i < quad; ++i)
    if ((*rows)[k + i] != (*rows)[k] + i)
      return nullptr;
  PiecePlace at = place(access, -1, k, chunk, /*load=*/true);
  if (at.stride != quad || at.guard.mask || at.valid != at.width ||
      at.width < quad)
    return nullptr;
  int64_t bytes = at.width * quad;
  Value *address = at.base;
  if (at.guard.scalar)
    address = b.CreateSelect(at.guard.scalar, address, zeros(bytes));
  auto *value =
      b.CreateAlignedLoad(llvm::FixedVectorType::get(b.getInt8Ty(), bytes),
                          address, llvm::Align(1));
  if (llvm::MDNode *apart = noalias.lookup(load))
    value->setMetadata(llvm::LLVMContext::MD_noalias, apart);
  return value;
}

/// A piece of four lanes at least.
static Value *atLeastFour(llvm::IRBuilder<> &b, Value *piece) {
  auto *type = llvm::dyn_cast<llvm::FixedVectorType>(piece->getType());
  int64_t width = type ? type->getNumElements() : 1;
  if (width >= 4)
    return piece;
  if (!type) {
    type = llvm::FixedVectorType::get(piece->getType(), 4);
    return b.CreateInsertElement(llvm::PoisonValue::get(type), piece,
                                 uint64_t(0));
  }
  return b.CreateShuffleVector(piece, {0, 1, -1, -1});
}

/// Elements of two or four rows side by side, column by column.
Value *KernelEmitter::interleave(llvm::ArrayRef<Value *> rows) {
  int64_t n = rows.size(),
          width = llvm::cast<llvm::FixedVectorType>(rows[0]->getType())
                      ->getNumElements();
  llvm::SmallVector<int> order;
  if (n == 2) {
    for (int64_t i = 0; i < width; ++i)
      for (int64_t row : {0, 1})
        order.push_back(i + row * width);
    return b.CreateShuffleVector(rows[0], rows[1], order);
  }
  // Bytes: first the columns of each 128 bits, in four elements from each row,
  // then the bytes of each of them. A machine has an instruction for either.
  constexpr int64_t quad = 4;
  auto *wide = llvm::FixedVectorType::get(b.getInt32Ty(), width);
  Value *all = b.CreateBitCast(concatenate(rows), wide);
  for (int64_t column = 0; column < width / quad; ++column)
    for (int64_t row = 0; row < quad; ++row)
      order.push_back(row * width / quad + column);
  all = b.CreateShuffleVector(all, order);
  all = b.CreateBitCast(
      all, llvm::FixedVectorType::get(b.getInt8Ty(), width * quad));
  order.clear();
  for (int64_t i = 0; i < width * quad; ++i)
    order.push_back(i / (quad * quad) * quad * quad + i % quad * quad +
                    i / quad % quad);
  return b.CreateShuffleVector(all, order);
}

/// The rows of the right side from k on, with those of a column side by side,
/// or zeros for those that are not there; four columns at least.
Value *KernelEmitter::rightTerms(const Product &p, int64_t k, int64_t chunk) {
  mlir::Value right = p.rhs;
  if (p.terms == 1)
    return toAccumulator(piece(right, k, chunk), p.right, p.sum);
  constexpr int64_t quad = 4;
  bool widened = isWidened(p.right, isa);
  llvm::SmallVector<Value *> rows;
  Value *all = p.right.isInteger(8) ? packedQuads(right, k / quad * quad, chunk)
                                    : nullptr;
  if (all && widened) {
    auto *pairs = llvm::FixedVectorType::get(
        b.getInt16Ty(),
        llvm::cast<llvm::FixedVectorType>(all->getType())->getNumElements() /
            2);
    llvm::SmallVector<int> half;
    for (int64_t i = 0; i < pairs->getNumElements() / 2; ++i)
      half.push_back(2 * i + k % quad / 2);
    all = b.CreateShuffleVector(b.CreateBitCast(all, pairs), half);
    all = b.CreateBitCast(
        all, llvm::FixedVectorType::get(b.getInt8Ty(), 2 * half.size()));
  } else if (!all) {
    int64_t width = geometry(right).width(chunk);
    auto *type =
        llvm::FixedVectorType::get(memoryType(p.right), std::max(width, quad));
    for (int64_t i = 0; i < p.terms; ++i) {
      Value *row = llvm::Constant::getNullValue(type);
      if (i < p.count(k))
        row = atLeastFour(b, piece(right, k + i, chunk));
      rows.push_back(row);
    }
    all = interleave(rows);
  }
  if (!widened)
    return all;
  auto *type = llvm::FixedVectorType::get(
      b.getInt16Ty(),
      llvm::cast<llvm::FixedVectorType>(all->getType())->getNumElements());
  return b.CreateIntCast(all, type, /*isSigned=*/!p.signedLhs);
}

/// `sum` and a row's products with some terms of each column.
Value *KernelEmitter::addTerms(const Product &p, Value *sum, Value *left,
                               Value *right) {
  auto *rightType = llvm::cast<llvm::FixedVectorType>(right->getType());
  int64_t width = rightType->getNumElements() / p.terms;
  unsigned size = width == 16 ? 0 : width == 8 ? 1 : 2;
  Value *a = b.CreateBitCast(splat(left, width), rightType);
  auto *type = llvm::FixedVectorType::get(b.getInt32Ty(), width);
  auto *own = llvm::dyn_cast<llvm::FixedVectorType>(sum->getType());
  bool fits = own && own->getNumElements() == width;
  using namespace llvm::Intrinsic;
  Value *products;
  if (isa == CpuIsa::V4Vnni) {
    constexpr ID quads[] = {x86_avx512_vpdpbusd_512, x86_avx512_vpdpbusd_256,
                            x86_avx512_vpdpbusd_128};
    constexpr ID pairs[] = {x86_avx512_vpdpwssd_512, x86_avx512_vpdpwssd_256,
                            x86_avx512_vpdpwssd_128};
    if (p.terms == 4 && p.signedLhs)
      std::swap(a, right); // the first has no sign
    Value *start = fits ? sum : llvm::Constant::getNullValue(type);
    products = b.CreateIntrinsic((p.terms == 4 ? quads : pairs)[size], {},
                                 {start, a, right});
    if (fits)
      return products;
  } else {
    constexpr ID pairs[] = {x86_avx512_pmaddw_d_512, x86_avx2_pmadd_wd,
                            x86_sse2_pmadd_wd};
    products = b.CreateIntrinsic(type, pairs[size], {a, right});
  }
  if (!own)
    products = lane(products, 0);
  else if (!fits)
    products = lanesOf(products, 0, own->getNumElements());
  return b.CreateAdd(sum, products);
}

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
          llvm::Align(bytes)));
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
  auto from = [&](Value *term, LeftSide &left, Staged &part) {
    left = p.left;
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
  from(term, left, part);
  addTermsOf(p, left, part, firstRow, stagedTerms, sums);
  Value *next = b.CreateAdd(term, i64(stagedTerms));
  term->addIncoming(next, body);
  for (auto [phi, sum] : llvm::zip_equal(phis, sums))
    phi->addIncoming(sum, body);
  b.CreateCondBr(b.CreateICmpSLT(next, i64(p.depth - rest)), body, after);
  b.SetInsertPoint(after);
  from(i64(p.depth - rest), left, part);
  addTermsOf(p, left, part, firstRow, rest, sums);
}

/// Whether a product of more rows than registers hold has its right side, which
/// is computed, put into the scratch once for all of them. Registers have to
/// hold a row of that and of sums.
bool KernelEmitter::isStaged(tile::DotOp op) {
  Geometry shape = geometry(op.getResult());
  int64_t depth = geometry(op.getRhs()).rows;
  auto sum = llvm::cast<mlir::RankedTensorType>(op.getResult().getType());
  if (op.getRhs().getDefiningOp<tile::LoadOp>() ||
      !sum.getElementType().isF32() || shape.inner % lanes != 0 ||
      shape.rows * shape.chunks() <= accumulators() ||
      2 * shape.chunks() > accumulators() || depth < 4 * stagedTerms)
    return false;
  auto load = op.getLhs().getDefiningOp<tile::LoadOp>();
  std::optional<unsigned> axis = load ? axisInPlace(load) : std::nullopt;
  if (!axis)
    return true; // It is put into the scratch, too.
  if (*axis != 1)
    return false;
  auto offsets = offsetsAlong(plan(tile::AccessOp::get(load)).offset, 1, depth,
                              load.getContext());
  for (int64_t k = 1; k < depth; ++k)
    if ((*offsets)[k] != k * (*offsets)[1])
      return false;
  return true;
}

/// Whether such a product adds to what a loop carries.
bool KernelEmitter::addsInPlace(mlir::scf::ForOp loop,
                                mlir::BlockArgument carried) {
  if (!carried.hasOneUse())
    return false;
  auto dot = llvm::dyn_cast<tile::DotOp>(*carried.getUsers().begin());
  return dot && dot->getBlock() == loop.getBody() &&
         dot.getAccumulator() == carried && dot.getResult().hasOneUse() &&
         loop.getTiedLoopYieldedValue(carried)->get() == dot.getResult() &&
         isStaged(dot);
}

std::optional<KernelEmitter::Parked>
KernelEmitter::findParked(mlir::Value tile) {
  for (Scope &scope : llvm::reverse(scopes))
    if (auto found = scope.parked.find(tile); found != scope.parked.end())
      return found->second;
  return std::nullopt;
}

/// The right side of a product, in the type of the sums, in the scratch.
KernelEmitter::Staged KernelEmitter::stageRight(const Product &p,
                                                const Geometry &right) {
  int64_t bytes = lanes * memoryBytes(p.sum), rowBytes = right.chunks() * bytes;
  Staged staged{allocateScratch(p.depth * rowBytes), rowBytes};
  scopes.emplace_back();
  for (int64_t k = 0; k < p.depth; ++k)
    for (int64_t c = 0; c < right.chunks(); ++c)
      b.CreateAlignedStore(
          rightTerms(p, k, c),
          b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), staged.base,
                                       k * rowBytes + c * bytes),
          llvm::Align(bytes));
  scopes.pop_back();
  return staged;
}

KernelEmitter::Parked KernelEmitter::addStaged(tile::DotOp op,
                                               const Product &p) {
  Geometry shape = geometry(op.getResult());
  // Registers hold sums, a row of the right side, and an element of the left.
  int64_t chunks = shape.chunks(), registers = accumulators() - chunks,
          blocks = llvm::divideCeil(shape.rows * chunks, registers),
          blockRows = llvm::divideCeil(shape.rows, blocks);
  Staged staged = stageRight(p, geometry(op.getRhs()));
  // Sums wait in the scratch: LLVM would spill them inside the loops.
  std::optional<Parked> sums = findParked(op.getAccumulator());
  if (!sums || !op.getAccumulator().hasOneUse())
    sums = park(allParts(op.getAccumulator()));
  for (int64_t first = 0; first < shape.rows; first += blockRows) {
    int64_t last = std::min(first + blockRows, shape.rows);
    llvm::SmallVector<Value *> own;
    for (int64_t i = first * chunks; i < last * chunks; ++i)
      own.push_back(loadParked(*sums, i));
    addRows(p, staged, first, own);
    storeParked(*sums, own, first * chunks);
  }
  return *sums;
}

void KernelEmitter::emitDot(tile::DotOp op, bool inPlace) {
  mlir::Value right = op.getRhs(), result = op.getResult();
  Geometry rightShape = geometry(right), shape = geometry(result);
  mlir::Type operandType =
      llvm::cast<mlir::RankedTensorType>(right.getType()).getElementType();
  mlir::Type type =
      llvm::cast<mlir::RankedTensorType>(result.getType()).getElementType();
  bool isFloat = llvm::isa<mlir::FloatType>(type);
  int64_t depth = rightShape.rows, chunks = shape.chunks();

  prepareLeft(op.getLhs(), /*memoryMayChange=*/false);
  Product p{right,       op.getSignedLhs(), leftSide(op.getLhs()),
            depth,
            /*terms=*/1, operandType,       type};
  if (operandType.isInteger(8))
    p.terms = isWidened(operandType, isa) ? 2 : 4;
  else if (operandType.isInteger(16) && type.isInteger(32))
    p.terms = 2;

  // More accumulators than registers: blocks of rows one after the other. Each
  // reads the right side again if that lies in memory.
  int64_t registers = accumulators();
  if (isStaged(op)) {
    Parked sums = addStaged(op, p);
    for (size_t i = 0; !inPlace && i < sums.types.size(); ++i)
      setPiece(result, i, loadParked(sums, i));
    return;
  }
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
    for (int64_t k = 0; k < depth; k += p.terms) {
      llvm::SmallVector<Value *> row;
      for (int64_t c = 0; c < chunks; ++c)
        row.push_back(rightTerms(p, k, c));
      for (int64_t m = first; m < last; ++m) {
        Value *element = leftTerms(p, m, k);
        for (int64_t c = 0; c < chunks; ++c) {
          Value *&sum = sums[(m - first) * chunks + c];
          if (p.terms > 1) {
            sum = addTerms(p, sum, element, row[c]);
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
