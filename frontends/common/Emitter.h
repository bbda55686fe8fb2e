// Checked building of graph operators, shared by all importers.
#ifndef CHARONIA_FRONTENDS_COMMON_EMITTER_H
#define CHARONIA_FRONTENDS_COMMON_EMITTER_H

#include "frontends/common/SizeEvaluator.h"
#include "frontends/common/Symbols.h"
#include "graph/ir/Dialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include <functional>

namespace charonia::frontend {

/// What a failed step gives back: it reads as a null value, as failure, or as
/// no result. The reason is in Emitter::getProblem.
struct Failed {
  operator mlir::Value() const { return {}; }
  operator mlir::AffineExpr() const { return {}; }
  operator llvm::LogicalResult() const { return llvm::failure(); }
  template <typename T> operator llvm::FailureOr<T>() const {
    return llvm::failure();
  }
};

/// Why a node cannot be imported.
struct Problem {
  std::string what, remedy;
};

/// Steps that a recurrence or a loop is written out for. Each becomes launches
/// of its own; so many compile in half a minute.
constexpr int64_t maxSteps = 8192;

using Values = llvm::SmallVector<mlir::Value>;
using graph::Exprs;

/// Builds operators of the graph dialect at one insertion point. A model is
/// hostile input, so each operator is checked as it is made: the first problem
/// is kept, and everything built on a null value is null, so that a chain of
/// calls needs one test at its end.
class Emitter {
public:
  Emitter(mlir::OpBuilder builder, Symbols &symbols);

  /// Starts a node: forgets the problem and puts operators at `location`, the
  /// node's name around its operator's.
  void begin(mlir::Location location);
  /// Whether later assumptions are made for a branch that may not be taken:
  /// they say so. Gives back what it was before.
  bool setInBranch(bool value) { return symbols.setInBranch(value); }
  bool isInBranch() const { return symbols.isInBranch(); }
  /// Records a problem, unless there is one already.
  Failed fail(const llvm::Twine &what, const llvm::Twine &remedy = "");
  const std::optional<Problem> &getProblem() const { return problem; }
  bool failed() const { return problem.has_value(); }
  /// What the user should know of the node, once.
  void note(std::string text) {
    if (!noted)
      noted = std::move(text);
  }
  std::optional<std::string> takeNote() { return std::exchange(noted, {}); }
  /// A number that no other operator of the model has.
  uint64_t nextStream() { return streams++; }
  /// Keeps the type of a value that the node uses up to date with what symbols
  /// are replaced by, until the next node begins. Operands and results of
  /// operators are followed.
  mlir::Value follow(mlir::Value value);
  /// The node by which a value that follows from sizes and constants alone is
  /// not known, and why: "Div 'n7' divides by k - 10, which may be 0 or less (k
  /// in 1..64)"; empty where it depends on data.
  std::string findUnknown(mlir::Value value);
  /// Counts `nodes` more of what is written out: functions, branches, steps of
  /// loops and recurrences. Fails where it is too much for a whole model.
  llvm::LogicalResult writeOut(int64_t nodes);
  /// Fails where so many could not be written out any more.
  llvm::LogicalResult checkWriteOut(int64_t nodes);

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::Location getLocation() const { return location; }
  /// Whether operators are those of a repeated step (see RepeatedSteps).
  bool isInSteps() const { return inSteps; }
  void setInSteps(bool is) { inSteps = is; }
  mlir::MLIRContext *getContext() { return builder.getContext(); }
  Symbols &getSymbols() { return symbols; }

  // Any operator. Without a type the operator infers it.
  mlir::Value create(llvm::StringRef op, mlir::ValueRange operands,
                     llvm::ArrayRef<mlir::NamedAttribute> attributes = {},
                     mlir::RankedTensorType type = {});
  template <typename Op>
  mlir::Value op(mlir::ValueRange operands,
                 llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) {
    return create(Op::getOperationName(), operands, attributes);
  }
  template <typename Op>
  mlir::Value opTo(mlir::RankedTensorType type, mlir::ValueRange operands,
                   llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) {
    return type ? create(Op::getOperationName(), operands, attributes, type)
                : mlir::Value();
  }
  mlir::NamedAttribute attr(llvm::StringRef name, int64_t value);
  mlir::NamedAttribute attr(llvm::StringRef name, double value);
  mlir::NamedAttribute attr(llvm::StringRef name, bool value);
  mlir::NamedAttribute attr(llvm::StringRef name,
                            llvm::ArrayRef<int64_t> value);
  mlir::NamedAttribute attr(llvm::StringRef name, mlir::Attribute value);
  mlir::NamedAttribute unit(llvm::StringRef name) {
    return attr(name, builder.getUnitAttr());
  }
  /// attr(name, values) for a map without dims and one result a value.
  mlir::NamedAttribute map(llvm::StringRef name,
                           llvm::ArrayRef<mlir::AffineExpr> values);

