// Operators that take elements one after another: scans, sorts, scatters.
#ifndef CHARONIA_GRAPH_ORDERED
#define CHARONIA_GRAPH_ORDERED

include "graph/ops/Index.td"
include "graph/ops/Reduction.td"

class Graph_OrderedBase<string mnemonic> : Graph_Op<mnemonic, [Graph_Inferred]> {
  let results = (outs Graph_Tensor:$result);
  code orderedDecl = [{
    ::charonia::graph::OpRole getRole() { return ::charonia::graph::OpRole::Ordered; }
    ::mlir::AffineMap getOperandMap(unsigned) { return {}; }
    bool isExpensive() { return true; }
    ::llvm::SmallVector<::charonia::graph::DimKind> getResultDimKinds();
    ::mlir::Value writeInSteps(::mlir::OpBuilder &builder,
                               const ::charonia::graph::Staging &staging);
  }];
  code rowDecl = [{
    ::mlir::AffineExpr getFlops() {
      return ::charonia::graph::numElements(::charonia::graph::getShape(getResult()),
                                            getContext());
    }
  }];
}

def Graph_ScanOp : Graph_OrderedBase<"scan"> {
  let summary = "What the elements along `axis`, up to and with each, are combined to";
  let description = [{
    From the last element on with `reverse`. Floats accumulate in f32 (f64 for f64). A
    row begins with what its elements of `initial`, any number along `axis`, come to.
  }];
  let arguments = (ins Graph_ReduceKind:$kind, Graph_Tensor:$input, Optional<Graph_Tensor>:$initial,
                       I64Attr:$axis, UnitAttr:$reverse);
  let assemblyFormat = [{
    $kind $input (`,` $initial^)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = orderedDecl # rowDecl # [{
    ::mlir::AffineExpr getReductionExtent() {
      return ::charonia::graph::getShape(getInput())[getAxis()];
    }
    bool combinesOneByOne();
  }];
}

def Graph_SortOp : Graph_OrderedBase<"sort"> {
  let summary = "The least `count` elements of each row in rising order, then some others";
  let description = [{
    Of i64, along the last dimension. `count` has no dims, the module's shape symbols and one result. Elements
    from `count` on are any that the same input always gives.
  }];
  let arguments = (ins Graph_IntTensor:$input, AffineMapAttr:$count);
  let extraClassDeclaration = orderedDecl # rowDecl # [{
    ::mlir::AffineExpr getReductionExtent() {
      return ::charonia::graph::getShape(getInput()).back();
    }
    int64_t getPasses(int64_t extent) {
      return 1 + ::llvm::Log2_64_Ceil(std::max<int64_t>(extent, 1));
    }
  }];
  let hasVerifier = 1;
}

def Graph_ScatterElementsOp : Graph_OrderedBase<"scatter_elements">, Graph_Scatter {
  let summary = "The input with single elements along `axis` replaced by updates";
  let description = scatterText;
  let arguments = (ins Graph_ScatterReduction:$reduction, Graph_Tensor:$input,
                       Graph_IntTensor:$indices, Graph_Tensor:$updates, I64Attr:$axis,
                       UnitAttr:$in_place);
  let assemblyFormat = "$reduction $input `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = orderedDecl # scatterDecl # [{
    std::optional<::charonia::graph::RealRange> getRange(
        ::llvm::ArrayRef<::charonia::graph::RealRange> operands);
  }];
  let hasCanonicalizer = 1;
}

#endif
