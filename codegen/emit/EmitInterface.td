// How an operator of the graph dialect gives a tile of its result.
#ifndef CHARONIA_EMIT_INTERFACE
#define CHARONIA_EMIT_INTERFACE

include "mlir/IR/OpBase.td"

def EmitOpInterface : OpInterface<"EmitOpInterface"> {
  let cppNamespace = "::charonia::emit";
  let description = [{
    Attached to the graph dialect's operators from outside (rules/), so that the
    dialect knows nothing of tiles.
  }];
  let methods = [
    InterfaceMethod<[{
      Emits the tile of result 0 that `demand` asks for and returns it, in the
      compute type (TileEmitter::computeType) of the element type. The demand is
      simplified; every axis of it has an extent over 1 and moves a coordinate.
    }], "::mlir::FailureOr<::mlir::Value>", "emitTile",
      (ins "::charonia::emit::TileEmitter &":$emitter, "const ::charonia::emit::Demand &":$demand)>,
    InterfaceMethod<[{
      For an operator of role Ordered: writes the part of result 0 that belongs to
      the demand to `buffer`. The demand has the tile and coordinates of dimensions
      that are not whole; those that are have coordinate 0 and are walked here. Where
      the operator walks an operand (GraphOpInterface), they are that operand's.
    }], "::mlir::LogicalResult", "emitOrdered",
      (ins "::charonia::emit::TileEmitter &":$emitter, "const ::charonia::emit::Demand &":$demand,
           "::mlir::Value":$buffer), "", [{ return ::mlir::failure(); }]>,
    InterfaceMethod<[{
      For a contraction whose columns come in groups with terms of their own: how many
      neighbouring columns share their rows. A tile of columns of one group is a matrix
      product. Null where all do.
    }], "::mlir::AffineExpr", "getColumnRun", (ins), "", [{ return {}; }]>,
    InterfaceMethod<[{
      For a contraction of two operands: the dimension of each along which its terms lie, or
      of those of a window the ones that follow each other. Empty where there are none.
    }], "::llvm::SmallVector<unsigned>", "getTermDims", (ins), "", [{ return {}; }]>,
    InterfaceMethod<[{
      For an operator without a map to `operand` (GraphOpInterface::getOperandMap): how many
      of the last dimensions it passes on, counted from the end in both. Along these the result has
      the extents and the coordinates of the operand.
    }], "unsigned", "getPassedDims", (ins "unsigned":$operand), "", [{ return 0; }]>,
    InterfaceMethod<[{
      For a contraction: whether the tile of later rows takes more terms, as where a row
      keeps the keys up to its own.
    }], "bool", "growsByRow", (ins), "", [{ return false; }]>,
  ];
}

#endif
