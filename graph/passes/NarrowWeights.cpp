#include "graph/passes/NarrowWeights.h"
#include "graph/ir/StoredWeight.h"
#include "graph/passes/Expression.h"
#include "graph/passes/NarrowRange.h"
#include "graph/passes/Panels.h"
#include <cmath>
#include <cstring>

using namespace mlir;

namespace charonia::graph {
namespace {

/// So many instructions for a register of elements are cheaper than to read
/// it from memory; so many values are looked at.
constexpr int64_t mostCode = 12, mostValues = 48;

/// What the packed parts may take of the weight's own bytes, in quarters.
constexpr int64_t mostQuarters = 3;

/// A part has so many elements of the weight's at most, or is one of integers.
constexpr int64_t smallPart = 8;

constexpr int64_t wordBits = 32;

/// How integers of some bits lie: in bytes, or some neighbouring terms in a
/// word.
struct Width {
  int64_t bits;
  bool hasSign;
  int64_t perWord() const { return wordBits / bits; }
};

/// The least width for what a value has, if it is 8 bits at most.
std::optional<Width> widthOf(Value value) {
  std::optional<IntegerRange> range = integerRangeOf(value);
  if (!range)
    return std::nullopt;
  for (int64_t bits : {2, 4, 8}) {
    int64_t all = int64_t(1) << bits;
    if (range->isWithin(0, all - 1))
      return Width{bits, false};
    if (range->isWithin(-all / 2, all / 2 - 1))
      return Width{bits, true};
  }
  return std::nullopt;
}

/// Whether numbers are finite and none is so large that sums of what it scales
/// could be told from sums that are scaled: by bytes and constants, what is
/// multiplied and added of these, and what is divided by a constant of 1 or
/// more.
bool isUsual(Value value, int depth = 0) {
  constexpr int deepest = 8;
  const llvm::APFloat most(std::ldexp(1.0, 40));
  auto isSmall = [&](llvm::APFloat number) {
    bool inexact;
    number.convert(llvm::APFloat::IEEEdouble(),
                   llvm::APFloat::rmNearestTiesToEven, &inexact);
    return number.isFinite() && abs(number) <= most;
  };
  auto op = value.getDefiningOp<GraphOpInterface>();
  auto real = dyn_cast<FloatType>(getElementTypeOrSelf(value));
  if (!op || depth > deepest)
    return false;
  if (!real)
    return true;
  DenseFPElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return llvm::all_of(constant.getValues<llvm::APFloat>(), isSmall);
  if (auto weight = dyn_cast<WeightOp>(op.getOperation())) {
    const Weight *found = storedWeight(weight);
    unsigned bytes = elementBytes(real);
    if (!found || bytes > 8)
      return false;
    for (size_t i = 0; i + bytes <= found->bytes.size(); i += bytes) {
      uint64_t bits = 0;
      std::memcpy(&bits, found->bytes.data() + i, bytes);
      if (!isSmall(llvm::APFloat(real.getFloatSemantics(),
                                 llvm::APInt(real.getWidth(), bits))))
        return false;
    }
    return true;
  }
  auto divisor =
      isa<DivOp>(op) ? splatOf(op->getOperand(1)) : std::optional<double>();
  return (op.getRole() == OpRole::View ||
          isa<CastOp, MulOp, AddOp, SubOp>(op) ||
          (divisor && std::abs(*divisor) >= 1)) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isUsual(operand, depth + 1);
         });
}

/// What stands between a part and the weight: views, and operators element by
/// element, as which broadcasts count.
using Path = SmallVector<Operation *>;

/// A part of a weight: a value that is packed, and how it is read.
struct Part {
  Value value;
  Path path; ///< From the weight on.
  AffineMap map;
  std::optional<Width> width; ///< Of one as large as the weight.
};

class Packer {
public:
  Packer(PrepareFunction &prepare, WeightsOnly &weightsOnly, Value weight,
         unsigned columns, int64_t panel)
      : prepare(prepare), weightsOnly(weightsOnly), weight(weight),
        columns(columns), panel(panel) {
    shape =
        llvm::to_vector(cast<RankedTensorType>(weight.getType()).getShape());
    terms = columns + 1 == shape.size() ? shape.size() - 2 : shape.size() - 1;
  }

