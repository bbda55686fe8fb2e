#include "graph/ir/Shape.h"
#include "graph/ir/Constraints.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <numeric>

using namespace mlir;
using namespace charonia::graph;

SmallVector<Symbol> charonia::graph::getSymbols(ModuleOp module) {
  SmallVector<Symbol> symbols;
  auto array = module->getAttrOfType<ArrayAttr>("graph.symbols");
  if (!array)
    return symbols;
  for (Attribute entry : array) {
    auto fields = dyn_cast<DictionaryAttr>(entry);
    if (!fields)
      continue;
    Symbol s;
    if (auto name = fields.getAs<StringAttr>("name"))
      s.name = name.str();
    auto read = [&](StringRef key, int64_t &value) {
      if (auto attr = fields.getAs<IntegerAttr>(key))
        value = attr.getInt();
    };
    read("min", s.min);
    read("opt", s.opt);
    read("max", s.max);
    read("divisor", s.divisor);
    symbols.push_back(std::move(s));
  }
  return symbols;
}

void charonia::graph::setSymbols(ModuleOp module, ArrayRef<Symbol> symbols) {
  Builder b(module.getContext());
  SmallVector<Attribute> entries;
  for (const Symbol &s : symbols)
    entries.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("name", b.getStringAttr(s.name)),
         b.getNamedAttr("min", b.getI64IntegerAttr(s.min)),
         b.getNamedAttr("opt", b.getI64IntegerAttr(s.opt)),
         b.getNamedAttr("max", b.getI64IntegerAttr(s.max)),
         b.getNamedAttr("divisor", b.getI64IntegerAttr(s.divisor))}));
  if (entries.empty())
    module->removeAttr("graph.symbols");
  else
    module->setAttr("graph.symbols", b.getArrayAttr(entries));
}

SmallVector<int64_t> charonia::graph::getOptimum(ArrayRef<Symbol> symbols) {
  return llvm::map_to_vector(symbols,
                             [](const Symbol &symbol) { return symbol.opt; });
}

SmallVector<int64_t> charonia::graph::getOptimum(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  return getOptimum(
      getSymbols(module ? module : op->getParentOfType<ModuleOp>()));
}

Facts charonia::graph::getFacts(ModuleOp module) {
  Facts facts = getDeclaredFacts(getSymbols(module));
  // A size of a declared range has no multiple of its own, but no other ever
  // runs than what constraints let pass.
  for (const Constraint &c : getConstraints(module)) {
    auto symbol = dyn_cast<AffineSymbolExpr>(c.right);
    std::optional<int64_t> divisor = constantOf(c.left);
    if (c.relation != Constraint::Relation::Divides || !symbol || !divisor ||
        *divisor < 1)
      continue;
    int64_t &known = facts.symbolDivisors[symbol.getPosition()], both;
    if (!llvm::MulOverflow(known, *divisor / std::gcd(known, *divisor), both))
      known = both;
  }
  return facts;
}

Facts charonia::graph::getDeclaredFacts(ArrayRef<Symbol> symbols) {
  Facts facts;
  for (const Symbol &s : symbols) {
    facts.symbols.push_back({s.min, s.max});
    facts.symbolDivisors.push_back(s.divisor);
  }
  return facts;
}

bool charonia::graph::hasSymbolicShape(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return false;
  Attribute encoding = tensor.getEncoding();
  if (!encoding)
    return tensor.hasStaticShape();
  auto attr = dyn_cast<AffineMapAttr>(encoding);
  if (!attr)
    return false;
  AffineMap map = attr.getValue();
  if (map.getNumDims() != 0 || (int64_t)map.getNumResults() != tensor.getRank())
    return false;
  for (auto [size, expr] :
       llvm::zip_equal(tensor.getShape(), map.getResults())) {
    auto constant = constantOf(expr);
    if (ShapedType::isDynamic(size) == constant.has_value() ||
        (constant && *constant != size))
      return false;
  }
  return !tensor.hasStaticShape();
}

