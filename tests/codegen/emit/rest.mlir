// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -mlir-print-local-scope | FileCheck %s
// RUN: charonia-opt %s -emit-tiles=target=x86-64-v3 -mlir-print-local-scope | FileCheck %s --check-prefix=V3

// An open number of rows: whole tiles look at no row's place, a single row that is left is one, and other rows that are left take
// short tiles, the last of them the shortest that holds them.
// CHECK-LABEL: func.func @linear
// CHECK: %[[LEFT:.*]] = arith.subi
// CHECK: %[[WHOLE:.*]] = arith.cmpi sge, %[[LEFT]], %c12
// CHECK: scf.if %[[WHOLE]]
// CHECK: tile.load {{.*}}checks = array<i64>{{.*}}tensor<12x8xf32>
// CHECK: tile.dot {{.*}} -> tensor<12x32xf32>
// CHECK: tile.store {{.*}}checks = array<i64>,
// CHECK: } else {
// CHECK: scf.for
// CHECK: %[[ROWS:.*]] = arith.subi %[[LEFT]],
// CHECK: %[[ONE:.*]] = arith.cmpi sle, %[[ROWS]], %c1
// CHECK: scf.if %[[ONE]]
// CHECK: tensor<32xf32>
// CHECK-NOT: tile.dot
// CHECK: } else {
// CHECK: %[[TWO:.*]] = arith.cmpi sle, %[[ROWS]], %c2
// CHECK: scf.if %[[TWO]]
// CHECK: tile.dot {{.*}} -> tensor<2x32xf32>
// CHECK: tile.store {{.*}}checks = array<i64>,
// CHECK: } else {
// CHECK: tile.dot {{.*}} -> tensor<4x32xf32>
// CHECK: tile.store {{.*}}checks = array<i64: 0>,
// CHECK: } else {
// CHECK: tile.dot {{.*}} -> tensor<8x32xf32>
// V3-LABEL: func.func @linear
// V3: tile.dot {{.*}} -> tensor<6x16xf32>
// V3: tile.dot {{.*}} -> tensor<2x16xf32>
// V3: tile.dot {{.*}} -> tensor<4x16xf32>

// Never fewer than many whole tiles: one that is mostly empty costs little.
// CHECK-LABEL: func.func @many
// CHECK-NOT: scf.if
// CHECK: return
module attributes {graph.symbols = [{name = "batch", min = 1, opt = 1, max = 64, divisor = 1}, {name = "rows", min = 96, opt = 96, max = 640, divisor = 1}]} {
  func.func @main(%x: tensor<?x64xf32, affine_map<()[s0, s1] -> (s0, 64)>>, %y: tensor<?x64xf32, affine_map<()[s0, s1] -> (s1, 64)>>, %w: tensor<64x96xf32>) -> (tensor<?x96xf32, affine_map<()[s0, s1] -> (s0, 96)>>, tensor<?x96xf32, affine_map<()[s0, s1] -> (s1, 96)>>) {
    %0 = graph.kernel "linear" (%x, %w) : (tensor<?x64xf32, affine_map<()[s0, s1] -> (s0, 64)>>, tensor<64x96xf32>) -> tensor<?x96xf32, affine_map<()[s0, s1] -> (s0, 96)>> {
    ^bb0(%a: tensor<?x64xf32, affine_map<()[s0, s1] -> (s0, 64)>>, %c: tensor<64x96xf32>):
      %1 = graph.matmul %a, %c : (tensor<?x64xf32, affine_map<()[s0, s1] -> (s0, 64)>>, tensor<64x96xf32>) -> tensor<?x96xf32, affine_map<()[s0, s1] -> (s0, 96)>>
      graph.yield %1 : tensor<?x96xf32, affine_map<()[s0, s1] -> (s0, 96)>>
    }
    %2 = graph.kernel "many" (%y, %w) : (tensor<?x64xf32, affine_map<()[s0, s1] -> (s1, 64)>>, tensor<64x96xf32>) -> tensor<?x96xf32, affine_map<()[s0, s1] -> (s1, 96)>> {
    ^bb0(%a: tensor<?x64xf32, affine_map<()[s0, s1] -> (s1, 64)>>, %c: tensor<64x96xf32>):
      %3 = graph.matmul %a, %c : (tensor<?x64xf32, affine_map<()[s0, s1] -> (s1, 64)>>, tensor<64x96xf32>) -> tensor<?x96xf32, affine_map<()[s0, s1] -> (s1, 96)>>
      graph.yield %3 : tensor<?x96xf32, affine_map<()[s0, s1] -> (s1, 96)>>
    }
    return %0, %2 : tensor<?x96xf32, affine_map<()[s0, s1] -> (s0, 96)>>, tensor<?x96xf32, affine_map<()[s0, s1] -> (s1, 96)>>
  }
}
