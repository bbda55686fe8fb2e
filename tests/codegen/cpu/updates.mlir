// RUN: not charonia-opt %s -print-cpu-code -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: a CPU does not update what several program instances share
func.func @add(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>) attributes {tile.kernel} {
  %t = tile.load %x[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (16)>, rank = 1, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<16xf32>
  tile.store %t, %y[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (16)>, rank = 1, checks = array<i64>, update = 1 : i32} : tensor<16xf32>, !tile.buffer<f32>
  return
}
