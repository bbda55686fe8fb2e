#include "graph/analysis/Computing.h"
#include "graph/analysis/Weights.h"
#include "graph/analysis/Widening.h"
#include "graph/ir/Float8.h"
#include "graph/passes/Expression.h"
#include "graph/passes/NarrowWeights.h"
#include "graph/passes/Panels.h"
#include "graph/passes/Passes.h"
#include "graph/passes/PrepareFunction.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "graph/passes/Passes.h.inc"

namespace {

struct PackWeights : impl::PackWeightsBase<PackWeights> {
  using PackWeightsBase::PackWeightsBase;

  void runOnOperation() override {
    SmallVector<func::FuncOp> functions = getComputing(getOperation());
    if (functions.empty())
      return;
    PrepareFunction prepare(getOperation());
    WeightsOnly weightsOnly;
    NarrowWeights narrow(prepare, weightsOnly, panel);
    llvm::DenseMap<std::pair<Value, unsigned>, Value> packed;
    SmallVector<int64_t> optimum = getOptimum(getSymbols(getOperation()));
    SmallVector<GraphOpInterface> ops;
    for (func::FuncOp function : functions)
      llvm::append_range(ops,
                         function.getBody().front().getOps<GraphOpInterface>());
    for (GraphOpInterface op : ops) {
      // Filters of groups too: channels are what vectors run along, of one
      // group at a time.
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
      if (panel == 1 && !isFloat8(type.getElementType())) {
        if (widensInside(operand, optimum, /*mostRows=*/1))
          turnBytes(operand, columns->operandDim, prepare, weightsOnly);
        continue;
      }
      Value &view = packed[{weight, columns->operandDim}];
      if (!view && panel > 1) {
        OpBuilder outside(op);
        view = narrow.pack(weight, columns->operandDim, outside);
      }
      if (!view) {
        Value inside =
            pack(prepare.getBuilder(), prepare.import(weight), *columns);
        OpBuilder outside(op);
        view =
            unpack(outside, prepare.publish(inside, outside), *columns, type);
      }
      operand.set(view);
    }
    prepare.finish();
    for (func::FuncOp function : functions)
      eraseDead(function);
  }

  /// Of a product of one row that widens its weight: the bytes that make it,
  /// element by element, get the terms of a column side by side. Threads share
  /// out a column's terms then, and load many at once.
  void turnBytes(OpOperand &operand, unsigned columns, PrepareFunction &prepare,
                 WeightsOnly &weightsOnly) {
    constexpr unsigned bits = 8, loadBytes = 16;
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(operand.get().getType()).getShape();
    llvm::SetVector<Operation *> widening = wideningOf(operand, weightsOnly);
    // Other terms are side by side already.
    if (columns + 1 != shape.size())
      return;
    SmallVector<OpOperand *> uses{&operand};
    while (!uses.empty()) {
      OpOperand &use = *uses.pop_back_val();
      Operation *op = use.get().getDefiningOp();
      auto type = cast<RankedTensorType>(use.get().getType());
      if (isWeight(op) && type.getElementType().isInteger(bits) &&
          use.get().hasOneUse()) {
        // Panels of one column [.., terms, 1], each as long as whole loads.
        ViewChain turned(prepare.getBuilder(),
                         packPanels(prepare.getBuilder(),
                                    prepare.import(use.get()), columns, panel));
        unsigned terms = columns;
        turned.pad(terms, llvm::alignTo(shape[columns - 1], loadBytes));
        OpBuilder outside(use.getOwner());
        ViewChain panels(outside, prepare.publish(turned.get(), outside));
        panels.cut(terms, shape[columns - 1]);
        use.set(unpackPanels(outside, panels.get(), columns, shape));
      }
      // What lies as the operand itself does.
      if (widening.contains(op) && use.get().hasOneUse())
        for (OpOperand &from : op->getOpOperands())
          if (cast<RankedTensorType>(from.get().getType()).getShape() ==
                  shape &&
              cast<GraphOpInterface>(op)
                  .getOperandMap(from.getOperandNumber())
                  .isIdentity())
            uses.push_back(&from);
    }
  }

  /// Columns that a group takes: none of its runs in a panel reaches over one.
  int64_t widthOf(int64_t size, const Columns &of) const {
    int64_t width = size / of.groups;
    if (of.groups == 1)
      return width;
    return width < panel ? int64_t(llvm::bit_ceil<uint64_t>(width))
                         : int64_t(llvm::alignTo(width, panel));
  }

  Value pack(OpBuilder &builder, Value value, const Columns &of) {
    unsigned columns = of.operandDim;
    ViewChain groups(builder, value);
    int64_t size = groups.sizes()[columns];
    if (int64_t width = widthOf(size, of); width * of.groups != size) {
      groups.split(columns, size / of.groups);
      groups.pad(columns + 1, width);
      groups.join(columns);
    }
    value = groups.get();
    ViewChain chain(builder, packPanels(builder, value, columns, panel));
    if (!hasQuads(value, columns))
      return chain.get();
    unsigned rank = chain.sizes().size();
    chain.pad(rank - 2, llvm::alignTo(chain.sizes()[rank - 2], quad));
    chain.split(rank - 2, quad);
    auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank + 1));
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
  /// The views that give back [.., N, ..].
  Value unpack(OpBuilder &builder, Value value, const Columns &of,
               RankedTensorType type) {
    unsigned columns = of.operandDim;
    ViewChain chain(builder, value);
    unsigned rank = chain.sizes().size();
    if (rank == type.getRank() + 2) { // quads
      auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
      std::swap(permutation[rank - 2], permutation[rank - 1]);
      chain.transpose(permutation);
      chain.join(rank - 3);
      chain.cut(rank - 3, termsOf(type, columns));
    }
    int64_t size = type.getDimSize(columns), width = widthOf(size, of);
    SmallVector<int64_t> padded(type.getShape());
    padded[columns] = width * of.groups;
    ViewChain groups(builder,
                     unpackPanels(builder, chain.get(), columns, padded));
    if (padded[columns] != size) {
      groups.split(columns, width);
      groups.cut(columns + 1, size / of.groups);
      groups.join(columns);
    }
    return groups.get();
  }
};

} // namespace
} // namespace charonia::graph
