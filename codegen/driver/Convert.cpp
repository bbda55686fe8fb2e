#include "codegen/driver/Convert.h"
#include "graph/ir/Constraints.h"
#include "graph/ir/Definitions.h"
#include "graph/ir/Materialize.h"
#include "graph/ir/WeightStore.h"
#include "mlir/IR/Location.h"
#include "runtime/engine/Format.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace charonia::driver {

namespace {
/// Shape expressions of the engine, for graph::Materializer.
struct ShapeCode {
  using Value = ShapeExpr;

  ShapeExpr constant(int64_t value) { return value; }
  ShapeExpr variable(AffineExpr symbol) {
    return ShapeExpr::symbol(cast<AffineSymbolExpr>(symbol).getPosition());
  }
  ShapeExpr add(const ShapeExpr &a, const ShapeExpr &b) { return a + b; }
  ShapeExpr multiply(const ShapeExpr &a, const ShapeExpr &b) { return a * b; }
  ShapeExpr floorDivide(const ShapeExpr &a, const ShapeExpr &b, bool) {
    return floorDiv(a, b);
  }
  ShapeExpr ceilDivide(const ShapeExpr &a, const ShapeExpr &b) {
    return ceilDiv(a, b);
  }
  ShapeExpr modulo(const ShapeExpr &a, const ShapeExpr &b, bool) {
    return mod(a, b);
  }
};
} // namespace

ShapeExpr toShapeExpr(AffineExpr expr) {
  ShapeCode code;
  graph::Facts nothing;
  return graph::Materializer(code, nothing)(expr);
}

std::optional<DType> toDType(Type element) {
  if (element.isF32())
    return DType::Float32;
  if (element.isF64())
    return DType::Float64;
  if (element.isF16())
    return DType::Float16;
  if (element.isBF16())
    return DType::BFloat16;
  if (isa<Float8E4M3FNType>(element))
    return DType::Float8E4M3;
  if (isa<Float8E5M2Type>(element))
    return DType::Float8E5M2;
  if (isa<Float8E4M3FNUZType>(element))
    return DType::Float8E4M3FNUZ;
  if (isa<Float8E5M2FNUZType>(element))
    return DType::Float8E5M2FNUZ;
  if (element.isIndex())
    return DType::Int64;
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer)
    return std::nullopt;
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 1:
    return DType::Bool;
  case 8:
    return isUnsigned ? DType::UInt8 : DType::Int8;
  case 16:
    return isUnsigned ? DType::UInt16 : DType::Int16;
  case 32:
    return isUnsigned ? DType::UInt32 : DType::Int32;
  case 64:
    return isUnsigned ? DType::UInt64 : DType::Int64;
  default:
    return std::nullopt;
  }
}

ShapeExpr sizeInBytes(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  AffineExpr count =
      graph::numElements(graph::getShape(type), type.getContext());
  return toShapeExpr(count) * graph::elementBytes(type.getElementType());
}

static FailureOr<TensorSpec> makeSpec(func::FuncOp function, Type type,
                                      StringAttr name, const Twine &fallback,
                                      AffineMapAttr bound = {}) {
  auto tensor = cast<RankedTensorType>(type);
  TensorSpec spec;
  spec.name = name ? name.str() : fallback.str();
  std::optional<DType> dtype = toDType(tensor.getElementType());
  if (!dtype)
    return function.emitError()
           << "'" << spec.name << "' has the element type "
           << tensor.getElementType() << ", which an engine does not support";
  spec.dtype = *dtype;
  graph::Exprs dims = graph::getShape(tensor);
  // An argument's type may say more than its caller knows.
  size_t symbols =
      graph::getSymbols(function->getParentOfType<ModuleOp>()).size();
  if (bound && (bound.getValue().getNumDims() != 0 ||
                bound.getValue().getNumResults() != dims.size() ||
                bound.getValue().getNumSymbols() > symbols))
    return function.emitError()
           << "'" << spec.name << "' has a graph.shape that does not fit";
  if (bound)
    dims.assign(bound.getValue().getResults().begin(),
                bound.getValue().getResults().end());
  for (AffineExpr extent : dims)
    spec.dims.push_back(toShapeExpr(extent));
  return spec;
}

static Constraint::Relation toRelation(graph::Constraint::Relation relation) {
  switch (relation) {
  case graph::Constraint::Relation::Equal:
    return Constraint::Relation::Equal;
  case graph::Constraint::Relation::Divides:
    return Constraint::Relation::Divides;
  case graph::Constraint::Relation::AtLeast:
    return Constraint::Relation::AtLeast;
  case graph::Constraint::Relation::Differs:
    return Constraint::Relation::Differs;
  }
  llvm_unreachable("no such relation");
}

