// Rows of two inputs, 192 KB together, which only one instance of a multiprocessor can keep: with
// rows of its own that follow (600 for 132 multiprocessors) it does, and reads both once. What the
// last walk loads beside them comes an iteration ahead, as no other instance covers that.
// RUN: mkdir -p %t && charonia-ptx %s --arch sm_90a --dump-dir %t --assemble=0 --ptx > %t/out
// RUN: FileCheck %s < %t/rows.1-layouts.mlir

// CHECK: tile.grid = affine_map<() -> (120)>
// CHECK-COUNT-2: simt.alloc {managed, slots = 6 : i64}
// CHECK-NOT: simt.alloc
// CHECK: scf.for %[[ROW:.*]] = %0 to %c600{{.*}} step %c120
// CHECK-NOT: tile.load %arg0
// CHECK-NOT: tile.load %arg1
// CHECK:   %[[FIRST:.*]] = tile.load %arg2[%c0
// CHECK:   scf.for %[[I:.*]] = %c0{{.*}} to %c6{{.*}} iter_args(%[[SCALE:.*]] = %[[FIRST]])
// CHECK:     %[[LATER:.*]] = arith.addi %[[I]], %c1
// CHECK:     %[[NEXT:.*]] = arith.minsi %[[LATER]], %c5
// CHECK:     %[[AHEAD:.*]] = tile.load %arg2[%[[NEXT]]]
// CHECK:     arith.mulf %{{.*}}, %[[SCALE]]
// CHECK:     tile.store
// CHECK:     scf.if
// CHECK-COUNT-2: simt.copy_async
// CHECK:     scf.yield %[[AHEAD]]
func.func @rows(%arg0: !tile.buffer<f16>, %arg1: !tile.buffer<f16>, %arg2: !tile.buffer<f16>, %arg3: !tile.buffer<f16>) attributes {tile.grid = affine_map<() -> (600)>, tile.kernel, tile.warps = 16 : i64} {
  %row = tile.program_id : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %least = arith.constant dense<0xFC00> : tensor<8192xf16>
  %most = scf.for %i = %c0 to %c6 step %c1 iter_args(%top = %least) -> (tensor<8192xf16>) {
    %x = tile.load %arg0[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (600, 49152)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %z = tile.load %arg1[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (600, 49152)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %s = arith.addf %x, %z : tensor<8192xf16>
    %next = arith.maximumf %top, %s : tensor<8192xf16>
    scf.yield %next : tensor<8192xf16>
  }
  %max = tile.reduce %most {axis = 0 : i64} : (tensor<8192xf16>) -> tensor<f16> {
  ^bb0(%a: f16, %b: f16):
    %m = arith.maximumf %a, %b : f16
    tile.yield %m : f16
  }
  %wide = tile.broadcast %max {axes = array<i64>} : tensor<f16> -> tensor<8192xf16>
  scf.for %i = %c0 to %c6 step %c1 {
    %x = tile.load %arg0[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (600, 49152)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %z = tile.load %arg1[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (600, 49152)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %g = tile.load %arg2[%i] {checks = array<i64>, map = affine_map<(d0)[s0] -> (d0 + s0 * 8192)>, rank = 1 : i64, shape = affine_map<()[s0] -> (49152)>, independent} : (!tile.buffer<f16>, index) -> tensor<8192xf16>
    %s = arith.addf %x, %z : tensor<8192xf16>
    %d = arith.subf %s, %wide : tensor<8192xf16>
    %y = arith.mulf %d, %g : tensor<8192xf16>
    tile.store %y, %arg3[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (600, 49152)>} : tensor<8192xf16>, !tile.buffer<f16>, index, index
  }
  return
}
