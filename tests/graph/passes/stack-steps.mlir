// RUN: charonia-opt %s -stack-steps -canonicalize -cse -split-input-file | FileCheck %s

// Steps of a recurrence: the inputs' part at once, the state's step by step.
// CHECK-LABEL: @recurrence
// CHECK: %[[ROWS:.*]] = graph.reshape %arg0 : (tensor<3x2x4xf32>) -> tensor<6x4xf32>
// CHECK: %[[ALL:.*]] = graph.matmul %[[ROWS]], %arg2
// CHECK: %[[PARTS:.*]] = graph.reshape %[[ALL]] : (tensor<6x5xf32>) -> tensor<3x2x5xf32>
// CHECK-COUNT-3: graph.slice %[[PARTS]]
// CHECK-COUNT-2: graph.matmul {{.*}}, %arg3
// CHECK-NOT: graph.matmul
func.func @recurrence(%x: tensor<3x2x4xf32>, %h: tensor<2x5xf32>, %w: tensor<4x5xf32>, %u: tensor<5x5xf32>) -> tensor<2x5xf32> {
  %s0 = graph.slice %x {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<3x2x4xf32>) -> tensor<1x2x4xf32>
  %x0 = graph.reshape %s0 : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
  %a0 = graph.matmul %x0, %w : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  %s1 = graph.slice %x {starts = affine_map<() -> (1, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<3x2x4xf32>) -> tensor<1x2x4xf32>
  %x1 = graph.reshape %s1 : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
  %a1 = graph.matmul %x1, %w : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  %b1 = graph.matmul %a0, %u : (tensor<2x5xf32>, tensor<5x5xf32>) -> tensor<2x5xf32>
  %h1 = graph.add %a1, %b1 : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
  %s2 = graph.slice %x {starts = affine_map<() -> (2, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<3x2x4xf32>) -> tensor<1x2x4xf32>
  %x2 = graph.reshape %s2 : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
  %a2 = graph.matmul %x2, %w : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  %b2 = graph.matmul %h1, %u : (tensor<2x5xf32>, tensor<5x5xf32>) -> tensor<2x5xf32>
  %h2 = graph.add %a2, %b2 : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
  return %h2 : tensor<2x5xf32>
}

// -----

// From the end to the front, behind an activation, the batch in front: in the
// order in which the parts lie.
// CHECK-LABEL: @backward
// CHECK: graph.transpose %arg0 {permutation = array<i64: 1, 0, 2>}
// CHECK: graph.tanh
// CHECK-NOT: graph.tanh
// CHECK: graph.matmul
// CHECK-NOT: graph.matmul
// CHECK: %[[S0:.*]] = graph.slice
// CHECK: %[[P0:.*]] = graph.reshape %[[S0]]
// CHECK: %[[S1:.*]] = graph.slice
// CHECK: %[[P1:.*]] = graph.reshape %[[S1]]
// CHECK: graph.sub %[[P0]], %[[P1]]
func.func @backward(%x: tensor<?x2x4xf32, affine_map<()[s0] -> (s0, 2, 4)>>, %w: tensor<4x5xf32>) -> tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>> {
  %s1 = graph.slice %x {starts = affine_map<() -> (0, 1, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<?x2x4xf32, affine_map<()[s0] -> (s0, 2, 4)>>) -> tensor<?x1x4xf32, affine_map<()[s0] -> (s0, 1, 4)>>
  %x1 = graph.reshape %s1 : (tensor<?x1x4xf32, affine_map<()[s0] -> (s0, 1, 4)>>) -> tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>
  %t1 = graph.tanh %x1 : (tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>) -> tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>
  %a1 = graph.matmul %t1, %w : (tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>, tensor<4x5xf32>) -> tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>
  %s0 = graph.slice %x {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<?x2x4xf32, affine_map<()[s0] -> (s0, 2, 4)>>) -> tensor<?x1x4xf32, affine_map<()[s0] -> (s0, 1, 4)>>
  %x0 = graph.reshape %s0 : (tensor<?x1x4xf32, affine_map<()[s0] -> (s0, 1, 4)>>) -> tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>
  %t0 = graph.tanh %x0 : (tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>) -> tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>
  %a0 = graph.matmul %t0, %w : (tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>, tensor<4x5xf32>) -> tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>
  %y = graph.sub %a0, %a1 : (tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>, tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>) -> tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>
  return %y : tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>
}

// -----

// Images, whose batch leads.
// CHECK-LABEL: @images
// CHECK: graph.conv {{.*}}tensor<4x3x5x5xf32>
// CHECK-NOT: graph.conv
func.func @images(%x: tensor<2x2x3x5x5xf32>, %w: tensor<6x3x3x3xf32>) -> tensor<2x6x3x3xf32> {
  %s0 = graph.slice %x {starts = affine_map<() -> (0, 0, 0, 0, 0)>, steps = array<i64: 1, 1, 1, 1, 1>} : (tensor<2x2x3x5x5xf32>) -> tensor<1x2x3x5x5xf32>
  %x0 = graph.reshape %s0 : (tensor<1x2x3x5x5xf32>) -> tensor<2x3x5x5xf32>
  %s1 = graph.slice %x {starts = affine_map<() -> (1, 0, 0, 0, 0)>, steps = array<i64: 1, 1, 1, 1, 1>} : (tensor<2x2x3x5x5xf32>) -> tensor<1x2x3x5x5xf32>
  %x1 = graph.reshape %s1 : (tensor<1x2x3x5x5xf32>) -> tensor<2x3x5x5xf32>
  %a0 = graph.conv %x0, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<6x3x3x3xf32>) -> tensor<2x6x3x3xf32>
  %a1 = graph.conv %x1, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x5x5xf32>, tensor<6x3x3x3xf32>) -> tensor<2x6x3x3xf32>
  %y = graph.sub %a0, %a1 : (tensor<2x6x3x3xf32>, tensor<2x6x3x3xf32>) -> tensor<2x6x3x3xf32>
  return %y : tensor<2x6x3x3xf32>
}

// -----

// At unequal distances they stay.
// CHECK-LABEL: @others
// CHECK-COUNT-3: graph.matmul
// CHECK-NOT: graph.matmul
func.func @others(%x: tensor<5x4xf32>, %z: tensor<5x4xf32>, %w: tensor<4x3xf32>) -> tensor<1x3xf32> {
  %0 = graph.slice %x {starts = affine_map<() -> (0, 0)>, steps = array<i64: 1, 1>} : (tensor<5x4xf32>) -> tensor<1x4xf32>
  %1 = graph.slice %x {starts = affine_map<() -> (1, 0)>, steps = array<i64: 1, 1>} : (tensor<5x4xf32>) -> tensor<1x4xf32>
  %3 = graph.slice %x {starts = affine_map<() -> (3, 0)>, steps = array<i64: 1, 1>} : (tensor<5x4xf32>) -> tensor<1x4xf32>
  %a = graph.matmul %0, %w : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32>
  %b = graph.matmul %1, %w : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32>
  %c = graph.matmul %3, %w : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32>
  %ab = graph.sub %a, %b : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  %abc = graph.sub %ab, %c : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  return %abc : tensor<1x3xf32>
}

// -----

// Parts of weights are left to merge-contractions.
// CHECK-LABEL: @weights
// CHECK-COUNT-2: graph.matmul
func.func @weights(%x: tensor<3x4xf32>) -> tensor<3x5xf32> {
  %w = graph.weight "w" : tensor<2x4x5xf32>
  %s0 = graph.slice %w {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<2x4x5xf32>) -> tensor<1x4x5xf32>
  %w0 = graph.reshape %s0 : (tensor<1x4x5xf32>) -> tensor<4x5xf32>
  %s1 = graph.slice %w {starts = affine_map<() -> (1, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<2x4x5xf32>) -> tensor<1x4x5xf32>
  %w1 = graph.reshape %s1 : (tensor<1x4x5xf32>) -> tensor<4x5xf32>
  %a = graph.matmul %x, %w0 : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %b = graph.matmul %x, %w1 : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %y = graph.sub %a, %b : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
