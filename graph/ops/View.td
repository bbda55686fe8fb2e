// Operators that move no data by themselves: a map of coordinates each.
#ifndef CHARONIA_GRAPH_VIEW
#define CHARONIA_GRAPH_VIEW

include "graph/ir/GraphBase.td"

class Graph_View<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, traits> {
  let arguments = (ins Graph_Tensor:$input);
  let results = (outs Graph_Tensor:$result);
  code viewDecl = [{
    ::charonia::graph::OpRole getRole() { return ::charonia::graph::OpRole::View; }
    ::mlir::AffineMap getOperandMap(unsigned operand);
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor> operands);
  }];
  let hasVerifier = 1;
}

def Graph_ReshapeOp : Graph_View<"reshape"> {
  let summary = "The same elements in row-major order under another shape";
  let extraClassDeclaration = viewDecl # [{
    std::optional<::charonia::graph::Permuted> getPermuted(unsigned operand,
        ::llvm::ArrayRef<int64_t> permutation);
  }];
  let hasFolder = 1;
}

def Graph_TransposeOp : Graph_View<"transpose", [Graph_Inferred]> {
  let summary = "Dimension i of the result is dimension permutation[i] of the input";
  let arguments = (ins Graph_Tensor:$input, DenseI64ArrayAttr:$permutation);
  let extraClassDeclaration = viewDecl;
  let hasFolder = 1;
}

def Graph_SliceOp : Graph_View<"slice"> {
  let summary = "Element i of dimension d is element starts[d] + i * steps[d] of the input";
  let description = [{
    `starts` has no dims, the module's shape symbols and one result a dimension;
    steps may be negative, not zero. The extents are those of the result type.
  }];
  let arguments = (ins Graph_Tensor:$input, AffineMapAttr:$starts, DenseI64ArrayAttr:$steps);
  let extraClassDeclaration = viewDecl # [{
    std::optional<::charonia::graph::Permuted> getPermuted(unsigned operand,
        ::llvm::ArrayRef<int64_t> permutation);
  }];
  let hasFolder = 1;
}

def Graph_BroadcastOp : Graph_View<"broadcast"> {
  let summary = "NumPy broadcast of the input to the result's shape";
  let extraClassDeclaration = viewDecl # [{
    std::optional<::charonia::graph::Permuted> getPermuted(unsigned operand,
        ::llvm::ArrayRef<int64_t> permutation);
  }];
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

#endif
