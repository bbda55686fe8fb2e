#include "frontends/common/Emitter.h"
#include "frontends/common/Diagnostic.h"
#include "frontends/common/SizeReasons.h"
#include "graph/ir/Exact.h"
#include "graph/ir/Fold.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using mlir::AffineExpr;
using mlir::Value;

/// Elements that a tensor of static shape may have.
constexpr int64_t maxElements = int64_t(1) << 42;
/// Dimensions of any tensor.
constexpr int64_t maxRank = 32;
/// Integer tensors up to this size are evaluated symbolically.
constexpr int64_t maxSymbolicElements = 1024;

Emitter::Emitter(mlir::OpBuilder builder, Symbols &symbols)
    : builder(builder), symbols(symbols), location(builder.getUnknownLoc()),
      evaluator(maxSymbolicElements),
      sizeEvaluator(
          symbols, [this](Value value) { return evaluate(value); },
          [this](Value value) { return constantOf(value); }) {}

/// "MatMul 'fc1'"; empty for what is no node's.
static std::string describeNode(mlir::Location location) {
  auto node = llvm::dyn_cast<mlir::NameLoc>(mlir::LocationAttr(location));
  auto op = node ? llvm::dyn_cast<mlir::NameLoc>(
                       mlir::LocationAttr(node.getChildLoc()))
                 : mlir::NameLoc();
  return op ? printable(op.getName().str()) + " '" +
                  printable(node.getName().str()) + "'"
            : "";
}

std::string Emitter::findUnknown(Value value) {
  // Of a shape's operators there are few.
  constexpr unsigned most = 4096;
  llvm::SmallSetVector<Value, 16> values;
  values.insert(value);
  mlir::Operation *found = nullptr;
  auto sizesOf = [&](Value v) { return sizeEvaluator.evaluate(v); };
  auto isTold = [&](Value v) {
    const SizeElements *elements = sizesOf(v);
    return constantOf(v) || evaluate(v).isComplete() ||
           (elements && haveRanges(*elements, symbols));
  };
  for (unsigned i = 0; i < values.size(); ++i) {
    mlir::Operation *op = values[i].getDefiningOp();
    if (Value copy = sizeEvaluator.copyOf(values[i])) {
      values.insert(copy);
      continue;
    }
    if (!op || i == most || llvm::isa<graph::WeightOp>(op))
      return "";
    bool known = true;
    for (Value operand : op->getOperands()) {
      if (isTold(operand))
        continue;
      known = false;
      values.insert(operand);
    }
    if (known)
      found = op;
  }
  std::string node = found ? describeNode(found->getLoc()) : "";
  return node.empty() ? node
                      : node + " " + explainUnknown(found, symbols, sizesOf);
}

void Emitter::begin(mlir::Location loc) {
  location = loc;
  problem.reset();
  followed.clear();
  std::string asker = describeNode(loc);
  symbols.setAsker(isInBranch() ? asker + " in one of its branches" : asker);
}

Failed Emitter::fail(const llvm::Twine &what, const llvm::Twine &remedy) {
  if (problem)
    return {};
  std::string text = what.str();
  problem = Problem{text + symbols.explainNames(text), remedy.str()};
  return {};
}

/// Nodes that may be written out in all.
constexpr int64_t maxWrittenOut = int64_t(1) << 17;

llvm::LogicalResult Emitter::checkWriteOut(int64_t nodes) {
  if (nodes <= maxWrittenOut - writtenOut)
    return llvm::success();
  return fail("functions, loops and tables written out are over " +
                  llvm::Twine(maxWrittenOut) + " nodes with these " +
                  llvm::Twine(nodes),
              "export the model without nested functions, with loops of fewer "
              "steps, and with shorter transforms and windows");
}

llvm::LogicalResult Emitter::writeOut(int64_t nodes) {
  if (mlir::failed(checkWriteOut(nodes)))
    return llvm::failure();
  writtenOut += nodes;
  return llvm::success();
}

