// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -mlir-print-local-scope | FileCheck %s

// One filter of few channels: those of one place are the lanes, half of a register, and sums of eight results
// are side by side. No element looks at its own place.
// CHECK-LABEL: func.func @filter
// CHECK: scf.for {{.*}} -> (tensor<8x8xf32>)
// CHECK: tile.load %arg0{{.*}}d1)>,{{.*}} -> tensor<8x8xf32>
// CHECK: tile.load %arg1{{.*}} -> tensor<8xf32>
// CHECK: tile.reduce {{.*}} : (tensor<8x8xf32>) -> tensor<8xf32>
module {
  func.func @main(%x: tensor<1x64x64x8xf32>, %w: tensor<1x3x3x8xf32>) -> tensor<1x64x64x1xf32> {
    %0 = graph.kernel "filter" (%x, %w) : (tensor<1x64x64x8xf32>, tensor<1x3x3x8xf32>) -> tensor<1x64x64x1xf32> {
    ^bb0(%a: tensor<1x64x64x8xf32>, %f: tensor<1x3x3x8xf32>):
      %1 = graph.conv %a, %f {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64}
        : (tensor<1x64x64x8xf32>, tensor<1x3x3x8xf32>) -> tensor<1x64x64x1xf32>
      graph.yield %1 : tensor<1x64x64x1xf32>
    }
    return %0 : tensor<1x64x64x1xf32>
  }
}
