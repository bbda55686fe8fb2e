// RUN: charonia-opt %s -emit-tiles=target=sm_90a -cse -canonicalize -mlir-print-local-scope | FileCheck %s

// The columns of the product are the rows of the dot, and its rows, of which a tile has
// 104 of its own, the columns. What comes behind the dot sees the product as it is.
// CHECK-LABEL: func.func @across(
// CHECK-SAME:    %[[X:.*]]: !tile.buffer<f16>, %[[W:.*]]: !tile.buffer<f16>, %[[B:.*]]: !tile.buffer<f16>, %[[Y:[^:]*]]: !tile.buffer<f16>)
// CHECK-SAME:    tile.grid = affine_map<() -> (6)>
// CHECK:         %[[WEIGHTS:.*]] = tile.load %[[W]]{{.*}} -> tensor<64x64xf16>
// CHECK:         %[[ROWS:.*]] = tile.load %[[X]]{{.*}}checks = array<i64: 0, 2>, map = affine_map<(d0, d1)[s0, s1] -> (d1 + s0 * 104, d0 + s1 * 64, d1)>{{.*}}(150, 320, 104)>{{.*}} -> tensor<64x128xf16>
// CHECK:         tile.dot %[[WEIGHTS]], %[[ROWS]]{{.*}} {columns = 104 : i64} : {{.*}} -> tensor<64x128xf32>
// CHECK:         tile.transpose {{.*}} : tensor<64x128xf32> -> tensor<128x64xf32>
// CHECK:         tile.load %[[B]]{{.*}} -> tensor<64xf16>
// CHECK:         tile.store {{.*}}checks = array<i64: 0, 2>, map = affine_map<(d0, d1)[s0, s1] -> (d0 + s0 * 104, d1 + s1 * 64, d0)>{{.*}}(150, 192, 104)>{{.*}} : tensor<128x64xf16>
module {
  func.func @main(%x: tensor<150x320xf16>, %w: tensor<320x192xf16>, %b: tensor<192xf16>) -> tensor<150x192xf16> {
    %0 = graph.kernel "across" (%x, %w, %b) attributes {schedule = {groups = [{dims = array<i64: 1>, tile = 64 : i64}, {dims = array<i64: 0>, tile = 128 : i64, own = 104 : i64}], axes = array<i64: 1, 0>, k_tile = 64 : i64, warps = 4 : i64, stages = 4 : i64, swap = true}} : (tensor<150x320xf16>, tensor<320x192xf16>, tensor<192xf16>) -> tensor<150x192xf16> {
    ^bb0(%a: tensor<150x320xf16>, %c: tensor<320x192xf16>, %d: tensor<192xf16>):
      %1 = graph.matmul %a, %c : (tensor<150x320xf16>, tensor<320x192xf16>) -> tensor<150x192xf16>
      %2 = graph.add %1, %d : (tensor<150x192xf16>, tensor<192xf16>) -> tensor<150x192xf16>
      graph.yield %2 : tensor<150x192xf16>
    }
    return %0 : tensor<150x192xf16>
  }
}
