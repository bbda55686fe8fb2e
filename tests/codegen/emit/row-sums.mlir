// RUN: charonia-opt %s -emit-tiles=target=sm_90a -cse -canonicalize -mlir-print-local-scope | FileCheck %s

// Sums of runs of a product's columns: of a tile all of its own, beside it.
// CHECK-LABEL: func.func @writes(
// CHECK:         tile.store %{{.*}}, %arg2
// CHECK:         %[[RUNS:.*]] = tile.split_axis %{{.*}} {axis = 1 : i64, inner = 32 : i64} : tensor<{{[0-9]+}}x[[N:[0-9]+]]xf32> -> tensor<{{[0-9]+}}x{{[0-9]+}}x32xf32>
// CHECK:         %[[SUMS:.*]] = tile.reduce %[[RUNS]] {axis = 2 : i64}
// CHECK:         tile.store %[[SUMS]], %arg3

// What is read of a row's parts is added up; rows are scaled behind the loop.
// CHECK-LABEL: func.func @reads(
// CHECK:         %[[DOT:.*]] = scf.for
// CHECK:         tile.load %arg2{{.*}} -> tensor<[[M:[0-9]+]]x32xf32>
// CHECK:         tile.reduce %{{.*}} {axis = 1 : i64} : (tensor<[[M]]x32xf32>) -> tensor<[[M]]xf32>
// CHECK:         %[[OWN:.*]] = math.rsqrt %{{.*}} : tensor<[[M]]xf32>
// CHECK:         %[[SCALE:.*]] = tile.broadcast %[[OWN]]
// CHECK:         arith.mulf %[[DOT]], %[[SCALE]]

// Runs are added up once for their sums and their means, from which squares of
// distances follow.
// CHECK-LABEL: func.func @writes_both(
// CHECK:         tile.store %{{.*}}, %arg2
// CHECK:         %[[RUNS:.*]] = tile.split_axis %[[X:[0-9]+]] {axis = 1 : i64, inner = 32 : i64}
// CHECK:         %[[SUMS:.*]] = tile.reduce %[[RUNS]] {axis = 2 : i64}
// CHECK:         %[[MEANS:.*]] = arith.mulf %[[SUMS]],
// CHECK:         %[[SPREAD:.*]] = tile.broadcast %[[MEANS]] {axes = array<i64: 0, 1>}
// CHECK:         %[[JOINED:.*]] = tile.join_axes %[[SPREAD]]
// CHECK:         %[[FAR:.*]] = arith.subf %[[X]], %[[JOINED]]
// CHECK:         %[[SQUARE:.*]] = arith.mulf %[[FAR]], %[[FAR]]
// CHECK:         tile.split_axis %[[SQUARE]]
// CHECK:         %[[SQUARES:.*]] = tile.reduce
// CHECK:         tile.store %[[SQUARES]], %arg3
// CHECK-NOT:     tile.reduce
// CHECK:         tile.store %[[SUMS]], %arg4