namespace {
/// Properties of an operator that does not exist yet, if it has any.
class PropertyStorage {
public:
  PropertyStorage(mlir::OperationName name)
      : name(name), bytes(llvm::divideCeil(name.getOpPropertyByteSize(),
                                           sizeof(std::max_align_t))) {
    if (get())
      name.initOpProperties(get(), mlir::OpaqueProperties(nullptr));
  }
  ~PropertyStorage() {
    if (get())
      name.destroyOpProperties(get());
  }
  mlir::OpaqueProperties get() {
    return mlir::OpaqueProperties(bytes.empty() ? nullptr : bytes.data());
  }

private:
  mlir::OperationName name;
  std::vector<std::max_align_t> bytes;
};
} // namespace

/// Sizes that operators take for equal become assumptions.
class Emitter::Rules : public graph::SizeRules {
public:
  explicit Rules(Symbols &symbols) : symbols(symbols) {}
  bool agree(AffineExpr a, AffineExpr b, llvm::StringRef why) override {
    bool agrees = symbols.assumeEqual(a, b, why.str());
    if (!agrees && refusal.empty())
      refusal = symbols.refusal();
    return agrees;
  }
  std::string refusal;

private:
  Symbols &symbols;
};

Value Emitter::follow(Value value) {
  if (value)
    followed.push_back(symbols.resolve(value));
  return value;
}

bool Emitter::resolveFollowed() {
  if (resolvedUntil == symbols.replacements())
    return false;
  resolvedUntil = symbols.replacements();
  for (Value value : followed)
    symbols.resolve(value);
  return true;
}

Value Emitter::create(llvm::StringRef op, mlir::ValueRange operands,
                      llvm::ArrayRef<mlir::NamedAttribute> attributes,
                      mlir::RankedTensorType type) {
  if (problem || !llvm::all_of(operands, [](Value v) { return bool(v); }))
    return {};
  for (Value operand : operands)
    follow(operand);
  mlir::OperationName name(op, getContext());
  mlir::Attribute dictionary =
      symbols.resolve(builder.getDictionaryAttr(attributes));
  type = llvm::cast_or_null<mlir::RankedTensorType>(symbols.resolve(type));
  Rules rules(symbols);
  graph::ScopedSizeRules scope(getContext(), &rules);
  while (true) {
    Value result = tryCreate(
        name, operands, llvm::cast<mlir::DictionaryAttr>(dictionary), type);
    if (!rules.refusal.empty() && !result)
      problem->what += ": " + rules.refusal;
    // Where sizes turned out to be others, so does the operator.
    if (!resolveFollowed())
      return follow(result);
    if (result)
      result.getDefiningOp()->erase();
    else if (!rules.refusal.empty())
      return {};
    problem.reset();
    dictionary = symbols.resolve(dictionary);
    type = llvm::cast_or_null<mlir::RankedTensorType>(symbols.resolve(type));
  }
}

Value Emitter::tryCreate(mlir::OperationName name, mlir::ValueRange operands,
                         mlir::DictionaryAttr attributes,
                         mlir::RankedTensorType type) {
  std::string op = name.getStringRef().str();
  // What verifiers and type inference find wrong becomes the node's problem.
  mlir::ScopedDiagnosticHandler handler(
      getContext(), [&](mlir::Diagnostic &diagnostic) {
        std::string text = diagnostic.str();
        llvm::StringRef message = text;
        message.consume_front("'" + op + "' op ");
        std::string named = graph::nameSymbols(message, symbols.list());
        fail(named, named == message
                        ? "check the shapes and types of what the node is given"
                        : "check the model, or the names and ranges that "
                          "--shape gives these sizes");
        return mlir::success();
      });
  auto rejected = [&]() -> Value {
    fail("operands do not fit '" + op + "'");
    return {};
  };
  PropertyStorage properties(name);
  auto emitError = [&] { return mlir::emitError(location); };
  if (properties.get() && mlir::failed(name.setOpPropertiesFromAttribute(
                              name, properties.get(), attributes, emitError)))
    return rejected();
  if (!type) {
    auto *inference = name.getInterface<mlir::InferTypeOpInterface>();
    llvm::SmallVector<mlir::Type> types;
    if (!inference ||
        mlir::failed(inference->inferReturnTypes(
            getContext(), location, operands, attributes, properties.get(), {},
            types)) ||
        types.size() != 1)
      return rejected();
    type = llvm::dyn_cast<mlir::RankedTensorType>(types[0]);
  }
  if (!type || !isSane(type))
    return rejected();
  mlir::Operation *created =
      mlir::Operation::create(location, name, mlir::TypeRange(type), operands,
                              mlir::NamedAttrList(), properties.get(), {}, 0);
  builder.insert(created);
  if (mlir::failed(name.verifyInvariants(created)) || problem) {
    created->erase();
    return rejected();
  }
  return created->getResult(0);
}

