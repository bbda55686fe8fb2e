// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -split-input-file -mlir-print-local-scope | FileCheck %s

// An open number of rows by a column: several sums side by side, though one row is what is optimized for,
// and fewer where there are no more.
// CHECK-LABEL: func.func @column
// CHECK-SAME: tile.grid = affine_map<()[s0] -> ((s0 + 7) floordiv 8)>
// CHECK: scf.if
// CHECK: scf.for {{.*}} -> (tensor<8x16xf32>)
// CHECK: else
// CHECK: tile.store {{.*}} tensor<f32>,
// CHECK: tile.store {{.*}} tensor<2xf32>,
// CHECK: tile.store {{.*}} tensor<4xf32>,
module attributes {graph.symbols = [{name = "batch", min = 1, opt = 1, max = 64, divisor = 1}]} {
  func.func @main(%x: tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>, %w: tensor<64x1xf32>) -> tensor<?x1xf32, affine_map<()[s0] -> (s0, 1)>> {
    %0 = graph.kernel "column" (%x, %w) : (tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>, tensor<64x1xf32>) -> tensor<?x1xf32, affine_map<()[s0] -> (s0, 1)>> {
    ^bb0(%a: tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>, %c: tensor<64x1xf32>):
      %1 = graph.matmul %a, %c : (tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>, tensor<64x1xf32>) -> tensor<?x1xf32, affine_map<()[s0] -> (s0, 1)>>
      graph.yield %1 : tensor<?x1xf32, affine_map<()[s0] -> (s0, 1)>>
    }
    return %0 : tensor<?x1xf32, affine_map<()[s0] -> (s0, 1)>>
  }
}

// -----

// What is behind such a sum, of a column that no dimension stands for, changes nothing about it. Few terms are
// the lanes, too, where they fill a register.
// CHECK-LABEL: func.func @fused
// CHECK: tile.reduce {{.*}} {axis = 1 : i64} : (tensor<8x16xf32>) -> tensor<8xf32>
// CHECK: math.exp
module {
  func.func @main(%x: tensor<2048x17xf32>, %w: tensor<8x17x1xf32>) -> tensor<8x2048x1xf32> {
    %0 = graph.kernel "fused" (%x, %w) : (tensor<2048x17xf32>, tensor<8x17x1xf32>) -> tensor<8x2048x1xf32> {
    ^bb0(%a: tensor<2048x17xf32>, %c: tensor<8x17x1xf32>):
      %1 = graph.matmul %a, %c : (tensor<2048x17xf32>, tensor<8x17x1xf32>) -> tensor<8x2048x1xf32>
      %2 = graph.exp %1 : (tensor<8x2048x1xf32>) -> tensor<8x2048x1xf32>
      graph.yield %2 : tensor<8x2048x1xf32>
    }
    return %0 : tensor<8x2048x1xf32>
  }
}
