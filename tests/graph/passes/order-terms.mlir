// RUN: charonia-opt %s --order-terms --canonicalize --split-input-file | FileCheck %s
// RUN: charonia-opt %s --order-terms=most-twice=0 --split-input-file | FileCheck %s --check-prefix=ONCE

// An image with channels last, flattened with channels first: its weights, of which each
// column's terms lie side by side, get the image's order there, and the image is flattened
// as it lies.
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[W:.*]] = graph.weight "w" : tensor<10x105xf16>
// CHECK-DAG:     %[[X:.*]] = graph.reshape %arg0 : {{.*}} -> tensor<?x105xf16
// CHECK-DAG:     %[[CUT:.*]] = graph.reshape %[[W]] : (tensor<10x105xf16>) -> tensor<10x7x3x5xf16>
// CHECK-DAG:     %[[MOVED:.*]] = graph.transpose %[[CUT]] {permutation = array<i64: 0, 2, 3, 1>}
// CHECK-DAG:     %[[STORED:.*]] = graph.reshape %[[MOVED]] {graph.stored} : (tensor<10x3x5x7xf16>) -> tensor<10x105xf16>
// CHECK-DAG:     %[[T:.*]] = graph.transpose %[[STORED]] {permutation = array<i64: 1, 0>}
// CHECK:         graph.matmul %[[X]], %[[T]]
module attributes {graph.symbols = [{name = "batch", min = 1, opt = 1, max = 64, divisor = 1}]} {
func.func @main(%x: tensor<?x3x5x7xf16, affine_map<()[s0] -> (s0, 3, 5, 7)>>) -> tensor<?x10xf16, affine_map<()[s0] -> (s0, 10)>> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 3, 1, 2>} : (tensor<?x3x5x7xf16, affine_map<()[s0] -> (s0, 3, 5, 7)>>) -> tensor<?x7x3x5xf16, affine_map<()[s0] -> (s0, 7, 3, 5)>>
  %1 = graph.reshape %0 : (tensor<?x7x3x5xf16, affine_map<()[s0] -> (s0, 7, 3, 5)>>) -> tensor<?x105xf16, affine_map<()[s0] -> (s0, 105)>>
  %w = graph.weight "w" : tensor<10x105xf16>
  %2 = graph.transpose %w {permutation = array<i64: 1, 0>} : (tensor<10x105xf16>) -> tensor<105x10xf16>
  %3 = graph.matmul %1, %2 : (tensor<?x105xf16, affine_map<()[s0] -> (s0, 105)>>, tensor<105x10xf16>) -> tensor<?x10xf16, affine_map<()[s0] -> (s0, 10)>>
  return %3 : tensor<?x10xf16, affine_map<()[s0] -> (s0, 10)>>
}
}

// -----

// Patches of an image as rows, with terms (row, column, channel), where memory has (channel,
// row, column): rows stay where they are.
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[MOVED:.*]] = graph.transpose %{{.*}} {permutation = array<i64: 0, 2, 4, 1, 3, 5>} : {{.*}} -> tensor<2x4x4x3x8x8xf32>
// CHECK-DAG:     %[[X:.*]] = graph.reshape %[[MOVED]] : (tensor<2x4x4x3x8x8xf32>) -> tensor<32x192xf32>
// CHECK-DAG:     %[[CUT:.*]] = graph.reshape {{.*}} : (tensor<192x16xf32>) -> tensor<8x8x3x16xf32>
// CHECK-DAG:     graph.transpose %[[CUT]] {permutation = array<i64: 2, 0, 1, 3>}
// CHECK:         graph.matmul %[[X]]
func.func @main(%x: tensor<2x3x32x32xf32>) -> tensor<32x16xf32> {
  %0 = graph.reshape %x : (tensor<2x3x32x32xf32>) -> tensor<2x3x4x8x4x8xf32>
  %1 = graph.transpose %0 {permutation = array<i64: 0, 2, 4, 3, 5, 1>} : (tensor<2x3x4x8x4x8xf32>) -> tensor<2x4x4x8x8x3xf32>
  %2 = graph.reshape %1 : (tensor<2x4x4x8x8x3xf32>) -> tensor<32x192xf32>
  %w = graph.weight "w" : tensor<192x16xf32>
  %3 = graph.matmul %2, %w : (tensor<32x192xf32>, tensor<192x16xf32>) -> tensor<32x16xf32>
  return %3 : tensor<32x16xf32>
}

