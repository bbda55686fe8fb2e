#include "frontends/common/builders/FourierParts.h"
#include "frontends/common/builders/Pad.h"

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using mlir::AffineExpr;
using mlir::Value;

Value charonia::frontend::componentOf(Value x, int64_t part, int64_t axis,
                                      Emitter &e) {
  Exprs dims = graph::getShape(x), starts(dims.size(), e.number(0));
  starts.back() = e.number(part);
  dims.back() = e.number(1);
  Value one = e.slice(x, starts, SmallVector<int64_t>(dims.size(), 1), dims);
  dims.pop_back();
  SmallVector<int64_t> order;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d)
    if (d != axis)
      order.push_back(d);
  order.push_back(axis);
  return e.transpose(e.reshape(one, dims), order);
}

SmallVector<int64_t> charonia::frontend::fromEndTo(int64_t axis, int64_t rank) {
  SmallVector<int64_t> order;
  for (int64_t d = 0; d < rank; ++d)
    order.push_back(d < axis ? d : d == axis ? rank - 1 : d - 1);
  return order;
}

Value charonia::frontend::joinParts(Values parts, llvm::ArrayRef<int64_t> back,
                                    Emitter &e) {
  for (Value &v : parts) {
    v = e.transpose(v, back);
    if (!v)
      return {};
    Exprs dims = graph::getShape(v);
    dims.push_back(e.number(1));
    v = e.reshape(v, dims);
  }
  if (parts.size() == 1)
    return parts.front();
  mlir::Type i64 = e.getBuilder().getI64Type();
  return e.select(e.compare(graph::Predicate::eq, e.iota({e.number(2)}, 0, i64),
                            e.scalar(int64_t(0), i64)),
                  parts[0], parts[1]);
}

Value charonia::frontend::fitTo(Value x, int64_t axis, AffineExpr extent,
                                Emitter &e) {
  Exprs shape = graph::getShape(x);
  if (shape[axis] == extent)
    return x;
  // Which of both is longer is not known.
  x = buildPad(graph::PadMode::constant, x, e.scalar(0.0, elementOf(x)),
               {e.number(0)}, {extent}, {axis}, e);
  shape[axis] = extent;
  return e.slice(x, Exprs(shape.size(), e.number(0)),
                 SmallVector<int64_t>(shape.size(), 1), shape);
}
