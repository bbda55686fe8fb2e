#include "graph/analysis/Weights.h"
#include "graph/ir/Float8.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/PrepareFunction.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "graph/passes/Passes.h.inc"

namespace {

/// Builds a chain of views and pads on one value.
class Chain {
public:
  Chain(OpBuilder &builder, Value value) : builder(builder), value(value) {}

  void reshape(ArrayRef<int64_t> shape) {
    value = ReshapeOp::create(builder, value.getLoc(), typeOf(shape), value);
  }
  void transpose(ArrayRef<int64_t> permutation) {
    SmallVector<int64_t> shape;
    for (int64_t d : permutation)
      shape.push_back(sizes()[d]);
    value = TransposeOp::create(builder, value.getLoc(), typeOf(shape), value,
                                permutation);
  }
  /// Extends dimension `d` to `size` with zeros.
  void pad(unsigned d, int64_t size) {
    if (size == sizes()[d])
      return;
    SmallVector<int64_t> shape(sizes());
    shape[d] = size;
    value = zeroPadded(builder, value.getLoc(), value, getShape(typeOf(shape)),
                       SmallVector<int64_t>(shape.size(), 0));
  }
  /// The first `size` elements of dimension `d`.
  void cut(unsigned d, int64_t size) {
    if (size == sizes()[d])
      return;
    SmallVector<int64_t> shape(sizes());
    shape[d] = size;
    value = SliceOp::create(builder, value.getLoc(), typeOf(shape), value,
                            zeros(shape.size()),
                            SmallVector<int64_t>(shape.size(), 1));
  }

  ArrayRef<int64_t> sizes() {
    return cast<RankedTensorType>(value.getType()).getShape();
  }
  Value get() { return value; }

private:
  Type element() {
    return cast<RankedTensorType>(value.getType()).getElementType();
  }
  RankedTensorType typeOf(ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, element());
  }
  AffineMap zeros(unsigned rank) {
    SmallVector<AffineExpr> results(rank, builder.getAffineConstantExpr(0));
    return AffineMap::get(0, 0, results, builder.getContext());
  }

  OpBuilder &builder;
  Value value;
};

struct PackWeights : impl::PackWeightsBase<PackWeights> {
  using PackWeightsBase::PackWeightsBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    PrepareFunction prepare(getOperation());
    WeightsOnly weightsOnly;
    llvm::DenseMap<std::pair<Value, unsigned>, Value> packed;
    SmallVector<GraphOpInterface> ops;
    for (auto op : function.getBody().front().getOps<GraphOpInterface>())
      ops.push_back(op);
    for (GraphOpInterface op : ops) {
      // Filters of groups too: channels are what vectors run along.
      std::optional<Columns> columns = op.getScaledColumns();
      if (!columns)
        continue;
      OpOperand &operand = op->getOpOperand(columns->operand);
      Value weight = operand.get();
      if (!weightsOnly(weight) || weightsOnly.sourceBytes(weight) == 0)
        continue;
      auto type = cast<RankedTensorType>(weight.getType());
      if (type.getDimSize(columns->operandDim) < minColumns)
        continue;
      // A panel of one column, whose terms are neighbours: what a GPU wants of
      // floats of 8 bits.
      if (panel == 1 && !isFloat8(type.getElementType()))
        continue;
      Value &view = packed[{weight, columns->operandDim}];
      if (!view) {
        Value inside = pack(prepare.getBuilder(), prepare.import(weight),
                            columns->operandDim);
        OpBuilder outside(op);
        view = unpack(outside, prepare.publish(inside, outside),
                      columns->operandDim, type);
      }
      operand.set(view);
    }
    prepare.finish();
    eraseDead(function);
  }

  /// [.., N, ..] -> [N / panel, .., .., panel], N padded to a multiple of the
  /// panel.
  Value pack(OpBuilder &builder, Value value, unsigned columns) {
    Chain chain(builder, value);
    int64_t panels = llvm::divideCeil(chain.sizes()[columns], panel.getValue());
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
    if (!hasQuads(value, columns))
      return chain.get();
    unsigned rank = chain.sizes().size();
    chain.pad(rank - 2, llvm::alignTo(chain.sizes()[rank - 2], quad));
    splitQuads(chain, rank - 2);
    permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank + 1));
    std::swap(permutation[rank - 1], permutation[rank]);
    chain.transpose(permutation);
    return chain.get();
  }

  /// Bytes are multiplied four terms at a time: those of a column lie side by
  /// side, [.., K / 4, panel, 4], behind the last of many perhaps with zeros.
  static constexpr int64_t quad = 4, many = 8 * quad;
  static bool hasQuads(Value weight, unsigned columns) {
    auto type = cast<RankedTensorType>(weight.getType());
    if (!type.getElementType().isInteger(8) || type.getRank() < 2)
      return false;
    int64_t terms = termsOf(type, columns);
    return terms % quad == 0 || terms >= many;
  }
  static int64_t termsOf(RankedTensorType type, unsigned columns) {
    unsigned last = type.getRank() - 1;
    return type.getDimSize(columns == last ? last - 1 : last);
  }
  static void splitQuads(Chain &chain, unsigned d) {
    SmallVector<int64_t> shape(chain.sizes());
    shape[d] /= quad;
    shape.insert(shape.begin() + d + 1, quad);
    chain.reshape(shape);
  }

  /// The views that give back [.., N, ..].
  Value unpack(OpBuilder &builder, Value value, unsigned columns,
               RankedTensorType type) {
    Chain chain(builder, value);
    unsigned rank = chain.sizes().size();
    SmallVector<int64_t> permutation;
    if (rank == type.getRank() + 2) { // quads
      permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
      std::swap(permutation[rank - 2], permutation[rank - 1]);
      chain.transpose(permutation);
      SmallVector<int64_t> shape(chain.sizes());
      shape[rank - 3] *= quad;
      shape.erase(shape.begin() + rank - 2);
      chain.reshape(shape);
      chain.cut(rank - 3, termsOf(type, columns));
      permutation.clear();
      --rank;
    }
    for (unsigned d = 1; d + 1 < rank; ++d)
      permutation.push_back(d);
    permutation.insert(permutation.begin() + columns, {0, rank - 1});
    chain.transpose(permutation);
    SmallVector<int64_t> shape(chain.sizes());
    shape[columns] *= shape[columns + 1];
    shape.erase(shape.begin() + columns + 1);
    chain.reshape(shape);
    chain.cut(columns, type.getDimSize(columns));
    return chain.get();
  }
};

} // namespace
} // namespace charonia::graph
