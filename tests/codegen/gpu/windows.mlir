// Neighbours of a window are one thread's: of four that lie beside each other, two columns
// wide, it loads eight elements, of which each serves up to five. One by one, as vectors of
// eight columns, it would load 40.
// RUN: charonia-ptx %s --assemble=0 --ptx | FileCheck %s

// CHECK-LABEL:   .entry window(
// CHECK-COUNT-8: ld.global{{.*}}16 {{.*}}[
// CHECK-NOT:     ld.global
// CHECK:         st.global
func.func @window(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1)>, tile.warps = 4 : i64} {
  %x0 = tile.load %A[] {map = affine_map<(d0, d1) -> (d0 + 0, d1)>, shape = affine_map<() -> (20, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>) -> tensor<16x64xf16>
  %x1 = tile.load %A[] {map = affine_map<(d0, d1) -> (d0 + 1, d1)>, shape = affine_map<() -> (20, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>) -> tensor<16x64xf16>
  %x2 = tile.load %A[] {map = affine_map<(d0, d1) -> (d0 + 2, d1)>, shape = affine_map<() -> (20, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>) -> tensor<16x64xf16>
  %x3 = tile.load %A[] {map = affine_map<(d0, d1) -> (d0 + 3, d1)>, shape = affine_map<() -> (20, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>) -> tensor<16x64xf16>
  %x4 = tile.load %A[] {map = affine_map<(d0, d1) -> (d0 + 4, d1)>, shape = affine_map<() -> (20, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>) -> tensor<16x64xf16>
  %s1 = arith.addf %x0, %x1 : tensor<16x64xf16>
  %s2 = arith.addf %s1, %x2 : tensor<16x64xf16>
  %s3 = arith.addf %s2, %x3 : tensor<16x64xf16>
  %s4 = arith.addf %s3, %x4 : tensor<16x64xf16>
  tile.store %s4, %B[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (16, 64)>, rank = 2 : i64, checks = array<i64>} : tensor<16x64xf16>, !tile.buffer<f16>
  return
}

// What is written in between is not taken from before.
// CHECK-LABEL:   .entry again(
// CHECK:         ld.global
// CHECK:         st.global
// CHECK:         ld.global
// CHECK:         st.global
func.func @again(%A: !tile.buffer<f32>, %B: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1)>, tile.warps = 1 : i64} {
  %p = tile.program_id : index
  %x = tile.load %A[%p] {map = affine_map<(d0)[s0] -> (d0 + s0)>, shape = affine_map<()[s0] -> (30)>, rank = 1 : i64, checks = array<i64: 0>} : (!tile.buffer<f32>, index) -> tensor<32xf32>
  tile.store %x, %B[%p] {map = affine_map<(d0)[s0] -> (d0 + s0)>, shape = affine_map<()[s0] -> (30)>, rank = 1 : i64, checks = array<i64: 0>} : tensor<32xf32>, !tile.buffer<f32>, index
  %y = tile.load %A[%p] {map = affine_map<(d0)[s0] -> (d0 + s0)>, shape = affine_map<()[s0] -> (30)>, rank = 1 : i64, checks = array<i64: 0>} : (!tile.buffer<f32>, index) -> tensor<32xf32>
  tile.store %y, %B[%p] {map = affine_map<(d0)[s0] -> (d0 + s0 + 32)>, shape = affine_map<()[s0] -> (62)>, rank = 1 : i64, checks = array<i64: 0>} : tensor<32xf32>, !tile.buffer<f32>, index
  return
}
