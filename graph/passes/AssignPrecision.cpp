#include "graph/analysis/Ranges.h"
#include "graph/analysis/Weights.h"
#include "graph/ir/Exact.h"
#include "graph/ir/Float8.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "mlir/IR/Matchers.h"

namespace charonia::graph {
#define GEN_PASS_DEF_ASSIGNPRECISION
#include "graph/passes/Passes.h.inc"
} // namespace charonia::graph

using namespace mlir;
using namespace charonia::graph;

namespace {

/// What an f32 value of the model is.
enum class Kind {
  /// Weights, constants, views of them.
  Fixed,
  /// Computed from integers (and constants): positions, masks. Inputs of which
  /// a reader wants the full range, and what leads from them to that reader.
  Index,
  /// A reduction, and what is made of reductions.
  Wide,
  /// An activation: gets the small type.
  Narrow
};

class AssignPrecision
    : public charonia::graph::impl::AssignPrecisionBase<AssignPrecision> {
public:
  using AssignPrecisionBase::AssignPrecisionBase;

private:
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    MLIRContext *context = &getContext();
    if (precision == "fp32" || precision == "tf32")
      return;
    if (precision == "fp16") {
      target = Float16Type::get(context);
    } else if (precision == "bf16") {
      target = BFloat16Type::get(context);
    } else {
      function.emitError("precision must be fp32, tf32, fp16 or bf16, not ")
          << precision;
      return signalPassFailure();
    }

    Block &block = function.getBody().front();
    // From here on a number that is added to it is lost in rounding.
    int digits = APFloat::semanticsPrecision(target.getFloatSemantics());
    ranges.emplace(std::ldexp(1.0, digits));
    findFullRange(block);
    findDistances(block);
    findPartialSums(block);
    // What distances are made of.
    findFullRange(block);
    // A softmax feels more than that: here numbers are rounded by 2^-6.
    for (auto op : block.getOps<GraphOpInterface>())
      if (llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
            return wantsFullRange(operand);
          }))
        ranges->setLimit(op, std::ldexp(1.0, digits - 5));
    findGuards(block);
    for (Value argument : block.getArguments())
      if (isWide(argument)) {
        bool full = fullRange.contains(argument);
        kinds[argument] = full ? Kind::Index : Kind::Narrow;
        if (full) {
          ranges->setUnbounded(argument);
          addMask(argument);
        }
      }
    SmallVector<Operation *> ops;
    for (Operation &op : block)
      ops.push_back(&op);
    // Kinds first: they read types that the second walk changes.
    for (Operation *op : ops)
      if (auto graphOp = dyn_cast<GraphOpInterface>(op);
          graphOp && isWide(op->getResult(0)))
        setKind(graphOp,
                isDistanceOfInputs(graphOp) ? Kind::Narrow : kindOf(graphOp));
    for (Operation *op : ops)
      convert(op);
  }

  static bool isWide(Value value) {
    return getElementTypeOrSelf(value).isF32();
  }

  static bool isOnTheWay(GraphOpInterface op) {
    OpRole role = op.getRole();
    return role == OpRole::View || role == OpRole::Pointwise;
  }
  /// Whether the operator is on the way to one that wants the full range.
  bool leadsToFullRange(GraphOpInterface op) {
    return isOnTheWay(op) && fullRange.contains(op->getResult(0));
  }

  bool wantsFullRange(OpOperand &use) {
    auto op = dyn_cast<GraphOpInterface>(use.getOwner());
    return op && (op.readsFullRange(use.getOperandNumber()) ||
                  leadsToFullRange(op) || distances.contains(op));
  }

  /// Finds the values of which a reader, through views and pointwise operators,
  /// wants the full range: masks, whose lowest numbers a small type lacks.
  void findFullRange(Block &block) {
    findAbove(block, fullRange,
              [&](OpOperand &use) { return wantsFullRange(use); });
  }

  /// Adds the values with a use that `leads` accepts, readers first.
  static void findAbove(Block &block, llvm::DenseSet<Value> &found,
                        function_ref<bool(OpOperand &)> leads) {
    auto visit = [&](Value value) {
      if (llvm::any_of(value.getUses(), leads))
        found.insert(value);
    };
    for (Operation &op : llvm::reverse(block))
      for (Value result : op.getResults())
        visit(result);
    for (Value argument : block.getArguments())
      visit(argument);
  }

  /// Finds what is subtracted of places, as a coordinate and its floor,
  /// whatever is between: of rounded ones the distance would be another, or
  /// none. Places are what becomes integers, and floats made of integers.
  void findDistances(Block &block) {
    llvm::DenseSet<Value> places, converted;
    auto leads = [&](OpOperand &use) {
      auto op = dyn_cast<GraphOpInterface>(use.getOwner());
      if (!op || op->getNumResults() != 1)
        return false;
      Value result = op->getResult(0);
      auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(result));
      return isOnTheWay(op) && (converted.contains(result) ||
                                (integer && integer.getWidth() > 1));
    };
    findAbove(block, converted, leads);
    for (Value argument : block.getArguments())
      if (isWide(argument) && converted.contains(argument))
        places.insert(argument);
    for (auto op : block.getOps<GraphOpInterface>()) {
      if (!isMadeOf(op, places))
        continue;
      if (op.mayCancel())
        distances.insert(op);
      places.insert(op->getResult(0));
    }
  }

  /// Whether floats are computed of places, integers and constants alone.
  bool isMadeOf(GraphOpInterface op, const llvm::DenseSet<Value> &places) {
    Value result = op->getResult(0);
    bool computes = isOnTheWay(op) || op.getRole() == OpRole::Source;
    return computes && isWide(result) && !weightsOnly(result) &&
           llvm::all_of(op->getOperands(), [&](Value operand) {
             return places.contains(operand) || weightsOnly(operand) ||
                    !isa<FloatType>(getElementTypeOrSelf(operand));
           });
  }

  /// The contraction of which an operator moves elements: all it reads but
  /// weights are parts of that one; null: there is no such, or it computes.
  Operation *movedOf(GraphOpInterface op,
                     const llvm::DenseMap<Value, Operation *> &products) {
    if (op.getRole() != OpRole::View && op.getRole() != OpRole::Indexing)
      return nullptr;
    Operation *product = nullptr;
    for (Value operand : op->getOperands()) {
      if (!isWide(operand) || weightsOnly(operand))
        continue;
      Operation *of = products.lookup(operand);
      if (!of || (product && product != of))
        return nullptr;
      product = of;
    }
    return product;
  }

  /// Finds the sums and differences of parts of one product, and what of it
  /// leads to them: they are sums of more of its terms, which are rounded once,
  /// as those of a contraction are. Parts may leave the range of a small type,
  /// and cancel.
  void findPartialSums(Block &block) {
    llvm::DenseMap<Value, Operation *> products;
    for (auto op : block.getOps<GraphOpInterface>()) {
      if (op->getNumResults() != 1 || !isWide(op->getResult(0)) ||
          weightsOnly(op->getResult(0)))
        continue;
      Operation *product = op.getRole() == OpRole::Contraction
                               ? op.getOperation()
                               : movedOf(op, products);
      if (op.getRole() == OpRole::Pointwise && op.mayCancel() &&
          op->getNumOperands() == 2) {
        product = products.lookup(op->getOperand(0));
        if (product != products.lookup(op->getOperand(1)))
          product = nullptr;
        if (product)
          partialSums.insert(op);
      }
      if (product)
        products[op->getResult(0)] = product;
    }
    findAbove(block, parts, [&](OpOperand &use) {
      auto op = dyn_cast<GraphOpInterface>(use.getOwner());
      return op && products.contains(use.get()) &&
             (partialSums.contains(op) ||
              (op.getRole() != OpRole::Contraction &&
               products.contains(op->getResult(0)) &&
               parts.contains(op->getResult(0))));
    });
  }

  /// Finds what tiny numbers keep from being 0, as x² + 1e-12 and max(|x|,
  /// 1e-12): the small type has no such numbers, or ones of few digits, and
  /// nothing can be divided by the 0 that it has instead. What such a value is
  /// where activations are 0 says whether an operator that reads it gives
  /// another one: a root of x² + 1e-12 is 1e-6 there, of x² + 1e-5 it is no
  /// tiny number, and a quotient by it is 0.
  void findGuards(Block &block) {
    for (auto op : block.getOps<GraphOpInterface>()) {
      if ((!isOnTheWay(op) && op.getRole() != OpRole::Indexing) ||
          !isWide(op->getResult(0)) || weightsOnly(op->getResult(0)))
        continue;
      bool readsTiny = false;
      SmallVector<RealRange> atZero;
      for (Value operand : op->getOperands()) {
        RealRange range = rangeAtZero(operand);
        readsTiny |= isTiny(range);
        atZero.push_back(range);
      }
      if (!readsTiny)
        continue;
      if (std::optional<RealRange> range = op.getRange(atZero);
          range && isTiny(*range))
        guards[op->getResult(0)] = *range;
    }
    findWhatLeadsToGuards(block);
  }

  /// A square that is lost ahead of its sum with 1e-12 were as bad. Not so what
  /// others read too: the model would be stored in f32.
  void findWhatLeadsToGuards(Block &block) {
    for (Operation &op : llvm::reverse(block)) {
      auto producer = dyn_cast<GraphOpInterface>(op);
      if (!producer || !isOnTheWay(producer) || op.use_empty())
        continue;
      Value result = op.getResult(0);
      auto allReaders = [&](function_ref<bool(GraphOpInterface)> accepts) {
        return llvm::all_of(op.getUsers(), [&](Operation *user) {
          auto reader = dyn_cast<GraphOpInterface>(user);
          return reader && isOnTheWay(reader) && accepts(reader);
        });
      };
      if (allReaders([&](GraphOpInterface reader) {
            Value read = reader->getResult(0);
            return guards.contains(read) || guarded.contains(read);
          }))
        guarded.insert(result);
      if (allReaders([&](GraphOpInterface reader) {
            return reader.mayCancel() ||
                   (reader.getRole() == OpRole::View &&
                    summed.contains(reader->getResult(0)));
          }))
        summed.insert(result);
    }
    // From the first one on that may lose something: those ahead of it are as
    // exact as what they read, and longer where a kernel stores them.
    for (auto op : block.getOps<GraphOpInterface>())
      if (!changesScale(op) &&
          llvm::none_of(op->getOperands(), [&](Value operand) {
            return guarded.contains(operand);
          }))
        for (Value result : op->getResults())
          guarded.erase(result);
  }

  /// Whether an operator may give numbers far smaller or larger than those that
  /// it reads, as a product and an exponential do, and a sum does not.
  bool changesScale(GraphOpInterface op) {
    return op.getRole() == OpRole::Pointwise && !op.mayCancel() &&
           (op.isExpensive() ||
            llvm::count_if(op->getOperands(), [&](Value operand) {
              return isWide(operand) && !weightsOnly(operand);
            }) > 1);
  }

  /// Squares of a norm and the like, which only reductions read: these are f32,
  /// and what they are made of may leave the range of the small type where a
  /// kernel stores it.
  bool feedsReductions(GraphOpInterface op) {
    return changesScale(op) && !op->use_empty() &&
           llvm::all_of(op->getUsers(), [](Operation *user) {
             auto reader = dyn_cast<GraphOpInterface>(user);
             return reader && reader.getRole() == OpRole::Reduction;
           });
  }

  /// Numbers that the small type rounds to 0, or to few digits, not 0 alone.
  bool isTiny(RealRange range) {
    double smallest = smallestNormal();
    return range.low > -smallest && range.high < smallest &&
           (range.low < 0 || range.high > 0);
  }
  /// The same of constants and weights, of one sign: those of both signs bound
  /// nothing, they are biases that were not trained.
  bool isTinyConstant(Value value) {
    if (!isWide(value) || !weightsOnly(value))
      return false;
    std::optional<RealRange> range = ranges->boundsOf(value);
    return range && isTiny(*range) && (range->low > 0 || range->high < 0);
  }
  /// Whether the result may be as small as a constant, and matters where it is:
  /// a sum with 1 or with an activation has no place for its digits.
  bool makesTiny(GraphOpInterface op) {
    return op.getRole() == OpRole::Pointwise &&
           !summed.contains(op->getResult(0)) &&
           llvm::any_of(op->getOperands(),
                        [&](Value operand) { return isTinyConstant(operand); });
  }
  /// The numbers of a value where activations are 0.
  RealRange rangeAtZero(Value value) {
    if (auto it = guards.find(value); it != guards.end())
      return it->second;
    if (isTinyConstant(value))
      return *ranges->boundsOf(value);
    double number = splatOf(value).value_or(0);
    return {number, number};
  }

  /// A mask made of an input: its other readers take it as they take any input,
  /// so that the rest of the model is no wider for it.
  void addMask(Value value) {
    masks.insert(value);
    for (OpOperand &use : value.getUses())
      if (!wantsFullRange(use))
        ranges->setActivation(use);
  }

  void setKind(GraphOpInterface op, Kind kind) {
    Value result = op->getResult(0);
    kinds[result] = kind;
    if (kind == Kind::Narrow)
      ranges->setActivation(result);
    else if (kind == Kind::Index && leadsToFullRange(op) &&
             llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
               return masks.contains(operand.get()) &&
                      !ranges->isActivation(operand);
             }))
      addMask(result);
  }

  /// Whether an operator gives a distance of places that are inputs, or made of
  /// them: an activation, as inputs are to all who don't take them for places.
  bool isDistanceOfInputs(GraphOpInterface op) {
    return distances.contains(op) && !fullRange.contains(op->getResult(0)) &&
           llvm::any_of(op->getOperands(),
                        [&](Value operand) { return masks.contains(operand); });
  }

  /// What the reader takes the value for.
  Kind kindOf(OpOperand &use) {
    return ranges->isActivation(use) ? Kind::Narrow : kinds.lookup(use.get());
  }

  /// Whether the operator reads numbers that the small type lacks, or next to
  /// which it would lose what is added to them. It then stays in f32, and so
  /// does what reads its results, up to the next contraction.
  bool readsOutside(GraphOpInterface op) {
    return op.getRole() != OpRole::Contraction &&
           llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
             return isWide(operand.get()) && ranges->isOutside(operand);
           });
  }

  Kind kindOf(GraphOpInterface op) {
    if (weightsOnly(op->getResult(0)))
      return Kind::Fixed;
    // Floats of 8 bits are activations, but their products leave the range of
    // others as long as they are not scaled.
    bool ofSmall = llvm::any_of(op->getOperandTypes(), [](Type type) {
      return isFloat8(getElementTypeOrSelf(type));
    });
    if (ofSmall && op.getRole() == OpRole::Contraction)
      return Kind::Wide;
    bool fixed = false, index = false, wide = false, narrow = ofSmall;
    for (OpOperand &operand : op->getOpOperands())
      if (isWide(operand.get()))
        switch (kindOf(operand)) {
        case Kind::Fixed:
          fixed = true;
          break;
        case Kind::Index:
          index = true;
          break;
        case Kind::Wide:
          wide = true;
          break;
        case Kind::Narrow:
          narrow = true;
          break;
        }
    if (op.getRole() != OpRole::Contraction && parts.contains(op->getResult(0)))
      return Kind::Wide;
    // The last one is an activation.
    if (partialSums.contains(op))
      return Kind::Narrow;
    if (readsOutside(op) || makesTiny(op) || feedsReductions(op) ||
        guards.contains(op->getResult(0)) || guarded.contains(op->getResult(0)))
      return narrow || wide || !index ? Kind::Wide : Kind::Index;
    switch (op.getRole()) {
    case OpRole::View:
      return kindOf(op->getOpOperand(0));
    case OpRole::Reduction:
    case OpRole::Ordered:
      return narrow || wide || !index ? Kind::Wide : Kind::Index;
    case OpRole::Source:
    case OpRole::Pointwise:
      return narrow ? Kind::Narrow : wide ? Kind::Wide : Kind::Index;
    case OpRole::Indexing:
      // A table of weights looked up by an input.
      return narrow || (fixed && !index && !wide) ? Kind::Narrow
             : wide                               ? Kind::Wide
                                                  : Kind::Index;
    default:
      return Kind::Narrow;
    }
  }

  void convert(Operation *op) {
    auto graphOp = dyn_cast<GraphOpInterface>(op);
    Value result = op->getNumResults() == 1 ? op->getResult(0) : Value();
    auto it = result ? kinds.find(result) : kinds.end();
    bool narrow = graphOp && it != kinds.end() && it->second == Kind::Narrow;
    OpBuilder builder(op);
    if (narrow && (readsInexact(graphOp) || readsWide(graphOp) ||
                   distances.contains(op) || partialSums.contains(op)))
      return computeInFull(op, builder);
    for (OpOperand &operand : op->getOpOperands()) {
      if (!kinds.contains(operand.get()))
        continue;
      Kind kind = kindOf(operand);
      bool free =
          graphOp && graphOp.isOperandTypeFree(operand.getOperandNumber());
      if (narrow && (!free || kind == Kind::Narrow))
        operand.set(narrowed(operand.get(), builder));
      else if (kind == Kind::Narrow)
        operand.set(widened(operand.get(), builder));
    }
    if (!narrow)
      return;
    result.setType(withElement(result.getType(), target));
    for (NamedAttribute attribute : op->getAttrs())
      if (auto type = dyn_cast<TypeAttr>(attribute.getValue());
          type && type.getValue().isF32())
        op->setAttr(attribute.getName(), TypeAttr::get(target));
  }

  /// Whether a pointwise operator reads a number of which the small type has no
  /// exact form, as 1/6: rounded, it would put all elements off alike.
  bool readsInexact(GraphOpInterface op) {
    return op.getRole() == OpRole::Pointwise &&
           llvm::any_of(op->getOperands(), [&](Value operand) {
             std::optional<double> number = splatOf(operand);
             return number && isWide(operand) && std::isfinite(*number) &&
                    std::abs(*number) <= largestFinite() &&
                    !isExact(*number, target);
           });
  }

  /// Whether a pointwise operator of activations reads a statistic or a guard,
  /// as a norm that is 1e-12 at least: rounded, it may be a divisor of 0, or
  /// infinite.
  bool readsWide(GraphOpInterface op) {
    return op.getRole() == OpRole::Pointwise &&
           llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
             return kinds.contains(operand.get()) &&
                    (kindOf(operand) == Kind::Wide ||
                     guards.contains(operand.get()));
           });
  }

  /// The operator in f32, its result in the small type: kernels compute in f32
  /// anyway.
  void computeInFull(Operation *op, OpBuilder &builder) {
    for (OpOperand &operand : op->getOpOperands())
      if (kinds.contains(operand.get()) && kindOf(operand) == Kind::Narrow)
        operand.set(widened(operand.get(), builder));
    Value result = op->getResult(0);
    builder.setInsertionPointAfter(op);
    Value small = CastOp::create(builder, op->getLoc(), result, target);
    result.replaceAllUsesExcept(small, small.getDefiningOp());
    setKind(cast<GraphOpInterface>(small.getDefiningOp()), Kind::Narrow);
  }

  /// A value in the small type.
  Value narrowed(Value value, OpBuilder &builder) {
    if (!isWide(value))
      return value;
    if (auto it = narrow.find(value); it != narrow.end())
      return it->second;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfterValue(value);
    Location location = value.getLoc();
    Value result;
    auto view = value.getDefiningOp<GraphOpInterface>();
    DenseElementsAttr constant;
    if (matchPattern(value, m_Constant(&constant))) {
      if (ElementsAttr converted = convertConstant(constant))
        result = ConstantOp::create(builder, location, converted);
    } else if (view && view.getRole() == OpRole::View &&
               kinds.lookup(value) == Kind::Fixed) {
      // What is fixed is cast where it is smallest.
      IRMapping mapping;
      mapping.map(view->getOperand(0), narrowed(view->getOperand(0), builder));
      Operation *copy = builder.clone(*view, mapping);
      copy->getResult(0).setType(withElement(value.getType(), target));
      result = copy->getResult(0);
    }
    if (!result) {
      Term term = clamped(Term(value, builder, location));
      result = CastOp::create(builder, location, term.get(), target);
    }
    return narrow[value] = result;
  }

  /// An activation back in f32.
  Value widened(Value value, OpBuilder &builder) {
    if (isWide(value))
      return value;
    Value &result = wide[value];
    if (!result) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointAfterValue(value);
      result = CastOp::create(builder, value.getLoc(), value,
                              Float32Type::get(&getContext()));
    }
    return result;
  }

  /// What is no activation, its finite numbers in the small type's range.
  Term clamped(Term term) {
    if (!ranges->isOutside(term.get()) &&
        kinds.lookup(term.get()) != Kind::Index)
      return term;
    double largest = largestFinite();
    Term inside = min(max(term, -largest), largest);
    Term infinite = term.make<IsInfOp>(term.get(), true, true);
    return term.make<SelectOp>(infinite.get(), term.get(), inside.get());
  }

  double largestFinite() {
    return llvm::APFloat::getLargest(target.getFloatSemantics())
        .convertToDouble();
  }

  /// Below it numbers have fewer digits, and then none; 0 where the type has as
  /// small ones as f32.
  double smallestNormal() {
    const llvm::fltSemantics &semantics = target.getFloatSemantics();
    if (APFloat::semanticsMinExponent(semantics) <=
        APFloat::semanticsMinExponent(APFloat::IEEEsingle()))
      return 0;
    return APFloat::getSmallestNormalized(semantics).convertToDouble();
  }

  /// Rounded, finite values clamped to the finite range.
  ElementsAttr convertConstant(ElementsAttr attribute) {
    auto dense = dyn_cast<DenseFPElementsAttr>(attribute);
    if (!dense)
      return {};
    const llvm::fltSemantics &semantics = target.getFloatSemantics();
    return cast<DenseElementsAttr>(
        dense.mapValues(target, [&](const APFloat &value) {
          APFloat rounded = value;
          bool inexact;
          rounded.convert(semantics, APFloat::rmNearestTiesToEven, &inexact);
          if (rounded.isInfinity() && !value.isInfinity())
            rounded = APFloat::getLargest(semantics, value.isNegative());
          return rounded.bitcastToAPInt();
        }));
  }

  FloatType target;
  WeightsOnly weightsOnly;
  std::optional<Ranges> ranges;
  /// Values of which some reader wants the full range; of these, inputs and
  /// what is made of them.
  llvm::DenseSet<Value> fullRange, masks;
  /// Operators of which places are told apart.
  llvm::DenseSet<Operation *> distances;
  /// Sums of parts of one product, and what moves parts of it to these.
  llvm::DenseSet<Operation *> partialSums;
  llvm::DenseSet<Value> parts;
  /// What tiny numbers keep from being 0, and its numbers where activations are
  /// 0; values that lead to these alone.
  llvm::DenseMap<Value, RealRange> guards;
  llvm::DenseSet<Value> guarded;
  /// Values that only sums read, and differences.
  llvm::DenseSet<Value> summed;
  llvm::DenseMap<Value, Kind> kinds;
  llvm::DenseMap<Value, Value> narrow, wide;
};

} // namespace
