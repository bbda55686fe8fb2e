// RUN: charonia-opt %s -emit-tiles -cse -canonicalize | FileCheck %s
// Packed weights are read through views in unit steps; padding is a check.
// CHECK-DAG: #[[WEIGHTS:.*]] = affine_map<(d0, d1)[s0, s1, s2, s3] -> (s0, s1, s2, d0 + s3 * 8, d1)>
// CHECK-LABEL: func.func @conv
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile.load {{.*}}checks = array<i64: 4, 1, 2>
// CHECK: tile.load {{.*}}checks = array<i64>, map = #[[WEIGHTS]]
// CHECK: tile.dot
module attributes {graph.symbols = [{name = "batch", min = 1, opt = 1, max = 64, divisor = 1}]} {
  func.func @main(%x: tensor<?x14x14x256xf32, affine_map<()[s0] -> (s0, 14,14,256)>>, %p: tensor<8x3x3x256x32xf32>) -> tensor<?x7x7x256xf32, affine_map<()[s0] -> (s0, 7,7,256)>> {
    %0 = graph.kernel "conv" (%x, %p) : (tensor<?x14x14x256xf32, affine_map<()[s0] -> (s0, 14,14,256)>>, tensor<8x3x3x256x32xf32>) -> tensor<?x7x7x256xf32, affine_map<()[s0] -> (s0, 7,7,256)>> {
    ^bb0(%a: tensor<?x14x14x256xf32, affine_map<()[s0] -> (s0, 14,14,256)>>, %c: tensor<8x3x3x256x32xf32>):
      %t = graph.transpose %c {permutation = array<i64: 0, 4, 1, 2, 3>} : (tensor<8x3x3x256x32xf32>) -> tensor<8x32x3x3x256xf32>
      %w = graph.reshape %t : (tensor<8x32x3x3x256xf32>) -> tensor<256x3x3x256xf32>
      %1 = graph.conv %a, %w {strides = array<i64: 2, 2>, pads = array<i64: 1,1,1,1>, dilations = array<i64: 1,1>, groups = 1, channels_last} : (tensor<?x14x14x256xf32, affine_map<()[s0] -> (s0, 14,14,256)>>, tensor<256x3x3x256xf32>) -> tensor<?x7x7x256xf32, affine_map<()[s0] -> (s0, 7,7,256)>>
      graph.yield %1 : tensor<?x7x7x256xf32, affine_map<()[s0] -> (s0, 7,7,256)>>
    }
    return %0 : tensor<?x7x7x256xf32, affine_map<()[s0] -> (s0, 7,7,256)>>
  }
}
