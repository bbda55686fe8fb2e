#include "frontends/pytorch/Call.h"
#include "frontends/common/Diagnostic.h"
#include "frontends/common/builders/Exact.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using Kind = Argument::Kind;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Twine;

Call::Call(Emitter &emitter, const Node &node, Names &names, bool inPlace)
    : emitter(emitter), node(node), names(names), inPlace(inPlace) {
  for (const Argument &output : node.outputs) {
    if (output.kind == Kind::List)
      for (const Argument &item : output.items)
        outputs.push_back(item.text);
    else
      outputs.push_back(output.text);
  }
}

// Arguments.

const Argument *Call::find(StringRef name) {
  used.insert(name);
  for (const NamedArgument &input : node.inputs)
    if (input.name == name)
      return input.value.isNone() ? nullptr : &input.value;
  return nullptr;
}
bool Call::has(StringRef name) { return find(name); }
void Call::ignore(llvm::ArrayRef<StringRef> list) {
  for (StringRef name : list)
    used.insert(name);
}

Failed Call::wrongKind(StringRef name, StringRef wanted) {
  const Argument *argument = find(name);
  if (!argument)
    return fail("argument '" + name + "' is missing", "export again");
  if (argument->kind == Kind::Unsupported)
    return fail("argument '" + name + "' is of a kind that is not supported, " +
                printable(argument->text));
  if (argument->kind == Kind::SymInt || argument->kind == Kind::SymFloat ||
      argument->kind == Kind::SymBool)
    return fail("argument '" + name +
                    "' is not supported unless it is "
                    "constant, but is the size '" +
                    printable(argument->text) + "'",
                "fix that size when exporting");
  return fail("argument '" + name + "' is no " + wanted, "export again");
}

mlir::Value Call::tensorFrom(const Argument &argument, StringRef name) {
  if (argument.kind != Kind::Tensor)
    return wrongKind(name, "tensor");
  bool isImaginary = llvm::is_contained(imaginaryOf, name);
  mlir::Value value = emitter.follow(names.valueOf(argument.text, isImaginary));
  // A real tensor among what becomes complex.
  const TensorMeta *meta = names.metaOf(argument.text);
  if (!isImaginary || !value || (meta && pytorch::isComplex(meta->dtype)))
    return value;
  return emitter.broadcast(emitter.scalar(int64_t(0), elementOf(value)),
                           graph::getShape(value));
}
bool Call::isComplex(llvm::ArrayRef<StringRef> arguments) {
  return llvm::any_of(arguments, [&](StringRef name) {
    const Argument *argument = find(name);
    const TensorMeta *meta = metaOf(name);
    return (argument && argument->kind == Kind::Complex) ||
           (meta && pytorch::isComplex(meta->dtype));
  });
}
mlir::Value Call::tensor(StringRef name) {
  const Argument *argument = find(name);
  return argument ? tensorFrom(*argument, name) : wrongKind(name, "tensor");
}
mlir::Value Call::optionalTensor(StringRef name) {
  const Argument *argument = find(name);
  return argument ? tensorFrom(*argument, name) : mlir::Value();
}
const TensorMeta *Call::metaOf(StringRef name) {
  const Argument *argument = find(name);
  return argument && argument->kind == Kind::Tensor
             ? names.metaOf(argument->text)
             : nullptr;
}
std::pair<mlir::Value, mlir::Value> Call::complexTensor(StringRef name) {
  const Argument *argument = find(name);
  if (!argument || argument->kind != Kind::Tensor) {
    wrongKind(name, "tensor");
    return {};
  }
  const TensorMeta *meta = names.metaOf(argument->text);
  mlir::Value real = emitter.follow(names.valueOf(argument->text, false));
  if (!meta || !pytorch::isComplex(meta->dtype))
    return {real, {}};
  return {real, emitter.follow(names.valueOf(argument->text, true))};
}
std::pair<mlir::Value, mlir::Value> Call::complexOperand(StringRef name,
                                                         mlir::Type element) {
  const Argument *argument = find(name);
  if (argument && argument->kind == Kind::Complex)
    return {emitter.scalar(argument->items[0].number, element),
            emitter.scalar(argument->items[1].number, element)};
  if (!argument || argument->kind != Kind::Tensor)
    return {operand(name, element), {}};
  auto [real, imaginary] = complexTensor(name);
  return {emitter.cast(real, element),
          imaginary ? emitter.cast(imaginary, element) : mlir::Value()};
}
Values Call::tensors(StringRef name) {
  Values values;
  const Argument *argument = find(name);
  if (!argument || argument->kind != Kind::List) {
    wrongKind(name, "list of tensors");
    return values;
  }
  for (const Argument &item : argument->items)
    values.push_back(item.isNone() ? mlir::Value() : tensorFrom(item, name));
  return values;
}

