// The simt dialect: what tile programs become when their values are spread over the
// threads of a GPU program instance.
#ifndef CHARONIA_SIMT_OPS
#define CHARONIA_SIMT_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Simt_Dialect : Dialect {
  let name = "simt";
  let cppNamespace = "::charonia::simt";
  let summary = "Tiles spread over registers, lanes and warps, or in shared memory";
  let description = [{
    In this form every tensor of a kernel has a `#simt.layout` as its encoding: a
    linear map from (register, lane, warp) to the axes of the tile, see
    codegen/layout/LinearLayout.h. Elementwise operators and those of the tile
    dialect keep their meaning; operands and results of an elementwise operator have
    one layout. Shared memory is explicit: `!simt.memory` values come from
    `simt.alloc`, whose offsets and the barriers between accesses are found by
    analysis.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::charonia::tile::TileDialect"];
}

def Simt_LayoutAttr : AttrDef<Simt_Dialect, "Layout",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "layout";
  let summary = "A linear layout: an image of each input bit";
  let parameters = (ins AttrParameter<"::charonia::LinearLayout", "", "const ::charonia::LinearLayout &">:$layout);
  let hasCustomAssemblyFormat = 1;
}

def Simt_TensorMapAttr : AttrDef<Simt_Dialect, "TensorMap"> {
  let mnemonic = "tensor_map";
  let summary = "What the copy engine is told of a buffer that boxes are copied from";
  let description = [{
    The fields of engine::TensorMap (runtime/engine/Engine.h): the innermost dimension
    first; `extents` (in elements) and `strides` (in bytes) over the kernel's shape symbols.
    With `corners` boxes are columns of pixels (im2col): the lower ones, then the upper ones.
  }];
  let parameters = (ins "unsigned":$elementBytes, "unsigned":$swizzle,
    "::mlir::AffineMapAttr":$extents, "::mlir::AffineMapAttr":$strides,
    "::mlir::DenseI64ArrayAttr":$box, "::mlir::DenseI64ArrayAttr":$steps,
    "::mlir::DenseI64ArrayAttr":$corners);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Simt_MemoryType : TypeDef<Simt_Dialect, "Memory"> {
  let mnemonic = "memory";
  let summary = "A tile in shared memory; its layout maps element offsets to axes";
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        "::charonia::simt::LayoutAttr":$layout);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    int64_t getNumElements() const;
    int64_t getBytes() const;
  }];
}

def Simt_Tensor : TensorOf<[AnyFloat, AnySignlessInteger, Index]>;
def Simt_Buffer : Type<CPred<"::llvm::isa<::charonia::tile::BufferType>($_self)">,
                       "buffer", "::charonia::tile::BufferType">;

class Simt_Op<string mnemonic, list<Trait> traits = []> : Op<Simt_Dialect, mnemonic, traits>;

def Simt_AllocOp : Simt_Op<"alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Shared memory for one tile, or for a ring of `slots`";
  let description = [{
    `offset` (bytes) is set by allocation. The accesses of a `managed` ring are
    ordered by the loop that owns it, not by the placement of barriers.
  }];
  let arguments = (ins DefaultValuedAttr<I64Attr, "1">:$slots, OptionalAttr<I64Attr>:$offset,
                       UnitAttr:$managed);
  let results = (outs Simt_MemoryType:$memory);
  let extraClassDeclaration = [{
    /// Of all slots.
    int64_t getBytes() { return getSlots() * getMemory().getType().getBytes(); }
  }];
  let assemblyFormat = "attr-dict `:` type($memory)";
}

def Simt_SlotOp : Simt_Op<"slot", [Pure, AllTypesMatch<["ring", "memory"]>]> {
  let summary = "One tile of a ring";
  let arguments = (ins Simt_MemoryType:$ring, Index:$index);
  let results = (outs Simt_MemoryType:$memory);
  let assemblyFormat = "$ring `[` $index `]` attr-dict `:` type($ring)";
}

def Simt_ToSharedOp : Simt_Op<"to_shared", [Pure]> {
  let summary = "The tile, in shared memory: decided on by pipelining";
  let arguments = (ins Simt_Tensor:$input);
  let results = (outs Simt_MemoryType:$memory);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($memory)";
}

