// RUN: charonia-opt %s -emit-tiles -cse -canonicalize | FileCheck %s
// RUN: charonia-opt %s -emit-tiles=target=gpu -cse -canonicalize | FileCheck %s

// What an operator gives is rounded by itself: a product is no part of the sum behind it. The squares of a normalization are
// its own.
// CHECK-LABEL: func.func @sum(
// CHECK-NOT:     arith.mulf {{.*}}contract
// CHECK:         arith.mulf %{{[^ ]*}}, %{{[^ ]*}} : tensor
// CHECK-NOT:     arith.mulf {{.*}}contract
// CHECK-LABEL: func.func @opposite(
// CHECK-NOT:     arith.mulf {{.*}}contract
// CHECK:         arith.subf
// CHECK-LABEL: func.func @norm(
// CHECK:         %[[D:.*]] = arith.subf
// CHECK:         arith.mulf %[[D]], %[[D]] fastmath<contract>
// CHECK:         arith.mulf %[[D]], %{{[^ ]*}} : tensor
// CHECK-NEXT:    tile.store
module {
  func.func @main(%x: tensor<8x4x37xf32>, %y: tensor<8x4x37xf32>, %z: tensor<8x64xf32>)
      -> (tensor<8x37xf32>, tensor<8x4x37xf32>, tensor<8x64xf32>) {
    %0 = graph.kernel "sum" (%x, %y) : (tensor<8x4x37xf32>, tensor<8x4x37xf32>) -> tensor<8x37xf32> {
    ^bb0(%a: tensor<8x4x37xf32>, %b: tensor<8x4x37xf32>):
      %p = graph.mul %a, %b : (tensor<8x4x37xf32>, tensor<8x4x37xf32>) -> tensor<8x4x37xf32>
      %s = graph.reduce sum %p {axes = array<i64: 1>} : (tensor<8x4x37xf32>) -> tensor<8x37xf32>
      graph.yield %s : tensor<8x37xf32>
    }
    %1 = graph.kernel "opposite" (%x, %y) : (tensor<8x4x37xf32>, tensor<8x4x37xf32>) -> tensor<8x4x37xf32> {
    ^bb0(%a: tensor<8x4x37xf32>, %b: tensor<8x4x37xf32>):
      %p = graph.mul %a, %b : (tensor<8x4x37xf32>, tensor<8x4x37xf32>) -> tensor<8x4x37xf32>
      %s = graph.sub %a, %p : (tensor<8x4x37xf32>, tensor<8x4x37xf32>) -> tensor<8x4x37xf32>
      graph.yield %s : tensor<8x4x37xf32>
    }
    %2 = graph.kernel "norm" (%z) : (tensor<8x64xf32>) -> tensor<8x64xf32> {
    ^bb0(%a: tensor<8x64xf32>):
      %n = graph.normalize %a {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<8x64xf32>) -> tensor<8x64xf32>
      graph.yield %n : tensor<8x64xf32>
    }
    return %0, %1, %2 : tensor<8x37xf32>, tensor<8x4x37xf32>, tensor<8x64xf32>
  }
}
