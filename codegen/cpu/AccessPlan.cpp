// Where the pieces of loads and stores lie in memory, and which of
// their elements exist.
//
// Checks that all lanes of a piece share choose the address: zeros for a load,
// a dump for a store. Checks that vary between lanes become masks. Nothing
// branches.
#include "codegen/cpu/KernelEmitter.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Support/MathExtras.h"

using namespace charonia;
using namespace charonia::cpu;
using graph::Sum;
using mlir::AffineExpr;
using tile::AccessOp;

/// The access with its axes `axis` and innermost exchanged.
static AccessOp exchanged(const AccessOp &access, unsigned axis) {
  AccessOp result = access;
  unsigned last = access.tile.getRank() - 1;
  llvm::SmallVector<int64_t> shape(access.tile.getShape());
  std::swap(shape[axis], shape[last]);
  result.tile = access.tile.clone(shape);
  llvm::SmallVector<AffineExpr> dims;
  for (unsigned i = 0; i <= last; ++i)
    dims.push_back(mlir::getAffineDimExpr(i == axis   ? last
                                          : i == last ? axis
                                                      : i,
                                          access.map.getContext()));
  result.map = mlir::AffineMap::get(
      access.map.getNumDims(), access.map.getNumSymbols(),
      graph::applyMap(access.map, dims), access.map.getContext());
  return result;
}

const AccessPlan &KernelEmitter::plan(const AccessOp &given,
                                      int64_t innermost) {
  std::unique_ptr<AccessPlan> &slot = plans[{given.op, innermost}];
  AccessOp access = slot || innermost < 0 ? given : exchanged(given, innermost);
  if (slot)
    return *slot;
  slot = std::make_unique<AccessPlan>(AccessPlan{access, {}, {}, {}, {}, {}});
  AccessPlan &plan = *slot;
  plan.facts = tile::factsOf(access);
  int64_t rank = access.tile.getRank();
  for (auto [i, symbol] : llvm::enumerate(access.symbols)) {
    auto type = llvm::dyn_cast<mlir::RankedTensorType>(symbol.getType());
    if (type && rank > 0 && type.getDimSize(rank - 1) != 1)
      plan.varyingSymbols.push_back(i);
  }
  plan.setForms(plan.facts, nullptr);
  return plan;
}

/// `inner` takes the place of the innermost dim, if given.
void AccessPlan::setForms(const graph::Facts &with, AffineExpr inner) {
  offset = Sum(tile::linearOffset(access, with, inner));
  unsigned last = access.tile.getRank() - 1;
  stride = coefficientOfInner(offset);
  checks.clear();
  for (int64_t i : access.checks) {
    Check check;
    AffineExpr coordinate = access.map.getResult(i);
    if (inner)
      coordinate = coordinate.replace(
          mlir::getAffineDimExpr(last, inner.getContext()), inner);
    check.coordinate = graph::simplify(coordinate, with);
    check.extent = graph::simplify(access.shape.getResult(i), with);
    check.coefficient = coefficientOfInner(Sum(check.coordinate));
    if (llvm::any_of(varyingSymbols, [&](unsigned s) {
          return check.extent.isFunctionOfSymbol(s);
        }))
      check.coefficient.reset();
    checks.push_back(std::move(check));
  }
}

std::optional<int64_t> AccessPlan::coefficientOfInner(const Sum &sum) const {
  if (llvm::any_of(varyingSymbols,
                   [&](unsigned s) { return sum.usesSymbol(s); }))
    return std::nullopt;
  if (access.tile.getRank() == 0)
    return 0;
  return sum.coefficientOf(access.tile.getRank() - 1);
}

bool AccessPlan::isRegular() const {
  return stride && llvm::all_of(checks, [](const Check &check) {
           return check.coefficient;
         });
}

/// A plan in which the innermost dim counts from the chunk's start: what varies
/// over the whole row may be regular within a chunk.
static AccessPlan chunkPlan(const AccessPlan &row, int64_t start,
                            int64_t width) {
  AccessPlan plan = row;
  int64_t inner = row.access.tile.getRank() - 1;
  mlir::MLIRContext *context = row.access.map.getContext();
  graph::Facts facts = row.facts;
  facts.dims[inner] = {0, width - 1};
  plan.setForms(facts, mlir::getAffineDimExpr(inner, context) + start);
  return plan;
}

//===----------------------------------------------------------------------===//
// Addresses and guards
//===----------------------------------------------------------------------===//

