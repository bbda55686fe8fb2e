// What contractions have in common, and reductions.
#ifndef CHARONIA_GRAPH_BASES
#define CHARONIA_GRAPH_BASES

include "graph/ir/GraphBase.td"

class Graph_Contraction<string mnemonic, list<Trait> traits = []>
    : Graph_InferredOp<mnemonic, traits> {
  let results = (outs Graph_Tensor:$result);
  code commonDecl = [{
    ::charonia::graph::OpRole getRole() { return ::charonia::graph::OpRole::Contraction; }
    ::mlir::AffineMap getOperandMap(unsigned) { return {}; }
    bool isExpensive() { return true; }
    int64_t getFlopsPerTerm() { return 2; }
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor>) { return {}; }
    ::llvm::SmallVector<::charonia::graph::DimKind> getResultDimKinds();
    ::mlir::AffineExpr getReductionExtent();
  }];
  code columnsDecl = [{
    std::optional<::charonia::graph::Columns> getColumns();
  }];
}

class Graph_ReductionBase<string mnemonic, list<Trait> traits = []>
    : Graph_InferredOp<mnemonic, traits> {
  let results = (outs Graph_Tensor:$result);
  code commonDecl = [{
    ::mlir::AffineMap getOperandMap(unsigned) { return {}; }
    bool isExpensive() { return true; }
    ::mlir::AffineExpr getReductionExtent();
  }];
  code reductionDecl = commonDecl # [{
    ::charonia::graph::OpRole getRole() { return ::charonia::graph::OpRole::Reduction; }
    ::llvm::SmallVector<::charonia::graph::DimKind> getResultDimKinds() {
      return ::llvm::SmallVector<::charonia::graph::DimKind>(
          ::llvm::cast<::mlir::RankedTensorType>(getResult().getType()).getRank(),
          ::charonia::graph::DimKind::Parallel);
    }
  }];
  code rowDecl = commonDecl # [{
    ::charonia::graph::OpRole getRole() { return ::charonia::graph::OpRole::RowNormalization; }
    ::llvm::SmallVector<::charonia::graph::DimKind> getResultDimKinds();
    int64_t getFlopsPerTerm() { return 8; }
    ::mlir::AffineExpr getFlops() {
      return ::charonia::graph::numElements(::charonia::graph::getShape(getResult()),
                                            getContext()) * getFlopsPerTerm();
    }
  }];
}

#endif
