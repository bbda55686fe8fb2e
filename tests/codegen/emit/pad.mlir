// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -cse -canonicalize -split-input-file -mlir-print-local-scope | FileCheck %s

// Memory that is mirrored along vectors is read straight in each part, not gathered;
// rows have one place each, and what is not padded is not moved. Tiles of two registers
// are walked in rows, of which those between the ends read one part.
// CHECK-LABEL: func.func @pad(
// CHECK-SAME:    tile.grid = affine_map<() -> (64)>
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK-NOT:         tile.load
// CHECK:             scf.if
// CHECK-NEXT:          tile.broadcast
// CHECK-NEXT:          tile.load %arg0[{{.*}} {checks = array<i64>, {{.*}}-> (s0, s1, d0 + s2)>{{.*}} tensor<1xindex>, index) -> tensor<32xf32>
// CHECK-NEXT:          scf.yield
// CHECK:             else
// CHECK:               tile.load %arg0[{{.*}}-> (s0, s2, -d0 - s1 * 32 + 223)>{{.*}} tensor<1xindex>) -> tensor<32xf32>
// CHECK:               tile.load %arg0[{{.*}}-> (s0, s2, -d0 - s1 * 32 + 1)>{{.*}} tensor<1xindex>) -> tensor<32xf32>
// CHECK:               tile.load %arg0[{{.*}}-> (s0, s2, d0 + s1 * 32 - 1)>{{.*}} tensor<1xindex>) -> tensor<32xf32>
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

// -----

// Rows of an open length that are walked inside of an instance are one short tile where they are short.
// CHECK-LABEL: func.func @narrow
// CHECK: arith.cmpi sle, %{{.*}}, %c2
// CHECK: tile.store {{.*}} tensor<2xf32>
// CHECK: arith.cmpi sle, %{{.*}}, %c8
// CHECK: tile.store {{.*}} tensor<8xf32>
// CHECK: tile.store {{.*}} tensor<32xf32>
!i = tensor<?x20x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, 20, s1, s2)>>
module attributes {graph.symbols = [
  {name = "n", min = 1 : i64, opt = 1 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "h", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "w", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%x: tensor<?x20x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, 20, s1, s2)>>) -> tensor<?x20x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, 20, s1, s2 + 1)>> {
    %0 = graph.kernel "narrow"(%x) : (!i) -> tensor<?x20x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, 20, s1, s2 + 1)>> {
    ^bb0(%a: !i):
      %1 = graph.constant dense<0.0> : tensor<f32>
      %2 = graph.pad constant %a, %1 {lows = affine_map<()[s0, s1, s2] -> (0, 0, 0, 1)>} : (!i, tensor<f32>) -> tensor<?x20x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, 20, s1, s2 + 1)>>
      graph.yield %2 : tensor<?x20x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, 20, s1, s2 + 1)>>
    }
    return %0 : tensor<?x20x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, 20, s1, s2 + 1)>>
  }
}
