// Sizes that programs compute from other sizes.
//
// What no affine expression says (the smaller of two sizes, a size scaled in
// floats) is a symbol of its own, that no input's shape holds. Attribute
// `graph.definitions` of the module says how it is computed when shapes are
// bound; for everything else it is a symbol like others.
#ifndef CHARONIA_GRAPH_IR_DEFINITIONS_H
#define CHARONIA_GRAPH_IR_DEFINITIONS_H

#include "graph/ir/Shape.h"

namespace charonia::graph {

/// A step of a postfix program. Operators of integers and of floats have
/// different names; floats are held in double precision.
struct SizeStep {
  enum class Op {
    Size,   ///< pushes `size`
    Number, ///< pushes `number`, a float
    Sub,
    TruncDiv,
    Mod, ///< floor semantics, of divisors from 1 on
    Max,
    Min,
    ToFloat,
    ToSingle,
    Truncate, ///< to an integer
    FloatAdd,
    FloatSub,
    FloatMul,
    FloatDiv,
    FloatMax,
    FloatMin,
    Floor,
    Ceil,
    Round, ///< to the even one of two that are as near
    Sqrt,
  };
  Op op = Op::Size;
  mlir::AffineExpr size;
  double number = 0;
  bool operator==(const SizeStep &) const = default;
};
using SizeProgram = llvm::SmallVector<SizeStep>;

struct Definition {
  unsigned symbol;
  /// Over the symbols before it.
  SizeProgram program;
};

llvm::SmallVector<Definition> getDefinitions(mlir::ModuleOp module);
/// The symbols have to be set before.
void setDefinitions(mlir::ModuleOp module, llvm::ArrayRef<Definition> list);
/// Whether `attribute` can be read by getDefinitions.
llvm::LogicalResult verifyDefinitions(mlir::Operation *op,
                                      mlir::Attribute attribute);

/// Numbers that a program may give; all of its steps lie within 2^52.
struct NumberRange {
  double low, high;
};
/// The range of a program's result; none where it cannot be told.
std::optional<NumberRange>
rangeOf(llvm::ArrayRef<SizeStep> program,
        llvm::function_ref<Interval(mlir::AffineExpr)> bounds);
/// The program's result for these symbols; none where it has none.
std::optional<int64_t> evaluate(llvm::ArrayRef<SizeStep> program,
                                llvm::ArrayRef<int64_t> symbols);

} // namespace charonia::graph

#endif
