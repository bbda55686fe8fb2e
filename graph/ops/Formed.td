// Operators that no model has and no importer makes: passes form them.
#ifndef CHARONIA_GRAPH_FORMED
#define CHARONIA_GRAPH_FORMED

include "graph/ops/Bases.td"

def Graph_SumRunsOp : Graph_ReductionBase<"sum_runs"> {
  let summary = "Sums of `run` neighbours along the last dimension, without overlap, in f32";
  let description = [{
    The last dimension is a multiple of `run`. With `squared_distances` what is added up are the squares of
    each element's distance from the mean of its own run, not the elements.
  }];
  let arguments = (ins Graph_FloatTensor:$input, I64Attr:$run, UnitAttr:$squared_distances);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = commonDecl # [{
    ::charonia::graph::OpRole getRole() { return ::charonia::graph::OpRole::Window; }
    int64_t getFlopsPerTerm() { return getSquaredDistances() ? 4 : 1; }
    ::llvm::SmallVector<::charonia::graph::DimKind> getResultDimKinds();
    ::llvm::SmallVector<::charonia::graph::WindowSide> getWindow();
    ::llvm::SmallVector<int64_t> getCells();
  }];
}

def Graph_NormalizeRowsOp : Graph_InferredOp<"normalize_rows", []> {
  let summary = "Rows of [..., K], normalized by sums that are there";
  let description = [{
    (input - mean) / sqrt(variance + epsilon), or without `terms` input / sqrt(mean(input^2) + epsilon);
    `squares` and `terms` as of `normalized_matmul`. Element by element: each adds up its row's parts.
  }];
  let arguments = (ins Graph_FloatTensor:$input, Graph_FloatTensor:$squares,
    Optional<Graph_FloatTensor>:$terms, F64Attr:$epsilon);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $squares (`terms` $terms^)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    ::charonia::graph::OpRole getRole() { return ::charonia::graph::OpRole::Pointwise; }
    /// Of a row's parts the first, for all of them.
    ::mlir::AffineMap getOperandMap(unsigned operand);
    int64_t getCodeSize() { return 4; }
    bool isOperandTypeFree(unsigned operand) { return operand >= 1; }
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor>) { return {}; }
  }];
}

class Graph_OfCells<string mnemonic> : Graph_InferredOp<mnemonic, []> {
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  code commonDecl = [{
    ::charonia::graph::OpRole getRole() { return ::charonia::graph::OpRole::Pointwise; }
    ::mlir::AffineMap getOperandMap(unsigned operand);
    int64_t getCodeSize() { return 0; }
    ::llvm::SmallVector<int64_t> getCells();
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor>) { return {}; }
  }];
}

def Graph_CellPartOp : Graph_OfCells<"cell_part"> {
  let summary = "Of cells of `parts` runs of `run` neighbours along the last dimension, run `part` of each";
  let description = [{
    [..., N] gives [..., N / parts], N a multiple of parts * run. Values that lie so, their runs in turn, are
    in one tile of what computes them all.
  }];
  let arguments = (ins Graph_Tensor:$input, I64Attr:$run, I64Attr:$parts, I64Attr:$part);
  let extraClassDeclaration = commonDecl;
}

def Graph_SwapHalvesOp : Graph_OfCells<"swap_halves"> {
  let summary = "Cells of 2 * `run` neighbours along the last dimension with their halves swapped";
  let description = [{ The last dimension is a multiple of 2 * run. }];
  let arguments = (ins Graph_Tensor:$input, I64Attr:$run);
  let extraClassDeclaration = commonDecl;
}

def Graph_NormalizeCellsOp : Graph_OfCells<"normalize_cells"> {
  let summary = "Cells of `run` neighbours along the last dimension, each normalized";
  let description = [{
    (x - mean) / sqrt(variance + epsilon) of each cell's own mean and variance, or with `rms`
    x / sqrt(mean(x^2) + epsilon). The last dimension is a multiple of `run`.
  }];
  let arguments = (ins Graph_FloatTensor:$input, I64Attr:$run, F64Attr:$epsilon, UnitAttr:$rms);
  let extraClassDeclaration = commonDecl;
}

def Graph_NormalizedMatmulOp : Graph_Contraction<"normalized_matmul", [AttrSizedOperandSegments]> {
  let summary = "The rows of [..., M, K], normalized, x [K, N]";
  let description = [{
    (lhs rhs - mean * columnSums) / sqrt(variance + epsilon): what normalizing each row of `lhs` and
    then multiplying gives. `terms` [..., M, P] are sums of parts of each row, of as many elements each,
    `squares` [..., M, P] those of the squared distances of its elements from the mean of their own part,
    `columnSums` [N] the sums of the columns of `rhs`, all in f32. Without `terms` and `columnSums` rows
    are divided by sqrt(mean(lhs^2) + epsilon), and `squares` are sums of the squares themselves.
    A variance is that of the parts together (Chan et al.), which a mean of many deviations costs no places.
    Rows of equal numbers give 0: what rounding leaves of the difference is not divided by epsilon.
  }];
  let arguments = (ins Graph_FloatTensor:$lhs, Graph_FloatTensor:$rhs,
    Graph_FloatTensor:$squares, Optional<Graph_FloatTensor>:$terms,
    Optional<Graph_FloatTensor>:$columnSums, F64Attr:$epsilon);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $squares (`terms` $terms^)? (`columns` $columnSums^)? attr-dict `:`
    functional-type(operands, results)
  }];
  let extraClassDeclaration = commonDecl # columnsDecl # [{
    bool isOperandTypeFree(unsigned operand) { return operand >= 2; }
  }];
}

#endif
