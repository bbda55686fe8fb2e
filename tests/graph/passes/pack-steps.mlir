// Filters of a window lie as a GPU's tiles read them: what all columns have of 64 terms of
// 16 bits, 128 bytes each, is one run. Few rows, other types, and channels that are no whole
// steps stay as they are.
// RUN: charonia-opt %s --pack-weights=panel=1 --split-prepare --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK:         %[[W:.*]] = graph.weight "prepared.0" : tensor<3x3x2x40x64xf16>
// CHECK:         %[[T:.*]] = graph.transpose %[[W]] {permutation = array<i64: 3, 0, 1, 2, 4>}
// CHECK:         %[[F:.*]] = graph.reshape %[[T]] : {{.*}} -> tensor<40x3x3x128xf16>
// CHECK:         graph.conv %{{.*}}, %[[F]]
// CHECK-LABEL: func.func @prepare
// CHECK:         graph.reshape {{.*}} -> tensor<40x3x3x2x64xf16>
// CHECK:         graph.transpose {{.*}} {permutation = array<i64: 1, 2, 3, 0, 4>}
func.func @main(%x: tensor<1x8x8x128xf16>) -> tensor<1x8x8x40xf16> {
  %w = graph.weight "w" : tensor<40x3x3x128xf16>
  %0 = graph.conv %x, %w {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x8x8x128xf16>, tensor<40x3x3x128xf16>) -> tensor<1x8x8x40xf16>
  return %0 : tensor<1x8x8x40xf16>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-NOT:     tensor<3x3x1
// CHECK:         graph.weight "w" : tensor<40x3x3x96xf16>
func.func @main(%x: tensor<1x8x8x96xf16>) -> tensor<1x8x8x40xf16> {
  %w = graph.weight "w" : tensor<40x3x3x96xf16>
  %0 = graph.conv %x, %w {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x8x8x96xf16>, tensor<40x3x3x96xf16>) -> tensor<1x8x8x40xf16>
  return %0 : tensor<1x8x8x40xf16>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK:         graph.weight "w" : tensor<40x3x3x128xf32>
func.func @main(%x: tensor<1x8x8x128xf32>) -> tensor<1x8x8x40xf32> {
  %w = graph.weight "w" : tensor<40x3x3x128xf32>
  %0 = graph.conv %x, %w {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x8x8x128xf32>, tensor<40x3x3x128xf32>) -> tensor<1x8x8x40xf32>
  return %0 : tensor<1x8x8x40xf32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK:         graph.weight "w" : tensor<40x3x3x128xf16>
func.func @main(%x: tensor<1x3x3x128xf16>) -> tensor<1x1x1x40xf16> {
  %w = graph.weight "w" : tensor<40x3x3x128xf16>
  %0 = graph.conv %x, %w {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x3x3x128xf16>, tensor<40x3x3x128xf16>) -> tensor<1x1x1x40xf16>
  return %0 : tensor<1x1x1x40xf16>
}
