// Reductions, pooling, softmax and normalization.
#ifndef CHARONIA_GRAPH_REDUCTION
#define CHARONIA_GRAPH_REDUCTION

include "graph/ops/Bases.td"

def Graph_ReduceKind : I32EnumAttr<"ReduceKind", "reduction", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"prod", 1>,
    I32EnumAttrCase<"max", 2>, I32EnumAttrCase<"min", 3>]> {
  let cppNamespace = "::charonia::graph";
}

def Graph_ReduceOp : Graph_ReductionBase<"reduce"> {
  let summary = "Combines the elements along `axes`";
  let description = [{
    `axes` are sorted and not negative. Floats accumulate in f32 (f64 for f64).
    An empty extent gives the neutral element. max and min of i1 are or and and.
  }];
  let arguments = (ins Graph_ReduceKind:$kind, Graph_Tensor:$input,
                       DenseI64ArrayAttr:$axes, UnitAttr:$keepdims);
  let assemblyFormat = "$kind $input attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = reductionDecl # [{
    std::optional<::charonia::graph::RealRange> getRange(
        ::llvm::ArrayRef<::charonia::graph::RealRange> operands);
    std::optional<::charonia::graph::Permuted> getPermuted(unsigned operand,
        ::llvm::ArrayRef<int64_t> permutation);
    ::llvm::SmallVector<int64_t> getReductionAxes() { return ::llvm::to_vector(getAxes()); }
    ::mlir::Value reduceAlong(::mlir::OpBuilder &builder, ::mlir::Value input,
                              ::llvm::ArrayRef<int64_t> axes, bool keepDims);
    bool combinesPartialResults() { return true; }
    bool commutesWithWrapping(unsigned) {
      using ::charonia::graph::ReduceKind;
      return getKind() == ReduceKind::sum || getKind() == ReduceKind::prod;
    }
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor> operands);
  }];
  let hasCanonicalizer = 1;
}

def Graph_ArgReduceOp : Graph_ReductionBase<"arg_reduce"> {
  let summary = "Index (i64) of the largest or smallest element along `axis`";
  let arguments = (ins Graph_Tensor:$input, I64Attr:$axis, UnitAttr:$keepdims,
                       UnitAttr:$min, UnitAttr:$last);
  let extraClassDeclaration = reductionDecl # [{
    // A comparison of values and of places, that of floats for NaN too, and the choice of both.
    int64_t getFlopsPerTerm() {
      auto type = ::llvm::cast<::mlir::RankedTensorType>(getInput().getType());
      return ::llvm::isa<::mlir::FloatType>(type.getElementType()) ? 7 : 4;
    }
    std::optional<::charonia::graph::Permuted> getPermuted(unsigned operand,
        ::llvm::ArrayRef<int64_t> permutation);
    ::llvm::SmallVector<int64_t> getReductionAxes() { return {(int64_t)getAxis()}; }
    ::mlir::Value writeOut(::mlir::OpBuilder &builder);
  }];
}

def Graph_PoolKind : I32EnumAttr<"PoolKind", "pooling", [
    I32EnumAttrCase<"max", 0>, I32EnumAttrCase<"average", 1>, I32EnumAttrCase<"sum", 2>]> {
  let cppNamespace = "::charonia::graph";
}

def Graph_PoolOp : Graph_ReductionBase<"pool"> {
  let summary = "Reduction over a sliding window of 1 to 3 spatial dimensions";
  let description = [{
    input [N, C, S...], or [N, S..., C] with `channels_last`. Padding is neutral;
    `average` divides by the count of elements inside the input, or inside the
    padded input with `count_include_pad`. `ceil_mode` rounds result extents up,
    but never starts a window in the high padding. With `pad_value`, of `max` without `ceil_mode`, padding
    has that value.
  }];
  let arguments = (ins Graph_PoolKind:$kind, Graph_Tensor:$input,
    DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
    DenseI64ArrayAttr:$dilations, UnitAttr:$ceil_mode, UnitAttr:$count_include_pad,
    UnitAttr:$channels_last, OptionalAttr<F64Attr>:$pad_value);
  let assemblyFormat = "$kind $input attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = commonDecl # [{
    std::optional<::charonia::graph::Permuted> getChannelsLastForm();
    ::charonia::graph::OpRole getRole() { return ::charonia::graph::OpRole::Window; }
    int64_t getFlopsPerTerm() { return 1; }
    int64_t getOperandReads(unsigned) {
      int64_t reads = 1;
      for (int64_t extent : getKernel())
        reads *= extent;
      return reads;
    }
    ::llvm::SmallVector<::charonia::graph::DimKind> getResultDimKinds();
    std::optional<::llvm::SmallVector<::mlir::NamedAttribute>> getPaddedForm(
        unsigned operand, const ::charonia::graph::Padding &padding);
    ::llvm::SmallVector<::charonia::graph::WindowSide> getWindow();
    ::llvm::SmallVector<int64_t> getCells();
    ::mlir::Value slideAlong(::mlir::OpBuilder &builder, ::mlir::Value input,
                             ::llvm::ArrayRef<unsigned> sides);
    unsigned spatialDim(unsigned i) { return getChannelsLast() ? i + 1 : i + 2; }
  }];
  let hasVerifier = 1;
}

def Graph_SoftmaxOp : Graph_ReductionBase<"softmax"> {
  let summary = "exp(x - max) / sum(exp(x - max)) along `axis`, or its logarithm";
  let arguments = (ins Graph_FloatTensor:$input, I64Attr:$axis, UnitAttr:$log);
  let extraClassDeclaration = rowDecl # [{
    bool readsFullRange(unsigned) { return true; }
    std::optional<::charonia::graph::RealRange> getRange(
        ::llvm::ArrayRef<::charonia::graph::RealRange>);
    std::optional<::charonia::graph::Permuted> getPermuted(unsigned operand,
        ::llvm::ArrayRef<int64_t> permutation);
    ::llvm::SmallVector<int64_t> getReductionAxes() { return {(int64_t)getAxis()}; }
  }];
}

def Graph_NormalizeOp : Graph_ReductionBase<"normalize"> {
  let summary = "(x - mean) / sqrt(variance + epsilon) over `axes`, or x / rms";
  let description = [{
    With `rms` the mean is not subtracted: x / sqrt(mean(x^2) + epsilon). Scale
    and shift of layer, group and instance normalization are `mul` and `add`
    beside it.
  }];
  let arguments = (ins Graph_FloatTensor:$input, DenseI64ArrayAttr:$axes,
                       F64Attr:$epsilon, UnitAttr:$rms);
  let extraClassDeclaration = rowDecl # [{
    std::optional<::charonia::graph::Permuted> getPermuted(unsigned operand,
        ::llvm::ArrayRef<int64_t> permutation);
    ::llvm::SmallVector<int64_t> getReductionAxes() { return ::llvm::to_vector(getAxes()); }
    ::mlir::Value reduceAlong(::mlir::OpBuilder &builder, ::mlir::Value input,
                              ::llvm::ArrayRef<int64_t> axes, bool keepDims);
    ::mlir::Value writeOut(::mlir::OpBuilder &builder);
  }];
}

#endif
