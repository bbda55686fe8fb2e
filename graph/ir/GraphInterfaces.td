// What passes may ask an operator. No pass asks for an operator by name.
#ifndef CHARONIA_GRAPH_INTERFACES
#define CHARONIA_GRAPH_INTERFACES

include "mlir/IR/OpBase.td"

def GraphOpInterface : OpInterface<"GraphOpInterface"> {
  let cppNamespace = "::charonia::graph";
  let description = [{
    Every operator of the graph dialect answers these questions; fusion, layout
    assignment, scheduling and memory planning are written on them.
  }];
  let methods = [
    InterfaceMethod<[{
      What kind of computation this is; see OpRole.
    }], "::charonia::graph::OpRole", "getRole", (ins)>,
    InterfaceMethod<[{
      The map from the coordinates of result 0 (dims) and the module's shape
      symbols to the coordinates of operand `operand` that the element is
      computed from, where one such map exists (pointwise operators and views);
      a null map otherwise.
    }], "::mlir::AffineMap", "getOperandMap", (ins "unsigned":$operand), "", [{
      return {};
    }]>,
    InterfaceMethod<[{
      The part that each dimension of result 0 plays; one entry a dimension.
    }], "::llvm::SmallVector<::charonia::graph::DimKind>", "getResultDimKinds", (ins), "", [{
      auto type = ::llvm::cast<::mlir::RankedTensorType>($_op->getResult(0).getType());
      return ::llvm::SmallVector<::charonia::graph::DimKind>(
          type.getRank(), ::charonia::graph::DimKind::Parallel);
    }]>,
    InterfaceMethod<[{
      How many terms are combined into one element of the result, as an
      expression over the module's shape symbols (K of a matmul, R*S*C of a
      convolution, the reduced extent); 1 where nothing is reduced.
      For a row normalization: the length of a row.
    }], "::mlir::AffineExpr", "getReductionExtent", (ins), "", [{
      return ::mlir::getAffineConstantExpr(1, $_op->getContext());
    }]>,
    InterfaceMethod<[{
      Floating-point operations for one element of the result and one term.
    }], "int64_t", "getFlopsPerTerm", (ins), "", [{ return 1; }]>,
    InterfaceMethod<[{
      Floating-point operations of the whole operator, over the module's shape
      symbols.
    }], "::mlir::AffineExpr", "getFlops", (ins), "", [{
      return ::charonia::graph::numElements(
                 ::charonia::graph::getShape($_op->getResult(0)), $_op->getContext()) *
             $_op.getReductionExtent() * $_op.getFlopsPerTerm();
    }]>,
    InterfaceMethod<[{
      Whether an element of the result costs much to compute a second time
      (exp, erf, division chains): fusion then avoids recomputation.
    }], "bool", "isExpensive", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
      Vector instructions, roughly, that a register of elements of the result takes
      beside its operands: by so much each of them makes a kernel's code longer.
    }], "int64_t", "getCodeSize", (ins), "", [{ return $_op.isExpensive() ? 16 : 1; }]>,
    InterfaceMethod<[{
      For a reduction or a row normalization: the dimensions of operand 0 that are
      combined, or needed all at once.
    }], "::llvm::SmallVector<int64_t>", "getReductionAxes", (ins), "", [{ return {}; }]>,
    InterfaceMethod<[{
      For a reduction or a row normalization that may have any number of axes: what it
      gives for `input` along `axes`, both in place of its own. A reduction keeps its
      axes as dimensions of one element where `keepDims`. Null for other operators.
    }], "::mlir::Value", "reduceAlong",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$input,
           "::llvm::ArrayRef<int64_t>":$axes, "bool":$keepDims), "", [{ return {}; }]>,
    InterfaceMethod<[{
      For a reduction that has reduceAlong: whether it may be done along some of its axes
      first, and of those results along the others.
    }], "bool", "combinesPartialResults", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
      For a row normalization, or a reduction whose terms no reduceAlong combines: its result
      by reductions and pointwise operators, for rows that no kernel should hold, or no one
      program instance walk along; null where it has no such form.
    }], "::mlir::Value", "writeOut", (ins "::mlir::OpBuilder &":$builder), "", [{
      return {};
    }]>,
    InterfaceMethod<[{
      How often the operator fetches an element of `operand` from memory if it is
      tiled well: 1, or the size of a window that slides over it.
    }], "int64_t", "getOperandReads", (ins "unsigned":$operand), "", [{ return 1; }]>,
    InterfaceMethod<[{
      Where the result is its operands one after another along a dimension: that. A
      tile may lie across several, and then reads all of them, each where it is.
    }], "::std::optional<unsigned>", "getJoinedDim", (ins), "", [{ return std::nullopt; }]>,
    InterfaceMethod<[{
      For an operator that chooses elements by their place: at how many places of its
      operands an element of the result reads, each by code of its own.
    }], "int64_t", "getPlacesRead", (ins), "", [{ return 1; }]>,
    InterfaceMethod<[{
      For an operator of role Ordered: how often it takes each element of a row of
      `extent` elements, roughly.
    }], "int64_t", "getPasses", (ins "int64_t":$extent), "", [{ return 1; }]>,
    InterfaceMethod<[{
      The operand whose memory becomes that of result 0; what is not written keeps its
      value. Nothing else reads that operand, which is the result of another kernel
      (stage-ordered sees to it).
    }], "::std::optional<unsigned>", "getUpdatedOperand", (ins), "", [{
      return std::nullopt;
    }]>,
    InterfaceMethod<[{
      For an operator of role Ordered: the operand whose elements are dealt out to
      program instances, where that is not result 0.
    }], "::std::optional<unsigned>", "getWalkedOperand", (ins), "", [{
      return std::nullopt;
    }]>,
    InterfaceMethod<[{
      For an operator of role Ordered: whether the elements of a row are combined strictly
      one after another, because parts of a row that are combined first would give another
      result.
    }], "bool", "combinesOneByOne", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
      For an operator of role Ordered: result 0 by steps that many program instances
      share, written in front of it; null where one instance a row does as well.
    }], "::mlir::Value", "writeInSteps",
      (ins "::mlir::OpBuilder &":$builder, "const ::charonia::graph::Staging &":$staging),
      "", [{ return {}; }]>,
    InterfaceMethod<[{
      For a contraction: the operand that is stationary (the weights, as a rule) and
      its columns; nothing where it has none, or not each column by itself gives
      one column of the result.
    }], "::std::optional<::charonia::graph::Columns>", "getColumns", (ins), "", [{
      return std::nullopt;
    }]>,
    InterfaceMethod<[{
      For a contraction whose terms come in runs along one dimension of each operand,
      not joined by a neighbouring one: those dimensions, one an operand. Zeros at the
      end of all of them leave the result as it is. Empty otherwise.
    }], "::llvm::SmallVector<int64_t>", "getTermRuns", (ins), "", [{ return {}; }]>,
    InterfaceMethod<[{
      For a contraction that adds up products of what has the same index along one
      dimension of each operand: those dimensions, one an operand. Both operands in
      another order along them, the same for both, give the same result up to
      rounding. Empty otherwise.
    }], "::llvm::SmallVector<int64_t>", "getTermDims", (ins), "", [{ return {}; }]>,
    InterfaceMethod<[{
      For a contraction: the operands whose last but one dimension each tile of the
      result's rows passes over from end to end, once, a run of the last one at a time:
      keys and values.
    }], "::llvm::SmallVector<unsigned>", "getStreamedOperands", (ins), "", [{ return {}; }]>,
    InterfaceMethod<[{
      Where scaling an index of an operand's dimension scales the same index of a
      dimension of the result, as it does for weights of contractions; nothing
      where no operand acts so.
    }], "::std::optional<::charonia::graph::Columns>", "getScaledColumns", (ins), "", [{
      return $_op.getColumns();
    }]>,
    InterfaceMethod<[{
      For an operator that reads zeros around an operand: how many, and what the
      operator is without them; nothing where it reads none.
    }], "::std::optional<::charonia::graph::ZeroPadding>", "getZeroPadding", (ins), "", [{
      return std::nullopt;
    }]>,
    InterfaceMethod<[{
      The attributes with which the operator pads `operand` by itself, beside what it pads
      already, so that it gives for the operand what it gives now for the padded one;
      nothing where it can't.
    }], "::std::optional<::llvm::SmallVector<::mlir::NamedAttribute>>", "getPaddedForm",
      (ins "unsigned":$operand, "const ::charonia::graph::Padding &":$padding), "", [{
      return std::nullopt;
    }]>,
    InterfaceMethod<[{
      For an operator whose window combines its elements along one dimension first and of
      those results along the others, if one wishes: the dimensions along which it slides.
      Empty otherwise.
    }], "::llvm::SmallVector<::charonia::graph::WindowSide>", "getWindow", (ins), "", [{
      return {};
    }]>,
    InterfaceMethod<[{
      For an operator that cuts operand 0 into cells, as by a grid, and adds up what lies in
      each: how many elements a cell has along each dimension. The last along one may have
      fewer. Empty otherwise.
    }], "::llvm::SmallVector<int64_t>", "getCells", (ins), "", [{ return {}; }]>,
    InterfaceMethod<[{
      For an operator with a window: what it gives for `input`, in place of operand 0, if
      it slides along `sides` of the window alone and takes single elements along the others.
    }], "::mlir::Value", "slideAlong",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$input,
           "::llvm::ArrayRef<unsigned>":$sides), "", [{ return {}; }]>,
    InterfaceMethod<[{
      The symbolic contents of result 0, given those of the operands (an entry
      is null where a content is not known). Null where they can't be told.
      Small integer tensors that compute shapes are evaluated through this.
    }], "::charonia::graph::SymbolicTensor", "evaluateSymbolic",
      (ins "::llvm::ArrayRef<::charonia::graph::SymbolicTensor>":$operands), "", [{
      return {};
    }]>,
    InterfaceMethod<[{
      For a pointwise operator: the integer (i1: 0 or 1) that elements of the
      operands give, as an expression; null where it is none. `extents` bound the
      dims that occur.
    }], "::mlir::AffineExpr", "evaluateElement",
      (ins "::llvm::ArrayRef<::mlir::AffineExpr>":$elements,
           "::llvm::ArrayRef<::mlir::AffineExpr>":$extents), "", [{
      return {};
    }]>,
    InterfaceMethod<[{
      For a pointwise operator: the element that these elements of the operands
      give, not yet rounded or wrapped to the result's type; nothing where it has no
      rule or no value (division by zero, out of range). Constants are folded by it.
    }], "::std::optional<::charonia::graph::Scalar>", "evaluateScalar",
      (ins "::llvm::ArrayRef<::charonia::graph::Scalar>":$operands), "", [{
      return std::nullopt;
    }]>,
    InterfaceMethod<[{
      For a result of floats: bounds of its elements, given those of the operands (of
      operands that are no floats: any); nothing where none are known. Constants and
      weights look at their elements.
    }], "::std::optional<::charonia::graph::RealRange>", "getRange",
      (ins "::llvm::ArrayRef<::charonia::graph::RealRange>":$operands), "", [{
      return ::charonia::graph::chosenRange($_op, operands);
    }]>,
    InterfaceMethod<[{
      For a pointwise operator on integers: the integer (i1: 0 or 1) that elements of
      the operands give, as exact as `algebra` can say it, not wrapped to the result's
      type; null where it can't.
    }], "::mlir::AffineExpr", "evaluateInteger",
      (ins "::charonia::graph::IntegerAlgebra &":$algebra,
           "::llvm::ArrayRef<::mlir::AffineExpr>":$elements), "", [{
      return $_op.evaluateElement(elements, {});
    }]>,
    InterfaceMethod<[{
      Whether results that are integers are the same modulo a power of two of at most
      their type's values, wherever elements of `operand` are: sums and products are,
      quotients and comparisons tell a number that wrapped from one that did not.
    }], "bool", "commutesWithWrapping", (ins "unsigned":$operand), "", [{
      return $_op.getRole() == ::charonia::graph::OpRole::View;
    }]>,
    InterfaceMethod<[{
      For a source whose integers are kept outside of the IR: its elements in row-major
      order; nothing for others.
    }], "::std::optional<::llvm::SmallVector<int64_t>>", "getStoredIntegers", (ins), "", [{
      return std::nullopt;
    }]>,
    InterfaceMethod<[{
      The integer that result 0 holds at `coordinates`, given the contents of
      operands on demand; null where it can't be told. Coordinates and contents are
      expressions over dims, which `extents` bound, and the module's shape symbols.
    }], "::mlir::AffineExpr", "getContentAt",
      (ins "::llvm::ArrayRef<::mlir::AffineExpr>":$coordinates,
           "::llvm::ArrayRef<::mlir::AffineExpr>":$extents,
           "::charonia::graph::ContentDemand":$demand), "", [{
      return ::charonia::graph::composeContent($_op, coordinates, extents, demand);
    }]>,
    InterfaceMethod<[{
      For a result of i1: expressions of which all are non-negative just where it is
      true at `coordinates`; nothing where it is no such conjunction. Contents and
      conditions of operands are given on demand.
    }], "::std::optional<::charonia::graph::Exprs>", "getConditionsAt",
      (ins "::llvm::ArrayRef<::mlir::AffineExpr>":$coordinates,
           "::charonia::graph::ContentDemand":$contents,
           "::charonia::graph::ConditionDemand":$conditions), "", [{
      using namespace ::charonia::graph;
      return $_op.getRole() == OpRole::View ? conditions(0, readAt($_op, 0, coordinates))
                                            : ::std::nullopt;
    }]>,
    InterfaceMethod<[{
      How a pointwise operator depends on `operand`, if linearly. Without a shift,
      scaling the operand scales the result; with one, scaling both does.
    }], "::std::optional<::charonia::graph::Linear>", "getLinear",
      (ins "unsigned":$operand), "", [{ return ::std::nullopt; }]>,
    InterfaceMethod<[{
      For an operator that chooses elements of operand 0 by index tensors: the map
      from the coordinates of its result to those of operand 0, given the contents
      of the index tensors on demand; null where it can't be told. May leave the
      input if an index does.
    }], "::mlir::AffineMap", "getChosenMap",
      (ins "::charonia::graph::ContentDemand":$demand), "", [{ return {}; }]>,
    InterfaceMethod<[{
      For an operator that puts elements among those of operand 0, at places that index
      tensors tell: those elements; nothing for others. A place outside of operand 0,
      also after counting from its end where it is negative, leaves its element out.
    }], "::std::optional<::charonia::graph::Placed>", "getPlaced", (ins), "", [{
      return std::nullopt;
    }]>,
    InterfaceMethod<[{
      For an operator that has getPlaced: the map from the coordinates of the updates to
      those of operand 0, given the contents of the index tensors on demand; null where
      it can't be told.
    }], "::mlir::AffineMap", "getPlacedMap",
      (ins "::charonia::graph::ContentDemand":$demand), "", [{ return {}; }]>,
    InterfaceMethod<[{
      Whether the element type of `operand` may be another than that of the result
      and the other operands.
    }], "bool", "isOperandTypeFree", (ins "unsigned":$operand), "", [{ return false; }]>,
    InterfaceMethod<[{
      Whether the operator tells elements of `operand` apart that lie outside of what
      a small float type holds exactly: the fill of a mask from another one, numbers
      that are compared or converted. Such an operand is not rounded for it.
    }], "bool", "readsFullRange", (ins "unsigned":$operand), "", [{
      return $_op.isOperandTypeFree(operand);
    }]>,
    InterfaceMethod<[{
      Whether the result may be much smaller than what it is made of, and off by as
      much as rounding has put that off: sums, differences, remainders.
    }], "bool", "mayCancel", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
      The operator that does the same with `operand` transposed by `permutation`;
      nothing where there is none.
    }], "::std::optional<::charonia::graph::Permuted>", "getPermuted",
      (ins "unsigned":$operand, "::llvm::ArrayRef<int64_t>":$permutation), "", [{
      return ::charonia::graph::permutePointwise($_op, operand, permutation);
    }]>,
    InterfaceMethod<[{
      The operator that does the same with channels in the last dimension; nothing
      for operators that know no channels or have them there.
    }], "::std::optional<::charonia::graph::Permuted>", "getChannelsLastForm", (ins), "", [{
      return std::nullopt;
    }]>,
  ];
}

#endif
