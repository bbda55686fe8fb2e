// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -cse -canonicalize -split-input-file -mlir-print-local-scope | FileCheck %s

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

// -----

// What wraps around rows of an open length is straight, too, where they are as long as their
// padding, which is certain of one element and asked of three.
// CHECK-LABEL: func.func @once
// CHECK-NOT: arith.remsi {{.*}} : tensor<128xindex>
// CHECK: return
// CHECK-LABEL: func.func @thrice
// CHECK: arith.cmpi sge
// CHECK: scf.if
// CHECK-NOT: arith.remsi
// CHECK: tile.load %arg0{{.*}}, d0 + s
// CHECK: arith.remsi {{.*}} : tensor<128xindex>
!x = tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>
!y = tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 + 1)>>
!z = tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 + 3)>>
module attributes {graph.symbols = [
  {name = "n", min = 1 : i64, opt = 1 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "s", min = 1 : i64, opt = 512 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%x: !x) -> (!y, !z) {
    %0 = graph.kernel "once"(%x) : (!x) -> !y {
    ^bb0(%a: !x):
      %1 = graph.constant dense<0.0> : tensor<f32>
      %2 = graph.pad wrap %a, %1 {lows = affine_map<()[s0, s1] -> (0, 0)>} : (!x, tensor<f32>) -> !y
      graph.yield %2 : !y
    }
    %3 = graph.kernel "thrice"(%x) : (!x) -> !z {
    ^bb0(%a: !x):
      %4 = graph.constant dense<0.0> : tensor<f32>
      %5 = graph.pad wrap %a, %4 {lows = affine_map<()[s0, s1] -> (0, 3)>} : (!x, tensor<f32>) -> !z
      graph.yield %5 : !z
    }
    return %0, %3 : !y, !z
  }
}
