// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -cse -canonicalize -mlir-print-local-scope | FileCheck %s

// Memory that is mirrored along vectors is read straight in each part, not gathered;
// rows have one place each, and what is not padded is not moved. Tiles of two registers
// are walked in rows, of which those between the ends read one part.
// CHECK-LABEL: func.func @pad(
// CHECK-SAME:    tile.grid = affine_map<() -> (64)>
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             tile.load %arg0[{{.*}}-> (s0, s2, d0 + s1 * 32 - 1)>{{.*}} tensor<1xindex>) -> tensor<32xf32>
// CHECK:             scf.if
// CHECK-NOT:           tile.load
// CHECK:             else
// CHECK:               tile.load %arg0[{{.*}}-> (s0, s2, -d0 - s1 * 32 + 223)>{{.*}} tensor<1xindex>) -> tensor<32xf32>
// CHECK:               tile.load %arg0[{{.*}}-> (s0, s2, -d0 - s1 * 32 + 1)>{{.*}} tensor<1xindex>) -> tensor<32xf32>
// CHECK:             tile.store
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
