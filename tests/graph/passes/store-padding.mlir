// RUN: charonia-opt %s -store-padding -split-input-file | FileCheck %s

// Three channels: the zeros around the image go to memory.
// CHECK: #[[LOWS:.*]] = affine_map<() -> (0, 1, 3, 0)>
// CHECK-LABEL: @image
// CHECK: %[[Z:.*]] = graph.constant dense<0.000000e+00> : tensor<f32>
// CHECK: %[[P:.*]] = graph.pad constant %arg0, %[[Z]] {lows = #[[LOWS]]} : (tensor<1x8x8x3xf32>, tensor<f32>) -> tensor<1x11x14x3xf32>
// CHECK: graph.conv %[[P]]
// CHECK-SAME: pads = array<i64: 0, 0, 0, 0>
// CHECK-SAME: -> tensor<1x5x4x6xf32>
func.func @image(%x: tensor<1x8x8x3xf32>) -> tensor<1x5x4x6xf32> {
  %w = graph.weight "w" : tensor<6x3x7x3xf32>
  %0 = graph.conv %x, %w {channels_last, strides = array<i64: 2, 2>, pads = array<i64: 1, 3, 2, 3>, dilations = array<i64: 1, 1>, groups = 1 : i64}
    : (tensor<1x8x8x3xf32>, tensor<6x3x7x3xf32>) -> tensor<1x5x4x6xf32>
  return %0 : tensor<1x5x4x6xf32>
}

// -----

// Eight channels are a run by themselves; channels that are not innermost are none.
// CHECK-LABEL: @stays
// CHECK-NOT: graph.pad
func.func @stays(%x: tensor<1x8x8x8xf32>, %y: tensor<1x3x8x8xf32>) -> (tensor<1x8x8x6xf32>, tensor<1x6x8x8xf32>) {
  %w = graph.weight "w" : tensor<6x3x3x8xf32>
  %0 = graph.conv %x, %w {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64}
    : (tensor<1x8x8x8xf32>, tensor<6x3x3x8xf32>) -> tensor<1x8x8x6xf32>
  %v = graph.weight "v" : tensor<6x3x3x3xf32>
  %1 = graph.conv %y, %v {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64}
    : (tensor<1x3x8x8xf32>, tensor<6x3x3x3xf32>) -> tensor<1x6x8x8xf32>
  return %0, %1 : tensor<1x8x8x6xf32>, tensor<1x6x8x8xf32>
}

// -----

// A large window of single channels: zeros beside the image are stored, its rows above and below are
// left out by the convolution.
// CHECK-LABEL: @depthwise
// CHECK: graph.pad constant %arg0, %{{.*}} -> tensor<1x8x38x64xf32>
// CHECK: graph.conv {{.*}}groups = 64
// CHECK-SAME: pads = array<i64: 15, 0, 15, 0>
func.func @depthwise(%x: tensor<1x8x8x64xf32>) -> tensor<1x8x8x64xf32> {
  %w = graph.weight "w" : tensor<64x31x31x1xf32>
  %0 = graph.conv %x, %w {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 15, 15, 15, 15>, dilations = array<i64: 1, 1>, groups = 64 : i64}
    : (tensor<1x8x8x64xf32>, tensor<64x31x31x1xf32>) -> tensor<1x8x8x64xf32>
  return %0 : tensor<1x8x8x64xf32>
}
