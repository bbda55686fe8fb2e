// RUN: charonia-opt %s --pad-terms --split-input-file | FileCheck %s

// Three channels become four, in the image once for both convolutions, with the zeros
// around it: rows of the window are then runs of memory.
// CHECK-LABEL: func.func @image
// CHECK:         %[[X:.*]] = graph.pad constant %arg0, {{.*}} -> tensor<1x10x10x4xf16>
// CHECK:         %[[W:.*]] = graph.pad constant {{.*}} -> tensor<16x3x3x4xf16>
// CHECK:         graph.conv %[[X]], %[[W]] {{.*}}pads = array<i64: 0, 0, 0, 0>{{.*}} -> tensor<1x8x8x16xf16>
// CHECK:         %[[V:.*]] = graph.pad constant {{.*}} -> tensor<32x3x3x4xf16>
// CHECK:         graph.conv %[[X]], %[[V]]
func.func @image(%x: tensor<1x8x8x3xf16>) -> (tensor<1x8x8x16xf16>, tensor<1x8x8x32xf16>) {
  %w = graph.weight "w" : tensor<16x3x3x3xf16>
  %0 = graph.conv %x, %w {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x8x8x3xf16>, tensor<16x3x3x3xf16>) -> tensor<1x8x8x16xf16>
  %v = graph.weight "v" : tensor<32x3x3x3xf16>
  %1 = graph.conv %x, %v {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x8x8x3xf16>, tensor<32x3x3x3xf16>) -> tensor<1x8x8x32xf16>
  return %0, %1 : tensor<1x8x8x16xf16>, tensor<1x8x8x32xf16>
}

// -----

// Patches that do not overlap are read in runs of 48, and one channel is one already.
// CHECK-LABEL: func.func @patches
// CHECK-NOT:     graph.pad
func.func @patches(%x: tensor<1x32x32x3xf16>, %y: tensor<1x8x8x1xf16>) -> (tensor<1x2x2x64xf16>, tensor<1x8x8x16xf16>) {
  %w = graph.weight "w" : tensor<64x16x16x3xf16>
  %0 = graph.conv %x, %w {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 16, 16>} : (tensor<1x32x32x3xf16>, tensor<64x16x16x3xf16>) -> tensor<1x2x2x64xf16>
  %v = graph.weight "v" : tensor<16x3x3x1xf16>
  %1 = graph.conv %y, %v {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x8x8x1xf16>, tensor<16x3x3x1xf16>) -> tensor<1x8x8x16xf16>
  return %0, %1 : tensor<1x2x2x64xf16>, tensor<1x8x8x16xf16>
}

// -----

// Rows of an odd number of pixels get one more where no window reaches it, so that all
// begin at multiples of 16 bytes; where one would, they stay.
// CHECK-LABEL: func.func @rows
// CHECK-DAG:     %[[X:.*]] = graph.pad constant %arg0, {{.*}} -> tensor<1x8x10x4xf16>
// CHECK-DAG:     %[[Y:.*]] = graph.pad constant %arg0, {{.*}} -> tensor<1x8x9x4xf16>
// CHECK:         graph.conv %[[X]], {{.*}}strides = array<i64: 2, 2>
// CHECK:         graph.conv %[[Y]], {{.*}}strides = array<i64: 1, 1>
func.func @rows(%x: tensor<1x8x9x3xf16>) -> (tensor<1x3x4x16xf16>, tensor<1x6x7x16xf16>) {
  %w = graph.weight "w" : tensor<16x3x3x3xf16>
  %0 = graph.conv %x, %w {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>} : (tensor<1x8x9x3xf16>, tensor<16x3x3x3xf16>) -> tensor<1x3x4x16xf16>
  %1 = graph.conv %x, %w {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x8x9x3xf16>, tensor<16x3x3x3xf16>) -> tensor<1x6x7x16xf16>
  return %0, %1 : tensor<1x3x4x16xf16>, tensor<1x6x7x16xf16>
}

// -----

// One row: nothing is written anew for its few terms.
// CHECK-LABEL: func.func @row(
// CHECK-NOT:     graph.pad
// CHECK:         graph.conv
func.func @row(%x: tensor<1x1x1x6xf16>) -> tensor<1x1x1x144xf16> {
  %w = graph.weight "w" : tensor<144x1x1x6xf16>
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1, channels_last} : (tensor<1x1x1x6xf16>, tensor<144x1x1x6xf16>) -> tensor<1x1x1x144xf16>
  return %0 : tensor<1x1x1x144xf16>
}

// -----

// Filters of each channel alone lie with channels side by side, behind a view.
// CHECK-LABEL: func.func @alone
// CHECK:         %[[W:.*]] = graph.weight
// CHECK:         %[[S:.*]] = graph.transpose %[[W]] {permutation = array<i64: 1, 2, 3, 0>} {{.*}} -> tensor<3x3x1x16xf16>
// CHECK:         %[[V:.*]] = graph.transpose %[[S]] {permutation = array<i64: 3, 0, 1, 2>} {{.*}} -> tensor<16x3x3x1xf16>
// CHECK:         graph.conv %arg0, %[[V]]
func.func @alone(%x: tensor<1x8x8x16xf16>) -> tensor<1x8x8x16xf16> {
  %w = graph.weight "w" : tensor<16x3x3x1xf16>
  %0 = graph.conv %x, %w {channels_last, dilations = array<i64: 1, 1>, groups = 16 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x8x8x16xf16>, tensor<16x3x3x1xf16>) -> tensor<1x8x8x16xf16>
  return %0 : tensor<1x8x8x16xf16>
}
