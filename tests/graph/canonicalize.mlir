// RUN: charonia-opt %s -canonicalize -cse -split-input-file | FileCheck %s

// CHECK-LABEL: @views
// CHECK-NEXT: return %arg0
func.func @views(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %1 = graph.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %2 = graph.reshape %1 : (tensor<4x6xf32>) -> tensor<24xf32>
  %3 = graph.reshape %2 : (tensor<24xf32>) -> tensor<4x6xf32>
  %4 = graph.slice %3 {starts = affine_map<() -> (0, 0)>, steps = array<i64: 1, 1>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %5 = graph.broadcast %4 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %5 : tensor<4x6xf32>
}

// -----

// CHECK-LABEL: @transposes
// CHECK-NEXT: graph.transpose %arg0 {permutation = array<i64: 2, 0, 1>}
// CHECK-NEXT: return
func.func @transposes(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = graph.transpose %0 {permutation = array<i64: 1, 2, 0>} : (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>
  return %1 : tensor<4x2x3xf32>
}

// -----

// CHECK: #[[$MAP:.+]] = affine_map<() -> (7)>
// CHECK-LABEL: @slices
// CHECK-NEXT: graph.slice %arg0 {starts = #[[$MAP]], steps = array<i64: -2>} : (tensor<10xf32>) -> tensor<3xf32>
// CHECK-NEXT: return
func.func @slices(%x: tensor<10xf32>) -> tensor<3xf32> {
  %0 = graph.slice %x {starts = affine_map<() -> (1)>, steps = array<i64: 2>} : (tensor<10xf32>) -> tensor<5xf32>
  %1 = graph.slice %0 {starts = affine_map<() -> (3)>, steps = array<i64: -1>} : (tensor<5xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}

// -----

// A gather by a constant is a view.
// CHECK-LABEL: @gather
// CHECK-NEXT: %[[S:.*]] = graph.slice %arg0 {starts = {{.*}}, steps = array<i64: 1, 1>} : (tensor<3x5xf32>) -> tensor<1x5xf32>
// CHECK-NEXT: graph.reshape %[[S]] : (tensor<1x5xf32>) -> tensor<5xf32>
// CHECK-NOT: graph.gather
func.func @gather(%x: tensor<3x5xf32>) -> tensor<5xf32> {
  %i = graph.constant dense<-1> : tensor<i64>
  %0 = graph.gather %x, %i {axis = 0 : i64} : (tensor<3x5xf32>, tensor<i64>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

// Of an open size only where it is known to be large enough.
module attributes {graph.symbols = [{divisor = 1 : i64, max = 64 : i64, min = 4 : i64, name = "n", opt = 8 : i64}]} {
// CHECK-LABEL: @gather_open
// CHECK: graph.slice
// CHECK-NOT: graph.gather
func.func @gather_open(%x: tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>) -> tensor<5xf32> {
  %i = graph.constant dense<3> : tensor<i64>
  %0 = graph.gather %x, %i {axis = 0 : i64} : (tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>, tensor<i64>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
// CHECK-LABEL: @gather_open_outside
// CHECK: graph.gather
func.func @gather_open_outside(%x: tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>) -> tensor<5xf32> {
  %i = graph.constant dense<4> : tensor<i64>
  %0 = graph.gather %x, %i {axis = 0 : i64} : (tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>, tensor<i64>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
}

// -----

// CHECK-LABEL: @gather_outside
// CHECK: graph.gather
func.func @gather_outside(%x: tensor<3x5xf32>) -> tensor<5xf32> {
  %i = graph.constant dense<3> : tensor<i64>
  %0 = graph.gather %x, %i {axis = 0 : i64} : (tensor<3x5xf32>, tensor<i64>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

!s = tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>

// Pointwise operators broadcast by themselves ...
// CHECK-LABEL: @broadcast_operand
// CHECK-NEXT: graph.add %arg0, %arg1
// CHECK-NEXT: return
func.func @broadcast_operand(%x: !s, %b: tensor<8xf32>) -> !s {
  %0 = graph.broadcast %b : (tensor<8xf32>) -> !s
  %1 = graph.add %x, %0 : (!s, !s) -> !s
  return %1 : !s
}
// ... however many there are of one broadcast ...
// CHECK-LABEL: @broadcast_operands
// CHECK-NOT: graph.broadcast
// CHECK: return
func.func @broadcast_operands(%x: !s, %b: tensor<8xf32>) -> !s {
  %0 = graph.broadcast %b : (tensor<8xf32>) -> !s
  %1 = graph.add %x, %0 : (!s, !s) -> !s
  %2 = graph.mul %1, %0 : (!s, !s) -> !s
  %3 = graph.add %2, %0 : (!s, !s) -> !s
  %4 = graph.mul %3, %0 : (!s, !s) -> !s
  %5 = graph.add %4, %0 : (!s, !s) -> !s
  %6 = graph.mul %5, %0 : (!s, !s) -> !s
  %7 = graph.add %6, %0 : (!s, !s) -> !s
  %8 = graph.mul %7, %0 : (!s, !s) -> !s
  %9 = graph.add %8, %0 : (!s, !s) -> !s
  %10 = graph.mul %9, %0 : (!s, !s) -> !s
  %11 = graph.add %10, %0 : (!s, !s) -> !s
  %12 = graph.mul %11, %0 : (!s, !s) -> !s
  %13 = graph.add %12, %0 : (!s, !s) -> !s
  return %13 : !s
}

// ... and broadcast as late as possible.
// CHECK-LABEL: @broadcast_late
// CHECK-NEXT: %[[E:.*]] = graph.exp %arg0 : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: graph.broadcast %[[E]]
// CHECK-NEXT: return
func.func @broadcast_late(%b: tensor<8xf32>) -> !s {
  %0 = graph.broadcast %b : (tensor<8xf32>) -> !s
  %1 = graph.exp %0 : (!s) -> !s
  return %1 : !s
}
// The result must keep its shape: a broadcast of both operands stays.
// CHECK-LABEL: @broadcast_both
// CHECK-NEXT: %[[A:.*]] = graph.add %arg0, %arg1 : (tensor<8xf32>, tensor<1x1xf32>) -> tensor<1x8xf32>
// CHECK-NEXT: graph.broadcast %[[A]] : (tensor<1x8xf32>) -> tensor<4x8xf32>
func.func @broadcast_both(%a: tensor<8xf32>, %b: tensor<1x1xf32>) -> tensor<4x8xf32> {
  %0 = graph.broadcast %a : (tensor<8xf32>) -> tensor<4x8xf32>
  %1 = graph.broadcast %b : (tensor<1x1xf32>) -> tensor<4x8xf32>
  %2 = graph.add %0, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

// Casts through a type that keeps all values vanish, others stay.
// CHECK-LABEL: @casts
// CHECK-NEXT: %[[A:.*]] = graph.cast %arg0 {to = bf16} : (tensor<4xf16>) -> tensor<4xbf16>
// CHECK-NEXT: %[[B:.*]] = graph.cast %arg1 {to = f16}
// CHECK-NEXT: %[[C:.*]] = graph.cast %[[B]] {to = f32}
// CHECK-NEXT: return %arg0, %[[A]], %[[C]]
func.func @casts(%h: tensor<4xf16>, %f: tensor<4xf32>) -> (tensor<4xf16>, tensor<4xbf16>, tensor<4xf32>) {
  %0 = graph.cast %h {to = f32} : (tensor<4xf16>) -> tensor<4xf32>
  %1 = graph.cast %0 {to = f16} : (tensor<4xf32>) -> tensor<4xf16>
  %2 = graph.cast %0 {to = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
  %3 = graph.cast %f {to = f16} : (tensor<4xf32>) -> tensor<4xf16>
  %4 = graph.cast %3 {to = f32} : (tensor<4xf16>) -> tensor<4xf32>
  return %1, %2, %4 : tensor<4xf16>, tensor<4xbf16>, tensor<4xf32>
}

// -----

// CHECK-LABEL: @select_known
// CHECK-NEXT: return %arg0
func.func @select_known(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %t = graph.constant dense<true> : tensor<4xi1>
  %0 = graph.select %t, %x, %y : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @unit_reduction
// CHECK-NEXT: graph.reshape %arg0 : (tensor<4x1xf32>) -> tensor<4xf32>
func.func @unit_reduction(%x: tensor<4x1xf32>) -> tensor<4xf32> {
  %0 = graph.reduce max %x {axes = array<i64: 1>} : (tensor<4x1xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @concat
// CHECK-NEXT: return %arg0
func.func @concat(%x: tensor<4xf32>, %empty: tensor<0xf32>) -> tensor<4xf32> {
  %0 = graph.concat %x, %empty {axis = 0 : i64} : (tensor<4xf32>, tensor<0xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