def Simt_StoreSharedOp : Simt_Op<"store_shared", [MemoryEffects<[MemWrite]>]> {
  let summary = "Registers to shared memory";
  let arguments = (ins Simt_Tensor:$value, Simt_MemoryType:$memory);
  let assemblyFormat = "$value `,` $memory attr-dict `:` type($value) `,` type($memory)";
}

def Simt_LoadSharedOp : Simt_Op<"load_shared", [MemoryEffects<[MemRead]>]> {
  let summary = "The part of a shared tile that starts at `start`, to registers";
  let arguments = (ins Simt_MemoryType:$memory, DenseI64ArrayAttr:$start);
  let results = (outs Simt_Tensor:$result);
  let assemblyFormat = "$memory $start attr-dict `:` type($memory) `->` type($result)";
}

def Simt_CopyAsyncOp : Simt_Op<"copy_async", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "A tile of a buffer straight to shared memory (cp.async)";
  let description = [{
    The access is that of tile.load. `copies` says which thread copies what, `vector`
    elements along `axis` at a time. The data is there after a simt.wait_async that
    covers the group of the copy, and for other threads after a barrier.
  }];
  let arguments = (ins Simt_Buffer:$buffer, Variadic<Index>:$symbols, Simt_MemoryType:$memory,
    AffineMapAttr:$map, AffineMapAttr:$shape, I64Attr:$rank, DenseI64ArrayAttr:$checks,
    Simt_LayoutAttr:$copies, I64Attr:$axis, I64Attr:$vector, UnitAttr:$independent);
  let assemblyFormat = [{
    $buffer `[` $symbols `]` `to` $memory attr-dict `:` type($buffer) `to` type($memory)
  }];
}

def Simt_CommitAsyncOp : Simt_Op<"commit_async", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Closes a group of copies";
  let assemblyFormat = "attr-dict";
}

def Simt_WaitAsyncOp : Simt_Op<"wait_async", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until at most `pending` groups of this thread are under way";
  let arguments = (ins I64Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
}

def Simt_BarrierOp : Simt_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "All threads of the program instance meet";
  let description = [{
    Those of a simt.copy_warp only where `all` is there; just those of a warpgroup where
    `warpgroup` is.
  }];
  let arguments = (ins UnitAttr:$all, UnitAttr:$warpgroup);
  let assemblyFormat = "(`all` $all^)? (`warpgroup` $warpgroup^)? attr-dict";
}

def Simt_ExchangeOp : Simt_Op<"exchange", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "tile.exchange by way of `memory`, which is nothing else as long as the kernel runs";
  let description = [{
    Other instances of the cluster read what this one leaves there; none ends before all
    have read. Operands and results have one layout. The memory is a ring with a slot for each
    element of a thread's registers and each operand, of an f32 for each thread.
  }];
  let arguments = (ins Simt_MemoryType:$memory, Variadic<Simt_Tensor>:$inputs, I64Attr:$parts);
  let results = (outs Variadic<Simt_Tensor>:$results);
  let assemblyFormat = [{
    $inputs `through` $memory attr-dict `:` type($memory) `,` functional-type($inputs, $results)
  }];
}

def Simt_CopyWarpOp : Simt_Op<"copy_warp", [MemoryEffects<[MemRead, MemWrite]>, SingleBlock,
                                            NoTerminator]> {
  let summary = "What one thread of each of additional warps does, all of which end behind it";
  let description = [{
    The `warps` come behind those that have the kernel's layouts; the first one runs the first
    region, and so on, and the rest have none. It stands at the top of a kernel, which has one
    at most, and its regions read kernel arguments, constants and what they compute themselves.
    With `registers` they are a warpgroup, which gives its registers to the others, so that
    each of their threads has so many.
  }];
  let arguments = (ins DefaultValuedAttr<I64Attr, "1">:$warps,
                       DefaultValuedAttr<I64Attr, "0">:$registers);
  let regions = (region VariadicRegion<SizedRegion<1>>:$parts);
  let assemblyFormat = "$parts attr-dict";
}

