// RUN: charonia-opt %s -emit-tiles=target=sm_90a -cse -canonicalize -mlir-print-local-scope | FileCheck %s

// A result of cells: a tile is one, 8 x 8 places of 32 channels, and stores its
// sum beside its elements. What it has past the end of the image counts as 0.
// CHECK-LABEL: func.func @conv(
// CHECK-SAME:    tile.grid = affine_map<() -> (12)>
// CHECK-SAME:    tile.warps = 8
// CHECK:         %[[OUT:.*]] = arith.truncf %[[SUM:.*]] : tensor<8x8x32xf32>
// CHECK:         tile.store %[[OUT]], %arg2
// CHECK:         %[[IN:.*]] = tile.in_bounds{{.*}} {map = affine_map<(d0, d1, d2)[s0, s1] -> (d0 + s1 * 8, d1 + s0 * 8)>, shape = affine_map<{{.*}} -> (14, 14)>}
// CHECK:         %[[OWN:.*]] = arith.select %[[IN]], %[[SUM]]
// CHECK:         tile.reduce %[[OWN]] {axis = 1 : i64} : (tensor<8x8x32xf32>) -> tensor<8x32xf32>
// CHECK:         %[[CELL:.*]] = tile.reduce {{.*}} {axis = 0 : i64} : (tensor<8x32xf32>) -> tensor<32xf32>
// CHECK:         tile.store %[[CELL]], %arg3{{.*}} {checks = array<i64>, map = affine_map<(d0)[s0, s1, s2] -> (s2, s1, d0 + s0 * 32)>
module {
  func.func @main(%x: tensor<1x14x14x96xf16>, %w: tensor<3x3x1x96xf16>) -> (tensor<1x14x14x96xf16>, tensor<1x2x2x96xf32>) {
    %0:2 = graph.kernel "conv" (%x, %w) : (tensor<1x14x14x96xf16>, tensor<3x3x1x96xf16>) -> (tensor<1x14x14x96xf16>, tensor<1x2x2x96xf32>) {
    ^bb0(%a: tensor<1x14x14x96xf16>, %b: tensor<3x3x1x96xf16>):
      %v = graph.transpose %b {permutation = array<i64: 3, 0, 1, 2>} : (tensor<3x3x1x96xf16>) -> tensor<96x3x3x1xf16>
      %1 = graph.conv %a, %v {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 96 : i64} : (tensor<1x14x14x96xf16>, tensor<96x3x3x1xf16>) -> tensor<1x14x14x96xf16>
      %2 = graph.cast %1 {to = f32} : (tensor<1x14x14x96xf16>) -> tensor<1x14x14x96xf32>
      %3 = graph.pool sum %2 {ceil_mode, channels_last, kernel = array<i64: 8, 8>, strides = array<i64: 8, 8>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x14x14x96xf32>) -> tensor<1x2x2x96xf32>
      graph.yield %1, %3 : tensor<1x14x14x96xf16>, tensor<1x2x2x96xf32>
    }
    return %0#0, %0#1 : tensor<1x14x14x96xf16>, tensor<1x2x2x96xf32>
  }
}