Exprs charonia::graph::getShape(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (auto map = dyn_cast_if_present<AffineMapAttr>(tensor.getEncoding()))
    return Exprs(map.getValue().getResults());
  Exprs dims;
  for (int64_t size : tensor.getShape()) {
    assert(!ShapedType::isDynamic(size) &&
           "a dynamic dimension needs the encoding");
    dims.push_back(getAffineConstantExpr(size, tensor.getContext()));
  }
  return dims;
}

RankedTensorType charonia::graph::makeType(ArrayRef<AffineExpr> dims,
                                           Type element) {
  MLIRContext *context = element.getContext();
  SmallVector<int64_t> sizes;
  Exprs exprs;
  unsigned symbols = 0;
  for (AffineExpr dim : dims) {
    AffineExpr expr = simplify(dim);
    exprs.push_back(expr);
    sizes.push_back(constantOf(expr).value_or(ShapedType::kDynamic));
    expr.walk([&](AffineExpr e) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
        symbols = std::max(symbols, symbol.getPosition() + 1);
    });
  }
  if (!llvm::is_contained(sizes, ShapedType::kDynamic))
    return RankedTensorType::get(sizes, element);
  return RankedTensorType::get(
      sizes, element,
      AffineMapAttr::get(AffineMap::get(0, symbols, exprs, context)));
}

RankedTensorType charonia::graph::withElement(Type type, Type element) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), element,
                               tensor.getEncoding());
}

AffineExpr charonia::graph::numElements(ArrayRef<AffineExpr> dims,
                                        MLIRContext *context) {
  AffineExpr product = getAffineConstantExpr(1, context);
  for (AffineExpr dim : dims)
    product = product * dim;
  return simplify(product);
}

std::optional<Exprs> charonia::graph::broadcastShapes(ArrayRef<AffineExpr> a,
                                                      ArrayRef<AffineExpr> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  Exprs result(a);
  size_t offset = a.size() - b.size();
  for (auto [i, other] : llvm::enumerate(b)) {
    AffineExpr &mine = result[offset + i];
    if (mine == other || constantOf(other) == 1)
      continue;
    if (constantOf(mine) == 1) {
      mine = other;
      continue;
    }
    if (simplify(mine) == simplify(other))
      continue;
    if (!sizesAgree(mine, other, "combines their elements"))
      return std::nullopt;
    if (constantOf(other))
      mine = other;
  }
  return result;
}

LogicalResult charonia::graph::inferBroadcast(std::optional<Location> location,
                                              ValueRange operands,
                                              unsigned elementFrom,
                                              SmallVectorImpl<Type> &types,
                                              Type element) {
  for (Value operand : operands)
    if (!hasSymbolicShape(operand.getType()))
      return emitOptionalError(
          location, "an operand's shape is not known: ", operand.getType());
  Exprs shape = getShape(operands[0]);
  for (Value operand : operands.drop_front()) {
    auto joined = broadcastShapes(shape, getShape(operand));
    if (!joined) {
      Type first = makeType(shape, getElementTypeOrSelf(operands[0]));
      return emitOptionalError(location, "shapes ", shapeToString(first),
                               " and ", shapeToString(operand.getType()),
                               " do not broadcast");
    }
    shape = std::move(*joined);
  }
  types.push_back(makeType(
      shape, element ? element : getElementTypeOrSelf(operands[elementFrom])));
  return success();
}

AffineMap charonia::graph::broadcastMap(Value operand, Value result) {
  Exprs from = getShape(operand);
  unsigned rank = cast<RankedTensorType>(result.getType()).getRank(),
           offset = rank - from.size();
  MLIRContext *context = result.getContext();
  Exprs coordinates;
  for (auto [i, dim] : llvm::enumerate(from))
    coordinates.push_back(constantOf(dim) == 1
                              ? getAffineConstantExpr(0, context)
                              : getAffineDimExpr(offset + i, context));
  return AffineMap::get(rank, 0, coordinates, context);
}

