// The tile dialect: one program instance computes on tiles (Triton's level).
#ifndef CHARONIA_TILE_OPS
#define CHARONIA_TILE_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::charonia::tile";
  let summary = "Programs on tiles, one instance per point of a one-dimensional grid";
  let description = [{
    A kernel is a func.func with the attribute `tile.kernel`. Its arguments are
    buffers (`!tile.buffer<f16>`, in the order of the engine's kernel arguments)
    and then the shape symbols (`index`, in the order of the module's symbols;
    argument attribute `tile.divisor` tells what divides one). The attribute
    `tile.grid` is an AffineMap ()[shape symbols] -> (instances). A kernel that adds up
    what several instances hold (tile.split_sum) has two more buffers after the others,
    scratch memory of `tile.scratch` bytes and `tile.counters` integers of 32 bits, which
    are zero when it starts; both attributes are AffineMaps like the grid.

    Tiles are builtin tensors of static shape; beside this dialect, `arith`,
    `math` and `scf` operators work on them. Integers are signless here.

    Memory is only reached through structured accesses. An access to a buffer
    has a `map` (tile axes)[symbols] -> (coordinates) and a `shape`
    ()[symbols] -> (extents). The first `rank` results are the coordinates in
    the buffer, which is dense and row-major with the first `rank` extents; the
    others are guards: coordinates that take part in the bounds check alone.
    `checks` lists the results that may lie outside [0, extent): an element with
    such a coordinate is not touched; a load gives zero for it. The other
    results are known to be inside. A symbol is an index or a tile of indices
    that broadcasts to the shape of the access (extents equal or 1): then the
    map is applied with each element's own symbol value (gather, scatter).
  }];
  let useDefaultTypePrinterParser = 1;
}

def Tile_BufferType : TypeDef<Tile_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "Dense, row-major, 256-byte aligned memory of elements";
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
}

def Tile_Tensor : TensorOf<[AnyFloat, AnySignlessInteger, Index]>;
def Tile_Symbol : AnyTypeOf<[Index, TensorOf<[Index]>]>;

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

def Tile_ProgramIdOp : Tile_Op<"program_id", [Pure]> {
  let summary = "Index of this program instance in the grid";
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins), [{ $_state.addTypes($_builder.getIndexType()); }]>];
}