bool Emitter::isSane(mlir::RankedTensorType type) {
  if (type.getRank() > maxRank) {
    fail("a tensor has " + llvm::Twine(type.getRank()) + " dimensions; " +
         llvm::Twine(maxRank) + " are supported");
    return false;
  }
  int64_t elements = 1;
  for (auto [i, dim] : llvm::enumerate(graph::getShape(type))) {
    auto size = graph::constantOf(dim);
    if (size && *size < 0) {
      fail("a size becomes negative: " + llvm::Twine(*size) +
               ", of dimension " + llvm::Twine(i),
           "check the shapes that the model computes");
      return false;
    }
    if (!size && symbols.namesCounter(dim)) {
      fail("size " + symbols.toString(dim) + " of " + describe(type) +
               " differs from step to step of a loop, which is not supported "
               "where the number of steps is open",
           "fix the sizes that say how many steps there are with --shape");
      return false;
    }
    if (!size && !symbols.isNonNegative(dim) &&
        !symbols.assumeAtLeast(dim, number(0),
                               "so that no tensor has a negative size")) {
      fail("size " + symbols.toString(dim) + " of " + describe(type) +
               " may become negative for " + symbols.describeRanges(dim),
           "narrow the range with --shape");
      return false;
    }
    if (size &&
        (*size > maxDimension ||
         llvm::MulOverflow(elements, std::max<int64_t>(*size, 1), elements) ||
         elements > maxElements)) {
      fail("a tensor is too large: " + describe(type));
      return false;
    }
  }
  return true;
}

mlir::NamedAttribute Emitter::attr(llvm::StringRef name,
                                   mlir::Attribute value) {
  return builder.getNamedAttr(name, value);
}
mlir::NamedAttribute Emitter::attr(llvm::StringRef name, int64_t value) {
  return attr(name, builder.getI64IntegerAttr(value));
}
mlir::NamedAttribute Emitter::attr(llvm::StringRef name, double value) {
  return attr(name, builder.getF64FloatAttr(value));
}
mlir::NamedAttribute Emitter::attr(llvm::StringRef name, bool value) {
  return attr(name, builder.getBoolAttr(value));
}
mlir::NamedAttribute Emitter::attr(llvm::StringRef name,
                                   llvm::ArrayRef<int64_t> value) {
  return attr(name, builder.getDenseI64ArrayAttr(value));
}

mlir::NamedAttribute Emitter::map(llvm::StringRef name,
                                  llvm::ArrayRef<AffineExpr> values) {
  return attr(name, mlir::AffineMapAttr::get(symbols.mapTo(values)));
}

mlir::RankedTensorType Emitter::type(llvm::ArrayRef<AffineExpr> dims,
                                     mlir::Type element) {
  if (problem || !element ||
      !llvm::all_of(dims, [](AffineExpr e) { return bool(e); }))
    return {};
  Exprs resolved;
  for (AffineExpr dim : dims)
    resolved.push_back(symbols.resolve(dim));
  auto type = graph::makeType(resolved, element);
  return isSane(type) ? type : mlir::RankedTensorType();
}

