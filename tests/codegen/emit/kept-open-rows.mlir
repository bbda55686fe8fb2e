// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -split-input-file -cse -mlir-print-local-scope | FileCheck %s

// Of rows of an open length, too, what is summed up is kept where there is room for it: in a body of its own, before
// that of longer rows, which take the exponentials again.
// CHECK-LABEL: func.func @softmax
// CHECK: %[[WHOLE:.*]] = arith.divui %{{.*}}, %c64
// CHECK: scf.if
// CHECK: scf.if
// CHECK: scf.if
// CHECK: arith.cmpi sle, %[[WHOLE]], %c1024
// CHECK: scf.if
// CHECK: arith.maximumf
// CHECK: %[[KEPT:.*]] = tile.local 65536
// CHECK: scf.for %{{.*}} = %c0 to %[[WHOLE]]
// CHECK: %[[EXP:.*]] = math.exp
// CHECK: tile.store %[[EXP]], %[[KEPT]]{{.*}} shape = affine_map<()[s0] -> (1024, 64)>
// CHECK: scf.for %{{.*}} = %c0 to %[[WHOLE]]
// CHECK-NOT: math.exp
// CHECK: tile.load %[[KEPT]]{{.*}} shape = affine_map<()[s0] -> (1024, 64)>
// CHECK: } else {
// CHECK-NOT: tile.local
// CHECK: scf.for %{{.*}} = %c0 to %[[WHOLE]]
// CHECK: arith.maximumf
// CHECK: scf.for %{{.*}} = %c0 to %[[WHOLE]]
// CHECK: math.exp
// CHECK: scf.for %{{.*}} = %c0 to %[[WHOLE]]
// CHECK: math.exp
module attributes {graph.symbols = [{name = "rows", min = 1, opt = 1, max = 65536, divisor = 1}, {name = "length", min = 1, opt = 128, max = 1048576, divisor = 1}]} {
  func.func @main(%x: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>> {
    %0 = graph.kernel "softmax" (%x) : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>> {
    ^bb0(%a: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>):
      %1 = graph.softmax %a {axis = 1} : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>
      graph.yield %1 : tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>
    }
    return %0 : tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>
  }
}

// -----

// Two things that are kept have half of the room each, and the branch may be all there is of a kernel.
// CHECK-LABEL: func.func @fused
// CHECK-NOT: scf.if
// CHECK: arith.cmpi sle, %{{.*}}, %c512
// CHECK: scf.if
// CHECK: tile.local 32768
// CHECK: math.erf
// CHECK: tile.local 32768
// CHECK-NOT: math.erf
// CHECK: math.exp
// CHECK-NOT: {{math.erf|math.exp}}
// CHECK: } else {
// CHECK-NOT: tile.local
// CHECK: return
module attributes {graph.symbols = [{name = "rows", min = 1, opt = 1, max = 65536, divisor = 1}, {name = "length", min = 1, opt = 4096, max = 1048576, divisor = 64}]} {
  func.func @main(%x: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>> {
    %0 = graph.kernel "fused" (%x) : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>> {
    ^bb0(%a: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>):
      %1 = graph.erf %a : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>
      %2 = graph.softmax %1 {axis = 1} : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>
      graph.yield %2 : tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>
    }
    return %0 : tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>
  }
}