mlir::Value Call::operand(StringRef name, mlir::Type element) {
  const Argument *argument = find(name);
  if (!argument)
    return wrongKind(name, "tensor or number");
  bool isImaginary = llvm::is_contained(imaginaryOf, name);
  if (argument->kind == Kind::Complex && hasParts)
    return emitter.scalar(argument->items[isImaginary].number, element);
  if (argument->kind != Kind::Tensor && isImaginary)
    return emitter.scalar(int64_t(0), element);
  switch (argument->kind) {
  case Kind::Tensor:
    return emitter.cast(tensorFrom(*argument, name), element);
  case Kind::Integer:
  case Kind::Bool:
    return emitter.scalar(argument->integer, element);
  case Kind::Float:
    return emitter.scalar(argument->number, element);
  case Kind::SymInt:
    if (mlir::AffineExpr known = names.sizeOf(argument->text))
      return emitter.size(known, element);
    [[fallthrough]];
  case Kind::SymFloat:
    if (mlir::Value number = names.numberOf(argument->text))
      return emitter.cast(number, element);
    return emitter.failed() ? Failed()
                            : fail("argument '" + name + "' is the number '" +
                                       printable(argument->text) +
                                       "', which depends on data, or follows "
                                       "from sizes in a way that is not "
                                       "supported",
                                   "compute it as a tensor in the model");
  default:
    return wrongKind(name, "tensor or number");
  }
}

int64_t Call::integer(StringRef name, std::optional<int64_t> otherwise) {
  const Argument *argument = find(name);
  if (!argument && otherwise)
    return *otherwise;
  if (argument && argument->kind == Kind::SymInt)
    if (mlir::AffineExpr known = size(name))
      if (auto value = graph::constantOf(known))
        return *value;
  bool fits = argument &&
              (argument->kind == Kind::Integer || argument->kind == Kind::Bool);
  if (!fits)
    wrongKind(name, "integer");
  return fits ? argument->integer : 0;
}
double Call::number(StringRef name, std::optional<double> otherwise) {
  const Argument *argument = find(name);
  if (!argument && otherwise)
    return *otherwise;
  if (argument && argument->kind == Kind::Float)
    return argument->number;
  return static_cast<double>(integer(name));
}
SmallVector<double> Call::numbers(StringRef name) {
  SmallVector<double> result;
  const Argument *argument = find(name);
  if (!argument || argument->kind != Kind::List) {
    wrongKind(name, "list of numbers");
    return result;
  }
  for (const Argument &item : argument->items) {
    if (item.kind != Kind::Float && item.kind != Kind::Integer) {
      wrongKind(name, "list of numbers");
      return result;
    }
    result.push_back(item.kind == Kind::Float
                         ? item.number
                         : static_cast<double>(item.integer));
  }
  return result;
}
bool Call::flag(StringRef name, std::optional<bool> otherwise) {
  const Argument *argument = find(name);
  if (!argument && otherwise)
    return *otherwise;
  return integer(name) != 0;
}
std::string Call::text(StringRef name, StringRef otherwise) {
  const Argument *argument = find(name);
  if (!argument)
    return otherwise.str();
  if (argument->kind != Kind::String)
    wrongKind(name, "string");
  return argument->text;
}

mlir::Type Call::dtype(StringRef name) {
  const Argument *argument = find(name);
  if (!argument)
    return {};
  if (argument->kind != Kind::ScalarType) {
    wrongKind(name, "element type");
    return {};
  }
  auto code = static_cast<int>(argument->integer);
  mlir::Type element = elementType(code, emitter.getContext());
  if (!element)
    fail(dtypeName(code) + " is not supported");
  return element;
}

