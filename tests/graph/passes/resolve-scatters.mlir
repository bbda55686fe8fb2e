// RUN: charonia-opt %s -resolve-scatters -canonicalize -cse -split-input-file -mlir-print-local-scope | FileCheck %s

// x[2:5] = u: what is before, the updates, what is after.
// CHECK-LABEL: @rows
// CHECK-DAG: %[[A:.*]] = graph.slice %arg0 {starts = affine_map<() -> (0, 0)>{{.*}} -> tensor<2x4xf32>
// CHECK-DAG: %[[B:.*]] = graph.slice %arg0 {starts = affine_map<() -> (5, 0)>{{.*}} -> tensor<3x4xf32>
// CHECK:     %[[C:.*]] = graph.concat %[[A]], %arg1, %[[B]] {axis = 0 : i64}
// CHECK:     return %[[C]]
func.func @rows(%x: tensor<8x4xf32>, %u: tensor<3x4xf32>) -> tensor<8x4xf32> {
  %i = graph.constant dense<[[2], [3], [4]]> : tensor<3x1xi64>
  %0 = graph.scatter_nd none %x, %i, %u : (tensor<8x4xf32>, tensor<3x1xi64>, tensor<3x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// x[:, 1:3] += u, as exporters write it: transposed, scattered, transposed back; and the
// part that was assigned is read without its surroundings. Indices count from the end.
// CHECK-LABEL: @columns
// CHECK:     %[[S:.*]] = graph.slice %arg0 {starts = affine_map<() -> (0, 1)>{{.*}} -> tensor<8x2xf32>
// CHECK:     %[[A:.*]] = graph.add %[[S]], %arg1
// CHECK:     graph.concat %{{.*}}, %[[A]], %{{.*}} {axis = 1 : i64}
// CHECK-NOT: graph.transpose
// CHECK:     graph.neg %[[A]]
// CHECK:     return
func.func @columns(%x: tensor<8x4xf32>, %u: tensor<8x2xf32>) -> (tensor<8x4xf32>, tensor<8x2xf32>) {
  %i = graph.constant dense<[[-3], [-2]]> : tensor<2x1xi64>
  %0 = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %1 = graph.transpose %u {permutation = array<i64: 1, 0>} : (tensor<8x2xf32>) -> tensor<2x8xf32>
  %2 = graph.scatter_nd add %0, %i, %1 : (tensor<4x8xf32>, tensor<2x1xi64>, tensor<2x8xf32>) -> tensor<4x8xf32>
  %3 = graph.transpose %2 {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %4 = graph.slice %3 {starts = affine_map<() -> (0, 1)>, steps = array<i64: 1, 1>} : (tensor<8x4xf32>) -> tensor<8x2xf32>
  %5 = graph.neg %4 : (tensor<8x2xf32>) -> tensor<8x2xf32>
  return %3, %5 : tensor<8x4xf32>, tensor<8x2xf32>
}

// -----

// Any other known places: the last update of each, chosen by a constant.
// CHECK-LABEL: @anywhere
// CHECK-DAG: %[[W:.*]] = graph.constant dense<[0, 3, 0, 2, 0, 1]>
// CHECK-DAG: %[[H:.*]] = graph.constant dense<{{\[}}[false], [true], [false], [true], [false], [true]]>
// CHECK-DAG: %[[G:.*]] = graph.gather %arg1, %[[W]] {axis = 0 : i64}
// CHECK:     graph.select %[[H]], %[[G]], %arg0
func.func @anywhere(%x: tensor<6x4xf32>, %u: tensor<4x4xf32>) -> tensor<6x4xf32> {
  %i = graph.constant dense<[[1], [5], [3], [1]]> : tensor<4x1xi64>
  %0 = graph.scatter_nd none %x, %i, %u : (tensor<6x4xf32>, tensor<4x1xi64>, tensor<4x4xf32>) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}

// -----

// Sums of several updates for a place, indices that leave the input, and indices that are
// data stay scatters.
// CHECK-LABEL: @kept
// CHECK-COUNT-3: graph.scatter_nd
func.func @kept(%x: tensor<6xf32>, %u: tensor<2xf32>, %data: tensor<2x1xi64>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %twice = graph.constant dense<[[1], [1]]> : tensor<2x1xi64>
  %outside = graph.constant dense<[[1], [6]]> : tensor<2x1xi64>
  %0 = graph.scatter_nd add %x, %twice, %u : (tensor<6xf32>, tensor<2x1xi64>, tensor<2xf32>) -> tensor<6xf32>
  %1 = graph.scatter_nd none %x, %outside, %u : (tensor<6xf32>, tensor<2x1xi64>, tensor<2xf32>) -> tensor<6xf32>
  %2 = graph.scatter_nd none %x, %data, %u : (tensor<6xf32>, tensor<2x1xi64>, tensor<2xf32>) -> tensor<6xf32>
  return %0, %1, %2 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}

// -----

// Places that are functions of sizes.
// CHECK-LABEL: @symbolic
// CHECK-DAG: graph.slice %arg0 {starts = affine_map<() -> (0, 0)>{{.*}} -> tensor<1x4xf32>
// CHECK:     graph.concat %{{.*}}, %arg1 {axis = 0 : i64}
#x = affine_map<()[s0] -> (s0 + 1, 4)>
#u = affine_map<()[s0] -> (s0, 4)>
#i = affine_map<()[s0] -> (s0, 1)>
#v = affine_map<()[s0] -> (s0)>
module attributes {graph.symbols = [{name = "n", min = 1, opt = 8, max = 64, divisor = 1}]} {
  func.func @symbolic(%x: tensor<?x4xf32, #x>, %u: tensor<?x4xf32, #u>) -> tensor<?x4xf32, #x> {
    %one = graph.constant dense<1> : tensor<i64>
    %0 = graph.iota {axis = 0 : i64} : () -> tensor<?xi64, #v>
    %1 = graph.add %0, %one : (tensor<?xi64, #v>, tensor<i64>) -> tensor<?xi64, #v>
    %2 = graph.reshape %1 : (tensor<?xi64, #v>) -> tensor<?x1xi64, #i>
    %3 = graph.scatter_nd none %x, %2, %u : (tensor<?x4xf32, #x>, tensor<?x1xi64, #i>, tensor<?x4xf32, #u>) -> tensor<?x4xf32, #x>
    return %3 : tensor<?x4xf32, #x>
  }
}

// -----

// Places that differ from column to column choose single elements, not rows.
// CHECK-LABEL: @columns
// CHECK: graph.constant dense<[0, 0, 0, 1]> : tensor<4xi64>
// CHECK: graph.gather {{.*}} : (tensor<2xf32>, tensor<4xi64>) -> tensor<4xf32>
func.func @columns(%x: tensor<2x2xf32>, %u: tensor<1x2xf32>) -> tensor<2x2xf32> {
  %places = graph.constant dense<[[0, 1]]> : tensor<1x2xi64>
  %0 = graph.scatter_elements none %x, %places, %u {axis = 0} : (tensor<2x2xf32>, tensor<1x2xi64>, tensor<1x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// Single elements along an axis: a box, and any known places.
// CHECK-LABEL: @elements
// CHECK-DAG: %[[A:.*]] = graph.slice %arg0 {starts = affine_map<() -> (0, 0)>{{.*}} -> tensor<2x1xf32>
// CHECK-DAG: %[[B:.*]] = graph.slice %arg0 {starts = affine_map<() -> (0, 3)>{{.*}} -> tensor<2x1xf32>
// CHECK-DAG: graph.concat %[[A]], %arg1, %[[B]] {axis = 1 : i64}
// CHECK-DAG: graph.constant dense<[0, 0, 0, 1, 0, 3, 0, 0]>
// CHECK-DAG: graph.constant dense<[true, false, false, true, false, true, false, false]>
// CHECK-NOT: graph.scatter_elements none
// CHECK:     graph.scatter_elements add
func.func @elements(%x: tensor<2x4xf32>, %u: tensor<2x2xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %box = graph.constant dense<[[1, 2], [1, 2]]> : tensor<2x2xi64>
  %any = graph.constant dense<[[0, -1], [1, 1]]> : tensor<2x2xi64>
  %0 = graph.scatter_elements none %x, %box, %u {axis = 1} : (tensor<2x4xf32>, tensor<2x2xi64>, tensor<2x2xf32>) -> tensor<2x4xf32>
  %1 = graph.scatter_elements none %x, %any, %u {axis = 1} : (tensor<2x4xf32>, tensor<2x2xi64>, tensor<2x2xf32>) -> tensor<2x4xf32>
  %2 = graph.scatter_elements add %x, %any, %u {axis = 1} : (tensor<2x4xf32>, tensor<2x2xi64>, tensor<2x2xf32>) -> tensor<2x4xf32>
  return %0, %1, %2 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}
