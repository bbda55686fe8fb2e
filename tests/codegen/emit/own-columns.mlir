// RUN: charonia-opt %s -emit-tiles=target=sm_90a -cse -canonicalize -mlir-print-local-scope | FileCheck %s

// Tiles of 128 columns of which 96 are their own: the grid counts these, and behind them
// nothing is read, multiplied or stored. That implies the bounds of the 192 columns.
// CHECK-LABEL: func.func @widths(
// CHECK-SAME:    %[[X:.*]]: !tile.buffer<f16>, %[[W:.*]]: !tile.buffer<f16>, %[[B:.*]]: !tile.buffer<f16>, %[[Y:[^:]*]]: !tile.buffer<f16>)
// CHECK-SAME:    tile.grid = affine_map<() -> (4)>
// CHECK:         tile.load %[[X]]{{.*}}checks = array<i64>{{.*}} -> tensor<64x64xf16>
// CHECK:         tile.load %[[W]]{{.*}}checks = array<i64: 2>, map = affine_map<(d0, d1)[s0, s1] -> (d0 + s1 * 64, d1 + s0 * 96, d1)>{{.*}}(320, 192, 96)>{{.*}} -> tensor<64x128xf16>
// CHECK:         tile.dot {{.*}} {columns = 96 : i64} : {{.*}} -> tensor<64x128xf32>
// CHECK:         tile.load %[[B]]{{.*}}checks = array<i64: 1>
// CHECK:         tile.store {{.*}}checks = array<i64: 2>, map = affine_map<(d0, d1)[s0, s1] -> (d0 + s0 * 64, d1 + s1 * 96, d1)>{{.*}}(128, 192, 96)>
module {
  func.func @main(%x: tensor<128x320xf16>, %w: tensor<320x192xf16>, %b: tensor<192xf16>) -> tensor<128x192xf16> {
    %0 = graph.kernel "widths" (%x, %w, %b) attributes {schedule = {groups = [{dims = array<i64: 1>, tile = 128 : i64, own = 96 : i64}, {dims = array<i64: 0>, tile = 64 : i64}], axes = array<i64: 1, 0>, k_tile = 64 : i64, warps = 4 : i64, stages = 4 : i64}} : (tensor<128x320xf16>, tensor<320x192xf16>, tensor<192xf16>) -> tensor<128x192xf16> {
    ^bb0(%a: tensor<128x320xf16>, %c: tensor<320x192xf16>, %d: tensor<192xf16>):
      %1 = graph.matmul %a, %c : (tensor<128x320xf16>, tensor<320x192xf16>) -> tensor<128x192xf16>
      %2 = graph.add %1, %d : (tensor<128x192xf16>, tensor<192xf16>) -> tensor<128x192xf16>
      graph.yield %2 : tensor<128x192xf16>
    }
    return %0 : tensor<128x192xf16>
  }
}
