// RUN: charonia-opt %s -assign-layouts -simplify-views -cse -split-input-file | FileCheck %s

!x = tensor<?x3x8x8xf32, affine_map<()[s0] -> (s0, 3, 8, 8)>>
!y = tensor<?x6x8x8xf32, affine_map<()[s0] -> (s0, 6, 8, 8)>>
!z = tensor<?x6x4x4xf32, affine_map<()[s0] -> (s0, 6, 4, 4)>>
!w = tensor<?x6x1x1xf32, affine_map<()[s0] -> (s0, 6, 1, 1)>>

// One transpose at the start, none at the end; weights in their own expressions.
// CHECK-LABEL: @network
// CHECK-DAG: %[[X:.*]] = graph.transpose %arg0 {permutation = array<i64: 0, 2, 3, 1>}
// CHECK-DAG: %[[F:.*]] = graph.transpose %{{.*}} {permutation = array<i64: 0, 2, 3, 1>} : (tensor<6x3x3x3xf32>) -> tensor<6x3x3x3xf32>
// CHECK: %[[C:.*]] = graph.conv %[[X]], %[[F]] {channels_last
// CHECK: %[[B:.*]] = graph.reshape %{{.*}} : (tensor<6x1x1xf32>) -> tensor<1x1x1x6xf32>
// CHECK: %[[A:.*]] = graph.add %[[C]], %[[B]]
// CHECK: %[[R:.*]] = graph.max %[[A]], %{{.*}}
// CHECK: %[[D:.*]] = graph.conv %[[R]], %{{.*}} {channels_last, {{.*}}groups = 6
// CHECK: %[[S:.*]] = graph.add %[[D]], %[[R]]
// CHECK: %[[P:.*]] = graph.pool max %[[S]] {channels_last
// CHECK: %[[CAT:.*]] = graph.concat %[[P]], %[[P]] {axis = 3 : i64}
// CHECK: %[[M:.*]] = graph.reduce sum %[[CAT]] {axes = array<i64: 1, 2>, keepdims}
// CHECK: %[[O:.*]] = graph.reshape %[[M]]
// CHECK-NEXT: return %[[O]]
func.func @network(%x: !x) -> tensor<?x12xf32, affine_map<()[s0] -> (s0, 12)>> {
  %w = graph.weight "w" : tensor<6x3x3x3xf32>
  %b = graph.weight "b" : tensor<6x1x1xf32>
  %d = graph.weight "d" : tensor<6x1x3x3xf32>
  %zero = graph.constant dense<0.0> : tensor<f32>
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64}
    : (!x, tensor<6x3x3x3xf32>) -> !y
  %1 = graph.add %0, %b : (!y, tensor<6x1x1xf32>) -> !y
  %2 = graph.max %1, %zero : (!y, tensor<f32>) -> !y
  %3 = graph.conv %2, %d {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 6 : i64}
    : (!y, tensor<6x1x3x3xf32>) -> !y
  %4 = graph.add %3, %2 : (!y, !y) -> !y
  %5 = graph.pool max %4 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (!y) -> !z
  %6 = graph.concat %5, %5 {axis = 1 : i64} : (!z, !z) -> tensor<?x12x4x4xf32, affine_map<()[s0] -> (s0, 12, 4, 4)>>
  %7 = graph.reduce sum %6 {axes = array<i64: 2, 3>, keepdims} : (tensor<?x12x4x4xf32, affine_map<()[s0] -> (s0, 12, 4, 4)>>) -> tensor<?x12x1x1xf32, affine_map<()[s0] -> (s0, 12, 1, 1)>>
  %8 = graph.reshape %7 : (tensor<?x12x1x1xf32, affine_map<()[s0] -> (s0, 12, 1, 1)>>) -> tensor<?x12xf32, affine_map<()[s0] -> (s0, 12)>>
  return %8 : tensor<?x12xf32, affine_map<()[s0] -> (s0, 12)>>
}

// -----

