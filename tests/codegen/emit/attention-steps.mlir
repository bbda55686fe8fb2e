// RUN: charonia-opt %s -emit-tiles=target=x86-64-v3 -split-input-file | FileCheck %s
// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -split-input-file | FileCheck %s --check-prefix=V4
// Keys of a step where there are 16 registers: those of a window, which is known, in two steps, as one would be
// written out; few for an open number of them, unless that is optimized for many.
// CHECK-LABEL: func.func @window
// CHECK:         scf.for
// CHECK:           tile.dot {{.*}} : tensor<30x32xf32>, tensor<32x16xf32> -> tensor<30x16xf32>
// CHECK:           tile.dot {{.*}} : tensor<32x30xf32>, tensor<30x16xf32> -> tensor<32x16xf32>
// V4-LABEL: func.func @window
// V4:         tile.dot {{.*}} : tensor<17x32xf32>, tensor<32x16xf32> -> tensor<17x16xf32>
// Rows that few are left of behind whole tiles are walked one by one.
// V4:         scf.for {{.*}} -> (tensor<f32>, tensor<f32>, tensor<32xf32>)
func.func @main(%q: tensor<4x3x49x32xf32>, %k: tensor<4x3x49x32xf32>, %v: tensor<4x3x49x32xf32>) -> tensor<4x3x49x32xf32> {
  %0 = graph.kernel "window"(%q, %k, %v) : (tensor<4x3x49x32xf32>, tensor<4x3x49x32xf32>, tensor<4x3x49x32xf32>) -> tensor<4x3x49x32xf32> {
  ^bb0(%a: tensor<4x3x49x32xf32>, %b: tensor<4x3x49x32xf32>, %c: tensor<4x3x49x32xf32>):
    %1 = graph.attention %a, %b, %c {scale = 0.25 : f64} : (tensor<4x3x49x32xf32>, tensor<4x3x49x32xf32>, tensor<4x3x49x32xf32>) -> tensor<4x3x49x32xf32>
    graph.yield %1 : tensor<4x3x49x32xf32>
  }
  return %0 : tensor<4x3x49x32xf32>
}

// -----

// CHECK-LABEL: func.func @open
// CHECK:         tile.dot {{.*}} : tensor<18x32xf32>, tensor<32x16xf32> -> tensor<18x16xf32>
// V4-LABEL: func.func @open
module attributes {graph.symbols = [{name = "n", min = 1, max = 4096, opt = 64, divisor = 1}]} {
  func.func @main(%q: tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>) -> tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>> {
    %0 = graph.kernel "open"(%q) : (tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>) -> tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>> {
    ^bb0(%a: tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>):
      %1 = graph.attention %a, %a, %a {scale = 0.25 : f64} : (tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>, tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>, tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>) -> tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>
      graph.yield %1 : tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>
    }
    return %0 : tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>
  }
}

// -----

// CHECK-LABEL: func.func @many
// CHECK:         tile.dot {{.*}} : tensor<36x32xf32>, tensor<32x16xf32> -> tensor<36x16xf32>
// V4-LABEL: func.func @many
module attributes {graph.symbols = [{name = "n", min = 1, max = 4096, opt = 256, divisor = 1}]} {
  func.func @main(%q: tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>) -> tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>> {
    %0 = graph.kernel "many"(%q) : (tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>) -> tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>> {
    ^bb0(%a: tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>):
      %1 = graph.attention %a, %a, %a {scale = 0.25 : f64} : (tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>, tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>, tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>) -> tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>
      graph.yield %1 : tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>
    }
    return %0 : tensor<1x3x?x32xf32, affine_map<()[s0] -> (1, 3, s0, 32)>>
  }
}

// -----

// Many rows in 32 registers: two vectors of queries, and behind six whole tiles five rows in a tile of half as many.
// V4-LABEL: func.func @half_a_tile
// V4:         tile.dot {{.*}} : tensor<33x32xf32>, tensor<32x32xf32> -> tensor<33x32xf32>
// V4:       } else {
// V4:         tile.dot {{.*}} : tensor<33x32xf32>, tensor<32x16xf32> -> tensor<33x16xf32>
func.func @main(%q: tensor<1x3x197x32xf32>) -> tensor<1x3x197x32xf32> {
  %0 = graph.kernel "half_a_tile"(%q) : (tensor<1x3x197x32xf32>) -> tensor<1x3x197x32xf32> {
  ^bb0(%a: tensor<1x3x197x32xf32>):
    %1 = graph.attention %a, %a, %a {scale = 0.25 : f64} : (tensor<1x3x197x32xf32>, tensor<1x3x197x32xf32>, tensor<1x3x197x32xf32>) -> tensor<1x3x197x32xf32>
    graph.yield %1 : tensor<1x3x197x32xf32>
  }
  return %0 : tensor<1x3x197x32xf32>
}

// -----

// Few rows behind them are walked one by one; where there is nothing behind them there is no branch.
// V4-LABEL: func.func @singles
// V4:         tile.dot {{.*}} : tensor<23x32xf32>, tensor<32x32xf32> -> tensor<23x32xf32>
// V4:       } else {
// V4:         scf.for {{.*}} -> (tensor<f32>, tensor<f32>, tensor<32xf32>)
// V4-LABEL: func.func @whole
// V4-NOT:     scf.if
// V4:         tile.dot {{.*}} : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
// V4-NOT:     scf.if
func.func @main(%q: tensor<1x3x68x32xf32>, %r: tensor<1x3x96x32xf32>) -> (tensor<1x3x68x32xf32>, tensor<1x3x96x32xf32>) {
  %0 = graph.kernel "singles"(%q) : (tensor<1x3x68x32xf32>) -> tensor<1x3x68x32xf32> {
  ^bb0(%a: tensor<1x3x68x32xf32>):
    %1 = graph.attention %a, %a, %a {scale = 0.25 : f64} : (tensor<1x3x68x32xf32>, tensor<1x3x68x32xf32>, tensor<1x3x68x32xf32>) -> tensor<1x3x68x32xf32>
    graph.yield %1 : tensor<1x3x68x32xf32>
  }
  %2 = graph.kernel "whole"(%r) : (tensor<1x3x96x32xf32>) -> tensor<1x3x96x32xf32> {
  ^bb0(%a: tensor<1x3x96x32xf32>):
    %3 = graph.attention %a, %a, %a {scale = 0.25 : f64} : (tensor<1x3x96x32xf32>, tensor<1x3x96x32xf32>, tensor<1x3x96x32xf32>) -> tensor<1x3x96x32xf32>
    graph.yield %3 : tensor<1x3x96x32xf32>
  }
  return %0, %2 : tensor<1x3x68x32xf32>, tensor<1x3x96x32xf32>
}
