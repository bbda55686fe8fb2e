// RUN: charonia-opt %s -emit-tiles=target=sm_90a -cse -canonicalize -mlir-print-local-scope | FileCheck %s

// Sides are exchanged for dots alone. Columns of several groups in a tile make no dot, and
// what is zero around the image is the image, whose sigmoid is not.
// CHECK-LABEL: func.func @groups(
// CHECK:         %[[IMAGE:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x64x
// CHECK:         arith.mulf %[[IMAGE]], %{{.*}}
// CHECK-NOT:     tile.dot
module {
  func.func @main(%x: tensor<1x14x14x64xf16>, %w: tensor<64x3x3x16xf16>) -> tensor<1x14x14x64xf16> {
    %0 = graph.kernel "groups" (%x, %w) attributes {schedule = {groups = [{dims = array<i64: 3>, tile = 64 : i64}, {dims = array<i64: 1, 2>, tile = 64 : i64}], axes = array<i64: 1, 0>, k_tile = 64 : i64, warps = 4 : i64, stages = 4 : i64, swap = true}} : (tensor<1x14x14x64xf16>, tensor<64x3x3x16xf16>) -> tensor<1x14x14x64xf16> {
    ^bb0(%a: tensor<1x14x14x64xf16>, %c: tensor<64x3x3x16xf16>):
      %s = graph.sigmoid %a : (tensor<1x14x14x64xf16>) -> tensor<1x14x14x64xf16>
      %1 = graph.conv %s, %c {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 4, channels_last} : (tensor<1x14x14x64xf16>, tensor<64x3x3x16xf16>) -> tensor<1x14x14x64xf16>
      graph.yield %1 : tensor<1x14x14x64xf16>
    }
    return %0 : tensor<1x14x14x64xf16>
  }
}
