// RUN: charonia-opt %s -emit-tiles=target=sm_90a -cse -canonicalize -mlir-print-local-scope | FileCheck %s

// Columns of one group alone lie in a tile: 96 of 128 are its own, all of them read the
// channels of the group that the tile's number says.
// CHECK-LABEL: func.func @groups(
// CHECK:         tile.load %{{.*}}map = affine_map<(d0, d1)[s0, s1, s2] -> ({{.*}}s{{[0-2]}} * 64{{.*}}
// CHECK:         tile.dot {{.*}} {columns = 96 : i64}
// CHECK-NOT:     arith.mulf
// CHECK:         tile.store
module {
  func.func @main(%x: tensor<8x56x56x128xf16>, %w: tensor<192x3x3x64xf16>) -> tensor<8x56x56x192xf16> {
    %0 = graph.kernel "groups" (%x, %w) : (tensor<8x56x56x128xf16>, tensor<192x3x3x64xf16>) -> tensor<8x56x56x192xf16> {
    ^bb0(%a: tensor<8x56x56x128xf16>, %c: tensor<192x3x3x64xf16>):
      %1 = graph.conv %a, %c {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 2, channels_last} : (tensor<8x56x56x128xf16>, tensor<192x3x3x64xf16>) -> tensor<8x56x56x192xf16>
      graph.yield %1 : tensor<8x56x56x192xf16>
    }
    return %0 : tensor<8x56x56x192xf16>
  }
}