// -----

// Operators element by element on the way take their other operands in the same order, once
// for both products.
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[MOVED:.*]] = graph.transpose %{{.*}} {permutation = array<i64: 1, 2, 0>} : (tensor<8x4x3xf32>) -> tensor<4x3x8xf32>
// CHECK-DAG:     %[[B:.*]] = graph.reshape %[[MOVED]] : (tensor<4x3x8xf32>) -> tensor<1x4x3x8xf32>
// CHECK:         %[[SUM:.*]] = graph.add %arg0, %[[B]]
// CHECK:         %[[MAX:.*]] = graph.max %[[SUM]]
// CHECK:         %[[X:.*]] = graph.reshape %[[MAX]] : (tensor<3x4x3x8xf32>) -> tensor<3x96xf32>
// CHECK:         graph.matmul %[[X]]
// CHECK:         graph.matmul %[[X]]
func.func @main(%x: tensor<3x4x3x8xf32>) -> (tensor<3x16xf32>, tensor<3x9xf32>) {
  %0 = graph.transpose %x {permutation = array<i64: 0, 3, 1, 2>} : (tensor<3x4x3x8xf32>) -> tensor<3x8x4x3xf32>
  %1 = graph.reshape %0 : (tensor<3x8x4x3xf32>) -> tensor<3x96xf32>
  %b = graph.weight "b" : tensor<96xf32>
  %2 = graph.add %1, %b : (tensor<3x96xf32>, tensor<96xf32>) -> tensor<3x96xf32>
  %zero = graph.constant dense<0.0> : tensor<f32>
  %3 = graph.max %2, %zero : (tensor<3x96xf32>, tensor<f32>) -> tensor<3x96xf32>
  %w = graph.weight "w" : tensor<96x16xf32>
  %4 = graph.matmul %3, %w : (tensor<3x96xf32>, tensor<96x16xf32>) -> tensor<3x16xf32>
  %v = graph.weight "v" : tensor<96x9xf32>
  %5 = graph.matmul %3, %v : (tensor<3x96xf32>, tensor<96x9xf32>) -> tensor<3x9xf32>
  return %4, %5 : tensor<3x16xf32>, tensor<3x9xf32>
}

// -----

// What has the product's order is added to what has not: one of the two is moved in any case.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     graph.stored
func.func @main(%x: tensor<3x4x3x8xf32>, %y: tensor<3x96xf32>) -> tensor<3x16xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 3, 1, 2>} : (tensor<3x4x3x8xf32>) -> tensor<3x8x4x3xf32>
  %1 = graph.reshape %0 : (tensor<3x8x4x3xf32>) -> tensor<3x96xf32>
  %2 = graph.add %1, %y : (tensor<3x96xf32>, tensor<3x96xf32>) -> tensor<3x96xf32>
  %w = graph.weight "w" : tensor<96x16xf32>
  %3 = graph.matmul %2, %w : (tensor<3x96xf32>, tensor<96x16xf32>) -> tensor<3x16xf32>
  return %3 : tensor<3x16xf32>
}

// -----

