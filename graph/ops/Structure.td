// Sources of values and the structure of a compiled model.
#ifndef CHARONIA_GRAPH_STRUCTURE
#define CHARONIA_GRAPH_STRUCTURE

include "graph/ir/GraphBase.td"

def Graph_ConstantOp : Graph_Op<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "A small constant tensor held in the IR";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
  let extraClassDeclaration = [{
    ::charonia::graph::OpRole getRole() { return ::charonia::graph::OpRole::Source; }
    ::mlir::AffineExpr getFlops() { return ::mlir::getAffineConstantExpr(0, getContext()); }
    std::optional<::charonia::graph::RealRange> getRange(
        ::llvm::ArrayRef<::charonia::graph::RealRange>);
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor> operands);
    ::mlir::AffineExpr getContentAt(::llvm::ArrayRef<::mlir::AffineExpr> coordinates,
        ::llvm::ArrayRef<::mlir::AffineExpr> extents, ::charonia::graph::ContentDemand demand);
  }];
}

def Graph_WeightOp : Graph_Op<"weight"> {
  let summary = "A tensor of the weight store, by name";
  let description = [{
    The bytes stay in the store (memory-mapped or owned); the IR never copies
    them. The type is static.
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::charonia::graph::OpRole getRole() { return ::charonia::graph::OpRole::Source; }
    ::mlir::AffineExpr getFlops() { return ::mlir::getAffineConstantExpr(0, getContext()); }
    std::optional<::charonia::graph::RealRange> getRange(
        ::llvm::ArrayRef<::charonia::graph::RealRange>);
    std::optional<::llvm::SmallVector<int64_t>> getStoredIntegers();
  }];
}

def Graph_DimsOp : Graph_Op<"dims"> {
  let summary = "Values computed from shape symbols, as an integer tensor";
  let description = [{
    `values` has no dims, the module's shape symbols as symbols and one result
    for each element of the result tensor, in row-major order.
  }];
  let arguments = (ins AffineMapAttr:$values);
  let results = (outs Graph_IntTensor:$result);
  let assemblyFormat = "$values attr-dict `:` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::charonia::graph::OpRole getRole() { return ::charonia::graph::OpRole::Source; }
    ::mlir::AffineExpr getFlops() { return ::mlir::getAffineConstantExpr(0, getContext()); }
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor> operands);
    ::mlir::AffineExpr getContentAt(::llvm::ArrayRef<::mlir::AffineExpr> coordinates,
        ::llvm::ArrayRef<::mlir::AffineExpr> extents, ::charonia::graph::ContentDemand demand);
  }];
}

def Graph_ShapeOfOp : Graph_InferredOp<"shape_of"> {
  let summary = "The shape of a tensor as tensor<rank x i64>; evaluated away";
  let arguments = (ins Graph_Tensor:$input);
  let results = (outs Graph_Tensor:$result);
  let extraClassDeclaration = [{
    ::charonia::graph::OpRole getRole() { return ::charonia::graph::OpRole::Source; }
    ::mlir::AffineExpr getFlops() { return ::mlir::getAffineConstantExpr(0, getContext()); }
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor> operands);
  }];
}

def Graph_KernelOp : Graph_RawOp<"kernel", [IsolatedFromAbove, SingleBlock,
    RecursiveMemoryEffects]> {
  let summary = "A fused region that becomes one kernel";
  let description = [{
    The block arguments are the operands. The results are the operands of the
    terminator. `schedule` is data that the cost model proposes and the tuner
    replaces (codegen/emit/Schedule.h).
  }];
  let arguments = (ins Variadic<Graph_Tensor>:$inputs, StrAttr:$sym_name,
                       OptionalAttr<DictionaryAttr>:$schedule);
  let results = (outs Variadic<Graph_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `(` $inputs `)` attr-dict-with-keyword `:` functional-type($inputs, $results) $body
  }];
  let hasVerifier = 1;
}

def Graph_YieldOp : Graph_RawOp<"yield", [Pure, Terminator, ParentOneOf<["KernelOp"]>]> {
  let summary = "The results of a kernel";
  let arguments = (ins Variadic<Graph_Tensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Graph_JoinedOp : Graph_RawOp<"joined", [Pure]> {
  let summary = "The value whose parts kernels have stored in its memory";
  let description = [{
    The operands are results of kernels that say where in it they lie
    (graph/analysis/StoredParts.h), and nothing else reads them. Made when an
    engine is laid out.
  }];
  let arguments = (ins Variadic<Graph_Tensor>:$parts);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$parts attr-dict `:` functional-type($parts, $result)";
}

// Steps that are as many as a size says. While a model is imported they stand in
// its function: what depends on what is carried, or on the step's number, is done
// again in each. `outline-steps` makes functions of them before any other pass.

def Graph_CarriedOp : Graph_RawOp<"carried", [Pure, AllTypesMatch<["init", "result"]>]> {
  let summary = "What a step finds of the one before: `init` in the first";
  let description = [{
    `counter` is the shape symbol that counts the steps, `index` the place of the
    value among those that are carried. Goes with `outline-steps`.
  }];
  let arguments = (ins Graph_Tensor:$init, AffineMapAttr:$counter, I64Attr:$index);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$init attr-dict `:` type($result)";
}

def Graph_IterateOp : Graph_RawOp<"iterate", [Pure, AttrSizedOperandSegments]> {
  let summary = "The last of what is carried, and what all steps give, stacked";
  let description = [{
    Steps `counter` = 0 to `count` - 1 each find `carried`, compute `next` for the
    step behind and `outputs`. Step t's output i is element `places`[i] of the
    first dimension of its result. Results are those of `carried`, then those of
    `outputs`. Goes with `outline-steps`.
  }];
  let arguments = (ins Variadic<Graph_Tensor>:$carried, Variadic<Graph_Tensor>:$next,
                       Variadic<Graph_Tensor>:$outputs,
                       AffineMapAttr:$counter, AffineMapAttr:$count, AffineMapAttr:$places);
  let results = (outs Variadic<Graph_Tensor>:$results);
  let assemblyFormat = [{
    $carried `next` $next `outputs` $outputs attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Graph_RepeatOp : Graph_RawOp<"repeat"> {
  let summary = "Steps of a function, as many as a size says";
  let description = [{
    `callee` takes what is carried, as many operands as `carried` says, then what
    all steps find alike; it gives what is carried to the step behind, then
    outputs. The rest is as in `graph.iterate`. A function that repeats or calls
    others does nothing else.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Graph_Tensor>:$operands,
                       I64Attr:$carried,
                       AffineMapAttr:$counter, AffineMapAttr:$count, AffineMapAttr:$places);
  let results = (outs Variadic<Graph_Tensor>:$results);
  let assemblyFormat = "$callee `(` $operands `)` attr-dict `:` functional-type($operands, $results)";
  let hasVerifier = 1;
}

#endif
