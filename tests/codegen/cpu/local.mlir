// RUN: charonia-opt %s -print-cpu-code="stage=assembly" -o /dev/null | FileCheck %s
// What a walk keeps lies in the caller's scratch memory (%r8); another walk reads it there.
// CHECK-LABEL: keep:
// CHECK: vmulps
// CHECK: vmov{{[au]}}ps %zmm{{[0-9]+}}, {{.*}}(%r8
// CHECK: vmov{{[au]}}ps {{.*}}(%r8{{.*}}, %zmm
func.func @keep(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>) attributes {tile.kernel} {
  %local = tile.local 256 : !tile.buffer<f32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c16 step %c1 {
    %a = tile.load %x[%i] {map = affine_map<(d0)[s0] -> (s0 * 16 + d0)>, shape = affine_map<()[s0] -> (256)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<16xf32>
    %b = arith.mulf %a, %a : tensor<16xf32>
    tile.store %b, %local[%i] {map = affine_map<(d0)[s0] -> (s0 * 16 + d0)>, shape = affine_map<()[s0] -> (256)>, rank = 1 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index
  }
  scf.for %i = %c0 to %c16 step %c1 {
    %a = tile.load %local[%i] {map = affine_map<(d0)[s0] -> (s0 * 16 + d0)>, shape = affine_map<()[s0] -> (256)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<16xf32>
    %b = arith.addf %a, %a : tensor<16xf32>
    tile.store %b, %y[%i] {map = affine_map<(d0)[s0] -> (s0 * 16 + d0)>, shape = affine_map<()[s0] -> (256)>, rank = 1 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index
  }
  return
}