mlir::AffineExpr Call::sizeFrom(const Argument &argument, StringRef name) {
  if (argument.kind == Kind::Integer)
    return emitter.number(argument.integer);
  if (argument.kind != Kind::SymInt)
    return wrongKind(name, "size");
  if (mlir::AffineExpr size = names.sizeOf(argument.text))
    return size;
  return fail("argument '" + name + "' is the size '" +
                  printable(argument.text) +
                  "', which depends on data, or does not follow from the sizes "
                  "of inputs in a way that is supported",
              "shapes have to follow from the shapes of the model's inputs");
}
mlir::AffineExpr Call::size(StringRef name, std::optional<int64_t> otherwise) {
  const Argument *argument = find(name);
  if (!argument && otherwise)
    return emitter.number(*otherwise);
  return argument ? sizeFrom(*argument, name) : wrongKind(name, "size");
}
Exprs Call::sizes(StringRef name) {
  Exprs result;
  const Argument *argument = find(name);
  if (argument && argument->kind == Kind::List) {
    for (const Argument &item : argument->items)
      result.push_back(sizeFrom(item, name));
    return result;
  }
  result.push_back(size(name));
  return result;
}
SmallVector<int64_t> Call::integers(StringRef name,
                                    llvm::ArrayRef<int64_t> otherwise) {
  SmallVector<int64_t> result;
  if (!has(name))
    return SmallVector<int64_t>(otherwise);
  for (mlir::AffineExpr size : sizes(name)) {
    auto value = size ? graph::constantOf(size) : std::nullopt;
    if (size && !value)
      fail("argument '" + name +
               "' is not supported unless it is constant, "
               "but is " +
               emitter.getSymbols().toString(size),
           "fix that size with --shape");
    result.push_back(value.value_or(0));
  }
  return result;
}
SmallVector<int64_t> Call::repeated(StringRef name, unsigned count,
                                    int64_t otherwise) {
  SmallVector<int64_t> given = integers(name, {otherwise});
  if (given.empty())
    given.push_back(otherwise);
  if (given.size() == 1)
    given.resize(count, given[0]);
  if (given.size() != count) {
    fail("argument '" + name + "' has " + Twine(given.size()) +
         " entries for " + Twine(count) + " dimensions");
    given.resize(count);
  }
  return given;
}

int64_t Call::axis(int64_t value, int64_t rank) {
  if (value < -rank || value >= rank) {
    fail("dimension " + Twine(value) + " is out of range for " + Twine(rank) +
         " dimensions");
    return 0;
  }
  return value < 0 ? value + rank : value;
}
int64_t Call::axis(StringRef name, int64_t rank,
                   std::optional<int64_t> otherwise) {
  return axis(integer(name, otherwise), rank);
}
SmallVector<int64_t> Call::axes(StringRef name, int64_t rank, bool emptyIsAll) {
  SmallVector<int64_t> given = integers(name), result;
  if (given.empty() && has(name) && !emptyIsAll)
    return result;
  // A number has no dimensions, but may be said to have one.
  if (given.empty() || rank == 0)
    return llvm::to_vector(llvm::seq<int64_t>(0, rank));
  for (int64_t value : given) {
    int64_t d = axis(value, rank);
    if (llvm::is_contained(result, d))
      fail("dimension " + Twine(value) + " appears twice");
    result.push_back(d);
  }
  return result;
}

// Types.

static bool isBool(mlir::Type type) { return type.isInteger(1); }

mlir::Type charonia::frontend::pytorch::promoteTypes(mlir::Type a,
                                                     mlir::Type b) {
  if (!a || !b || a == b)
    return a ? a : b;
  auto floatA = llvm::dyn_cast<mlir::FloatType>(a),
       floatB = llvm::dyn_cast<mlir::FloatType>(b);
  if (floatA && floatB) {
    if (floatA.getWidth() == floatB.getWidth())
      return mlir::Float32Type::get(a.getContext());
    return floatA.getWidth() > floatB.getWidth() ? a : b;
  }
  if (floatA || floatB)
    return floatA ? a : b;
  if (isBool(a) || isBool(b))
    return isBool(a) ? b : a;
  unsigned widthA = a.getIntOrFloatBitWidth(),
           widthB = b.getIntOrFloatBitWidth();
  bool unsignedA = a.isUnsignedInteger(), unsignedB = b.isUnsignedInteger();
  if (unsignedA == unsignedB)
    return widthA > widthB ? a : b;
  // A signed type that holds the unsigned one.
  unsigned width = std::max(unsignedA ? widthA * 2 : widthA,
                            unsignedB ? widthB * 2 : widthB);
  return mlir::IntegerType::get(a.getContext(), std::min(width, 64u));
}

/// Tensors with dimensions decide; those without, then numbers, only where they
/// are of a higher kind: bool, integers, floats.
static mlir::Type combineKinds(mlir::Type higher, mlir::Type lower) {
  if (!higher || !lower)
    return higher ? higher : lower;
  if (llvm::isa<mlir::FloatType>(higher))
    return higher;
  return isBool(higher) || llvm::isa<mlir::FloatType>(lower)
             ? promoteTypes(higher, lower)
             : higher;
}

mlir::Type Call::exactType(mlir::Type element,
                           llvm::ArrayRef<StringRef> arguments) {
  SmallVector<double> given;
  for (StringRef name : arguments) {
    const Argument *argument = find(name);
    if (!argument)
      continue;
    // One that follows from sizes is taken for a number that has none, as is a
    // float without dimensions.
    mlir::Value value =
        argument->kind == Kind::Tensor ? tensor(name) : mlir::Value();
    auto own = llvm::dyn_cast_or_null<mlir::FloatType>(elementOf(value));
    auto half = llvm::dyn_cast_or_null<mlir::FloatType>(element);
    bool isWider =
        own && half && rankOf(value) == 0 && own.getWidth() > half.getWidth();
    if (argument->kind == Kind::SymFloat || isWider)
      given.push_back(1.0 / 3);
    else if (argument->kind == Kind::Float)
      given.push_back(argument->number);
    else if (argument->kind == Kind::Integer)
      given.push_back(static_cast<double>(argument->integer));
  }
  return frontend::exactType(element, given);
}

