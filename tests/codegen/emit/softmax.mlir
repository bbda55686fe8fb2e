// RUN: charonia-opt %s -emit-tiles -cse -canonicalize | FileCheck %s
// The row maximum and sum are loops of their own before the loop that stores. The
// exponentials that are summed up are kept, and not taken again.
// A flat walk over four dimensions is one coordinate again.
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 64)>
// CHECK-DAG: #[[FLAT:.*]] = affine_map<(d0)[s0] -> (d0 + s0 * 128)>
// CHECK-LABEL: func.func @softmax
// CHECK: scf.for
// CHECK:   tile.load {{.*}}map = #[[ROW]]
// CHECK:   arith.maximumf
// CHECK: tile.reduce
// CHECK: %[[KEPT:.*]] = tile.local 768
// CHECK: scf.for
// CHECK:   %[[EXP:.*]] = math.exp
// CHECK:   tile.store %[[EXP]], %[[KEPT]]
// CHECK: tile.reduce
// CHECK: scf.for
// CHECK-NOT: math.exp
// CHECK:   tile.load %[[KEPT]]
// CHECK-NOT: tile.reduce
// CHECK:   tile.store
// What is fused in front of a normalization is computed once for its three walks.
// CHECK-LABEL: func.func @normalized
// CHECK: math.erf
// CHECK-NOT: math.erf
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
    %3 = graph.kernel "normalized" (%x) : (tensor<8x12x37x768xf32>) -> tensor<8x12x37x768xf32> {
    ^bb0(%a: tensor<8x12x37x768xf32>):
      %1 = graph.erf %a : (tensor<8x12x37x768xf32>) -> tensor<8x12x37x768xf32>
      %4 = graph.normalize %1 {axes = array<i64: 3>, epsilon = 1.0e-5 : f64} : (tensor<8x12x37x768xf32>) -> tensor<8x12x37x768xf32>
      graph.yield %4 : tensor<8x12x37x768xf32>
    }
    %2 = graph.kernel "double" (%x) : (tensor<8x12x37x768xf32>) -> tensor<8x12x37x768xf32> {
    ^bb0(%a: tensor<8x12x37x768xf32>):
      %1 = graph.add %a, %a : (tensor<8x12x37x768xf32>, tensor<8x12x37x768xf32>) -> tensor<8x12x37x768xf32>
      graph.yield %1 : tensor<8x12x37x768xf32>
    }
    return %2 : tensor<8x12x37x768xf32>
  }
}