static ShapeExpr::Op toOp(graph::SizeStep::Op op) {
  using From = graph::SizeStep::Op;
  using To = ShapeExpr::Op;
  switch (op) {
  case From::Size:
    break;
  case From::Number:
    return To::FloatConst;
  case From::Sub:
    return To::Sub;
  case From::TruncDiv:
    return To::TruncDiv;
  case From::Mod:
    return To::Mod;
  case From::Max:
    return To::Max;
  case From::Min:
    return To::Min;
  case From::ToFloat:
    return To::ToFloat;
  case From::ToSingle:
    return To::ToSingle;
  case From::Truncate:
    return To::Truncate;
  case From::FloatAdd:
    return To::FloatAdd;
  case From::FloatSub:
    return To::FloatSub;
  case From::FloatMul:
    return To::FloatMul;
  case From::FloatDiv:
    return To::FloatDiv;
  case From::FloatMax:
    return To::FloatMax;
  case From::FloatMin:
    return To::FloatMin;
  case From::Floor:
    return To::Floor;
  case From::Ceil:
    return To::Ceil;
  case From::Round:
    return To::Round;
  case From::Sqrt:
    return To::Sqrt;
  }
  llvm_unreachable("a size is no operator");
}

/// A size that is defined, as an equation that binding shapes solves.
static Constraint toEquation(const graph::Definition &definition) {
  std::vector<ShapeExpr::Term> terms;
  for (const graph::SizeStep &step : definition.program) {
    if (step.op == graph::SizeStep::Op::Size) {
      ShapeExpr size = toShapeExpr(step.size);
      terms.insert(terms.end(), size.terms().begin(), size.terms().end());
    } else {
      terms.push_back({toOp(step.op), step.op == graph::SizeStep::Op::Number
                                          ? llvm::bit_cast<int64_t>(step.number)
                                          : 0});
    }
  }
  return {Constraint::Relation::Equal, ShapeExpr::symbol(definition.symbol),
          ShapeExpr::fromTerms(std::move(terms)), ""};
}

/// No tensor has a size that is a longer expression than an engine holds.
static LogicalResult checkSizes(func::FuncOp function) {
  llvm::DenseSet<Type> fine;
  for (Operation &op : function.getBody().front())
    for (Type type : op.getResultTypes()) {
      if (!graph::hasSymbolicShape(type) || !fine.insert(type).second)
        continue;
      size_t terms = toShapeExpr(graph::numElements(graph::getShape(type),
                                                    function.getContext()))
                         .terms()
                         .size();
      for (AffineExpr extent : graph::getShape(type))
        terms = std::max(terms, toShapeExpr(extent).terms().size());
      // A few more for the bytes of an element, and for alignment.
      if (terms + 16 <= engine::maxExprTerms)
        continue;
      InFlightDiagnostic error = mlir::emitError(op.getLoc());
      error << "the size of the result is an expression of " << terms
            << " terms, and an engine holds " << engine::maxExprTerms;
      error.attachNote() << "remedy: fix some of the sizes with --shape, or "
                            "join fewer tensors of open sizes";
      return failure();
    }
  return success();
}

FailureOr<Signature> makeSignature(func::FuncOp function) {
  if (failed(checkSizes(function)))
    return failure();
  Signature signature;
  auto module = function->getParentOfType<ModuleOp>();
  for (const graph::Symbol &s : graph::getSymbols(module))
    signature.symbols.push_back({s.name, s.min, s.opt, s.max, s.divisor});
  for (const graph::Definition &d : graph::getDefinitions(module))
    signature.constraints.push_back(toEquation(d));
  for (const graph::Constraint &c : graph::getConstraints(module))
    signature.constraints.push_back({toRelation(c.relation),
                                     toShapeExpr(c.left), toShapeExpr(c.right),
                                     c.reason});
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto spec = makeSpec(
        function, type, function.getArgAttrOfType<StringAttr>(i, "graph.name"),
        "input" + Twine(i),
        function.getArgAttrOfType<AffineMapAttr>(i, "graph.shape"));
    if (failed(spec))
      return failure();
    signature.inputs.push_back(std::move(*spec));
  }
  for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
    auto spec =
        makeSpec(function, type,
                 function.getResultAttrOfType<StringAttr>(i, "graph.name"),
                 "output" + Twine(i));
    if (failed(spec))
      return failure();
    signature.outputs.push_back(std::move(*spec));
  }
  return signature;
}

static void collectNames(Location location, llvm::SetVector<StringRef> &names) {
  if (auto name = dyn_cast<NameLoc>(location))
    names.insert(name.getName());
  else if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      collectNames(part, names);
  else if (auto call = dyn_cast<CallSiteLoc>(location)) {
    collectNames(call.getCallee(), names);
    collectNames(call.getCaller(), names);
  }
}

std::vector<std::string> nodeNames(Location location) {
  llvm::SetVector<StringRef> names;
  collectNames(location, names);
  std::vector<std::string> result;
  for (StringRef name : names)
    result.push_back(name.str());
  return result;
}

} // namespace charonia::driver
