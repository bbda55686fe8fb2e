// Products of tiles by outer products: for each k, a row of the right side as
// vectors and one element of the left side at a time, broadcast from memory,
// into accumulators that stay in registers. So the left side wants to lie in
// memory: a loaded tile is read where it lies, any other is put into the
// scratch once. Integers of 16 bits are taken in pairs of terms, whose two
// products one instruction adds; bytes four terms at a time where there is VNNI
// or 16 bits hold the sums of pairs, else as integers of 16 bits.
#include "codegen/cpu/DotParts.h"
#include "llvm/IR/IntrinsicsX86.h"

using namespace charonia;
using namespace charonia::cpu;

std::optional<llvm::SmallVector<int64_t>>
charonia::cpu::offsetsAlong(const graph::Sum &offset, unsigned axis,
                            int64_t extent, mlir::MLIRContext *context) {
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

/// Whether a left side of bytes is multiplied as integers of 16 bits: without
/// VNNI, where pairs of its products need more than these.
bool KernelEmitter::isWidened(mlir::Value left) {
  auto type = llvm::cast<mlir::RankedTensorType>(left.getType());
  return type.getElementType().isInteger(8) && isa != CpuIsa::V4Vnni &&
         !llvm::all_of(left.getUsers(), [&](mlir::Operation *user) {
           auto dot = llvm::dyn_cast<tile::DotOp>(user);
           return dot && dot.getLhs() == left && dot.getPairsFit();
         });
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
  if (isWidened(load))
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

/// Bytes of a row as integers of 16 bits in the order in which products take
/// them, `rest` of its elements being left from these on.
Value *KernelEmitter::widen(Value *bytes, bool isSigned, int64_t rest) {
  auto *type = llvm::dyn_cast<llvm::FixedVectorType>(bytes->getType());
  if (!type)
    return b.CreateIntCast(bytes, b.getInt16Ty(), isSigned);
  llvm::SmallVector<int> order;
  for (int64_t i = 0; i < type->getNumElements(); ++i)
    order.push_back(widenedTerm(i, rest));
  return b.CreateIntCast(
      b.CreateShuffleVector(bytes, order),
      llvm::FixedVectorType::get(b.getInt16Ty(), type->getNumElements()),
      isSigned);
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
  bool half = element.isF16() || element.isBF16(), widened = isWidened(tile);
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
        value = widen(value, *hasSign, shape.inner - chunk * lanes);
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
    else if (isWidened(tile))
      left.type = mlir::IntegerType::get(tile.getContext(), 16);
    int64_t depth = geometry(tile).shape[1];
    for (int64_t k = 0; k < depth; ++k)
      left.offsets.push_back(isWidened(tile) ? widenedTerm(k, depth) : k);
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

/// The terms of a row from k on in one integer, the first in its low bits, with
/// zeros for those that are not there.
Value *KernelEmitter::leftTerms(const Product &p, int64_t m, int64_t k) {
  const LeftSide &left = p.left;
  if (p.terms == 1)
    return toAccumulator(leftElement(left, m, k), left.type, p.sum);
  if (p.count(k) < p.terms) {
    Value *all = b.getInt32(0);
    for (int64_t i = 0; i < p.count(k); ++i) {
      Value *term =
          b.CreateZExt(leftElement(left, m, p.term(k + i)), b.getInt32Ty());
      all = b.CreateOr(all, b.CreateShl(term, i * p.bits()));
    }
    return all;
  }
  Value *address = b.CreateConstGEP1_64(b.getInt8Ty(), left.starts[m],
                                        left.offsets[p.term(k)] * left.bytes);
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
                          address, llvm::Align(1), /*isVolatile=*/inOrder);
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
  auto words = [&](Value *bytes, unsigned columns) {
    return llvm::FixedVectorType::get(
        b.getInt16Ty(),
        llvm::cast<llvm::FixedVectorType>(bytes->getType())->getNumElements() /
            columns);
  };
  Value *all = p.right.isInteger(8) ? packedQuads(right, k / quad * quad, chunk)
                                    : nullptr;
  if (all && p.isWidened()) {
    // In integers of 16 bits, the low or the high byte with its sign or zeros.
    constexpr uint64_t bits = 8;
    all = b.CreateBitCast(all, words(all, 2));
    if (k % quad == 0)
      all = b.CreateShl(all, bits);
    return p.signedLhs ? b.CreateLShr(all, bits) : b.CreateAShr(all, bits);
  }
  if (all)
    return all;
  llvm::SmallVector<Value *> rows;
  int64_t width = geometry(right).width(chunk);
  auto *type =
      llvm::FixedVectorType::get(memoryType(p.right), std::max(width, quad));
  for (int64_t i = 0; i < p.terms; ++i) {
    Value *row = llvm::Constant::getNullValue(type);
    if (i < p.count(k))
      row = atLeastFour(b, piece(right, p.term(k + i), chunk));
    rows.push_back(row);
  }
  all = interleave(rows);
  return p.isWidened()
             ? b.CreateIntCast(all, words(all, 1), /*isSigned=*/!p.signedLhs)
             : all;
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
  if (p.terms == 4 && p.signedLhs)
    std::swap(a, right); // of bytes the first has no sign
  using namespace llvm::Intrinsic;
  Value *products;
  if (isa == CpuIsa::V4Vnni) {
    constexpr ID quads[] = {x86_avx512_vpdpbusd_512, x86_avx512_vpdpbusd_256,
                            x86_avx512_vpdpbusd_128};
    constexpr ID pairs[] = {x86_avx512_vpdpwssd_512, x86_avx512_vpdpwssd_256,
                            x86_avx512_vpdpwssd_128};
    Value *start = fits ? sum : llvm::Constant::getNullValue(type);
    products = b.CreateIntrinsic((p.terms == 4 ? quads : pairs)[size], {},
                                 {start, a, right});
    if (fits)
      return products;
  } else {
    constexpr ID pairs[] = {x86_avx512_pmaddw_d_512, x86_avx2_pmadd_wd,
                            x86_sse2_pmadd_wd};
    if (p.terms == 4) {
      constexpr ID bytes[] = {x86_avx512_pmaddubs_w_512, x86_avx2_pmadd_ub_sw,
                              x86_ssse3_pmadd_ub_sw_128};
      auto *halves = llvm::FixedVectorType::get(b.getInt16Ty(), 2 * width);
      a = b.CreateIntrinsic(halves, bytes[size], {a, right});
      right = llvm::ConstantInt::get(halves, 1);
    }
    products = b.CreateIntrinsic(type, pairs[size], {a, right});
  }
  if (!own)
    products = lane(products, 0);
  else if (!fits)
    products = lanesOf(products, 0, own->getNumElements());
  return b.CreateAdd(sum, products);
}

KernelEmitter::Product KernelEmitter::productOf(tile::DotOp op) {
  auto elementOf = [](mlir::Value tile) {
    return llvm::cast<mlir::RankedTensorType>(tile.getType()).getElementType();
  };
  mlir::Type right = elementOf(op.getRhs()), sum = elementOf(op.getResult());
  prepareLeft(op.getLhs(), /*memoryMayChange=*/false);
  Product p{op.getRhs(),
            op.getSignedLhs(),
            leftSide(op.getLhs()),
            geometry(op.getRhs()).rows,
            /*terms=*/1,
            right,
            sum};
  if (right.isInteger(8))
    p.terms = isWidened(op.getLhs()) ? 2 : 4;
  else if (right.isInteger(16) && sum.isInteger(32))
    p.terms = 2;
  return p;
}

void KernelEmitter::emitDot(tile::DotOp op, bool inPlace) {
  mlir::Value right = op.getRhs(), result = op.getResult();
  Geometry shape = geometry(result);
  Product p = productOf(op);
  bool isFloat = llvm::isa<mlir::FloatType>(p.sum);
  int64_t depth = p.depth, chunks = shape.chunks();

  // More accumulators than registers: blocks of rows one after the other. Each
  // reads the right side again if that lies in memory.
  int64_t registers = accumulators();
  if (isStaged(op)) {
    // Loaded where they are wanted: registers do not hold them all.
    Parked sums = addStaged(op, p);
    if (!inPlace)
      scopes.back().parked[result] = sums;
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
      inOrder = (isFloat || p.isWidened()) && staysInOrder();
      for (int64_t c = 0; c < chunks; ++c)
        row.push_back(rightTerms(p, k, c));
      inOrder = false;
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
