// A scale that begins elsewhere than the rows of 20001 numbers: a thread takes the eight numbers
// beside its own from two aligned vectors and shifts them, where both lie inside; no tile goes
// through shared memory but the row that two loops read. The second input of the first loop is
// asked for a tile before it is needed.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90a --dump-dir %t --assemble=0 --ptx | FileCheck %s --check-prefix=PTX
// RUN: FileCheck %s --check-prefix=SIMT < %t/rows.2-simt.mlir

// SIMT:     simt.alloc {managed, {{.*}}slots = 3 : i64}
// SIMT:     tile.load %arg1
// SIMT:     tile.load %arg1
// SIMT:     simt.wait_async 2
// SIMT:     tile.load %arg1
// SIMT:     simt.wait_async 1
// SIMT-NOT: tile.load %arg1
// SIMT:     simt.wait_async 0
// SIMT-NOT: tile.load %arg1
// SIMT:     scf.for
// SIMT-NEXT:  tile.load %arg2
// SIMT-NOT:   simt.store_shared
// SIMT:       tile.store

// Two instances share the registers of a multiprocessor.
// PTX: .minnctapersm 2
// PTX: ld.global.nc.v4.b32
// PTX: ld.global.nc.v4.b32
// PTX: ld.global.nc.b16
func.func @rows(%arg0: !tile.buffer<f16>, %arg1: !tile.buffer<f16>, %arg2: !tile.buffer<f16>, %arg3: !tile.buffer<f16>) attributes {tile.grid = affine_map<() -> (4)>, tile.kernel, tile.warps = 16 : i64} {
  %row = tile.program_id : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %least = arith.constant dense<0xFC00> : tensor<8192xf16>
  %most = scf.for %i = %c0 to %c3 step %c1 iter_args(%top = %least) -> (tensor<8192xf16>) {
    %x = tile.load %arg0[%row, %i] {checks = array<i64: 1>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 20001)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %z = tile.load %arg1[%row, %i] {checks = array<i64: 1>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 20001)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %s = arith.addf %x, %z : tensor<8192xf16>
    %in = tile.in_bounds[%i] {map = affine_map<(d0)[s0] -> (d0 + s0 * 8192)>, shape = affine_map<()[s0] -> (20001)>} : (index) -> tensor<8192xi1>
    %y = arith.select %in, %s, %least : tensor<8192xi1>, tensor<8192xf16>
    %next = arith.maximumf %top, %y : tensor<8192xf16>
    scf.yield %next : tensor<8192xf16>
  }
  %max = tile.reduce %most {axis = 0 : i64} : (tensor<8192xf16>) -> tensor<f16> {
  ^bb0(%a: f16, %b: f16):
    %m = arith.maximumf %a, %b : f16
    tile.yield %m : f16
  }
  %wide = tile.broadcast %max {axes = array<i64>} : tensor<f16> -> tensor<8192xf16>
  scf.for %i = %c0 to %c3 step %c1 {
    %x = tile.load %arg0[%row, %i] {checks = array<i64: 1>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 20001)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %y = arith.subf %x, %wide : tensor<8192xf16>
    %g = tile.load %arg2[%i] {independent, checks = array<i64: 0>, map = affine_map<(d0)[s0] -> (d0 + s0 * 8192)>, rank = 1 : i64, shape = affine_map<()[s0] -> (20001)>} : (!tile.buffer<f16>, index) -> tensor<8192xf16>
    %scaled = arith.mulf %y, %g : tensor<8192xf16>
    tile.store %scaled, %arg3[%row, %i] {checks = array<i64: 1>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 20001)>} : tensor<8192xf16>, !tile.buffer<f16>, index, index
  }
  return
}