// An activation that is not transposed stops the transpose.
// CHECK-LABEL: @stops
// CHECK: graph.conv {{.*}}channels_last
// CHECK-NEXT: %[[T:.*]] = graph.transpose %{{.*}} {permutation = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT: graph.add %[[T]], %arg1
func.func @stops(%x: tensor<1x3x8x8xf32>, %y: tensor<1x6x6x6xf32>) -> tensor<1x6x6x6xf32> {
  %w = graph.weight "w" : tensor<6x3x3x3xf32>
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64}
    : (tensor<1x3x8x8xf32>, tensor<6x3x3x3xf32>) -> tensor<1x6x6x6xf32>
  %1 = graph.add %0, %y : (tensor<1x6x6x6xf32>, tensor<1x6x6x6xf32>) -> tensor<1x6x6x6xf32>
  return %1 : tensor<1x6x6x6xf32>
}

// -----

// The sequence in front of the batch: through the product, and back.
// CHECK-LABEL: @sequence_first
// CHECK-NEXT: %[[W:.*]] = graph.weight
// CHECK-NEXT: %[[M:.*]] = graph.matmul %arg0, %[[W]] : (tensor<2x17x64xf32>, tensor<64x64xf32>)
// CHECK-NEXT: %[[N:.*]] = graph.normalize %[[M]] {axes = array<i64: 2>
// CHECK-NEXT: return %[[N]]
func.func @sequence_first(%x: tensor<2x17x64xf32>) -> tensor<2x17x64xf32> {
  %w = graph.weight "w" : tensor<64x64xf32>
  %0 = graph.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x17x64xf32>) -> tensor<17x2x64xf32>
  %1 = graph.matmul %0, %w : (tensor<17x2x64xf32>, tensor<64x64xf32>) -> tensor<17x2x64xf32>
  %2 = graph.normalize %1 {axes = array<i64: 2>, epsilon = 1.0e-6 : f64} : (tensor<17x2x64xf32>) -> tensor<17x2x64xf32>
  %3 = graph.transpose %2 {permutation = array<i64: 1, 0, 2>} : (tensor<17x2x64xf32>) -> tensor<2x17x64xf32>
  return %3 : tensor<2x17x64xf32>
}

// -----

// Attributes that name dimensions follow.
// CHECK-LABEL: @attributes
// CHECK-NEXT: graph.softmax %arg0 {axis = 1 : i64}
// CHECK: graph.slice %arg0 {starts = {{.*}}, steps = array<i64: 1, 2, 1>} : (tensor<2x4x6xf32>) -> tensor<2x2x5xf32>
// CHECK: graph.resize linear %arg0 {axes = array<i64: 1, 2>, {{.*}}scales = array<f64: 3.000000e+00, 2.000000e+00>} : (tensor<2x4x6xf32>) -> tensor<2x12x12xf32>
// CHECK: graph.reduce max %arg0 {axes = array<i64: 2>} : (tensor<2x4x6xf32>) -> tensor<2x4xf32>
func.func @attributes(%x: tensor<2x4x6xf32>) -> (tensor<6x2x4xf32>, tensor<5x2x2xf32>, tensor<12x2x12xf32>, tensor<2x4xf32>) {
  %0 = graph.transpose %x {permutation = array<i64: 2, 0, 1>} : (tensor<2x4x6xf32>) -> tensor<6x2x4xf32>
  %1 = graph.softmax %0 {axis = 2 : i64} : (tensor<6x2x4xf32>) -> tensor<6x2x4xf32>
  %2 = graph.slice %0 {starts = affine_map<() -> (1, 0, 1)>, steps = array<i64: 1, 1, 2>} : (tensor<6x2x4xf32>) -> tensor<5x2x2xf32>
  %3 = graph.resize linear %0 {axes = array<i64: 0, 2>, scales = array<f64: 2.0, 3.0>, coordinates = 0 : i32, nearest = 0 : i32, cubic_coeff = 0.0 : f64} : (tensor<6x2x4xf32>) -> tensor<12x2x12xf32>
  %4 = graph.reduce max %0 {axes = array<i64: 0>} : (tensor<6x2x4xf32>) -> tensor<2x4xf32>
  return %1, %2, %3, %4 : tensor<6x2x4xf32>, tensor<5x2x2xf32>, tensor<12x2x12xf32>, tensor<2x4xf32>
}

// -----

