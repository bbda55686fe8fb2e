// RUN: charonia-opt %s -print-cpu-code="stage=assembly isa=x86-64-v3" -o /dev/null | FileCheck %s
// RUN: charonia-opt %s -print-cpu-code="stage=assembly" -o /dev/null | FileCheck %s
// Registers do not hold a row of so many columns and of their sums beside each other: such a
// product is not staged (there would be no row in a block).
// CHECK-LABEL: wide:
// CHECK: vfmadd
// CHECK: retq
func.func @wide(%a: !tile.buffer<f32>, %b: !tile.buffer<i8>, %c: !tile.buffer<f32>) attributes {tile.kernel} {
  %init = arith.constant dense<0.0> : tensor<2x448xf32>
  %x = tile.load %a[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (2, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<2x64xf32>
  %q = tile.load %b[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (64, 448)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<i8>) -> tensor<64x448xi8>
  %y = arith.sitofp %q : tensor<64x448xi8> to tensor<64x448xf32>
  %sum = tile.dot %x, %y, %init : tensor<2x64xf32>, tensor<64x448xf32> -> tensor<2x448xf32>
  tile.store %sum, %c[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (2, 448)>, rank = 2 : i64, checks = array<i64>} : tensor<2x448xf32>, !tile.buffer<f32>
  return
}