  Value run(OpBuilder &builder) {
    Path path;
    Exprs extents = getShape(weight);
    AffineMap same =
        AffineMap::getMultiDimIdentityMap(shape.size(), weight.getContext());
    if (shape.size() < 2 || !isa<FloatType>(getElementTypeOrSelf(weight)) ||
        !collect(weight, path, same) || !isNarrow() ||
        byteCount() * 4 >
            mostQuarters * byteSize(cast<RankedTensorType>(weight.getType())))
      return {};
    outside = &builder;
    path.clear();
    next = 0;
    return cast(builder, rebuild(weight), getElementTypeOrSelf(weight));
  }

private:
  static int64_t elementsOf(Value value) {
    return cast<RankedTensorType>(value.getType()).getNumElements();
  }

  /// Whether there is a part of integers at all.
  bool isNarrow() const {
    return llvm::any_of(parts, [](const Part &part) { return !!part.width; });
  }

  /// Notes the parts of what is read at `path` of the weight, in the order in
  /// which rebuild() comes by; false: they are too many or too large.
  bool collect(Value value, Path &path, AffineMap map) {
    if (++seen > mostValues || !weightsOnly(value))
      return false;
    if (splatOf(value)) // infinities and NaN are not below either
      return std::abs(*splatOf(value)) <= std::ldexp(1.0, 40);
    auto op = value.getDefiningOp<GraphOpInterface>();
    if (elementsOf(value) * smallPart <= elementsOf(weight)) {
      parts.push_back({value, path, map, {}});
      return isUsual(value);
    }
    if (std::optional<Width> width = widthOf(value);
        width && !isSpread(value) && !isNarrowerBelow(value, *width)) {
      parts.push_back({value, path, map, width});
      return true;
    }
    if (op->getNumOperands() == 0 ||
        (op.getRole() != OpRole::View &&
         (op.getRole() != OpRole::Pointwise || op.isExpensive())))
      return false;
    code += op.getRole() == OpRole::View ? 0 : op.getCodeSize();
    if (code > mostCode)
      return false;
    path.push_back(op);
    for (OpOperand &operand : op->getOpOperands())
      if (!collect(operand.get(), path,
                   composeMaps(op.getOperandMap(operand.getOperandNumber()),
                               map, getShape(weight))))
        return false;
    path.pop_back();
    return true;
  }

  /// Whether a value is computed of nothing but small parts.
  bool isSpread(Value value, int depth = 0) const {
    constexpr int deepest = 8;
    auto op = value.getDefiningOp<GraphOpInterface>();
    if (elementsOf(value) * smallPart <= elementsOf(weight) || splatOf(value))
      return true;
    return depth < deepest && op->getNumOperands() > 0 &&
           (op.getRole() == OpRole::View ||
            op.getRole() == OpRole::Pointwise) &&
           llvm::all_of(op->getOperands(), [&](Value operand) {
             return isSpread(operand, depth + 1);
           });
  }

  /// Whether integers with fewer bits are what the value is made of.
  static bool isNarrowerBelow(Value value, const Width &width, int depth = 0) {
    constexpr int deepest = 8;
    return depth < deepest &&
           llvm::any_of(
               value.getDefiningOp()->getOperands(),
               [&](Value operand) {
                 std::optional<Width> below = widthOf(operand);
                 return below && elementsOf(operand) == elementsOf(value) &&
                        (below->bits < width.bits ||
                         isNarrowerBelow(operand, width, depth + 1));
               });
  }

  /// Along dimension `d` of the weight: the most neighbours that read the same
  /// of a part.
  int64_t blockAlong(const Part &part, unsigned d) const {
    if (!part.map.isFunctionOfDim(d))
      return shape[d];
    int64_t most = 1;
    for (AffineExpr e : part.map.getResults())
      e.walk([&](AffineExpr inner) {
        auto divided = dyn_cast<AffineBinaryOpExpr>(inner);
        if (!divided || divided.getKind() != AffineExprKind::FloorDiv)
          return;
        std::optional<int64_t> by = constantOf(divided.getRHS());
        if (by && *by > most && isSameInBlocks(part.map, d, *by))
          most = *by;
      });
    return most;
  }

  bool isSameInBlocks(AffineMap map, unsigned d, int64_t block) const {
    MLIRContext *context = map.getContext();
    unsigned inside = shape.size();
    Exprs dims;
    for (unsigned i = 0; i < shape.size(); ++i)
      dims.push_back(getAffineDimExpr(i, context));
    dims[d] = dims[d] * block + getAffineDimExpr(inside, context);
    Exprs extents = getShape(weight);
    extents[d] =
        getAffineConstantExpr(llvm::divideCeil(shape[d], block), context);
    extents.push_back(getAffineConstantExpr(block, context));
    AffineMap blocks =
        simplify(mapOf(inside + 1, applyMap(map, dims), context), extents);
    return !blocks.isFunctionOfDim(inside);
  }