// Patches become a sequence: the transpose of the channels cancels with the
// convolution's across the reshape, before either sinks any further.
// CHECK-LABEL: @patches
// CHECK: %[[C:.*]] = graph.conv
// CHECK: %[[B:.*]] = graph.add %[[C]]
// CHECK: %[[R:.*]] = graph.reshape %[[B]] : (tensor<1x2x2x6xf32>) -> tensor<1x4x6xf32>
// CHECK-NEXT: %[[T:.*]] = graph.concat %arg1, %[[R]] {axis = 1 : i64}
// CHECK-NEXT: %[[N:.*]] = graph.normalize %[[T]] {axes = array<i64: 2>
// CHECK-NEXT: return %[[N]]
func.func @patches(%x: tensor<1x3x8x8xf32>, %token: tensor<1x1x6xf32>) -> tensor<1x5x6xf32> {
  %w = graph.weight "w" : tensor<6x3x4x4xf32>
  %b = graph.weight "b" : tensor<6x1x1xf32>
  %0 = graph.conv %x, %w {strides = array<i64: 4, 4>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64}
    : (tensor<1x3x8x8xf32>, tensor<6x3x4x4xf32>) -> tensor<1x6x2x2xf32>
  %1 = graph.add %0, %b : (tensor<1x6x2x2xf32>, tensor<6x1x1xf32>) -> tensor<1x6x2x2xf32>
  %2 = graph.reshape %1 : (tensor<1x6x2x2xf32>) -> tensor<1x6x4xf32>
  %3 = graph.transpose %2 {permutation = array<i64: 0, 2, 1>} : (tensor<1x6x4xf32>) -> tensor<1x4x6xf32>
  %4 = graph.concat %token, %3 {axis = 1 : i64} : (tensor<1x1x6xf32>, tensor<1x4x6xf32>) -> tensor<1x5x6xf32>
  %5 = graph.normalize %4 {axes = array<i64: 2>, epsilon = 1.0e-6 : f64} : (tensor<1x5x6xf32>) -> tensor<1x5x6xf32>
  return %5 : tensor<1x5x6xf32>
}

// -----

// What each step of a recurrence reads one part of lies in the steps' order: the
// transpose stays in front of the product, of which steps read runs.
// CHECK-LABEL: @steps
// CHECK:      %[[T:.*]] = graph.transpose %arg0 {{.*}} -> tensor<3x5x16xf32>
// CHECK-NEXT: %[[P:.*]] = graph.matmul %[[T]], %{{.*}} -> tensor<3x5x8xf32>
// CHECK-NEXT: %[[S:.*]] = graph.add %[[P]]
// CHECK-COUNT-3: graph.slice %[[S]]
func.func @steps(%x: tensor<5x3x16xf32>) -> tensor<1x5x4xf32> {
  %w = graph.weight "w" : tensor<16x8xf32>
  %b = graph.weight "b" : tensor<8xf32>
  %0 = graph.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<5x3x16xf32>) -> tensor<3x5x16xf32>
  %1 = graph.matmul %0, %w : (tensor<3x5x16xf32>, tensor<16x8xf32>) -> tensor<3x5x8xf32>
  %2 = graph.add %1, %b : (tensor<3x5x8xf32>, tensor<8xf32>) -> tensor<3x5x8xf32>
  %3 = graph.slice %2 {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<3x5x8xf32>) -> tensor<1x5x4xf32>
  %4 = graph.slice %2 {starts = affine_map<() -> (1, 0, 4)>, steps = array<i64: 1, 1, 1>} : (tensor<3x5x8xf32>) -> tensor<1x5x4xf32>
  %5 = graph.slice %2 {starts = affine_map<() -> (2, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<3x5x8xf32>) -> tensor<1x5x4xf32>
  %6 = graph.add %3, %4 : (tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  %7 = graph.mul %6, %5 : (tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  return %7 : tensor<1x5x4xf32>
}

// -----

// A result without dimensions has no first one that a transpose could move.
// CHECK-LABEL: @whole
// CHECK: %[[M:.*]] = graph.reduce max %arg0 {axes = array<i64: 0, 1>} : (tensor<5x3xf32>) -> tensor<f32>
// CHECK-NEXT: return %[[M]]
func.func @whole(%x: tensor<5x3xf32>) -> tensor<f32> {
  %0 = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<5x3xf32>) -> tensor<3x5xf32>
  %1 = graph.reduce max %0 {axes = array<i64: 0, 1>} : (tensor<3x5xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
