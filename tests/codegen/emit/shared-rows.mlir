// RUN: charonia-opt %s -emit-tiles=target=sm_90a -cse -canonicalize -mlir-print-local-scope | FileCheck %s
// RUN: charonia-opt %s -emit-tiles=target=sm_80 | FileCheck %s --check-prefix=ALONE
// Of few long rows each is shared by a cluster of instances, which take its tiles in turn
// and tell each other what they found. As many rows as the chip has room for, short ones, and
// those of a chip without clusters have an instance each.
// CHECK-LABEL: func.func @few(
// CHECK-SAME: tile.grid = affine_map<() -> (24)>
// CHECK-SAME: tile.warps = 8
// CHECK: %[[PART:.*]] = arith.remui %{{.*}}, %c8
// CHECK: %[[BOTH:.*]]:2 = scf.for %[[STEP:.*]] = %c0 to %c4 step
// CHECK:   tile.load %{{.*}}[%[[PART]], %{{.*}}, %[[STEP]]] {checks = array<i64: 1>, map = affine_map<(d0)[s0, s1, s2] -> (s1, d0 + s0 * 2048 + s2 * 16384)>
// CHECK: %[[MAX:.*]] = tile.reduce
// CHECK: %[[SUM:.*]] = tile.reduce
// CHECK: %{{.*}}:16 = tile.exchange %[[MAX]], %[[SUM]] {parts = 8 : i64}
// CHECK: scf.for %[[STEP:.*]] = %c0 to %c4 step
// CHECK:   tile.store %{{.*}}[%[[PART]], %{{.*}}, %[[STEP]]]
// A mean and squares, and of how many.
// CHECK-LABEL: func.func @moments(
// CHECK-SAME: tile.grid = affine_map<() -> (80)>
// CHECK: scf.for
// CHECK: %[[SUM:.*]] = tile.reduce
// CHECK: %[[COUNT:.*]] = tile.reduce
// CHECK: arith.divf %[[SUM]],
// CHECK: %[[SQUARES:.*]] = tile.reduce
// CHECK: tile.exchange %{{.*}}, %[[SQUARES]], %[[COUNT]] {parts = 4 : i64}
// CHECK-LABEL: func.func @many(
// CHECK-NOT: tile.exchange
// A row of one tile stays in registers.
// CHECK-LABEL: func.func @short(
// CHECK-SAME: tile.warps = 4
// CHECK-NOT: scf.for
// CHECK-LABEL: func.func @doubles(
// CHECK-SAME: tile.grid = affine_map<() -> (3)>
// CHECK-SAME: tile.warps = 16
// CHECK-NOT: tile.exchange
// ALONE-NOT: tile.exchange
// What differs from instance to instance, as sums of the places of each one's tile, is not
// shared, and where each would walk along all of it by itself, nothing is.
// CHECK-LABEL: func.func @sums_of_places(
// CHECK-SAME: tile.grid = affine_map<() -> (1)>
// CHECK-NOT: tile.exchange
module {
  func.func @main(%x: tensor<3x50257xf32>, %y: tensor<20x20011xf32>, %z: tensor<100x50257xf32>, %w: tensor<3x8192xf32>, %v: tensor<3x50257xf64>, %u: tensor<1x2x16384xf32>, %t: tensor<16384x512xf32>) {
    %0 = graph.kernel "few" (%x) : (tensor<3x50257xf32>) -> tensor<3x50257xf32> {
    ^bb0(%a: tensor<3x50257xf32>):
      %1 = graph.softmax %a {axis = 1} : (tensor<3x50257xf32>) -> tensor<3x50257xf32>
      graph.yield %1 : tensor<3x50257xf32>
    }
    %2 = graph.kernel "moments" (%y) : (tensor<20x20011xf32>) -> tensor<20x20011xf32> {
    ^bb0(%a: tensor<20x20011xf32>):
      %1 = graph.normalize %a {axes = array<i64: 1>, epsilon = 1.0e-5} : (tensor<20x20011xf32>) -> tensor<20x20011xf32>
      graph.yield %1 : tensor<20x20011xf32>
    }
    %3 = graph.kernel "many" (%z) : (tensor<100x50257xf32>) -> tensor<100x50257xf32> {
    ^bb0(%a: tensor<100x50257xf32>):
      %1 = graph.softmax %a {axis = 1} : (tensor<100x50257xf32>) -> tensor<100x50257xf32>
      graph.yield %1 : tensor<100x50257xf32>
    }
    %4 = graph.kernel "short" (%w) : (tensor<3x8192xf32>) -> tensor<3x8192xf32> {
    ^bb0(%a: tensor<3x8192xf32>):
      %1 = graph.softmax %a {axis = 1} : (tensor<3x8192xf32>) -> tensor<3x8192xf32>
      graph.yield %1 : tensor<3x8192xf32>
    }
    %5 = graph.kernel "doubles" (%v) : (tensor<3x50257xf64>) -> tensor<3x50257xf64> {
    ^bb0(%a: tensor<3x50257xf64>):
      %1 = graph.softmax %a {axis = 1} : (tensor<3x50257xf64>) -> tensor<3x50257xf64>
      graph.yield %1 : tensor<3x50257xf64>
    }
    %6 = graph.kernel "sums_of_places" (%u, %t) : (tensor<1x2x16384xf32>, tensor<16384x512xf32>) -> tensor<1x2x16384xf32> {
    ^bb0(%a: tensor<1x2x16384xf32>, %b: tensor<16384x512xf32>):
      %1 = graph.normalize %a {axes = array<i64: 1, 2>, epsilon = 1.0e-5} : (tensor<1x2x16384xf32>) -> tensor<1x2x16384xf32>
      %s = graph.reduce sum %b {axes = array<i64: 1>} : (tensor<16384x512xf32>) -> tensor<16384xf32>
      %7 = graph.mul %1, %s : (tensor<1x2x16384xf32>, tensor<16384xf32>) -> tensor<1x2x16384xf32>
      graph.yield %7 : tensor<1x2x16384xf32>
    }
    return
  }
}