/// Coordinates of a run of dimensions `from` that holds the same elements as
/// the run `to`, whose first dimension is dim `firstDim`.
static void mapRun(ArrayRef<AffineExpr> from, ArrayRef<AffineExpr> to,
                   ArrayRef<unsigned> toDims, MLIRContext *context,
                   SmallVectorImpl<AffineExpr> &coordinates) {
  AffineExpr linear = getAffineConstantExpr(0, context),
             stride = getAffineConstantExpr(1, context);
  for (size_t i = to.size(); i-- > 0;) {
    linear = getAffineDimExpr(toDims[i], context) * stride + linear;
    stride = stride * to[i];
  }
  stride = getAffineConstantExpr(1, context);
  Exprs reversed;
  for (size_t i = from.size(); i-- > 0;) {
    AffineExpr coordinate = linear.floorDiv(stride);
    reversed.push_back(i == 0 ? coordinate : coordinate % from[i]);
    stride = simplify(stride * from[i]);
  }
  coordinates.append(reversed.rbegin(), reversed.rend());
}

AffineMap charonia::graph::reshapeMap(ArrayRef<AffineExpr> from,
                                      ArrayRef<AffineExpr> to,
                                      MLIRContext *context) {
  AffineExpr zero = getAffineConstantExpr(0, context);
  unsigned symbols = 0;
  for (AffineExpr e : llvm::concat<const AffineExpr>(from, to))
    e.walk([&](AffineExpr sub) {
      if (auto s = dyn_cast<AffineSymbolExpr>(sub))
        symbols = std::max(symbols, s.getPosition() + 1);
    });
  auto isZero = [](AffineExpr e) { return constantOf(e) == 0; };
  if (llvm::any_of(from, isZero) || llvm::any_of(to, isZero))
    return AffineMap::get(to.size(), symbols, Exprs(from.size(), zero),
                          context);

  // Dimensions of one element hold no coordinate.
  struct Side {
    Exprs sizes, products;
    SmallVector<unsigned> dims;
  };
  auto strip = [&](ArrayRef<AffineExpr> dims) {
    Side side;
    AffineExpr product = getAffineConstantExpr(1, context);
    for (auto [i, dim] : llvm::enumerate(dims)) {
      if (constantOf(dim) == 1)
        continue;
      product = simplify(product * dim);
      side.sizes.push_back(dim);
      side.products.push_back(product);
      side.dims.push_back(i);
    }
    return side;
  };
  Side f = strip(from), t = strip(to);

  Exprs coordinates;
  size_t i = 0, j = 0;
  auto close = [&](size_t iEnd, size_t jEnd) {
    mapRun(ArrayRef(f.sizes).slice(i, iEnd - i),
           ArrayRef(t.sizes).slice(j, jEnd - j),
           ArrayRef(t.dims).slice(j, jEnd - j), context, coordinates);
    i = iEnd;
    j = jEnd;
  };
  for (size_t a = 0; a < f.sizes.size(); ++a)
    for (size_t b = j; b < t.sizes.size(); ++b)
      if (f.products[a] == t.products[b]) {
        close(a + 1, b + 1);
        break;
      }
  if (i < f.sizes.size())
    close(f.sizes.size(), t.sizes.size());

  Exprs results(from.size(), zero);
  for (auto [dim, coordinate] : llvm::zip_equal(f.dims, coordinates))
    results[dim] = coordinate;
  return simplify(AffineMap::get(to.size(), symbols, results, context), to);
}

bool charonia::graph::mayBeEqual(AffineExpr a, AffineExpr b) {
  if (a == b)
    return true;
  AffineExpr difference = simplify(a - b);
  return !isNonNegative(difference - 1) && !isNonNegative(-difference - 1);
}

bool charonia::graph::areCompatible(Type a, Type b) {
  auto x = dyn_cast<RankedTensorType>(a), y = dyn_cast<RankedTensorType>(b);
  if (!x || !y || !hasSymbolicShape(x) || !hasSymbolicShape(y))
    return a == b;
  if (x.getElementType() != y.getElementType() || x.getRank() != y.getRank())
    return false;
  for (auto [p, q] : llvm::zip_equal(getShape(x), getShape(y)))
    if (!sizesAgree(p, q, "has a result of this size"))
      return false;
  return true;
}