mlir::Type Call::promote(llvm::ArrayRef<StringRef> arguments) {
  mlir::Type withDims, withoutDims, numbers;
  auto &builder = emitter.getBuilder();
  for (StringRef name : arguments) {
    const Argument *argument = find(name);
    if (!argument)
      continue;
    if (argument->kind == Kind::Tensor) {
      mlir::Value value = tensor(name);
      if (!value)
        return {};
      mlir::Type &group = rankOf(value) ? withDims : withoutDims;
      group = promoteTypes(group, elementOf(value));
      continue;
    }
    mlir::Type type = builder.getI64Type();
    if (argument->kind == Kind::Float || argument->kind == Kind::SymFloat)
      type = builder.getF32Type();
    else if (argument->kind == Kind::Bool)
      type = builder.getI1Type();
    numbers = promoteTypes(numbers, type);
  }
  return combineKinds(withDims, combineKinds(withoutDims, numbers));
}

mlir::Type Call::arithmeticType(llvm::ArrayRef<StringRef> arguments) {
  return inPlace ? promote(arguments) : resultElement();
}

// Results.

const TensorMeta *Call::resultMeta(unsigned i) {
  return i < outputs.size() ? names.metaOf(outputs[i]) : nullptr;
}
mlir::Type Call::resultElement(unsigned i) {
  const TensorMeta *meta = resultMeta(i);
  if (!meta)
    return fail("the file does not say what result " + Twine(i) + " is",
                "export again"),
           mlir::Type();
  mlir::Type element = partType(meta->dtype, emitter.getContext());
  if (!element)
    fail("its result is " + dtypeName(meta->dtype) + ", which is not supported",
         "float32, float64, float16, bfloat16, float8 (e4m3fn, e5m2 and fnuz "
         "kinds), bool and integers of 8 to 64 bits are");
  return element;
}
Exprs Call::resultShape(unsigned i) {
  const TensorMeta *meta = resultMeta(i);
  if (!meta) {
    fail("the file does not say what result " + Twine(i) + " is",
         "export again");
    return {};
  }
  Exprs shape = names.shapeOf(*meta);
  for (auto [d, size] : llvm::enumerate(shape))
    if (!size)
      fail("size " + Twine(d) + " of its result is " +
               meta->sizes[d]->toString() +
               ", which does not follow from the sizes of inputs in a way "
               "that is supported",
           "shapes have to follow from the shapes of the model's inputs");
  return shape;
}

bool charonia::frontend::pytorch::areAlike(mlir::AffineExpr a,
                                           mlir::AffineExpr b) {
  bool isPlain = !llvm::isa<mlir::AffineBinaryOpExpr>(a) &&
                 !llvm::isa<mlir::AffineBinaryOpExpr>(b);
  return isPlain ? a == b : graph::mayBeEqual(a, b);
}

llvm::LogicalResult Call::checkShape(llvm::ArrayRef<mlir::AffineExpr> shape,
                                     unsigned i) {
  Exprs stated = resultShape(i);
  if (emitter.failed())
    return llvm::failure();
  bool agrees = shape.size() == stated.size();
  for (size_t d = 0; agrees && d < shape.size(); ++d)
    agrees = areAlike(emitter.getSymbols().resolve(shape[d]),
                      emitter.getSymbols().resolve(stated[d]));
  if (agrees)
    return llvm::success();
  return fail("gives " + emitter.describe(shape) + ", but the file says " +
                  emitter.describe(stated),
              "the file is damaged: export the program again");
}

llvm::LogicalResult Call::yield(mlir::ValueRange values) {
  if (emitter.failed())
    return llvm::failure();
  for (const NamedArgument &input : node.inputs)
    if (!used.contains(input.name) && !input.value.isNone())
      return fail("argument '" + printable(input.name) + "' is not supported",
                  "export without it");
  results.assign(values.begin(), values.end());
  return llvm::success();
}

llvm::LogicalResult Call::yieldNumber(mlir::Value scalar) {
  if (failed(yield(mlir::ValueRange())))
    return llvm::failure();
  if (!scalar || outputs.size() != 1)
    return fail("gives one number, and is none",
                "the file is damaged: export the program again");
  names.define(outputs.front(), scalar);
  return llvm::failure(emitter.failed());
}

llvm::LogicalResult Call::yieldComplex(mlir::ValueRange real,
                                       mlir::ValueRange imaginaryParts) {
  imaginary.assign(imaginaryParts.begin(), imaginaryParts.end());
  return yield(real);
}
