#include "graph/passes/Bands.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/Stored.h"
#include "graph/passes/Views.h"
#include "mlir/IR/IRMapping.h"
#include <cstring>

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_RECOVERRANGES
#include "graph/passes/Passes.h.inc"

namespace {

/// Below that many, elements are what operators ask for as numbers: axes,
/// sizes.
constexpr int64_t fewest = 16;

/// What is stored, made of ranges where `b` is.
class Ranges {
public:
  Ranges(OpBuilder &b, Location loc, RankedTensorType type)
      : b(b), loc(loc), type(type) {}

  Value sumOf(const Progression &p) {
    Term sum;
    for (auto [d, step] : llvm::enumerate(p.steps)) {
      if (step == 0)
        continue;
      Term term = places(d, type.getElementType());
      if (step != 1)
        term = term * double(step);
      sum = sum ? sum + term : term;
    }
    if (!sum)
      return everywhere(type.getElementType(), p.base);
    if (p.base != 0)
      sum = sum + double(p.base);
    return broadcastTo(b, loc, sum.get(), type);
  }

  /// True where all bands hold.
  Value within(ArrayRef<Band> bands) {
    Term all;
    for (const Band &band : bands)
      for (bool isLow : {true, false}) {
        std::optional<int64_t> limit = isLow ? band.low : band.high;
        if (!limit)
          continue;
        Term to = places(band.to, b.getI64Type()),
             end = band.from < 0 ? to.scalar(double(*limit))
                   : *limit == 0
                       ? places(band.from, b.getI64Type())
                       : places(band.from, b.getI64Type()) + double(*limit);
        Term holds = to.make<CompareOp>(isLow ? Predicate::ge : Predicate::le,
                                        to.get(), end.get());
        all = all ? all.make<AndOp>(all.get(), holds.get()) : holds;
      }
    return all ? broadcastTo(b, loc, all.get(), type.clone(b.getI1Type()))
               : everywhere(b.getI1Type(), 1);
  }

private:
  Value everywhere(Type element, int64_t number) {
    return broadcastTo(b, loc, scalarConstant(b, loc, element, double(number)),
                       type.clone(element));
  }

  /// The coordinate along `dim`, of one element along all others.
  Term places(int64_t dim, Type element) {
    SmallVector<int64_t> shape(type.getRank(), 1);
    shape[dim] = type.getDimSize(dim);
    Value iota =
        IotaOp::create(b, loc, RankedTensorType::get(shape, element), dim);
    return Term(iota, b, loc);
  }

  OpBuilder &b;
  Location loc;
  RankedTensorType type;
};

/// A mask that is added: 0, of either sign, where it keeps a score, and a
/// number below it elsewhere.
struct AddedMask {
  ArrayRef<char> kept; ///< The bytes of that 0.
  double zero, fill;
};

/// Nothing of a tensor of more than two numbers, which a weight's first few
/// elements say.
std::optional<AddedMask> addedMask(const Stored &stored) {
  auto type = dyn_cast<FloatType>(stored.type.getElementType());
  size_t bits = type ? type.getWidth() : 0;
  if (bits < 16 || bits % 8 != 0 || bits / 8 != stored.width())
    return std::nullopt;
  ArrayRef<char> first = stored.element(0);
  std::optional<ArrayRef<char>> other;
  for (int64_t i = 1; i < stored.count(); ++i) {
    ArrayRef<char> element = stored.element(i);
    if (element == first || element == other)
      continue;
    if (other)
      return std::nullopt;
    other = element;
  }
  if (!other)
    return std::nullopt;
  auto numberOf = [&](ArrayRef<char> bytes) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    APFloat number(type.getFloatSemantics(), APInt(bits, word));
    bool inexact;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                   &inexact);
    return number.convertToDouble();
  };
  AddedMask mask{first, numberOf(first), numberOf(*other)};
  if (mask.zero != 0) {
    mask.kept = *other;
    std::swap(mask.zero, mask.fill);
  }
  bool isMask = mask.zero == 0 && mask.fill < 0;
  return isMask ? std::optional(mask) : std::nullopt;
}

