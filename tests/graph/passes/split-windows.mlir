// RUN: charonia-opt %s -split-windows -split-input-file | FileCheck %s

// CHECK-LABEL: @square
// CHECK: %[[A:.*]] = graph.pool max %arg0 {channels_last, dilations = array<i64: 1, 1>, kernel = array<i64: 5, 1>, pads = array<i64: 2, 0, 2, 0>, strides = array<i64: 1, 1>}
// CHECK: graph.pool max %[[A]] {channels_last, dilations = array<i64: 1, 1>, kernel = array<i64: 1, 5>, pads = array<i64: 0, 2, 0, 2>, strides = array<i64: 1, 1>}
func.func @square(%x: tensor<1x40x40x64xf32>) -> tensor<1x40x40x64xf32> {
  %0 = graph.pool max %x {channels_last, kernel = array<i64: 5, 5>, strides = array<i64: 1, 1>, pads = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>}
    : (tensor<1x40x40x64xf32>) -> tensor<1x40x40x64xf32>
  return %0 : tensor<1x40x40x64xf32>
}

// -----

// The dimension with the stride first: the other one has half as much to do. Means
// of f16 stay f32 between.
// CHECK-LABEL: @mean
// CHECK: %[[X:.*]] = graph.cast %arg0 {{.*}} -> tensor<1x40x40x64xf32>
// CHECK: %[[A:.*]] = graph.pool average %[[X]] {{.*}}kernel = array<i64: 1, 7>
// CHECK-SAME: strides = array<i64: 1, 2>} : (tensor<1x40x40x64xf32>) -> tensor<1x40x17x64xf32>
// CHECK: %[[B:.*]] = graph.pool average %[[A]] {{.*}}kernel = array<i64: 7, 1>
// CHECK: graph.cast %[[B]] {{.*}} -> tensor<1x34x17x64xf16>
func.func @mean(%x: tensor<1x40x40x64xf16>) -> tensor<1x34x17x64xf16> {
  %0 = graph.pool average %x {channels_last, kernel = array<i64: 7, 7>, strides = array<i64: 1, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<1x40x40x64xf16>) -> tensor<1x34x17x64xf16>
  return %0 : tensor<1x34x17x64xf16>
}

// -----

// Small windows, windows side by side, small images: not worth it.
// CHECK-LABEL: @stays
// CHECK-COUNT-3: graph.pool
// CHECK-NOT: graph.pool
func.func @stays(%x: tensor<1x40x40x64xf32>, %y: tensor<1x9x9x8xf32>) -> (tensor<1x38x38x64xf32>, tensor<1x8x8x64xf32>, tensor<1x5x5x8xf32>) {
  %0 = graph.pool max %x {channels_last, kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<1x40x40x64xf32>) -> tensor<1x38x38x64xf32>
  %1 = graph.pool max %x {channels_last, kernel = array<i64: 5, 5>, strides = array<i64: 5, 5>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<1x40x40x64xf32>) -> tensor<1x8x8x64xf32>
  %2 = graph.pool max %y {channels_last, kernel = array<i64: 5, 5>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<1x9x9x8xf32>) -> tensor<1x5x5x8xf32>
  return %0, %1, %2 : tensor<1x38x38x64xf32>, tensor<1x8x8x64xf32>, tensor<1x5x5x8xf32>
}