// The mean comes first; what it is of is loaded once.
// CHECK-LABEL: func.func @reads_both(
// CHECK:         scf.for
// CHECK:         %[[SUM:.*]] = tile.load %arg3{{.*}} -> tensor<[[M:[0-9]+]]x32xf32>
// CHECK:         %[[TOTAL:.*]] = tile.reduce %{{.*}} {axis = 1 : i64}
// CHECK:         %[[MEAN:.*]] = arith.mulf %[[TOTAL]]
// CHECK-NOT:     tile.load %arg3
// CHECK:         tile.load %arg2
// CHECK-NOT:     tile.load %arg3
// CHECK:         %[[OWN:.*]] = tile.broadcast %[[MEAN]]
// CHECK:         arith.subf %[[SUM]], %[[OWN]]
// CHECK:         tile.reduce %{{.*}} {axis = 1 : i64}
// CHECK:         %[[NONE:.*]] = arith.cmpf ole
// CHECK:         arith.select %[[NONE]]
// CHECK-NOT:     tile.load %arg3
// CHECK:         return
module {
  func.func @main(%x: tensor<256x512xf16>, %a: tensor<512x768xf16>, %w: tensor<768x1024xf16>) -> (tensor<256x768xf16>, tensor<256x1024xf16>) {
    %0:2 = graph.kernel "writes" (%x, %a) : (tensor<256x512xf16>, tensor<512x768xf16>) -> (tensor<256x768xf16>, tensor<256x24xf32>) {
    ^bb0(%p: tensor<256x512xf16>, %q: tensor<512x768xf16>):
      %1 = graph.matmul %p, %q : (tensor<256x512xf16>, tensor<512x768xf16>) -> tensor<256x768xf16>
      %2 = graph.cast %1 {to = f32} : (tensor<256x768xf16>) -> tensor<256x768xf32>
      %3 = graph.mul %2, %2 : (tensor<256x768xf32>, tensor<256x768xf32>) -> tensor<256x768xf32>
      %4 = graph.sum_runs %3 {run = 32 : i64} : (tensor<256x768xf32>) -> tensor<256x24xf32>
      graph.yield %1, %4 : tensor<256x768xf16>, tensor<256x24xf32>
    }
    %5 = graph.kernel "reads" (%0#0, %w, %0#1) : (tensor<256x768xf16>, tensor<768x1024xf16>, tensor<256x24xf32>) -> tensor<256x1024xf16> {
    ^bb0(%p: tensor<256x768xf16>, %q: tensor<768x1024xf16>, %s: tensor<256x24xf32>):
      %6 = graph.normalized_matmul %p, %q, %s {epsilon = 1.0e-6 : f64} : (tensor<256x768xf16>, tensor<768x1024xf16>, tensor<256x24xf32>) -> tensor<256x1024xf16>
      graph.yield %6 : tensor<256x1024xf16>
    }
    return %0#0, %5 : tensor<256x768xf16>, tensor<256x1024xf16>
  }
  func.func @means(%x: tensor<256x512xf16>, %a: tensor<512x768xf16>, %w: tensor<768x1024xf16>, %c: tensor<1024xf32>) -> (tensor<256x768xf16>, tensor<256x1024xf16>) {
    %0:3 = graph.kernel "writes_both" (%x, %a) : (tensor<256x512xf16>, tensor<512x768xf16>) -> (tensor<256x768xf16>, tensor<256x24xf32>, tensor<256x24xf32>) {
    ^bb0(%p: tensor<256x512xf16>, %q: tensor<512x768xf16>):
      %1 = graph.matmul %p, %q : (tensor<256x512xf16>, tensor<512x768xf16>) -> tensor<256x768xf16>
      %2 = graph.cast %1 {to = f32} : (tensor<256x768xf16>) -> tensor<256x768xf32>
      %3 = graph.sum_runs %2 {run = 32 : i64, squared_distances} : (tensor<256x768xf32>) -> tensor<256x24xf32>
      %4 = graph.sum_runs %2 {run = 32 : i64} : (tensor<256x768xf32>) -> tensor<256x24xf32>
      graph.yield %1, %3, %4 : tensor<256x768xf16>, tensor<256x24xf32>, tensor<256x24xf32>
    }
    %5 = graph.kernel "reads_both" (%0#0, %w, %0#1, %0#2, %c) : (tensor<256x768xf16>, tensor<768x1024xf16>, tensor<256x24xf32>, tensor<256x24xf32>, tensor<1024xf32>) -> tensor<256x1024xf16> {
    ^bb0(%p: tensor<256x768xf16>, %q: tensor<768x1024xf16>, %s: tensor<256x24xf32>, %t: tensor<256x24xf32>, %d: tensor<1024xf32>):
      %6 = graph.normalized_matmul %p, %q, %s terms %t columns %d {epsilon = 1.0e-6 : f64} : (tensor<256x768xf16>, tensor<768x1024xf16>, tensor<256x24xf32>, tensor<256x24xf32>, tensor<1024xf32>) -> tensor<256x1024xf16>
      graph.yield %6 : tensor<256x1024xf16>
    }
    return %0#0, %5 : tensor<256x768xf16>, tensor<256x1024xf16>
  }
}