AffineExpr Emitter::number(int64_t value) {
  return mlir::getAffineConstantExpr(value, getContext());
}
Exprs Emitter::numbers(llvm::ArrayRef<int64_t> values) {
  return llvm::map_to_vector<8>(values,
                                [&](int64_t value) { return number(value); });
}
std::string Emitter::describe(llvm::ArrayRef<AffineExpr> dims) {
  return graph::shapeToString(graph::makeType(dims, builder.getI64Type()),
                              symbols.list());
}

bool Emitter::agree(AffineExpr a, AffineExpr b, llvm::StringRef why) {
  if (problem || !a || !b)
    return false;
  bool agrees = symbols.assumeEqual(a, b, why.str());
  resolveFollowed();
  return agrees;
}

void Emitter::assumeAgain(mlir::Operation *op) {
  begin(op->getLoc());
  Rules rules(symbols);
  graph::ScopedSizeRules scope(getContext(), &rules);
  // What cannot be is told by whoever verifies the module.
  mlir::ScopedDiagnosticHandler handler(
      getContext(), [](mlir::Diagnostic &) { return mlir::success(); });
  (void)mlir::verify(op, /*verifyRecursively=*/false);
}

std::optional<Exprs> Emitter::join(llvm::ArrayRef<AffineExpr> a,
                                   llvm::ArrayRef<AffineExpr> b) {
  Rules rules(symbols);
  graph::ScopedSizeRules scope(getContext(), &rules);
  auto joined = graph::broadcastShapes(a, b);
  resolveFollowed();
  if (joined)
    for (AffineExpr &dim : *joined)
      dim = symbols.resolve(dim);
  return joined;
}

// Constants.

static mlir::Attribute elementAttr(double value, mlir::Type element,
                                   mlir::Builder &builder) {
  if (auto type = llvm::dyn_cast<mlir::FloatType>(element)) {
    llvm::APFloat exact(value);
    bool loses;
    exact.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven,
                  &loses);
    return mlir::FloatAttr::get(type, exact);
  }
  unsigned width = element.getIntOrFloatBitWidth();
  llvm::APSInt integer(width, element.isUnsignedInteger());
  bool exact;
  llvm::APFloat(value).convertToInteger(integer, llvm::APFloat::rmTowardZero,
                                        &exact);
  if (width == 1)
    return builder.getBoolAttr(value != 0);
  return mlir::IntegerAttr::get(element, integer);
}

Value Emitter::constant(mlir::ElementsAttr value) {
  return opTo<graph::ConstantOp>(
      llvm::cast<mlir::RankedTensorType>(value.getShapedType()), {},
      attr("value", value));
}
Value Emitter::scalar(double value, mlir::Type element) {
  if (!element)
    return {};
  auto type = mlir::RankedTensorType::get({}, element);
  return constant(
      mlir::DenseElementsAttr::get(type, elementAttr(value, element, builder)));
}
Value Emitter::scalar(int64_t value, mlir::Type element) {
  if (!element)
    return {};
  if (llvm::isa<mlir::FloatType>(element) || element.isInteger(1))
    return scalar(static_cast<double>(value), element);
  auto type = mlir::RankedTensorType::get({}, element);
  llvm::APInt integer(64, value, /*isSigned=*/true);
  return constant(mlir::DenseElementsAttr::get(
      type,
      mlir::IntegerAttr::get(
          element, integer.sextOrTrunc(element.getIntOrFloatBitWidth()))));
}