def Tile_LoadOp : Tile_Op<"load", [MemoryEffects<[MemRead]>]> {
  let summary = "A tile of a buffer; zero where a check fails";
  let description = [{
    `independent`: the buffer is not written by any earlier kernel of the engine
    (weights, constants), so it may be read before the kernel waits for its
    predecessor. Loads never alias stores of the same kernel, except where the
    same element is loaded before it is stored by the same program instance.
  }];
  let arguments = (ins Tile_BufferType:$buffer, Variadic<Tile_Symbol>:$symbols,
    AffineMapAttr:$map, AffineMapAttr:$shape, I64Attr:$rank,
    DenseI64ArrayAttr:$checks, UnitAttr:$independent);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = [{
    $buffer `[` $symbols `]` attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Tile_Update : I32EnumAttr<"Update", "what becomes of an element that a value meets", [
    I32EnumAttrCase<"replace", 0>, I32EnumAttrCase<"add", 1>, I32EnumAttrCase<"mul", 2>,
    I32EnumAttrCase<"max", 3>, I32EnumAttrCase<"min", 4>, I32EnumAttrCase<"umax", 5>,
    I32EnumAttrCase<"umin", 6>]> {
  let cppNamespace = "::charonia::tile";
}

def Tile_StoreOp : Tile_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes a tile to a buffer where the checks hold; the map is injective";
  let description = [{
    With `update` the map need not be injective and other program instances may store to
    the same elements: every value takes part once, in an order that is
    not told. Floats and integers that do not replace others are of 32 or 64 bits. Code of a CPU
    has no such store and says so.
  }];
  let arguments = (ins Tile_Tensor:$value, Tile_BufferType:$buffer, Variadic<Tile_Symbol>:$symbols,
    AffineMapAttr:$map, AffineMapAttr:$shape, I64Attr:$rank,
    DenseI64ArrayAttr:$checks, OptionalAttr<Tile_Update>:$update);
  let assemblyFormat = [{
    $value `,` $buffer `[` $symbols `]` attr-dict `:` type(operands)
  }];
  let hasVerifier = 1;
}

def Tile_PrefetchOp : Tile_Op<"prefetch", [MemoryEffects<[MemWrite]>]> {
  let summary = "A hint that the cache line of an element will be read soon";
  let description = [{
    The map has no dims. The element may lie anywhere, outside of the buffer too. The
    effect keeps the operator alive; nothing is written.
  }];
  let arguments = (ins Tile_BufferType:$buffer, Variadic<Index>:$symbols,
    AffineMapAttr:$map, AffineMapAttr:$shape, I64Attr:$rank);
  let assemblyFormat = "$buffer `[` $symbols `]` attr-dict `:` type(operands)";
}

def Tile_IndexOp : Tile_Op<"index", [Pure]> {
  let summary = "An affine function of the tile's axes and symbols, as a tile of indices";
  let arguments = (ins Variadic<Tile_Symbol>:$symbols, AffineMapAttr:$map);
  let results = (outs TensorOf<[Index]>:$result);
  let assemblyFormat = "`[` $symbols `]` attr-dict `:` functional-type($symbols, $result)";
  let hasVerifier = 1;
}

def Tile_InBoundsOp : Tile_Op<"in_bounds", [Pure]> {
  let summary = "Whether each result of `map` lies in [0, extent), all together";
  let arguments = (ins Variadic<Tile_Symbol>:$symbols, AffineMapAttr:$map, AffineMapAttr:$shape);
  let results = (outs TensorOf<[I1]>:$result);
  let assemblyFormat = "`[` $symbols `]` attr-dict `:` functional-type($symbols, $result)";
  let hasVerifier = 1;
}

def Tile_SplatOp : Tile_Op<"splat", [Pure]> {
  let summary = "A tile with the same value everywhere";
  let arguments = (ins AnyTypeOf<[AnyFloat, AnySignlessInteger, Index]>:$value);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
}

def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure]> {
  let summary = "Repeats a tile along new or unit axes";
  let description = [{
    Axis i of the input is axis `axes[i]` of the result (strictly increasing);
    its extent is equal or 1.
  }];
  let arguments = (ins Tile_Tensor:$input, DenseI64ArrayAttr:$axes);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_TransposeOp : Tile_Op<"transpose", [Pure]> {
  let summary = "Axis i of the result is axis permutation[i] of the input";
  let arguments = (ins Tile_Tensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_SplitAxisOp : Tile_Op<"split_axis", [Pure]> {
  let summary = "An axis as two: runs of `inner` neighbours, and an element of each";
  let description = [{ [.., N, ..] gives [.., N / inner, inner, ..]. }];
  let arguments = (ins Tile_Tensor:$input, I64Attr:$axis, I64Attr:$inner);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_JoinAxesOp : Tile_Op<"join_axes", [Pure]> {
  let summary = "An axis and the one behind it as one";
  let description = [{ [.., N, inner, ..] gives [.., N * inner, ..]: split_axis undone. }];
  let arguments = (ins Tile_Tensor:$input, I64Attr:$axis);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_CellPartOp : Tile_Op<"cell_part", [Pure]> {
  let summary = "Of cells of `parts` runs of `run` neighbours along an axis, run `part` of each";
  let description = [{ [.., N, ..] gives [.., N / parts, ..]. }];
  let arguments = (ins Tile_Tensor:$input, I64Attr:$axis, I64Attr:$run, I64Attr:$parts, I64Attr:$part);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_SwapHalvesOp : Tile_Op<"swap_halves", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "Cells of 2 * `run` neighbours along an axis with their halves swapped";
  let arguments = (ins Tile_Tensor:$input, I64Attr:$axis, I64Attr:$run);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Tile_DotOp : Tile_Op<"dot", [Pure, AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "accumulator + lhs x rhs on [M, K], [K, N] tiles";
  let description = [{
    f16, bf16, f32 operands accumulate in f32, f64 in f64, integers in i32 or
    wider. Of integers of 8 bits one side has no sign: rhs with `signed_lhs`, else lhs;
    with `pairs_fit` any two of their products add up to what 16 bits with a sign hold.
    `tf32` allows products of f32 with 10-bit mantissas. Only the first `columns`
    of the result count (0: all); behind them it may have any content.
  }];
  let arguments = (ins Tile_Tensor:$lhs, Tile_Tensor:$rhs, Tile_Tensor:$accumulator, UnitAttr:$tf32,
                       DefaultValuedAttr<I64Attr, "0">:$columns, UnitAttr:$signed_lhs,
                       UnitAttr:$pairs_fit);
  let results = (outs Tile_Tensor:$result);
  let extraClassDeclaration = [{
    /// The columns that count.
    int64_t getUsedColumns();
  }];
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $accumulator attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_SplitSumOp : Tile_Op<"split_sum", [AllTypesMatch<["value", "result"]>,
                                            MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "The sum of what the program instances of a group hold; one of them goes on";
  let description = [{
    `parts` program instances, numbered by `part`, work on the tile number `tile`. Each
    leaves its value in `scratch`; the last to arrive gets the sum, taken in the order of
    the parts, the others end here. `counters` holds an integer for each tile, zero
    before the kernel runs and again after it. All instances of a group compute the same
    operators, and none of them has stored anything before. A GPU has this.

    With `shared_axis` all go on: each gets the sum in its share of that axis, which
    begins at `part` times the share's extent, and may have any content elsewhere. The
    instances of a group are then a cluster, a power of two of them, and neighbours in
    the grid; `counters` is left alone.
  }];
  let arguments = (ins TensorOf<[F32]>:$value, Tile_BufferType:$scratch,
    Tile_BufferType:$counters, Index:$tile, Index:$part, I64Attr:$parts,
    OptionalAttr<I64Attr>:$shared_axis);
  let results = (outs TensorOf<[F32]>:$result);
  let assemblyFormat = [{
    $value `,` $scratch `,` $counters `[` $tile `,` $part `]` attr-dict `:` type($value) `,`
    type($scratch) `,` type($counters)
  }];
  let hasVerifier = 1;
}

def Tile_ExchangeOp : Tile_Op<"exchange", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "What each program instance of a cluster gives, to all of them";
  let description = [{
    `parts` program instances that are neighbours in the grid are a cluster; an instance's
    part is its number modulo `parts`. Result p * operands + i is what part p gave as
    operand i. All instances come here, at the top of the kernel, and none goes on
    before all others have. A GPU with clusters has this. What a loop copies ahead by warps of
    their own ends before, as these do not come here.

        %r:4 = tile.exchange %sum, %least {parts = 2 : i64} : tensor<64xf32>, tensor<64xf32>
  }];
  let arguments = (ins Variadic<TensorOf<[F32]>>:$inputs, I64Attr:$parts);
  let results = (outs Variadic<TensorOf<[F32]>>:$results);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$inputs, "uint64_t":$parts)>];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure, SameVariadicOperandSize, SingleBlock]> {
  let summary = "Combines the elements along one axis, which disappears";
  let description = [{
    The region combines two elements (scalars: those of the left, then those of
    the right) of each operand into one; it must be associative and commutative.
    It holds only elementwise arith and math operators.
  }];
  let arguments = (ins Variadic<Tile_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs Variadic<Tile_Tensor>:$results);
  let regions = (region SizedRegion<1>:$combiner);
  let assemblyFormat = "$inputs attr-dict `:` functional-type($inputs, $results) $combiner";
  let hasVerifier = 1;
}

def Tile_ScanOp : Tile_Op<"scan", [Pure, AllTypesMatch<["input", "result"]>,
                                   AllTypesMatch<["carry", "total"]>]> {
  let summary = "Combines each element with those before it along one axis";
  let description = [{
    The first element is combined with `carry`, which lacks the axis; `total` is the
    last element of the result. The region is that of tile.reduce.
  }];
  let arguments = (ins Tile_Tensor:$input, Tile_Tensor:$carry, I64Attr:$axis);
  let results = (outs Tile_Tensor:$result, Tile_Tensor:$total);
  let regions = (region SizedRegion<1>:$combiner);
  let assemblyFormat = [{
    $input `,` $carry attr-dict `:` type($input) `,` type($carry) $combiner
  }];
  let hasVerifier = 1;
}

def Tile_SortOp : Tile_Op<"sort", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Puts the least of some neighbouring elements of a buffer in front, in order";
  let description = [{
    Of `count` elements from `first` on, the least `kept` (0 <= kept <= count) come first,
    rising; the others follow in any order that depends on nothing else. Elements are
    signed. The program instance has stored them before, and no other one touches them.
  }];
  let arguments = (ins Tile_BufferType:$buffer, Index:$first, Index:$count, Index:$kept);
  let assemblyFormat = "$buffer `[` $first `,` $count `,` $kept `]` attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

def Tile_LocalOp : Tile_Op<"local", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Memory that this program instance alone reads and writes";
  let description = [{
    For what a walk along a row computes and another walk reads again. It may have any
    content at first, and lies in the caches. Code of a CPU has this.
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntPositive]>:$elements);
  let results = (outs Tile_BufferType:$buffer);
  let assemblyFormat = "$elements attr-dict `:` type($buffer)";
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator]> {
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

#endif
