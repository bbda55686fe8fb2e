// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -mlir-print-local-scope | FileCheck %s
// RUN: charonia-opt %s -emit-tiles=target=x86-64-v3 -mlir-print-local-scope | FileCheck %s --check-prefix=V3

// An open number of columns: a single one is a product along the terms of rows side by side, without a dot; few take half of a
// register or a whole one.
// CHECK-LABEL: func.func @matmul
// CHECK: %[[ONE:.*]] = arith.cmpi sle, %arg3, %c1
// CHECK: scf.if %[[ONE]]
// CHECK-NOT: tile.dot
// CHECK: tile.load %arg0{{.*}} -> tensor<6x16xf32>
// CHECK: tile.load %arg1{{.*}}checks = array<i64>{{.*}} -> tensor<16xf32>
// CHECK-NOT: tile.dot
// CHECK: tile.store {{.*}} tensor<6xf32>
// CHECK: tile.load %arg0{{.*}} -> tensor<6x16xf32>
// CHECK: tile.store {{.*}} tensor<6xf32>
// CHECK: } else {
// CHECK: scf.if
// CHECK: tile.load %arg1{{.*}}checks = array<i64>{{.*}} -> tensor<8x32xf32>
// CHECK: tile.dot {{.*}} -> tensor<12x32xf32>
// CHECK: } else {
// CHECK: tile.dot {{.*}} -> tensor<12x8xf32>
// CHECK: tile.dot {{.*}} -> tensor<12x16xf32>
// V3-LABEL: func.func @matmul
// V3: tile.load %arg1{{.*}} -> tensor<8xf32>
// V3: tile.dot {{.*}} -> tensor<6x16xf32>
// V3: tile.dot {{.*}} -> tensor<6x4xf32>
// V3: tile.dot {{.*}} -> tensor<6x8xf32>

// Of a matrix that does not lie along its terms no single column is told apart.
// CHECK-LABEL: func.func @turned
// CHECK-NOT: tensor<16xf32>
// CHECK: return
module attributes {graph.symbols = [{name = "n", min = 1, opt = 128, max = 640, divisor = 1}]} {
  func.func @main(%w: tensor<96x256xf32>, %t: tensor<256x96xf32>, %x: tensor<256x?xf32, affine_map<()[s0] -> (256, s0)>>) -> (tensor<96x?xf32, affine_map<()[s0] -> (96, s0)>>, tensor<96x?xf32, affine_map<()[s0] -> (96, s0)>>) {
    %0 = graph.kernel "matmul" (%w, %x) : (tensor<96x256xf32>, tensor<256x?xf32, affine_map<()[s0] -> (256, s0)>>) -> tensor<96x?xf32, affine_map<()[s0] -> (96, s0)>> {
    ^bb0(%a: tensor<96x256xf32>, %c: tensor<256x?xf32, affine_map<()[s0] -> (256, s0)>>):
      %1 = graph.matmul %a, %c : (tensor<96x256xf32>, tensor<256x?xf32, affine_map<()[s0] -> (256, s0)>>) -> tensor<96x?xf32, affine_map<()[s0] -> (96, s0)>>
      graph.yield %1 : tensor<96x?xf32, affine_map<()[s0] -> (96, s0)>>
    }
    %2 = graph.kernel "turned" (%t, %x) : (tensor<256x96xf32>, tensor<256x?xf32, affine_map<()[s0] -> (256, s0)>>) -> tensor<96x?xf32, affine_map<()[s0] -> (96, s0)>> {
    ^bb0(%a: tensor<256x96xf32>, %c: tensor<256x?xf32, affine_map<()[s0] -> (256, s0)>>):
      %3 = graph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<256x96xf32>) -> tensor<96x256xf32>
      %4 = graph.matmul %3, %c : (tensor<96x256xf32>, tensor<256x?xf32, affine_map<()[s0] -> (256, s0)>>) -> tensor<96x?xf32, affine_map<()[s0] -> (96, s0)>>
      graph.yield %4 : tensor<96x?xf32, affine_map<()[s0] -> (96, s0)>>
    }
    return %0, %2 : tensor<96x?xf32, affine_map<()[s0] -> (96, s0)>>, tensor<96x?xf32, affine_map<()[s0] -> (96, s0)>>
  }
}
