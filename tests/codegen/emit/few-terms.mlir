// RUN: charonia-opt %s -emit-tiles -mlir-print-local-scope | FileCheck %s
// A product of few terms whose rows are neighbours in the result is stored across the tile in whole registers: 16 positions of 16
// channels, one tile after the other along the row (s0) before the next channels (s1).
// Where positions are one run in the operand, too, they are the lanes, and nothing is transposed.
// CHECK-LABEL: func.func @conv(
// CHECK:         tile.dot {{.*}} : tensor<4x3xf32>, tensor<3x96xf32> -> tensor<4x96xf32>
// CHECK:         tile.store
// CHECK-SAME:      map = affine_map<(d0, d1)[s0, s1] -> (d0 + s1 * 4, d1 + s0 * 96)>
// CHECK-LABEL: func.func @wide(
// CHECK:         %[[ROWS:.*]] = arith.constant 300 : index
// CHECK:         %[[ROW:.*]] = arith.remui %{{.*}}, %[[ROWS]]
// CHECK:         %[[COLUMN:.*]] = arith.divui %{{.*}}, %[[ROWS]]
// CHECK:         tile.dot {{.*}} -> tensor<16x16xf32>
// CHECK:         tile.store
// CHECK-SAME:      map = affine_map<(d0, d1)[s0, s1] -> (d1 + s1 * 16, d0 + s0 * 16)>
module {
  func.func @main(%x: tensor<1x4802x1xf32>, %w: tensor<512x3x1xf32>, %y: tensor<1x4802x2xf32>, %v: tensor<512x3x2xf32>) -> tensor<1x512x4800xf32> {
    %0 = graph.kernel "conv" (%x, %w) : (tensor<1x4802x1xf32>, tensor<512x3x1xf32>) -> tensor<1x512x4800xf32> {
    ^bb0(%a: tensor<1x4802x1xf32>, %c: tensor<512x3x1xf32>):
      %1 = graph.conv %a, %c {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, groups = 1, channels_last} : (tensor<1x4802x1xf32>, tensor<512x3x1xf32>) -> tensor<1x4800x512xf32>
      %2 = graph.transpose %1 {permutation = array<i64: 0, 2, 1>} : (tensor<1x4800x512xf32>) -> tensor<1x512x4800xf32>
      graph.yield %2 : tensor<1x512x4800xf32>
    }
    %1 = graph.kernel "wide" (%y, %v) : (tensor<1x4802x2xf32>, tensor<512x3x2xf32>) -> tensor<1x512x4800xf32> {
    ^bb0(%a: tensor<1x4802x2xf32>, %c: tensor<512x3x2xf32>):
      %1 = graph.conv %a, %c {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, groups = 1, channels_last} : (tensor<1x4802x2xf32>, tensor<512x3x2xf32>) -> tensor<1x4800x512xf32>
      %2 = graph.transpose %1 {permutation = array<i64: 0, 2, 1>} : (tensor<1x4800x512xf32>) -> tensor<1x512x4800xf32>
      graph.yield %2 : tensor<1x512x4800xf32>
    }
    return %0 : tensor<1x512x4800xf32>
  }
}