// Channels that were shuffled, in front of a convolution.
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[CUT:.*]] = graph.reshape %{{.*}} : (tensor<16x3x3x6xf32>) -> tensor<16x3x3x3x2xf32>
// CHECK-DAG:     graph.transpose %[[CUT]] {permutation = array<i64: 0, 1, 2, 4, 3>}
// CHECK:         graph.conv %arg0, %{{.*}}
func.func @main(%x: tensor<1x8x8x6xf32>) -> tensor<1x6x6x16xf32> {
  %0 = graph.reshape %x : (tensor<1x8x8x6xf32>) -> tensor<1x8x8x2x3xf32>
  %1 = graph.transpose %0 {permutation = array<i64: 0, 1, 2, 4, 3>} : (tensor<1x8x8x2x3xf32>) -> tensor<1x8x8x3x2xf32>
  %2 = graph.reshape %1 : (tensor<1x8x8x3x2xf32>) -> tensor<1x8x8x6xf32>
  %w = graph.weight "w" : tensor<16x3x3x6xf32>
  %3 = graph.conv %2, %w {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x8x8x6xf32>, tensor<16x3x3x6xf32>) -> tensor<1x6x6x16xf32>
  return %3 : tensor<1x6x6x16xf32>
}

// -----

// Two products that take the same weights alike take them in the new order together. What
// another reader needs in its own is stored twice if it is small, and else stays.
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[W:.*]] = graph.reshape %{{.*}} {graph.stored} : {{.*}} -> tensor<96x16xf32>
// CHECK-DAG:     graph.matmul %{{.*}}, %[[W]] : (tensor<3x96xf32>
// CHECK-DAG:     graph.matmul %{{.*}}, %[[W]] : (tensor<5x96xf32>
// CHECK-DAG:     %[[V:.*]] = graph.reshape %{{.*}} {graph.stored} : {{.*}} -> tensor<96x17xf32>
// CHECK-DAG:     graph.matmul %{{.*}}, %[[V]] : (tensor<7x96xf32>
// ONCE-LABEL: func.func @main(%arg0: tensor<3x12x8xf32>, %arg1: tensor<5x12x8xf32>
// ONCE:         %[[W:.*]] = graph.reshape %{{.*}} {graph.stored} : {{.*}} -> tensor<96x16xf32>
// ONCE-NOT:     graph.stored
// ONCE:         graph.matmul %{{.*}}, %[[W]]
// ONCE:         graph.matmul %{{.*}}, %[[W]]
// ONCE-NOT:     graph.stored
func.func @main(%x: tensor<3x12x8xf32>, %y: tensor<5x12x8xf32>, %z: tensor<7x12x8xf32>) -> (tensor<3x16xf32>, tensor<5x16xf32>, tensor<7x17xf32>, tensor<96x17xf32>) {
  %0 = graph.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<3x12x8xf32>) -> tensor<3x8x12xf32>
  %1 = graph.reshape %0 : (tensor<3x8x12xf32>) -> tensor<3x96xf32>
  %2 = graph.transpose %y {permutation = array<i64: 0, 2, 1>} : (tensor<5x12x8xf32>) -> tensor<5x8x12xf32>
  %3 = graph.reshape %2 : (tensor<5x8x12xf32>) -> tensor<5x96xf32>
  %4 = graph.transpose %z {permutation = array<i64: 0, 2, 1>} : (tensor<7x12x8xf32>) -> tensor<7x8x12xf32>
  %5 = graph.reshape %4 : (tensor<7x8x12xf32>) -> tensor<7x96xf32>
  %w = graph.weight "w" : tensor<96x16xf32>
  %v = graph.weight "v" : tensor<96x17xf32>
  %6 = graph.matmul %1, %w : (tensor<3x96xf32>, tensor<96x16xf32>) -> tensor<3x16xf32>
  %7 = graph.matmul %3, %w : (tensor<5x96xf32>, tensor<96x16xf32>) -> tensor<5x16xf32>
  %8 = graph.matmul %5, %v : (tensor<7x96xf32>, tensor<96x17xf32>) -> tensor<7x17xf32>
  return %6, %7, %8, %v : tensor<3x16xf32>, tensor<5x16xf32>, tensor<7x17xf32>, tensor<96x17xf32>
}

// -----

