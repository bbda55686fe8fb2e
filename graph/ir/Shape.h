// Symbolic shapes: dimensions as affine expressions over a module's symbols.
//
// A tensor type with dynamic dimensions carries an AffineMap `()[s0, ...] ->
// (d0, ...)` as its encoding; symbol i of every such map is symbol i of the
// module's `graph.symbols`. Maps hold just the symbols up to the highest that
// they use, and simplified expressions, so equal shapes are equal types.
// Example: tensor<?x768xf16, affine_map<()[s0] -> (s0, 768)>>.
#ifndef CHARONIA_GRAPH_IR_SHAPE_H
#define CHARONIA_GRAPH_IR_SHAPE_H

#include "graph/ir/Algebra.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include <optional>

namespace charonia::graph {

/// A shape symbol: a size known when an input is bound. Bounds are inclusive;
/// every value is a multiple of `divisor`; `opt` is the size to optimize for.
struct Symbol {
  std::string name;
  int64_t min = 1, opt = 1, max = 1, divisor = 1;
};

/// The module's symbols, in order (attribute `graph.symbols`).
llvm::SmallVector<Symbol> getSymbols(mlir::ModuleOp module);
void setSymbols(mlir::ModuleOp module, llvm::ArrayRef<Symbol> symbols);
/// The sizes to optimize for, one for each symbol, in order.
llvm::SmallVector<int64_t> getOptimum(llvm::ArrayRef<Symbol> symbols);
/// The same of the module that `op` is in.
llvm::SmallVector<int64_t> getOptimum(mlir::Operation *op);
/// What the ranges and divisors of symbols say by themselves.
Facts getDeclaredFacts(llvm::ArrayRef<Symbol> symbols);
/// The same of the module's symbols, with the divisors that follow from its
/// constraints (attribute `graph.constraints`).
Facts getFacts(mlir::ModuleOp module);

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

/// Product of the dimensions.
mlir::AffineExpr numElements(llvm::ArrayRef<mlir::AffineExpr> dims,
                             mlir::MLIRContext *context);
/// NumPy broadcast of two dimension lists; nothing where they do not fit.
/// A symbolic dimension against another expression that is not 1 is taken to be
/// equal to it where sizesAgree (Constraints.h).
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
/// Whether two dimensions may have the same value: not if their difference is
/// seen not to be 0. No proof: operators ask sizesAgree (Constraints.h).
bool mayBeEqual(mlir::AffineExpr a, mlir::AffineExpr b);

/// "[batch, 3, 224, 224]" with the module's symbol names, for messages.
std::string shapeToString(mlir::Type type, llvm::ArrayRef<Symbol> symbols = {});
/// "float16[batch, 3, 224, 224]".
/// A message of a verifier or a pass, which do not know the symbols' names,
/// with these instead of s0, s1, ...
std::string nameSymbols(llvm::StringRef message,
                        llvm::ArrayRef<Symbol> symbols);
std::string typeToString(mlir::Type type, llvm::ArrayRef<Symbol> symbols = {});

} // namespace charonia::graph

#endif