  /// Blocks of the weight in which a part is the same, along each dimension.
  SmallVector<int64_t> blocksOf(const Part &part) const {
    SmallVector<int64_t> blocks;
    for (unsigned d = 0; d < shape.size(); ++d)
      blocks.push_back(part.width ? 1 : blockAlong(part, d));
    return blocks;
  }

  int64_t byteCount() const {
    int64_t bytes = 0;
    for (const Part &part : parts) {
      int64_t bits = part.width
                         ? part.width->bits
                         : 8 * elementBytes(getElementTypeOrSelf(part.value));
      int64_t elements = 1;
      for (auto [extent, block] : llvm::zip(shape, blocksOf(part)))
        elements *= llvm::divideCeil(extent, block);
      bytes += llvm::divideCeil(elements * bits, 8);
    }
    return bytes;
  }

  /// The same element by element of the weight, before it is packed.
  Value spread(OpBuilder &builder, const Part &part) {
    Value value = prepare.import(part.value);
    for (Operation *op : llvm::reverse(part.path)) {
      auto graphOp = cast<GraphOpInterface>(op);
      if (graphOp.getRole() == OpRole::View) {
        value = Term(value, builder, value.getLoc()).under(graphOp).get();
        continue;
      }
      auto type = cast<RankedTensorType>(op->getResult(0).getType());
      value = broadcastTo(builder, value.getLoc(), value,
                          type.clone(getElementTypeOrSelf(value)));
    }
    return value;
  }

  /// A part in the shape of the weight, read from where it is packed.
  Value packed(const Part &part) {
    OpBuilder &inside = prepare.getBuilder();
    Value value = spread(inside, part);
    if (!part.width) {
      if (std::optional<Width> width = widthOf(part.value))
        value = cast(inside, value, integerType(8, width->hasSign));
      return packedBlocks(inside, value, blocksOf(part));
    }
    const Width &width = *part.width;
    bool inBytes = width.bits == 8;
    if (inBytes)
      value = cast(inside, value, integerType(8, width.hasSign));
    Value panels = packPanels(inside, value, columns, panel);
    if (!inBytes)
      panels = joinTerms(inside, panels, width);
    panels = prepare.publish(panels, *outside);
    if (!inBytes)
      panels = splitTerms(panels, width);
    return unpackPanels(*outside, panels, columns, shape);
  }

  /// One element for each block.
  Value packedBlocks(OpBuilder &inside, Value value, ArrayRef<int64_t> blocks) {
    ViewChain chain(inside, value);
    for (unsigned d = 0; d < shape.size(); ++d)
      chain.pick(d, 0, blocks[d], llvm::divideCeil(shape[d], blocks[d]));
    SmallVector<int64_t> few(chain.sizes());
    bool inPanels = blocks[columns] == 1;
    value = inPanels ? packPanels(inside, chain.get(), columns, panel)
                     : chain.get();
    value = prepare.publish(value, *outside);
    if (inPanels)
      value = unpackPanels(*outside, value, columns, few);
    ViewChain all(*outside, value);
    for (unsigned d = 0; d < shape.size(); ++d)
      all.repeat(d, blocks[d], shape[d]);
    return all.get();
  }

  /// The dimension of terms in panels.
  unsigned termsInPanels() const { return terms < columns ? terms + 1 : terms; }

  Type integerType(int64_t bits, bool hasSign) const {
    return IntegerType::get(weight.getContext(), bits,
                            hasSign ? IntegerType::Signless
                                    : IntegerType::Unsigned);
  }
  Type wordType(const Width &width) const {
    return integerType(wordBits, width.hasSign);
  }

  static Value cast(OpBuilder &builder, Value value, Type element) {
    if (getElementTypeOrSelf(value) == element)
      return value;
    return CastOp::create(builder, value.getLoc(), value, element);
  }
  static Value number(OpBuilder &builder, Value like, int64_t value) {
    return scalarConstant(builder, like.getLoc(), getElementTypeOrSelf(like),
                          double(value));
  }

