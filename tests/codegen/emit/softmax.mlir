// RUN: charonia-opt %s -emit-tiles -cse -canonicalize | FileCheck %s
// The row maximum and sum are loops of their own before the loop that stores.
// A flat walk over four dimensions is one coordinate again.
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 64)>
// CHECK-DAG: #[[FLAT:.*]] = affine_map<(d0)[s0] -> (d0 + s0 * 128)>
// CHECK-LABEL: func.func @softmax
// CHECK: scf.for
// CHECK:   tile.load {{.*}}map = #[[ROW]]
// CHECK:   arith.maximumf
// CHECK: tile.reduce
// CHECK: scf.for
// CHECK:   math.exp
// CHECK: tile.reduce
// CHECK: scf.for
// CHECK-NOT: tile.reduce
// CHECK:   tile.store
// CHECK-LABEL: func.func @double
// CHECK: tile.load {{.*}}map = #[[FLAT]]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: tile.store {{.*}}map = #[[FLAT]]
module {
  func.func @main(%x: tensor<8x12x37x768xf32>) -> tensor<8x12x37x768xf32> {
    %0 = graph.kernel "softmax" (%x) : (tensor<8x12x37x768xf32>) -> tensor<8x12x37x768xf32> {
    ^bb0(%a: tensor<8x12x37x768xf32>):
      %1 = graph.softmax %a {axis = 3} : (tensor<8x12x37x768xf32>) -> tensor<8x12x37x768xf32>
      graph.yield %1 : tensor<8x12x37x768xf32>
    }
    %2 = graph.kernel "double" (%x) : (tensor<8x12x37x768xf32>) -> tensor<8x12x37x768xf32> {
    ^bb0(%a: tensor<8x12x37x768xf32>):
      %1 = graph.add %a, %a : (tensor<8x12x37x768xf32>, tensor<8x12x37x768xf32>) -> tensor<8x12x37x768xf32>
      graph.yield %1 : tensor<8x12x37x768xf32>
    }
    return %2 : tensor<8x12x37x768xf32>
  }
}
