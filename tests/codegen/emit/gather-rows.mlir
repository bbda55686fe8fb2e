// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -cse -canonicalize -mlir-print-local-scope | FileCheck %s

// What indices choose as wholes is one run of memory, whatever dimensions it has: tiles run along it, and the indices are no
// part of what they read.
// CHECK-LABEL: func.func @rows
// CHECK: tile.load %arg1[%{{.*}}] {{.*}}-> tensor<i64>
// CHECK: tile.load %arg0{{.*}}shape = affine_map<()[s0, s1, s2, s3] -> (100, 1, s0 * 64)>{{.*}} -> tensor<128xf32>
// CHECK: tile.store {{.*}}shape = affine_map<()[s0, s1, s2] -> (800, s0 * 64)>

// Tuples of indices lie along a dimension of their own.
// CHECK-LABEL: func.func @tuples
// CHECK: tile.store {{.*}}shape = affine_map<()[s0, s1, s2] -> (7, s0 * 64)>
module attributes {graph.symbols = [{name = "n", min = 1, opt = 128, max = 4096, divisor = 1}]} {
  func.func @main(%x: tensor<100x1x64x?xf32, affine_map<()[s0] -> (100, 1, 64, s0)>>, %i: tensor<8xi64>, %j: tensor<7x2xi64>) -> (tensor<100x8x64x?xf32, affine_map<()[s0] -> (100, 8, 64, s0)>>, tensor<7x64x?xf32, affine_map<()[s0] -> (7, 64, s0)>>) {
    %0 = graph.kernel "rows" (%x, %i) : (tensor<100x1x64x?xf32, affine_map<()[s0] -> (100, 1, 64, s0)>>, tensor<8xi64>) -> tensor<100x8x64x?xf32, affine_map<()[s0] -> (100, 8, 64, s0)>> {
    ^bb0(%a: tensor<100x1x64x?xf32, affine_map<()[s0] -> (100, 1, 64, s0)>>, %b: tensor<8xi64>):
      %g = graph.gather %a, %b {axis = 1 : i64} : (tensor<100x1x64x?xf32, affine_map<()[s0] -> (100, 1, 64, s0)>>, tensor<8xi64>) -> tensor<100x8x64x?xf32, affine_map<()[s0] -> (100, 8, 64, s0)>>
      graph.yield %g : tensor<100x8x64x?xf32, affine_map<()[s0] -> (100, 8, 64, s0)>>
    }
    %1 = graph.kernel "tuples" (%x, %j) : (tensor<100x1x64x?xf32, affine_map<()[s0] -> (100, 1, 64, s0)>>, tensor<7x2xi64>) -> tensor<7x64x?xf32, affine_map<()[s0] -> (7, 64, s0)>> {
    ^bb0(%a: tensor<100x1x64x?xf32, affine_map<()[s0] -> (100, 1, 64, s0)>>, %b: tensor<7x2xi64>):
      %g = graph.gather_nd %a, %b {batch_dims = 0 : i64} : (tensor<100x1x64x?xf32, affine_map<()[s0] -> (100, 1, 64, s0)>>, tensor<7x2xi64>) -> tensor<7x64x?xf32, affine_map<()[s0] -> (7, 64, s0)>>
      graph.yield %g : tensor<7x64x?xf32, affine_map<()[s0] -> (7, 64, s0)>>
    }
    return %0, %1 : tensor<100x8x64x?xf32, affine_map<()[s0] -> (100, 8, 64, s0)>>, tensor<7x64x?xf32, affine_map<()[s0] -> (7, 64, s0)>>
  }
}