/// Most zeros that failing loads may read instead: past it the choice between
/// memory and zeros is made anew for each step of an inner loop.
static constexpr int64_t kMostZeros = 1 << 16;

Value *KernelEmitter::pointer(const AccessPlan &plan,
                              llvm::ArrayRef<LaneInt> dims,
                              const SymbolValues &symbols, LaneInt *lanesOffset,
                              const LaneGuard *guard, int64_t zeroBytes) {
  mlir::Type element = plan.access.tile.getElementType();
  int64_t bytes = memoryBytes(element);
  // Terms that outer loops own come first, so that they are hoisted together;
  // the constant comes before what loops inside those of the checks add.
  unsigned checkDepth = 0;
  for (int64_t i : plan.access.checks)
    checkDepth =
        std::max({checkDepth, symbols.depthOf(plan.access.map.getResult(i)),
                  symbols.depthOf(plan.access.shape.getResult(i))});
  std::map<unsigned, LaneInt> byDepth;
  std::optional<int64_t> steps = 0; // what deeper terms add at most
  LaneInt varying = constantInt(0);
  graph::Facts facts = laneFacts(dims, symbols);
  graph::BoundsFinder bounds(facts);
  Sum sizes;
  for (const Sum::Term &term : plan.offset.terms) {
    AffineExpr expr = term.toExpr();
    unsigned depth = symbols.depthOf(expr);
    if (depth == 0 && expr.isSymbolicOrConstant()) {
      sizes.terms.push_back(term);
      continue;
    }
    LaneInt product = evaluate(expr, dims, symbols, facts);
    if (depth > checkDepth && steps) {
      graph::Interval range = bounds(expr);
      steps = range.low >= 0 && range.high <= kMostZeros
                  ? std::optional(*steps + range.high)
                  : std::nullopt;
    }
    LaneInt &sum = byDepth.try_emplace(depth, constantInt(0)).first->second;
    sum = add(sum, {product.scalar});
    product.scalar = i64(0);
    varying = add(varying, product);
  }
  if (!sizes.isConstant()) {
    LaneInt &sum = byDepth.try_emplace(0, constantInt(0)).first->second;
    sum = add(sum, evaluate(sizes.toExpr(plan.access.map.getContext()), dims,
                            symbols, facts));
  }
  if (lanesOffset)
    *lanesOffset = varying;

  Value *address = scalar(plan.access.buffer);
  // As the machine adds and multiplies: a part of an address may leave 64 bits
  // where the whole does not.
  uint64_t constant = plan.offset.constant;
  for (auto &[depth, sum] : byDepth)
    if (auto value = llvm::dyn_cast<llvm::ConstantInt>(sum.scalar))
      constant += value->getZExtValue();
  bool chosen = !guard || !guard->scalar;
  auto addConstant = [&] {
    if (constant)
      address = b.CreateConstGEP1_64(b.getInt8Ty(), address, constant * bytes);
    constant = 0;
  };
  auto choose = [&](int64_t zeroCount) {
    addConstant();
    address = b.CreateSelect(guard->scalar, address, zeros(zeroCount));
    chosen = true;
  };
  bool early = steps && *steps * bytes + zeroBytes <= kMostZeros;
  for (auto &[depth, sum] : byDepth) {
    if (!chosen && early && depth > checkDepth)
      choose(*steps * bytes + zeroBytes);
    if (!llvm::isa<llvm::ConstantInt>(sum.scalar))
      address = b.CreateGEP(memoryType(element), address, sum.scalar);
  }
  if (!chosen)
    choose(zeroBytes);
  addConstant();
  return address;
}

Value *charonia::cpu::conjunction(llvm::IRBuilder<> &b, Value *a, Value *c) {
  if (!a || !c)
    return a ? a : c;
  return b.CreateAnd(a, c);
}

