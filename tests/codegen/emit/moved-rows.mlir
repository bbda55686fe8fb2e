// RUN: charonia-opt %s -emit-tiles=target=sm_90a -cse -canonicalize -mlir-print-local-scope | FileCheck %s

// Rows of windows go to their places in an image, which rolls: a kernel that
// walks its product copies them as they lie, and stores rows and sums of their
// runs where they belong. Of a tile's 40 rows those past the 36th roll to places
// of others: they are not stored.
// CHECK-LABEL: func.func @rows(
// CHECK:         tile.load %arg0{{.*}} map = affine_map<(d0, d1) -> (d1, d0, d1)>, rank = 2 : i64, shape = affine_map<() -> (36, 64, 40)>}
// CHECK:         tile.dot
// CHECK-NOT:     tile.dot
// CHECK:         tile.store {{.*}}, %arg3{{.*}}checks = array<i64: 2, 3, 4>, map = affine_map<(d0, d1)[s0] -> (((d0 floordiv 3) mod 3 + (d0 floordiv 18) * 3 + 2) mod 6, d0 mod 3 + ((d0 floordiv 9) mod 2) * 3, d1 + s0 * 64, d0, d0)>, rank = 3 : i64, shape = affine_map<()[s0] -> (6, 6, 96, 40, 36)>}
// CHECK:         tile.store {{.*}}, %arg4{{.*}}checks = array<i64: 2, 3, 4, 5>, map = affine_map<(d0, d1)[s0] -> (((d0 floordiv 3) mod 3 + (d0 floordiv 18) * 3 + 2) mod 6, d0 mod 3 + ((d0 floordiv 9) mod 2) * 3, d1 + s0 * 2, d0, d0, d1 * 32 + s0 * 64)>, rank = 3 : i64, shape = affine_map<()[s0] -> (6, 6, 3, 40, 36, 96)>}
module {
  func.func @main(%x: tensor<4x9x64xf16>, %w: tensor<64x96xf16>, %r: tensor<1x6x6x96xf16>) -> (tensor<1x6x6x96xf16>, tensor<1x6x6x3xf32>) {
    %0:2 = graph.kernel "rows" (%x, %w, %r) attributes {graph.walks_product} : (tensor<4x9x64xf16>, tensor<64x96xf16>, tensor<1x6x6x96xf16>) -> (tensor<1x6x6x96xf16>, tensor<1x6x6x3xf32>) {
    ^bb0(%a: tensor<4x9x64xf16>, %b: tensor<64x96xf16>, %c: tensor<1x6x6x96xf16>):
      %1 = graph.matmul %a, %b : (tensor<4x9x64xf16>, tensor<64x96xf16>) -> tensor<4x9x96xf16>
      %2 = graph.reshape %1 : (tensor<4x9x96xf16>) -> tensor<2x2x3x3x96xf16>
      %3 = graph.transpose %2 {permutation = array<i64: 0, 2, 1, 3, 4>} : (tensor<2x2x3x3x96xf16>) -> tensor<2x3x2x3x96xf16>
      %4 = graph.reshape %3 : (tensor<2x3x2x3x96xf16>) -> tensor<1x6x6x96xf16>
      %5 = graph.broadcast %4 : (tensor<1x6x6x96xf16>) -> tensor<2x6x6x96xf16>
      %6 = graph.reshape %5 : (tensor<2x6x6x96xf16>) -> tensor<1x12x6x96xf16>
      %7 = graph.slice %6 {starts = affine_map<() -> (0, 4, 0, 0)>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x12x6x96xf16>) -> tensor<1x6x6x96xf16>
      %8 = graph.add %7, %c : (tensor<1x6x6x96xf16>, tensor<1x6x6x96xf16>) -> tensor<1x6x6x96xf16>
      %9 = graph.cast %8 {graph.as_stored, to = f32} : (tensor<1x6x6x96xf16>) -> tensor<1x6x6x96xf32>
      %10 = graph.sum_runs %9 {run = 32 : i64} : (tensor<1x6x6x96xf32>) -> tensor<1x6x6x3xf32>
      graph.yield %8, %10 : tensor<1x6x6x96xf16>, tensor<1x6x6x3xf32>
    }
    return %0#0, %0#1 : tensor<1x6x6x96xf16>, tensor<1x6x6x3xf32>
  }
}
