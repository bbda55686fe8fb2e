// RUN: charonia-opt %s -emit-tiles=target=sm_90a -cse -canonicalize -mlir-print-local-scope | FileCheck %s

// Convolutions of each channel alone, on a GPU: a thread has 8 neighbouring channels of
// a place, rows of the window are loops of their own, terms are taken one by one.
// CHECK-LABEL: func.func @conv(
// CHECK-SAME:    tile.grid = affine_map<() -> (294)>
// CHECK:         scf.for {{.*}} -> (tensor<4x8x32xf32>)
// CHECK-COUNT-7:   tile.load %arg0{{.*}} -> tensor<4x8x32xf16>
// CHECK-NOT:       tile.load %arg0
// CHECK-NOT:     tile.reduce
// CHECK:         tile.store {{.*}} : tensor<4x8x32xf16>
module {
  func.func @main(%x: tensor<1x56x56x96xf16>, %w: tensor<7x7x1x96xf16>) -> tensor<1x56x56x96xf16> {
    %0 = graph.kernel "conv" (%x, %w) : (tensor<1x56x56x96xf16>, tensor<7x7x1x96xf16>) -> tensor<1x56x56x96xf16> {
    ^bb0(%a: tensor<1x56x56x96xf16>, %b: tensor<7x7x1x96xf16>):
      %v = graph.transpose %b {permutation = array<i64: 3, 0, 1, 2>} : (tensor<7x7x1x96xf16>) -> tensor<96x7x7x1xf16>
      %1 = graph.conv %a, %v {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 3, 3, 3, 3>, dilations = array<i64: 1, 1>, groups = 96 : i64} : (tensor<1x56x56x96xf16>, tensor<96x7x7x1xf16>) -> tensor<1x56x56x96xf16>
      graph.yield %1 : tensor<1x56x56x96xf16>
    }
    return %0 : tensor<1x56x56x96xf16>
  }
}
