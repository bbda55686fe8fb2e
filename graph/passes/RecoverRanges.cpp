#include "graph/passes/Bands.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/Stored.h"
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

bool isZero(ArrayRef<char> element) {
  return llvm::all_of(element, [](char byte) { return byte == 0; });
}

/// What all elements of a tensor are that are not zero; nothing where they
/// differ, which two of a weight do, or where there are none.
std::optional<ArrayRef<char>> otherThanZero(const Stored &stored) {
  std::optional<ArrayRef<char>> other;
  for (int64_t i = 0; i < stored.count(); ++i) {
    ArrayRef<char> element = stored.element(i);
    if (isZero(element))
      continue;
    if (!other)
      other = element;
    else if (*other != element)
      return std::nullopt;
  }
  return other;
}

/// What a mask that is added has where it keeps nothing: a number below 0.
std::optional<double> fillOf(const Stored &stored) {
  auto type = dyn_cast<FloatType>(stored.type.getElementType());
  size_t bits = type ? type.getWidth() : 0;
  if (bits < 16 || bits % 8 != 0 || bits / 8 != stored.width())
    return std::nullopt;
  std::optional<ArrayRef<char>> other = otherThanZero(stored);
  if (!other)
    return std::nullopt;
  uint64_t word = 0;
  std::memcpy(&word, other->data(), other->size());
  APFloat number(type.getFloatSemantics(), APInt(bits, word));
  bool inexact;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
  double fill = number.convertToDouble();
  return fill < 0 ? std::optional(fill) : std::nullopt;
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
  bool isMask = element.isInteger(1);
  std::optional<double> fill = isMask ? std::nullopt : fillOf(*stored);
  if (!isMask && !fill)
    return {};
  // A mask that is added keeps where it is 0.
  auto found = bandsOf(stored->type.getShape(), [&](int64_t i) {
    return isZero(stored->element(i)) != isMask;
  });
  if (!found)
    return {};
  Value keeps = ranges.within(*found);
  auto scalar = [&](double value) {
    return scalarConstant(b, op->getLoc(), element, value);
  };
  return isMask ? keeps
                : SelectOp::create(b, op->getLoc(), keeps, scalar(0),
                                   scalar(*fill));
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
    });
    eraseDead(getOperation());
  }
};

} // namespace
} // namespace charonia::graph
