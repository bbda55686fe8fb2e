// What reads cells of a product's columns: one dot gives the tile, of which each thread takes what it has.
// RUN: charonia-opt %s -emit-tiles=target=sm_90a -cse -canonicalize -mlir-print-local-scope -split-input-file | FileCheck %s

// A gate and what passes it, each half of a tile of 64 columns; 32 are stored, up to the end of the result's.
// CHECK-LABEL: func.func @gate(
// CHECK:         %[[DOT:.*]] = tile.dot
// CHECK-NOT:     tile.dot
// CHECK:         %[[SUM:.*]] = arith.addf {{.*}} : tensor<64x64xf32>
// CHECK:         %[[GATE:.*]] = tile.cell_part %[[SUM]] {axis = 1 : i64, part = 0 : i64, parts = 2 : i64, run = 8 : i64} : tensor<64x64xf32> -> tensor<64x32xf32>
// CHECK:         %[[OPEN:.*]] = arith.divf {{.*}} : tensor<64x32xf32>
// CHECK:         %[[PASSED:.*]] = tile.cell_part %[[SUM]] {axis = 1 : i64, part = 1 : i64, parts = 2 : i64, run = 8 : i64} : tensor<64x64xf32> -> tensor<64x32xf32>
// CHECK:         arith.mulf %[[OPEN]], %[[PASSED]]
// CHECK-NOT:     tile.dot
// CHECK:         tile.store {{.*}} {checks = array<i64: 0, 1, 2>, map = affine_map<(d0, d1)[s0, s1] -> (d0 + s0 * 40, d1 + s1 * 32, d0)>, {{.*}}shape = affine_map<{{.*}} -> (256, 136, 40)>} : tensor<64x32xf16>
// CHECK-NOT:     tile.store
module {
  func.func @main(%x: tensor<256x64xf16>, %w: tensor<64x272xf16>, %b: tensor<272xf16>) -> tensor<256x136xf16> {
    %0 = graph.kernel "gate" (%x, %w, %b) : (tensor<256x64xf16>, tensor<64x272xf16>, tensor<272xf16>) -> tensor<256x136xf16> {
    ^bb0(%a: tensor<256x64xf16>, %v: tensor<64x272xf16>, %c: tensor<272xf16>):
      %1 = graph.matmul %a, %v : (tensor<256x64xf16>, tensor<64x272xf16>) -> tensor<256x272xf16>
      %2 = graph.add %1, %c : (tensor<256x272xf16>, tensor<272xf16>) -> tensor<256x272xf16>
      %3 = graph.cell_part %2 {run = 8 : i64, parts = 2 : i64, part = 0 : i64} : (tensor<256x272xf16>) -> tensor<256x136xf16>
      %4 = graph.cell_part %2 {run = 8 : i64, parts = 2 : i64, part = 1 : i64} : (tensor<256x272xf16>) -> tensor<256x136xf16>
      %5 = graph.sigmoid %3 : (tensor<256x136xf16>) -> tensor<256x136xf16>
      %6 = graph.mul %5, %4 : (tensor<256x136xf16>, tensor<256x136xf16>) -> tensor<256x136xf16>
      graph.yield %6 : tensor<256x136xf16>
    }
    return %0 : tensor<256x136xf16>
  }
}

// -----

// Rotated vectors: angles are read as the columns lie, and stored is each element where the model has it.
// CHECK-LABEL: func.func @rotated(
// CHECK:         %[[DOT:.*]] = tile.dot
// CHECK:         %[[X:.*]] = tile.transpose %[[DOT]]
// CHECK:         %[[COS:.*]] = arith.mulf %[[X]]
// CHECK:         %[[SWAP:.*]] = tile.swap_halves %[[X]] {axis = 1 : i64, run = 8 : i64} : tensor<64x64xf32>
// CHECK:         tile.load %arg3{{.*}} (d0 + s0 * 40, d1 mod 32, d0)
// CHECK:         %[[SIN:.*]] = arith.mulf %[[SWAP]]
// CHECK:         arith.addf %[[COS]], %[[SIN]]
// CHECK-NOT:     tile.dot
// CHECK:         tile.store {{.*}} -> (d0 + s0 * 40, d1 floordiv 32 + s1 * 2, d1 mod 8 + ((d1 floordiv 8) mod 2) * 16 + ((d1 floordiv 16) mod 2) * 8, d0)>, {{.*}}shape = affine_map<{{.*}} -> (256, 4, 32, 40)>} : tensor<64x64xf16>
// CHECK-NOT:     tile.store
module {
  func.func @main(%x: tensor<256x64xf16>, %w: tensor<64x128xf16>, %c: tensor<256x1x32xf16>, %s: tensor<256x1x32xf16>) -> tensor<256x4x32xf16> {
    %0 = graph.kernel "rotated" (%x, %w, %c, %s) : (tensor<256x64xf16>, tensor<64x128xf16>, tensor<256x1x32xf16>, tensor<256x1x32xf16>) -> tensor<256x4x32xf16> {
    ^bb0(%a: tensor<256x64xf16>, %v: tensor<64x128xf16>, %cos: tensor<256x1x32xf16>, %sin: tensor<256x1x32xf16>):
      %1 = graph.matmul %a, %v : (tensor<256x64xf16>, tensor<64x128xf16>) -> tensor<256x128xf16>
      %2 = graph.reshape %1 : (tensor<256x128xf16>) -> tensor<256x4x32xf16>
      %3 = graph.mul %2, %cos : (tensor<256x4x32xf16>, tensor<256x1x32xf16>) -> tensor<256x4x32xf16>
      %4 = graph.swap_halves %1 {run = 8 : i64} : (tensor<256x128xf16>) -> tensor<256x128xf16>
      %5 = graph.reshape %4 : (tensor<256x128xf16>) -> tensor<256x4x32xf16>
      %6 = graph.mul %5, %sin : (tensor<256x4x32xf16>, tensor<256x1x32xf16>) -> tensor<256x4x32xf16>
      %7 = graph.add %3, %6 : (tensor<256x4x32xf16>, tensor<256x4x32xf16>) -> tensor<256x4x32xf16>
      %8 = graph.reshape %7 : (tensor<256x4x32xf16>) -> tensor<256x4x2x2x8xf16>
      %9 = graph.transpose %8 {permutation = array<i64: 0, 1, 3, 2, 4>} : (tensor<256x4x2x2x8xf16>) -> tensor<256x4x2x2x8xf16>
      %10 = graph.reshape %9 {graph.stored} : (tensor<256x4x2x2x8xf16>) -> tensor<256x4x32xf16>
      graph.yield %10 : tensor<256x4x32xf16>
    }
    return %0 : tensor<256x4x32xf16>
  }
}
