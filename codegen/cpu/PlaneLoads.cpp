// Loads of lanes that lie in a few planes of a tensor of open sizes: what lies
// between planes is known when the model runs, where in its plane a lane lies
// is known here.
#include "codegen/cpu/KernelEmitter.h"

using namespace charonia;
using namespace charonia::cpu;

std::optional<llvm::SmallVector<int64_t>>
charonia::cpu::constantLanes(const LaneInt &value, int64_t valid) {
  llvm::SmallVector<int64_t> result(valid, 0);
  for (Value *part : {value.small, value.wide}) {
    if (!part)
      continue;
    auto *constants = llvm::dyn_cast<llvm::Constant>(part);
    if (!constants)
      return std::nullopt;
    for (auto [i, sum] : llvm::enumerate(result)) {
      auto *number = llvm::dyn_cast_or_null<llvm::ConstantInt>(
          constants->getAggregateElement(i));
      if (!number)
        return std::nullopt;
      sum += number->getSExtValue();
    }
  }
  return result;
}

/// What lanes add to the offset of a piece, as its pointer leaves it to them:
/// of a term in which a size is a factor all, of others what differs between
/// lanes.
std::optional<KernelEmitter::LaneDistances>
KernelEmitter::laneDistances(const PlanOfPiece &piece) {
  const AccessPlan &plan = *piece.plan;
  unsigned last = plan.access.tile.getRank() - 1;
  graph::Facts facts = laneFacts(piece.dims, piece.symbols);
  LaneDistances result;
  result.known.assign(piece.valid, 0);
  for (const graph::Sum::Term &term : plan.offset.terms) {
    if (llvm::any_of(plan.varyingSymbols,
                     [&](unsigned s) { return term.usesSymbol(s); }))
      return std::nullopt;
    if (!term.usesDim(last))
      continue;
    graph::Sum::Term lanes{term.coefficient, {}}, size;
    for (mlir::AffineExpr atom : term.atoms)
      (atom.isFunctionOfDim(last) ? lanes : size).atoms.push_back(atom);
    LaneInt value = evaluate(lanes.toExpr(), piece.dims, piece.symbols, facts);
    std::optional<llvm::SmallVector<int64_t>> numbers =
        constantLanes(value, piece.valid);
    auto start = llvm::dyn_cast<llvm::ConstantInt>(value.scalar);
    if (!numbers || (!size.atoms.empty() && !start))
      return std::nullopt;
    if (size.atoms.empty()) {
      for (auto [sum, number] : llvm::zip_equal(result.known, *numbers))
        sum += number;
      continue;
    }
    for (int64_t &number : *numbers)
      number += start->getSExtValue();
    LaneInt factor = evaluate(size.toExpr(), piece.dims, piece.symbols, facts);
    if (!factor.isScalar())
      return std::nullopt;
    result.planes.emplace_back(factor.scalar, std::move(*numbers));
  }
  return result;
}

/// One load for each plane, of a run that holds its lanes, of which these are
/// picked. Null where lanes are in many planes, or far from each other.
Value *KernelEmitter::loadPlanes(tile::LoadOp op, const PiecePlace &at,
                                 const PlanOfPiece &piece, Value *mask) {
  mlir::Type element = op.getType().getElementType();
  int64_t bytes = memoryBytes(element),
          most = (hasAvx512(isa) ? 64 : 32) / bytes;
  if (at.valid < 4 || at.guard.scalar || (bytes < 4 && !hasAvx512(isa)))
    return nullptr;
  if (mask && !llvm::isa<llvm::Constant>(mask))
    return nullptr;
  std::optional<LaneDistances> lanes = laneDistances(piece);
  if (!lanes || lanes->planes.empty())
    return nullptr;
  llvm::MapVector<llvm::SmallVector<int64_t>, llvm::SmallVector<int64_t>> runs;
  constexpr size_t mostRuns = 4;
  for (int64_t lane = 0; lane < at.valid; ++lane) {
    llvm::SmallVector<int64_t> plane;
    for (auto &[factor, numbers] : lanes->planes)
      plane.push_back(numbers[lane]);
    runs[plane].push_back(lane);
  }
  if (runs.size() > mostRuns || int64_t(2 * runs.size()) > at.valid)
    return nullptr;
  Value *value = nullptr;
  for (auto &[plane, own] : runs) {
    Value *offset = at.offsets.scalar;
    for (auto [number, size] : llvm::zip_equal(plane, lanes->planes))
      offset = b.CreateAdd(offset, b.CreateMul(size.first, i64(number)));
    Value *run = loadRun(op, at, offset, own, lanes->known, most, mask);
    if (!run)
      return nullptr;
    llvm::SmallVector<int> both(at.width);
    for (int64_t lane = 0; lane < at.width; ++lane)
      both[lane] = llvm::is_contained(own, std::min(lane, at.valid - 1))
                       ? at.width + lane
                       : lane;
    value = value ? b.CreateShuffleVector(value, run, both) : run;
  }
  return mask ? b.CreateSelect(mask, value,
                               llvm::Constant::getNullValue(value->getType()))
              : value;
}

/// Lanes `own` of a piece, which lie at `known` from the base and `offset`:
/// what is between two of them is memory, what is behind them need not be.
Value *KernelEmitter::loadRun(tile::LoadOp op, const PiecePlace &at,
                              Value *offset, llvm::ArrayRef<int64_t> own,
                              llvm::ArrayRef<int64_t> known, int64_t most,
                              Value *mask) {
  mlir::Type element = op.getType().getElementType();
  llvm::Type *scalarType = memoryType(element);
  int64_t low = known[own.front()], high = low;
  for (int64_t lane : own) {
    low = std::min(low, known[lane]);
    high = std::max(high, known[lane]);
  }
  int64_t span = high - low + 1, width = llvm::PowerOf2Ceil(span);
  if (width > most)
    return nullptr;
  llvm::SmallVector<int> picked(at.width, llvm::PoisonMaskElem);
  llvm::SmallVector<int64_t> from(at.valid, -1);
  for (int64_t lane = 0; lane < at.width; ++lane)
    if (int64_t real = std::min(lane, at.valid - 1);
        llvm::is_contained(own, real)) {
      picked[lane] = known[real] - low;
      from[real] = picked[lane];
    }
  llvm::Align align(memoryBytes(element));
  Value *place = b.CreateConstGEP1_64(
      scalarType, b.CreateGEP(scalarType, at.base, offset), low);
  Value *wanted = nullptr;
  if (mask && !(wanted = maskOfRun(b, mask, from, width)))
    return nullptr;
  if (!mask && span < width)
    wanted = laneMask(span, width);
  llvm::Type *type = pieceType(scalarType, width);
  llvm::Instruction *loaded;
  if (wanted && width > 1)
    loaded = b.CreateMaskedLoad(type, place, align, wanted,
                                llvm::Constant::getNullValue(type));
  else if (wanted)
    return nullptr;
  else
    loaded = b.CreateAlignedLoad(type, place, align);
  if (llvm::MDNode *apart = noalias.lookup(op))
    loaded->setMetadata(llvm::LLVMContext::MD_noalias, apart);
  return width == 1 ? splat(loaded, at.width)
                    : b.CreateShuffleVector(loaded, picked);
}
