// How what the cost model looks at is read off a kernel. Private to inspect().
#ifndef CHARONIA_CODEGEN_EMIT_READKERNEL_H
#define CHARONIA_CODEGEN_EMIT_READKERNEL_H

#include "codegen/emit/KernelShape.h"
#include <map>

namespace charonia::emit {

/// A kernel is built around the operator with the highest number; 0: around
/// none.
unsigned rankOf(graph::OpRole role);
/// One element at least.
int64_t sizeAt(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> symbols);
/// Bytes of a value at the sizes to optimize for.
int64_t bytesOf(mlir::Value value, llvm::ArrayRef<int64_t> symbols);

// --- KernelAnchor.cpp

/// An operator that the kernel may be built around. `map` leads from the
/// kernel's result to its own.
void readAnchor(KernelShape &shape, graph::GraphOpInterface op,
                mlir::AffineMap map, llvm::ArrayRef<int64_t> symbols);

// --- KernelRuns.cpp

/// Elements that are read along other dimensions than the last.
using CrossingReads = std::map<llvm::SmallVector<unsigned>, int64_t>;

/// Notes what is read across the memory of an input, by the elements of which
/// it is most so far. `map` leads from the kernel's result to it.
void readInput(KernelShape &shape, CrossingReads &reads, mlir::Value input,
               mlir::AffineMap map, llvm::ArrayRef<int64_t> symbols);

/// Trailing dimensions of the result of `op` that are those of its operand
/// `i`, or, with `isFree`, on which the operand does not depend at all.
unsigned passedDims(graph::GraphOpInterface op, unsigned i, bool &isFree);

/// Dimensions at the end of the results that are one run of memory in all that
/// the kernel touches.
unsigned runOf(graph::KernelOp kernel, mlir::Value root);

/// Whether an operator without a map reads the ends of a row otherwise than
/// what lies between: neither do indices choose, nor are operands joined, which
/// has tiles of its own (tileOfPart).
bool hasOtherEnds(graph::GraphOpInterface op);

// --- KernelPeriods.cpp

/// Notes where the parts of a value end that is joined from many. `map` leads
/// from the kernel's result to it.
void readParts(KernelShape &shape, mlir::Value value, mlir::AffineMap map);
/// Notes by how much a value is enlarged. `map` leads from the kernel's result
/// to it.
void readPeriods(KernelShape &shape, mlir::Value value, mlir::AffineMap map);
/// Notes after how many elements along a dimension those begin anew that are
/// laid side by side of several places in the memory of `value`, or of several
/// values that it joins. `map` leads from the kernel's result to it.
void readInterleaved(KernelShape &shape, mlir::Value value,
                     mlir::AffineMap map);
/// For each dimension of the root: bytes that index operands have for an
/// element, the same for all neighbours along it.
llvm::SmallVector<int64_t> repeatedIndices(mlir::Value root);

} // namespace charonia::emit

#endif