/// What is subtracted where a sum's last term is negative; null where it isn't.
static AffineExpr subtrahendOf(AffineExpr term) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  auto constant = dyn_cast<AffineConstantExpr>(term);
  if (constant)
    return constant.getValue() < 0 && constant.getValue() != least
               ? getAffineConstantExpr(-constant.getValue(), term.getContext())
               : AffineExpr();
  auto product = dyn_cast<AffineBinaryOpExpr>(term);
  if (!product || product.getKind() != AffineExprKind::Mul)
    return {};
  AffineExpr factor = isa<AffineConstantExpr>(product.getRHS())
                          ? subtrahendOf(product.getRHS())
                          : AffineExpr();
  return !factor       ? factor
         : factor == 1 ? product.getLHS()
                       : product.getLHS() * factor;
}

static void printExpr(raw_ostream &os, AffineExpr expr,
                      ArrayRef<Symbol> symbols, bool inner) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    os << constant.getValue();
  } else if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    if (symbol.getPosition() < symbols.size())
      os << symbols[symbol.getPosition()].name;
    else
      os << 's' << symbol.getPosition();
  } else if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    os << 'd' << dim.getPosition();
  } else {
    auto binary = cast<AffineBinaryOpExpr>(expr);
    const char *sign = expr.getKind() == AffineExprKind::Add        ? " + "
                       : expr.getKind() == AffineExprKind::Mul      ? "*"
                       : expr.getKind() == AffineExprKind::Mod      ? " % "
                       : expr.getKind() == AffineExprKind::FloorDiv ? " / "
                                                                    : " /^ ";
    if (inner)
      os << '(';
    printExpr(os, binary.getLHS(), symbols,
              expr.getKind() != AffineExprKind::Add);
    AffineExpr subtrahend = expr.getKind() == AffineExprKind::Add
                                ? subtrahendOf(binary.getRHS())
                                : AffineExpr();
    os << (subtrahend ? " - " : sign);
    printExpr(os, subtrahend ? subtrahend : binary.getRHS(), symbols,
              subtrahend || expr.getKind() != AffineExprKind::Add);
    if (inner)
      os << ')';
  }
}

std::string charonia::graph::shapeToString(Type type,
                                           ArrayRef<Symbol> symbols) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '[';
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor && hasSymbolicShape(tensor))
    llvm::interleaveComma(getShape(tensor), os, [&](AffineExpr e) {
      printExpr(os, e, symbols, false);
    });
  else
    os << type;
  os << ']';
  return text;
}

std::string charonia::graph::nameSymbols(StringRef message,
                                         ArrayRef<Symbol> symbols) {
  std::string text;
  while (!message.empty()) {
    StringRef word =
        message.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    message = message.drop_front(word.size());
    StringRef number = word;
    size_t position;
    bool isSymbol = number.consume_front("s") &&
                    !number.getAsInteger(10, position) &&
                    position < symbols.size();
    text += isSymbol ? symbols[position].name : word.str();
    if (message.empty())
      break;
    text += message.front();
    message = message.drop_front();
  }
  return text;
}

std::string charonia::graph::typeToString(Type type, ArrayRef<Symbol> symbols) {
  Type element = getElementTypeOrSelf(type);
  std::string name;
  if (element.isInteger(1))
    name = "bool";
  else if (element.isF16())
    name = "float16";
  else if (element.isBF16())
    name = "bfloat16";
  else if (element.isF32())
    name = "float32";
  else if (element.isF64())
    name = "float64";
  else if (isa<Float8E4M3FNType>(element))
    name = "float8_e4m3fn";
  else if (isa<Float8E5M2Type>(element))
    name = "float8_e5m2";
  else if (isa<Float8E4M3FNUZType>(element))
    name = "float8_e4m3fnuz";
  else if (isa<Float8E5M2FNUZType>(element))
    name = "float8_e5m2fnuz";
  else if (auto integer = dyn_cast<IntegerType>(element))
    name = (integer.isUnsigned() ? "uint" : "int") +
           std::to_string(integer.getWidth());
  else
    llvm::raw_string_ostream(name) << element;
  return name + shapeToString(type, symbols);
}