Value Emitter::sizes(llvm::ArrayRef<AffineExpr> values,
                     llvm::ArrayRef<int64_t> shape, mlir::Type element) {
  if (!llvm::all_of(values, [](AffineExpr e) { return bool(e); }))
    return {};
  auto type = mlir::RankedTensorType::get(shape, element);
  llvm::SmallVector<mlir::Attribute> constants;
  for (AffineExpr value : values)
    if (auto known = graph::constantOf(value))
      constants.push_back(mlir::IntegerAttr::get(element, *known));
  if (constants.size() == values.size())
    return constant(mlir::DenseElementsAttr::get(type, constants));
  return opTo<graph::DimsOp>(type, {}, map("values", values));
}
Value Emitter::size(AffineExpr value, mlir::Type element) {
  if (!value)
    return {};
  if (auto known = graph::constantOf(value))
    return scalar(*known, element);
  return cast(sizes({value}, {}, builder.getI64Type()), element);
}

/// Sizes that are all known, as a constant; null for others.
mlir::Attribute Emitter::foldSizes(Value value) {
  auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
  Exprs shape = graph::getShape(value);
  llvm::SmallVector<int64_t> dims;
  for (AffineExpr size : shape)
    dims.push_back(graph::constantOf(size).value_or(-1));
  auto element = llvm::dyn_cast<mlir::IntegerType>(type.getElementType());
  if (!element || element.getWidth() < 32 || llvm::is_contained(dims, -1))
    return {};
  graph::SymbolicTensor known = evaluator.evaluate(value);
  auto sizes = known.constants();
  if (!sizes)
    return {};
  llvm::SmallVector<llvm::APInt> values;
  for (int64_t size : *sizes)
    values.push_back(llvm::APInt(element.getWidth(), size, /*isSigned=*/true,
                                 /*implicitTrunc=*/true));
  return mlir::DenseElementsAttr::get(
      mlir::RankedTensorType::get(dims, element), values);
}

mlir::Attribute Emitter::fold(Value value, int depth) {
  constexpr int maxDepth = 64;
  if (auto it = folded.find(value); it != folded.end())
    return it->second;
  mlir::Operation *op = value.getDefiningOp();
  if (!op || depth > maxDepth)
    return {};
  mlir::Attribute result;
  if (auto constant = llvm::dyn_cast<graph::ConstantOp>(op)) {
    result = constant.getValue();
  } else {
    llvm::SmallVector<mlir::Attribute> operands;
    for (Value operand : op->getOperands())
      operands.push_back(fold(operand, depth + 1));
    result = graph::foldConstants(op, operands);
    // Sizes beside one that is open may be known.
    if (!result)
      result = foldSizes(value);
  }
  return folded[value] = result;
}

mlir::DenseElementsAttr Emitter::constantOf(Value value) {
  return value ? llvm::dyn_cast_or_null<mlir::DenseElementsAttr>(fold(value, 0))
               : mlir::DenseElementsAttr();
}

/// A number as a size, if it is whole and fits.
static AffineExpr wholeNumber(mlir::Attribute attribute) {
  auto context = attribute.getContext();
  if (auto number = llvm::dyn_cast<mlir::FloatAttr>(attribute)) {
    double value = number.getValueAsDouble();
    bool whole = std::abs(value) < 0x1p53 && value == std::floor(value);
    return whole ? mlir::getAffineConstantExpr(int64_t(value), context)
                 : AffineExpr();
  }
  auto number = llvm::dyn_cast<mlir::IntegerAttr>(attribute);
  if (!number)
    return {};
  bool isUnsigned =
      number.getType().isUnsignedInteger() || number.getType().isInteger(1);
  const llvm::APInt &value = number.getValue();
  if (isUnsigned ? value.getActiveBits() > 63 : value.getSignificantBits() > 64)
    return {};
  return mlir::getAffineConstantExpr(isUnsigned ? int64_t(value.getZExtValue())
                                                : value.getSExtValue(),
                                     context);
}