  /// [.., K, panel] to [.., K / perWord, panel]: neighbouring terms side by
  /// side in a word, the first in its low bits.
  Value joinTerms(OpBuilder &b, Value panels, const Width &width) {
    unsigned d = termsInPanels();
    ViewChain chain(b, panels);
    chain.pad(d, llvm::alignTo(chain.sizes()[d], width.perWord()));
    Value words, all = chain.get();
    for (int64_t i = 0; i < width.perWord(); ++i) {
      ViewChain one(b, all);
      one.pick(d, i, width.perWord(), one.sizes()[d] / width.perWord());
      Value term = cast(b, one.get(), wordType(width));
      Location loc = term.getLoc();
      term = AndOp::create(b, loc, term,
                           number(b, term, (int64_t(1) << width.bits) - 1));
      term = ShlOp::create(b, loc, term, number(b, term, i * width.bits));
      words = words ? Value(OrOp::create(b, loc, words, term)) : term;
    }
    return words;
  }

  /// [.., K / perWord, panel] to [.., K, panel], numbers in words.
  Value splitTerms(Value words, const Width &width) {
    OpBuilder &b = *outside;
    Location loc = words.getLoc();
    unsigned d = termsInPanels();
    int64_t count = width.perWord(), rank = shape.size() + 1;
    ViewChain chain(b, words);
    chain.split(d, 1);
    SmallVector<int64_t> all(chain.sizes()), along(rank + 1, 1);
    all[d + 1] = along[d + 1] = count;
    chain.broadcast(all);
    // Where in a word the term has its low bits, or how far its high bits are
    // from the word's.
    auto shifts = [&](int64_t start, int64_t step) {
      Value places = IotaOp::create(
          b, loc, RankedTensorType::get({wordBits}, wordType(width)), 0);
      ViewChain chain(b, places);
      chain.pick(0, start, step, count);
      chain.reshape(along);
      chain.broadcast(all);
      return chain.get();
    };
    Value value = chain.get();
    if (width.hasSign) {
      value = ShlOp::create(b, loc, value,
                            shifts(wordBits - width.bits, -width.bits));
      value =
          ShrOp::create(b, loc, value, number(b, value, wordBits - width.bits));
    } else {
      value = ShrOp::create(b, loc, value, shifts(0, width.bits));
      value = AndOp::create(b, loc, value,
                            number(b, value, (int64_t(1) << width.bits) - 1));
      // With a sign they become floats in one instruction.
      value = cast(b, value, b.getI32Type());
    }
    ViewChain result(b, value);
    result.join(d);
    result.cut(d, shape[terms]);
    return result.get();
  }

  /// `value` in the shape of the weight: its own operators on packed parts.
  /// Integers may be in another type that has their values.
  Value rebuild(Value value) {
    if (splatOf(value)) {
      Type element = getElementTypeOrSelf(value);
      return spreadOver(
          scalarConstant(*outside, value.getLoc(), element, *splatOf(value)));
    }
    if (next < parts.size() && parts[next].value == value)
      return packed(parts[next++]);
    Operation *op = value.getDefiningOp();
    if (cast<GraphOpInterface>(op).getRole() == OpRole::View)
      return rebuild(op->getOperand(0));
    IRMapping mapping;
    bool isCast = isa<CastOp>(op);
    for (Value operand : op->getOperands()) {
      Value made = rebuild(operand);
      if (!isCast)
        made = cast(*outside, made, getElementTypeOrSelf(operand));
      mapping.map(operand, made);
    }
    Operation *copy = outside->clone(*op, mapping);
    copy->getResult(0).setType(
        RankedTensorType::get(shape, getElementTypeOrSelf(op->getResult(0))));
    return copy->getResult(0);
  }

  Value spreadOver(Value scalar) {
    return BroadcastOp::create(
        *outside, scalar.getLoc(),
        RankedTensorType::get(shape, getElementTypeOrSelf(scalar)), scalar);
  }

  PrepareFunction &prepare;
  WeightsOnly &weightsOnly;
  Value weight;
  unsigned columns, terms;
  int64_t panel, seen = 0, code = 0;
  SmallVector<int64_t> shape;
  SmallVector<Part> parts;
  size_t next = 0;
  OpBuilder *outside = nullptr;
};

} // namespace

Value NarrowWeights::pack(Value weight, unsigned columns, OpBuilder &outside) {
  return Packer(prepare, weightsOnly, weight, columns, panel).run(outside);
}

} // namespace charonia::graph
