// The operators that importers build most often.
#include "frontends/common/Emitter.h"

using namespace charonia;
using namespace charonia::frontend;
using mlir::AffineExpr;
using mlir::Value;

// Elementwise.

Value Emitter::compare(graph::Predicate predicate, Value a, Value b) {
  return op<graph::CompareOp>(
      {a, b},
      attr("predicate", graph::PredicateAttr::get(getContext(), predicate)));
}
Value Emitter::cast(Value value, mlir::Type element) {
  if (!value || !element)
    return {};
  if (elementOf(value) == element)
    return value;
  return op<graph::CastOp>({value}, attr("to", mlir::TypeAttr::get(element)));
}
Value Emitter::widen(Value value) {
  if (!value || !isFloat(value) ||
      elementOf(value).getIntOrFloatBitWidth() >= 32)
    return value;
  return cast(value, builder.getF32Type());
}

// Views and reductions.

Value Emitter::reshape(Value value, llvm::ArrayRef<AffineExpr> dims) {
  if (!value)
    return {};
  auto to = type(dims, elementOf(value));
  return to == value.getType() ? value : opTo<graph::ReshapeOp>(to, {value});
}
Value Emitter::broadcast(Value value, llvm::ArrayRef<AffineExpr> dims) {
  if (!value)
    return {};
  auto to = type(dims, elementOf(value));
  return to == value.getType() ? value : opTo<graph::BroadcastOp>(to, {value});
}
Value Emitter::transpose(Value value, llvm::ArrayRef<int64_t> permutation) {
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return value;
  return op<graph::TransposeOp>({value}, attr("permutation", permutation));
}
Value Emitter::slice(Value value, llvm::ArrayRef<AffineExpr> starts,
                     llvm::ArrayRef<int64_t> steps,
                     llvm::ArrayRef<AffineExpr> dims) {
  if (!value)
    return {};
  return opTo<graph::SliceOp>(type(dims, elementOf(value)), {value},
                              {map("starts", starts), attr("steps", steps)});
}
Value Emitter::concat(mlir::ValueRange values, int64_t axis) {
  return values.size() == 1 ? values[0]
                            : op<graph::ConcatOp>(values, attr("axis", axis));
}
Value Emitter::pad(graph::PadMode mode, Value value, Value fill,
                   llvm::ArrayRef<AffineExpr> lows,
                   llvm::ArrayRef<AffineExpr> dims) {
  if (!value)
    return {};
  return opTo<graph::PadOp>(
      type(dims, elementOf(value)), {value, fill},
      {attr("mode", graph::PadModeAttr::get(getContext(), mode)),
       map("lows", lows)});
}
Value Emitter::iota(llvm::ArrayRef<AffineExpr> dims, int64_t axis,
                    mlir::Type element) {
  return opTo<graph::IotaOp>(type(dims, element), {}, attr("axis", axis));
}
Value Emitter::reduce(graph::ReduceKind kind, Value value,
                      llvm::ArrayRef<int64_t> axes, bool keepdims) {
  llvm::SmallVector<mlir::NamedAttribute> attributes = {
      attr("kind", graph::ReduceKindAttr::get(getContext(), kind)),
      attr("axes", axes)};
  if (keepdims)
    attributes.push_back(unit("keepdims"));
  return op<graph::ReduceOp>({value}, attributes);
}
Value Emitter::mean(Value value, llvm::ArrayRef<int64_t> axes, bool keepdims) {
  if (!value)
    return {};
  Value wide = widen(value);
  if (!wide)
    return {};
  Exprs shape = graph::getShape(value), reduced;
  for (int64_t axis : axes)
    reduced.push_back(shape[axis]);
  Value sum = reduce(graph::ReduceKind::sum, wide, axes, keepdims);
  return cast(div(sum, size(productOf(reduced, getContext()), elementOf(wide))),
              elementOf(value));
}
Value Emitter::asChannels(Value value, unsigned trailing) {
  if (!value)
    return {};
  Exprs dims = graph::getShape(value);
  dims.append(trailing, number(1));
  return reshape(value, dims);
}
