// RUN: charonia-opt %s -resolve-indices -split-input-file | FileCheck %s

!m = tensor<?x?xi1, affine_map<()[s0, s1] -> (s0, s1)>>
!r = tensor<?x1x1x?x1xi64, affine_map<()[s0, s1] -> (s0, 1, 1, s1, 1)>>

// A mask looked up at every pair of batch and position, as exporters write it.
// CHECK-LABEL: @mask
// CHECK-NEXT: %[[M:.*]] = graph.reshape %arg0
// CHECK-NEXT: return %[[M]]
func.func @mask(%m: !m) -> tensor<?x1x1x?xi1, affine_map<()[s0, s1] -> (s0, 1, 1, s1)>> {
  %b = graph.iota {axis = 0 : i64} : () -> tensor<?x1x1x1x1xi64, affine_map<()[s0] -> (s0, 1, 1, 1, 1)>>
  %s = graph.iota {axis = 3 : i64} : () -> tensor<1x1x1x?x1xi64, affine_map<()[s0, s1] -> (1, 1, 1, s1, 1)>>
  %bb = graph.broadcast %b : (tensor<?x1x1x1x1xi64, affine_map<()[s0] -> (s0, 1, 1, 1, 1)>>) -> !r
  %ss = graph.broadcast %s : (tensor<1x1x1x?x1xi64, affine_map<()[s0, s1] -> (1, 1, 1, s1, 1)>>) -> !r
  %i = graph.concat %bb, %ss {axis = 4 : i64} : (!r, !r) -> tensor<?x1x1x?x2xi64, affine_map<()[s0, s1] -> (s0, 1, 1, s1, 2)>>
  %0 = graph.gather_nd %m, %i {batch_dims = 0 : i64} : (!m, tensor<?x1x1x?x2xi64, affine_map<()[s0, s1] -> (s0, 1, 1, s1, 2)>>) -> tensor<?x1x1x?xi1, affine_map<()[s0, s1] -> (s0, 1, 1, s1)>>
  return %0 : tensor<?x1x1x?xi1, affine_map<()[s0, s1] -> (s0, 1, 1, s1)>>
}

// -----

// Positions are a slice of the table.
// CHECK-LABEL: @positions
// CHECK-NEXT: %[[S:.*]] = graph.slice %arg0 {starts = {{.*}}, steps = array<i64: 1, 1>} : (tensor<160x8xf32>) -> tensor<100x8xf32>
// CHECK-NEXT: return %[[S]]
func.func @positions(%t: tensor<160x8xf32>) -> tensor<100x8xf32> {
  %i = graph.iota {axis = 0 : i64} : () -> tensor<100xi64>
  %two = graph.constant dense<2> : tensor<i64>
  %p = graph.add %i, %two : (tensor<100xi64>, tensor<i64>) -> tensor<100xi64>
  %0 = graph.gather %t, %p {axis = 0 : i64} : (tensor<160x8xf32>, tensor<100xi64>) -> tensor<100x8xf32>
  return %0 : tensor<100x8xf32>
}

// -----

// Positions that may leave the table stay a gather.
// CHECK-LABEL: @leaving
// CHECK: graph.gather
func.func @leaving(%t: tensor<160x8xf32>) -> tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>> {
  %i = graph.iota {axis = 0 : i64} : () -> tensor<?xi64, affine_map<()[s0] -> (s0)>>
  %0 = graph.gather %t, %i {axis = 0 : i64} : (tensor<160x8xf32>, tensor<?xi64, affine_map<()[s0] -> (s0)>>) -> tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>
  return %0 : tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>
}

// -----

// What holds everywhere is a constant, what does not is none.
// CHECK-LABEL: @comparisons
// CHECK: %[[T:.*]] = graph.constant dense<true> : tensor<i1>
// CHECK-NEXT: %[[B:.*]] = graph.broadcast %[[T]]
// CHECK: %[[C:.*]] = graph.compare
// CHECK: return %[[B]], %[[C]]
func.func @comparisons() -> (tensor<?xi1, affine_map<()[s0] -> (s0)>>, tensor<?x?xi1, affine_map<()[s0] -> (s0, s0)>>) {
  %z = graph.constant dense<0> : tensor<i64>
  %i = graph.iota {axis = 0 : i64} : () -> tensor<?xi64, affine_map<()[s0] -> (s0)>>
  %0 = graph.compare ge %i, %z : (tensor<?xi64, affine_map<()[s0] -> (s0)>>, tensor<i64>) -> tensor<?xi1, affine_map<()[s0] -> (s0)>>
  %r = graph.iota {axis = 0 : i64} : () -> tensor<?x1xi64, affine_map<()[s0] -> (s0, 1)>>
  %1 = graph.compare ge %r, %i : (tensor<?x1xi64, affine_map<()[s0] -> (s0, 1)>>, tensor<?xi64, affine_map<()[s0] -> (s0)>>) -> tensor<?x?xi1, affine_map<()[s0] -> (s0, s0)>>
  return %0, %1 : tensor<?xi1, affine_map<()[s0] -> (s0)>>, tensor<?x?xi1, affine_map<()[s0] -> (s0, s0)>>
}
