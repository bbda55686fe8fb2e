// RUN: charonia-opt %s -emit-tiles=target=x86-64-v3 -cse -canonicalize -split-input-file -mlir-print-local-scope | FileCheck %s

// Of open sizes: tiles that lie inside as a whole look at no element's place, and nothing of the others is read for
// them. In the loop over the tiles of a row, too, not in that row's last one alone.
// CHECK-LABEL: func.func @pool(
// CHECK:         } else {
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK-NOT:           tile.load
// CHECK:               scf.if
// CHECK:                 tile.load %arg0{{.*}} {checks = array<i64>,
// CHECK:                 tile.load %arg0{{.*}} {checks = array<i64>,
// CHECK:                 tile.load %arg0{{.*}} {checks = array<i64>,
// CHECK-NOT:             tile.load
// CHECK:               } else {
// CHECK:                 tile.load %arg0{{.*}} {checks = array<i64: 2>,
module attributes {graph.symbols = [{name = "h", min = 1, max = 1048576, opt = 128, divisor = 1}, {name = "w", min = 1, max = 1048576, opt = 128, divisor = 1}]} {
  func.func @main(%x: tensor<1x64x?x?xf32, affine_map<()[s0, s1] -> (1, 64, s0, s1)>>) -> tensor<1x64x?x?xf32, affine_map<()[s0, s1] -> (1, 64, (s0 + 1) floordiv 2, (s1 + 1) floordiv 2)>> {
    %0 = graph.kernel "pool"(%x) : (tensor<1x64x?x?xf32, affine_map<()[s0, s1] -> (1, 64, s0, s1)>>) -> tensor<1x64x?x?xf32, affine_map<()[s0, s1] -> (1, 64, (s0 + 1) floordiv 2, (s1 + 1) floordiv 2)>> {
    ^bb0(%a: tensor<1x64x?x?xf32, affine_map<()[s0, s1] -> (1, 64, s0, s1)>>):
      %1 = graph.pool max %a {dilations = array<i64: 1, 1>, kernel = array<i64: 3, 3>, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<1x64x?x?xf32, affine_map<()[s0, s1] -> (1, 64, s0, s1)>>) -> tensor<1x64x?x?xf32, affine_map<()[s0, s1] -> (1, 64, (s0 + 1) floordiv 2, (s1 + 1) floordiv 2)>>
      graph.yield %1 : tensor<1x64x?x?xf32, affine_map<()[s0, s1] -> (1, 64, (s0 + 1) floordiv 2, (s1 + 1) floordiv 2)>>
    }
    return %0 : tensor<1x64x?x?xf32, affine_map<()[s0, s1] -> (1, 64, (s0 + 1) floordiv 2, (s1 + 1) floordiv 2)>>
  }
}

// -----

// So are windows of a channel alone, rows and columns.
// CHECK-LABEL: func.func @conv(
// CHECK-NOT:     tile.load %arg0
// CHECK:         %[[ROW:.*]] = arith.andi
// CHECK:         %[[BOTH:.*]] = arith.andi %[[ROW]], %{{.*}}
// CHECK:         scf.if %[[BOTH]]
// CHECK-COUNT-9:   tile.load %arg0{{.*}} {checks = array<i64>,
// CHECK:         } else {
// CHECK:           tile.load %arg0{{.*}} {checks = array<i64: 1, 2>,
module attributes {graph.symbols = [{name = "h", min = 1, max = 1048576, opt = 128, divisor = 1}, {name = "w", min = 1, max = 1048576, opt = 128, divisor = 1}]} {
  func.func @main(%x: tensor<1x?x?x64xf32, affine_map<()[s0, s1] -> (1, s0, s1, 64)>>, %w: tensor<64x3x3x1xf32>) -> tensor<1x?x?x64xf32, affine_map<()[s0, s1] -> (1, s0, s1, 64)>> {
    %0 = graph.kernel "conv"(%x, %w) : (tensor<1x?x?x64xf32, affine_map<()[s0, s1] -> (1, s0, s1, 64)>>, tensor<64x3x3x1xf32>) -> tensor<1x?x?x64xf32, affine_map<()[s0, s1] -> (1, s0, s1, 64)>> {
    ^bb0(%a: tensor<1x?x?x64xf32, affine_map<()[s0, s1] -> (1, s0, s1, 64)>>, %f: tensor<64x3x3x1xf32>):
      %1 = graph.conv %a, %f {channels_last, dilations = array<i64: 1, 1>, groups = 64 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x?x?x64xf32, affine_map<()[s0, s1] -> (1, s0, s1, 64)>>, tensor<64x3x3x1xf32>) -> tensor<1x?x?x64xf32, affine_map<()[s0, s1] -> (1, s0, s1, 64)>>
      graph.yield %1 : tensor<1x?x?x64xf32, affine_map<()[s0, s1] -> (1, s0, s1, 64)>>
    }
    return %0 : tensor<1x?x?x64xf32, affine_map<()[s0, s1] -> (1, s0, s1, 64)>>
  }
}

// -----

// And memory that a constant surrounds.
// CHECK-LABEL: func.func @pad(
// CHECK-NOT:     tile.load
// CHECK:         scf.if
// CHECK:           tile.load %arg0{{.*}} {checks = array<i64>,
// CHECK-NOT:       tile.in_bounds
// CHECK:         } else {
// CHECK:           tile.in_bounds
module attributes {graph.symbols = [{name = "h", min = 1, max = 1048576, opt = 128, divisor = 1}, {name = "w", min = 1, max = 1048576, opt = 128, divisor = 1}]} {
  func.func @main(%x: tensor<64x?x?xf32, affine_map<()[s0, s1] -> (64, s0, s1)>>) -> tensor<64x?x?xf32, affine_map<()[s0, s1] -> (64, s0 + 2, s1 + 2)>> {
    %0 = graph.kernel "pad"(%x) : (tensor<64x?x?xf32, affine_map<()[s0, s1] -> (64, s0, s1)>>) -> tensor<64x?x?xf32, affine_map<()[s0, s1] -> (64, s0 + 2, s1 + 2)>> {
    ^bb0(%a: tensor<64x?x?xf32, affine_map<()[s0, s1] -> (64, s0, s1)>>):
      %1 = graph.constant dense<1.0> : tensor<f32>
      %2 = graph.pad constant %a, %1 {lows = affine_map<()[s0, s1] -> (0, 1, 1)>} : (tensor<64x?x?xf32, affine_map<()[s0, s1] -> (64, s0, s1)>>, tensor<f32>) -> tensor<64x?x?xf32, affine_map<()[s0, s1] -> (64, s0 + 2, s1 + 2)>>
      graph.yield %2 : tensor<64x?x?xf32, affine_map<()[s0, s1] -> (64, s0 + 2, s1 + 2)>>
    }
    return %0 : tensor<64x?x?xf32, affine_map<()[s0, s1] -> (64, s0 + 2, s1 + 2)>>
  }
}