def Simt_InitBarriersOp : Simt_Op<"init_barriers", [MemoryEffects<[MemWrite]>]> {
  let summary = "Makes each slot of a ring an mbarrier that `arrivals` complete";
  let description = [{
    For other threads they are there behind a simt.barrier. The ring, of one integer of 64
    bits a slot, is used for nothing else as long as the kernel runs.
  }];
  let arguments = (ins Simt_MemoryType:$ring, I64Attr:$arrivals);
  let assemblyFormat = "$ring attr-dict `:` type($ring)";
}

def Simt_ExpectBytesOp : Simt_Op<"expect_bytes", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Arrives, and has the phase wait for so many bytes of copies";
  let arguments = (ins Simt_MemoryType:$barrier, Index:$bytes);
  let assemblyFormat = "$barrier `,` $bytes attr-dict `:` type($barrier)";
}

def Simt_ArriveOp : Simt_Op<"arrive", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "One thread of each warp arrives, where `when` holds";
  let arguments = (ins Simt_MemoryType:$barrier, Optional<I1>:$when);
  let assemblyFormat = "$barrier (`when` $when^)? attr-dict `:` type($barrier)";
}

def Simt_WaitBarrierOp : Simt_Op<"wait_barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until the barrier's phase of that parity is complete";
  let description = [{ Of a barrier that nobody arrived at yet, that of parity 1 is. }];
  let arguments = (ins Simt_MemoryType:$barrier, Index:$parity);
  let assemblyFormat = "$barrier `,` $parity attr-dict `:` type($barrier)";
}

def Simt_CoordinatesOp : Simt_Op<"coordinates", [Pure]> {
  let summary = "Numbers by a map of symbols: where a box lies";
  let arguments = (ins Variadic<Index>:$symbols, AffineMapAttr:$map);
  let results = (outs Variadic<Index>:$results);
  let assemblyFormat = "`[` $symbols `]` attr-dict `:` type($results)";
}

def Simt_CopyBoxOp : Simt_Op<"copy_box", [MemoryEffects<[MemRead, MemWrite]>,
                                          AttrSizedOperandSegments]> {
  let summary = "The copy engine brings boxes of a buffer to shared memory";
  let description = [{
    In a simt.copy_warp. `count` boxes: the first lies at the coordinates `at` (the innermost
    first), each next one `advance` elements further along the innermost dimension and `bytes`
    further in shared memory. `offsets`: what columns of pixels are moved by, of im2col alone. What is outside of the tensor is zero. A phase of `barrier` is complete
    when they are there.
  }];
  let arguments = (ins Simt_Buffer:$buffer, Variadic<Index>:$at, Variadic<Index>:$offsets,
    Simt_MemoryType:$memory, Simt_MemoryType:$barrier, Simt_TensorMapAttr:$tensor,
    I64Attr:$count, I64Attr:$advance, I64Attr:$bytes, UnitAttr:$independent);
  let assemblyFormat = [{
    $buffer `[` $at `]` (`moved` `[` $offsets^ `]`)? `to` $memory `,` $barrier attr-dict `:` type($buffer) `to`
    type($memory) `,` type($barrier)
  }];
}

def Simt_WaitDependenciesOp : Simt_Op<"wait_dependencies", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits for the end of all kernels before this one (griddepcontrol.wait)";
  let description = [{
    Every thread comes here, and before it no kernel reads a buffer that another kernel
    writes, or writes one: their memory may still be in use. Where the kernel may run beside
    what is before it (tile.waits_at_end) it stands at the end.
  }];
  let assemblyFormat = "attr-dict";
}

def Simt_FenceDeviceOp : Simt_Op<"fence_device", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Sees what ended kernels have written without having waited (fence.acq_rel.gpu)";
  let description = [{
    A kernel that begins beside others and reads what was written before all of them. PTX says
    of griddepcontrol.wait alone that it makes that seen. What is relied on here is that what
    ended kernels wrote is in the L2 cache, where the copy engine reads, too, and that the fence
    drops the lines that the multiprocessor kept from before; the test of overtaking
    (tests/runtime/OvertakingTest.cpp) looks for a chip where it is otherwise.
  }];
  let assemblyFormat = "attr-dict";
}

