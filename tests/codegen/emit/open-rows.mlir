// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -mlir-print-local-scope | FileCheck %s

// An open number of rows by a column: as many instances, though one row is what is optimized for.
// CHECK-LABEL: func.func @column
// CHECK-SAME: tile.grid = affine_map<()[s0] -> (s0)>
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