// Nothing to do: terms in the order of memory, rows that lie in another order, a part of
// the terms' memory that belongs to rows, or no weights.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     graph.stored
func.func @main(%x: tensor<3x4x8xf32>, %y: tensor<96x16xf32>, %z: tensor<4x3x8xf32>) -> (tensor<3x16xf32>, tensor<8x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>) {
  %w = graph.weight "w" : tensor<32x16xf32>
  %0 = graph.reshape %x : (tensor<3x4x8xf32>) -> tensor<3x32xf32>
  %1 = graph.matmul %0, %w : (tensor<3x32xf32>, tensor<32x16xf32>) -> tensor<3x16xf32>
  %2 = graph.transpose %x {permutation = array<i64: 2, 0, 1>} : (tensor<3x4x8xf32>) -> tensor<8x3x4xf32>
  %3 = graph.reshape %2 : (tensor<8x3x4xf32>) -> tensor<8x12xf32>
  %v = graph.weight "v" : tensor<12x16xf32>
  %4 = graph.matmul %3, %v : (tensor<8x12xf32>, tensor<12x16xf32>) -> tensor<8x16xf32>
  %5 = graph.transpose %z {permutation = array<i64: 1, 0, 2>} : (tensor<4x3x8xf32>) -> tensor<3x4x8xf32>
  %6 = graph.reshape %5 : (tensor<3x4x8xf32>) -> tensor<3x32xf32>
  %7 = graph.matmul %6, %w : (tensor<3x32xf32>, tensor<32x16xf32>) -> tensor<3x16xf32>
  %8 = graph.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<3x4x8xf32>) -> tensor<3x8x4xf32>
  %9 = graph.reshape %8 : (tensor<3x8x4xf32>) -> tensor<3x32xf32>
  %10 = graph.slice %y {starts = affine_map<() -> (0, 0)>, steps = array<i64: 1, 1>} : (tensor<96x16xf32>) -> tensor<32x16xf32>
  %11 = graph.matmul %9, %10 : (tensor<3x32xf32>, tensor<32x16xf32>) -> tensor<3x16xf32>
  return %1, %4, %7, %11 : tensor<3x16xf32>, tensor<8x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>
}

// -----

// What is moved has another reader, for which it may be stored.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     graph.stored
func.func @main(%x: tensor<3x12x8xf32>) -> (tensor<3x16xf32>, tensor<3x48xf32>) {
  %0 = graph.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<3x12x8xf32>) -> tensor<3x8x12xf32>
  %1 = graph.reshape %0 : (tensor<3x8x12xf32>) -> tensor<3x96xf32>
  %w = graph.weight "w" : tensor<96x16xf32>
  %2 = graph.matmul %1, %w : (tensor<3x96xf32>, tensor<96x16xf32>) -> tensor<3x16xf32>
  %3 = graph.slice %1 {starts = affine_map<() -> (0, 0)>, steps = array<i64: 1, 1>} : (tensor<3x96xf32>) -> tensor<3x48xf32>
  return %2, %3 : tensor<3x16xf32>, tensor<3x48xf32>
}

// -----

// Weights of integers that the product widens have scales of their terms: they stay.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     graph.stored
func.func @main(%x: tensor<3x12x8xf16>) -> tensor<3x16xf16> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<3x12x8xf16>) -> tensor<3x8x12xf16>
  %1 = graph.reshape %0 : (tensor<3x8x12xf16>) -> tensor<3x96xf16>
  %q = graph.weight "q" : tensor<96x16xi8>
  %f = graph.cast %q {to = f16} : (tensor<96x16xi8>) -> tensor<96x16xf16>
  %s = graph.weight "s" : tensor<1x16xf16>
  %w = graph.mul %f, %s : (tensor<96x16xf16>, tensor<1x16xf16>) -> tensor<96x16xf16>
  %4 = graph.matmul %1, %w : (tensor<3x96xf16>, tensor<96x16xf16>) -> tensor<3x16xf16>
  return %4 : tensor<3x16xf16>
}
