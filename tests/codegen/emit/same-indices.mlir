// RUN: charonia-opt %s -emit-tiles=target=sm_90 -cse -canonicalize -mlir-print-local-scope | FileCheck %s

// What is found by the same indices is one thread's: an index is read, and its place worked out, once
// for four channels.
// CHECK-LABEL: func.func @sample(
// CHECK-SAME:    tile.grid = affine_map<() -> (1024)>
// CHECK:         tile.load %arg1{{.*}} -> tensor<2x256xi64>
// CHECK:         tile.load %arg0{{.*}} tensor<1x2x256xindex>) -> tensor<4x2x256xf32>

// Of rows of 768 a tile of 1024 would leave every fourth thread idle.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    tile.grid = affine_map<() -> (3072)>
// CHECK:         tile.store {{.*}} tensor<4x256xf32>
module {
  func.func @main(%x: tensor<1x32x65536xf32>, %i: tensor<1x256x256x1xi64>, %w: tensor<50257x768xf32>, %j: tensor<4096xi64>)
      -> (tensor<1x32x256x256xf32>, tensor<4096x768xf32>) {
    %0 = graph.kernel "sample" (%x, %i) : (tensor<1x32x65536xf32>, tensor<1x256x256x1xi64>) -> tensor<1x32x256x256xf32> {
    ^bb0(%a: tensor<1x32x65536xf32>, %b: tensor<1x256x256x1xi64>):
      %1 = graph.transpose %a {permutation = array<i64: 0, 2, 1>} : (tensor<1x32x65536xf32>) -> tensor<1x65536x32xf32>
      %2 = graph.gather_nd %1, %b {batch_dims = 1 : i64} : (tensor<1x65536x32xf32>, tensor<1x256x256x1xi64>) -> tensor<1x256x256x32xf32>
      %3 = graph.transpose %2 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x256x256x32xf32>) -> tensor<1x32x256x256xf32>
      graph.yield %3 : tensor<1x32x256x256xf32>
    }
    %4 = graph.kernel "rows" (%w, %j) : (tensor<50257x768xf32>, tensor<4096xi64>) -> tensor<4096x768xf32> {
    ^bb0(%a: tensor<50257x768xf32>, %b: tensor<4096xi64>):
      %1 = graph.gather %a, %b {axis = 0 : i64} : (tensor<50257x768xf32>, tensor<4096xi64>) -> tensor<4096x768xf32>
      graph.yield %1 : tensor<4096x768xf32>
    }
    return %0, %4 : tensor<1x32x256x256xf32>, tensor<4096x768xf32>
  }
}
