// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -cse -canonicalize -mlir-print-local-scope | FileCheck %s --implicit-check-not=tile.load

// Memory that is mirrored along vectors is read straight in each part, not gathered;
// rows have one place each, and what is not padded is not moved.
// CHECK-LABEL: func.func @pad(
// CHECK:         tile.load %arg0[{{.*}}(s0 floordiv 114, s1, -d0 + 223)>{{.*}} tensor<1xindex>) -> tensor<114xf32>
// CHECK:         tile.load %arg0[{{.*}}(s0 floordiv 114, s1, -d0 + 1)>{{.*}} tensor<1xindex>) -> tensor<114xf32>
// CHECK:         tile.load %arg0[{{.*}}(s0 floordiv 114, s1, d0 - 1)>{{.*}} tensor<1xindex>) -> tensor<114xf32>
// CHECK:         tile.store
module {
  func.func @main(%x: tensor<1x64x112x112xf32>) -> tensor<1x64x114x114xf32> {
    %0 = graph.kernel "pad"(%x) : (tensor<1x64x112x112xf32>) -> tensor<1x64x114x114xf32> {
    ^bb0(%a: tensor<1x64x112x112xf32>):
      %1 = graph.constant dense<0.0> : tensor<f32>
      %2 = graph.pad reflect %a, %1 {lows = affine_map<() -> (0, 0, 1, 1)>} : (tensor<1x64x112x112xf32>, tensor<f32>) -> tensor<1x64x114x114xf32>
      graph.yield %2 : tensor<1x64x114x114xf32>
    }
    return %0 : tensor<1x64x114x114xf32>
  }
}
