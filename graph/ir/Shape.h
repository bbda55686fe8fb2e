// Symbolic shapes: dimensions as affine expressions over a module's symbols.
//
// A tensor type with dynamic dimensions carries an AffineMap `()[s0, ...] ->
// (d0, ...)` as its encoding; symbol i of every such map is symbol i of the
// module's `graph.symbols`. Maps hold just the symbols up to the highest that
// they use, and simplified expressions, so equal shapes are equal types.
// Example: tensor<?x768xf16, affine_map<()[s0] -> (s0, 768)>>.
#ifndef CHARONIA_GRAPH_IR_SHAPE_H
#define CHARONIA_GRAPH_IR_SHAPE_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include <optional>

namespace charonia::graph {

using Exprs = llvm::SmallVector<mlir::AffineExpr>;

/// A shape symbol: a size known when an input is bound. Bounds are inclusive;
/// every value is a multiple of `divisor`; `opt` is the size to optimize for.
struct Symbol {
  std::string name;
  int64_t min = 1, opt = 1, max = 1, divisor = 1;
};

/// The module's symbols, in order (attribute `graph.symbols`).
llvm::SmallVector<Symbol> getSymbols(mlir::ModuleOp module);
void setSymbols(mlir::ModuleOp module, llvm::ArrayRef<Symbol> symbols);

/// Whether `type` is a ranked tensor whose dynamic dimensions are all described
/// by its encoding. Every tensor of the dialect is.
bool hasSymbolicShape(mlir::Type type);
/// The dimensions of a ranked tensor (type) as expressions.
Exprs getShape(mlir::Type type);
inline Exprs getShape(mlir::Value value) { return getShape(value.getType()); }

/// The tensor type of these dimensions; the inverse of getShape.
mlir::RankedTensorType makeType(llvm::ArrayRef<mlir::AffineExpr> dims,
                                mlir::Type element);
/// `type` with another element type.
mlir::RankedTensorType withElement(mlir::Type type, mlir::Type element);

/// Inclusive bounds; saturated at the limits of int64_t, which mean "none".
struct Interval {
  int64_t low, high;
};

/// What is known of the variables of an expression. A variable beyond the end
/// of a list, or with a null entry, is only known to be an integer.
struct Facts {
  llvm::SmallVector<Interval> dims, symbols;
  /// A dim or symbol is less than this expression over symbols.
  llvm::SmallVector<mlir::AffineExpr> dimLimits, symbolLimits;
};

/// `expr` in canonical form: sums of products sorted, divisions folded. Symbols
/// are sizes, so at least 1; of dims nothing is known.
mlir::AffineExpr simplify(mlir::AffineExpr expr);
/// The same for every result of a map, knowing that dim i lies in
/// [0, extents[i]) (an entry may be null: nothing known): divisions and
/// remainders by what a term cannot reach vanish, x floordiv c * c + x mod c
/// becomes x. `symbols` bounds the symbols; one without an entry is at least 1.
/// Divisors are taken to be positive.
mlir::AffineMap simplify(mlir::AffineMap map,
                         llvm::ArrayRef<mlir::AffineExpr> extents = {},
                         llvm::ArrayRef<Interval> symbols = {});
/// The same knowing `facts` and nothing else.
mlir::AffineExpr simplify(mlir::AffineExpr expr, const Facts &facts);
/// Whether `expr` >= 0 can be proved under the assumptions of simplify.
bool isNonNegative(mlir::AffineExpr expr,
                   llvm::ArrayRef<mlir::AffineExpr> extents = {},
                   llvm::ArrayRef<Interval> symbols = {});
/// Whether 0 <= expr < limit can be proved.
bool isWithin(mlir::AffineExpr expr, mlir::AffineExpr limit,
              const Facts &facts);

/// Product of the dimensions.
mlir::AffineExpr numElements(llvm::ArrayRef<mlir::AffineExpr> dims,
                             mlir::MLIRContext *context);
/// The constant that `expr` is, if it is one.
std::optional<int64_t> constantOf(mlir::AffineExpr expr);

/// Value of `expr` for these symbol values; nothing on division by zero or
/// overflow.
std::optional<int64_t> evaluate(mlir::AffineExpr expr,
                                llvm::ArrayRef<int64_t> symbols);
/// Value of `expr` for these values of dims and symbols.
std::optional<int64_t> evaluate(mlir::AffineExpr expr,
                                llvm::ArrayRef<int64_t> dims,
                                llvm::ArrayRef<int64_t> symbols);

/// Bounds of `expr` where dims and symbols lie in these intervals; a dim
/// without an entry is any integer, a symbol at least 1.
Interval boundsOf(mlir::AffineExpr expr, llvm::ArrayRef<Interval> dims,
                  llvm::ArrayRef<Interval> symbols);

/// NumPy broadcast of two dimension lists; nothing where they do not fit.
/// A symbolic dimension against another expression that is not 1 is taken to be
/// equal to it only if the expressions are equal.
std::optional<Exprs> broadcastShapes(llvm::ArrayRef<mlir::AffineExpr> a,
                                     llvm::ArrayRef<mlir::AffineExpr> b);
/// Result type of an elementwise operator over `operands`, with the element
/// type of operand `elementFrom`.
llvm::LogicalResult inferBroadcast(std::optional<mlir::Location> location,
                                   mlir::ValueRange operands,
                                   unsigned elementFrom,
                                   llvm::SmallVectorImpl<mlir::Type> &types,
                                   mlir::Type element = {});
/// Map from coordinates of `result` to those of `operand`, which broadcasts to
/// it.
mlir::AffineMap broadcastMap(mlir::Value operand, mlir::Value result);
/// Map from coordinates of shape `to` to coordinates of shape `from`, the same
/// elements in row-major order. Runs of dimensions with equal products map
/// among themselves, so that a head split is s floordiv and mod of one
/// dimension only.
mlir::AffineMap reshapeMap(llvm::ArrayRef<mlir::AffineExpr> from,
                           llvm::ArrayRef<mlir::AffineExpr> to,
                           mlir::MLIRContext *context);

/// Whether two types agree in element type, rank and every dimension that can
/// be told: what verifiers accept.
bool areCompatible(mlir::Type a, mlir::Type b);
/// Whether two dimensions may have the same value: not if their difference is a
/// constant other than 0.
bool mayBeEqual(mlir::AffineExpr a, mlir::AffineExpr b);

/// "[batch, 3, 224, 224]" with the module's symbol names, for messages.
std::string shapeToString(mlir::Type type, llvm::ArrayRef<Symbol> symbols = {});
/// "float16[batch, 3, 224, 224]".
std::string typeToString(mlir::Type type, llvm::ArrayRef<Symbol> symbols = {});

} // namespace charonia::graph

#endif
