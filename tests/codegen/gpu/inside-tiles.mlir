// Rows of 20001 numbers in tiles of 4096, which begin at a multiple of 16 bytes: five, of which the
// first begins in front of the row and the last ends behind it. The three between look at no element's
// place; the first is taken last, and where the row is written both ends have loops of their own.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90a --boxes=0 --dump-dir %t --assemble=0 --ptx > %t/out
// RUN: FileCheck %s < %t/rows.1-layouts.mlir

// CHECK:     simt.wait_async 3
// CHECK-NOT: tile.in_bounds
// CHECK:     simt.wait_async 2
// CHECK:     simt.wait_async 1
// CHECK:     simt.wait_async 0
// CHECK-NOT: simt.wait_async
// CHECK:     tile.in_bounds[%c4
// CHECK:     tile.in_bounds[%c0
// CHECK-NOT: tile.in_bounds
// CHECK:     scf.for
// CHECK:       tile.store {{.*}}checks = array<i64: 1>
// CHECK:     scf.for %{{.*}} = %c1{{.*}} to %c4
// CHECK:       tile.store {{.*}}checks = array<i64>
// CHECK:     scf.for %{{.*}} = %c4{{.*}} to %c5
// CHECK:       tile.store {{.*}}checks = array<i64: 1>
func.func @rows(%arg0: !tile.buffer<f16>, %arg1: !tile.buffer<f16>) attributes {tile.grid = affine_map<() -> (4)>, tile.kernel, tile.warps = 16 : i64} {
  %row = tile.program_id : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %least = arith.constant dense<0xFC00> : tensor<4096xf16>
  %most = scf.for %i = %c0 to %c5 step %c1 iter_args(%top = %least) -> (tensor<4096xf16>) {
    %x = tile.load %arg0[%row, %i] {checks = array<i64: 1>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 4096)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 20001)>} : (!tile.buffer<f16>, index, index) -> tensor<4096xf16>
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
    %x = tile.load %arg0[%row, %i] {checks = array<i64: 1>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 4096)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 20001)>} : (!tile.buffer<f16>, index, index) -> tensor<4096xf16>
    %y = arith.subf %x, %wide : tensor<4096xf16>
    tile.store %y, %arg1[%row, %i] {checks = array<i64: 1>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 4096)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 20001)>} : tensor<4096xf16>, !tile.buffer<f16>, index, index
  }
  return
}