  // Types and shapes.
  /// The tensor type, unless a size is negative or the tensor is absurdly
  /// large.
  mlir::RankedTensorType type(llvm::ArrayRef<mlir::AffineExpr> dims,
                              mlir::Type element);
  mlir::AffineExpr number(int64_t value);
  Exprs numbers(llvm::ArrayRef<int64_t> values);
  std::string describe(mlir::Type type) {
    return graph::typeToString(type, symbols.list());
  }
  std::string describe(llvm::ArrayRef<mlir::AffineExpr> dims);

  // Sizes that have to fit, as is proved or assumed (see Symbols).
  /// Whether `a` = `b`; `why` as in "multiplies over them", of the node.
  bool agree(mlir::AffineExpr a, mlir::AffineExpr b, llvm::StringRef why);
  /// The same of all sizes that `op` takes for equal, for the node that it is
  /// of.
  void assumeAgain(mlir::Operation *op);
  /// graph::broadcastShapes.
  std::optional<Exprs> join(llvm::ArrayRef<mlir::AffineExpr> a,
                            llvm::ArrayRef<mlir::AffineExpr> b);

  // Constants. A null element type gives a null value.
  /// Rank 0, converted to `element` as a cast would.
  mlir::Value scalar(double value, mlir::Type element);
  mlir::Value scalar(int64_t value, mlir::Type element);
  mlir::Value constant(mlir::ElementsAttr value);
  /// Sizes as an integer tensor: a constant where all are known.
  mlir::Value sizes(llvm::ArrayRef<mlir::AffineExpr> values,
                    llvm::ArrayRef<int64_t> shape, mlir::Type element);
  /// A size as a scalar of any element type.
  mlir::Value size(mlir::AffineExpr value, mlir::Type element);
  /// The constant that `value` is or folds to; null where it is none.
  mlir::DenseElementsAttr constantOf(mlir::Value value);

  // Elementwise helpers; each broadcasts.
  mlir::Value add(mlir::Value a, mlir::Value b) {
    return op<graph::AddOp>({a, b});
  }
  mlir::Value sub(mlir::Value a, mlir::Value b) {
    return op<graph::SubOp>({a, b});
  }
  mlir::Value mul(mlir::Value a, mlir::Value b) {
    return op<graph::MulOp>({a, b});
  }
  mlir::Value div(mlir::Value a, mlir::Value b) {
    return op<graph::DivOp>({a, b});
  }
  mlir::Value max(mlir::Value a, mlir::Value b) {
    return op<graph::MaxOp>({a, b});
  }
  mlir::Value min(mlir::Value a, mlir::Value b) {
    return op<graph::MinOp>({a, b});
  }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b) {
    return op<graph::SelectOp>({condition, a, b});
  }
  mlir::Value compare(graph::Predicate predicate, mlir::Value a, mlir::Value b);
  mlir::Value cast(mlir::Value value, mlir::Type element);
  /// Half types as float, for sums; other types as they are.
  mlir::Value widen(mlir::Value value);

