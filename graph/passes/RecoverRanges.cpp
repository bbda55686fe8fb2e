#include "graph/passes/Bands.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "llvm/Support/Endian.h"
#include <cstring>

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_RECOVERRANGES
#include "graph/passes/Passes.h.inc"

namespace {

/// Below that many, elements are what operators ask for as numbers: axes,
/// sizes.
constexpr int64_t fewest = 16;

/// A constant or a weight as its bytes, those of i1 one each.
struct Stored {
  RankedTensorType type;
  ArrayRef<char> kept;     ///< Of the attribute or the store,
  std::vector<char> owned; ///< or else of its own.

  ArrayRef<char> bytes() const {
    return owned.empty() ? kept : ArrayRef<char>(owned);
  }
  int64_t count() const { return type.getNumElements(); }
  size_t width() const { return bytes().size() / count(); }
  ArrayRef<char> element(int64_t i) const {
    return bytes().slice(i * width(), width());
  }
};

std::optional<Stored> storedIn(Operation *op) {
  Stored stored;
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto value = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!value || value.isSplat())
      return std::nullopt;
    stored.type = cast<RankedTensorType>(value.getType());
    if (value.getElementType().isInteger(1))
      llvm::append_range(stored.owned, value.getValues<bool>());
    else
      stored.kept = value.getRawData();
  } else if (auto weight = dyn_cast<WeightOp>(op)) {
    auto *dialect = op->getContext()->getLoadedDialect<GraphDialect>();
    const Weight *found = dialect->getWeights().lookup(weight.getName());
    if (!found)
      return std::nullopt;
    stored.type = found->type;
    stored.kept = found->bytes;
  }
  if (!stored.type || stored.count() < fewest || stored.bytes().empty() ||
      stored.bytes().size() % stored.count() != 0)
    return std::nullopt;
  return stored;
}

/// base + steps[d] * the coordinate along each dimension d.
struct Progression {
  int64_t base;
  SmallVector<int64_t> steps;
};

std::optional<Progression> progressionOf(const Stored &stored) {
  size_t width = stored.width();
  auto at = [&](int64_t i) -> int64_t {
    const char *data = stored.element(i).data();
    return width == 8 ? (int64_t)llvm::support::endian::read64le(data)
                      : (int32_t)llvm::support::endian::read32le(data);
  };
  // Sums of what is so small do not wrap.
  constexpr int64_t most = int64_t(1) << 30;
  auto isSmall = [](int64_t n) { return -most <= n && n <= most; };
  ArrayRef<int64_t> shape = stored.type.getShape();
  Progression found{at(0), SmallVector<int64_t>(shape.size())};
  if (!isSmall(found.base))
    return std::nullopt;
  int64_t run = 1, reached = std::abs(found.base);
  for (size_t d = shape.size(); d-- > 0; run *= shape[d]) {
    if (shape[d] == 1)
      continue;
    if (!isSmall(at(run)))
      return std::nullopt;
    found.steps[d] = at(run) - found.base;
    reached += std::abs(found.steps[d]) * (shape[d] - 1);
    if (reached > most)
      return std::nullopt;
  }
  SmallVector<int64_t> place(shape.size());
  int64_t wanted = found.base;
  for (int64_t i = 0; i < stored.count(); ++i) {
    if (at(i) != wanted)
      return std::nullopt;
    for (size_t d = shape.size(); d-- > 0;) {
      wanted += found.steps[d];
      if (++place[d] < shape[d])
        break;
      wanted -= found.steps[d] * shape[d];
      place[d] = 0;
    }
  }
  return found;
}

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
  if (!stored)
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
