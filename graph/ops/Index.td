// Operators that choose elements by position or by index tensors.
#ifndef CHARONIA_GRAPH_INDEX
#define CHARONIA_GRAPH_INDEX

include "graph/ir/GraphBase.td"

class Graph_IndexBase<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, traits> {
  let results = (outs Graph_Tensor:$result);
  code indexDecl = [{
    ::charonia::graph::OpRole getRole() { return ::charonia::graph::OpRole::Indexing; }
    ::mlir::AffineMap getOperandMap(unsigned) { return {}; }
    int64_t getCodeSize() { return 16 * std::max(1u, (*this)->getNumOperands()); }
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor> operands);
  }];
  code contentDecl = [{
    ::mlir::AffineExpr getContentAt(::llvm::ArrayRef<::mlir::AffineExpr> coordinates,
        ::llvm::ArrayRef<::mlir::AffineExpr> extents, ::charonia::graph::ContentDemand demand);
  }];
  code chosenDecl = [{
    ::mlir::AffineMap getChosenMap(::charonia::graph::ContentDemand demand);
    bool commutesWithWrapping(unsigned operand) { return operand == 0; }
  }];
}

def Graph_IotaOp : Graph_IndexBase<"iota"> {
  let summary = "The coordinate along `axis`";
  let arguments = (ins I64Attr:$axis);
  let extraClassDeclaration = indexDecl # contentDecl;
  let hasVerifier = 1;
}

def Graph_ConcatOp : Graph_IndexBase<"concat", [Graph_Inferred]> {
  let summary = "The inputs one after another along `axis`";
  let arguments = (ins Variadic<Graph_Tensor>:$inputs, I64Attr:$axis);
  let extraClassDeclaration = indexDecl # contentDecl # [{
    bool commutesWithWrapping(unsigned) { return true; }
    std::optional<unsigned> getJoinedDim() { return getAxis(); }
    std::optional<::charonia::graph::Permuted> getPermuted(unsigned operand,
        ::llvm::ArrayRef<int64_t> permutation);
  }];
  let hasFolder = 1;
}

def Graph_PadMode : I32EnumAttr<"PadMode", "padding", [
    I32EnumAttrCase<"constant", 0>, I32EnumAttrCase<"edge", 1>,
    I32EnumAttrCase<"reflect", 2>, I32EnumAttrCase<"wrap", 3>]> {
  let cppNamespace = "::charonia::graph";
}

def Graph_PadOp : Graph_IndexBase<"pad"> {
  let summary = "The input with `lows[d]` elements before it; extents from the result type";
  let description = [{
    `lows` has no dims, the module's shape symbols and one result a dimension;
    negative values cut. `value` is a scalar tensor, used by mode constant.
  }];
  let arguments = (ins Graph_PadMode:$mode, Graph_Tensor:$input, Graph_Tensor:$value,
                       AffineMapAttr:$lows);
  let assemblyFormat = "$mode $input `,` $value attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = indexDecl # [{
    bool commutesWithWrapping(unsigned) { return true; }
    std::optional<::charonia::graph::Permuted> getPermuted(unsigned operand,
        ::llvm::ArrayRef<int64_t> permutation);
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Graph_GatherOp : Graph_IndexBase<"gather", [Graph_Inferred]> {
  let summary = "Slices of the input along `axis`, chosen by an index tensor";
  let arguments = (ins Graph_Tensor:$input, Graph_IntTensor:$indices, I64Attr:$axis);
  let extraClassDeclaration = indexDecl # chosenDecl;
  let hasCanonicalizer = 1;
}

def Graph_GatherElementsOp : Graph_IndexBase<"gather_elements", [Graph_Inferred]> {
  let summary = "Single elements along `axis`";
  let arguments = (ins Graph_Tensor:$input, Graph_IntTensor:$indices, I64Attr:$axis);
  let extraClassDeclaration = indexDecl # chosenDecl;
}

def Graph_GatherNDOp : Graph_IndexBase<"gather_nd", [Graph_Inferred]> {
  let summary = "Slices chosen by index tuples";
  let arguments = (ins Graph_Tensor:$input, Graph_IntTensor:$indices, I64Attr:$batch_dims);
  let extraClassDeclaration = indexDecl # chosenDecl;
}

def Graph_ScatterReduction : I32EnumAttr<"ScatterReduction", "what meets an element", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"add", 1>, I32EnumAttrCase<"mul", 2>,
    I32EnumAttrCase<"max", 3>, I32EnumAttrCase<"min", 4>]> {
  let cppNamespace = "::charonia::graph";
}

