// RUN: charonia-opt %s -simplify-views -split-input-file | FileCheck %s

!s = tensor<?x?x64xf32, affine_map<()[s0, s1] -> (s0, s1, 64)>>

// Keys transposed while batch and heads are merged.
// CHECK-LABEL: @keys
// CHECK-NEXT: %[[R:.*]] = graph.reshape %arg0 : {{.*}} -> tensor<?x?x4x16xf32
// CHECK-NEXT: %[[T:.*]] = graph.transpose %[[R]] {permutation = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT: return %[[T]]
func.func @keys(%x: !s) -> tensor<?x4x16x?xf32, affine_map<()[s0, s1] -> (s0, 4, 16, s1)>> {
  %0 = graph.reshape %x : (!s) -> tensor<?x?x4x16xf32, affine_map<()[s0, s1] -> (s0, s1, 4, 16)>>
  %1 = graph.transpose %0 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<?x?x4x16xf32, affine_map<()[s0, s1] -> (s0, s1, 4, 16)>>) -> tensor<?x4x?x16xf32, affine_map<()[s0, s1] -> (s0, 4, s1, 16)>>
  %2 = graph.reshape %1 : (tensor<?x4x?x16xf32, affine_map<()[s0, s1] -> (s0, 4, s1, 16)>>) -> tensor<?x?x16xf32, affine_map<()[s0, s1] -> (s0 * 4, s1, 16)>>
  %3 = graph.transpose %2 {permutation = array<i64: 0, 2, 1>} : (tensor<?x?x16xf32, affine_map<()[s0, s1] -> (s0 * 4, s1, 16)>>) -> tensor<?x16x?xf32, affine_map<()[s0, s1] -> (s0 * 4, 16, s1)>>
  %4 = graph.reshape %3 : (tensor<?x16x?xf32, affine_map<()[s0, s1] -> (s0 * 4, 16, s1)>>) -> tensor<?x4x16x?xf32, affine_map<()[s0, s1] -> (s0, 4, 16, s1)>>
  return %4 : tensor<?x4x16x?xf32, affine_map<()[s0, s1] -> (s0, 4, 16, s1)>>
}

// -----

// A chain that comes back to where it started.
// CHECK-LABEL: @nothing
// CHECK-NEXT: return %arg0
func.func @nothing(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = graph.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %1 = graph.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %2 = graph.reshape %1 : (tensor<4x6xf32>) -> tensor<4x2x3xf32>
  %3 = graph.transpose %2 {permutation = array<i64: 1, 2, 0>} : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  return %3 : tensor<2x3x4xf32>
}

// -----

