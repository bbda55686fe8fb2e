// Two numbers of each row, which other threads want: both are left in shared memory before either
// is read, so that all threads meet once for both, not twice for each.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90a --dump-dir %t --assemble=0 --ptx > /dev/null
// RUN: FileCheck %s < %t/rows.2-simt.mlir

// CHECK:      tile.reduce
// CHECK:      %[[A:.*]] = simt.alloc {offset = 0
// CHECK-NEXT: simt.store_shared %{{.*}}, %[[A]]
// CHECK-NOT:  simt.barrier
// CHECK:      tile.reduce
// CHECK:      %[[B:.*]] = simt.alloc {offset = 256
// CHECK-NEXT: simt.store_shared %{{.*}}, %[[B]]
// CHECK-NEXT: simt.barrier
// CHECK-DAG:  simt.load_shared %[[A]]
// CHECK-DAG:  simt.load_shared %[[B]]
// CHECK-NOT:  simt.barrier
// CHECK:      tile.store
func.func @rows(%arg0: !tile.buffer<f32>, %arg1: !tile.buffer<f32>, %arg2: !tile.buffer<f32>) attributes {tile.grid = affine_map<() -> (1)>, tile.kernel, tile.warps = 4 : i64} {
  %x = tile.load %arg0[] {checks = array<i64>, map = affine_map<(d0, d1) -> (d0, d1)>, rank = 2 : i64, shape = affine_map<() -> (64, 32)>} : (!tile.buffer<f32>) -> tensor<64x32xf32>
  %y = tile.load %arg1[] {checks = array<i64>, map = affine_map<(d0, d1) -> (d0, d1)>, rank = 2 : i64, shape = affine_map<() -> (64, 32)>} : (!tile.buffer<f32>) -> tensor<64x32xf32>
  %a = tile.reduce %x {axis = 1 : i64} : (tensor<64x32xf32>) -> tensor<64xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %b = tile.reduce %y {axis = 1 : i64} : (tensor<64x32xf32>) -> tensor<64xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    tile.yield %r : f32
  }
  %u = tile.broadcast %a {axes = array<i64: 0>} : tensor<64xf32> -> tensor<64x128xf32>
  %v = tile.broadcast %b {axes = array<i64: 0>} : tensor<64xf32> -> tensor<64x128xf32>
  %z = arith.mulf %u, %v : tensor<64x128xf32>
  tile.store %z, %arg2[] {checks = array<i64>, map = affine_map<(d0, d1) -> (d0, d1)>, rank = 2 : i64, shape = affine_map<() -> (64, 128)>} : tensor<64x128xf32>, !tile.buffer<f32>
  return
}