LaneGuard KernelEmitter::guard(const AccessPlan &plan,
                               llvm::ArrayRef<LaneInt> dims,
                               const SymbolValues &symbols, int64_t width) {
  LaneGuard result;
  if (assumedInside.contains(plan.access.op))
    return result;
  Value *limit = nullptr, *lower = nullptr; // lanes [lower, limit)
  Value *hasRoom = nullptr;
  bool mayCross = false;
  auto meet = [&](Value *&bound, Value *value, llvm::Intrinsic::ID kind) {
    bound = bound ? b.CreateBinaryIntrinsic(kind, bound, value) : value;
  };
  // A plain term of the lane counts from the first one, whatever the offset and
  // other checks make of it.
  llvm::SmallVector<LaneInt> firstLane(dims);
  if (!dims.empty() && dims.back().fromZero)
    firstLane.back() = {dims.back().scalar};
  graph::Facts factsOfAll = laneFacts(dims, symbols),
               factsOfFirst = laneFacts(firstLane, symbols);
  for (const AccessPlan::Check &check : plan.checks) {
    const graph::Facts &facts = check.coefficient ? factsOfFirst : factsOfAll;
    llvm::ArrayRef<LaneInt> at = check.coefficient ? firstLane : dims;
    // The tile as a whole may reach outside where this piece never does.
    graph::Interval start = graph::BoundsFinder(facts)(check.coordinate);
    if (std::optional<int64_t> end = graph::constantOf(check.extent);
        end && check.coefficient) {
      graph::Interval all =
          start + graph::Interval{*check.coefficient, *check.coefficient} *
                      graph::Interval{0, width - 1};
      if (all.low >= 0 && all.high < *end)
        continue;
    } else if (end && start.low >= 0 && start.high < *end) {
      continue; // the lanes are part of what is known
    }
    LaneInt coordinate = evaluate(check.coordinate, at, symbols, facts);
    LaneInt extent = evaluate(check.extent, at, symbols, facts);
    if (coordinate.isScalar() && extent.isScalar() &&
        (width == 1 || (check.coefficient && *check.coefficient == 0))) {
      result.scalar = conjunction(
          b, result.scalar, b.CreateICmpULT(coordinate.scalar, extent.scalar));
      continue;
    }
    if (coordinate.isScalar() && extent.isScalar() && check.coefficient) {
      // 0 <= c0 + k r < e, where dims has r = 0.
      int64_t k = *check.coefficient;
      Value *c0 = coordinate.scalar, *e = extent.scalar;
      // Of one check that neighbours pass, unless its size is none, some lane
      // lies between the bounds or all lie on one side.
      if (graph::BoundsFinder(facts)(check.extent).low < std::abs(k)) {
        hasRoom = b.CreateICmpSGT(e, i64(0));
        mayCross |= std::abs(k) != 1;
      }
      mayCross |= limit != nullptr;
      LaneInt by = constantInt(std::abs(k));
      auto ceilDiv = [&](Value *x) {
        return divideFloor({b.CreateAdd(x, i64(std::abs(k) - 1))}, by, false,
                           false)
            .scalar;
      };
      if (k > 0) {
        meet(limit, ceilDiv(b.CreateSub(e, c0)), llvm::Intrinsic::smin);
        if (start.low < 0)
          meet(lower, ceilDiv(b.CreateNeg(c0)), llvm::Intrinsic::smax);
      } else {
        Value *last = divideFloor({c0}, by, false, false).scalar;
        meet(limit, b.CreateAdd(last, i64(1)), llvm::Intrinsic::smin);
        Value *past =
            divideFloor({b.CreateSub(c0, e)}, by, false, false).scalar;
        meet(lower, b.CreateAdd(past, i64(1)), llvm::Intrinsic::smax);
      }
      continue;
    }
    Value *inside =
        b.CreateICmpULT(widen(coordinate, width), widen(extent, width));
    result.mask = conjunction(b, result.mask, inside);
  }
  auto clamped = [&](Value *bound) {
    bound = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, bound, i64(0));
    bound = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, bound, i64(width));
    return b.CreateTrunc(bound, b.getInt32Ty());
  };
  bool isBounds = !result.mask;
  Value *step = limit || lower ? stepVector(b.getInt32Ty(), width) : nullptr;
  if (limit) {
    result.end = clamped(limit);
    result.mask = conjunction(b, result.mask,
                              b.CreateICmpULT(step, splat(result.end, width)));
  }
  if (auto constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(lower))
    result.leading = constant->getSExtValue();
  if (lower) {
    result.first = clamped(lower);
    result.mask = conjunction(
        b, result.mask, b.CreateICmpUGE(step, splat(result.first, width)));
  }
  if (!isBounds)
    result.first = result.end = nullptr;
  else if (lower)
    result.some =
        mayCross ? b.CreateICmpULT(result.first, result.end) : hasRoom;
  return result;
}

Value *KernelEmitter::zeros(int64_t bytes) {
  zeroBytes = std::max(zeroBytes, bytes);
  if (!zeroBlock) {
    // Of a type that grows: replaced by the final array when the kernel is
    // done.
    zeroBlock = new llvm::GlobalVariable(module, b.getInt8Ty(), true,
                                         llvm::GlobalValue::PrivateLinkage,
                                         b.getInt8(0), "zeros");
  }
  return zeroBlock;
}

