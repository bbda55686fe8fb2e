// Matrix products, convolution, attention.
#ifndef CHARONIA_GRAPH_CONTRACTION
#define CHARONIA_GRAPH_CONTRACTION

include "graph/ops/Bases.td"

def Graph_MatmulOp : Graph_Contraction<"matmul"> {
  let summary = "[..., M, K] x [..., K, N]; leading dimensions broadcast";
  let description = [{
    Products of floats accumulate in f32 (f64 for f64), of integers in i32 or
    the result's type. Transposed operands are `transpose` views.
  }];
  let arguments = (ins Graph_Tensor:$lhs, Graph_Tensor:$rhs);
  let extraClassDeclaration = commonDecl # columnsDecl # [{
    ::llvm::SmallVector<int64_t> getTermDims();
    std::optional<::charonia::graph::Permuted> getPermuted(unsigned operand,
        ::llvm::ArrayRef<int64_t> permutation);
  }];
}

def Graph_ConvOp : Graph_Contraction<"conv"> {
  let summary = "Convolution (cross-correlation) over 1 to 3 spatial dimensions";
  let description = [{
    input [N, C, S...] and filter [O, C/groups, K...] give [N, O, S'...]; with
    `channels_last`: input [N, S..., C], filter [O, K..., C/groups], result
    [N, S'..., O]. `pads` holds the lows of all spatial dimensions, then the
    highs. Padding reads as zero.
  }];
  let arguments = (ins Graph_Tensor:$input, Graph_Tensor:$filter,
    DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations,
    I64Attr:$groups, UnitAttr:$channels_last);
  let extraClassDeclaration = commonDecl # columnsDecl # [{
    std::optional<::charonia::graph::Permuted> getChannelsLastForm();
    ::llvm::SmallVector<int64_t> getTermRuns();
    ::llvm::SmallVector<int64_t> getTermDims();
    int64_t getOperandReads(unsigned operand);
    std::optional<::charonia::graph::Columns> getScaledColumns();
    std::optional<::charonia::graph::ZeroPadding> getZeroPadding();
    std::optional<::llvm::SmallVector<::mlir::NamedAttribute>> getPaddedForm(
        unsigned operand, const ::charonia::graph::Padding &padding);
    /// Number of spatial dimensions.
    unsigned getSpatialRank() { return getStrides().size(); }
    /// Dimension indices in input and result; the filter's differ only in that
    /// dimension 0 is O and `channelDim` is C/groups.
    unsigned channelDim() { return getChannelsLast() ? getSpatialRank() + 1 : 1; }
    unsigned spatialDim(unsigned i) { return getChannelsLast() ? i + 1 : i + 2; }
  }];
}

def Graph_RowGuard : I32EnumAttr<"RowGuard", "rows of attention that give 0", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"empty", 1>, I32EnumAttrCase<"nan", 2>]> {
  let cppNamespace = "::charonia::graph";
}

def Graph_AttentionOp : Graph_Contraction<"attention", [AttrSizedOperandSegments]> {
  let summary = "softmax(scores) V of masked scores scale * Q K^T";
  let description = [{
    query [B, H, S, D], key [B, Hkv, T, D], value [B, Hkv, T, Dv], H a multiple
    of Hkv. The score of query s and key t is scale * Q K^T where `mask` is true
    and, with `causal`, t <= s + (T - S); elsewhere it is `fill`. Then `bias` is
    added. Mask and bias broadcast to [B, H, S, T].

    `guard` says what a row gives whose softmax is NaN. `none`: NaN. `empty`: 0 if
    all of its scores are -inf; a bias of -inf makes a score of NaN -inf. `nan`: 0.
  }];
  let arguments = (ins Graph_FloatTensor:$query, Graph_FloatTensor:$key,
    Graph_FloatTensor:$value, Optional<Graph_BoolTensor>:$mask,
    Optional<Graph_FloatTensor>:$bias, F64Attr:$scale, UnitAttr:$causal,
    DefaultValuedAttr<F64Attr, "-std::numeric_limits<double>::infinity()">:$fill,
    DefaultValuedAttr<Graph_RowGuard, "RowGuard::none">:$guard);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? (`bias` $bias^)? attr-dict `:`
    functional-type(operands, results)
  }];
  let extraClassDeclaration = commonDecl # [{
    bool isOperandTypeFree(unsigned operand) { return operand >= 3; }
    ::llvm::SmallVector<unsigned> getStreamedOperands() { return {1, 2}; }
  }];
}

#endif