// A transpose that moves dimensions of one element alone is a reshape.
// CHECK-LABEL: @unit
// CHECK-NEXT: graph.reshape %arg0 : (tensor<2x1x1x8xf32>) -> tensor<2x8xf32>
// CHECK-NEXT: return
func.func @unit(%x: tensor<2x1x1x8xf32>) -> tensor<2x8xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 3, 1, 2>} : (tensor<2x1x1x8xf32>) -> tensor<2x8x1x1xf32>
  %1 = graph.reshape %0 : (tensor<2x8x1x1xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// -----

// A broadcast in the middle moves to the end, a slice to the start.
// CHECK-LABEL: @order
// CHECK-NEXT: %[[S:.*]] = graph.slice %arg0
// CHECK-SAME: -> tensor<1x2xf32>
// CHECK-NEXT: %[[R:.*]] = graph.reshape %[[S]] : (tensor<1x2xf32>) -> tensor<2x1xf32>
// CHECK-NEXT: %[[B:.*]] = graph.broadcast %[[R]] : (tensor<2x1xf32>) -> tensor<2x5xf32>
// CHECK-NEXT: return %[[B]]
func.func @order(%x: tensor<1x4xf32>) -> tensor<2x5xf32> {
  %0 = graph.broadcast %x : (tensor<1x4xf32>) -> tensor<5x4xf32>
  %1 = graph.reshape %0 : (tensor<5x4xf32>) -> tensor<5x1x4xf32>
  %2 = graph.transpose %1 {permutation = array<i64: 2, 1, 0>} : (tensor<5x1x4xf32>) -> tensor<4x1x5xf32>
  %3 = graph.slice %2 {starts = affine_map<() -> (1, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<4x1x5xf32>) -> tensor<2x1x5xf32>
  %4 = graph.reshape %3 : (tensor<2x1x5xf32>) -> tensor<2x5xf32>
  return %4 : tensor<2x5xf32>
}

// -----

// A merge of transposed heads takes two views, and keeps them.
// CHECK-LABEL: @merge
// CHECK-NEXT: graph.transpose
// CHECK-NEXT: graph.reshape
// CHECK-NEXT: return
func.func @merge(%x: tensor<2x4x8x16xf32>) -> tensor<16x64xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  %1 = graph.reshape %0 : (tensor<2x8x4x16xf32>) -> tensor<16x64xf32>
  return %1 : tensor<16x64xf32>
}

// -----

// The end of rows in front of their beginning: they are read once around.
// CHECK: #[[START:.*]] = affine_map<() -> (0, 3, 0)>
// CHECK-LABEL: @roll
// CHECK-NEXT: %[[ONE:.*]] = graph.reshape %arg0 {{.*}} -> tensor<2x1x7x16xf32>
// CHECK-NEXT: %[[TWO:.*]] = graph.broadcast %[[ONE]] {{.*}} -> tensor<2x2x7x16xf32>
// CHECK-NEXT: %[[ROW:.*]] = graph.reshape %[[TWO]] {{.*}} -> tensor<2x14x16xf32>
// CHECK-NEXT: %[[CUT:.*]] = graph.slice %[[ROW]] {starts = #[[START]], steps
// CHECK-NEXT: return %[[CUT]]
func.func @roll(%x: tensor<2x7x16xf32>) -> tensor<2x7x16xf32> {
  %0 = graph.slice %x {starts = affine_map<() -> (0, 3, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<2x7x16xf32>) -> tensor<2x4x16xf32>
  %1 = graph.slice %x {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<2x7x16xf32>) -> tensor<2x3x16xf32>
  %2 = graph.concat %0, %1 {axis = 1 : i64} : (tensor<2x4x16xf32>, tensor<2x3x16xf32>) -> tensor<2x7x16xf32>
  return %2 : tensor<2x7x16xf32>
}

// -----

// Neighbours would come apart, a row is missing, and the beginning is another's.
// CHECK-LABEL: @no_roll
// CHECK-COUNT-3: graph.concat
func.func @no_roll(%x: tensor<2x7x16xf32>, %z: tensor<2x7x16xf32>) -> (tensor<2x7x16xf32>, tensor<2x7x16xf32>, tensor<2x7x16xf32>) {
  %0 = graph.slice %x {starts = affine_map<() -> (0, 0, 3)>, steps = array<i64: 1, 1, 1>} : (tensor<2x7x16xf32>) -> tensor<2x7x13xf32>
  %1 = graph.slice %x {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<2x7x16xf32>) -> tensor<2x7x3xf32>
  %2 = graph.concat %0, %1 {axis = 2 : i64} : (tensor<2x7x13xf32>, tensor<2x7x3xf32>) -> tensor<2x7x16xf32>
  %3 = graph.slice %x {starts = affine_map<() -> (0, 2, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<2x7x16xf32>) -> tensor<2x4x16xf32>
  %4 = graph.slice %x {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<2x7x16xf32>) -> tensor<2x3x16xf32>
  %5 = graph.concat %3, %4 {axis = 1 : i64} : (tensor<2x4x16xf32>, tensor<2x3x16xf32>) -> tensor<2x7x16xf32>
  %6 = graph.slice %z {starts = affine_map<() -> (0, 3, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<2x7x16xf32>) -> tensor<2x4x16xf32>
  %7 = graph.concat %6, %4 {axis = 1 : i64} : (tensor<2x4x16xf32>, tensor<2x3x16xf32>) -> tensor<2x7x16xf32>
  return %2, %5, %7 : tensor<2x7x16xf32>, tensor<2x7x16xf32>, tensor<2x7x16xf32>
}

// -----

// One of the parts is transposed and back again, the other is on its way.
// CHECK-LABEL: @joined_between_transposes
// CHECK-NEXT: %[[B:.*]] = graph.transpose %arg1 {permutation = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT: %[[C:.*]] = graph.concat %arg0, %[[B]] {axis = 3 : i64} : (tensor<2x4x6x8xf32>, tensor<2x4x6x5xf32>) -> tensor<2x4x6x13xf32>
// CHECK-NEXT: return %[[C]]
func.func @joined_between_transposes(%a: tensor<2x4x6x8xf32>, %b: tensor<2x5x4x6xf32>) -> tensor<2x4x6x13xf32> {
  %0 = graph.transpose %a {permutation = array<i64: 0, 3, 1, 2>} : (tensor<2x4x6x8xf32>) -> tensor<2x8x4x6xf32>
  %1 = graph.concat %0, %b {axis = 1 : i64} : (tensor<2x8x4x6xf32>, tensor<2x5x4x6xf32>) -> tensor<2x13x4x6xf32>
  %2 = graph.transpose %1 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x13x4x6xf32>) -> tensor<2x4x6x13xf32>
  return %2 : tensor<2x4x6x13xf32>
}

// -----

// Nothing cancels, and another reads what is joined.
// CHECK-LABEL: @joined_and_transposed
// CHECK-COUNT-2: graph.concat {{.*}} {axis = 1 : i64}
func.func @joined_and_transposed(%a: tensor<2x4x6x8xf32>, %b: tensor<2x5x4x6xf32>) -> (tensor<2x4x6x13xf32>, tensor<2x4x6x13xf32>, tensor<2x13x4x6xf32>) {
  %0 = graph.transpose %a {permutation = array<i64: 0, 3, 2, 1>} : (tensor<2x4x6x8xf32>) -> tensor<2x8x6x4xf32>
  %1 = graph.reshape %0 : (tensor<2x8x6x4xf32>) -> tensor<2x8x4x6xf32>
  %2 = graph.concat %1, %b {axis = 1 : i64} : (tensor<2x8x4x6xf32>, tensor<2x5x4x6xf32>) -> tensor<2x13x4x6xf32>
  %3 = graph.transpose %2 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x13x4x6xf32>) -> tensor<2x4x6x13xf32>
  %4 = graph.transpose %a {permutation = array<i64: 0, 3, 1, 2>} : (tensor<2x4x6x8xf32>) -> tensor<2x8x4x6xf32>
  %5 = graph.concat %4, %b {axis = 1 : i64} : (tensor<2x8x4x6xf32>, tensor<2x5x4x6xf32>) -> tensor<2x13x4x6xf32>
  %6 = graph.transpose %5 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x13x4x6xf32>) -> tensor<2x4x6x13xf32>
  return %3, %6, %5 : tensor<2x4x6x13xf32>, tensor<2x4x6x13xf32>, tensor<2x13x4x6xf32>
}

// -----

// Masks of windows are the same for each image, however many there are.
// CHECK-LABEL: @mask_of_each_image
// CHECK: %[[ONCE:.*]] = graph.add {{.*}} : (tensor<4x1x7x7xf32>, tensor<1x3x7x7xf32>) -> tensor<4x3x7x7xf32>
// CHECK: %[[ALL:.*]] = graph.broadcast {{.*}} -> tensor<?x4x3x7x7xf32
// CHECK: graph.reshape %[[ALL]]
module attributes {graph.symbols = [{name = "n", min = 1, opt = 2, max = 16, divisor = 1}]} {
  func.func @mask_of_each_image(%x: tensor<?x3x7x7xf32, affine_map<()[s0] -> (s0 * 4, 3, 7, 7)>>) -> tensor<?x3x7x7xf32, affine_map<()[s0] -> (s0 * 4, 3, 7, 7)>> {
    %m = graph.weight "mask" : tensor<1x4x1x7x7xf32>
    %b = graph.weight "bias" : tensor<1x3x7x7xf32>
    %0 = graph.broadcast %m : (tensor<1x4x1x7x7xf32>) -> tensor<?x4x1x7x7xf32, affine_map<()[s0] -> (s0, 4, 1, 7, 7)>>
    %1 = graph.reshape %0 : (tensor<?x4x1x7x7xf32, affine_map<()[s0] -> (s0, 4, 1, 7, 7)>>) -> tensor<?x1x7x7xf32, affine_map<()[s0] -> (s0 * 4, 1, 7, 7)>>
    %2 = graph.add %1, %b : (tensor<?x1x7x7xf32, affine_map<()[s0] -> (s0 * 4, 1, 7, 7)>>, tensor<1x3x7x7xf32>) -> tensor<?x3x7x7xf32, affine_map<()[s0] -> (s0 * 4, 3, 7, 7)>>
    %3 = graph.add %x, %2 : (tensor<?x3x7x7xf32, affine_map<()[s0] -> (s0 * 4, 3, 7, 7)>>, tensor<?x3x7x7xf32, affine_map<()[s0] -> (s0 * 4, 3, 7, 7)>>) -> tensor<?x3x7x7xf32, affine_map<()[s0] -> (s0 * 4, 3, 7, 7)>>
    return %3 : tensor<?x3x7x7xf32, affine_map<()[s0] -> (s0 * 4, 3, 7, 7)>>
  }
}

// -----

// Numbers have no first dimension.
// CHECK-LABEL: @numbers
// CHECK: graph.add {{.*}} : (tensor<f32>, tensor<f32>) -> tensor<f32>
func.func @numbers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.weight "a" : tensor<f32>
  %b = graph.weight "b" : tensor<f32>
  %0 = graph.add %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1 = graph.mul %x, %0 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