// What both scatters share.
class Graph_Scatter {
  string scatterText = [{
    An index outside of the input, also after counting from its end where it is negative,
    leaves its update out. Where updates meet the same element, `none` keeps one of them,
    and floats may be added in any order. `in_place`: the input's memory becomes the result's, and
    updates are dealt out to program instances.
  }];
  code scatterDecl = [{
    ::mlir::AffineExpr getFlops() {
      using namespace ::charonia::graph;
      ::mlir::AffineExpr updates = numElements(getShape(getUpdates()), getContext());
      return getInPlace() ? updates : updates + numElements(getShape(getResult()), getContext());
    }
    std::optional<unsigned> getUpdatedOperand() {
      return getInPlace() ? std::optional<unsigned>(0) : std::nullopt;
    }
    std::optional<unsigned> getWalkedOperand() {
      return getInPlace() ? std::optional<unsigned>(2) : std::nullopt;
    }
    std::optional<::charonia::graph::Placed> getPlaced() {
      return ::charonia::graph::Placed{2, getReduction()};
    }
    ::mlir::AffineMap getPlacedMap(::charonia::graph::ContentDemand demand);
  }];
}

def Graph_ScatterNDOp : Graph_IndexBase<"scatter_nd", [Graph_Inferred]>, Graph_Scatter {
  let summary = "The input with slices, chosen by index tuples, replaced by updates";
  let description = scatterText;
  let arguments = (ins Graph_ScatterReduction:$reduction, Graph_Tensor:$input,
                       Graph_IntTensor:$indices, Graph_Tensor:$updates, UnitAttr:$in_place);
  let assemblyFormat = "$reduction $input `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = scatterDecl # [{
    // Few updates are looked through by each element that is asked for.
    ::charonia::graph::OpRole getRole();
    ::mlir::AffineMap getOperandMap(unsigned) { return {}; }
    ::llvm::SmallVector<::charonia::graph::DimKind> getResultDimKinds();
    int64_t getCodeSize() { return 48; }
    ::mlir::Value writeInSteps(::mlir::OpBuilder &builder,
                               const ::charonia::graph::Staging &staging);
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor> operands);
    std::optional<::charonia::graph::RealRange> getRange(
        ::llvm::ArrayRef<::charonia::graph::RealRange> operands);
  }];
  let hasCanonicalizer = 1;
}

def Graph_ResizeMode : I32EnumAttr<"ResizeMode", "interpolation", [
    I32EnumAttrCase<"nearest", 0>, I32EnumAttrCase<"linear", 1>, I32EnumAttrCase<"cubic", 2>]> {
  let cppNamespace = "::charonia::graph";
}
// half_pixel_or_zero is half_pixel, but 0 where the result has one element.
def Graph_CoordinateMode : I32EnumAttr<"CoordinateMode", "result to input coordinates", [
    I32EnumAttrCase<"half_pixel", 0>, I32EnumAttrCase<"asymmetric", 1>,
    I32EnumAttrCase<"align_corners", 2>, I32EnumAttrCase<"half_pixel_or_zero", 3>,
    I32EnumAttrCase<"half_pixel_symmetric", 4>]> {
  let cppNamespace = "::charonia::graph";
}
def Graph_NearestMode : I32EnumAttr<"NearestMode", "rounding of nearest", [
    I32EnumAttrCase<"round_prefer_floor", 0>, I32EnumAttrCase<"round_prefer_ceil", 1>,
    I32EnumAttrCase<"floor", 2>, I32EnumAttrCase<"ceil", 3>]> {
  let cppNamespace = "::charonia::graph";
}

def Graph_ResizeOp : Graph_IndexBase<"resize"> {
  let summary = "Interpolation along `axes`";
  let description = [{
    `scales` has one entry an axis: result extent over input extent, as the
    model gives it; an entry of 0 means the ratio of the extents. A coordinate is
    divided by the scale, or with `by_ratio` multiplied by its inverse, each
    rounded to f32: they differ where a coordinate is nearly whole.
  }];
  let arguments = (ins Graph_ResizeMode:$mode, Graph_Tensor:$input, DenseI64ArrayAttr:$axes,
    DenseF64ArrayAttr:$scales, Graph_CoordinateMode:$coordinates, Graph_NearestMode:$nearest,
    F64Attr:$cubic_coeff, UnitAttr:$exclude_outside, UnitAttr:$by_ratio);
  let assemblyFormat = "$mode $input attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = indexDecl # [{
    int64_t getPlacesRead() {
      using ::charonia::graph::ResizeMode;
      if (getMode() == ResizeMode::nearest)
        return 1;
      unsigned bits = (getMode() == ResizeMode::cubic ? 2 : 1) * getAxes().size();
      return int64_t(1) << std::min(bits, 32u);
    }
    // Each point around a coordinate is fetched, weighted and added.
    int64_t getFlopsPerTerm() {
      return getMode() == ::charonia::graph::ResizeMode::nearest ? 1 : 3 * getPlacesRead();
    }
    std::optional<::charonia::graph::RealRange> getRange(
        ::llvm::ArrayRef<::charonia::graph::RealRange> operands);
    std::optional<::charonia::graph::Permuted> getPermuted(unsigned operand,
        ::llvm::ArrayRef<int64_t> permutation);
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif
