// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -cse -canonicalize -mlir-print-local-scope | FileCheck %s

// Rows that indices choose are added up a row at a time: the place of a row is one number, not one for each
// of its elements.
// CHECK-LABEL: func.func @sum(
// CHECK:         tile.load %arg1{{.*}} -> tensor<i32>
// CHECK:         tile.load %arg0{{.*}} (!tile.buffer<f32>, index, index, tensor<1xindex>) -> tensor<64xf32>
// CHECK-NOT:     tensor<64xindex>
module {
  func.func @main(%x: tensor<3x500x500xf32>, %i: tensor<6x224xui32>) -> tensor<3x224x500xf32> {
    %0 = graph.kernel "sum" (%x, %i) : (tensor<3x500x500xf32>, tensor<6x224xui32>) -> tensor<3x224x500xf32> {
    ^bb0(%a: tensor<3x500x500xf32>, %b: tensor<6x224xui32>):
      %1 = graph.gather %a, %b {axis = 1 : i64} : (tensor<3x500x500xf32>, tensor<6x224xui32>) -> tensor<3x6x224x500xf32>
      %2 = graph.reduce sum %1 {axes = array<i64: 1>} : (tensor<3x6x224x500xf32>) -> tensor<3x224x500xf32>
      graph.yield %2 : tensor<3x224x500xf32>
    }
    return %0 : tensor<3x224x500xf32>
  }
}
