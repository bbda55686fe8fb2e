#include "codegen/driver/Convert.h"
#include "graph/ir/WeightStore.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace charonia::driver {

ShapeExpr toShapeExpr(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return ShapeExpr::symbol(symbol.getPosition());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  ShapeExpr lhs = toShapeExpr(binary.getLHS()),
            rhs = toShapeExpr(binary.getRHS());
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::FloorDiv:
    return floorDiv(lhs, rhs);
  case AffineExprKind::CeilDiv:
    return ceilDiv(lhs, rhs);
  case AffineExprKind::Mod:
    return mod(lhs, rhs);
  default:
    llvm_unreachable("no such binary expression");
  }
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
                                      StringAttr name, const Twine &fallback) {
  auto tensor = cast<RankedTensorType>(type);
  TensorSpec spec;
  spec.name = name ? name.str() : fallback.str();
  std::optional<DType> dtype = toDType(tensor.getElementType());
  if (!dtype)
    return function.emitError()
           << "'" << spec.name << "' has the element type "
           << tensor.getElementType() << ", which an engine does not support";
  spec.dtype = *dtype;
  for (AffineExpr extent : graph::getShape(tensor))
    spec.dims.push_back(toShapeExpr(extent));
  return spec;
}

FailureOr<Signature> makeSignature(func::FuncOp function) {
  Signature signature;
  for (const graph::Symbol &s :
       graph::getSymbols(function->getParentOfType<ModuleOp>()))
    signature.symbols.push_back({s.name, s.min, s.opt, s.max, s.divisor});
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto spec = makeSpec(function, type,
                         function.getArgAttrOfType<StringAttr>(i, "graph.name"),
                         "input" + Twine(i));
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