Value recovered(OpBuilder &b, Operation *op) {
  std::optional<Stored> stored = storedIn(op);
  if (!stored || stored->count() < fewest || stored->bytes().empty() ||
      stored->bytes().size() % stored->count() != 0)
    return {};
  Ranges ranges(b, op->getLoc(), stored->type);
  Type element = stored->type.getElementType();
  if (element.isSignlessInteger(32) || element.isSignlessInteger(64)) {
    std::optional<Progression> found = progressionOf(*stored);
    return found ? ranges.sumOf(*found) : Value();
  }
  std::optional<AddedMask> added;
  if (!element.isInteger(1) && !(added = addedMask(*stored)))
    return {};
  auto found = bandsOf(stored->type.getShape(), [&](int64_t i) {
    return added ? stored->element(i) == added->kept
                 : stored->element(i).front() != 0;
  });
  if (!found)
    return {};
  Value keeps = ranges.within(*found);
  auto scalar = [&](double value) {
    return scalarConstant(b, op->getLoc(), element, value);
  };
  return added ? SelectOp::create(b, op->getLoc(), keeps, scalar(added->zero),
                                  scalar(added->fill))
               : keeps;
}

/// Casts to truth values of views of a value.
void findCastsToBool(Value value, SmallVectorImpl<CastOp> &found) {
  for (Operation *user : value.getUsers()) {
    if (user->getNumResults() != 1 || user->getOperand(0) != value)
      continue;
    Value result = user->getResult(0);
    auto op = dyn_cast<CastOp>(user);
    if (op && getElementTypeOrSelf(result).isInteger(1))
      found.push_back(op);
    else if (composedView(result))
      findCastsToBool(result, found);
  }
}

/// Replaces the cast of views of `numbers` by the same views of `truths`, which
/// hold where the numbers are not 0.
void replaceCast(OpBuilder &b, CastOp op, Value numbers, Value truths) {
  SmallVector<Operation *> views;
  for (Value value = op->getOperand(0); value != numbers;
       value = views.back()->getOperand(0))
    views.push_back(value.getDefiningOp());
  b.setInsertionPoint(op);
  IRMapping mapping;
  mapping.map(numbers, truths);
  Value last = truths;
  for (Operation *view : llvm::reverse(views)) {
    Operation *copy = b.clone(*view, mapping);
    last = copy->getResult(0);
    last.setType(cast<RankedTensorType>(last.getType()).clone(b.getI1Type()));
    mapping.map(view->getResult(0), last);
  }
  op->getResult(0).replaceAllUsesWith(last);
}

/// Whether a number is not 0, of either sign.
bool isTrue(Type element, ArrayRef<char> bytes) {
  unsigned char sign = isa<FloatType>(element) ? 0x80 : 0;
  return llvm::any_of(bytes.drop_back(), [](char c) { return c != 0; }) ||
         (static_cast<unsigned char>(bytes.back()) & ~sign) != 0;
}

/// A mask that is stored as numbers and cast where it is read.
Value truthsOf(OpBuilder &b, Operation *op) {
  std::optional<Stored> stored = storedIn(op);
  if (!stored || stored->count() < fewest)
    return {};
  Type element = stored->type.getElementType();
  unsigned bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  if (bits < 8 || bits % 8 != 0 || stored->width() != bits / 8 ||
      (isa<FloatType>(element) && bits < 16))
    return {};
  auto found = bandsOf(stored->type.getShape(), [&](int64_t i) {
    return isTrue(element, stored->element(i));
  });
  return found ? Ranges(b, op->getLoc(), stored->type).within(*found) : Value();
}

struct RecoverRanges : impl::RecoverRangesBase<RecoverRanges> {
  void runOnOperation() override {
    OpBuilder b(&getContext());
    getOperation().walk([&](GraphOpInterface op) {
      if (op.getRole() != OpRole::Source || op->use_empty())
        return;
      b.setInsertionPoint(op);
      if (Value value = recovered(b, op))
        op->getResult(0).replaceAllUsesWith(value);
      else
        replaceCasts(b, op->getResult(0), [&] { return truthsOf(b, op); });
    });
    // Truth values that pass as numbers.
    getOperation().walk([&](CastOp op) {
      Value truths = op->getOperand(0);
      if (getElementTypeOrSelf(truths).isInteger(1))
        replaceCasts(b, op->getResult(0), [&] { return truths; });
    });
    eraseDead(getOperation());
  }

  static void replaceCasts(OpBuilder &b, Value numbers,
                           llvm::function_ref<Value()> make) {
    SmallVector<CastOp> casts;
    findCastsToBool(numbers, casts);
    Value truths = casts.empty() ? Value() : make();
    for (CastOp cast : casts)
      if (truths)
        replaceCast(b, cast, numbers, truths);
  }
};

} // namespace
} // namespace charonia::graph
