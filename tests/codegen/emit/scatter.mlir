// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -cse -canonicalize | FileCheck %s
// RUN: not charonia-opt %s -emit-tiles=target=sm_90 2>&1 | FileCheck %s --check-prefix=GPU
// A program instance of a CPU copies its rows, and takes their updates in order.
// CHECK-LABEL: func.func @rows
// CHECK: tile.store {{.*}} : tensor<64xf32>
// CHECK: scf.for
// CHECK: arith.addf {{.*}} : tensor<f32>
// CHECK: tile.store {{.*}} : tensor<f32>
// Columns side by side are copied in long runs of memory.
// CHECK-LABEL: func.func @columns
// CHECK: tile.store {{.*}} : tensor<520xf32>
// CHECK: tile.store {{.*}} : tensor<520xf32>
// On a GPU stage-ordered has made updates in place of it.
// GPU: error: is not written in steps for a GPU (stage-ordered) (graph.scatter_elements giving float32[4096, 520])
module {
  func.func @main(%x: tensor<4096x520xf32>, %i: tensor<4096x30xi64>, %u: tensor<4096x30xf32>, %j: tensor<30x1xi64>, %v: tensor<30x520xf32>) -> tensor<4096x520xf32> {
    %0 = graph.kernel "rows" (%x, %i, %u) : (tensor<4096x520xf32>, tensor<4096x30xi64>, tensor<4096x30xf32>) -> tensor<4096x520xf32> {
    ^bb0(%a: tensor<4096x520xf32>, %b: tensor<4096x30xi64>, %c: tensor<4096x30xf32>):
      %1 = graph.scatter_elements add %a, %b, %c {axis = 1} : (tensor<4096x520xf32>, tensor<4096x30xi64>, tensor<4096x30xf32>) -> tensor<4096x520xf32>
      graph.yield %1 : tensor<4096x520xf32>
    }
    %1 = graph.kernel "columns" (%x, %j, %v) : (tensor<4096x520xf32>, tensor<30x1xi64>, tensor<30x520xf32>) -> tensor<4096x520xf32> {
    ^bb0(%a: tensor<4096x520xf32>, %b: tensor<30x1xi64>, %c: tensor<30x520xf32>):
      %2 = graph.scatter_nd add %a, %b, %c : (tensor<4096x520xf32>, tensor<30x1xi64>, tensor<30x520xf32>) -> tensor<4096x520xf32>
      graph.yield %2 : tensor<4096x520xf32>
    }
    return %0 : tensor<4096x520xf32>
  }
}
