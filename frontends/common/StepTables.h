// What follows from constants, sizes and the step's number alone in a step that
// is repeated: computed beforehand, without the rest of the steps.
#ifndef CHARONIA_FRONTENDS_COMMON_STEPTABLES_H
#define CHARONIA_FRONTENDS_COMMON_STEPTABLES_H

#include "frontends/common/Emitter.h"
#include "mlir/IR/IRMapping.h"

namespace charonia::frontend {

/// What some values of one step are in each of them.
class StepTables {
public:
  /// `carried` are the states that a step finds, null where that is none, and
  /// `next` what it gives. Those that `follow` are known in front of each step,
  /// and so are `outputs`, whose null values are left out. `symbol` is the
  /// counter.
  StepTables(llvm::ArrayRef<mlir::Value> firsts,
             llvm::ArrayRef<mlir::Value> carried,
             llvm::ArrayRef<mlir::Value> next, const llvm::BitVector &follow,
             llvm::ArrayRef<mlir::Value> outputs, mlir::AffineExpr symbol,
             int64_t count, Emitter &e);

  /// Computes the values of all steps, if that is not too much.
  void tabulate();
  /// By state and by output: constants of a first dimension more, the states'
  /// in front of each step and behind the last one. Null where not all of it is
  /// known now.
  std::vector<mlir::DenseElementsAttr> states, outputs;

  /// Copies what the values are computed of for each step, as sizes are told
  /// from that, and gives what they are in the end: of states the last value,
  /// outputs stacked. All null where it is too much.
  std::pair<Values, Values> copySteps();

private:
  /// Elements of a value, by step.
  using Rows = std::vector<llvm::SmallVector<mlir::Attribute>>;

  /// An integer that is told of the step's number and sizes.
  struct Number {
    mlir::Value value;
    Exprs elements;
  };

  void collect();
  bool dependsOnStep(mlir::Value value);
  std::optional<Exprs> numberOf(mlir::Value value);
  Exprs elementsIn(const Number &number, int64_t step);
  mlir::Operation *copy(mlir::Operation *op, int64_t step,
                        mlir::IRMapping &map);
  mlir::Attribute fold(mlir::Operation *op, int64_t step);
  mlir::Attribute constantOf(mlir::Value value);
  void takeStep(int64_t step);
  void add(Rows &rows, size_t i, mlir::Attribute constant);
  std::vector<mlir::DenseElementsAttr>
  stack(const Rows &rows, llvm::ArrayRef<mlir::Value> values, int64_t count);

  Values firsts, carried, next, given;
  mlir::AffineExpr symbol;
  int64_t count;
  Emitter &e;
  /// Operators of a step, each behind those that it takes, and the elements of
  /// their results.
  llvm::SmallVector<mlir::Operation *> operators;
  std::vector<Number> numbers;
  int64_t elements = 0;
  /// What values are in the step that is looked at.
  llvm::DenseMap<mlir::Value, mlir::Attribute> now;
};

/// This step's part of a table, of the first dimension less; null where there
/// is none.
mlir::Value rowOf(mlir::DenseElementsAttr table, mlir::AffineExpr step,
                  Emitter &e);

} // namespace charonia::frontend

#endif
