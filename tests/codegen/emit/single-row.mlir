// RUN: charonia-opt %s -emit-tiles=target=x86-64-v3 -mlir-print-local-scope | FileCheck %s
// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -mlir-print-local-scope | FileCheck %s

// A row by a matrix: 32 columns at a time, also of vectors of 8, so that no multiplication waits for the one
// before it while the next columns are read.
// CHECK-LABEL: func.func @row
// CHECK-SAME: tile.grid = affine_map<() -> (3)>
// CHECK: scf.for {{.*}} -> (tensor<32xf32>)
module {
  func.func @main(%x: tensor<1x1024xf32>, %w: tensor<1024x96xf32>) -> tensor<1x96xf32> {
    %0 = graph.kernel "row" (%x, %w) : (tensor<1x1024xf32>, tensor<1024x96xf32>) -> tensor<1x96xf32> {
    ^bb0(%a: tensor<1x1024xf32>, %c: tensor<1024x96xf32>):
      %1 = graph.matmul %a, %c : (tensor<1x1024xf32>, tensor<1024x96xf32>) -> tensor<1x96xf32>
      graph.yield %1 : tensor<1x96xf32>
    }
    return %0 : tensor<1x96xf32>
  }
}