Value *KernelEmitter::dump() {
  if (!dumpArea)
    dumpArea = allocateScratch(16 * 8);
  return dumpArea;
}

KernelEmitter::PlanOfPiece KernelEmitter::planOfPiece(const AccessOp &given,
                                                      int64_t innermost,
                                                      int64_t row,
                                                      int64_t chunk) {
  const AccessPlan &rowPlan = plan(given, innermost);
  const AccessOp &access = rowPlan.access;
  Geometry shape(access.tile, lanes);
  PlanOfPiece piece{
      &rowPlan, {}, {}, chunk * lanes, shape.width(chunk), shape.valid(chunk)};
  llvm::SmallVector<int64_t> at = shape.coordinates(row);
  for (int64_t coordinate : at)
    piece.dims.push_back(constantInt(coordinate));
  if (access.tile.getRank() > 0)
    at.push_back(0); // symbols look at the leading coordinates alone
  piece.symbols = symbolValues(access.symbols, at, chunk, shape);
  if (!rowPlan.isRegular() && piece.width > 1) {
    std::unique_ptr<AccessPlan> &slot =
        chunkPlans[{given.op, innermost, chunk}];
    if (!slot)
      slot = std::make_unique<AccessPlan>(
          chunkPlan(rowPlan, piece.start, piece.width));
    piece.plan = slot.get();
    piece.start = 0;
  }
  if (access.tile.getRank() > 0)
    piece.dims.push_back(piece.plan->isRegular()
                             ? constantInt(piece.start)
                             : stepInt(piece.start, piece.width));
  return piece;
}

/// The lanes in bounds, found as those of the accesses beside it are, so that
/// both are one mask.
Value *KernelEmitter::inBoundsPiece(tile::InBoundsOp op, int64_t row,
                                    int64_t chunk) {
  auto all =
      llvm::to_vector(llvm::seq<int64_t>(0, op.getMap().getNumResults()));
  auto type = llvm::cast<mlir::RankedTensorType>(op.getType());
  AccessOp access{
      op,          type,
      {},          op.getSymbols(),
      op.getMap(), op.getShape(),
      /*rank=*/0,  mlir::DenseI64ArrayAttr::get(op.getContext(), all)};
  PlanOfPiece piece = planOfPiece(access, /*innermost=*/-1, row, chunk);
  LaneGuard inside = guard(*piece.plan, piece.dims, piece.symbols, piece.width);
  Value *scalar = inside.scalar ? splat(inside.scalar, piece.width) : nullptr;
  Value *mask = conjunction(b, inside.mask, scalar);
  return mask ? mask : splat(b.getTrue(), piece.width);
}

/// The piece's place in memory, at its first element.
KernelEmitter::PiecePlace KernelEmitter::place(const AccessOp &access,
                                               int64_t innermost, int64_t row,
                                               int64_t chunk, bool load) {
  auto [own, dims, symbols, start, width, valid] =
      planOfPiece(access, innermost, row, chunk);
  const AccessPlan &plan = *own;
  PiecePlace place;
  place.width = width;
  place.valid = valid;
  place.guard = guard(plan, dims, symbols, place.width);
  place.stride = plan.stride;
  if (place.width == 1)
    place.stride = 0;
  if (place.stride && access.tile.getRank() > 0)
    dims.back() = constantInt(start); // a check may have wanted the lanes
  // A load that no lane may do reads zeros, be it masked too: a machine takes
  // hundreds of cycles to see that an address without memory is not wanted. The
  // choice is made here, where it can be hoisted.
  bool choose =
      load && place.guard.scalar && (place.stride == 0 || place.stride == 1);
  int64_t bytes = memoryBytes(access.tile.getElementType());
  place.base = pointer(plan, dims, symbols, &place.offsets,
                       choose ? &place.guard : nullptr,
                       (place.stride == 0 ? 1 : place.width) * bytes);
  if (choose)
    place.guard.scalar = nullptr;
  if (place.stride)
    place.offsets =
        multiply(stepInt(0, place.width), constantInt(*place.stride));
  else if (place.offsets.isScalar())
    place.offsets.small = llvm::Constant::getNullValue(
        llvm::FixedVectorType::get(b.getInt32Ty(), place.width));
  return place;
}