  // Views and reductions.
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> dims);
  mlir::Value broadcast(mlir::Value value,
                        llvm::ArrayRef<mlir::AffineExpr> dims);
  mlir::Value transpose(mlir::Value value, llvm::ArrayRef<int64_t> permutation);
  mlir::Value slice(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> starts,
                    llvm::ArrayRef<int64_t> steps,
                    llvm::ArrayRef<mlir::AffineExpr> dims);
  mlir::Value concat(mlir::ValueRange values, int64_t axis);
  mlir::Value pad(graph::PadMode mode, mlir::Value value, mlir::Value fill,
                  llvm::ArrayRef<mlir::AffineExpr> lows,
                  llvm::ArrayRef<mlir::AffineExpr> dims);
  mlir::Value iota(llvm::ArrayRef<mlir::AffineExpr> dims, int64_t axis,
                   mlir::Type element);
  mlir::Value reduce(graph::ReduceKind kind, mlir::Value value,
                     llvm::ArrayRef<int64_t> axes, bool keepdims);
  /// Sum divided by the count, in float for half types.
  mlir::Value mean(mlir::Value value, llvm::ArrayRef<int64_t> axes,
                   bool keepdims);
  /// `value` of rank 1 as [n, 1, ...] with `trailing` ones.
  mlir::Value asChannels(mlir::Value value, unsigned trailing);

  // What is known of small tensors.
  /// Elements as sizes, evaluated symbolically or folded; floats too where they
  /// are whole numbers.
  graph::SymbolicTensor evaluate(mlir::Value value);
  /// The same of what has to be known: an element that no expression says
  /// becomes a size that is defined by a program (Symbols::define).
  graph::SymbolicTensor evaluateSizes(mlir::Value value);
  /// Elements of a float tensor that follow from sizes, as programs; empty
  /// where any is not known.
  SizeElements evaluateNumbers(mlir::Value value);
  /// Assumes of integers of 32 bits that `value` is computed from that they do
  /// not wrap, where that makes a difference: sizes are computed as if none
  /// did. So of the value, unless it is `mayWrap`. False, and a failure, where
  /// they may.
  bool assumeNoneWraps(mlir::Value value, bool mayWrap = false);
  /// That `value`, which was just made, is what `copy` is, of which more is
  /// known.
  void learnEqual(mlir::Value value, mlir::Value copy) {
    evaluator.learnEqual(value, copy);
    sizeEvaluator.learnEqual(value, copy);
  }

private:
  class Rules;
  /// Resolves what is followed. Whether symbols were replaced since the last
  /// time.
  bool resolveFollowed();
  mlir::Value tryCreate(mlir::OperationName name, mlir::ValueRange operands,
                        mlir::DictionaryAttr attributes,
                        mlir::RankedTensorType type);
  bool isSane(mlir::RankedTensorType type);
  mlir::Attribute fold(mlir::Value value, int depth);
  mlir::Attribute foldSizes(mlir::Value value);

  mlir::OpBuilder builder;
  Symbols &symbols;
  mlir::Location location;
  graph::SymbolicEvaluator evaluator;
  SizeEvaluator sizeEvaluator;
  llvm::DenseMap<mlir::Value, mlir::Attribute> folded;
  std::optional<Problem> problem;
  bool inSteps = false;
  std::optional<std::string> noted;
  uint64_t streams = 0;
  Values followed;
  int64_t writtenOut = 0, resolvedUntil = 0;
};

// These give null, false and 0 for a null value, as chains of calls may have.
inline mlir::Type elementOf(mlir::Value value) {
  return value ? mlir::getElementTypeOrSelf(value.getType()) : mlir::Type();
}
inline bool isFloat(mlir::Value value) {
  return llvm::isa_and_present<mlir::FloatType>(elementOf(value));
}
inline int64_t rankOf(mlir::Value value) {
  return value ? llvm::cast<mlir::RankedTensorType>(value.getType()).getRank()
               : 0;
}

/// `total` divided by the product of `parts`, where each factor of `parts` is
/// found in `total`: [s0, 12, 64] by [s0, 64] is 12. A remaining constant
/// divisor of a symbolic size stays as a floordiv, and one among `parts` counts
/// as exact: whether the product is `total` is for the operator to check. Null
/// where it cannot be told.
mlir::AffineExpr divideSizes(llvm::ArrayRef<mlir::AffineExpr> total,
                             llvm::ArrayRef<mlir::AffineExpr> parts,
                             mlir::MLIRContext *context);
/// Product in 64 bits, or null where it overflows.
mlir::AffineExpr productOf(llvm::ArrayRef<mlir::AffineExpr> sizes,
                           mlir::MLIRContext *context);

} // namespace charonia::frontend

#endif
