// RUN: charonia-opt %s -emit-tiles=target=gpu -cse -canonicalize -mlir-print-local-scope | FileCheck %s

// A window of one element takes no part in the terms: channels past the end are past the
// end of their own dimension, without divisions that would break rows into elements.
// CHECK-LABEL: func.func @conv(
// CHECK:         tile.load %arg0
// CHECK-SAME:      map = affine_map<(d0, d1)[s0, s1] -> (d0 + s0 * 16, d1 + s1 * 128)>
// CHECK:         tile.load %arg1
// CHECK-SAME:      map = affine_map<(d0, d1)[s0] -> (d1, d0 + s0 * 128)>
module {
  func.func @main(%x: tensor<1x28x28x192xf16>, %w: tensor<32x1x1x192xf16>) -> tensor<1x28x28x32xf16> {
    %0 = graph.kernel "conv" (%x, %w) attributes {schedule = {groups = [{dims = array<i64: 3>, tile = 32 : i64, sequential = false}, {dims = array<i64: 1, 2>, tile = 16 : i64, sequential = false}], axes = array<i64: 1, 0>, k_tile = 128 : i64, warps = 4 : i64, stages = 3 : i64}} : (tensor<1x28x28x192xf16>, tensor<32x1x1x192xf16>) -> tensor<1x28x28x32xf16> {
    ^bb0(%a: tensor<1x28x28x192xf16>, %c: tensor<32x1x1x192xf16>):
      %1 = graph.conv %a, %c {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1, channels_last} : (tensor<1x28x28x192xf16>, tensor<32x1x1x192xf16>) -> tensor<1x28x28x32xf16>
      graph.yield %1 : tensor<1x28x28x32xf16>
    }
    return %0 : tensor<1x28x28x32xf16>
  }
}
