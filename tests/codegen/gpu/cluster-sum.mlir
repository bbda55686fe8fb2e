// A cluster: each leaves all it has, waits for the others and adds up its share of the
// columns, which is half of a thread's registers here.
// RUN: charonia-ptx %s --arch sm_90a --boxes=0 --assemble=0 --ptx | FileCheck %s

// CHECK-LABEL: .entry shared(
// CHECK-COUNT-8: st.global.v4.b32
// CHECK-NOT:   st.global
// CHECK:       barrier.cluster.arrive.aligned
// CHECK-NEXT:  barrier.cluster.wait.aligned
// CHECK-COUNT-8: ld.global.v4.b32
// CHECK-NOT:   ld.global.v4.b32
// CHECK:       st.global
func.func @shared(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f32>, %S: !tile.buffer<f32>, %N: !tile.buffer<i32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (2)>, tile.warps = 4 : i64} {
  %part = tile.program_id : index
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.load %A[%part] {map = affine_map<(d0, d1)[s0] -> (d0, s0 * 64 + d1)>, shape = affine_map<()[s0] -> (64, 128)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<64x64xf16>
  %w = tile.load %B[%part] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (128, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<64x64xf16>
  %p = tile.dot %x, %w, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  %s = tile.split_sum %p, %S, %N[%c0, %part] {parts = 2 : i64, shared_axis = 1 : i64} : tensor<64x64xf32>, !tile.buffer<f32>, !tile.buffer<i32>
  tile.store %s, %C[%part] {map = affine_map<(d0, d1)[s0] -> (d0, d1, d1 - s0 * 32)>, shape = affine_map<()[s0] -> (64, 64, 32)>, rank = 2 : i64, checks = array<i64: 2>} : tensor<64x64xf32>, !tile.buffer<f32>, index
  return
}
