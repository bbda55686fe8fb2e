// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -cse -canonicalize -split-input-file -mlir-print-local-scope | FileCheck %s
// RUN: charonia-opt %s -emit-tiles=target=sm_80 -cse -canonicalize -split-input-file -mlir-print-local-scope | FileCheck %s --check-prefix=GPU

// Rows of 1000 in steps of 64 on a CPU: only what lies behind the last whole step looks at
// places.
// CHECK-LABEL: func.func @reduce(
// CHECK:         scf.for
// CHECK-NOT:       tile.in_bounds
// CHECK:           tile.load {{.*}}checks = array<i64>,
// CHECK-NOT:       tile.in_bounds
// CHECK:           scf.yield
// CHECK:         tile.load {{.*}}checks = array<i64: 1>
// CHECK:         tile.in_bounds
module {
  func.func @main(%x: tensor<64x1000xf32>) -> tensor<64xf32> {
    %0 = graph.kernel "reduce" (%x) : (tensor<64x1000xf32>) -> tensor<64xf32> {
    ^bb0(%a: tensor<64x1000xf32>):
      %1 = graph.reduce max %a {axes = array<i64: 1>} : (tensor<64x1000xf32>) -> tensor<64xf32>
      graph.yield %1 : tensor<64xf32>
    }
    return %0 : tensor<64xf32>
  }
}

// -----

// A group's row of 2352 elements, which no tile divides: its sums are one number, though
// the tile's elements past the end would lie in the next row.
// CHECK-LABEL: func.func @normalize(
// CHECK-COUNT-2: tile.reduce {{.*}} -> tensor<f32>
// CHECK-NOT:     tile.reduce
// GPU-LABEL:   func.func @normalize(
// GPU-COUNT-2:   tile.reduce {{.*}} -> tensor<f32>
// GPU-NOT:       tile.reduce
// GPU:           tile.store {{.*}}checks = array<i64: {{[0-9]}}>
module {
  func.func @main(%x: tensor<2x96x14x14xf32>, %s: tensor<96x1x1xf32>) -> tensor<2x8x2352xf32> {
    %0 = graph.kernel "normalize" (%x, %s) : (tensor<2x96x14x14xf32>, tensor<96x1x1xf32>) -> tensor<2x8x2352xf32> {
    ^bb0(%a: tensor<2x96x14x14xf32>, %b: tensor<96x1x1xf32>):
      %1 = graph.reshape %a : (tensor<2x96x14x14xf32>) -> tensor<2x8x2352xf32>
      %2 = graph.normalize %1 {axes = array<i64: 2>, epsilon = 1.0e-5 : f64} : (tensor<2x8x2352xf32>) -> tensor<2x8x2352xf32>
      %3 = graph.reshape %2 : (tensor<2x8x2352xf32>) -> tensor<2x96x14x14xf32>
      %4 = graph.mul %3, %b : (tensor<2x96x14x14xf32>, tensor<96x1x1xf32>) -> tensor<2x96x14x14xf32>
      %5 = graph.reshape %4 : (tensor<2x96x14x14xf32>) -> tensor<2x8x2352xf32>
      graph.yield %5 : tensor<2x8x2352xf32>
    }
    return %0 : tensor<2x8x2352xf32>
  }
}
