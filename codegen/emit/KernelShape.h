// What the cost model looks at of a kernel. Private to it.
#ifndef CHARONIA_CODEGEN_EMIT_KERNELSHAPE_H
#define CHARONIA_CODEGEN_EMIT_KERNELSHAPE_H

#include "codegen/emit/Schedule.h"
#include "graph/analysis/Cells.h"

namespace charonia::emit {

/// Instructions that an elementwise tile may take: longer code helps no
/// machine, and register allocation takes time that is quadratic in it.
inline constexpr int64_t tileCode = 4096;

/// What the cost model looks at.
struct KernelShape {
  graph::Exprs root;
  llvm::SmallVector<int64_t> sizes; // at the symbols' opt values
  llvm::SmallVector<int64_t> least; // at their smallest
  llvm::SmallVector<int64_t> most;  // at their largest
  llvm::SmallVector<graph::DimKind> kinds;
  /// What the kernel is built around; Pointwise if nothing else.
  graph::OpRole role = graph::OpRole::Pointwise;
  /// A reduction runs along the memory of its input.
  bool alongRow = false;
  int64_t terms = 1; // of the reduction
  /// A contraction with columns, be that just one, which no dimension of the
  /// kernel's result stands for.
  bool isProduct = false;
  /// A contraction that gives all columns of a row at once (attention), even
  /// where there is just one.
  bool wholeRows = false;
  /// Of such a contraction: terms of what a row is multiplied by first
  /// (features of a query), and by how many (keys; 0: of an open number).
  int64_t rowTerms = 1, rowFactors = 0;
  int64_t elementBits = 32;              // of what is multiplied or reduced
  int64_t rowBytes = 0, columnBytes = 0; // of the operands of a contraction
  /// Instructions for an element of the stationary operand, which the kernel
  /// computes from narrower ones that have columnBytes.
  int64_t columnWork = 0;
  /// They are floats of 32 bits and the rows lie in memory: many rows may share
  /// columns that are computed once.
  bool sharesColumns = false;
  /// Of all results, and of what is read for each of their elements beside such
  /// operands.
  int64_t resultBytes = 0;
  /// Neighbouring columns of a contraction that share their rows; 0: all.
  int64_t columnRun = 0;
  /// Every input is read in the order of the result.
  bool linear = true;
  /// So many of the last dimensions are one run of memory in every input that
  /// depends on them, and in the results.
  unsigned run = 0;
  /// Columns of the stationary operand of a contraction are neighbours in
  /// memory.
  bool columnsInMemory = true;
  /// So many terms of a contraction in turn are neighbours in the memory of
  /// both operands.
  int64_t termRun = 0;
  /// The same where there is a single column.
  int64_t vectorRun = 0;
  /// Of each dimension of a contraction's rows: with the next one it is one run
  /// of rows, in the result and in the memory of the operand.
  llvm::SmallVector<bool> rowsJoin;
  /// Rows of a contraction that are neighbours in the result are so in memory.
  bool rowsInMemory = false;
  /// Instructions for a register of results.
  int64_t code = 0;
  /// Dimensions, before the last, along which a large input is dense that is
  /// not along the last: the last of them is, and those in front continue it.
  llvm::SmallVector<unsigned> crossing;
  /// Dimensions that with the next one of more than one element are one run, in
  /// steps of any length, in every input.
  llvm::SmallVector<bool> joins;
  /// Where tiles have whole cells, as a result adds these up.
  llvm::SmallVector<graph::CellSide> cells;
  /// Of each dimension a step at whose multiples begin all parts of what is
  /// joined from many of them; 0: nothing is.
  llvm::SmallVector<int64_t> partStep;
  /// Of each dimension after how many elements those of an image begin anew
  /// that is enlarged by a whole number along it: tiles of so many are alike.
  llvm::SmallVector<int64_t> period;
  /// Later rows take longer.
  bool growsByRow = false;
  /// What each tile of rows passes over is stored, in runs of its last
  /// dimension of whole 16 bytes, as the copy engine brings it.
  bool streamsRuns = false;
  /// What has an order takes something along from one element to the next, so
  /// that a tile has to fit in registers.
  bool carries = false;
  /// All that is known of a row and of others is reduced in f32.
  bool rowsInF32 = false;
  /// Elements of a row are combined one by one (combinesOneByOne).
  bool oneByOne = false;
  /// For each dimension: bytes that indices have for an element, the same for
  /// all neighbours along it. Of what is not only computed element by element,
  /// none.
  llvm::SmallVector<int64_t> repeatedIndices;
  /// Dimensions along which sums differ that each instance computes again;
  /// empty: there are none.
  llvm::SmallVector<bool> again;
  /// What an instance reads for those sums, in bytes.
  int64_t againBytes = 0;
  /// Dimensions along which what a window slides over is dense in memory.
  llvm::SmallVector<bool> windowDense;
  /// Of something as large as the result the ends of the last dimension are
  /// read otherwise than what lies between them, which is a run: it is padded.
  bool otherEnds = false;
  /// Elements of a row of the window that are neighbours in memory, where those
  /// of the next window come behind them; 0: windows overlap.
  int64_t windowRun = 0;
};

/// From so many parts on, a tile of a CPU that lies in one of them branches to
/// it; fewer are all loaded under a mask.
inline constexpr unsigned manyParts = 4;

KernelShape inspect(graph::KernelOp kernel, const EmitTarget &target);

} // namespace charonia::emit

#endif