def Simt_LaunchDependentsOp : Simt_Op<"launch_dependents", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Lets the next kernel begin (griddepcontrol.launch_dependents)";
  let description = [{
    When all program instances came here or ended. It then waits for the end of this kernel,
    which does not end before its own wait; so it stands behind that, or the next kernel may
    run beside this one (tile.starts_next).
  }];
  let assemblyFormat = "attr-dict";
}

def Simt_ConvertOp : Simt_Op<"convert", [Pure]> {
  let summary = "Another layout, by moves between registers and shuffles in a warp";
  let arguments = (ins Simt_Tensor:$input);
  let results = (outs Simt_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def Simt_SliceOp : Simt_Op<"slice", [Pure]> {
  let summary = "The part of a tile that starts at `start`, in the same threads";
  let arguments = (ins Simt_Tensor:$input, DenseI64ArrayAttr:$start);
  let results = (outs Simt_Tensor:$result);
  let assemblyFormat = "$input $start attr-dict `:` type($input) `->` type($result)";
}

def Simt_JoinOp : Simt_Op<"join", [Pure]> {
  let summary = "Equal parts of a tile, one behind the other along `axis`, in the same threads";
  let arguments = (ins Variadic<Simt_Tensor>:$parts, I64Attr:$axis);
  let results = (outs Simt_Tensor:$result);
  let assemblyFormat = "$parts attr-dict `:` functional-type($parts, $result)";
}

def Simt_WarpReduceOp : Simt_Op<"warp_reduce", [Pure, SingleBlock]> {
  let summary = "tile.reduce within each warp: one element for each warp along the axis remains";
  let arguments = (ins Variadic<Simt_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs Variadic<Simt_Tensor>:$results);
  let regions = (region SizedRegion<1>:$combiner);
  let assemblyFormat = "$inputs attr-dict `:` functional-type($inputs, $results) $combiner";
}

def Simt_DotOp : Simt_Op<"dot", [Pure, AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "accumulator + lhs x rhs on fragments: by mma.sync, or by multiply-adds";
  let arguments = (ins Simt_Tensor:$lhs, Simt_Tensor:$rhs, Simt_Tensor:$accumulator, UnitAttr:$mma);
  let results = (outs Simt_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $accumulator attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
}

def Simt_WarpgroupDotOp : Simt_Op<"warpgroup_dot", [AllTypesMatch<["accumulator", "result"]>,
                                                     MemoryEffects<[MemRead]>]> {
  let summary = "accumulator + lhs x rhs, rhs shared, under way until it is waited for (wgmma)";
  let description = [{
    A grid of `rows` x `columns` groups of four warps shares the result. Operands in shared
    memory lie as warpgroupOperandLayout says, a left operand in registers as
    warpgroupLhsLayout does. They are read at any time until a simt.wait_dots that covers the
    dot; the result is there after it, and before only for another dot. What threads wrote to
    shared operands needs a simt.fence_shared between. Only the first `used` columns are read and
    computed (0: all); the others of the result are those of the accumulator.
  }];
  let arguments = (ins AnyTypeOf<[Simt_MemoryType, Simt_Tensor]>:$lhs, Simt_MemoryType:$rhs,
    Simt_Tensor:$accumulator, I64Attr:$rows, I64Attr:$columns,
    DefaultValuedAttr<I64Attr, "0">:$used);
  let results = (outs Simt_Tensor:$result);
  let extraClassDeclaration = [{
    /// The operands in shared memory.
    ::llvm::SmallVector<::mlir::Value, 2> getMemories();
    /// The columns that are computed.
    int64_t getUsedColumns();
  }];
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $accumulator attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
}

def Simt_WaitDotsOp : Simt_Op<"wait_dots", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until at most `pending` dots of these warps are under way";
  let description = [{ The results are the values, which no earlier use may stand for. }];
  let arguments = (ins Variadic<Simt_Tensor>:$values, I64Attr:$pending);
  let results = (outs Variadic<Simt_Tensor>:$results);
  let assemblyFormat = "$pending (`,` $values^)? attr-dict `:` functional-type($values, $results)";
}

def Simt_FenceSharedOp : Simt_Op<"fence_shared", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "What threads wrote to shared memory is seen by warpgroup_dot and copies of boxes";
  let assemblyFormat = "attr-dict";
}

#endif
