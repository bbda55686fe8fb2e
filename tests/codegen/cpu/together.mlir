// RUN: charonia-opt %s --expand-math -print-cpu-code="stage=ir isa=x86-64-v3" -o /dev/null | FileCheck %s
// A long chain of arithmetic is taken step by step by four vectors together: the first loads of
// all stand in front of the first store.
// CHECK-LABEL: define {{.*}}@chain
// CHECK-COUNT-4: load <8 x float>
// CHECK: fdiv <8 x float>
// CHECK: store <8 x float>
// A short one is not.
// CHECK-LABEL: define {{.*}}@short
// CHECK: load <8 x float>
// CHECK: store <8 x float>
// CHECK: load <8 x float>
func.func @chain(%a: !tile.buffer<f32>, %b: !tile.buffer<f32>) attributes {tile.kernel} {
  %x = tile.load %a[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<32xf32>
  %y = math.tanh %x : tensor<32xf32>
  tile.store %y, %b[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : tensor<32xf32>, !tile.buffer<f32>
  return
}
func.func @short(%a: !tile.buffer<f32>, %b: !tile.buffer<f32>) attributes {tile.kernel} {
  %x = tile.load %a[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<32xf32>
  %y = arith.addf %x, %x : tensor<32xf32>
  tile.store %y, %b[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : tensor<32xf32>, !tile.buffer<f32>
  return
}
