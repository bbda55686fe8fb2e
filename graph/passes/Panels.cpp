#include "graph/passes/Panels.h"
#include "graph/passes/Expression.h"

using namespace mlir;

namespace charonia::graph {

RankedTensorType ViewChain::typeOf(ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, getElementTypeOrSelf(value));
}

void ViewChain::reshape(ArrayRef<int64_t> shape) {
  if (shape != sizes())
    value = ReshapeOp::create(builder, value.getLoc(), typeOf(shape), value);
}

void ViewChain::transpose(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> shape;
  for (int64_t d : permutation)
    shape.push_back(sizes()[d]);
  value = TransposeOp::create(builder, value.getLoc(), typeOf(shape), value,
                              permutation);
}

void ViewChain::broadcast(ArrayRef<int64_t> shape) {
  if (shape != sizes())
    value = BroadcastOp::create(builder, value.getLoc(), typeOf(shape), value);
}

void ViewChain::pad(unsigned d, int64_t size) {
  if (size == sizes()[d])
    return;
  SmallVector<int64_t> shape(sizes());
  shape[d] = size;
  value = zeroPadded(builder, value.getLoc(), value, getShape(typeOf(shape)),
                     SmallVector<int64_t>(shape.size(), 0));
}

void ViewChain::cut(unsigned d, int64_t size) { pick(d, 0, 1, size); }

void ViewChain::pick(unsigned d, int64_t start, int64_t step, int64_t size) {
  if (start == 0 && step == 1 && size == sizes()[d])
    return;
  SmallVector<int64_t> shape(sizes()), steps(shape.size(), 1);
  SmallVector<AffineExpr> starts(shape.size(),
                                 builder.getAffineConstantExpr(0));
  shape[d] = size;
  steps[d] = step;
  starts[d] = builder.getAffineConstantExpr(start);
  value = SliceOp::create(builder, value.getLoc(), typeOf(shape), value,
                          AffineMap::get(0, 0, starts, builder.getContext()),
                          steps);
}

void ViewChain::split(unsigned d, int64_t size) {
  SmallVector<int64_t> shape(sizes());
  shape[d] /= size;
  shape.insert(shape.begin() + d + 1, size);
  reshape(shape);
}

void ViewChain::join(unsigned d) {
  SmallVector<int64_t> shape(sizes());
  shape[d] *= shape[d + 1];
  shape.erase(shape.begin() + d + 1);
  reshape(shape);
}

void ViewChain::repeat(unsigned d, int64_t times, int64_t size) {
  if (times > 1) {
    split(d, 1);
    SmallVector<int64_t> shape(sizes());
    shape[d + 1] = times;
    broadcast(shape);
    join(d);
  }
  cut(d, size);
}

Value packPanels(OpBuilder &builder, Value value, unsigned columns,
                 int64_t panel) {
  ViewChain chain(builder, value);
  int64_t panels = llvm::divideCeil(chain.sizes()[columns], panel);
  chain.pad(columns, panels * panel);
  SmallVector<int64_t> shape(chain.sizes());
  shape[columns] = panels;
  shape.insert(shape.begin() + columns + 1, panel);
  chain.reshape(shape);
  SmallVector<int64_t> permutation{columns};
  for (unsigned d = 0; d < shape.size(); ++d)
    if (d != columns && d != columns + 1)
      permutation.push_back(d);
  permutation.push_back(columns + 1);
  chain.transpose(permutation);
  return chain.get();
}

Value unpackPanels(OpBuilder &builder, Value panels, unsigned columns,
                   ArrayRef<int64_t> shape) {
  ViewChain chain(builder, panels);
  unsigned rank = chain.sizes().size();
  SmallVector<int64_t> permutation;
  for (unsigned d = 1; d + 1 < rank; ++d)
    permutation.push_back(d);
  permutation.insert(permutation.begin() + columns, {0, rank - 1});
  chain.transpose(permutation);
  chain.join(columns);
  chain.cut(columns, shape[columns]);
  return chain.get();
}

} // namespace charonia::graph
