// 600 rows that are kept in shared memory, of which 264 instances run at once: 200 take three rows each.
// The tiles of the first row are copied in front of the loop over rows, those of the next one each
// where the last walk has read the same tile, one group of copies for each.
// RUN: mkdir -p %t && charonia-ptx %s --arch sm_90a --dump-dir %t --assemble=0 --ptx > %t/out
// RUN: FileCheck %s < %t/rows.1-layouts.mlir

// CHECK:     tile.grid = affine_map<() -> (200)>
// CHECK:     %[[RING:.*]] = simt.alloc
// CHECK:     scf.for
// CHECK:       simt.copy_async %arg0[%0,
// CHECK:     scf.for %[[ROW:.*]] = %0 to %c600{{.*}} step %c200
// CHECK:       simt.wait_async 3
// CHECK:       tile.reduce
// CHECK:       scf.for %[[I:.*]] = %c1{{.*}} to %c4
// CHECK:         %[[SLOT:.*]] = simt.slot %[[RING]][%[[I]]]
// CHECK:         simt.load_shared %[[SLOT]]
// CHECK:         tile.store %{{.*}}, %arg1[%[[ROW]], %[[I]]]
// CHECK:         %[[NEXT:.*]] = arith.addi %[[ROW]], %c200
// CHECK:         scf.if
// CHECK:           %[[FREE:.*]] = simt.slot %[[RING]][%[[I]]]
// CHECK:           simt.copy_async %arg0[%[[NEXT]], %[[I]]] to %[[FREE]]
// CHECK:           simt.commit_async
func.func @rows(%arg0: !tile.buffer<f16>, %arg1: !tile.buffer<f16>) attributes {tile.grid = affine_map<() -> (600)>, tile.kernel, tile.warps = 16 : i64} {
  %row = tile.program_id : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %least = arith.constant dense<0xFC00> : tensor<4096xf16>
  %most = scf.for %i = %c0 to %c5 step %c1 iter_args(%top = %least) -> (tensor<4096xf16>) {
    %x = tile.load %arg0[%row, %i] {checks = array<i64: 1>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 4096)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (600, 20001)>} : (!tile.buffer<f16>, index, index) -> tensor<4096xf16>
    %in = tile.in_bounds[%i] {map = affine_map<(d0)[s0] -> (d0 + s0 * 4096)>, shape = affine_map<()[s0] -> (20001)>} : (index) -> tensor<4096xi1>
    %y = arith.select %in, %x, %least : tensor<4096xi1>, tensor<4096xf16>
    %next = arith.maximumf %top, %y : tensor<4096xf16>
    scf.yield %next : tensor<4096xf16>
  }
  %max = tile.reduce %most {axis = 0 : i64} : (tensor<4096xf16>) -> tensor<f16> {
  ^bb0(%a: f16, %b: f16):
    %m = arith.maximumf %a, %b : f16
    tile.yield %m : f16
  }
  %wide = tile.broadcast %max {axes = array<i64>} : tensor<f16> -> tensor<4096xf16>
  scf.for %i = %c0 to %c5 step %c1 {
    %x = tile.load %arg0[%row, %i] {checks = array<i64: 1>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 4096)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (600, 20001)>} : (!tile.buffer<f16>, index, index) -> tensor<4096xf16>
    %y = arith.subf %x, %wide : tensor<4096xf16>
    tile.store %y, %arg1[%row, %i] {checks = array<i64: 1>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 4096)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (600, 20001)>} : tensor<4096xf16>, !tile.buffer<f16>, index, index
  }
  return
}
