#include "graph/analysis/Weights.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "llvm/Support/MathExtras.h"
#include <vector>

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_PADTERMS
#include "graph/passes/Passes.h.inc"

namespace {

struct PadTerms : impl::PadTermsBase<PadTerms> {
  using PadTermsBase::PadTermsBase;

  void runOnOperation() override {
    WeightsOnly weightsOnly;
    SmallVector<GraphOpInterface> ops;
    getOperation().walk([&](GraphOpInterface op) { ops.push_back(op); });
    for (GraphOpInterface op : ops) {
      layColumnsSideBySide(op, weightsOnly);
      SmallVector<int64_t> runs = op.getTermRuns();
      std::optional<Columns> columns = op.getColumns();
      if (runs.empty() || !columns || hasOneRow(op) ||
          !weightsOnly(op->getOperand(columns->operand)))
        continue;
      std::optional<int64_t> extent = constantOf(
          getShape(op->getOperand(columns->operand))[runs[columns->operand]]);
      if (extent && *extent < longest && !llvm::isPowerOf2_64(*extent))
        widen(op, runs, columns->operand,
              llvm::bit_ceil<uint64_t>(*extent) - *extent);
    }
    eraseDead(getOperation());
  }

private:
  /// Columns that share no terms, as the filters of a convolution of each
  /// channel alone, are read as neighbours: their weights are stored so, and
  /// looked at through a view.
  static void layColumnsSideBySide(GraphOpInterface op,
                                   WeightsOnly &weightsOnly) {
    bool isAlone =
        op.getRole() == OpRole::Contraction &&
        llvm::all_of(op.getResultDimKinds(), [](DimKind kind) {
          return kind == DimKind::Window || kind == DimKind::Parallel;
        });
    std::optional<Columns> columns = op.getScaledColumns();
    if (!isAlone || !columns || !weightsOnly(op->getOperand(columns->operand)))
      return;
    Value filter = op->getOperand(columns->operand);
    auto type = cast<RankedTensorType>(filter.getType());
    SmallVector<int64_t> inside, outside(type.getRank()), shape;
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (d != columns->operandDim)
        inside.push_back(d);
    inside.push_back(columns->operandDim);
    for (auto [i, d] : llvm::enumerate(inside)) {
      outside[d] = i;
      shape.push_back(type.getDimSize(d));
    }
    OpBuilder b(op);
    Value stored = TransposeOp::create(
        b, op.getLoc(), RankedTensorType::get(shape, type.getElementType()),
        filter, inside);
    op->setOperand(columns->operand,
                   TransposeOp::create(b, op.getLoc(), type, stored, outside));
  }

  /// One row is no product of tiles: its few terms are read sooner than
  /// written anew.
  static bool hasOneRow(GraphOpInterface op) {
    return llvm::all_of(
        llvm::zip_equal(op.getResultDimKinds(), getShape(op->getResult(0))),
        [](auto dim) {
          auto [kind, extent] = dim;
          return kind == DimKind::Column || constantOf(extent) == 1;
        });
  }

  /// `more` zeros behind each run of terms. The operand that is written anew
  /// takes the zeros around it along.
  void widen(GraphOpInterface op, ArrayRef<int64_t> runs, unsigned stationary,
             int64_t more) {
    std::optional<ZeroPadding> around = op.getZeroPadding();
    if (around && around->operand == stationary)
      around.reset();
    if (around)
      for (NamedAttribute attribute : around->attributes)
        op->setAttr(attribute.getName(), attribute.getValue());
    for (unsigned i : {stationary, 1 - stationary}) {
      Value value = op->getOperand(i);
      unsigned rank = getShape(value).size();
      SmallVector<int64_t> lows(rank, 0), highs(rank, 0);
      if (around && around->operand == i) {
        lows = around->lows;
        highs = around->highs;
      }
      highs[runs[i]] += more;
      Value narrow = padded(op, value, lows, highs);
      op->setOperand(i, narrow);
      int64_t missing =
          i == stationary ? 0 : missingInRow(narrow, unsigned(runs[i]));
      if (missing == 0)
        continue;
      highs[runs[i] - 1] += missing;
      op->setOperand(i, padded(op, value, lows, highs));
      if (!givesTheSame(op))
        op->setOperand(i, narrow);
    }
  }

  /// What several contractions read alike is padded once.
  Value padded(GraphOpInterface op, Value value, ArrayRef<int64_t> lows,
               ArrayRef<int64_t> highs) {
    for (const Padded &other : all)
      if (other.value == value && other.lows == lows && other.highs == highs)
        return other.wider;
    OpBuilder builder(op);
    builder.setInsertionPointAfterValue(value);
    Exprs shape = getShape(value);
    for (auto [extent, low, high] : llvm::zip_equal(shape, lows, highs))
      extent = simplify(extent + (low + high));
    Value wider = zeroPadded(builder, value.getLoc(), value, shape, lows);
    all.push_back({value, SmallVector<int64_t>(lows),
                   SmallVector<int64_t>(highs), wider});
    return wider;
  }

  /// Elements in front of the innermost dimension that a row has too few to
  /// begin at a multiple of an access of 16 bytes, as the rows before it.
  static int64_t missingInRow(Value value, unsigned dim) {
    constexpr int64_t accessBits = 128;
    Exprs shape = getShape(value);
    Type element = getElementTypeOrSelf(value);
    if (dim == 0 || dim + 1 != shape.size() || !element.isIntOrFloat())
      return 0;
    std::optional<int64_t> width = constantOf(shape[dim - 1]),
                           run = constantOf(shape[dim]);
    int64_t bits = element.getIntOrFloatBitWidth();
    if (!width || !run || accessBits % (*run * bits) != 0)
      return 0;
    return llvm::alignTo(*width, accessBits / (*run * bits)) - *width;
  }

  /// Zeros behind all that its windows reach change nothing.
  static bool givesTheSame(GraphOpInterface op) {
    SmallVector<Type> types;
    return succeeded(cast<InferTypeOpInterface>(op.getOperation())
                         .inferReturnTypes(op->getContext(), std::nullopt,
                                           op->getOperands(),
                                           op->getAttrDictionary(),
                                           op->getPropertiesStorage(),
                                           op->getRegions(), types)) &&
           llvm::equal(types, op->getResultTypes());
  }

  struct Padded {
    Value value;
    SmallVector<int64_t> lows, highs;
    Value wider;
  };
  std::vector<Padded> all;
};

} // namespace
} // namespace charonia::graph