graph::SymbolicTensor Emitter::evaluate(Value value) {
  graph::SymbolicTensor known = evaluator.evaluate(value);
  if (known)
    for (AffineExpr &element : *known.elements)
      element = symbols.resolve(element);
  if (known.isComplete())
    return known;
  mlir::DenseElementsAttr constant = constantOf(value);
  if (!constant || constant.getNumElements() > maxSymbolicElements)
    return known;
  graph::SymbolicTensor result;
  result.elements.emplace();
  for (mlir::Attribute element : constant.getValues<mlir::Attribute>())
    result.elements->push_back(wholeNumber(element));
  return result;
}

bool Emitter::assumeNoneWraps(Value value, bool mayWrap) {
  // Of a shape's operators there are few.
  constexpr unsigned mostOperators = 4096;
  // What is told without them defines no sizes.
  bool definesSizes = !evaluate(value).isComplete();
  auto contentsOf = [&](Value v) {
    SizeElements elements;
    if (graph::SymbolicTensor told = evaluate(v); told.isComplete())
      for (AffineExpr size : *told.elements)
        elements.push_back(SizeElement::ofSize(size));
    else if (const SizeElements *found =
                 definesSizes ? sizeEvaluator.evaluate(v) : nullptr)
      elements = *found;
    return elements;
  };
  auto fits = [&](Value v) {
    auto type = llvm::dyn_cast<mlir::IntegerType>(
        mlir::getElementTypeOrSelf(v.getType()));
    if (!type || type.getWidth() != 32)
      return true;
    graph::Interval limits = graph::limitsOf(type);
    AffineExpr least = number(limits.low), most = number(limits.high);
    const std::string why = "so that 32 bits hold it";
    bool fit = llvm::all_of(contentsOf(v), [&](const SizeElement &element) {
      AffineExpr size = symbols.resolve(element.size);
      return !size || (symbols.assumeAtLeast(most, size, why) &&
                       symbols.assumeAtLeast(size, least, why));
    });
    const std::string &refusal = symbols.refusal();
    if (!fit)
      fail("a size is computed in 32 bits, which may not hold it" +
               (refusal.empty() ? "" : ": " + refusal),
           "narrow the ranges with --shape");
    return fit;
  };
  // The value itself is taken as the number that it is. What others wrap to
  // makes no difference to what commutes with that.
  if (!mayWrap && !fits(value))
    return false;
  llvm::SmallSetVector<Value, 16> values;
  values.insert(value);
  for (unsigned i = 0; i < values.size() && i < mostOperators; ++i) {
    if (Value copy = sizeEvaluator.copyOf(values[i]))
      values.insert(copy);
    auto op = values[i].getDefiningOp<graph::GraphOpInterface>();
    if (!op || op.getRole() == graph::OpRole::Source)
      continue;
    for (mlir::OpOperand &operand : op->getOpOperands()) {
      if (contentsOf(operand.get()).empty())
        continue; // of a tensor that is no shape's
      values.insert(operand.get());
      if (!op.commutesWithWrapping(operand.getOperandNumber()) &&
          !fits(operand.get()))
        return false;
    }
  }
  return true;
}

SizeElements Emitter::evaluateNumbers(Value value) {
  if (!assumeNoneWraps(value))
    return {};
  const SizeElements *elements = sizeEvaluator.evaluate(value);
  bool known = elements && llvm::all_of(*elements, [](const SizeElement &x) {
                 return !x.program.empty();
               });
  return known ? *elements : SizeElements();
}

graph::SymbolicTensor Emitter::evaluateSizes(Value value) {
  graph::SymbolicTensor known = evaluate(value);
  if (known.isComplete() && known.constants())
    return known;
  int64_t before = symbols.replacements();
  if (!assumeNoneWraps(value))
    return {};
  if (symbols.replacements() != before) {
    resolveFollowed();
    known = evaluate(value);
  }
  if (known.isComplete())
    return known;
  const SizeElements *elements = sizeEvaluator.evaluate(value);
  if (!elements || (*elements).empty())
    return known;
  graph::SymbolicTensor result;
  result.elements.emplace();
  for (const SizeElement &element : *elements)
    result.elements->push_back(element.size);
  return result;
}
