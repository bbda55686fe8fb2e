// RUN: charonia-opt %s -emit-tiles=target=sm_90 -cse -canonicalize | FileCheck %s
// Many elements take their updates in order; a program instance copies some 1024 elements
// at a time, of one long row or of several short ones.
// CHECK-LABEL: func.func @long_rows
// CHECK: tile.store {{.*}} : tensor<1024xf32>
// CHECK: scf.for
// CHECK: tile.barrier
// CHECK: arith.addf {{.*}} : tensor<f32>
// CHECK: tile.store {{.*}} : tensor<f32>
// CHECK-LABEL: func.func @short_rows
// CHECK: tile.store {{.*}} : tensor<128x8xf32>
// CHECK: scf.for
// CHECK: tile.barrier
// CHECK: arith.addf {{.*}} : tensor<128xf32>
// CHECK: tile.store {{.*}} : tensor<128xf32>
module {
  func.func @main(%x: tensor<4096x520xf32>, %i: tensor<4096x30xi64>, %u: tensor<4096x30xf32>, %y: tensor<200000x8xf32>, %j: tensor<200000x30xi64>, %v: tensor<200000x30xf32>) -> (tensor<4096x520xf32>, tensor<200000x8xf32>) {
    %0 = graph.kernel "long_rows" (%x, %i, %u) : (tensor<4096x520xf32>, tensor<4096x30xi64>, tensor<4096x30xf32>) -> tensor<4096x520xf32> {
    ^bb0(%a: tensor<4096x520xf32>, %b: tensor<4096x30xi64>, %c: tensor<4096x30xf32>):
      %1 = graph.scatter_elements add %a, %b, %c {axis = 1} : (tensor<4096x520xf32>, tensor<4096x30xi64>, tensor<4096x30xf32>) -> tensor<4096x520xf32>
      graph.yield %1 : tensor<4096x520xf32>
    }
    %2 = graph.kernel "short_rows" (%y, %j, %v) : (tensor<200000x8xf32>, tensor<200000x30xi64>, tensor<200000x30xf32>) -> tensor<200000x8xf32> {
    ^bb0(%a: tensor<200000x8xf32>, %b: tensor<200000x30xi64>, %c: tensor<200000x30xf32>):
      %1 = graph.scatter_elements add %a, %b, %c {axis = 1} : (tensor<200000x8xf32>, tensor<200000x30xi64>, tensor<200000x30xf32>) -> tensor<200000x8xf32>
      graph.yield %1 : tensor<200000x8xf32>
    }
    return %0, %2 : tensor<4096x520xf32>, tensor<200000x8xf32>
  }
}
