// RUN: charonia-opt %s -emit-tiles=target=sm_90a -cse -canonicalize -mlir-print-local-scope | FileCheck %s

// Seven columns of four channels are read as eight, 32 elements in one run of memory whose
// last four are outside. On a pitch that is no multiple of 16 bytes they stay seven.
// CHECK-LABEL: func.func @stem(
// CHECK:         tile.load %arg0{{.*}}checks = array<i64: 3, 4>, map = affine_map<(d0, d1)[s0, s1] -> ({{.*}}, d1 mod 32 + {{.*}}, d1 mod 32, d1 + s1 * 64)>{{.*}}(2, 38, 168, 28, 224)>
// CHECK:         tile.dot
// CHECK-LABEL: func.func @odd(
// CHECK:         tile.load %arg0{{.*}}(2, 38, 43, 4, 196)>
module {
  func.func @main(%x: tensor<2x38x42x4xf16>, %y: tensor<2x38x43x4xf16>, %w: tensor<64x7x7x4xf16>) -> (tensor<2x16x18x64xf16>, tensor<2x16x19x64xf16>) {
    %0 = graph.kernel "stem" (%x, %w) attributes {schedule = {groups = [{dims = array<i64: 3>, tile = 64 : i64}, {dims = array<i64: 0, 1, 2>, tile = 64 : i64}], axes = array<i64: 1, 0>, k_tile = 64 : i64, warps = 4 : i64, stages = 4 : i64}} : (tensor<2x38x42x4xf16>, tensor<64x7x7x4xf16>) -> tensor<2x16x18x64xf16> {
    ^bb0(%a: tensor<2x38x42x4xf16>, %c: tensor<64x7x7x4xf16>):
      %1 = graph.conv %a, %c {strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1, channels_last} : (tensor<2x38x42x4xf16>, tensor<64x7x7x4xf16>) -> tensor<2x16x18x64xf16>
      graph.yield %1 : tensor<2x16x18x64xf16>
    }
    %2 = graph.kernel "odd" (%y, %w) attributes {schedule = {groups = [{dims = array<i64: 3>, tile = 64 : i64}, {dims = array<i64: 0, 1, 2>, tile = 64 : i64}], axes = array<i64: 1, 0>, k_tile = 64 : i64, warps = 4 : i64, stages = 4 : i64}} : (tensor<2x38x43x4xf16>, tensor<64x7x7x4xf16>) -> tensor<2x16x19x64xf16> {
    ^bb0(%a: tensor<2x38x43x4xf16>, %c: tensor<64x7x7x4xf16>):
      %1 = graph.conv %a, %c {strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1, channels_last} : (tensor<2x38x43x4xf16>, tensor<64x7x7x4xf16>) -> tensor<2x16x19x64xf16>
      graph.yield %1 : tensor<2x16x19x64xf16>
    }
    return %0, %2 : tensor<2x16x18x64xf16>, tensor<2x16x19x64xf16>
  }
}
