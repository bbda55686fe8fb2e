// RUN: charonia-opt %s -fold-padding -split-input-file | FileCheck %s

// Zeros around a convolution add up.
// CHECK-LABEL: @convolution
// CHECK-NOT: graph.pad
// CHECK: graph.conv %arg0, {{.*}}pads = array<i64: 1, 3, 2, 1>
func.func @convolution(%x: tensor<1x8x8x16xf32>) -> tensor<1x9x10x6xf32> {
  %z = graph.constant dense<0.0> : tensor<f32>
  %0 = graph.pad constant %x, %z {lows = affine_map<() -> (0, 0, 2, 0)>} : (tensor<1x8x8x16xf32>, tensor<f32>) -> tensor<1x9x11x16xf32>
  %w = graph.weight "w" : tensor<6x3x3x16xf32>
  %1 = graph.conv %0, %w {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64}
    : (tensor<1x9x11x16xf32>, tensor<6x3x3x16xf32>) -> tensor<1x9x10x6xf32>
  return %1 : tensor<1x9x10x6xf32>
}

// -----

// A maximum takes any value; a transpose may stand between.
// CHECK-LABEL: @maximum
// CHECK: %[[T:.*]] = graph.transpose %arg0
// CHECK: graph.pool max %[[T]] {{.*}}pad_value = 1.500000e+00 : f64, pads = array<i64: 1, 2, 0, 1>
func.func @maximum(%x: tensor<1x16x8x8xf32>) -> tensor<1x7x9x16xf32> {
  %z = graph.constant dense<1.5> : tensor<f32>
  %0 = graph.pad constant %x, %z {lows = affine_map<() -> (0, 0, 1, 2)>} : (tensor<1x16x8x8xf32>, tensor<f32>) -> tensor<1x16x9x11xf32>
  %1 = graph.transpose %0 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x16x9x11xf32>) -> tensor<1x9x11x16xf32>
  %2 = graph.pool max %1 {channels_last, kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<1x9x11x16xf32>) -> tensor<1x7x9x16xf32>
  return %2 : tensor<1x7x9x16xf32>
}

// -----

// Two values, channels, a mean that leaves its own padding out: not to be had.
// CHECK-LABEL: @stays
// CHECK-COUNT-3: graph.pad constant
func.func @stays(%x: tensor<1x8x8x16xf32>) -> (tensor<1x10x10x16xf32>, tensor<1x6x6x17xf32>, tensor<1x10x10x16xf32>) {
  %z = graph.constant dense<0.0> : tensor<f32>
  %0 = graph.pad constant %x, %z {lows = affine_map<() -> (0, 1, 1, 0)>} : (tensor<1x8x8x16xf32>, tensor<f32>) -> tensor<1x10x10x16xf32>
  %1 = graph.pool max %0 {channels_last, kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>}
    : (tensor<1x10x10x16xf32>) -> tensor<1x10x10x16xf32>
  %2 = graph.pad constant %x, %z {lows = affine_map<() -> (0, 0, 0, 1)>} : (tensor<1x8x8x16xf32>, tensor<f32>) -> tensor<1x8x8x17xf32>
  %3 = graph.pool average %2 {channels_last, kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<1x8x8x17xf32>) -> tensor<1x6x6x17xf32>
  %4 = graph.pad constant %x, %z {lows = affine_map<() -> (0, 1, 1, 0)>} : (tensor<1x8x8x16xf32>, tensor<f32>) -> tensor<1x10x10x16xf32>
  %5 = graph.pool average %4 {channels_last, kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>}
    : (tensor<1x10x10x16xf32>) -> tensor<1x10x10x16xf32>
  return %1, %3, %5 : tensor<1x10x10x16xf32>, tensor<1x6x6x17xf32>, tensor<1x10x10x16xf32>
}
