// A warp has a whole row: four neighbours a thread, then five exchanges between
// lanes, of what all registers of a thread sum up to.
// RUN: charonia-ptx %s --assemble=0 --ptx | FileCheck %s

// CHECK-LABEL: .entry scan(
// CHECK:       ld.global{{.*}}.v4.b32
// CHECK-COUNT-5: shfl.sync.bfly
// CHECK-NOT:   shfl
// CHECK:       st.global.v4.b32
func.func @scan(%A: !tile.buffer<f32>, %B: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1)>, tile.warps = 4 : i64} {
  %x = tile.load %A[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (4, 128)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<4x128xf32>
  %z = arith.constant dense<0.0> : tensor<4xf32>
  %y, %t = tile.scan %x, %z {axis = 1 : i64} : tensor<4x128xf32>, tensor<4xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    tile.yield %s : f32
  }
  tile.store %y, %B[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (4, 128)>, rank = 2 : i64, checks = array<i64>} : tensor<4x128xf32>, !tile.buffer<f32>
  return
}

// The network of comparisons: threads meet before it and after each step.
// CHECK-LABEL: .entry sort(
// CHECK:       st.global
// CHECK:       bar{{.*}}sync
// CHECK:       min.s64
// CHECK:       max.s64
// CHECK:       bar{{.*}}sync
func.func @sort(%A: !tile.buffer<i64>, %B: !tile.buffer<i64>, %n: index)
    attributes {tile.kernel, tile.grid = affine_map<()[s0] -> (1)>, tile.warps = 4 : i64} {
  %x = tile.load %A[%n] {map = affine_map<(d0)[s0] -> (d0)>, shape = affine_map<()[s0] -> (s0)>, rank = 1 : i64, checks = array<i64: 0>} : (!tile.buffer<i64>, index) -> tensor<1024xi64>
  tile.store %x, %B[%n] {map = affine_map<(d0)[s0] -> (d0)>, shape = affine_map<()[s0] -> (s0)>, rank = 1 : i64, checks = array<i64: 0>} : tensor<1024xi64>, !tile.buffer<i64>, index
  %zero = arith.constant 0 : index
  tile.sort %B[%zero, %n, %n] : !tile.buffer<i64>
  return
}
