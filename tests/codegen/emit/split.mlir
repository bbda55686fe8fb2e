// RUN: charonia-opt %s -emit-tiles=target=gpu -cse -canonicalize -mlir-print-local-scope | FileCheck %s

// Three instances share the 10 steps of a tile: four each, the last of them behind the
// end, where operands are zero. The bias is added by the one that goes on.
// CHECK-LABEL: func.func @split(
// CHECK-SAME:    %[[X:.*]]: !tile.buffer<f16>, %[[W:.*]]: !tile.buffer<f16>, %[[B:.*]]: !tile.buffer<f16>, %[[Y:[^:]*]]: !tile.buffer<f16>, %[[SCRATCH:.*]]: !tile.buffer<f32>, %[[COUNTERS:.*]]: !tile.buffer<i32>)
// CHECK-SAME:    tile.counters = affine_map<() -> (4)>, tile.grid = affine_map<() -> (12)>
// CHECK-SAME:    tile.scratch = affine_map<() -> (98304)>
// CHECK:         %[[ID:.*]] = tile.program_id
// CHECK-DAG:     %[[PART:.*]] = arith.remui %[[ID]], %c3
// CHECK-DAG:     %[[TILE:.*]] = arith.divui %[[ID]], %c3
// CHECK:         %[[OWN:.*]] = scf.for %{{.*}} = %c0 to %c4 step %c1
// CHECK:           tile.load %[[X]]{{.*}} -> tensor<32x32xf16>
// CHECK:           tile.dot
// CHECK:         %[[SUM:.*]] = tile.split_sum %[[OWN]], %[[SCRATCH]], %[[COUNTERS]][%[[TILE]], %[[PART]]] {parts = 3 : i64}
// CHECK:         tile.load %[[B]]
// CHECK:         arith.addf %[[SUM]]
// CHECK:         tile.store

// Four are a cluster, and each goes on with its share of the columns.
// CHECK-LABEL: func.func @shared(
// CHECK-SAME:    tile.grid = affine_map<() -> (16)>
// CHECK:         %[[SUM:.*]] = tile.split_sum {{.*}} {parts = 4 : i64, shared_axis = 1 : i64}
// CHECK:         arith.addf %[[SUM]]
// CHECK:         tile.store {{.*}} {checks = array<i64: 2>, map = affine_map<(d0, d1)[s0, s1] -> (d0, d1 + s1 * 32, d1 - s0 * 8)>{{.*}}shape = affine_map<()[s0, s1] -> (32, 128, 8)>

// Two products: their parts could not meet, so nothing is split.
// CHECK-LABEL: func.func @twice(
// CHECK-SAME:    tile.grid = affine_map<() -> (4)>
// CHECK-NOT:     tile.split_sum
module {
  func.func @main(%x: tensor<32x320xf16>, %w: tensor<320x128xf16>, %b: tensor<128xf16>, %v: tensor<320x128xf16>) -> (tensor<32x128xf16>, tensor<32x128xf16>, tensor<32x128xf16>) {
    %0 = graph.kernel "split" (%x, %w, %b) attributes {schedule = {groups = [{dims = array<i64: 1>, tile = 32 : i64, sequential = false}, {dims = array<i64: 0>, tile = 32 : i64, sequential = false}], axes = array<i64: 1, 0>, k_tile = 32 : i64, warps = 4 : i64, stages = 3 : i64, splits = 3 : i64}} : (tensor<32x320xf16>, tensor<320x128xf16>, tensor<128xf16>) -> tensor<32x128xf16> {
    ^bb0(%a: tensor<32x320xf16>, %c: tensor<320x128xf16>, %d: tensor<128xf16>):
      %1 = graph.matmul %a, %c : (tensor<32x320xf16>, tensor<320x128xf16>) -> tensor<32x128xf16>
      %2 = graph.add %1, %d : (tensor<32x128xf16>, tensor<128xf16>) -> tensor<32x128xf16>
      graph.yield %2 : tensor<32x128xf16>
    }
    %5 = graph.kernel "shared" (%x, %w, %b) attributes {schedule = {groups = [{dims = array<i64: 1>, tile = 32 : i64, sequential = false}, {dims = array<i64: 0>, tile = 32 : i64, sequential = false}], axes = array<i64: 1, 0>, k_tile = 32 : i64, warps = 4 : i64, stages = 3 : i64, splits = 4 : i64}} : (tensor<32x320xf16>, tensor<320x128xf16>, tensor<128xf16>) -> tensor<32x128xf16> {
    ^bb0(%a: tensor<32x320xf16>, %c: tensor<320x128xf16>, %d: tensor<128xf16>):
      %1 = graph.matmul %a, %c : (tensor<32x320xf16>, tensor<320x128xf16>) -> tensor<32x128xf16>
      %2 = graph.add %1, %d : (tensor<32x128xf16>, tensor<128xf16>) -> tensor<32x128xf16>
      graph.yield %2 : tensor<32x128xf16>
    }
    %3 = graph.kernel "twice" (%x, %w, %v) attributes {schedule = {groups = [{dims = array<i64: 1>, tile = 32 : i64, sequential = false}, {dims = array<i64: 0>, tile = 32 : i64, sequential = false}], axes = array<i64: 1, 0>, k_tile = 32 : i64, warps = 4 : i64, stages = 3 : i64, splits = 3 : i64}} : (tensor<32x320xf16>, tensor<320x128xf16>, tensor<320x128xf16>) -> tensor<32x128xf16> {
    ^bb0(%a: tensor<32x320xf16>, %c: tensor<320x128xf16>, %d: tensor<320x128xf16>):
      %1 = graph.matmul %a, %c : (tensor<32x320xf16>, tensor<320x128xf16>) -> tensor<32x128xf16>
      %2 = graph.matmul %a, %d : (tensor<32x320xf16>, tensor<320x128xf16>) -> tensor<32x128xf16>
      %4 = graph.add %1, %2 : (tensor<32x128xf16>, tensor<32x128xf16>) -> tensor<32x128xf16>
      graph.yield %4 : tensor<32x128xf16>
    }
    return %0, %3, %5 : tensor<32x128xf16>, tensor<32x128xf16>, tensor<32x128xf16>
  }
}
