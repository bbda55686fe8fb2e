// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 | FileCheck %s
// A matrix that lies along its terms by a vector: terms are the lanes of some sums side by side.
// CHECK-LABEL: func.func @column
// CHECK: tile.load %arg0{{.*}} -> tensor<8x16xf32>
// CHECK: tile.load %arg1{{.*}} -> tensor<16xf32>
// CHECK: tile.reduce {{.*}} : (tensor<8x16xf32>) -> tensor<8xf32>
// CHECK-LABEL: func.func @row
// CHECK: tile.load %arg1{{.*}} -> tensor<8x16xf32>
// CHECK: tile.reduce {{.*}} : (tensor<8x16xf32>) -> tensor<8xf32>
// So does a window with one filter: a step has channels of one place, and sums are added up once.
// CHECK-LABEL: func.func @filter
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: tile.load %arg0{{.*}} -> tensor<8x16xf32>
// CHECK: tile.reduce {{.*}} : (tensor<8x16xf32>) -> tensor<8xf32>
module {
  func.func @main(%x: tensor<1024x1024xf32>, %y: tensor<1024x1xf32>, %z: tensor<1x1024xf32>, %i: tensor<1x64x64x32xf32>, %f: tensor<1x3x3x32xf32>) -> tensor<1024x1xf32> {
    %0 = graph.kernel "column" (%x, %y) : (tensor<1024x1024xf32>, tensor<1024x1xf32>) -> tensor<1024x1xf32> {
    ^bb0(%a: tensor<1024x1024xf32>, %b: tensor<1024x1xf32>):
      %1 = graph.matmul %a, %b : (tensor<1024x1024xf32>, tensor<1024x1xf32>) -> tensor<1024x1xf32>
      graph.yield %1 : tensor<1024x1xf32>
    }
    %1 = graph.kernel "row" (%z, %x) : (tensor<1x1024xf32>, tensor<1024x1024xf32>) -> tensor<1x1024xf32> {
    ^bb0(%a: tensor<1x1024xf32>, %b: tensor<1024x1024xf32>):
      %2 = graph.transpose %b {permutation = array<i64: 1, 0>} : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
      %3 = graph.matmul %a, %2 : (tensor<1x1024xf32>, tensor<1024x1024xf32>) -> tensor<1x1024xf32>
      graph.yield %3 : tensor<1x1024xf32>
    }
    %2 = graph.kernel "filter" (%i, %f) : (tensor<1x64x64x32xf32>, tensor<1x3x3x32xf32>) -> tensor<1x64x64x1xf32> {
    ^bb0(%a: tensor<1x64x64x32xf32>, %b: tensor<1x3x3x32xf32>):
      %3 = graph.conv %a, %b {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x64x64x32xf32>, tensor<1x3x3x32xf32>) -> tensor<1x64x64x1xf32>
      graph.yield %3 : tensor<1x64x64x1xf32>
    }
    return %0 : tensor<1024x1xf32>
  }
}
